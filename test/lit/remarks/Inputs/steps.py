# SPDX-License-Identifier: Apache-2.0
"""Compares the steps of a report with those of --plan=json: steps.py REPORT PLAN."""

import json
import sys

plan, table = (json.load(open(name)) for name in sys.argv[1:])
plan = plan["plan"]
assert [each["strategy"] for each in plan["strategies"]] == [each["strategy"] for each in table["strategies"]]
for ours, its in zip(plan["strategies"], table["strategies"]):
    assert abs(ours["seconds"] - its["seconds"]) < 1e-9, (ours, its)
    assert abs(sum(ours["phases"].values()) - ours["seconds"]) < 1e-9, ours
    assert abs(sum(each["out"] for each in ours["machines"]) - its["network-bytes"]) < len(ours["machines"]), (ours, its)
machines = {len(each["machines"]) for each in plan["strategies"]}
print(f"{plan['strategy']} of {len(plan['strategies'])} strategies, which take what --plan says; {machines.pop()} machines")
