# SPDX-License-Identifier: Apache-2.0
"""A step of any number of rows has the result of one device, and each run of a session may have another number."""

import compare
import harness
import models
import numpy as np
import pytest
import tensorflow as tf
from harness import Options, Session
from models import Builder, Spec
from models_habits import descend

tf1 = tf.compat.v1

KEEPS_STATISTICS = ("--batch-norm=sync",)  # The numbers are those of one device.


def counts(replicas: int):
    """1, N-1, N+1, 2N-1, a prime, and numbers that N divides."""
    return [2 * replicas, 1, replicas - 1, replicas + 1, 2 * replicas - 1, 13, 4 * replicas]


def cut(batch, rows: int):
    """So many rows of a batch, which is repeated if it has fewer."""
    return tuple(np.concatenate([value] * -(-rows // len(value)))[:rows] for value in batch)


WAYS = ["2 all-reduce add", "3 all-reduce add", "4 all-reduce add", "4 ps add", "3 parallax add", "3 all-reduce collective"]


CASES = [(model, way) for way in WAYS for model in sorted(models.MODELS)]


@pytest.mark.parametrize("model,way", CASES)
def test_models(model, way):
    replicas, strategy, reduction = int(way.split()[0]), *way.split()[1:]
    spec = Spec(model, dtype="float64" if not models.MODELS[model].batch_norm else "float32")
    path = harness.export(spec)
    out, _ = harness.rewrite(path, Options(replicas, strategy, reduction, extra=KEEPS_STATISTICS))
    # Rounding grows with the depth of a network with batch norms: with two rows a replica, some processors differ by 1.2 %.
    slack = 1 if not models.MODELS[model].batch_norm else 3000 if model == "resnet" else 1000
    with Session(path) as one, Session(out, replicas) as ours:
        one.restart()
        ours.restore(one.save())
        batches = models.batches(model, spec.dtype)
        for i, rows in enumerate(counts(replicas)):
            batch = cut(batches[i % len(batches)], rows)
            if models.MODELS[model].batch_norm:
                ours.restore(one.save())
            harness.assert_close(ours.step(batch), one.step(batch), f"loss of {rows} rows", slack)
            harness.assert_all_close(ours.values(), one.values(), f"after {rows} rows", slack)
            ours.check_copies(f"after {rows} rows")


def everything(b: Builder):
    """A mean, a sum, a maximum, a number of rows, rows, a metric, and selected rows."""
    x, y = b.inputs([4], [3])
    h = tf.tanh(tf.matmul(x, b.variable("w", [4, 3])), "rows")
    error = tf.reduce_sum(tf.square(h - y), 1, name="errors")
    kept = tf.boolean_mask(h, error > 1.0, name="kept")
    tf.reduce_max(h, name="largest")
    tf.shape(x, name="shape")
    tf.reduce_sum(kept, 0, name="sum_of_kept")
    tf1.metrics.mean(error, name="average")
    total = tf.reduce_mean(error) + 0.01 * tf.reduce_sum(tf.abs(h)) + tf.reduce_sum(kept) / 50.0
    descend(b, b.loss(total))


FETCHES = ["loss:0", "train_op", "rows:0", "errors:0", "largest:0", "shape:0", "sum_of_kept:0", "average/update_op:0"]


@pytest.mark.parametrize("strategy", ["all-reduce", "ps"])
@pytest.mark.parametrize("replicas", [2, 3, 4])
def test_what_a_step_reads(replicas, strategy):
    path = compare.export(Spec("everything"), everything)
    names = tuple(f"--fetch={name}" for name in FETCHES if name != "train_op")
    out, _ = harness.rewrite(path, Options(replicas, strategy, extra=names))
    random = np.random.default_rng(5)
    with Session(path) as one, Session(out, replicas) as ours:
        for session in (one, ours):
            session.restart()
            with session.graph.as_default():
                session.session.run([o for o in session.graph.get_operations() if o.name.startswith("average/") and
                                     o.name.endswith("/Assign")])  # fmt: skip
        ours.restore(one.save())
        for rows in counts(replicas):
            feeds = {"x:0": random.normal(size=(rows, 4)), "y:0": random.normal(size=(rows, 3))}
            mine, theirs = ours.run(FETCHES, feeds), one.run(FETCHES, feeds)
            for name, got, want in zip(FETCHES, mine, theirs):
                if want is not None:
                    harness.assert_close(got, want, f"{name} of {rows} rows")
            harness.assert_all_close(ours.values(), one.values(), f"after {rows} rows")


def penalty(b: Builder):
    """A gradient penalty of a layer that broadcasts its weights over the rows. The gradients sum over the axis of one row."""
    x, y = b.inputs([3, 4], [1])
    w, v = b.variable("w", [4, 5]), b.variable("v", [5, 1])
    score = tf.reduce_sum(tf.matmul(tf.tanh(tf.matmul(x, w)), v), [1, 2])
    norm = tf.sqrt(tf.reduce_sum(tf.square(tf.gradients(score, x)[0]), [1, 2]) + 1e-6)
    descend(b, b.loss(tf.reduce_mean(score * y[:, 0]) + tf.reduce_mean(tf.square(norm - 1.0))))


@pytest.mark.parametrize("replicas", [2, 3])
def test_gradient_of_a_gradient(replicas):
    path = compare.export(Spec("penalty"), penalty)
    out, _ = harness.rewrite(path, Options(replicas))
    random = np.random.default_rng(7)
    with Session(path) as one, Session(out, replicas) as ours:
        one.restart()
        ours.restore(one.save())
        for rows in counts(replicas):
            batch = random.normal(size=[rows, 3, 4]), random.normal(size=[rows, 1])
            harness.assert_close(ours.step(batch), one.step(batch), f"loss of {rows} rows")
            harness.assert_all_close(ours.values(), one.values(), f"after {rows} rows")


def looked_up(b: Builder):
    """Rows of one feed, looked up by the numbers that another feed holds."""
    x, y = b.inputs([4], [3])
    rows = b.placeholder("i", [], tf.int32)
    h = tf.matmul(x, b.variable("w", [4, 3]))
    descend(b, b.loss(tf.reduce_sum(tf.square(tf.gather(h, rows))) / 50.0 + tf.reduce_mean(tf.square(h - y))))


@pytest.mark.parametrize("replicas", [2, 3])
def test_numbers_of_rows_that_are_unrelated(replicas):
    path = compare.export(Spec("looked_up"), looked_up)
    out, _ = harness.rewrite(path, Options(replicas))
    random = np.random.default_rng(3)
    with Session(path) as one, Session(out, replicas) as ours:
        one.restart()
        ours.restore(one.save())
        for rows, numbers in [(6, 12), (5, 10), (6, 5), (4, 7), (8, 6), (1, 3)]:
            x, y = random.normal(size=[rows, 4]), random.normal(size=[rows, 3])
            feeds = {"x:0": x, "y:0": y, "i:0": random.integers(rows, size=numbers)}
            got, want = (session.run(["loss:0", "train_op"], feeds)[0] for session in (ours, one))
            harness.assert_close(got, want, f"loss of {rows} rows and {numbers} numbers")
            harness.assert_all_close(ours.values(), one.values(), f"after {rows} rows and {numbers} numbers")


def test_feeds_that_do_not_match_fail():
    path = compare.export(Spec("everything"), everything)
    out, _ = harness.rewrite(path, Options(2))
    with Session(out, 2) as ours:
        ours.restart()
        with pytest.raises(tf1.errors.InvalidArgumentError, match="have different numbers of rows"):
            ours.run("loss:0", {"x:0": np.ones([6, 4]), "y:0": np.ones([3, 3])})
