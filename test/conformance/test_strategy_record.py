# SPDX-License-Identifier: Apache-2.0
"""Strategies that decide of each variable: the steps and checkpoints of the single device, and the same from their file."""

import filecmp
import os
import tempfile

import harness
import pytest
from google.protobuf import any_pb2
from harness import Options, Rewritten
from models import Spec

CASES = [
    (model, kind, strategy)
    for model, kind in (("embedding", "resource"), ("mlp_adam", "ref"))
    for strategy in ("ps-load-balancing", "parallax")
]


def spec_of(model: str, kind: str) -> Spec:
    return Spec(model=model, kind=kind, batch=None, loss="mean")


@pytest.mark.parametrize("model,kind,strategy", CASES)
def test_steps(model, kind, strategy):
    spec = spec_of(model, kind)
    with tempfile.TemporaryDirectory(dir=harness.workdir()) as folder:
        emitted, again = os.path.join(folder, "a.pb"), os.path.join(folder, "again.pb")
        with Rewritten(spec, Options(3, strategy, extra=(f"--emit-strategy={emitted}",))) as session:
            session.check_steps()
            session.check_checkpoints()
            session.check_diagnostics()
            # The file alone says where the replicas are, too.
            other = os.path.join(folder, "other.meta")
            harness.run_graft(
                [harness.export(spec), "-o", other, f"--strategy={emitted}", f"--emit-strategy={again}"]
            )
            assert filecmp.cmp(session.path, other, shallow=False)
            assert filecmp.cmp(emitted, again, shallow=False)


def test_graph_item():
    """protobuf's own Any around the graph: the graph is read as it is."""
    graph = harness.read_meta(harness.export(spec_of("mlp_adam", "resource"))).graph_def
    message = any_pb2.Any()
    message.Pack(graph)
    # Field 1 of a GraphItem.
    body = message.SerializeToString()
    size, length = len(body), b""
    while size >= 0x80:
        length, size = length + bytes([size & 0x7F | 0x80]), size >> 7
    with tempfile.TemporaryDirectory(dir=harness.workdir()) as folder:
        item, plain = os.path.join(folder, "item"), os.path.join(folder, "plain.pb")
        with open(item, "wb") as f:
            f.write(b"\x0a" + length + bytes([size]) + body)
        with open(plain, "wb") as f:
            f.write(graph.SerializeToString(deterministic=True))
        for source in (item, plain):
            harness.run_graft([source, "-o", source + ".out", "--replicas=2", "--device-type=CPU"])
        got, want = harness.read_graph_def(item + ".out"), harness.read_graph_def(plain + ".out")
        assert got == want
