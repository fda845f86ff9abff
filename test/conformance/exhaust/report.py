# SPDX-License-Identifier: Apache-2.0
"""The findings of a run as text, and the record of the last full run."""

import os
import random
from typing import Dict, List, Sequence

from exhaust import driver
from exhaust import table as op_table

BUDGET = 16  # instances of each op in the default tier
ZEROS = 3  # of those with zeros
SHARE = 4  # one of so many ops is in it, which ones is drawn by the seed
RECORD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results.txt")


def drawn(ops: Sequence[str], seed: int) -> List[str]:
    """The ops of the default tier: after some days each was in it."""
    return [op for op in ops if random.Random(f"{seed} {op} drawn").randrange(SHARE) == 0]


def table(result: driver.Result) -> List[str]:
    rows = [f"{'op':40}" + "".join(f"{outcome:>9}" for outcome in driver.OUTCOMES)]
    for op, counts in sorted(result.counts.items()):
        rows.append(f"{op:40}" + "".join(f"{counts[outcome]:9}" for outcome in driver.OUTCOMES))
    total = [sum(counts[outcome] for counts in result.counts.values()) for outcome in driver.OUTCOMES]
    return [*rows, f"{'all':40}" + "".join(f"{number:9}" for number in total)]


def proofs(result: driver.Result) -> List[str]:
    """Results that are Varying although a type would be right on these values, and zeros that graft does not know."""
    types = [f"{key}: {types}" for _, found in sorted(result.unproved.items()) for key, types in sorted(found.items()) if types]
    return [*types, *lost_zeros(result)]


def lost_zeros(result: driver.Result) -> List[str]:
    """Results that were zeros each time that these operands were, and are not known to be."""
    return [
        f"{op} output {port} is zero where operands {', '.join(map(str, slots))} are: {len(n['kept'])} kept, {len(n['lost'])} lost: {min(n['lost'])}"
        for (op, slots, port), n in sorted(result.zeros.items())
        if n["lost"] and not n["other"]
    ]


def read() -> Dict[str, Dict[str, int]]:
    """By op: how many recipes ended how in the last full run."""
    with open(RECORD) as file:
        rows = [line.split() for line in file if not line.startswith("#")]
    return {op: dict(zip(driver.OUTCOMES, map(int, numbers))) for op, *numbers in rows}


def write(result: driver.Result):
    """Adds the ops of a full run to the record."""
    rows = read() if os.path.exists(RECORD) else {}
    rows.update({op: dict(counts) for op, counts in result.counts.items()})
    rows = {op: counts for op, counts in rows.items() if op_table.line_of(op)}
    with open(RECORD, "w") as file:
        file.write("# Written by `python -m exhaust --write`: recipes of each op that " + ", ".join(driver.OUTCOMES) + ".\n")
        for op, counts in sorted(rows.items()):
            file.write(" ".join([op, *[str(counts.get(outcome, 0)) for outcome in driver.OUTCOMES]]) + "\n")
