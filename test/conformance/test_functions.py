# SPDX-License-Identifier: Apache-2.0
"""Conditionals and functions make the same steps after the rewrite, in version 1 and as functions."""

import compare
import harness
import models_functions
import models_habits
import pytest
from harness import Options
from models import BATCH, Spec, tf1
from models_functions import BRANCHES, FUNCTIONS, LOOPS

CALLS = {"PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile"}

# The second has a static batch, the sum loss and other options: a wrong power of N cannot hide in both.
VARIANTS = [
    (Options(2, "all-reduce", "collective"), None, "mean"),
    (Options(3, "ps", "add"), BATCH, "sum"),
]


def export(name, model, functional, batch, loss):
    spec = Spec(name, "resource" if functional or batch is None else "ref", batch, loss)
    with models_functions.form(functional):
        return compare.export(spec, models_functions.importable(model.build))


def run(name, model, functional, options, batch, loss):
    path = export(name, model, functional, batch, loss)
    data = models_habits.batches(model.data, len(model.steps))
    return compare.same_steps(path, options, data, model.steps, model.fetches, model.after)


@pytest.mark.parametrize("options,batch,loss", VARIANTS, ids=["collective", "ps"])
@pytest.mark.parametrize("name", BRANCHES)
def test_branches(name, options, batch, loss):
    """Switch and Merge."""
    run(name, BRANCHES[name], False, options, batch, loss)


@pytest.mark.parametrize("options,batch,loss", VARIANTS, ids=["collective", "ps"])
@pytest.mark.parametrize("name", BRANCHES)
def test_functional_branches(name, options, batch, loss):
    """The same as If, StatelessIf and Case."""
    run(name, BRANCHES[name], True, options, batch, loss)


@pytest.mark.parametrize("options,batch,loss", VARIANTS, ids=["collective", "ps"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_calls(name, options, batch, loss):
    run(name, FUNCTIONS[name], name != "twice_in_a_branch", options, batch, loss)


@pytest.mark.parametrize("name", [*BRANCHES, *FUNCTIONS, *LOOPS])
def test_normal_form(name):
    """inline-functions alone changes nothing that the single-device graph computes, and leaves no call."""
    model = {**BRANCHES, **FUNCTIONS, **LOOPS}[name]
    path = export(name, model, name != "twice_in_a_branch", None, "mean")
    data = models_habits.batches(model.data, len(model.steps))
    out = path.replace(".meta", "-inlined.meta")
    done = harness.run_graft([path, "-o", out, "--passes=inline-functions"])
    assert done.stderr == ""
    graph_def = tf1.MetaGraphDef.FromString(open(out, "rb").read()).graph_def
    assert not [node.name for node in graph_def.node if node.op in CALLS]
    want = compare.run(path, data, model.steps, model.fetches, model.after)
    got = compare.run(out, data, model.steps, model.fetches, model.after)
    for i, (ours, theirs) in enumerate(zip(got, want)):
        harness.assert_all_close(ours[1], theirs[1], f"after step {i}")
        for name, a, b in zip((*model.fetches, *model.after), ours[0] + ours[2], theirs[0] + theirs[2]):
            harness.assert_close(a, b, f"{name} of step {i}")


@pytest.mark.parametrize("options,batch,loss", VARIANTS, ids=["collective", "ps"])
@pytest.mark.parametrize("name", ["looped_loss", "looped_layer", "looped_until"])
def test_functional_loops(name, options, batch, loss):
    run(name, LOOPS[name], True, options, batch, loss)
