# SPDX-License-Identifier: Apache-2.0
"""Each policy of a variable, with each aggregation, does what tf.distribute does.

The step adds to v = [1, 2] what each of two replicas has of its own, [1, 2] and [5, 6]: a value that no rule relates to
that of a single device. WANT holds the copies after one step and what a checkpoint has after two.
"""

import itertools
import os
import tempfile

import harness
import numpy as np
import pytest
import tensorflow as tf
from harness import Options

tf1 = tf.compat.v1

ROWS = [[1.0, 2.0], [5.0, 6.0]]


def config(replicas, soft=False):
    return tf1.ConfigProto(device_count={"CPU": replicas}, allow_soft_placement=soft, inter_op_parallelism_threads=2)


NONE, SUM, MEAN, FIRST = "none", "sum", "mean", "only-first-replica"
HOWS = [NONE, SUM, MEAN, FIRST]
OWN = ([2, 4], [6, 8])

WANT = {
    ("mirrored", NONE): (OWN, [3, 6]),
    ("mirrored", SUM): (([7, 10], [7, 10]), [13, 18]),
    ("mirrored", MEAN): (([4, 6], [4, 6]), [7, 10]),
    ("mirrored", FIRST): (([2, 4], [2, 4]), [3, 6]),
    ("sync-on-read", SUM): (OWN, [14, 20]),
    ("sync-on-read", MEAN): (OWN, [7, 10]),
    ("sync-on-read", FIRST): (OWN, [3, 6]),
    **{("replicated", how): (OWN, [3, 6]) for how in HOWS},
    **{
        (policy, how): (([one, two],), saved)
        for policy in ("host", "shared")
        for how, one, two, saved in [(SUM, 7, 10, [13, 18]), (MEAN, 4, 6, [7, 10]), (FIRST, 2, 4, [3, 6])]
    },
}
REFUSED = {
    ("sync-on-read", NONE): "Could not convert from `tf.VariableAggregation`",
    ("host", NONE): "each replica has its own value",
    ("shared", NONE): "each replica has its own value",
}
VARIABLE_OPS = ("VarHandleOp", "VariableV2")
POLICIES = ["mirrored", "sync-on-read", "replicated", "host", "shared"]


def export(kind, update=lambda x: tf1.identity(x[0]), initial=(1.0, 2.0), **declared):
    """A graph with one variable and the op 'step', which adds to it."""
    path = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "policy.meta")
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None, 2], name="x")
        v = tf1.get_variable("v", initializer=tf.constant(initial), use_resource=kind == "resource", **declared)
        with tf1.control_dependencies([tf1.assign_add(v, update(x))]):
            tf1.no_op(name="step")
        tf1.group(tf1.global_variables_initializer(), name="begin")
        saver = tf1.train.Saver()
        tf1.train.export_meta_graph(path, saver_def=saver.as_saver_def())
    return path


def distribute(path, *flags, replicas=2):
    out = path.replace(".meta", f".{replicas}.meta")
    done = harness.run_graft(
        [path, "-o", out, *Options(replicas).arguments(), "--feed=x=split", "--verify-output", *flags], check=False
    )
    return out, done


