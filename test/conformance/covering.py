# SPDX-License-Identifier: Apache-2.0
"""Covering subsets: a small, deterministic choice of cases that meets every combination of any `strength` factors."""

import itertools
from typing import Dict, Hashable, List, Sequence


def covering(factors: Dict[str, Sequence[Hashable]], strength: int = 2) -> List[Dict[str, Hashable]]:
    """Greedy: each new case starts from the first combination not met yet, and every other factor takes the value that
    meets the most new combinations (the first such value, so that the result is always the same).

    >>> cases = covering({"a": "xyz", "b": "pq", "c": [1, 2]})
    >>> len(cases)
    6
    """
    names = list(factors)
    strength = min(strength, len(names))
    missing = {}  # an ordered set of combinations ((name, value), ...), names in the order of `factors`
    for chosen in itertools.combinations(names, strength):
        for values in itertools.product(*(factors[name] for name in chosen)):
            missing[tuple(zip(chosen, values))] = None

    def gain(case, name, value):
        trial = {**case, name: value}
        known = [n for n in names if n in trial and n != name]
        count = 0
        for others in itertools.combinations(known, strength - 1):
            chosen = sorted(others + (name,), key=names.index)
            count += tuple((n, trial[n]) for n in chosen) in missing
        return count

    cases = []
    while missing:
        case = dict(next(iter(missing)))
        for name in names:
            if name not in case:
                values = list(factors[name])
                # Ties rotate with the number of cases, so that no value is used much more than the others.
                turn = len(cases) % len(values)
                case[name] = max(values[turn:] + values[:turn], key=lambda value: gain(case, name, value))
        case = {name: case[name] for name in names}
        for chosen in itertools.combinations(names, strength):
            missing.pop(tuple((n, case[n]) for n in chosen), None)
        cases.append(case)
    return cases
