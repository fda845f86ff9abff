# SPDX-License-Identifier: Apache-2.0
"""The surroundings of variables in parts: order of reads and writes, conditionals, loops, savers, collections, names."""

import os
import tempfile

import harness
import numpy as np
import pytest
import tensorflow as tf
from harness import GraftError
from test_partition import partition
from test_partition_ops import check, handle, init, run, variable, write

tf1 = tf.compat.v1
KINDS = pytest.mark.parametrize("kind", ["ref", "resource"])


def read_of(kind, name="v"):
    return f"{name}/read:0" if kind == "ref" else f"{name}/Read/ReadVariableOp:0"


@KINDS
def test_order_of_reads_and_writes(kind):
    """Reads before, between and after two updates; each has its own control inputs."""

    def build():
        v = variable("v", (5, 2), kind)
        x = tf1.placeholder(tf.float32, [5, 2], name="x")
        before = tf.identity(v.read_value() * 1, name="before")
        with tf.control_dependencies([before]):
            first = tf1.assign_add(v, x)
        with tf.control_dependencies([first]):
            between = tf.identity(v.read_value() * 1, name="between")
        with tf.control_dependencies([between]):
            second = tf1.assign_sub(v, between * x)
        with tf.control_dependencies([second]):
            tf.identity(v.read_value() * 1, name="after")
        init()

    fetches = ["before:0", "between:0", "after:0"]
    x = np.arange(10.0).reshape(5, 2)
    for rule in ("0:4,1", "1/2"):
        check(build, ["v=" + rule], [("init", None)] + [(fetches, {"x:0": x})] * 2)


def test_references():
    """A reference is read by what takes a value, also after another update; updates of what updates return."""

    def build():
        v, w = variable("v", (4, 3), "ref"), variable("w", (4, 3), "ref")
        copied = tf.raw_ops.Assign(ref=handle(w), value=handle(v), name="copy")
        with tf.control_dependencies([copied]):
            added = tf.raw_ops.AssignAdd(ref=handle(v), value=tf.ones([4, 3]))
        again = tf.raw_ops.ScatterUpdate(ref=added, indices=[3, 0], updates=tf.zeros([2, 3]))
        tf.raw_ops.MatMul(a=again, b=handle(w), transpose_b=True, name="product")
        tf.identity(tf.raw_ops.AddN(inputs=[copied, handle(w)]), name="twice")
        tf1.add_to_collection("results", added)
        init()

    runs = [("init", None), ("product:0", None), ("AssignAdd:0", None), ("twice:0", None), (["v/read:0", "w/read:0"], None)]
    for rules in (["v=0/2"], ["w=0/2"], ["v=0/3", "w=1/2"]):
        check(build, rules, runs)


@KINDS
def test_what_runs_after_the_step(kind):
    """Averages, clipping and a copy of what the step made read the variable by a read that was there before."""

    def build():
        v, target = variable("v", (5, 2), kind), variable("target", (5, 2), kind)
        x = tf1.placeholder(tf.float32, [5, 2], name="x")
        average = tf.train.ExponentialMovingAverage(0.5)
        step = tf1.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(v * x), var_list=[v])
        with tf.control_dependencies([step]):
            averaged = average.apply([v])
            with tf.control_dependencies([averaged]):
                clipped = tf1.assign(v, tf.clip_by_value(v, -1.0, 1.0))
                with tf.control_dependencies([clipped]):
                    rows = tf.gather(v, [4, 0, 4])
                    copied = tf1.assign(target, v)
                    with tf.control_dependencies([copied]):
                        tf.group(tf1.scatter_sub(target, [1, 0, 1], rows), name="all")
        init()

    x = np.arange(10.0).reshape(5, 2) - 4
    reads = [read_of(kind), read_of(kind, "target"), read_of(kind, "v/ExponentialMovingAverage")]
    for rules in (["v=0:4,1"], ["v=1/2"], ["v=0/5", "v/ExponentialMovingAverage=0/2"]):
        check(build, rules, [("init", None)] + [("all", {"x:0": x}), (reads, None)] * 3)


@pytest.mark.parametrize("kind, v2", [("ref", False), ("resource", False), ("resource", True)])
def test_conditionals(kind, v2):
    """Updates, reads, lookups and shapes in branches; the branch that is not taken does nothing."""

    def build():
        (tf1.enable_control_flow_v2 if v2 else tf1.disable_control_flow_v2)()
        v = variable("v", (6, 2), kind)
        p = tf1.placeholder(tf.bool, [], name="p")
        ids = tf.constant([5, 0, 5])

        def yes():
            with tf.control_dependencies([tf1.assign_add(v, tf.ones([6, 2]))]):
                return tf.gather(v.read_value(), ids) + tf.cast(tf.shape(v)[0], tf.float32)

        def no():
            with tf.control_dependencies([tf1.scatter_sub(v, ids, tf.ones([3, 2]))]):
                return tf.gather(v if kind == "resource" else v.read_value(), ids) * 1

        tf.identity(tf1.cond(p, yes, no), name="out")
        tf.identity(tf1.cond(p, lambda: tf.shape(v), lambda: tf.shape(v) + 1), name="extent")
        init()
        tf1.disable_control_flow_v2()

    passes = ["--passes=inline-functions,partition-variables{partition=%s}"]
    original = write(build)
    for rule in ("v=0/2", "v=0:1,4,1", "v=1/2"):
        fd, out = tempfile.mkstemp(suffix=".meta", dir=harness.workdir())
        os.close(fd)
        harness.run_graft([original, "-o", out, passes[0] % f"'{rule}'"])
        runs = [("init", None)]
        for p in (True, False, True, False):
            runs += [("out:0", {"p:0": p}), ("extent:0", {"p:0": p}), (read_of(kind), None)]
        for mine, his in zip(run(out, runs), run(original, runs)):
            np.testing.assert_array_equal(mine, his)


