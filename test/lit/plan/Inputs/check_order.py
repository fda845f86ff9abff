# SPDX-License-Identifier: Apache-2.0
"""Checks the order of strategies in a plan that `--plan=yaml` printed.

    check_order.py PLAN 'a < b < c' MARGIN     each is at least MARGIN faster than the next
    check_order.py PLAN 'a ~ b' MARGIN         they differ by MARGIN at most

Margins are shares of the faster one. `auto` must be as fast as any.
"""

import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    seconds = {n: float(s) for n, s in re.findall(r"strategy: (\S+)\n\s+seconds: (\S+)", file.read())}
margin = float(sys.argv[3])
good = len(seconds) == 9 and seconds["auto"] <= min(seconds.values()) and min(seconds.values()) > 0
names = re.split(" [<~] ", sys.argv[2])
for fast, slow in zip(names, names[1:]):
    ratio = seconds[slow] / seconds[fast]
    print(f"{slow} takes {ratio:.3f} times as long as {fast}")
    good &= abs(ratio - 1) <= margin if "~" in sys.argv[2] else ratio >= 1 + margin
print("in order" if good else f"NOT IN ORDER: {seconds}")
sys.exit(not good)
