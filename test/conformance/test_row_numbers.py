# SPDX-License-Identifier: Apache-2.0
"""Losses that pick by row number make the same steps; where nothing is proved, a step takes the mean of gradients."""

import compare
import harness
import models_habits
import numpy as np
import pytest
import tensorflow as tf
from harness import Options
from models import BATCH, Builder, Spec
from models_habits import descend

tf1 = tf.compat.v1


def actor_critic(b: Builder):
    """The log probability of the action taken, by its row and number."""
    x, y = b.inputs([5], [], y_dtype=tf.int32)
    logits = tf.matmul(x, b.variable("w", [5, 3]))
    value = tf.matmul(x, b.variable("v", [5, 1]))[:, 0]
    taken = tf.gather_nd(tf.nn.log_softmax(logits), tf.stack([tf.range(tf.shape(x)[0]), y], 1))
    advantage = tf.stop_gradient(tf.reduce_sum(x, 1) - value)
    descend(b, b.loss(b.total(-taken * advantage + 0.5 * (tf.reduce_sum(x, 1) - value) ** 2)))


def mixing(b: Builder):
    """Every row meets every other."""
    x, y = b.inputs([5], [], y_dtype=tf.int32)
    h = tf.matmul(x, b.variable("w", [5, 3]))
    near = tf.matmul(h, h, transpose_b=True) + tf.cast(y, b.dtype)[:, None]
    b.loss(tf.reduce_mean(tf.square(near)))
    tf1.train.GradientDescentOptimizer(0.1).minimize(
        tf1.get_default_graph().get_tensor_by_name("loss:0"), name="train_op"
    )


def rows(rng, dtype):
    return rng.normal(size=(BATCH, 5)).astype(dtype), rng.integers(0, 3, BATCH).astype(np.int32)


@pytest.mark.parametrize("loss", ["mean", "sum"])
@pytest.mark.parametrize("kind,batch", [("ref", None), ("resource", BATCH)])
@pytest.mark.parametrize("options", [Options(2, "all-reduce", "collective"), Options(3, "ps", "add")], ids=str)
def test_same_steps(options, kind, batch, loss):
    path = compare.export(Spec("actor_critic", kind, batch, loss), actor_critic)
    compare.same_steps(path, options, models_habits.batches(rows, 3))


@pytest.mark.parametrize("reduction", ["add", "collective"])
def test_mean_of_gradients(reduction):
    """A step with a warning runs, and does what the warning says."""
    path = compare.export(Spec("mixing"), mixing)
    (x, y), replicas = models_habits.batches(rows, 1)[0], 2
    share = BATCH // replicas
    parts = [(x[i * share : (i + 1) * share], y[i * share : (i + 1) * share]) for i in range(replicas)]
    # Plain descent is linear in the gradient: the mean of gradients is the mean of steps.
    each = [compare.run(path, [part], ["train_op"])[-1][1] for part in parts]
    whole = compare.run(path, [(x, y)], ["train_op"])[-1][1]
    out, said = harness.rewrite(path, Options(replicas, "all-reduce", reduction, ("--fallback=mean",)))
    assert "so graft uses their mean" in said and "error" not in said, said
    with harness.Session(out, replicas) as session:
        got = compare.advance(session, [(x, y)], ["train_op"], (), ())[-1][1]
        session.check_copies("after the step")
    want = {name: np.mean([values[name] for values in each], axis=0) for name in got}
    harness.assert_all_close(got, want, "after a step")
    assert any(np.max(np.abs(got[name] - whole[name])) > 1e-3 for name in got), "the step of the whole batch is another"
