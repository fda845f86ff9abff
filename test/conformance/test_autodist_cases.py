# SPDX-License-Identifier: Apache-2.0
"""AutoDist's integration cases under its ten strategies and its resource specs, against the single-device graph.

Its strategy objects are a builder and what the constructor was given; in some of them, and for
staleness, the record that the builder emits is edited, as a user of AutoDist's would, and given back as a file.
"""

import functools
import os
import re

import harness
import models_autodist
import numpy as np
import pytest
import tensorflow.compat.v2 as tf
from models import tf1
from strategies import SMALL, Distributed, Placed, declared, temporary

# AutoDist's name: our builder, its options, what is written in its record.
STRATEGIES = {
    "PS": ("ps", (), {}),
    "PartitionedPS": ("partitioned-ps", (), {"local_replication": True}),
    "AllReduce NCCL": ("all-reduce", ("--group-size=1", "--spec=nccl"), {}),
    "AllReduce NCCL HorovodCompressor": ("all-reduce", ("--group-size=1", "--spec=nccl", "--compressor=fp16"), {}),
    "AllReduce RING HorovodCompressorEF": (
        "all-reduce",
        ("--group-size=1", "--spec=ring", "--compressor=fp16-ef"),
        {},
    ),
    "PSLoadBalancing": ("ps-load-balancing", ("--local-replication",), {}),
    "Parallax": ("parallax", ("--local-replication",), {}),
    "PartitionedAR": ("partitioned-all-reduce", (), {}),
    "UnevenPartitionedPS": ("uneven-partitioned-ps", (), {"local_replication": True}),
    "RandomAxisPartitionAR": ("random-axis-partition-all-reduce", ("--group-size=4",), {}),
}
# r5, r6, r7 and r9 with CPUs stand for r0 to r4, which have GPUs.
EXPECTED = ("its own random numbers", "16 bits", "only variables are distributed")
PLACES = {"r5": 2, "r6": "2x2", "r7": 1, "r9": "2+1"}


@functools.lru_cache(maxsize=None)
def case(name: str, kind: str):
    return models_autodist.CASES[name](kind)


def run(session, made):
    session.restart()
    rows = [((), session.values())]
    for feeds in made.feeds:
        fetched = session.run([*made.fetches, "train_op"], feeds)[: len(made.fetches)]
        rows.append((tuple(fetched), session.values()))
    return rows


@functools.lru_cache(maxsize=None)
def single(name: str, kind: str):
    made = case(name, kind)
    with harness.Session(made.path) as session:
        return run(session, made)


def edited(path: str, options: Placed, edits) -> str:
    """The record of a builder, as text, with fields of its PS synchronizers set."""
    record = temporary(".pbtxt")
    harness.run_graft([path, "-o", temporary(".meta"), *options.arguments(), f"--emit-strategy={record}"])
    with open(record, encoding="utf-8") as file:
        text = file.read()
    lines = []
    for line in text.splitlines():
        if re.match(r"\s*(%s):" % "|".join(edits), line):
            continue
        lines.append(line)
        if re.match(r"\s*PSSynchronizer \{", line):
            lines += [f"  {field}: {str(value).lower()}" for field, value in edits.items()]
    with open(record, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return record


def check(name, kind, strategy, where, slack=1.0):
    builder, flags, edits = STRATEGIES[strategy]
    made = case(name, kind)
    options = Placed(where, builder, "auto", (*SMALL, *flags))
    if edits:
        options = Placed(where, edited(made.path, options, edits), "auto", ())
    with Distributed(made.path, options) as session:
        got = run(session, made)
        for i, (ours, want) in enumerate(zip(got, single(name, kind))):
            harness.assert_all_close(ours[1], want[1], f"after step {i}", slack)
            for fetch, a, b in zip(made.fetches, ours[0], want[0]):
                harness.assert_close(a, b, f"{fetch} of step {i}", slack)
        return session.stderr


def combinations():
    """Every case with every strategy, and each of these pairs in some place; every place with every case."""
    for i, name in enumerate(models_autodist.CASES):
        for j, strategy in enumerate(STRATEGIES):
            places = list(PLACES)
            yield name, strategy, places[(i + j) % len(places)], ("resource", "ref")[(i + j // 2) % 2]


@pytest.mark.parametrize("name, strategy, place, kind", list(combinations()))
def test_case(name, strategy, place, kind):
    compressed = "Compressor" in strategy
    # 16 bits of a gradient: 2^-11 of it in each of a few steps with rates up to 0.2; c4 and c9 are of float64.
    slack = (5e7 if name in ("c4", "c9") else 500.0) if compressed else 1.0
    said = check(name, kind, strategy, PLACES[place], slack)
    for line in said.splitlines():
        if " warning: " in line:
            assert any(reason in line for reason in EXPECTED), said


@pytest.mark.parametrize("staleness", [1, 3])
@pytest.mark.parametrize("place", ["r5", "r6"])
def test_c9_staleness(staleness, place):
    """One session runs all replicas in one step: nobody is ahead, and there is one update for each step."""
    made = case("c9", "resource")
    options = Placed(PLACES[place], "ps", "auto", SMALL)
    record = edited(made.path, options, {"sync": True, "staleness": staleness})
    with Distributed(made.path, Placed(PLACES[place], record, "auto", ("--remarks",))) as session:
        got = run(session, made)
        for i, (ours, want) in enumerate(zip(got, single("c9", "resource"))):
            harness.assert_all_close(ours[1], want[1], f"after step {i}")
    assert "`staleness` have no effect" in session.stderr


@pytest.mark.parametrize("strategy", ["PartitionedPS", "Parallax", "AllReduce NCCL"])
def test_c10_saver(strategy):
    """A checkpoint of the distributed graph is one of the graph that it was made of."""
    builder, flags, _ = STRATEGIES[strategy]
    made = case("c10", "resource")
    with Distributed(made.path, Placed("2x2", builder, "auto", (*SMALL, *flags))) as session:
        session.restart()
        session.run(["train_op"], made.feeds[0])
        want, prefix = session.values(), session.save()
    names = tf.train.load_checkpoint(prefix).get_variable_to_shape_map()
    assert sorted(names) == sorted(declared(made.path)[0])
    with harness.Session(made.path) as alone:
        alone.restore(prefix)
        harness.assert_all_close(alone.values(), want, "restored")
