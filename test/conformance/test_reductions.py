# SPDX-License-Identifier: Apache-2.0
"""How values are reduced (docs/Reductions.md): in buckets, in 16 bits, sparse ones by rows."""

import os
import re

import compare
import harness
import models
import numpy as np
import pytest
from harness import GraftError, Options, Rewritten, Session
from models import BATCH, Builder, Spec

tf, tf1 = models.tf, models.tf1

BUCKETS = ("--bucket-bytes=1M", "--verify-output", "--strict")


def count(session, op):
    return sum(1 for node in session.graph.get_operations() if node.type == op)


@pytest.mark.parametrize("reduction", ["add", "collective"])
@pytest.mark.parametrize(
    "spec, replicas",
    [
        (Spec("mlp_adam"), 3),
        (Spec("mlp_clip", "ref", BATCH), 2),
        (Spec("cnn_nobn", "resource", None, "sum"), 4),
        (Spec("adamw_assign", "ref"), 2),
        (Spec("embedding"), 3),
        (Spec("mlp_adam", "resource", BATCH, "mean", "float64"), 3),
    ],
    ids=str,
)
def test_buckets_are_the_same_step(spec, replicas, reduction):
    with Rewritten(spec, Options(replicas, "all-reduce", reduction, BUCKETS)) as session:
        session.check_steps()
        session.check_interface()
        # The embedding has one dense gradient, which is left alone.
        assert count(session, "SplitV") == (0 if spec.model == "embedding" else replicas)
        if reduction == "collective" and spec.model != "embedding":
            # One exchange for all gradients; a loss whose mean is fetched may be one more.
            assert count(session, "CollectiveReduce") <= 2 * replicas


@pytest.mark.parametrize("batch_norm", ["local", "sync"])
def test_statistics_in_buckets(batch_norm):
    """Statistics are reduced in several stages, of which none waits for itself; and never in 16 bits."""
    flags = ("--bucket-bytes=1M", "--verify-output", f"--batch-norm={batch_norm}")
    with Rewritten(Spec("cnn"), Options(2, "all-reduce", "collective", flags)) as session:
        if batch_norm == "local":
            session.check_steps()
        else:
            single = harness.run_reference(harness.export(Spec("cnn")), session.batches)
            session.restart()
            for batch in session.batches:
                session.step(batch)
            session.check(single.variables[-1], "trained")


def test_checkpoints_of_a_step_in_buckets():
    with Rewritten(Spec("mlp_adam"), Options(2, "all-reduce", "collective", BUCKETS)) as session:
        session.check_checkpoints()


def two_steps(b: Builder, drawn):
    """Two train ops of two variables each: the other one has a feed of its own, or a random draw on its weights."""
    x, y = b.inputs([4], [])
    w, u = b.variable("w", [4, 3], 0.5), b.variable("u", [4, 3], 0.7)
    c, d = (b.constant(name, [3], 0.2, True) for name in "cd")
    noise = tf1.random_uniform([4, 3], seed=3) if drawn else tf.reduce_mean(y)
    loss = b.loss(tf.reduce_mean(tf.square(tf.nn.bias_add(tf.matmul(x, w), c))))
    other = tf.reduce_mean(tf.square(tf.nn.bias_add(tf.matmul(x, u * noise), d)))
    descent = tf1.train.GradientDescentOptimizer(0.1)
    tf.group(descent.minimize(loss, var_list=[w, c]), name="train_op")
    tf.group(descent.minimize(other, var_list=[u, d]), name="other_op")


@pytest.mark.parametrize("reduction", ["add", "collective"])
@pytest.mark.parametrize("drawn", [False, True], ids=["feed", "draw"])
def test_runs_stay_apart(drawn, reduction):
    """One train op takes no feed of the other, and draws nothing for it: what is drawn comes in order."""
    rng = np.random.default_rng(4)
    rows = [(rng.normal(size=(BATCH, 4)).astype("f"), rng.normal(size=BATCH).astype("f")) for _ in range(5)]
    steps = ["train_op", "train_op", "other_op", "train_op", "other_op"]
    batches = [row if step == "other_op" and not drawn else row[:1] for row, step in zip(rows, steps)]
    path = compare.export(Spec("two_steps"), lambda b: two_steps(b, drawn))
    out = compare.same_steps(path, Options(2, "all-reduce", reduction, BUCKETS), batches, steps, fetches=())
    buckets = [node for node in harness.read_meta(out).graph_def.node if node.op == "SplitV"]
    assert len(buckets) == 2 * 2, [node.name for node in buckets]  # one for each train op


# --- 16 bits on the wire. ---

STEPS = 50
RATE = 0.01
ROUNDING = {"fp16": 2.0**-11, "bf16": 2.0**-8}  # half a unit in the last place, relative


