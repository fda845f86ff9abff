# SPDX-License-Identifier: Apache-2.0
"""An empty pipeline writes the input's bytes."""

import glob
import os

import harness
import models
import pytest
import tensorflow as tf
from models import BATCH, MATRIX, Spec

tf1 = tf.compat.v1

INPUTS = os.path.join(harness.ROOT, "test", "inputs")
BUNDLED = sorted(p for e in ("meta", "pb") for p in glob.glob(os.path.join(INPUTS, f"**/*.{e}"), recursive=True))


def content(path):
    with open(path, "rb") as file:
        return file.read()


def check(path):
    out = os.path.join(harness.workdir(), "identity" + os.path.splitext(path)[1])
    if os.path.exists(out):
        os.remove(out)
    done = harness.run_graft([path, "-o", out, "--passes="])
    assert done.stderr == ""
    harness.assert_same_bytes(out, path)


@pytest.mark.parametrize("path", BUNDLED, ids=os.path.basename)
def test_bundled(path):
    check(path)


@pytest.mark.parametrize("extension", [".meta", ".pb"])
@pytest.mark.parametrize("batch", [None, BATCH])
@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("model", MATRIX)
def test_exported(model, kind, batch, extension):
    check(harness.export(Spec(model, kind, batch), extension))


def varint(value):
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(data + bytes([value]))


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


# Fields that no schema knows, in all wire types.
FIELDS = (
    varint(9001 << 3 | 0)
    + varint(1 << 60)
    + varint(9002 << 3 | 1)
    + b"8 bytes."
    + field(9003, b"\xff\x00 not a message")
    + varint(9004 << 3 | 5)
    + b"four"
)
GROUP = varint(9005 << 3 | 3) + field(1, b"inside") + varint(9005 << 3 | 4)
UNKNOWN = pytest.mark.parametrize("unknown", [FIELDS, GROUP], ids=["fields", "group"])


def strange_graph(graph, unknown):
    """The bytes of a GraphDef with unknown fields at the top, in a node and in an attr, between known ones."""
    nodes = []
    for i, node in enumerate(graph.node):
        data = node.SerializeToString()
        if i % 3 == 0:
            data = unknown + data
        if i % 3 == 1:
            # An attr entry whose value holds an unknown field, after all others.
            data += field(5, field(1, b"_strange") + field(2, unknown)) + unknown
        nodes.append(field(1, data))
    rest = tf1.GraphDef()
    rest.CopyFrom(graph)
    del rest.node[:]
    middle = len(nodes) // 2
    # Known top-level fields between the nodes, as no writer would put them.
    return b"".join(nodes[:middle]) + unknown + rest.SerializeToString() + b"".join(nodes[middle:]) + unknown


@UNKNOWN
@pytest.mark.parametrize("model", ["mlp_adam", "cnn"])
def test_unknown_fields_graph(model, unknown, tmp_path):
    path = tmp_path / "strange.pb"
    path.write_bytes(strange_graph(models.build(Spec(model)).graph.as_graph_def(), unknown))
    check(str(path))


def strange_meta(spec, unknown):
    meta = tf1.MetaGraphDef()
    meta.ParseFromString(content(harness.export(spec)))
    graph = strange_graph(meta.graph_def, unknown)
    meta.ClearField("graph_def")
    return unknown + field(2, graph) + meta.SerializeToString() + unknown


@UNKNOWN
@pytest.mark.parametrize("model", ["mlp_adam", "cnn"])
def test_unknown_fields_meta(model, unknown, tmp_path):
    path = tmp_path / "strange.meta"
    path.write_bytes(strange_meta(Spec(model), unknown))
    check(str(path))


def test_unknown_fields_survive_a_rewrite(tmp_path):
    """Not only an empty pipeline keeps them: they ride along, in the nodes that stay and in their copies."""
    spec, options = Spec("mlp_adam"), harness.Options(2)
    path = tmp_path / "strange.meta"
    path.write_bytes(strange_meta(spec, FIELDS))
    with harness.Rewritten(spec, options, str(path)) as session:
        session.check_steps()
        data = content(session.path)
    assert data.count(FIELDS) >= strange_meta(spec, FIELDS).count(FIELDS)


@pytest.mark.parametrize("extension", [".pbtxt"])
@pytest.mark.parametrize("model", ["mlp_adam", "cnn"])
def test_text(model, extension, tmp_path):
    """Text: the same message, and identical after one normalisation."""
    path = harness.export(Spec(model), extension)
    once, twice = str(tmp_path / "once.pbtxt"), str(tmp_path / "twice.pbtxt")
    harness.run_graft([path, "-o", once])
    harness.run_graft([once, "-o", twice])
    harness.assert_same_bytes(once, twice)
    assert harness.read_graph_def(once) == harness.read_graph_def(path)
