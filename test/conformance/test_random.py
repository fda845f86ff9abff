# SPDX-License-Identifier: Apache-2.0
"""Steps that draw random numbers: what is deterministic is equal, and what is drawn for rows is warned of, differs
between replicas and is the same in every session if it has a seed."""

import compare
import harness
import models_habits
import models_random
import numpy as np
import pytest
from harness import Options, Session
from models import BATCH, Spec
from models_random import ONE, ROWS


def first_step(path, replicas, data):
    """The samples of the first step, and the variables after it."""
    with Session(path, replicas) as session:
        rows = compare.advance(session, data, ["train_op"], ["draw:0", "loss:0"], [])
        session.check_copies("after a step")
    return rows[1][0][0], rows[1][1]


@pytest.mark.parametrize("batch", [None, BATCH])
@pytest.mark.parametrize("name", ROWS)
def test_rows_are_drawn_by_each_replica(name, batch):
    path = compare.export(Spec(name, batch=batch), ROWS[name])
    data = models_habits.batches(models_random.VECTORS, 1)
    flags = ("--fetch=draw:0", "--verify-output")
    out, said = harness.rewrite(path, Options(3, extra=flags))
    assert said.count("warning: ") == 1 and "draws its own random numbers" in said, said
    strict = Options(3, extra=("--strict",)).arguments()
    assert harness.run_graft([path, "-o", out + ".no", *strict], check=False).returncode == 1
    draw, after = first_step(out, 3, data)
    single, _ = first_step(path, 1, data)
    assert draw.shape == single.shape and draw.dtype == single.dtype
    # No replica has the rows of another, and the draw as a whole looks like that of a single device.
    parts = np.split(draw, 3)
    assert not any(np.array_equal(parts[i], parts[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    spread = max(float(np.std(single)), 1e-3)
    assert abs(float(np.mean(draw)) - float(np.mean(single))) < 1.5 * spread
    again, _ = first_step(out, 3, data)
    assert np.array_equal(draw, again) == (name != "unseeded")


@pytest.mark.parametrize("name,batch,replicas", [("crop", None, 2), ("noise", None, 2), ("noise", BATCH, 3)])
def test_one_draw_is_that_of_a_single_device(name, batch, replicas):
    path = compare.export(Spec(name, batch=batch), ONE[name])
    shape = models_random.VECTORS if name == "noise" else images
    data = models_habits.batches(shape, 1)
    out, said = harness.rewrite(path, Options(replicas, extra=("--strict", "--fetch=draw:0", "--verify-output")))
    assert said == "", said
    (draw, after), (single, want) = first_step(out, replicas, data), first_step(path, 1, data)
    assert np.array_equal(draw, single)
    harness.assert_all_close(after, want, "after a step")


def images(rng, dtype):
    x, y = rng.standard_normal((BATCH, 6, 6, 2)), rng.standard_normal((BATCH, 1))
    return x.astype(dtype), y.astype(dtype)


def test_what_mixes_rows_is_refused():
    """A shuffle moves rows between replicas."""
    path = compare.export(Spec("shuffled"), models_random.shuffled)
    done = harness.run_graft([path, "-o", path + ".no", *Options(2, extra=("--strict", "--fallback=mean")).arguments()], check=False)
    assert done.returncode == 1 and "is not proved" in done.stderr, done.stderr
