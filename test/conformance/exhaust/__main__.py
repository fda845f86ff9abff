# SPDX-License-Identifier: Apache-2.0
"""Checks rules by enumeration from the command line; in test/conformance:

    python -m exhaust --op=Softmax --op=Cumsum          some ops
    python -m exhaust --family=Reduction --full         a file of lib/infer/rules, all recipes
"""

import argparse
import sys
import time

from exhaust import driver, report, table


def main():
    parser = argparse.ArgumentParser(prog="python -m exhaust", description=__doc__.split("\n")[0])
    parser.add_argument("--op", action="append", default=[], help="this op; more than once")
    parser.add_argument("--family", action="append", default=[], help="the ops of a file of lib/infer/rules")
    parser.add_argument("--seed", type=int, default=0, help="of the recipes that are drawn")
    parser.add_argument("--budget", type=int, default=report.BUDGET, help="recipes of each op")
    parser.add_argument("--drawn", action="store_true", help="of these ops, those that the default tier draws by the seed")
    parser.add_argument("--full", action="store_true", help="all recipes")
    parser.add_argument("--flag", action="append", default=[], help="one more flag of graft-opt")
    parser.add_argument("--proofs", metavar="FILE", help="write what is Varying and need not be")
    parser.add_argument("--kinds", default="", metavar="PATTERN", help="only recipes with an operand of such a kind: zero")
    parser.add_argument("--write", action="store_true", help=f"write the results of these ops to {report.RECORD}")
    parser.add_argument("--verbose", action="store_true", help="say what is refused")
    options = parser.parse_args()
    families = table.families()
    unknown = set(options.family) - set(families)
    if unknown:
        parser.error(f"no family: {', '.join(sorted(unknown))}; there are {', '.join(families)}")
    ops = options.op + [op for family in options.family for op in families[family]]
    ops = ops or [op for family in families.values() for op in family]
    if options.drawn:
        ops = report.drawn(ops, options.seed)
    start = time.time()
    result = driver.run(
        ops,
        None if options.full else options.budget,
        options.seed,
        bool(options.proofs),
        (*driver.FLAGS, *options.flag),
        lambda text: print(f"\r{time.time() - start:.0f} s: {text}", end="", file=sys.stderr),
        options.kinds,
    )
    print(file=sys.stderr)
    print("\n".join(report.table(result)))
    if options.verbose:
        print("\n".join(f"{recipe}: {said}" for recipe, said in sorted(result.refusals.items())))
        print("\n".join(f"crash: {crash}" for crash in result.crashes))
    print("\n".join(str(failure) for failure in result.failures))
    if options.proofs:
        with open(options.proofs, "w") as file:
            file.write("\n".join(report.proofs(result)) + "\n")
    if options.write:
        report.write(result)
    return int(bool(result.failures))


if __name__ == "__main__":
    sys.exit(main())
