# SPDX-License-Identifier: Apache-2.0
"""Losses with sampled classes make the steps of a single device: the classes are drawn once, for the whole batch."""

import compare
import covering
import harness
import models_habits
import numpy as np
import pytest
import tensorflow as tf
from harness import Options
from models import BATCH, Builder, Spec

tf1 = tf.compat.v1
CLASSES = 30

SAMPLERS = {
    "log_uniform": lambda y, true, n: tf.random.log_uniform_candidate_sampler(y, true, n, True, CLASSES, seed=3),
    "uniform": lambda y, true, n: tf.random.uniform_candidate_sampler(y, true, n, True, CLASSES, seed=4),
    "learned": lambda y, true, n: tf.random.learned_unigram_candidate_sampler(y, true, n, False, CLASSES, seed=5),
    "fixed": lambda y, true, n: tf.random.fixed_unigram_candidate_sampler(
        y, true, n, True, CLASSES, unigrams=[1.0 + i % 5 for i in range(CLASSES)], seed=6
    ),
    "all": lambda y, true, n: tf.random.all_candidate_sampler(y, true, CLASSES, True, seed=7),
    "given": lambda y, true, n: (
        tf.constant([(7 * i) % CLASSES for i in range(n)], tf.int64),
        tf.cast(tf.abs(y) + 1, tf.float32) / CLASSES,
        tf.constant([0.1 + 0.01 * i for i in range(n)]),
    ),
}
OPTIMIZERS = {
    "sgd": models_habits.OPTIMIZERS["sgd"],
    "adagrad": models_habits.OPTIMIZERS["adagrad"],
    "adam": lambda b, s: tf1.train.AdamOptimizer(0.01, epsilon=0.1 * b.per),
    "clipped": models_habits.OPTIMIZERS["sgd"],
}


def sampled(nce=False, sampler="log_uniform", optimizer="sgd", true=1, number=8, hits=True):
    def build(b: Builder):
        x, y = b.inputs([5], [true], y_dtype=tf.int64)
        h = tf.tanh(tf.matmul(x, b.variable("w", [5, 4])))
        table, bias = b.variable("table", [CLASSES, 4]), b.constant("bias", [CLASSES], 0.1, trainable=True)
        make = tf1.nn.nce_loss if nce else tf1.nn.sampled_softmax_loss
        drawn = SAMPLERS[sampler](y, true, number)
        number_of = CLASSES if sampler == "all" else number
        rows = make(table, bias, y, h, number_of, CLASSES, true, drawn, remove_accidental_hits=hits)
        loss = b.loss(b.total(rows))
        step = tf1.train.get_or_create_global_step()
        made = OPTIMIZERS[optimizer](b, step)
        if optimizer != "clipped":
            b.train(made, loss, global_step=step)
            return
        pairs = made.compute_gradients(loss)
        clipped, _ = tf.clip_by_global_norm([g for g, _ in pairs], 0.5 * b.per)
        made.apply_gradients(zip(clipped, [v for _, v in pairs]), global_step=step, name="train_op")

    return build


def classes(true):
    def data(rng, dtype):
        # Few classes, so that labels are repeated, and sampled.
        return rng.normal(size=(BATCH, 5)).astype(dtype), rng.integers(0, CLASSES // 2, (BATCH, true))

    return data


CASES = covering.covering(
    {
        "nce": [False, True],
        "sampler": list(SAMPLERS),
        "optimizer": list(OPTIMIZERS),
        "true": [1, 2],
        "number": [8, BATCH],
        "hits": [True, False],
        "kind": ["ref", "resource"],
        "batch": [None, BATCH],
        "loss": ["mean", "sum"],
        "run": [("all-reduce", "add"), ("all-reduce", "collective"), ("ps", "add")],
        "replicas": [2, 3, 4],
    }
)


def name_of(case):
    return "-".join(str(v) if not isinstance(v, tuple) else "-".join(v) for v in case.values())


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_same_steps(case):
    model = {k: case[k] for k in ("nce", "sampler", "optimizer", "true", "number", "hits")}
    path = compare.export(Spec("sampled_loss", case["kind"], case["batch"], case["loss"]), sampled(**model))
    options = Options(case["replicas"], *case["run"], extra=("--strict", "--verify-output"))
    compare.same_steps(path, options, models_habits.batches(classes(case["true"]), 3))


def test_own_sizes_are_read_elsewhere():
    """A size of the joined rows that rows of a replica are reshaped by: nothing is proved, and nothing is wrong."""

    def build(b: Builder):
        x, y = b.inputs([5], [1], y_dtype=tf.int64)
        flat = tf.reshape(y, [-1])
        size = tf.shape(flat)
        table = b.variable("table", [CLASSES, 5])
        rows = tf.gather(table, tf.concat([flat, tf.constant([1, 2], tf.int64)], 0))
        own = tf.reshape(x, tf.concat([size, [5]], 0))
        true = tf.slice(rows, [0, 0], tf.concat([size, [5]], 0))
        models_habits.descend(b, b.loss(b.total(tf.reduce_sum(own * true, axis=1))))

    path = compare.export(Spec("shared_size"), build)
    out, said = harness.rewrite(path, Options(2, extra=("--fallback=mean",)))
    assert "is not proved" in said, said
    data = models_habits.batches(classes(1), 1)
    assert np.isfinite(compare.run(path, data, ["train_op"])[-1][0][0])


def test_what_is_not_proved_has_the_sizes_that_ops_want():
    """Gradients that no rule relates are summed by the row numbers of all replicas."""

    def build(b: Builder):
        x, y = b.inputs([5], [], y_dtype=tf.int32)
        rows = tf.nn.embedding_lookup(b.variable("table", [11, 5]), y)
        loss = b.loss(b.total(tf.reduce_sum(tf.matmul(rows, rows, transpose_b=True), axis=1)))
        b.train(tf1.train.AdagradOptimizer(0.1), loss)

    def data(rng, dtype):
        return rng.normal(size=(BATCH, 5)).astype(dtype), rng.integers(0, 11, BATCH).astype(np.int32)

    path = compare.export(Spec("sorted_rows"), build)
    for reduction in ("add", "collective"):
        out, said = harness.rewrite(path, Options(2, reduction=reduction, extra=("--verify-output", "--fallback=mean")))
        assert "is not proved" in said, said
        with harness.Session(out, 2) as session:
            compare.advance(session, models_habits.batches(data, 1), ["train_op"], [], [])
