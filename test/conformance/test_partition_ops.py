# SPDX-License-Identifier: Apache-2.0
"""Every op that uses a variable, before and after `partition-variables`: what it gives and what it leaves behind.

Numbers must be those of the whole variable: to the bit where they are only moved, up to the last bits where the kernel of
an update may take elements one by one or several at a time.
"""

import os
import re
import tempfile

import harness
import numpy as np
import pytest
import tensorflow as tf
from harness import GraftError
from tensorflow.python.framework import op_def_registry
from test_partition import partition

tf1 = tf.compat.v1


def write(build, signature=None):
    """The MetaGraphDef of the graph that `build` makes."""
    with tf.Graph().as_default() as graph:
        build()
        meta = tf1.train.export_meta_graph(graph=graph)
    if signature:
        meta.signature_def["s"].CopyFrom(signature(graph))
    path = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "graph.meta")
    with open(path, "wb") as file:
        file.write(meta.SerializeToString())
    return path


def run(path, runs):
    """The results of each of `runs`, (fetches, feeds), in one session."""
    with tf.Graph().as_default() as graph:
        tf1.train.import_meta_graph(path)
    with tf1.Session(graph=graph) as session:
        return [session.run(fetches, feeds) for fetches, feeds in runs]


def check(build, rules, runs, rtol=0.0):
    """Both graphs give the same, whatever is fetched."""
    original = build if isinstance(build, str) else write(build)
    got, want = run(partition(original, rules), runs), run(original, runs)
    for (fetches, _), mine, his in zip(runs, got, want):
        for a, b, what in zip(*map(tf.nest.flatten, (mine, his, fetches))):
            if b is not None:
                np.testing.assert_allclose(a, b, rtol=rtol, err_msg=str(what))


def variable(name, shape, kind="resource", dtype=tf.float32, value=None):
    value = np.arange(1, 1 + np.prod(shape)).reshape(shape) / 8 if value is None else value
    return tf1.get_variable(
        name, initializer=tf.cast(tf.constant(value), dtype), use_resource=kind == "resource", dtype=dtype
    )


def init():
    tf1.variables_initializer(tf1.global_variables(), name="init")


def handle(v):
    return v.handle if hasattr(v, "handle") and "VarHandleOp" == v.op.type else v._ref()


# --- Every update op. ---


def updates():
    """(op, variables, gradient, indices) of the op table."""
    with open(os.path.join(harness.ROOT, "lib", "ops", "OpTable.inc"), encoding="utf-8") as file:
        rows = re.findall(r'GRAFT_UPDATE\("(\w+)", (\d+), (-?\d+), (-?\d+), (\w+)\)', file.read())
    return [(op, int(n), int(g), int(i), kind) for op, n, g, i, kind in rows]


COUNTERS = {op for op, _, _, _, kind in updates() if kind == "Count"}  # of scalars only, which have no parts
REFUSED = {op for op, _, _, _, kind in updates() if "ScatterNd" in op or kind == "StridedSliceAssign"}
SHAPE, ROWS = (7, 4), [5, 1, 0, 6, 5, 1]


def call(op, count, gradient, indices, name, rows=tuple(ROWS), rate=0.5):
    """The op on variables of its own; every number that it takes is a scalar but gradient and indices."""
    arguments = op_def_registry.get(op).input_arg
    kind = "resource" if op.startswith("Resource") or op.endswith("VariableOp") else "ref"
    rng = np.random.default_rng(len(op))
    inputs = {}
    for i, argument in enumerate(arguments):
        if i < count:
            inputs[argument.name] = handle(variable(f"{name}_{i}", SHAPE, kind, value=rng.random(SHAPE) + 0.5))
        elif i == indices:
            inputs[argument.name] = tf.constant(rows, tf.int32 if len(op) % 2 else tf.int64)
        elif i == gradient:
            shape = (len(rows), 4) if indices >= 0 else SHAPE
            inputs[argument.name] = tf.constant(rng.random(shape) + 0.25, tf.float32)
        elif argument.name == "global_step":
            inputs[argument.name] = tf.constant(3, tf.int64)
        elif argument.name == "lr_power":
            inputs[argument.name] = tf.constant(-0.5)
        else:
            inputs[argument.name] = tf.constant(rate / (i + 1), tf.float32)
    return getattr(tf.raw_ops, op)(name=f"{name}/up", **inputs)


@pytest.mark.parametrize("rule", ["0/3", "1:3,1"])
def test_every_update(rule):
    rows = [row for row in updates() if row[0] not in REFUSED | COUNTERS]
    assert len(rows) > 70
    reads = {}

    def build():
        for op, count, gradient, indices, _ in rows:
            call(op, count, gradient, indices, op)
        init()
        reads.update({v.op.name: harness.read_name(v) for v in tf1.global_variables()})

    original = write(build)
    runs = [("init", None), ([f"{op}/up" for op, *_ in rows], None), (reads, None)]
    check(original, [f"{op}_0={rule}" for op, *_ in rows], runs, rtol=1e-6)


@pytest.mark.parametrize("op", sorted(REFUSED))
def test_refused(op):
    count, gradient, indices = next(row[1:4] for row in updates() if row[0] == op)

    def build():
        resource = op.startswith("Resource")
        v = handle(variable("v", (4,), "resource" if resource else "ref"))
        one, value = tf.constant([1]), tf.constant([1.0])
        if "Strided" in op:
            getattr(tf.raw_ops, op)(name="up", ref=v, begin=one, end=one + 1, strides=one, value=value)
        else:
            getattr(tf.raw_ops, op)(name="up", ref=v, indices=[[1]], updates=value)

    with pytest.raises(GraftError, match=f"'up'.*{op} cannot be split into updates of parts; leave variable 'v' unpartitioned"):
        partition(write(build), ["v=0/2"])


