# SPDX-License-Identifier: Apache-2.0
"""Genes: what people put around a step: gradients that are kept for some steps, two optimizers against each other, penalties of
all weights, metrics, summaries and assertions, weights that are used twice, control dependencies."""

import numpy as np
import tensorflow.compat.v2 as tf
from families import B, F, I, activation, is_float, is_matrix, is_rows, is_vector
from genes import Context, Gene, Illegal, gene, mix, tf1
from training import clipped, finish, gradients_of, keep, loss_of, optimizer_of, step_of, total


def unwritten(c):
    """Weights that no other train op writes: a slot has the name of its variable."""
    written = getattr(c, "written", set())
    return [v for v in tf1.trainable_variables() if v.op.name not in written]


@gene("op", 1.2)
def shared_weights(c, g):
    """One layer on two tensors, or twice on one; an embedding that is the output layer, too."""
    how = g.below(3)
    if how == 0:
        x = c.pick(g, 0, is_matrix)
        y = c.pick(g, 1, lambda t: is_matrix(t) and t.shape[1] == x.shape[1])
        w, act = c.variable(g, [x.shape[1], c.width(g)]), activation(g)
        a, b = act(tf.matmul(x.tensor, w)), act(tf.matmul(y.tensor, w))
        c.add(a, 0)
        c.add(g.choice([lambda: a - b, lambda: a * b, lambda: tf.concat([a, b], 1)])(), 0)
    elif how == 1:
        x = c.pick(g, 0, is_matrix)
        w = c.variable(g, [x.shape[1], x.shape[1]])
        c.add(tf.tanh(tf.matmul(tf.tanh(tf.matmul(x.tensor, w)), w, transpose_b=g.chance(0.5))), 0)
    else:
        i = c.pick(g, 0, lambda t: t.kind == I and t.rank == 1 and t.batch == 0 and t.classes > 1)
        table = c.variable(g, [i.classes, c.width(g)])
        h = tf.nn.embedding_lookup(table, i.tensor)
        c.add(h, 0)
        c.add(tf.matmul(tf.tanh(h), table, transpose_b=True), 0)


@gene("op", 0.8)
def dropped_out(c, g):
    """Dropout that a flag or a rate of zero turns off."""
    x = c.pick(g, 0, is_rows)
    if g.chance(0.5):
        h = tf1.nn.dropout(x.tensor, rate=0.0)
    else:
        rate = c.pick(g, 1, lambda t: t.rank == 0 and t.kind == F and t.tensor.name in c.feeds)
        h = tf1.nn.dropout(x.tensor, rate=rate.tensor * 0.0, seed=1 + g.below(9))
    c.add(h, 0, x.shape)


@gene("op", 0.8)
def watched(c, g):
    """A tensor that somebody looks at: a summary, an assertion, a control dependency."""
    x = c.pick(g, 0, is_float)
    how = g.below(4)
    if how == 0:
        tf1.summary.histogram(f"seen{g.number}", x.tensor)
        h = tf.identity(x.tensor)
    elif how == 1:
        with tf.control_dependencies([tf1.assert_greater_equal(tf.reduce_max(tf.abs(x.tensor)), tf.cast(0.0, x.tensor.dtype))]):
            h = tf.identity(x.tensor)
    elif how == 2:
        with tf.control_dependencies([tf.reduce_sum(x.tensor)]):
            h = x.tensor * 1.0
    else:
        h = tf1.where(tf.math.is_nan(x.tensor), tf.zeros_like(x.tensor), x.tensor)
    c.add(h, x.batch, x.shape)


@gene("op", 0.6)
def own_gradient(c, g):
    """A gradient that is given by hand: custom_gradient, or one that stops."""
    x = c.pick(g, 0, is_float)
    if g.chance(0.5):

        @tf.custom_gradient
        def op(t):
            return tf.sign(t) * tf.square(t), lambda dy: dy * tf.abs(t)

        h = op(x.tensor)
    else:
        h = x.tensor + tf.stop_gradient(tf.round(x.tensor) - x.tensor)
    c.add(h, x.batch, x.shape)


