# SPDX-License-Identifier: Apache-2.0
"""The summary at the end of a run of the tier: which steps pass, are refused or warned of, and the mutation score.

A test says what it runs with `harness.rewrite` or `harness.Options`; each call of graft-opt that rewrites a model is noted
under the model, the strategy and the number of replicas, and the outcome of the test goes to all that it noted.
"""

import collections
from typing import Dict, List, Tuple

Key = Tuple[str, str, int]  # model, strategy, replicas
OUTCOMES = ("pass", "refused", "warned", "known", "failed")
NOTED: List[Tuple[str, str, int, str]] = []  # by the test that runs now: a key and what was said
RESULTS: Dict[Key, Dict[str, int]] = collections.defaultdict(lambda: dict.fromkeys(OUTCOMES, 0))


def note(model: str, strategy: str, replicas: int, said: str, status: int):
    """graft-opt ran on a model."""
    NOTED.append((model, strategy, replicas, "refused" if status else "warned" if "warning: " in said else "pass"))


def taken() -> List[Tuple[str, str, int, str]]:
    """The notes since the last call, once each."""
    noted = sorted(set(NOTED))
    NOTED.clear()
    return noted


def finish(noted: List[Tuple[str, str, int, str]], passed: bool, expected_to_fail: bool):
    """A test that noted this has ended."""
    for model, strategy, replicas, outcome in noted:
        RESULTS[model, strategy, replicas]["known" if expected_to_fail else outcome if passed else "failed"] += 1


def table() -> List[str]:
    """One row for each model and strategy, one column for each number of replicas, and a total."""
    counts = sorted({key[2] for key in RESULTS})
    rows = sorted({key[:2] for key in RESULTS})
    width = max([len(model) for model, _ in rows] + [5])

    def cell(numbers) -> str:
        return ", ".join(f"{number} {name}" for name, number in numbers.items() if number) or "-"

    cells = {(row, n): cell(RESULTS[(*row, n)]) if (*row, n) in RESULTS else "-" for row in rows for n in counts}
    widths = {n: max([len(cells[row, n]) for row in rows] + [4]) for n in counts}
    lines = [" ".join([f"{'model':{width}} {'strategy':10}"] + [f"{f'N={n}':{widths[n]}}" for n in counts])]
    for row in rows:
        lines.append(" ".join([f"{row[0]:{width}} {row[1]:10}"] + [f"{cells[row, n]:{widths[n]}}" for n in counts]))
    total = dict.fromkeys(OUTCOMES, 0)
    for numbers in RESULTS.values():
        for name, number in numbers.items():
            total[name] += number
    lines.append(f"total: {sum(total.values())} rewrites: " + cell(total))
    return lines
