# SPDX-License-Identifier: Apache-2.0
"""Is what graft makes of a plain graph the graph that TensorFlow's own `tpu.replicate` builds?

Each case of tpu_cases.py and tpu_cases_host.py is one Python function, run twice: once as it is, for graft, and once inside
`tf.compat.v1.tpu.replicate`. The two results must be the same graph up to names, see tpu_compare.py. Only one thing is
graft's own: under the name of an output there is what merges its shards. That is cut off before the comparison, and run.
"""

import os
import re

import harness
import numpy as np
import pytest
import tensorflow as tf
import tpu_cases  # noqa: F401  registers its cases
import tpu_cases_host  # noqa: F401
import tpu_cases_nested  # noqa: F401
from tpu_build import CASES, CLUSTER, Case
from tpu_compare import difference

SHARD = re.compile(r"(?:output_(\d+)_)?shard_(\d+)(_\d+)?")


def lower(case: Case, directory):
    """The plain graph, and what graft makes of it."""
    plain = case.graph(tpu=False)
    source, out = os.path.join(directory, "in.pb"), os.path.join(directory, "out.pb")
    with open(source, "wb") as file:
        file.write(plain.SerializeToString())
    passes = case.pipeline()
    for name, content in case.files().items():
        path = os.path.join(directory, name)
        with open(path, "wb") as file:
            file.write(content)
        passes = passes.replace("=" + name, "=" + path)
    harness.run_graft([source, "-o", out, "--passes=" + passes, *case.arguments])
    result = tf.compat.v1.GraphDef()
    with open(out, "rb") as file:
        result.ParseFromString(file.read())
    return plain, result


def producers(node):
    return [name.lstrip("^").partition(":")[0] for name in node.input]


def split_off_merges(plain, result):
    """`result` without what reads the shards, and what that is. Shards are what reads a TPUReplicatedOutput, or NoOps."""
    by_name = {node.name: node for node in result.node}
    fan_out = {node.name for node in result.node if node.op == "TPUReplicatedOutput"}
    inside = {node.name for node in result.node if CLUSTER in node.attr}
    shards = set()
    for node in result.node:
        reads_output = any(by_name[p].op == "TPUReplicatedOutput" for p in producers(node))
        if SHARD.fullmatch(node.name) and (reads_output or inside & set(producers(node))):
            shards.add(node.name)
    merges = set()
    for _ in result.node:
        more = {n.name for n in result.node if n.name not in merges and (shards | merges) & set(producers(n))}
        if not more:
            break
        merges |= more
    # Constants that only merges read, unless they are the input's.
    known = {node.name for node in plain.node} | shards | fan_out
    readers = {}
    for node in result.node:
        for name in producers(node):
            readers.setdefault(name, set()).add(node.name)
    for _ in range(3):
        for name, node in by_name.items():
            if name not in known and CLUSTER not in node.attr and readers.get(name, set()) and readers[name] <= merges:
                merges.add(name)
    kept, cut = tf.compat.v1.GraphDef(library=result.library), tf.compat.v1.GraphDef()
    for node in result.node:
        (cut if node.name in merges else kept).node.append(node)
    return kept, cut, {name: by_name[name] for name in shards}


def computation_only(graph):
    """The nodes that a computation reads or that read it, without what else there is of variables."""
    by_name = {node.name: node for node in graph.node}
    wanted = [n.name for n in graph.node if CLUSTER in n.attr or n.op.startswith("TPU") or SHARD.fullmatch(n.name)]
    seen = set(wanted)
    while wanted:
        for name in producers(by_name[wanted.pop()]):
            if name not in seen:
                seen.add(name)
                wanted.append(name)
    result = tf.compat.v1.GraphDef(library=graph.library)
    result.node.extend(node for node in graph.node if node.name in seen)
    return result


def run_merge(cut, shards, fetch, values):
    """The value that the merge called `fetch` computes from those of the shards."""
    graph_def = tf.compat.v1.GraphDef()
    graph_def.node.extend(cut.node)
    for name, node in shards.items():
        added = graph_def.node.add(name=name, op="NoOp" if node.op == "NoOp" else "Placeholder")
        if node.op != "NoOp":
            added.attr["dtype"].type = tf.float32.as_datatype_enum
    for node in graph_def.node:
        node.device = ""
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        with tf.compat.v1.Session(graph=graph) as session:
            return session.run(fetch, {name + ":0": value for name, value in values.items()})


RULES = {
    "concat": lambda values: np.concatenate(values, 0),
    "concat1": lambda values: np.concatenate(values, 1),
    "sum": lambda values: np.sum(values, 0),
    "mean": lambda values: np.mean(values, 0),
    "first": lambda values: values[0],
}


@pytest.mark.parametrize("name", CASES)
def test_same_graph_as_tensorflow(name, tmp_path):
    case = CASES[name]
    plain, result = lower(case, str(tmp_path))
    kept, cut, shards = split_off_merges(plain, result)
    want = case.graph(tpu=True)
    if case.scope == "cluster":
        kept, want = computation_only(kept), computation_only(want)
    found = difference(want, kept)
    assert found is None, found
    rank = {"mean": 0, "first": 0}
    for number, (fetch, rule) in enumerate(case.fetches):
        shape = () if rule in rank else (2, 4)
        values = {}
        for shard in shards:
            values[shard] = np.asarray(np.random.RandomState(len(values)).rand(*shape), np.float32)
        of_output = [f"output_{number}_shard_{r}" for r in range(case.replicas)]
        got = run_merge(cut, shards, fetch, values)
        np.testing.assert_allclose(got, RULES[rule]([values[s] for s in of_output]), rtol=1e-6)
