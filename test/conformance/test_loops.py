# SPDX-License-Identifier: Apache-2.0
"""Training steps with `tf.while_loop` of version 1 make the same steps after the rewrite, and graft-opt says nothing.

Every model runs with three variants that between them have ref and resource variables, both strategies, both batches,
both losses, both reductions, N = 2 and 3.
"""

import compare
import models_habits
import pytest
from harness import Options, run_graft
from models import BATCH, Spec
from models_loops import LOOPS, UNPROVED


def cases():
    for name, model in LOOPS.items():
        for kind, batch, loss, options in (
            ("resource", None, "mean", Options(2, "all-reduce", "collective", model.flags)),
            ("ref", BATCH, "sum", Options(3, "ps", "add", model.flags)),
            ("resource", BATCH, "mean", Options(3, "all-reduce", "add", model.flags)),
        ):
            spec = Spec(name, kind, batch, loss)
            yield pytest.param(spec, options, id=f"{spec}-{options.strategy}-{options.replicas}")


@pytest.mark.parametrize("spec,options", list(cases()))
def test_same_steps(spec, options):
    model = LOOPS[spec.model]
    data = models_habits.batches(model.data, len(model.steps))
    compare.same_steps(compare.export(spec, model.build), options, data, model.steps, model.fetches, model.after)


@pytest.mark.parametrize("name", LOOPS)
def test_wrong_scale_shows(name):
    """Twice the gradients exceed the tolerance 100 times, so that the test above can fail."""
    model = LOOPS[name]
    data = models_habits.batches(model.data, len(model.steps))
    runs = [
        compare.run(compare.export(Spec(name), model.build, gradient_scale=scale), data, model.steps)
        for scale in (1.0, 2.0)
    ]
    assert compare.difference(runs[1], runs[0]) > 100


@pytest.mark.parametrize("name", UNPROVED)
def test_unproved(name):
    """An op that needs an exchange in a loop is an error under --strict, which names the op and the reason."""
    build, node, reason = UNPROVED[name]
    path = compare.export(Spec(name), build)
    done = run_graft([path, "-o", path + ".no", *Options(2, extra=("--strict", "--fallback=mean")).arguments()], check=False)
    assert done.returncode == 1
    assert any(f"'{node}'" in line and reason in line for line in done.stderr.splitlines()), done.stderr


def test_own_frames():
    """--verify-output accepts the loops of replicas, and not one loop for two of them."""
    path = compare.export(Spec("recurrent"), LOOPS["recurrent"].build)
    run_graft([path, "-o", path + ".pbtxt", *Options(2, extra=("--verify-output", "--strict")).arguments()])
    with open(path + ".pbtxt", encoding="utf-8") as file:
        text = file.read()
    frame = 's: "replica_1/while/while_context"'
    assert frame in text
    with open(path + ".pbtxt", "w", encoding="utf-8") as file:
        file.write(text.replace(frame, frame.replace("replica_1", "replica_0"), 1))
    passes = "--passes=check-replication{input=" + path + "}"
    done = run_graft([path + ".pbtxt", passes, "--emit=none"], check=False)
    assert done.returncode == 1 and "enters a frame that does not belong to its replica" in done.stderr, done.stderr
