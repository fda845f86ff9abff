# SPDX-License-Identifier: Apache-2.0
"""Parameter servers in one graph: destinations, proxies, accumulators.

Every rewrite is strict and checked as a file. Synchronizers are given to share-variables as text, one for each variable.
"""

import json
import os
import re
import tempfile

import compare
import harness
import models
import models_loops
import models_habits
import numpy as np
import pytest
import tensorflow.compat.v2 as tf
import test_workers
from harness import Options
from models import BATCH, STEPS, Spec, tf1
from tensorflow.core.framework import variable_pb2


def variables(path):
    """The trainable variables of a file, in its order."""
    meta = harness.read_meta(path)
    names = []
    for data in meta.collection_def["trainable_variables"].bytes_list.value:
        names.append(variable_pb2.VariableDef.FromString(data).variable_name.split(":")[0])
    return names


def pipeline(flags, synchronizers, proxies=False):
    """The pipeline of the flags with a synchronizer for each variable."""
    text = harness.run_graft([*flags, "--print-pipeline-passes"]).stdout.strip()
    rules = ";".join(f"{name}={value}" for name, value in synchronizers.items())
    share = f"share-variables{{synchronizers='{rules}'}}" if rules else "share-variables"
    return text.replace("share-variables", share + (",proxy-variables" if proxies else ""))


def spread(path, devices, *words):
    """Variable i of the file on device i of the list, and round again."""
    return {
        name: ",".join(["ps", f"destination={devices[i % len(devices)]}", *words])
        for i, name in enumerate(variables(path))
    }


def cpus(replicas):
    """Devices in another order than the replicas'."""
    return [f"/device:CPU:{(i + 1) % replicas}" for i in range(replicas)]


def rewrite(path, replicas, synchronizers, *flags, strategy="ps", check=True, **how):
    out = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "out.meta")
    options = [f"--replicas={replicas}", "--device-type=CPU", f"--strategy={strategy}", *flags]
    passes = pipeline(options, synchronizers, **how)
    done = harness.run_graft([path, "-o", out, f"--passes={passes}", "--strict", "--verify-output"], check=check)
    return (out, done.stderr) if check else done


class Rewritten(harness.Rewritten):
    """A model of the zoo with shared variables on several devices."""

    def __init__(self, spec, replicas, words=(), flags=(), **how):
        path = harness.export(spec)
        self.spec, self.options = spec, Options(replicas, "ps")
        self.zoo, self.batches = models.MODELS[spec.model], models.batches(spec.model, spec.dtype)
        self.path, self.stderr = rewrite(path, replicas, spread(path, cpus(replicas), *words), *flags, **how)
        harness.Session.__init__(self, self.path, replicas)

    def check_destinations(self):
        """Variables and slots are where they must be, and so is the sum of their gradients."""
        where = dict(zip(variables(harness.export(self.spec)), cpus(self.replicas) * 100))
        for op in self.graph.get_operations():
            if op.name in where and op.type in ("VarHandleOp", "VariableV2"):
                assert op.device == where[op.name], op
            main = op.type.startswith(("ResourceApply", "Apply")) and op.inputs[0].op.name
            if main:
                assert op.device == where[main], op
                for slot in op.inputs:
                    if slot.op.type in ("VarHandleOp", "VariableV2"):
                        assert slot.op.device == where[main], slot
                    if slot.op.type in ("AddN", "Mul") and "_graft_replicas" in slot.op.node_def.attr:
                        assert slot.op.device == where[main], slot


    def check_proxies(self):
        """Every replica reads a variable of its own, on its device, that is in no collection, and that is equal."""
        ops = self.graph.get_operations()
        found = {}
        for op in ops:
            match = re.fullmatch(r"replica_(\d+)/(.*)/proxy", op.name)
            if match:
                assert op.device == f"/device:CPU:{match[1]}"
                with self.graph.as_default(), tf1.device(op.device):
                    dtype = op.get_attr("dtype")
                    found[match[2], match[1]] = tf.raw_ops.ReadVariableOp(resource=op.outputs[0], dtype=dtype)
        assert sorted({name for name, _ in found}) == sorted(self.trainable)
        self.restart(init=False)
        self.restore(self.reference.checkpoint)
        self.step(self.batches[1])
        values, proxies = self.values(), self.run(found)
        for (name, replica), value in proxies.items():
            assert np.array_equal(value, values[name]), f"{name} on replica {replica}"
        for op in ops:
            if op.name.startswith("replica_") and re.search(r"/lookup(/|$)", op.name) and "Gather" in op.type:
                sources = [op.inputs[0].op.name, op.inputs[0].op.inputs[0].op.name if op.inputs[0].op.inputs else ""]
                assert any(name.endswith("/proxy") for name in sources), op


