# SPDX-License-Identifier: Apache-2.0
"""--strategy=tpu: a whole training step in TPU form, expanded to CPUs, equals the single-device step."""

import dataclasses
import os
import shlex
import subprocess
import tempfile

import compare
import harness
import models
import models_habits
import numpy as np
import pytest
import tensorflow as tf
import tpu_expand
from harness import Session, assert_close
from models import BATCH, STEPS, Spec
from models_batches import SOURCES
from models_bn import EXACT, FUSED
from models_functions import BRANCHES, FUNCTIONS
from models_loops import LOOPS
from models_habits import HABITS

tf1 = tf.compat.v1


def to_tpu(path, replicas, *extra):
    """The TPU form of the step in `path`."""
    handle, out = tempfile.mkstemp(suffix=".meta", dir=harness.workdir())
    os.close(handle)
    flags = [f"--replicas={replicas}", "--device-type=TPU", "--strategy=tpu", *extra]
    harness.run_graft([path, "-o", out, *flags])
    return out


def on_cpus(path, replicas, *extra):
    """The same, as a graph for CPUs."""
    form = to_tpu(path, replicas, *extra)
    return tpu_expand.expand(form, form.replace(".meta", "-cpu.meta"))


def check(spec, replicas):
    want = harness.reference(spec, replicas)
    with Session(on_cpus(harness.export(spec), replicas), replicas) as session:
        session.restart()
        session.check(want.variables[0], "after init")
        for i, batch in enumerate(models.batches(spec.model, spec.dtype), start=1):
            assert_close(session.step(batch), want.losses[i - 1], f"loss of step {i}")
            if i in (1, STEPS):
                session.check(want.variables[i], f"after step {i}")


@pytest.mark.parametrize("batch", [None, BATCH], ids=["unknown", "static"])
@pytest.mark.parametrize("replicas", [1, 2, 4])
@pytest.mark.parametrize("model", [name for name in models.MATRIX])
def test_steps(model, replicas, batch):
    check(Spec(model, "resource", batch, "mean"), replicas)


def check_more(name, model, batch, replicas):
    """A model of the zoo, its fetches included, makes the same steps."""
    path = compare.export(Spec(name, "resource", batch), model.build)
    data = models_habits.batches(model.data, len(model.steps))
    if len(set(model.steps)) > 1:
        # A run that fetches the loss runs the step, and these do not in every run.
        model = dataclasses.replace(model, fetches=(), after=())
    want = compare.run(path, data, model.steps, model.fetches, model.after)
    # A vector that nothing reads is a result of the computation only if it is named.
    named = [f"--fetch={fetch}" for fetch in model.fetches if fetch != "loss:0"]
    with Session(on_cpus(path, replicas, *model.flags, *named), replicas) as session:
        got = compare.advance(session, data, model.steps, model.fetches, model.after)
        session.check_copies("at the end")
    for i, (ours, theirs) in enumerate(zip(got, want)):
        harness.assert_all_close(ours[1], theirs[1], f"after step {i}")
        for what, a, b in zip((*model.fetches, *model.after), ours[0] + ours[2], theirs[0] + theirs[2]):
            assert_close(a, b, f"{what} of step {i}")


@pytest.mark.parametrize("model", ["sparse_machine", "sparse_fields"])
def test_sparse_feeds(model):
    """The entries of a replica's rows are found on the host."""
    source = SOURCES[model]
    path = compare.export(Spec(model, "resource"), source.build)
    rows = []
    for file, replicas in (path, 1), (on_cpus(path, 2), 2):
        with Session(file, replicas) as session:
            session.restart()
            rng, values = np.random.default_rng(7), []
            for _ in range(2):
                session.run("train_op", {f"{key}:0": value for key, value in source.feeds(rng).items()})
                values.append(session.values())
        rows.append(values)
    for want, got in zip(*rows):
        harness.assert_all_close(got, want, model)


def test_several_train_ops():
    """A run of one of several train ops runs the computation, and with it all of them."""
    path = compare.export(Spec("gan", "resource"), HABITS["gan"].build)
    flags = ["--replicas=2", "--device-type=TPU", "--strategy=tpu", *HABITS["gan"].flags]
    done = harness.run_graft([path, "-o", path + ".no", "--strict", *flags], check=False)
    assert done.returncode == 1 and "a TPU computation runs as a whole" in done.stderr, done.stderr
    assert not os.path.exists(path + ".no")