def sloped(b: Builder):
    """A constant gradient for each weight: what a rounding loses, it loses in every step."""
    x, y = b.inputs([40], [])
    w, bias = b.variable("w", [40]), b.constant("bias", [], 0.3, True)
    loss = b.loss(tf.reduce_mean(tf.reduce_sum(x * w, axis=1) + (bias + 0.0 * y)))
    tf.group(tf1.train.GradientDescentOptimizer(RATE).minimize(loss), name="train_op")


SLOPED = (np.random.default_rng(1).uniform(0.3, 1.7, (BATCH, 40)).astype("f"), np.zeros(BATCH, "f"))


def train(path, replicas, batches):
    """The variables after steps on the batches, and the session's graph."""
    with Session(path, replicas) as session:
        session.restart()
        for batch in batches:
            session.step(batch)
        session.check_copies("at the end")
        return session.values(), session.graph


def compressed(path, name, replicas=2, reduction="collective", extra=()):
    flags = (f"--compressor={name}", "--verify-output", *extra)
    out, said = harness.rewrite(path, Options(replicas, "all-reduce", reduction, flags))
    assert "is reduced in 16 bits" in said, said
    with pytest.raises(GraftError, match="is reduced in 16 bits"):
        harness.rewrite(path, Options(replicas, "all-reduce", reduction, (*flags, "--strict")))
    return out


def on_the_wire(graph):
    """The types of all sums over replicas, but for scalars, as the loss, and numbers of rows."""
    sums = [op for op in graph.get_operations() if op.type == "CollectiveReduce"]
    sums += [op for op in graph.get_operations() if op.type == "AddN" and "_graft_replicas" in op.node_def.attr]
    return {op.get_attr("T").name for op in sums if op.inputs[0].shape.rank != 0} - {"int32"}


@pytest.mark.parametrize("reduction", ["add", "collective"])
@pytest.mark.parametrize("name, wire", [("fp16", "float16"), ("bf16", "bfloat16")])
def test_compressed_error_is_bounded(name, wire, reduction):
    """Each replica's part and each of the N - 1 sums is rounded once a step, so 50 steps of gradient descent with
    gradients of at most G are off by at most steps * rate * G * N * rounding. AutoDist's compressor casts to 32 bits
    (A6): here 16 bits are what is added."""
    path, replicas = compare.export(Spec("sloped"), sloped), 2
    want, _ = train(path, 1, [SLOPED] * STEPS)
    out = compressed(path, name, replicas, reduction)
    got, graph = train(out, replicas, [SLOPED] * STEPS)
    assert on_the_wire(graph) == {wire}
    largest = float(np.max(np.abs(SLOPED[0].mean(axis=0))))
    worst = float(np.max(np.abs(got["w"] - want["w"])))
    assert 1e-5 < worst <= STEPS * RATE * max(1.0, largest) * replicas * ROUNDING[name] + 1e-5, worst


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_error_feedback_accumulates(name):
    """AutoDist keeps the residual in a Python attribute, which no step changes (A7): error feedback without effect. Here
    it is a variable of each replica, and makes up for what earlier steps lost."""
    path = compare.export(Spec("sloped"), sloped)
    want, _ = train(path, 1, [SLOPED] * STEPS)
    off = {}
    for form in (name, name + "-ef"):
        got, graph = train(compressed(path, form), 2, [SLOPED] * STEPS)
        off[form] = float(np.mean(np.abs(got["w"] - want["w"])))
    residuals = [op for op in graph.get_operations() if op.type == "VarHandleOp" and "/residual" in op.name]
    assert len(residuals) == 2 * 2  # of w and bias, one on each replica
    assert len({op.device for op in residuals}) == 2
    assert off[name + "-ef"] < 0.6 * off[name], off


def test_a_mean_does_not_overflow():
    """The sum of what fits into fp16 need not fit: a mean is divided first."""
    path = compare.export(Spec("sloped"), sloped)
    batch = (np.full((BATCH, 40), 40000.0, "f"), SLOPED[1])
    got, _ = train(compressed(path, "fp16", 4), 4, [batch])
    want, _ = train(path, 1, [batch])
    assert np.all(np.isfinite(got["w"]))
    assert np.max(np.abs(got["w"] - want["w"])) <= 40000 * RATE * 4 * ROUNDING["fp16"]


@pytest.mark.parametrize("kind", ["resource", "ref"])
@pytest.mark.parametrize("model", ["mlp_adam", "adamw_assign", "cnn_nobn"])
def test_compressed_buckets_train(model, kind):
    """Compressed, in buckets, with any optimizer: close to the single device, and copies agree; a residual is cleared
    by a restore and is in no checkpoint."""
    spec = Spec(model, kind)
    out = compressed(harness.export(spec), "fp16-ef", 3, "collective", ("--bucket-bytes=1M",))
    batches, want = models.batches(model), harness.reference(spec)
    with Session(out, 3) as session:
        session.restart()
        for batch in batches:
            session.step(batch)
        session.check_copies("trained")
        for name, value in want.variables[-1].items():
            if name in session.trainable:
                assert np.max(np.abs(session.values()[name] - value)) < 0.02, name
        keys = tf.train.load_checkpoint(session.save()).get_variable_to_shape_map()
        assert not any("residual" in key for key in keys)
        session.restart(init=False)
        session.restore(want.checkpoint)
        session.step(batches[1])
        session.check_copies("restored")


