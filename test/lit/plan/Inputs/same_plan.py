"""Compares the numbers of --plan=json and --plan=yaml: same_plan.py JSON YAML"""

import json
import re
import sys


def numbers(entry):
    for value in entry.values():
        if isinstance(value, list):
            for each in value:
                yield from numbers(each)
        elif not isinstance(value, str):
            yield float(value)


table = list(numbers(json.load(open(sys.argv[1]))))
lines = [float(number) for number in re.findall(r": ([0-9.e+-]+)$", open(sys.argv[2]).read(), re.M)]
assert len(table) == len(lines) and all(abs(a - b) <= 1e-9 + 1e-6 * abs(b) for a, b in zip(table, lines)), (table, lines)
print(len(table), "numbers are equal")
