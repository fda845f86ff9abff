# SPDX-License-Identifier: Apache-2.0
"""How values are reduced (docs/Reductions.md): in buckets, in 16 bits, sparse ones by rows."""

import pytest
from harness import Options, Rewritten
from models import BATCH, Spec

BUCKETS = ("--bucket-bytes=1M", "--verify-output", "--strict")


def count(session, op):
    return sum(1 for node in session.graph.get_operations() if node.type == op)


@pytest.mark.parametrize("reduction", ["add", "collective"])
@pytest.mark.parametrize(
    "spec, replicas",
    [
        (Spec("mlp_adam"), 3),
        (Spec("mlp_clip", "ref", BATCH), 2),
        (Spec("cnn_nobn", "resource", None, "sum"), 4),
        (Spec("adamw_assign", "ref"), 2),
        (Spec("embedding"), 3),
        (Spec("mlp_adam", "resource", BATCH, "mean", "float64"), 3),
    ],
    ids=str,
)
def test_buckets_are_the_same_step(spec, replicas, reduction):
    with Rewritten(spec, Options(replicas, "all-reduce", reduction, BUCKETS)) as session:
        session.check_steps()
        session.check_interface()
        # The embedding has one dense gradient, which is left alone.
        assert count(session, "SplitV") == (0 if spec.model == "embedding" else replicas)
        if reduction == "collective" and spec.model != "embedding":
            # One exchange for all gradients; a loss whose mean is fetched may be one more.
            assert count(session, "CollectiveReduce") <= 2 * replicas


def test_checkpoints_of_a_step_in_buckets():
    with Rewritten(Spec("mlp_adam"), Options(2, "all-reduce", "collective", BUCKETS)) as session:
        session.check_checkpoints()
