# SPDX-License-Identifier: Apache-2.0
"""Conditionals and functions make the same steps after the rewrite, in version 1 and as functions."""

import compare
import models_functions
import models_more
import pytest
from harness import Options
from models import BATCH, Spec
from models_functions import BRANCHES

# The second has a static batch, the sum loss and other options: a wrong power of N cannot hide in both.
VARIANTS = [
    (Options(2, "all-reduce", "collective"), None, "mean"),
    (Options(3, "ps", "add"), BATCH, "sum"),
]


def run(name, model, functional, options, batch, loss):
    kind = "resource" if functional or batch is None else "ref"
    spec = Spec(name, kind, batch, loss)
    data = models_more.batches(model.data, len(model.steps))
    with models_functions.form(functional):
        path = compare.export(spec, models_functions.without_contexts(model.build))
    return compare.same_steps(path, options, data, model.steps, model.fetches, model.after)


@pytest.mark.parametrize("options,batch,loss", VARIANTS, ids=["collective", "ps"])
@pytest.mark.parametrize("name", BRANCHES)
def test_branches(name, options, batch, loss):
    run(name, BRANCHES[name], False, options, batch, loss)
