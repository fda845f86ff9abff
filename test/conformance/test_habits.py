# SPDX-License-Identifier: Apache-2.0
"""Training steps as people write them: each makes the same steps after the rewrite.

Every model runs with two variants that between them have ref and resource variables or both strategies, both batches,
both losses, both reductions, N = 2 and 3. Both are there since a wrong power of N cannot hide in both.
"""

import compare
import harness
import models_habits
import numpy as np
import pytest
from harness import Options, Session
from models import BATCH, Spec
from models_habits import HABITS

# Models that graft refuses, or warns of, without need: (model, batch). Each line is a limit, and goes when the limit goes.
KNOWN = {}


def variants(name):
    model = HABITS[name]
    first = Spec(name, "resource", None, "mean"), Options(2, "all-reduce", "collective", model.flags)
    kind = "ref" if name.startswith("dense_") else "resource"
    second = Spec(name, kind, BATCH, model.losses[-1]), Options(3, "ps", "add", model.flags)
    return [first, second]


def cases():
    chosen = []
    for name in HABITS:
        if name == "dropout":
            continue
        for spec, options in variants(name):
            why = KNOWN.get((name, spec.batch))
            marks = [pytest.mark.xfail(strict=True, reason=why)] if why else []
            label = f"{spec}-{options.strategy}-{options.reduction}-{options.replicas}"
            chosen.append(pytest.param(spec, options, marks=marks, id=label))
    return chosen


@pytest.mark.parametrize("spec,options", cases())
def test_same_steps(spec, options):
    model = HABITS[spec.model]
    data = models_habits.batches(model.data, len(model.steps))
    path = compare.export(spec, model.build)
    compare.same_steps(path, options, data, model.steps, model.fetches, model.after)


@pytest.mark.parametrize("name", [name for name in HABITS if HABITS[name].scale_shows and name != "dropout"])
def test_wrong_scale_shows(name):
    """Twice the gradients exceed the tolerance 100 times, so that the test above can fail."""
    model, spec = HABITS[name], Spec(name)
    data = models_habits.batches(model.data, len(model.steps))
    runs = []
    for scale in (1.0, 2.0):
        path = compare.export(spec, model.build, gradient_scale=scale)
        runs.append(compare.run(path, data, model.steps, model.fetches, model.after))
    assert compare.difference(runs[1], runs[0]) > 100


def test_dropout():
    """A warning names the draw; --strict refuses; the copies agree and the loss is finite."""
    model = HABITS["dropout"]
    path = compare.export(Spec("dropout"), model.build)
    out, said = harness.rewrite(path, Options(2))
    assert "warning: " in said and "'dropout/random_uniform/RandomUniform'" in said, said
    done = harness.run_graft([path, "-o", out + ".no", *Options(2, extra=("--strict",)).arguments()], check=False)
    assert done.returncode == 1 and "RandomUniform" in done.stderr, done.stderr
    with Session(out, 2) as session:
        rows = compare.advance(session, models_habits.batches(model.data, 3), model.steps, model.fetches, ())
        session.check_copies("at the end")
    assert all(np.isfinite(row[0]) for row in rows[1:])
