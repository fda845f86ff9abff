# SPDX-License-Identifier: Apache-2.0
"""Refusals of graft-opt, and of the rewritten graph at run time. The output path stays untouched."""

import harness
import models
import numpy as np
import pytest
import tensorflow as tf
from harness import Options, Rewritten
from models import BATCH, Spec


def refused(path, options, tmp_path):
    out = tmp_path / "out.meta"
    out.write_bytes(b"as before")
    done = harness.run_graft([path, "-o", str(out), *options.arguments()], check=False)
    assert done.returncode == 1, done.stderr
    assert "error: " in done.stderr
    assert out.read_bytes() == b"as before"
    return done.stderr


@pytest.mark.parametrize("strategy", ["all-reduce", "ps"])
@pytest.mark.parametrize("reduction", ["add", "collective"])
@pytest.mark.parametrize("model", ["linear", "cnn", "embedding"])
def test_second_run(model, reduction, strategy, tmp_path):
    options = Options(2, strategy, reduction)
    once, _ = harness.rewrite(harness.export(Spec(model)), options)
    refused(once, options, tmp_path)


@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("model", ["linear", "cnn_nobn", "embedding", "wide_mlp"])
def test_static_batch_does_not_divide(model, kind, tmp_path):
    """One device computes the step, which is the same; with --strict this is an error."""
    spec = Spec(model, kind, BATCH)
    message = refused(harness.export(spec), Options(5, extra=("--strict",)), tmp_path)
    assert str(BATCH) in message
    with Rewritten(spec, Options(5)) as session:
        session.restart()
        for step, batch in enumerate(session.batches):
            harness.assert_close(session.step(batch), session.reference.losses[step], "loss")
            session.check(session.reference.variables[step + 1], f"after step {step}")


@pytest.mark.parametrize("model", ["linear", "cnn_nobn", "embedding"])
def test_fed_batch_does_not_divide(model):
    """With --even-batches: an error of TensorFlow's Split at run time, and no variable changed; the next step is fine."""
    spec = Spec(model)
    with Rewritten(spec, Options(4, extra=("--even-batches",))) as session:
        session.restart()
        x, y = session.batches[0]
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.step((x[:10], y[:10]))
        session.check(session.reference.variables[0], "after the refused step")
        harness.assert_close(session.step((x, y)), session.reference.losses[0], "loss")
        session.check(session.reference.variables[1], "after a step")


@pytest.mark.parametrize("rows", [4, 8, 24])
@pytest.mark.parametrize("loss", ["mean", "sum"])
@pytest.mark.parametrize("model", ["linear", "cnn_nobn", "embedding", "adamw_assign"])
def test_other_batch_sizes(model, loss, rows):
    """An unknown batch has any size that divides: nothing remembers the size of the export."""
    spec = Spec(model, loss=loss)
    batches = []
    for x, y in models.batches(model):
        twice = np.concatenate([x, x[::-1]]), np.concatenate([y, y[::-1]])
        batches.append((twice[0][:rows], twice[1][:rows]))
    want = harness.run_reference(harness.export(spec), batches)
    with Rewritten(spec, Options(4)) as session:
        session.restart()
        for i, batch in enumerate(batches):
            harness.assert_close(session.step(batch), want.losses[i], f"loss of step {i + 1}")
            session.check(want.variables[i + 1], f"after step {i + 1}")