@pytest.mark.parametrize("replicas,batch", [(2, None), (4, BATCH)], ids=["2-unknown", "4-static"])
@pytest.mark.parametrize("model", [name for name in HABITS if name not in ("dropout", "gan", *models_habits.NOT_FOR_TPU)])
def test_more_steps(model, replicas, batch):
    limits = {
        "gram": "the name of a loss that is a sum of sums is not there",
        "masked_words": "a size that is a product of constants is refused",
        "masked_steps": "a size that is a product of constants is refused",
        "heads_in_a_branch": "where parts of a concatenation begin is refused, in constants of its gradient",
    }
    if model in limits and batch:
        pytest.xfail(limits[model])
    if model == "trimmed" and batch:
        batch = None  # with a number in its gradient that nothing says is the batch, it is computed once, or refused here by --strict
    check_more(model, HABITS[model], batch, replicas)


@pytest.mark.parametrize("replicas,batch", [(2, None), (4, BATCH)], ids=["2-unknown", "4-static"])
@pytest.mark.parametrize("model", LOOPS)
def test_loops(model, replicas, batch):
    check_more(model, LOOPS[model], batch, replicas)


@pytest.mark.parametrize("model", {**BRANCHES, **FUNCTIONS})
def test_functions(model):
    check_more(model, {**BRANCHES, **FUNCTIONS}[model], None, 2)


# Those of large means and of half precision need more room than the tolerance gives.
@pytest.mark.parametrize("model", [m for m in {**EXACT, **FUSED} if not m.endswith(("_far", "_half"))])
def test_batch_norm(model):
    """With the statistics of the whole batch."""
    more = {**EXACT, **FUSED}[model]
    check_more(model, dataclasses.replace(more, flags=(*more.flags, "--batch-norm=sync")), None, 2)


def model_with_a_summary():
    """The cases of docs/Tpu.md."""
    graph = tf.Graph()
    with graph.as_default():
        tf1.get_variable_scope().set_use_resource(True)
        x, y = tf1.placeholder(tf.float32, (None, 5), name="x"), tf1.placeholder(tf.float32, (None, 1), name="y")
        w = tf1.get_variable("w", (5, 1), initializer=tf1.constant_initializer(0.5))
        b = tf1.get_variable("b", (1,), initializer=tf1.constant_initializer(0.25))
        logits = tf.add(tf.matmul(x, w), b, name="logits")
        loss = tf.reduce_mean(tf.square(logits - y, name="rows"), name="loss")
        optimizer = tf1.train.GradientDescentOptimizer(0.1)
        train = optimizer.apply_gradients(zip(tf.gradients(loss, [w, b]), [w, b]), name="train_op")
        tf1.summary.scalar("loss_summary", loss)
        tf1.add_to_collection(tf1.GraphKeys.TRAIN_OP, train)
        tf1.train.export_meta_graph(os.path.join(harness.workdir(), "model.meta"), graph=graph)
    return os.path.join(harness.workdir(), "model.meta")


def commands():
    with open(os.path.join(harness.ROOT, "docs", "Tpu.md"), encoding="utf-8") as file:
        return [line.strip() for line in file if line.startswith("    graft-opt ")]


def test_page():
    """Every command of docs/Tpu.md runs, and says what the page says."""
    model_with_a_summary()
    assert len(commands()) == 4
    printed = ""
    for command in commands():
        program, *arguments = shlex.split(command)
        assert program == "graft-opt"
        done = subprocess.run(
            [harness.graft_opt(), *arguments], cwd=harness.workdir(), capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        printed += done.stdout
    nodes = {line.split(" = ")[0]: line for line in printed.splitlines() if " = " in line}
    assert "ScalarSummary" in nodes["loss_summary"] and "_tpu_replicate" not in nodes["loss_summary"]
    assert "(loss_summary/tags, loss)" in nodes["loss_summary"] and "_tpu_replicate" not in nodes["loss"]
    assert sum("= CrossReplicaSum(" in line for line in nodes.values()) == 2
    assert "is_mirrored_variable=true" in nodes["w/handle"]


def test_summary_of_the_true_loss():
    """The summary is written once, of the loss of the whole batch, and the step is the single-device step."""
    path = model_with_a_summary()
    rng = np.random.default_rng(7)
    batches = [(rng.normal(size=(8, 5)), rng.normal(size=(8, 1))) for _ in range(3)]
    runs = []
    for graph in (path, on_cpus(path, 4)):
        with Session(graph, 4) as session:
            session.run([v + "/Assign" for v in session.variables])
            rows = []
            for x, y in batches:
                text, _ = session.run(["loss_summary:0", "train_op"], {"x:0": x, "y:0": y})
                rows.append(tf1.Summary.FromString(text).value[0].simple_value)
            runs.append((np.array(rows, np.float32), session.values()))
    assert_close(runs[1][0], runs[0][0], "the summaries")
    harness.assert_all_close(runs[1][1], runs[0][1], "after three steps")
