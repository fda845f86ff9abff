# SPDX-License-Identifier: Apache-2.0
"""Prints some of a report: report.py FILE VARIABLE."""

import json
import sys

with open(sys.argv[1]) as f:
    report = json.load(f)
output = report["output"]
print(
    f"schema {report['schema']}, input {report['input']['nodes']} nodes,",
    f"output {output['replicas']} replicas on {output['devices']}",
)
variable = next(each for each in report["variables"] if each["name"] == sys.argv[2])
print(
    f"{variable['name']}: {variable['policy']}, {variable['copies']} copies of {variable['bytes']} bytes",
    f"on {variable['devices']}",
)
for index in variable["reductions"]:
    reduction = report["reductions"][index]
    print(f"{reduction['node']} is {reduction['type']}, scale {reduction['scale']}, for {reduction['for']}")
    print("chain", reduction["chain"][0])
scope = next(each for each in report["scopes"] if each["scope"] == "hidden")
print(
    f"scope hidden: {scope['nodes']} nodes, {scope['per-replica']} per replica,",
    f"{scope['inserted']} inserted",
)
message = report["messages"][0]
print(message["Level"], message["Id"], f"{message['Node']}:", message["Help"])
names = [each["scope"] for each in report["scopes"]] + ["(none)"]
program = report["program"]
print(f"program: {program['nodes']} nodes, {program['per-replica']} per replica, {program['inserted']} inserted")
for edge in report["edges"]:
    if names[edge["from"]] == "gradients/output/MatMul_grad" or names[edge["to"]] == "x":
        print(names[edge["from"]], "->", names[edge["to"]], *(f"{key} {edge[key]}" for key in ("edges", "exchanges", "bytes") if key in edge))
