# SPDX-License-Identifier: Apache-2.0
"""Every single fault in a graph with variables in parts is told by the check against the whole graph."""

import os
import tempfile

import harness
import numpy as np
import pytest
import tensorflow as tf
from models import Spec
from mutations import Mutation, edit_of, survivors
from test_partition import partition

CASES = [
    ("embedding", ["table=0/3", "w=0/2"], "resource"),
    ("embedding", ["table=0:1,9,1"], "ref"),
    ("mlp_adam", ["hidden/kernel=1:3,13", "output/kernel=0/5"], "resource"),
    ("adamw_assign", ["hidden/kernel=0/2", "output/kernel=1/4"], "ref"),
]


def constant(node, change):
    """The constant `node` with its values changed, or nothing where that is no number or string."""
    value = tf.make_ndarray(node.attr["value"].tensor)
    value = np.array(change(value.copy()), value.dtype)
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, shape=value.shape))


def faults(graph, new):
    """Yields a mutation for each fault in the nodes called `new`, and in those that read them."""
    names = {node.name: i for i, node in enumerate(graph.node)}
    for node in graph.node:

        def fault(kind, change, node=node):
            return Mutation(kind, node.name, edit_of(node.name, change))

        touches = node.name in new or any(e.lstrip("^").split(":")[0] in new for e in node.input)
        if not touches:
            continue
        data = [k for k, e in enumerate(node.input) if not e.startswith("^")]
        for k in range(len(node.input)):
            if node.input[k].startswith("^"):
                yield fault(f"drop {node.input[k]}", lambda n, k=k: n.input.pop(k))
        for k in data[1:]:
            def swap(n, k=k):
                n.input[k - 1], n.input[k] = n.input[k], n.input[k - 1]
            if node.input[k] != node.input[k - 1] and node.op not in ("LogicalAnd", "AddN"):
                yield fault(f"swap inputs {k - 1} and {k}", swap)
        for k in data:
            base, _, port = node.input[k].partition(":")
            if base in new and graph.node[names[base]].op in ("SplitV", "DynamicPartition"):
                other = base if port else base + ":1"
                yield fault(f"port of input {k}", lambda n, k=k, o=other: n.input.__setitem__(k, o))
        if node.op == "Const" and node.name in new:
            kind = node.attr["dtype"].type
            if kind in (tf.int32.as_datatype_enum, tf.int64.as_datatype_enum):
                yield fault("add 1", lambda n: constant(n, lambda v: v + 1))
                value = tf.make_ndarray(node.attr["value"].tensor)
                if value.ndim and not np.array_equal(value, value[::-1]):
                    yield fault("reverse", lambda n: constant(n, lambda v: v[::-1]))
        if "_graft_slice" in node.attr:
            text = node.attr["_graft_slice"].s.decode()
            for other in (text.replace(" 0,", " 1,"), text.replace(":0,", ":1,"), "no" + text):
                if other != text:
                    yield fault(f"slice {other}", lambda n, t=other: setattr(n.attr["_graft_slice"], "s", t.encode()))
            yield fault("no slice", lambda n: n.attr.pop("_graft_slice"))
            for name in {n.attr["shared_name"].s or n.name.encode() for n in graph.node if n.op == node.op}:
                if name not in (node.attr["shared_name"].s, node.name.encode()):
                    yield fault(f"shared name {name}", lambda n, s=name: setattr(n.attr["shared_name"], "s", s))
                    break
        if node.op in ("ScatterSub", "ResourceScatterSub", "AssignVariableOp", "Assign", "FloorDiv", "Sub"):
            other = {"ScatterSub": "ScatterAdd", "ResourceScatterSub": "ResourceScatterAdd", "FloorDiv": "FloorMod"}
            other = other.get(node.op, {"Sub": "Mul", "Assign": "AssignAdd"}.get(node.op, "AssignAddVariableOp"))
            if node.name in new:
                def change(n, o=other):
                    n.op = o
                    for key in ("validate_shape",):
                        n.attr.pop(key, None)
                yield fault("op", change)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[2]}")
def test_mutants(case):
    model, rules, kind = case
    original = harness.export(Spec(model, kind=kind))
    good = harness.read_meta(partition(original, rules))
    whole = harness.read_meta(original).graph_def
    new = {n.name for n in good.graph_def.node} - {n.name for n in whole.node}
    folder = tempfile.mkdtemp(dir=harness.workdir())
    path, source = os.path.join(folder, "mutant.pb"), os.path.join(folder, "whole.pb")
    with open(source, "wb") as file:
        file.write(whole.SerializeToString())

    def refused(meta):
        with open(path, "wb") as file:
            file.write(meta.graph_def.SerializeToString())
        check = f"--passes=check-replication{{input={source}}}"
        return harness.run_graft([path, check, "--emit=none"], check=False).returncode != 0

    assert not refused(good)
    missed, count = survivors(good, faults(good.graph_def, new), refused)
    print(model, kind, count)
    assert count > 50
    assert not missed, "\n".join(missed)