@gene("op", 0.8)
def second_order(c, g):
    """The gradient of something, as a part of the loss."""
    x = c.pick(g, 0, is_matrix, lambda t: t.tensor.name in c.feeds)
    w = c.variable(g, [x.shape[1], 2])
    y = tf.reduce_sum(tf.tanh(tf.matmul(x.tensor, w)), 1 if g.chance(0.5) else None)
    (d,) = tf.gradients(y, [x.tensor])
    c.add(tf.sqrt(tf.reduce_sum(tf.square(d), 1) + 0.01), 0, x.shape[:1])


@gene("loss", 1.2)
def all_weights(c, g):
    variables = sorted(tf1.trainable_variables(), key=lambda v: v.op.name)
    if not variables:
        raise Illegal("no weights")
    keep(c, 0.01 * tf.add_n([tf.cast(tf.nn.l2_loss(v), c.dtype) for v in variables]))


@gene("loss", 1)
def smoothed_classes(c, g):
    y = c.pick(g, 0, lambda t: t.kind == I and t.rank == 1 and t.batch == 0 and 1 < t.classes < 9)
    x = c.pick(g, 1, is_matrix)
    logits = tf.matmul(x.tensor, c.variable(g, [x.shape[1], y.classes]))
    hot = tf.one_hot(y.tensor, y.classes, dtype=c.dtype)
    how = g.below(4)
    if how == 0:
        loss = tf1.losses.softmax_cross_entropy(hot, logits, label_smoothing=0.1)
    elif how == 1:
        loss = tf1.losses.sigmoid_cross_entropy(hot, logits, label_smoothing=0.1)
    elif how == 2:
        p = tf.nn.softmax(logits)
        loss = tf.reduce_mean(-tf.reduce_sum(hot * tf.pow(1.0 - p, 2.0) * tf.math.log(p + 1e-6), 1))
    else:
        rows = tf.nn.weighted_cross_entropy_with_logits(labels=hot, logits=logits, pos_weight=tf.cast(2.0, c.dtype))
        loss = total(c, g, rows)
    keep(c, loss)


@gene("loss", 1)
def pairs_of_rows(c, g):
    """A margin between two scores of a row, a cosine, a divergence of two distributions."""
    x = c.pick(g, 0, is_matrix)
    y = c.pick(g, 1, lambda t: is_matrix(t) and t.shape == x.shape and t.number != x.number)
    how = g.below(4)
    a, b = x.tensor, y.tensor
    if how == 0:
        rows = tf.nn.relu(0.3 - tf.reduce_sum(a, 1) + tf.reduce_sum(b, 1))
    elif how == 1:
        rows = 1.0 - tf.reduce_sum(tf.nn.l2_normalize(a, 1, 1e-2) * tf.nn.l2_normalize(b, 1, 1e-2), 1)
    elif how == 2:
        p, q = tf.nn.softmax(a), tf.nn.log_softmax(b)
        rows = tf.reduce_sum(p * (tf.nn.log_softmax(a) - q), 1)
    else:
        rows = 0.5 * tf.reduce_sum(tf.exp(tf.clip_by_value(a, -1.0, 1.0)) + tf.square(b) - 1.0 - a, 1)
    keep(c, total(c, g, rows))


@gene("train", 1.5)
def kept_gradients(c, g):
    """Gradients are added up for two steps, then applied and cleared."""
    loss = loss_of(c, g)
    variables = unwritten(c)
    if not variables:
        raise Illegal("no weights")
    pairs = [(tf.convert_to_tensor(d), v) for d, v in gradients_of(c, g, loss, variables)]
    c.written = getattr(c, "written", set()) | {v.op.name for _, v in pairs}
    count = c.variable(g, [], value=np.int32(0), trainable=False, dtype=tf.int32)
    sums = [c.variable(g, v.shape, value=np.zeros(v.shape), trainable=False) for _, v in pairs]
    tf1.disable_control_flow_v2()
    c.v1_flow = True
    with tf.control_dependencies([d.op for d, _ in pairs]):
        added = [tf1.assign_add(s, d) for s, (d, _) in zip(sums, pairs)]
        with tf.control_dependencies([tf.identity(a) for a in added]):
            now = tf1.assign_add(count, 1)
        with tf.control_dependencies([tf.identity(now)]):
            due = tf.equal(tf.identity(now) % 2, 0)

            def apply():
                updates = [tf1.assign_sub(v, 0.02 * s) for s, (_, v) in zip(sums, pairs)]
                with tf.control_dependencies([tf.identity(u) for u in updates]):
                    cleared = [tf1.assign(s, tf.zeros_like(s)) for s in sums]
                with tf.control_dependencies([tf.identity(t) for t in cleared]):
                    return tf.constant(1)

            op = tf1.cond(due, apply, lambda: tf.constant(0))
    finish(c, g, op.op)


