# SPDX-License-Identifier: Apache-2.0
"""Variables in parts on several devices: one pipeline cuts and replicates, and the output is checked as a file."""

import os
import tempfile

import harness
import models
import pytest
from harness import assert_all_close, assert_close
from models import Spec
from test_partition import Parts

CASES = [
    ("linear", ["w=0/2"], 2, "all-reduce", "add"),
    ("mlp_adam", ["hidden/kernel=1:3,13", "hidden/bias=0/4", "output/kernel=0/5"], 3, "all-reduce", "collective"),
    ("mlp_clip", ["hidden/kernel=0/3", "output/kernel=1/2"], 4, "ps", "add"),
    ("cnn_nobn", ["conv2/kernel=2:1,5", "dense/kernel=0/4"], 2, "all-reduce", "add"),
    ("embedding", ["table=0/3", "w=0/2"], 2, "all-reduce", "collective"),
    ("embedding", ["table=0:1,9,1"], 4, "ps", "add"),
    ("embedding", ["table=1:2,3"], 3, "all-reduce", "add"),
    ("adamw_assign", ["hidden/kernel=0/2", "output/kernel/adam_m=0/3"], 2, "all-reduce", "add"),
]


def pipeline(rules, replicas, strategy, reduction):
    """What the strategy runs, with partition-variables before replicas are made."""
    options = [f"--replicas={replicas}", "--device-type=CPU", f"--strategy={strategy}", f"--reduction={reduction}"]
    done = harness.run_graft([*options, "--print-pipeline-passes", os.devnull], check=False)
    passes = done.stdout.strip()
    cut = f"partition-variables{{partition='{';'.join(rules)}'}}"
    assert passes.count(",replicate") == 1, done.stdout + done.stderr
    return passes.replace(",replicate", f",{cut},replicate", 1)


@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join([c[0], *c[1][:1], str(c[2]), c[3]]).replace("/", "|"))
def test_same_steps(case, kind):
    model, rules, replicas, strategy, reduction = case
    spec = Spec(model, kind=kind)
    original, want = harness.export(spec), harness.reference(spec)
    handle, out = tempfile.mkstemp(suffix=".meta", dir=harness.workdir())
    os.close(handle)
    passes = pipeline(rules, replicas, strategy, reduction)
    done = harness.run_graft([original, "-o", out, f"--passes={passes}", "--strict", "--verify-output"], check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    again = harness.run_graft([out, f"--passes=check-replication{{input={original}}}", "--emit=none"], check=False)
    assert again.returncode == 0 and again.stderr == "", again.stderr
    with Parts(out, original, replicas) as session:
        session.restart()
        assert_all_close(session.values(), want.variables[0], "after init")
        for i, batch in enumerate(models.batches(model, spec.dtype), start=1):
            assert_close(session.step(batch), want.losses[i - 1], f"loss of step {i}")
            assert_all_close(session.values(), want.variables[i], f"after step {i}")
