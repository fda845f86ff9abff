# SPDX-License-Identifier: Apache-2.0
"""Every name of a rewritten graph, fetched alone.

Whatever is fetched, no run hangs: a collective never has only some of its members, unless a member itself is what is
asked for, whose name no input has. A name of the input that is still there gives what it gives in the input, and what
is run for its effect leaves the same variables.

Default: a few models with two replicas and collectives. --full: more, and both reductions.
"""

import collections
import os
import tempfile

import compare
import harness
import models
import models_habits
import numpy as np
import pytest
import tensorflow.compat.v1 as tf1
from harness import Options, Session
from models import Spec
from models_habits import HABITS

MODELS = ["mlp_clip", "embedding", "metrics", "scheduled_piecewise"]
FURTHER = ["losses_module", "scaled_loss", "mlp_adam", "adamw_assign", "wide_mlp", "clip_global_norm", "gan", "averaged", "attention"]
TIMEOUT_MS = 20000

Names = collections.namedtuple("Names", "fetches writes draws")


def pytest_generate_tests(metafunc):
    if "model" in metafunc.fixturenames:
        full = metafunc.config.getoption("--full")
        cases = [(m, k, "collective") for m, k in zip(MODELS, ["resource", "ref"] * len(MODELS))]
        if full:
            cases = [(m, k, r) for m in MODELS + FURTHER for k in ("ref", "resource") for r in ("add", "collective")]
        metafunc.parametrize("model,kind,reduction", cases)


def writes(op) -> bool:
    return op.type.startswith(("Assign", "Scatter", "Apply", "SparseApply", "Resource")) and "Gather" not in op.type


def names_of(graph) -> Names:
    """The fetchable tensors, and those of them that run a write or draw random numbers."""
    reaches = {}
    for op in sorted(graph.get_operations(), key=lambda op: op._id):
        above = [reaches.get(i.op.name, (False, False)) for i in op.inputs]
        above += [reaches.get(i.name, (False, False)) for i in op.control_inputs]
        own = (writes(op), op.type.startswith("Random"))
        reaches[op.name] = tuple(any(seen) for seen in zip(own, *above))
    fetches = []
    for op in graph.get_operations():
        if op.type in ("CollectiveReduce", "CollectiveGather"):
            continue
        if not op.outputs:
            fetches.append((op.name, op.name))
        handles = (tf1.resource, tf1.variant)
        fetches += [(t.name, op.name) for t in op.outputs if t.dtype not in handles and graph.is_fetchable(t)]
    return Names(fetches, *({name for name in reaches if reaches[name][i]} for i in range(2)))


def outcome(session: Session, name, feeds):
    """The value, None for an operation, or the class of the error."""
    try:
        return session.session.run(name, feeds, options=tf1.RunOptions(timeout_in_ms=TIMEOUT_MS))
    except tf1.errors.OpError as error:
        assert not isinstance(error, (tf1.errors.DeadlineExceededError, tf1.errors.CancelledError)), f"{name} hangs"
        return type(error)


def check_equal(name, got, want):
    if isinstance(want, type) or isinstance(got, type) or want is None:
        assert got is want, f"{name}: {got}, not {want}"
    elif np.asarray(want).dtype.kind in "OSU":
        assert np.array_equal(got, want), f"{name}: {got}, not {want}"
    elif np.all(np.isfinite(want)):
        harness.assert_close(got, want, name)


def test_each_name_alone(model, kind, reduction):
    spec = Spec(model, kind)
    if model in models.MODELS:
        path, batch = harness.export(spec), models.batches(model)[0]
        options = Options(2, reduction=reduction)
    else:
        path, batch = compare.export(spec, HABITS[model].build), models_habits.batches(HABITS[model].data, 1)[0]
        options = Options(2, reduction=reduction, extra=HABITS[model].flags)
    out, _ = harness.rewrite(path, options)
    with Session(path) as single, Session(out, 2) as ours:
        inputs, outputs = names_of(single.graph), names_of(ours.graph)
        single.restart()
        prefix = single.save()
        for session in (single, ours):
            session.restart()
            session.restore(prefix)
        target = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "alone")
        feeds = {"x:0": batch[0], "y:0": batch[1], "save/Const:0": target}
        known, compared = set(inputs.fetches), 0
        for name, op in outputs.fetches:
            got = outcome(ours, name, feeds)
            if (name, op) in known:
                want = outcome(single, name, feeds)
                if op not in inputs.draws:
                    check_equal(name, got, want)
                    compared += 1
            if op in outputs.writes:
                if (name, op) in known and op not in inputs.draws:
                    harness.assert_all_close(ours.values(), single.values(), f"variables after {name}")
                    ours.check_copies(f"after {name}")
                for session in (single, ours):
                    session.run("init")  # local variables are in no checkpoint
                    session.restore(prefix)
        assert compared > len(known) / 3, f"only {compared} of {len(known)} names are left"
        left = {name for name, _ in outputs.fetches}
        assert {"loss:0"} <= left and compared > 20


@pytest.mark.parametrize("device", ["", "/gpu:0"], ids=["plain", "gpu"])
def test_a_first_step_returns(device):
    """No flag says what the replicas are on, the machine has one CPU, and TensorFlow puts there what has no device: the
    members of a collective would wait for each other for ever."""
    path = harness.export(Spec("mlp_adam"))
    meta = harness.read_meta(path)
    for node in meta.graph_def.node:
        node.device = device if node.op == "MatMul" else ""
    path = path.replace(".meta", f".{bool(device)}.meta")
    with open(path, "wb") as file:
        file.write(meta.SerializeToString())
    out = path.replace(".meta", ".x2.meta")
    said = harness.run_graft([path, "-o", out, "--replicas=2", "--strict"]).stderr
    assert f"replicas are on {'GPUs' if device else 'CPUs'}" in said
    batch = models.batches("mlp_adam")[0]
    config = tf1.ConfigProto(device_count={"CPU": 1}, allow_soft_placement=True)
    with tf1.Graph().as_default(), tf1.Session(config=config) as session:
        tf1.train.import_meta_graph(out)
        session.run("init")
        loss, _ = session.run(
            ["loss:0", "train_op"],
            dict(zip(("x:0", "y:0"), batch)),
            options=tf1.RunOptions(timeout_in_ms=TIMEOUT_MS),
        )
    harness.assert_close(loss, harness.reference(Spec("mlp_adam")).losses[0], "the loss")