@gene("train", 1)
def scaled_loss(c, g):
    """The loss is multiplied before the gradient, and the gradients divided: where they are finite they are applied."""
    loss = loss_of(c, g)
    variables = unwritten(c)
    if not variables:
        raise Illegal("no weights")
    by = tf.cast(128.0, loss.dtype)
    pairs = [(tf.convert_to_tensor(d) / tf.cast(by, d.dtype), v) for d, v in gradients_of(c, g, loss * by, variables)]
    c.written = getattr(c, "written", set()) | {v.op.name for _, v in pairs}
    ok = tf.reduce_all([tf.reduce_all(tf.math.is_finite(d)) for d, _ in pairs])
    pairs = [(tf.where(ok, d, tf.zeros_like(d)), v) for d, v in pairs]
    finish(c, g, optimizer_of(c, g, 0.05, None).apply_gradients(pairs))


@gene("train", 0.8)
def against(c, g):
    """Two optimizers, each of some weights, one against the other's loss; one after the other."""
    loss = loss_of(c, g)
    variables = unwritten(c)
    if len(variables) < 2:
        raise Illegal("too few weights")
    half = max(1, len(variables) // 2)
    first = gradients_of(c, g, loss, variables[:half])
    c.written = getattr(c, "written", set()) | {v.op.name for v in variables}
    one = tf1.train.GradientDescentOptimizer(0.05).apply_gradients(first)
    with tf.control_dependencies([one]):
        second = gradients_of(c, g, -loss, variables[half:])
        two = optimizer_of(c, g, 0.02, None).apply_gradients(clipped(c, g, second))
    finish(c, g, two)


@gene("train", 1)
def more_metrics(c, g):
    """Streaming metrics of predictions, which sum up the batch in variables of their own."""
    M, how = tf1.metrics, g.below(5)
    if how < 2:
        x = c.pick(g, 0, is_vector)
        y = c.pick(g, 1, lambda t: t.kind == B and t.rank == 1 and t.batch == 0)
        p = tf.sigmoid(tf.cast(x.tensor, tf.float32))
        value, update = M.accuracy(y.tensor, p > 0.5) if how else M.precision(y.tensor, p > 0.5)
    elif how == 2:
        i = c.pick(g, 0, lambda t: t.kind == I and t.rank == 1 and t.batch == 0 and t.classes > 1)
        value, update = M.mean_per_class_accuracy(i.tensor, (i.tensor + 1) % i.classes, i.classes)
    elif how == 3:
        x = c.pick(g, 0, is_matrix)
        value, update = M.mean_tensor(tf.reduce_mean(x.tensor, 0))
    else:
        x = c.pick(g, 0, is_matrix)
        y = c.pick(g, 1, lambda t: is_matrix(t) and t.shape == x.shape)
        value, update = M.root_mean_squared_error(x.tensor, y.tensor)
    tf.identity(value, name=f"streaming{g.number}")
    finish(c, g, update.op)


@gene("train", 0.8)
def written_in_branch(c, g):
    """A variable that a step writes if a value of the batch, or a counter, says so."""
    x = c.pick(g, 0, is_float)
    v = c.variable(g, [], trainable=False)
    tf1.disable_control_flow_v2()
    c.v1_flow = True
    mean = tf.reduce_mean(x.tensor)
    on = mean > 0.0 if g.chance(0.6) else tf.equal(tf.cast(step_of(c, g), tf.int32) % 2, 0)
    op = tf1.cond(on, lambda: tf.identity(tf1.assign(v, 0.5 * v + mean)), lambda: tf.identity(v))
    finish(c, g, op.op)
