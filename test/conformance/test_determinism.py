# SPDX-License-Identifier: Apache-2.0
"""Same input, same bytes; the order of the input's nodes changes the order of the output's nodes and nothing else."""

import random

import harness
import models
import pytest
from harness import Options, Rewritten
from models import BATCH, MATRIX, Spec


def shuffled(spec, seed, path):
    meta = harness.read_meta(harness.export(spec))
    nodes = list(meta.graph_def.node)
    random.Random(seed).shuffle(nodes)
    del meta.graph_def.node[:]
    meta.graph_def.node.extend(nodes)
    with open(path, "wb") as file:
        file.write(meta.SerializeToString(deterministic=True))
    return path


def canonical(path, sort_controls):
    """The output in an order of its own: nodes by name; control inputs too, if they may differ in order."""
    meta = harness.read_meta(path)
    nodes = sorted(meta.graph_def.node, key=lambda node: node.name)
    assert len({node.name for node in nodes}) == len(nodes)
    if sort_controls:
        for node in nodes:
            data = [i for i in node.input if not i.startswith("^")]
            control = sorted(i for i in node.input if i.startswith("^"))
            del node.input[:]
            node.input.extend(data + control)
    nodes = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del meta.graph_def.node[:]
    meta.graph_def.node.extend(nodes)
    return meta


@pytest.mark.parametrize("strategy", ["all-reduce", "ps"])
@pytest.mark.parametrize("reduction", ["add", "collective"])
@pytest.mark.parametrize("model", MATRIX)
def test_two_runs(model, reduction, strategy):
    path, options = harness.export(Spec(model, batch=BATCH)), Options(3, strategy, reduction)
    harness.assert_same_bytes(harness.rewrite(path, options)[0], harness.rewrite(path, options)[0])


@pytest.mark.parametrize("strategy", ["all-reduce", "ps"])
@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("model", MATRIX)
def test_shuffled(model, kind, strategy, tmp_path):
    spec, options = Spec(model, kind), Options(2, strategy)
    plain, _ = harness.rewrite(harness.export(spec), options)
    for seed in (1, 2):
        other, _ = harness.rewrite(shuffled(spec, seed, str(tmp_path / f"shuffled{seed}.meta")), options)
        got, want = canonical(other, True), canonical(plain, True)
        got_nodes, want_nodes = ({n.name: n for n in m.graph_def.node} for m in (got, want))
        assert sorted(got_nodes) == sorted(want_nodes)
        for name, node in want_nodes.items():
            assert got_nodes[name] == node, name
        # The order is canonical: undone by sorting, the bytes are the same, control inputs included.
        got, want = canonical(other, False), canonical(plain, False)
        assert got.SerializeToString(deterministic=True) == want.SerializeToString(deterministic=True)


@pytest.mark.parametrize("model", ["cnn", "embedding"])
def test_shuffled_runs(model, tmp_path):
    """TensorFlow agrees that it is the same graph."""
    spec = Spec(model)
    path = shuffled(spec, 3, str(tmp_path / "shuffled.meta"))
    with Rewritten(spec, Options(2), path) as session:
        session.check_steps()