@pytest.mark.parametrize("v2", [False, True], ids=["while_v1", "while_v2"])
def test_loops(v2):
    """A handle that comes into a loop: reads, lookups and updates in each iteration."""

    def build():
        (tf1.enable_control_flow_v2 if v2 else tf1.disable_control_flow_v2)()
        v = variable("v", (6, 2))

        def body(i, total):
            with tf.control_dependencies([tf1.scatter_add(v, [i, 5], tf.ones([2, 2]))]):
                rows = tf.gather(v, [i, 5])
                with tf.control_dependencies([rows]):
                    update = tf1.assign_add(v, tf.ones([6, 2]) * 0.5)
                with tf.control_dependencies([update]):
                    return i + 1, total + tf.reduce_sum(rows) + tf.reduce_sum(v.read_value())

        tf.identity(tf.while_loop(lambda i, t: i < 4, body, [0, 0.0], parallel_iterations=1)[1], name="out")
        init()
        tf1.disable_control_flow_v2()

    original = write(build)
    for rule in ("v=0/2", "v=0:1,4,1", "v=1/2"):
        fd, out = tempfile.mkstemp(suffix=".meta", dir=harness.workdir())
        os.close(fd)
        harness.run_graft([original, "-o", out, f"--passes=inline-functions,partition-variables{{partition='{rule}'}}"])
        runs = [("init", None), ("out:0", None), (read_of("resource"), None)]
        for mine, his in zip(run(out, runs), run(original, runs)):
            np.testing.assert_array_equal(mine, his)


@KINDS
def test_initial_values(kind):
    """A variable whose initial value is read from another, guarded by whether that has one; a random one is drawn once."""

    def build():
        draw = tf.random.normal([8, 3], name="draw")
        v = tf1.get_variable("v", initializer=draw, use_resource=kind == "resource")
        ready = tf1.is_variable_initialized(v) if kind == "ref" else v.is_initialized()
        value = tf1.cond(ready, v.read_value, lambda: draw)
        w = tf1.get_variable("w", initializer=value * 2, use_resource=kind == "resource")
        with tf.control_dependencies([draw]):
            tf.group(v.initializer, name="both")
        tf1.variables_initializer([w], name="init_w")

    out = partition(write(build), ["v=0/3", "w=1/3"])
    with tf.Graph().as_default() as graph:
        tf1.train.import_meta_graph(out)
        parts = tf1.global_variables_initializer()
    with tf1.Session(graph=graph) as session:
        drawn, _ = session.run(["draw:0", "both"])
        np.testing.assert_array_equal(session.run(read_of(kind)), drawn)
        session.run("init_w")
        np.testing.assert_array_equal(session.run(read_of(kind, "w")), drawn * 2)
        drawn, _ = session.run(["draw:0", [v.initializer for v in graph.get_collection("variables") if v.op.name.startswith("v/")]])
        np.testing.assert_array_equal(session.run(read_of(kind)), drawn)
        session.run(parts)


# --- Savers. ---


def saved(build, **options):
    """The MetaGraphDef of the graph that `build` makes, with a saver."""

    with tf.Graph().as_default() as graph:
        build()
        init()
        saver = tf1.train.Saver(**options)
        meta = tf1.train.export_meta_graph(graph=graph, saver_def=saver.as_saver_def())
    path = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "graph.meta")
    with open(path, "wb") as file:
        file.write(meta.SerializeToString())
    return path


def open_session(path):
    with tf.Graph().as_default() as graph:
        saver = tf1.train.import_meta_graph(path)
    return tf1.Session(graph=graph, config=tf1.ConfigProto(device_count={"CPU": 2})), saver


def both_ways(original, out, reads):
    """A checkpoint of either graph restores the other."""
    results = []
    for source, target in ((original, out), (out, original)):
        session, saver = open_session(source)
        session.run("init")
        prefix = saver.save(session, os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "c"), write_meta_graph=False)
        want = session.run(reads)
        session.close()
        session, saver = open_session(target)
        saver.restore(session, prefix)
        for mine, his in zip(session.run(reads), want):
            np.testing.assert_array_equal(mine, his)
        session.close()
        results.append(prefix)
    return results


SAVERS = {
    "sharded": dict(sharded=True),
    "reshape": dict(reshape=True),
    "v1": dict(write_version=tf1.train.SaverDef.V1),
}