ZOO = [
    (Spec("linear", "ref"), 2),
    (Spec("linear", "resource", BATCH, "sum"), 3),
    (Spec("mlp_adam", "resource"), 4),
    (Spec("mlp_adam", "ref", BATCH), 3),
    (Spec("mlp_clip", "resource", BATCH), 2),
    (Spec("mlp_clip", "ref"), 3),
    (Spec("embedding", "resource"), 3),
    (Spec("embedding", "ref", BATCH), 2),
    (Spec("adamw_assign", "resource"), 2),
    (Spec("adamw_assign", "ref"), 3),
    (Spec("cnn_nobn", "resource"), 2),
]


def check_all(run):
    run.check_steps()
    run.check_diagnostics()
    run.check_destinations()
    run.check_checkpoints()


@pytest.mark.parametrize("spec,replicas", ZOO, ids=str)
def test_destinations(spec, replicas):
    """The step of the single device with variables on every device; checkpoints both ways."""
    with Rewritten(spec, replicas) as run:
        check_all(run)


@pytest.mark.parametrize("spec,replicas", ZOO, ids=str)
def test_proxies(spec, replicas):
    """AutoDist's A16: copies near the readers have initial values, and what an update or a restore writes."""
    with Rewritten(spec, replicas, ("proxy",), proxies=True) as run:
        check_all(run)
        run.check_proxies()


ACCUMULATE = "--reduction=accumulator"


PLAIN, PROXY = (), ("proxy",)


@pytest.mark.parametrize(
    "spec,replicas,words",
    [(*case, PROXY if i % 3 == 2 else PLAIN) for i, case in enumerate(ZOO)]
    + [(Spec("linear", "resource", dtype="float64"), 2, PROXY)],
    ids=str,
)
def test_accumulators(spec, replicas, words):
    """Sums by conditional accumulators, after which nothing is left in them."""
    with Rewritten(spec, replicas, words, [ACCUMULATE], proxies=bool(words)) as run:
        check_all(run)
        found = [op for op in run.graph.get_operations() if op.type == "ConditionalAccumulator"]
        clips = spec.model in ("mlp_clip", "adamw_assign")  # what is clipped, or updated by hand, is added
        assert bool(found) != clips
        for op in found:
            assert op.get_attr("reduction_type") == b"SUM"
            with run.graph.as_default(), tf1.device(op.device):
                left = tf.raw_ops.AccumulatorNumAccumulated(handle=op.outputs[0])
            assert run.run(left) == 0, "nothing is left for the next step"


@pytest.mark.parametrize("kind", ["resource", "ref"])
@pytest.mark.parametrize("replicas", [2, 3])
def test_accumulators_of_loops(kind, replicas):
    """The gradient of a variable that a loop reads is put once, after the loop that adds it up."""
    path = compare.export(Spec("iterated", kind), models_loops.iterated)
    options = Options(replicas, "ps", "accumulator", ("--strict", "--verify-output"))
    data = models_habits.batches(models_loops.ROWS, 3)
    out = compare.same_steps(path, options, data)
    assert any(node.op == "AccumulatorTakeGradient" for node in harness.read_meta(out).graph_def.node)


def one_table(kind, optimizer, rows=5, reads=1):
    """A table with rows of two numbers, trained on `ids` with the mean over the batch; and an op that sets it."""
    path = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "table.meta")
    with tf.Graph().as_default():
        ids = tf1.placeholder(tf.int32, [None], name="ids")
        table = tf1.get_variable("table", initializer=np.ones([rows, 2], np.float32), use_resource=kind == "resource")
        found = sum(tf.nn.embedding_lookup(table, ids) for _ in range(reads))
        whole = tf1.reduce_sum(table * table)  # a dense read
        loss = tf.identity(tf1.reduce_mean(found[:, 0] + 2 * found[:, 1]), name="loss")
        tf.identity(loss + whole, name="all")
        optimizer().minimize(loss, name="train_op")
        value = tf1.placeholder(tf.float32, [rows, 2], name="value")
        tf1.assign(table, value, name="set")
        tf1.global_variables_initializer()
        tf1.train.export_meta_graph(path, saver_def=tf1.train.Saver().as_saver_def())
    return path


