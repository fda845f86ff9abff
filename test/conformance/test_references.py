# SPDX-License-Identifier: Apache-2.0
"""The references themselves: they do not race, and a wrong rewrite cannot hide in the tolerance. Needs no graft-opt."""

import harness
import models
import numpy as np
import pytest
from models import BATCH, MATRIX, STEPS, Spec

KINDS = ["ref", "resource"]
LOSSES = ["mean", "sum"]
MARGIN = 100  # a mistake must show this many times as large as the tolerance


def run(spec, batches=None, towers=1, gradient_scale=1.0):
    path = f"{harness.workdir()}/reference-under-test.meta"
    models.build(spec, towers, gradient_scale).write(path)
    return harness.run_reference(path, batches or models.batches(spec.model, spec.dtype))


def visible(got, want, names, what, margin=MARGIN):
    for name in names:
        error, limit = np.max(np.abs(got[name] - want[name])), harness.tolerance(want[name])
        assert error > margin * limit, f"{what} changes {name} by {error / limit:.3g} times the tolerance only"


def trainable(spec):
    with harness.Session(harness.export(spec)) as session:
        return session.trainable


@pytest.mark.parametrize("batch", [None, BATCH])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", MATRIX)
def test_deterministic(model, kind, batch):
    spec = Spec(model, kind, batch)
    want = harness.reference(spec)
    for _ in range(3):
        got = run(spec)
        np.testing.assert_array_equal(got.losses, want.losses)
        for i, values in enumerate(want.variables):
            for name, value in values.items():
                np.testing.assert_array_equal(got.variables[i][name], value, err_msg=f"{name}, step {i}")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("model", MATRIX)
def test_stable_under_noise(model, loss):
    """One ulp in the features stays far below the tolerance, so agreement does not depend on luck."""
    spec = Spec(model, loss=loss)
    noisy = []
    for x, y in models.batches(model):
        if np.issubdtype(x.dtype, np.floating):
            x = np.nextafter(x, np.inf)
        else:
            y = np.nextafter(y, np.inf)
        noisy.append((x, y))
    got, want = run(spec, noisy), harness.reference(spec)
    for name, value in want.variables[STEPS].items():
        error = np.max(np.abs(got.variables[STEPS][name] - value))
        assert error <= 0.3 * harness.tolerance(value), f"{name}: {error / harness.tolerance(value):.3g}"


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("model", MATRIX)
def test_training_moves(model, loss):
    spec = Spec(model, loss=loss)
    want = harness.reference(spec)
    visible(want.variables[1], want.variables[0], trainable(spec), "a step")


@pytest.mark.parametrize("scale", [0.5, 2.0])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("model", MATRIX)
def test_scale_is_visible(model, loss, scale):
    """A gradient that is off by the smallest possible factor. A clip by the global norm may hide it in one step."""
    spec = Spec(model, loss=loss)
    step = STEPS if model == "mlp_clip" else 1
    got, want = run(spec, gradient_scale=scale), harness.reference(spec)
    visible(got.variables[step], want.variables[step], trainable(spec), f"a gradient times {scale}")


@pytest.mark.parametrize("replicas", [2, 3, 4])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("model", MATRIX)
def test_missing_reduction_is_visible(model, loss, replicas):
    """Shard 0 in place of every shard: what replica 0 would compute without a reduction."""
    spec = Spec(model, loss=loss)
    part = BATCH // replicas
    batches = [tuple(np.concatenate([a[:part]] * replicas) for a in b) for b in models.batches(model)]
    got, want = run(spec, batches), harness.reference(spec)
    visible(got.variables[1], want.variables[1], trainable(spec), "a shard for the batch")
    assert abs(got.losses[0] - want.losses[0]) > MARGIN * harness.tolerance(want.losses[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("model", [name for name in MATRIX if models.MODELS[name].batch_norm])
def test_towers(model, loss, kind):
    """The tower oracle differs from one tower (its statistics are local), and one tower is the model itself."""
    spec = Spec(model, kind, loss=loss)
    want = harness.reference(spec)
    for replicas in (2, 3, 4):
        towers = run(spec, towers=replicas)
        for name, value in want.variables[0].items():
            np.testing.assert_array_equal(towers.variables[0][name], value)
        again = run(spec, towers=replicas)
        for name, value in towers.variables[STEPS].items():
            np.testing.assert_array_equal(again.variables[STEPS][name], value)
        names = ["conv1/kernel", "conv1/moving_variance"]
        visible(towers.variables[1], want.variables[1], names, "local statistics", margin=MARGIN / 10)
