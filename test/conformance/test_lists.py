# SPDX-License-Identifier: Apache-2.0
"""Loops of version 2 keep their rows in lists (TensorList). The models of test_loops make the same steps with them."""

import compare
import harness
import models_functions
import models_habits
import pytest
from harness import Options, Session
from models import BATCH, Spec
from models_loops import LOOPS
from test_any_rows import counts, cut

VARIANTS = [
    ("resource", None, "mean", Options(2, "all-reduce", "collective")),
    ("resource", BATCH, "sum", Options(3, "ps", "add")),
    ("resource", BATCH, "mean", Options(3, "all-reduce", "add")),
]
# Models that keep rows in lists, and how much of their work the replicas share at least, in percent.
SPREAD = {"recurrent": 95, "scanned": 95, "folded": 95, "mapped": 95, "dynamic_basic_lstm": 95, "dynamic_lstm": 90, "dynamic_gru": 90}


def export(spec):
    with models_functions.form(True):
        return compare.export(spec, models_functions.importable(LOOPS[spec.model].build))


@pytest.mark.parametrize("kind,batch,loss,options", VARIANTS, ids=["open", "sum", "static"])
@pytest.mark.parametrize("name", LOOPS)
def test_same_steps(name, kind, batch, loss, options):
    model = LOOPS[name]
    data = models_habits.batches(model.data, len(model.steps))
    compare.same_steps(export(Spec(name, kind, batch, loss)), options, data, model.steps, model.fetches, model.after)


@pytest.mark.parametrize("name", SPREAD)
def test_spread(name):
    """The replicas share the loops, which would run once if lists of rows had no type."""
    harness.rewrite(export(Spec(name)), Options(2, extra=(f"--min-spread={SPREAD[name]}",)))


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize("name", ["recurrent", "scanned", "dynamic_basic_lstm"])
def test_any_rows(name, replicas):
    path = export(Spec(name, dtype="float64"))
    out, _ = harness.rewrite(path, Options(replicas))
    data = models_habits.batches(LOOPS[name].data, 7)
    with Session(path) as one, Session(out, replicas) as ours:
        one.restart()
        ours.restore(one.save())
        for batch, rows in zip(data, counts(replicas)):
            batch = cut(batch, rows)
            harness.assert_close(ours.step(batch), one.step(batch), f"loss of {rows} rows")
            harness.assert_all_close(ours.values(), one.values(), f"after {rows} rows")
