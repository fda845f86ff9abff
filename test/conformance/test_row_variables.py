# SPDX-License-Identifier: Apache-2.0
"""A variable that has a row for each example stays one: replicas read their rows of it, and write theirs together."""

import compare
import models_habits
import pytest
from harness import Options
from models import BATCH, Spec
from models_rows import MODELS
from test_between_graph import more_steps

PARTS = {"partitioned-ps": "carried", "partitioned-all-reduce": "learned_adam", "parallax": "learned_words"}


def cases():
    for name, model in MODELS.items():
        yield Spec(name, "resource", BATCH, "mean"), Options(2, "all-reduce", "collective", model.flags)
        yield Spec(name, "ref", BATCH, "sum"), Options(3, "ps", "add", model.flags)
    for strategy, name in PARTS.items():
        yield Spec(name, "ref", BATCH, "mean"), Options(3, strategy)
    yield Spec("seen_late", "ref", BATCH, "mean"), Options(3, "ps-load-balancing")


@pytest.mark.parametrize("spec,options", list(cases()), ids=str)
def test_same_steps(spec, options):
    model = MODELS[spec.model]
    data = models_habits.batches(model.data, len(model.steps))
    compare.same_steps(compare.export(spec, model.build), options, data, model.steps, model.fetches, model.after)


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.scale_shows])
def test_wrong_scale_shows(name):
    """Twice the gradients exceed the tolerance 100 times, so that the test above can fail."""
    model = MODELS[name]
    data, runs = models_habits.batches(model.data, len(model.steps)), []
    for scale in (1.0, 2.0):
        path = compare.export(Spec(name, batch=BATCH), model.build, gradient_scale=scale)
        runs.append(compare.run(path, data, model.steps, model.fetches, model.after))
    assert compare.difference(runs[1], runs[0]) > 100


BETWEEN = [
    ("carried", "resource", 2, "all-reduce"),
    ("followed", "ref", 3, "ps"),
    ("learned_adam", "resource", 2, "partitioned-ps"),
    ("learned_words", "ref", 2, "parallax"),
    ("seen_late", "ref", 3, "ps"),
]


@pytest.mark.parametrize("name,kind,workers,strategy", BETWEEN)
def test_between_graphs(name, kind, workers, strategy):
    """Each worker has its rows."""
    more_steps(MODELS[name], Spec(name, kind, BATCH), workers, strategy, rows=["late:0"])