@KINDS
@pytest.mark.parametrize("form", ["sharded", "reshape", "v1"])
def test_savers(form, kind):
    def build():
        with tf1.device("/device:CPU:0"):
            variable("v", (7, 3), kind)
        with tf1.device("/device:CPU:1"):
            variable("w", (6, 2), kind, tf.float64)
            variable("b", (2,), kind)

    original = saved(build, **SAVERS[form])
    out = partition(original, ["v=0/3", "w=1/2"])
    one, two = both_ways(original, out, [read_of(kind, n) for n in "vwb"])
    if form != "v1":
        keys = [tf.train.load_checkpoint(p).get_variable_to_shape_map() for p in (one, two)]
        assert keys[0] == keys[1]


def test_no_whole_value_is_saved():
    """Each part is an entry of its own: no concatenation runs for a saver."""

    def build():
        variable("v", (7, 3))

    out = partition(saved(build), ["v=0:3,4"])
    node = next(n for n in harness.read_meta(out).graph_def.node if n.op == "SaveV2")
    reads = {n.name: n for n in harness.read_meta(out).graph_def.node}
    assert [reads[i].op for i in node.input[3:]] == ["ReadVariableOp"] * 2
    assert list(tf.make_ndarray(reads[node.input[2]].attr["value"].tensor)) == [b"7 3 0,3:0,3", b"7 3 3,4:0,3"]


@KINDS
def test_partitioned_variables_of_the_input(kind):
    """One of them is left alone; a part of another is cut further, into slices of the same whole."""

    def build():
        for name in ("v", "w"):
            values = tf.constant(np.arange(40.0).reshape(10, 4), tf.float32)
            with tf1.variable_scope("", use_resource=kind == "resource"):
                tf1.get_variable(
                    name,
                    shape=(10, 4),
                    initializer=lambda shape, dtype=None, partition_info=None: tf.slice(
                        values, partition_info.var_offset if partition_info else [0, 0], shape
                    ),
                    partitioner=tf1.fixed_size_partitioner(2),
                )

    original = saved(build)
    out = partition(original, ["v/part_1=0/2", "v/part_0=1:3,1"])
    one, two = both_ways(original, out, [read_of(kind, f"{n}/part_{i}") for n in "vw" for i in (0, 1)])
    for prefix in (one, two):
        reader = tf.train.load_checkpoint(prefix)
        for name in "vw":
            np.testing.assert_array_equal(reader.get_tensor(name), np.arange(40.0).reshape(10, 4))
    session, _ = open_session(out)
    with session.graph.as_default():
        assert len(tf1.global_variables()) == 6
        later = tf1.train.Saver()
    later.restore(session, one)
    prefix = later.save(session, os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "later"), write_meta_graph=False)
    for name in "vw":
        np.testing.assert_array_equal(tf.train.load_checkpoint(prefix).get_tensor(name), np.arange(40.0).reshape(10, 4))


# --- Names. ---


@KINDS
def test_a_signature_goes_on_to_work(kind):
    def build():
        v = variable("v", (4, 2), kind)
        init()
        tf1.add_to_collection("value", v.value())

    def signature(graph):
        info = tf1.saved_model.build_tensor_info(graph.get_tensor_by_name(read_of(kind)))
        return tf1.saved_model.build_signature_def(outputs={"v": info}, method_name="m")

    out = partition(write(build, signature), ["v=0/2"])
    name = harness.read_meta(out).signature_def["s"].outputs["v"].name
    value = run(out, [("init", None), (name, None)])[1]
    np.testing.assert_array_equal(value, np.arange(1, 9).reshape(4, 2) / 8)


@KINDS
def test_no_node_names_what_is_gone(kind):
    """`loc:@v` is that of a part: TensorFlow refuses to import a name that is not there."""

    def build():
        v = variable("v", (4, 2), kind)
        with tf1.colocate_with(v.op):
            tf.ones([2], name="beside")
        with tf1.colocate_with(v.initializer):
            tf.ones([2], name="beside_the_update")
        init()

    out = partition(write(build), ["v=0/2"])
    nodes = {n.name: n for n in harness.read_meta(out).graph_def.node}
    assert nodes["beside"].attr["_class"].list.s[0] == b"loc:@v/part_0"
    for i in (0, 1):
        read = nodes["v/part_%d/%s" % (i, "read" if kind == "ref" else "Read/ReadVariableOp")]
        if read.attr["_class"].list.s:
            assert read.attr["_class"].list.s[0] == b"loc:@v/part_%d" % i
    run(out, [("init", None), ("beside:0", None), ("beside_the_update:0", None)])


@pytest.mark.parametrize("rule", ["v=0/2", "v=1/2"])
def test_a_call_that_stays_is_refused(rule):
    def build():
        v = variable("v", (4, 2))

        @tf.function
        def inner():
            return v.read_value()

        tf.identity(inner(), name="out")

    with pytest.raises(GraftError, match="PartitionedCall.*uses a variable in a way that cannot be split into parts; leave variable 'v' unpartitioned"):
        partition(write(build), [rule])
