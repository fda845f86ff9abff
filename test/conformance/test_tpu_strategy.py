# SPDX-License-Identifier: Apache-2.0
"""--strategy=tpu: a whole training step in TPU form, expanded to CPUs, equals the single-device step."""

import dataclasses
import os
import tempfile

import compare
import harness
import models
import models_more
import pytest
import tpu_expand
from harness import Session, assert_close
from models import BATCH, STEPS, Spec
from models_bn import EXACT, FUSED
from models_functions import BRANCHES, FUNCTIONS
from models_loops import LOOPS
from models_more import MORE


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
    data = models_more.batches(model.data, len(model.steps))
    if len(set(model.steps)) > 1:
        # Whoever fetches the loss runs the step, and these do not in every run.
        model = dataclasses.replace(model, fetches=(), after=())
    want = compare.run(path, data, model.steps, model.fetches, model.after)
    with Session(on_cpus(path, replicas, *model.flags), replicas) as session:
        got = compare.advance(session, data, model.steps, model.fetches, model.after)
        session.check_copies("at the end")
    for i, (ours, theirs) in enumerate(zip(got, want)):
        harness.assert_all_close(ours[1], theirs[1], f"after step {i}")
        for what, a, b in zip((*model.fetches, *model.after), ours[0] + ours[2], theirs[0] + theirs[2]):
            assert_close(a, b, f"{what} of step {i}")


def test_several_train_ops():
    """Whoever runs one of several train ops runs the computation, and with it all of them."""
    path = compare.export(Spec("gan", "resource"), MORE["gan"].build)
    flags = ["--replicas=2", "--device-type=TPU", "--strategy=tpu", *MORE["gan"].flags]
    done = harness.run_graft([path, "-o", path + ".no", "--strict", *flags], check=False)
    assert done.returncode == 1 and "a TPU computation runs as a whole" in done.stderr, done.stderr
    assert not os.path.exists(path + ".no")


@pytest.mark.parametrize("replicas,batch", [(2, None), (4, BATCH)], ids=["2-unknown", "4-static"])
@pytest.mark.parametrize("model", [name for name in MORE if name not in ("dropout", "gan")])
def test_more_steps(model, replicas, batch):
    check_more(model, MORE[model], batch, replicas)


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
