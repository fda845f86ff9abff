# SPDX-License-Identifier: Apache-2.0
"""Two exports of one model, with an unknown and a static batch, make the same step: mean or sum is found, not configured."""

import harness
import models
import pytest
from harness import Options, Rewritten
from models import BATCH, MATRIX, Spec


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("loss", ["mean", "sum"])
@pytest.mark.parametrize("model", MATRIX)
def test_unknown_and_static(model, loss, kind, replicas):
    options = Options(replicas)
    runs = []
    for batch in (None, BATCH):
        with Rewritten(Spec(model, kind, batch, loss), options) as session:
            session.restart()
            losses = [session.step(b) for b in models.batches(model)]
            session.check_copies("after the last step")
            runs.append((losses, session.values()))
    (unknown_losses, unknown), (static_losses, static) = runs
    for i, (a, b) in enumerate(zip(static_losses, unknown_losses), start=1):
        harness.assert_close(a, b, f"loss of step {i}")
    harness.assert_all_close(static, unknown, "after the last step")