# --- Rows. ---


@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("rows", [[5, 1], [7, 8, 2], [9, 9, 0, 9], [6, 5, 9, 7], [], [4]], ids=str)
def test_sparse_rows_of_ten_in_two_parts(rows, kind):
    """AutoDist sent the gradient of index 5 to a row of part 0: it took places for row numbers (A2)."""

    def build():
        v = variable("v", (10, 3), kind)
        ids = tf.constant(np.array(rows, np.int64))
        values = tf.constant(np.arange(1.0, 1 + 3 * len(rows)).reshape(-1, 3), tf.float32)
        gradient = tf.IndexedSlices(values, ids, tf.constant([10, 3], tf.int64))
        optimizer = tf1.train.GradientDescentOptimizer(1.0)
        optimizer.apply_gradients([(gradient, v)], name="sgd")
        tf1.train.AdagradOptimizer(0.5).apply_gradients([(gradient, v)], name="adagrad")
        tf.identity(tf.gather(v, ids), name="rows")
        init()

    read = "v/read:0" if kind == "ref" else "v/Read/ReadVariableOp:0"
    check(build, ["v=0/2"], [("init", None), ("sgd", None), (read, None), ("rows:0", None), ("adagrad", None), (read, None)])


@pytest.mark.parametrize("rule", ["0/2", "0/3", "0:1,8,1", "1/2", "2:1,1"])
@pytest.mark.parametrize("kind", ["ref", "resource"])
def test_lookups(kind, rule):
    """Indices of any shape and type, also none; lookups along other axes, with batches, of points."""

    def build():
        v = variable("v", (10, 4, 2), kind)
        small = tf1.placeholder(tf.int32, None, name="small")
        large = tf1.placeholder(tf.int64, None, name="large")
        tf.identity(tf.gather(v, small), name="a")
        tf.identity(tf.nn.embedding_lookup(v, large), name="b")
        tf.identity(tf.gather(v, small % 4, axis=1), name="c")
        tf.identity(tf.gather_nd(v, tf.stack([small, small % 4], -1)), name="d")
        tf.identity(tf.gather(v, tf.constant([[0, 1]] * 10), batch_dims=1), name="e")
        tf.identity(tf.shape(v), name="extent")
        tf.identity(tf1.is_variable_initialized(v) if kind == "ref" else v.is_initialized(), name="ready")
        init()

    outputs = [f"{x}:0" for x in "abcde"]
    runs = [("ready:0", None), ("init", None), ("ready:0", None), ("extent:0", None)]
    for shape in [(), (5,), (0,), (2, 3), (0, 4), (1, 2, 3)]:
        ids = np.random.default_rng(3).integers(0, 10, shape)
        runs.append((outputs, {"small:0": ids.astype(np.int32), "large:0": ids.astype(np.int64)}))
    check(build, [f"v={rule}"], runs)


@pytest.mark.parametrize("bad", [[10], [-1], [3, 99]], ids=str)
@pytest.mark.parametrize("rule", ["0/2", "0:3,7"])
def test_an_index_out_of_range_is_an_error(rule, bad):
    def build():
        v = variable("v", (10, 2))
        ids = tf1.placeholder(tf.int32, [None], name="ids")
        tf.gather(v, ids, name="rows")
        tf1.scatter_add(v, ids, tf.ones([tf.size(ids), 2]), name="add")
        init()

    out = partition(write(build), ["v=" + rule])
    for name in ("rows:0", "add"):
        with tf.Graph().as_default() as graph:
            tf1.train.import_meta_graph(out)
            names = {op.name: op for op in graph.get_operations()}
        target = name if ":" in name else next(n for n in names if n.startswith("add") and n.endswith("part_0"))
        with pytest.raises(tf.errors.InvalidArgumentError):
            run(out, [("init", None), (target.replace("/part_0", ""), {"ids:0": bad})])


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "min", "max", "update"])
@pytest.mark.parametrize("kind", ["ref", "resource"])
def test_scatters(op, kind):
    """Repeated indices in their order, indices of two axes, one number for all rows."""

    def build():
        v = variable("v", (9, 2), kind)
        scatter = getattr(tf1, "scatter_" + op)
        first = scatter(v, [[8, 0], [8, 3]], tf.constant(np.arange(8.0).reshape(2, 2, 2) + 0.5, tf.float32))
        with tf.control_dependencies([first.op if kind == "ref" else first]):
            second = scatter(v, [1, 8], 0.25)
            with tf.control_dependencies([second]):
                tf.identity(v.read_value(), name="after")
        init()

    for rule in ("0/2", "1/2"):
        check(build, ["v=" + rule], [("init", None), ("after:0", None)])


@pytest.mark.parametrize("op", ["add", "update"])
@pytest.mark.parametrize("kind", ["ref", "resource"])
def test_scatters_to_a_vector(op, kind):
    """A row is one number: the values come in the shape of the indices, which may have two axes."""

    def build():
        v = variable("v", (9,), kind)
        ids = tf1.placeholder(tf.int64, [None, 2], name="ids")
        values = tf1.placeholder(tf.float32, [None, 2], name="values")
        first = getattr(tf1, "scatter_" + op)(v, ids, values)
        with tf.control_dependencies([first.op if kind == "ref" else first]):
            tf.identity(v.read_value(), name="after")
        init()

    feeds = {"ids:0": [[8, 0], [8, 3], [4, 5]], "values:0": np.arange(6.0).reshape(3, 2) + 0.5}
    for rule in ("0/2", "0:4,5"):
        check(build, ["v=" + rule], [("init", None), ("after:0", feeds)])