def run_table(path, replicas, actions):
    """The table and what was fetched after each action, a pair of fetches and feeds."""
    seen = []
    with harness.Session(path, replicas) as session:
        session.run("init")
        for fetches, feeds in actions:
            got = session.run(fetches, feeds)
            seen += [g for f, g in zip(fetches, got) if ":" in f] + [session.values()["table"]]
    return seen


def same_table(kind, words=(), flags=(), reads=1, actions=(), optimizer=None, proxies=False):
    path = one_table(kind, optimizer or (lambda: tf1.train.GradientDescentOptimizer(1.0)), reads=reads)
    out, said = rewrite(path, 2, {"table": ",".join(["ps", "destination=/device:CPU:1", *words])}, *flags, proxies=proxies)
    assert harness.without_order(said, "ReadVariableOp", "mul") == ""
    want, got = run_table(path, 1, actions), run_table(out, 2, actions)
    assert len(want) == len(got)
    for i, (ours, theirs) in enumerate(zip(got, want)):
        harness.assert_close(ours, theirs, f"value {i}")
    return want


def step(*ids):
    return ["loss:0", "train_op"], {"ids:0": list(ids)}


@pytest.mark.parametrize("flags", [(), (ACCUMULATE,)], ids=["added", "accumulated"])
@pytest.mark.parametrize("kind", ["resource", "ref"])
def test_sparse_mean(kind, flags):
    """AutoDist's A8: a row that one of two replicas has counts half; indices are unsorted and repeated."""
    seen = same_table(kind, flags=flags, actions=[step(4, 0), step(3, 3, 1, 1), step(4, 1, 2, 4)])
    assert np.allclose(seen[1][[0, 4]], [[0.5, 0.0], [0.5, 0.0]]), "half of the gradient of one row"


@pytest.mark.parametrize("kind", ["resource", "ref"])
@pytest.mark.parametrize("reads", [1, 3])
def test_proxies_after_every_write(kind, reads):
    """AutoDist's A16: several reads, dense and sparse, after initial values, updates, and assignments of the user."""
    own = np.arange(10, dtype=np.float32).reshape(5, 2)
    look = ["all:0"], {"ids:0": [0, 2, 4, 4]}
    actions = [look, step(4, 1), look, (["set"], {"value:0": own}), look, step(0, 1, 2, 3), look]
    same_table(kind, words=PROXY, reads=reads, actions=actions, proxies=True)


@pytest.mark.parametrize("kind", ["resource", "ref"])
def test_proxies_after_a_restore(kind):
    """AutoDist's A16: a restore reaches the copies; that of a saver of the user does with graft/refresh_copies."""
    path = one_table(kind, lambda: tf1.train.AdagradOptimizer(0.5))
    out, _ = rewrite(path, 2, {"table": "ps,destination=/device:CPU:1,proxy"}, proxies=True)
    with harness.Session(path) as single:
        single.run("init")
        single.run(*step(0, 1))
        saved = single.save()
        want = [single.run("all:0", {"ids:0": [0, 1, 2, 3]}), *(single.run(*step(1, 2))[:1] for _ in range(2))]
    with harness.Session(out, 2) as session:
        with session.graph.as_default():
            own = tf1.train.Saver()
        for restore in (session.saver, own):
            session.restart()
            session.run(*step(4, 4))
            restore.restore(session.session, saved)
            if restore is own:
                session.run("graft/refresh_copies")
            harness.assert_close(session.run("all:0", {"ids:0": [0, 1, 2, 3]}), want[0], "after the restore")
            for loss in want[1:]:
                harness.assert_close(session.run(*step(1, 2))[0], loss[0], "loss")


