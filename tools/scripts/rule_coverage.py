#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says which ops have a rule in lib/analysis/OpRules.def.

    tools/scripts/rule_coverage.py [--graft-opt=PROGRAM] [--missing] [GRAPH...]

Without a graph: how many ops of TensorFlow's registry have a rule, keep a state without one, or have none. With graphs,
also which of their ops have none, and how often they occur; the exit status is then 1 when there is one.
"""

import argparse
import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STATEFUL = 1  # of the flags in OpTable.inc
OP_ROW = re.compile(r'^GRAFT_OP\("([^"]+)", \d+, \d+, (\d+), \d+, \d+, (\d+)\)', re.M)
NAMED_ROW = re.compile(r'^GRAFT_(?:UPDATE|READ)\("([^"]+)"', re.M)
RULE_ROW = re.compile(r"^GRAFT_(?:RULE|NONLINEAR2?|ONCE|ROWS)\((\w+)[,)]", re.M)
SUMMARY_ROW = re.compile(r"^\s*\S+ = ([\w>]+)\(", re.M)


def read(*path):
    with open(os.path.join(ROOT, *path)) as file:
        return file.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    default = os.path.join(ROOT, "build", "release", "bin", "graft-opt")
    parser.add_argument("--graft-opt", default=os.environ.get("GRAFT_OPT", default), help="the compiler")
    parser.add_argument("--missing", action="store_true", help="list the ops of the registry without a rule")
    parser.add_argument("graphs", nargs="*", metavar="GRAPH")
    options = parser.parse_args()

    table = read("lib", "ops", "OpTable.inc")
    rows = OP_ROW.findall(table)
    ops = {name: int(flags) for name, _, flags in rows}
    # Updates and reads of variables have rules of their own; what has no output needs none.
    rules = read("lib", "analysis", "OpRules.def") + read("lib", "analysis", "RowRules.def")
    ruled = set(RULE_ROW.findall(rules)) | set(NAMED_ROW.findall(table))
    ruled |= {name for name, outputs, _ in rows if outputs == "0"}
    stateful = {name for name, flags in ops.items() if flags & STATEFUL}
    none = sorted(set(ops) - ruled - stateful)
    print(f"{len(ops)} ops: {len(ruled & set(ops))} with a rule, ", end="")
    print(f"{len(stateful - ruled)} stateful without one, {len(none)} others without one")
    if options.missing:
        print("\n".join(f"  {name}" for name in none))

    found = False
    for graph in options.graphs:
        done = subprocess.run(
            [options.graft_opt, graph, "--passes=", "--emit=summary", "-o", "-"], capture_output=True, text=True
        )
        if done.returncode != 0:
            sys.exit(f"{graph}: {done.stderr.strip()}")
        counts = collections.Counter(SUMMARY_ROW.findall(done.stdout))
        lacking = {op: n for op, n in counts.items() if op not in ruled}
        print(f"{graph}: {len(counts)} ops, {len(lacking)} without a rule")
        for op, n in sorted(lacking.items(), key=lambda item: (-item[1], item[0])):
            kind = "" if op not in stateful else " (stateful)" if op in ops else " (unknown)"
            print(f"  {op} {n}{kind}")
        found |= bool(lacking)
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
