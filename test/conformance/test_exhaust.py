# SPDX-License-Identifier: Apache-2.0
"""Every rule of lib/infer/rules against TensorFlow, by enumeration: operands of every type, attributes of every value.

The package `exhaust` has the machinery. A run draws a quarter of the ops, and some recipes of each, by a seed, which it
prints and which is another one each day; `--full` runs all, and writes how many held to exhaust/results.txt, from which
docs/Coverage.md is made.
"""

import os
import subprocess
import sys

import pytest
import rule_coverage
from exhaust import driver, golden, mutate, no_rows, report, table


@pytest.fixture(scope="module")
def seed(request):
    return request.config.getoption("--exhaust-seed")


@pytest.mark.parametrize("family", [name for name, ops in table.families().items() if any(map(table.line_of, ops))])
def test_family(family, seed, request):
    """The claims about the results of an op hold for all its operands."""
    full = request.config.getoption("--full")
    print(f"seed {seed}: python -m exhaust --family={family} --drawn --seed={seed}")
    ops = table.families()[family]
    result = driver.run(ops, None, seed) if full else driver.run(report.drawn(ops, seed), report.BUDGET, seed)
    if full:
        report.write(result)
    print("\n".join(report.table(result)))
    assert not result.failures, "\n".join(map(str, result.failures))


def test_zeros(seed):
    """Zeros stay zeros in what is linear."""
    result = driver.run(list(table.ZEROS), report.ZEROS, seed, kinds="zero")
    assert not result.failures, "\n".join(map(str, result.failures))
    kept = {op for (op, _, _), found in result.zeros.items() if found["kept"]}
    assert len(kept) > 100, f"of few ops zeros are known: {sorted(kept)}"


def test_listed():
    """An entry of the rules has a generator or a reason, and not both."""
    ops = {op for ops in table.families().values() for op in ops}
    assert len(ops) > 450 and ops >= {op for op in rule_coverage.entries() if not table.NO_OPS.fullmatch(op)}
    lacking = sorted(op for op in ops if table.line_of(op) is None and op not in table.NOT_COVERED)
    assert not lacking, "add a line to exhaust/table.py, or a reason to its NOT_COVERED"
    assert not set(table.NOT_COVERED) - ops, "reasons for ops without an entry"
    assert not set(table.LINES) - ops, "lines for ops without an entry"
    assert not set(table.LINES) & set(table.NOT_COVERED), "a line and a reason"
    assert not set(table.ZEROS) - ops, "zeros of ops without an entry"


def test_recorded():
    """Generators make something that TensorFlow runs and of which a claim holds."""
    recorded = report.read()
    ops = {op for ops in table.families().values() for op in ops if table.line_of(op)}
    idle = sorted(op for op in ops if not recorded.get(op, {}).get("held"))
    assert not idle, "nothing of these is proved, give each a better line, or a reason; then python -m exhaust --write"


@pytest.mark.parametrize("family", [name for name in table.families() if golden.ops_of(name)])
def test_claims(family, seed):
    """The claims about each recipe are those of the record: TensorFlow does not tell a claim that is less than it could be."""
    if golden.recorded_version() != golden.version():
        pytest.skip("the record is of another TensorFlow, which has other types")
    stale, differing = golden.changed(golden.ops_of(family))
    say = "if it is meant, cd test/conformance; python -m exhaust.golden --write"
    assert not stale, f"has no record of the recipes of {' '.join(stale)}: {say} {' '.join('--op=' + op for op in stale)}"
    lines = golden.told(differing, golden.refuted(differing, seed))
    assert not lines, f"{say} --family={family}:\n" + "\n".join(lines[:40])


def test_no_rows(seed, request):
    """The list of kernels that do not bear no rows is what they do: those of the list and some others, or all."""
    if no_rows.version() != golden.version():
        pytest.skip("the list is of another TensorFlow, which has other kernels")
    every = sorted({op for ops in table.families().values() for op in ops})
    listed = no_rows.listed()
    ops = [] if request.config.getoption("--full") else [*listed, *(op for op in report.drawn(every, seed)[::4] if op not in listed)]
    done = subprocess.run(
        [sys.executable, "-m", "exhaust.no_rows", *(f"--op={op}" for op in ops)],
        cwd=os.path.dirname(os.path.abspath(__file__)), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert done.returncode == 0, f"if it is meant, cd test/conformance; python -m exhaust.no_rows --write:\n{done.stdout}"


def test_mutations():
    """The text that each mutant breaks exists once."""
    for mutation in mutate.MUTATIONS:
        with open(os.path.join(mutate.RULES, mutation.file)) as file:
            text = file.read()
        assert all(text.count(old) == 1 for old, _ in [(mutation.old, mutation.new), *mutation.more]), mutation.what