def test_one_update_for_each_step():
    """AutoDist's A24: however many replicas push, a step applies one update."""
    path = one_table("resource", lambda: tf1.train.GradientDescentOptimizer(1.0))
    for words, flags in [(PLAIN, ()), (PROXY, ()), (PROXY, (ACCUMULATE,))]:
        out, _ = rewrite(path, 4, {"table": ",".join(["ps", *words])}, *flags, proxies=bool(words))
        with harness.Session(out, 4) as session:
            updates = [op for op in session.graph.get_operations() if "Scatter" in op.type or "ApplyGrad" in op.type]
            assert len([op for op in updates if not op.type.startswith("Accumulator")]) == 1
            session.run("init")
            for i in range(1, 4):
                session.run(*step(2, 2, 2, 2))
                assert np.allclose(session.values()["table"][2], [1.0 - i, 1.0 - 2 * i])


MIXED = [
    ("mlp_adam", "resource", "hidden/*=shared"),
    ("mlp_adam", "ref", "*/kernel=shared"),
    ("embedding", "resource", "table=shared"),
    ("adamw_assign", "ref", "hidden/kernel=shared"),
]


@pytest.mark.parametrize("model,kind,rule", MIXED)
def test_mixed_policies(model, kind, rule):
    """Some variables are mirrored, others shared on a destination; slots follow, hand-made ones too."""
    spec = Spec(model, kind, BATCH)
    path = harness.export(spec)
    glob = rule.split("=")[0]
    synchronizers = {glob: "ps,destination=/device:CPU:1"}
    out, said = rewrite(path, 3, synchronizers, f"--variable={rule}", strategy="all-reduce")
    assert said == ""
    with harness.Session(out, 3) as session:
        want = harness.reference(spec)
        session.restart()
        session.check(want.variables[0], "after init")
        for i, batch in enumerate(models.batches(spec.model, spec.dtype), start=1):
            harness.assert_close(session.step(batch), want.losses[i - 1], f"loss of step {i}")
            session.check(want.variables[i], f"after step {i}")
        assert any(session.copies.values()) and not all(session.copies.values())
        session.restore(want.checkpoint)
        session.check(want.variables[1], "restored")


def servers(tasks):
    """A server for each task, with that many CPUs; and the cluster."""
    jobs = test_workers.cluster(len(tasks))
    started = []
    for i, count in enumerate(tasks):
        config = tf1.ConfigProto(device_count={"CPU": count}, inter_op_parallelism_threads=2)
        started.append(tf1.train.Server(jobs, job_name="worker", task_index=i, config=config))
    return started


def on_tasks(tasks):
    return [f"/job:worker/task:{i}/device:CPU:{cpu}" for i, count in enumerate(tasks) for cpu in range(count)]


def run_on_servers(out, tasks, spec, want):
    with tf.Graph().as_default() as graph:
        tf1.train.import_meta_graph(out)
        names = {v.op.name: harness.read_name(v) for v in tf1.global_variables()}
    options = tf1.RunOptions(timeout_in_ms=test_workers.TIMEOUT_MS)
    started = servers(tasks)
    with tf1.Session(started[0].target, graph=graph) as session:
        session.run("init", options=options)
        for i, (x, y) in enumerate(models.batches(spec.model, spec.dtype), start=1):
            loss, _ = session.run(["loss:0", "train_op"], {"x:0": x, "y:0": y}, options=options)
            harness.assert_close(loss, want.losses[i - 1], f"loss of step {i}")
            harness.assert_all_close(session.run(names, options=options), want.variables[i], f"after step {i}")


HOW = [{}, {"proxies": True}, {"flags": [ACCUMULATE]}]


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("spec", [Spec("mlp_adam", "resource"), Spec("linear", "ref", BATCH)], ids=str)
def test_unequal_nodes(spec, how):
    """AutoDist's A23: nodes with two replicas and one give the mean over three replicas, not of two nodes."""
    path, tasks = harness.export(spec), (2, 1)
    devices = on_tasks(tasks)
    hosts = [devices[-1], devices[0]]
    out = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "out.meta")
    flags = [f"--replicas={len(devices)}", "--device-type=CPU", "--strategy=ps"]
    words = ["proxy"] if how.get("proxies") else []
    passes = pipeline(flags + how.get("flags", []), spread(path, hosts, *words), bool(words))
    on_devices = f"replicate{{devices='{';'.join(devices)}'}}"
    passes = passes.replace(f"replicate{{replicas={len(devices)},device-type=CPU}}", on_devices)
    done = harness.run_graft([path, "-o", out, f"--passes={passes}", "--strict", "--verify-output"])
    assert done.stderr == ""
    run_on_servers(out, tasks, spec, harness.reference(spec))
