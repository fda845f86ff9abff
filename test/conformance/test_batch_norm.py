# SPDX-License-Identifier: Apache-2.0
"""Steps that normalise: what --batch-norm promises, and what is exact without it.

Every case runs with an unknown and a static batch, a mean and a sum loss, both strategies and both reductions, N = 2
and 3, and with --verify-output, so that the written file is certified too.
"""

import compare
import harness
import models_bn
import models_habits
import numpy as np
import pytest
from harness import Options, Session
from models import BATCH, Spec
from models_bn import EXACT, FUSED


def variants(name, *flags):
    flags += ("--verify-output",)
    return [
        (Spec(name, "resource", None, "mean"), Options(2, "all-reduce", "collective", flags)),
        (Spec(name, "ref" if "keras" not in name else "resource", BATCH, "sum"), Options(3, "ps", "add", flags)),
    ]


# Models that graft refuses without need: (model, batch). Each line is a limit, and goes when the limit goes.
KNOWN = {}


def cases(models, *flags):
    chosen = []
    for spec, options in [case for name in models for case in variants(name, *flags)]:
        why = KNOWN.get((spec.model, spec.batch))
        marks = [pytest.mark.xfail(strict=True, reason=why)] if why else []
        chosen.append(pytest.param(spec, options, marks=marks, id=f"{spec}-{options.replicas}"))
    return pytest.mark.parametrize("spec,options", chosen)


def prepare(spec, scale=1.0):
    model = {**FUSED, **EXACT}[spec.model]
    path = compare.export(spec, model.build, gradient_scale=scale)
    return path, models_habits.batches(model.data, 3)


def run(path, options, data, **kwargs):
    with Session(path, options.replicas if options else 1) as session:
        rows = compare.advance(session, data, ("train_op",) * 3, ("loss:0",), ())
        if options:
            session.check_copies("at the end")
    return rows


@cases(EXACT, "--strict")
def test_exact_without_a_flag(spec, options):
    path, data = prepare(spec)
    compare.same_steps(path, options, data)


# Rounding in another order: activations in float16, sums of values that are far from zero.
SLACK = {"batch_norm_half": 300, "batch_norm_far": 30}


@cases(FUSED, "--strict", "--batch-norm=sync")
def test_sync_is_the_single_device_step(spec, options):
    path, data = prepare(spec)
    out, said = harness.rewrite(path, options)
    assert said == "", said
    for i, (ours, theirs) in enumerate(zip(run(out, options, data), run(path, None, data))):
        harness.assert_all_close(ours[1], theirs[1], f"after step {i}", SLACK.get(spec.model, 5))


@pytest.mark.parametrize("name", FUSED)
def test_wrong_scale_and_local_statistics_show(name):
    """The test above distinguishes these faults: twice the gradients, and the statistics of each replica's rows."""
    path, data = prepare(Spec(name))
    want = run(path, None, data)
    doubled, _ = prepare(Spec(name), scale=2.0)
    options = Options(2)
    local, said = harness.rewrite(path, options)
    assert "batch normalization uses the statistics of each replica's rows" in said, said
    for wrong in (run(doubled, None, data), run(local, options, data)):
        assert compare.difference(wrong, want) > 10 * SLACK.get(name, 5)


def moving(row, kind):
    return {name: value for name, value in row[1].items() if name.endswith(kind) or name.endswith(kind + ":0")}


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("replicas", [2, 3])
def test_moving_averages(name, replicas):
    """After one step, from equal weights. The first norm sees what the single device sees, so that its statistics are
    comparable: with exact both are the true ones; with local the mean is, and the variance lacks a part."""
    path, data = prepare(Spec(name))
    want = run(path, None, data)[1]
    first = {n: v for n, v in moving(want, "moving_mean").items() if not n.startswith("two")}
    for how in ("local", "exact"):
        options = Options(replicas, "all-reduce", "add", ("--batch-norm=" + how, "--verify-output"))
        out, said = harness.rewrite(path, options)
        assert ("without the variance between replicas" in said) == (how == "local"), said
        got = run(out, options, data)[1]
        for mean in first:
            variance = mean.replace("moving_mean", "moving_variance")
            slack = SLACK.get(name, 5)
            harness.assert_close(got[1][mean], want[1][mean], mean, slack)
            if how == "exact":
                harness.assert_close(got[1][variance], want[1][variance], variance, slack)
            else:
                off = np.max(np.abs(got[1][variance] - want[1][variance]))
                assert off > 100 * harness.tolerance(want[1][variance])


def test_strict_refuses_what_is_local():
    path, _ = prepare(Spec("batch_norm"))
    for how in ("local", "exact"):
        arguments = Options(2, extra=("--strict", "--batch-norm=" + how)).arguments()
        done = harness.run_graft([path, "-o", path + ".no", *arguments], check=False)
        assert done.returncode == 1 and "statistics of each replica's rows" in done.stderr, done.stderr