@pytest.mark.parametrize("seed", range(3))
def test_each_variable_says_how(seed):
    """Synchronizers that stand on the variables: any mix of groups, compressors and hints."""
    rng, model = np.random.default_rng(seed), "mlp_adam"
    meta = harness.read_meta(harness.export(Spec(model)))
    said = {}
    for node in meta.graph_def.node:
        if node.op == "VarHandleOp":
            words = ["all-reduce", rng.choice(["spec=nccl", "spec=ring", "spec=auto"]), f"group={rng.integers(0, 3)}"]
            words += [f"compressor={name}" for name in rng.choice(["", "fp16", "bf16-ef"], 1) if name]
            said[node.name] = ",".join(words)
            node.attr["_graft_synchronizer"].s = said[node.name].encode()
    path = os.path.join(harness.workdir(), f"synchronizers{seed}.meta")
    with open(path, "wb") as file:
        file.write(meta.SerializeToString())
    flags = ["--replicas=3", "--device-type=CPU", "--reduction=collective", "--print-pipeline-passes"]
    passes = harness.run_graft([path, *flags]).stdout.strip()
    passes = passes.replace("insert-collectives", "compress-reductions,fuse-reductions,insert-collectives")
    out = path.replace(".meta", ".x3.meta")
    done = harness.run_graft([path, "-o", out, f"--passes={passes}", "--verify-output", "--remarks"])
    want = harness.reference(Spec(model))
    with Session(out, 3) as session:
        narrowed = {name for name in session.trainable if "compressor" in said[name]}
        told = re.findall(r"node '([^']+)': (?:its gradient is reduced in 16 bits|like this)", done.stderr)
        assert set(told) == narrowed
        members = [op for op in session.graph.get_operations() if op.type == "CollectiveReduce"]
        hints = {said[name].split(",")[1][5:] for name in session.trainable}
        assert hints - {"auto"} <= {op.get_attr("communication_hint").decode() for op in members}
        session.restart()
        for batch in models.batches(model):
            session.step(batch)
        session.check_copies("trained")
        for name, value in session.values().items():
            if not narrowed:
                harness.assert_close(value, want.variables[-1][name], name)
            elif name in session.trainable:
                assert np.max(np.abs(value - want.variables[-1][name])) < 0.02, name


# --- Sparse gradients by collectives. ---


def masked_lookup(b: Builder):
    """Each replica looks up as many rows as its part of the batch selects, possibly none."""
    x, y = b.inputs([3], [], x_dtype=tf.int32)
    rows = tf.nn.embedding_lookup(b.variable("table", [11, 5], 0.7), tf.boolean_mask(x, y > 0))
    loss = b.loss(tf.reduce_sum(tf.square(tf.reduce_sum(rows, axis=1) - 0.3)) / 7)
    tf.group(tf1.train.AdagradOptimizer(0.1, 0.1).minimize(loss), name="train_op")


def uneven_batches():
    """Ids that come twice and in no order; a row of one replica alone; replicas without rows; a batch without any."""
    rng = np.random.default_rng(3)
    for selected in ([0, 1, 2, 3, 4, 5], [7], range(BATCH), [], [11, 2, 3]):
        ids = rng.integers(0, 11, (BATCH, 3)).astype(np.int32)
        ids[:, 1] = ids[:, 0]
        y = np.full(BATCH, -1.0, "f")
        y[list(selected)] = 1.0
        yield ids, y


@pytest.mark.parametrize("kind", ["resource", "ref"])
@pytest.mark.parametrize("replicas", [2, 3])
def test_rows_of_uneven_numbers_are_gathered(replicas, kind):
    """AutoDist gathers sparse gradients by a collective of one shape, and fails where replicas have other many rows (A5)
    or none. A row of one replica of two, indices in no order and twice are its A8."""
    batches = list(uneven_batches())
    path = compare.export(Spec("masked_lookup", kind), masked_lookup)
    # Nothing else says that there are as many ids as there are y.
    flags = ("--feed=x+y=split", "--fetch=none", "--strict", "--verify-output")
    options = Options(replicas, "all-reduce", "collective", flags)
    out = compare.same_steps(path, options, batches, ("train_op",) * len(batches), fetches=())
    graph = harness.read_meta(out).graph_def
    gathers = [node for node in graph.node if node.op == "CollectiveGather"]
    assert len(gathers) == 2 * 2 * replicas  # indices and values, each with their number
    assert not any(node.op == "ConcatV2" and "_graft_replicas" in node.attr for node in graph.node)