class Run:
    """The written graph in a session, with a read of each copy."""

    def __init__(self, path, replicas=2):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.saver = tf1.train.import_meta_graph(path)
            self.variables = [op for op in self.graph.get_operations() if op.type in VARIABLE_OPS]
            self.reads = [self.read(op) for op in self.variables]
        self.session = tf1.Session(graph=self.graph, config=config(replicas))

    @staticmethod
    def read(op):
        with tf1.device(op.device):
            if op.type == "VarHandleOp":
                return tf.raw_ops.ReadVariableOp(resource=op.outputs[0], dtype=tf.float32)
            return tf1.identity(op.outputs[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session.close()

    def copies(self):
        return [value.tolist() for value in self.session.run(self.reads)]

    def step(self, rows=ROWS):
        self.session.run("step", {"x:0": rows})

    def save(self):
        prefix = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "saved")
        prefix = self.saver.save(self.session, prefix, write_meta_graph=False, write_state=False)
        return prefix, tf1.train.load_checkpoint(prefix).get_tensor("v").tolist()


def colocation(op):
    return [name.decode() for name in op.get_attr("_class")] if "_class" in op.node_def.attr else []


def description(graph, prefix):
    """Name -> op, inputs, device and colocation of the nodes that are called after the variable `prefix`."""
    return {
        op.name: (op.type, [i.name for i in op.inputs], op.device.rsplit("/", 1)[-1].lower(), colocation(op))
        for op in graph.get_operations()
        if op.name == prefix or op.name.startswith(prefix + "/")
    }


def waits_for(op):
    seen, work = set(), [op]
    while work:
        node = work.pop()
        if node.name not in seen:
            seen.add(node.name)
            work += list(node.control_inputs) + [i.op for i in node.inputs]
    return seen


@pytest.mark.parametrize("kind", ["resource", "ref"])
@pytest.mark.parametrize("policy,how", list(itertools.product(POLICIES, HOWS)))
def test_values(kind, policy, how):
    """The values of every copy after init, after a step, in a checkpoint after two, and after that is restored."""
    out, done = distribute(export(kind), f"--variable=v={policy},{how}")
    if (policy, how) in REFUSED:
        assert done.returncode == 1 and REFUSED[policy, how] in done.stderr, done.stderr
        assert not os.path.exists(out)
        return
    assert done.returncode == 0, done.stderr
    assert "warning: node 'v'" in done.stderr, "a value that no rule relates is said to be written"
    strict = distribute(export(kind), f"--variable=v={policy},{how}", "--strict")[1]
    assert strict.returncode == 1, "and --strict refuses it"
    copies, saved = WANT[policy, how]
    with Run(out) as run:
        names = {"replicated": ["v", "v/1"]}.get(policy, ["v", "v/replica_1"])[: len(copies)]
        assert [op.name for op in run.variables] == names
        devices = [f"/device:CPU:{i}" for i in range(len(copies))]
        assert [op.device for op in run.variables] == devices
        run.session.run("begin")
        assert run.copies() == [[1, 2]] * len(copies)
        run.step()
        assert run.copies() == [list(c) for c in copies]
        run.step()
        prefix, got = run.save()
        assert got == saved
        run.step()
        run.saver.restore(run.session, prefix)
        share = np.array(saved) / (2 if (policy, how) == ("sync-on-read", SUM) else 1)
        assert run.copies() == [share.tolist()] * len(copies)
        assert run.save()[1] == saved
        # The declared read gives what is saved.
        with run.graph.as_default():
            declared = tf1.global_variables()
        assert [v.op.name for v in declared] == ["v"], "copies are in no collection"
        assert run.session.run(declared[0].to_proto().snapshot_name).tolist() == saved


STRATEGY = {
    "mirrored": tf.VariableSynchronization.ON_WRITE,
    "sync-on-read": tf.VariableSynchronization.ON_READ,
    NONE: tf.VariableAggregation.NONE,
    SUM: tf.VariableAggregation.SUM,
    MEAN: tf.VariableAggregation.MEAN,
    FIRST: tf.VariableAggregation.ONLY_FIRST_REPLICA,
}


def mirrored_strategy(policy, how):
    """The same step under MirroredStrategy: its graph, and values as in test_values."""
    with tf.Graph().as_default() as graph:
        strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
        with strategy.scope():
            declared = dict(synchronization=STRATEGY[policy], aggregation=STRATEGY[how])
            v = tf1.get_variable("v", initializer=tf.constant([1.0, 2.0]), **declared)

            def update():
                replica = tf.distribute.get_replica_context().replica_id_in_sync_group
                return v.assign_add(tf.gather(tf.constant(ROWS), replica))

            step = tf1.group(strategy.experimental_local_results(strategy.run(update)))
            init = tf1.global_variables_initializer()
        saver = tf1.train.Saver([v])
        reads = [Run.read(graph.get_operation_by_name(name)) for name in ("v", "v/replica_1")]
        with tf1.Session(config=config(2, soft=True)) as session:
            session.run(init)
            session.run(step)
            copies = tuple(value.tolist() for value in session.run(reads))
            session.run(step)
            prefix = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "saved")
            prefix = saver.save(session, prefix, write_meta_graph=False, write_state=False)
            saved = tf1.train.load_checkpoint(prefix).get_tensor("v").tolist()
            saver.restore(session, prefix)
            restored = [value.tolist() for value in session.run(reads)]
    return graph, init, copies, saved, restored, prefix


@pytest.mark.parametrize("policy,how", [key for key in WANT if key[0] in ("mirrored", "sync-on-read")])
def test_mirrored_strategy(policy, how):
    """WANT is what MirroredStrategy computes, and the copies are built as it builds them."""
    theirs, init, copies, saved, restored, prefix = mirrored_strategy(policy, how)
    assert (tuple(list(c) for c in WANT[policy, how][0]), WANT[policy, how][1]) == (copies, saved)
    out, done = distribute(export("resource"), f"--variable=v={policy},{how}")
    assert done.returncode == 0, done.stderr
    with Run(out) as run:
        assert description(run.graph, "v/replica_1") == description(theirs, "v/replica_1")
        for graph, op in [(theirs, init), (run.graph, run.graph.get_operation_by_name("begin"))]:
            assert {"v/Assign", "v/replica_1/Assign"} <= waits_for(op)
        run.session.run("begin")
        run.saver.restore(run.session, prefix)  # their checkpoint
        assert run.copies() == restored


