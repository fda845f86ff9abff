# SPDX-License-Identifier: Apache-2.0
"""The examples of AutoDist and Keras, under each of AutoDist's nine strategies: the steps of the single device, and
nothing is warned of."""

import functools

import harness
import models_examples
import pytest
from strategies import SMALL, STRATEGIES, Distributed, Placed


@functools.lru_cache(maxsize=None)
def example(name: str, kind: str):
    return models_examples.EXAMPLES[name](kind)


def run(session, made):
    session.restart()
    rows = [((), session.values())]
    for feeds in made.feeds:
        fetched = session.run([*made.fetches, "train_op"], feeds)[: len(made.fetches)]
        rows.append((tuple(fetched), session.values()))
    return rows


@functools.lru_cache(maxsize=None)
def single(name: str, kind: str):
    made = example(name, kind)
    with harness.Session(made.path) as session:
        return run(session, made)


def combinations(full: bool):
    for i, name in enumerate(models_examples.EXAMPLES):
        for j, strategy in enumerate(STRATEGIES):
            for where in (1, 2, 3, 4):
                for kind in ("resource", "ref"):
                    # Each pair with 2 and with 3 replicas, of either kind.
                    if full or (where, kind) in ((2, ("resource", "ref")[(i + j) % 2]), (3, ("ref", "resource")[(i + j) % 2])):
                        yield name, strategy, where, kind


def pytest_generate_tests(metafunc):
    metafunc.parametrize("name, strategy, where, kind", list(combinations(metafunc.config.getoption("--full"))))


def test_example(name, strategy, where, kind):
    made = example(name, kind)
    options = Placed(where, strategy, "auto", (*SMALL, "--verify-output", "--strict", "--min-spread=90"))
    with Distributed(made.path, options) as session:
        got = run(session, made)
        for i, (ours, want) in enumerate(zip(got, single(name, kind))):
            harness.assert_all_close(ours[1], want[1], f"after step {i}")
            for fetch, a, b in zip(made.fetches, ours[0], want[0]):
                harness.assert_close(a, b, f"{fetch} of step {i}")
        session.check_copies("at the end")
    assert "warning: " not in session.stderr, session.stderr