@pytest.mark.parametrize("kind", ["resource", "ref"])
def test_host(kind):
    """One variable on the host, and a cache of one snapshot on each replica's device."""
    path = export(kind, update=lambda x: tf.reduce_sum(x * tf1.global_variables()[0], 0))
    out, done = distribute(path, "--variable=v=host", "--strict")
    assert done.returncode == 0, done.stderr
    with Run(out) as run:
        (variable,) = run.variables
        caches = [op for op in run.graph.get_operations() if op.type == "Identity" and "v/Read/Identity" in op.name]
        assert [op.device for op in caches] == ["/device:CPU:0", "/device:CPU:1"]
        (snapshot,) = {op.inputs[0].op for op in caches}
        assert snapshot.type == ("ReadVariableOp" if kind == "resource" else "Identity")
        assert snapshot.inputs[0].op == variable and snapshot.device == "/device:CPU:0"
        initial = [op for op in run.graph.get_operations() if op.name == "v/Assign"]
        for op in [variable, snapshot, *initial]:
            assert op.get_attr("_XlaCompile") is False and op.get_attr("_XlaScope") == b""
        run.session.run("begin")
        run.step()
        assert run.copies() == [[1 + 1 * 6, 2 + 2 * 8]]


# A metric's counter, and a moving average: what the types prove.


@pytest.mark.parametrize("kind", ["resource", "ref"])
@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize(
    "how,initial,update",
    [
        (SUM, (0.0, 0.0), lambda x: tf.reduce_sum(x, 0)),
        (SUM, (0.0, 0.0), lambda x: tf.reduce_mean(x, 0)),  # another scale, which is a factor
        (MEAN, (1.0, 2.0), lambda x: tf.reduce_mean(x, 0) - 0.5 * tf1.global_variables()[0]),
    ],
)
def test_proved(kind, replicas, how, initial, update):
    """Nothing is exchanged in the step, and whoever asks gets the value of the single-device step."""
    path = export(kind, update, initial)
    out, done = distribute(path, f"--variable=v=sync-on-read,{how}", "--strict", replicas=replicas)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    rows = [[1.0, 2.0], [5.0, 6.0], [-3.0, 1.0], [4.0, 4.0], [0.0, 9.0], [2.0, -7.0]]
    with Run(path) as single, Run(out, replicas) as run:
        step = waits_for(run.graph.get_operation_by_name("step"))
        assert "AddN" not in {run.graph.get_operation_by_name(name).type for name in step}
        for r in (single, run):
            r.session.run("begin")
            r.step(rows)
            r.step(rows[::-1])
        prefix, got = run.save()
        want_prefix, want = single.save()
        np.testing.assert_allclose(got, want, rtol=1e-6)
        # Checkpoints go either way.
        single.saver.restore(single.session, prefix)
        run.session.run("begin")
        run.saver.restore(run.session, want_prefix)
        for r in (single, run):
            r.step(rows)
        np.testing.assert_allclose(run.save()[1], single.save()[1], rtol=1e-6)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("policy", ["mirrored", "sync-on-read"])
def test_declared(policy, how):
    """A VariableDef counts as a rule; a rule on the command line comes before it."""
    declared = dict(synchronization=STRATEGY[policy], aggregation=STRATEGY[how])
    path = export("resource", **declared)
    out, done = distribute(path)
    if (policy, how) in REFUSED:
        assert done.returncode == 1 and REFUSED[policy, how] in done.stderr
        out, done = distribute(path, "--variable=v=mirrored,mean")
        policy, how = "mirrored", MEAN
    assert done.returncode == 0, done.stderr
    with Run(out) as run:
        run.session.run("begin")
        run.step()
        assert run.copies() == [list(c) for c in WANT[policy, how][0]]


@pytest.mark.parametrize("policy,how", list(itertools.product(["mirrored", "replicated", "host", "shared"], HOWS)))
def test_gradients_have_their_own_reduction(policy, how):
    """A sum over rows is reduced as its type demands, whatever the aggregation, and this is proved."""
    path = export("resource", lambda x: tf.reduce_sum(x, 0))
    out, done = distribute(path, f"--variable=v={policy},{how}", "--strict")
    assert done.returncode == 0, done.stderr
    with Run(out) as run:
        run.session.run("begin")
        run.step()
        assert run.copies() == [[7, 10]] * len(run.variables)


def test_no_share_of_an_integer():
    """A term that all replicas add to a sum of integers has no equal shares: graft warns of the rule and rounds nothing."""
    path = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "integer.meta")
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None, 2], name="x")
        how = {"synchronization": tf.VariableSynchronization.ON_READ, "aggregation": tf.VariableAggregation.SUM}
        v = tf1.get_variable("v", initializer=tf.constant(0), use_resource=True, trainable=False, **how)
        largest = tf.cast(tf.reduce_max(x), tf.int32)
        tf.group(tf1.assign_add(v, largest), name="step")
        tf1.train.export_meta_graph(path, saver_def=tf1.train.Saver().as_saver_def())
    _, done = distribute(path)
    assert done.returncode == 0 and "'AssignAddVariableOp' writes to each copy" in done.stderr, done.stderr
