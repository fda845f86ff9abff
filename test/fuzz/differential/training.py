# SPDX-License-Identifier: Apache-2.0
"""Genes: losses, and what a step writes (optimizers, clips, schedules, averages, counters, updates by hand)."""

import numpy as np
import tensorflow.compat.v2 as tf
from families import B, F, I, is_float, is_matrix, is_rows, is_vector
from genes import Context, Gene, Illegal, gene, tf1

L = tf1.losses


def as_scores(c, g, classes, key):
    """A matrix [rows, classes], made of any rows."""
    x = c.pick(g, key, lambda t: t.kind == F and t.batch == 0)
    t = x.tensor
    if x.rank == 1:
        t = tf.expand_dims(t, 1)
    elif x.rank > 2:
        t = tf.reduce_sum(t, list(range(2, x.rank)))
    width = x.shape[1] if x.rank > 1 else 1
    if width == classes and g.chance(0.5):
        return t
    return tf.matmul(t, c.variable(g, [width, classes]))


def total(c, g, rows):
    """One number of the losses of rows."""
    how = g.below(8)
    n = c.rows(g)
    if how <= 1:
        return tf.reduce_mean(rows)
    if how == 2:
        return tf.reduce_sum(rows) * 0.1
    if how == 3:
        return tf.reduce_sum(rows) / tf.cast(n, rows.dtype)
    if how == 4:
        return tf.reduce_sum(rows) / tf.cast(tf.size(rows), rows.dtype)
    if how == 5:
        return tf.reduce_sum(rows / tf.cast(c.batch, rows.dtype))
    if how == 6:  # weighted
        try:
            m = c.pick(g, "weights", lambda t: t.batch == 0 and t.rank == 1 and t.kind in (F, B))
        except Illegal:
            return tf.reduce_mean(rows)
        w = tf.cast(m.tensor, rows.dtype) if m.kind == B else tf.nn.softplus(tf.cast(m.tensor, rows.dtype))
        if rows.shape.rank != 1:
            rows = tf.reduce_sum(rows, list(range(1, rows.shape.rank)))
        below = tf.reduce_sum(w) + 0.5
        return g.choice([
            lambda: tf.reduce_sum(rows * w) / below,
            lambda: L.compute_weighted_loss(rows, w, reduction=L.Reduction.SUM_BY_NONZERO_WEIGHTS),
            lambda: L.compute_weighted_loss(rows, w, reduction=L.Reduction.MEAN),
            lambda: tf.reduce_mean(rows * w),
        ])()  # fmt: skip
    axes = list(range(1, rows.shape.rank))
    return tf.reduce_mean(tf.reduce_sum(rows, axes) if axes else rows)


def keep(c, loss):
    c.losses.append(tf.identity(tf.cast(loss, c.dtype), name=f"loss{c.gene.number}"))


@gene("loss", 4)
def squares(c, g):
    """A distance of scores to rows that are fed, or to nothing."""
    x = c.pick(g, 0, lambda t: t.kind == F and t.batch == 0)
    try:
        y = c.pick(g, 1, lambda t: t.kind == F and t.shape == x.shape and t.batch == 0 and t.number != x.number).tensor
    except Illegal:
        y = tf.cast(0.3, c.dtype)
    error = x.tensor - y
    rows = g.choice([
        lambda: tf.square(error),
        lambda: tf.abs(error),
        lambda: tf.where(tf.abs(error) < 0.5, 0.5 * tf.square(error), 0.5 * tf.abs(error) - 0.125),
        lambda: tf.math.log(1.0 + tf.square(error)),
        lambda: tf.nn.relu(1.0 - x.tensor * tf.sign(y + 0.05)),
        lambda: tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.sigmoid(y + tf.zeros_like(x.tensor)), logits=x.tensor),
    ])()  # fmt: skip
    keep(c, total(c, g, rows))


@gene("loss", 1.5)
def library_loss(c, g):
    x = c.pick(g, 0, is_rows)
    y = c.pick(g, 1, lambda t: t.kind == F and t.shape == x.shape and t.batch == 0)
    weights = 1.0
    if g.chance(0.5):
        try:
            m = c.pick(g, 2, lambda t: t.kind == B and t.shape == x.shape[:1] and t.batch == 0)
            weights = tf.cast(tf.reshape(m.tensor, [-1] + [1] * (x.rank - 1)), tf.float32)
        except Illegal:
            pass
    how = g.choice([L.Reduction.SUM, L.Reduction.MEAN, L.Reduction.SUM_BY_NONZERO_WEIGHTS,
                    L.Reduction.SUM_OVER_BATCH_SIZE, L.Reduction.SUM_OVER_NONZERO_WEIGHTS])  # fmt: skip
    op = g.choice([L.mean_squared_error, L.absolute_difference, L.huber_loss, L.hinge_loss])
    keep(c, op(tf.sigmoid(y.tensor), x.tensor, weights, reduction=how))


@gene("loss", 3)
def classes_loss(c, g):
    y = c.pick(g, 0, lambda t: t.kind == I and t.rank == 1 and t.batch == 0 and 1 < t.classes < 9)
    logits = as_scores(c, g, y.classes, 1)
    if g.chance(0.5):
        rows = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y.tensor, logits=logits)
    else:
        hot = tf.one_hot(y.tensor, y.classes, dtype=c.dtype)
        op = g.choice([tf.nn.softmax_cross_entropy_with_logits, tf.nn.sigmoid_cross_entropy_with_logits])
        rows = op(labels=hot, logits=logits)
    c.add(tf.argmax(logits, 1, output_type=tf.int32), 0, (c.batch,), I, y.classes)
    hits = tf.cast(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), y.tensor), c.dtype)
    tf.reduce_mean(hits, name=f"accuracy{g.number}")
    keep(c, total(c, g, rows))


@gene("loss", 1)
def own_negatives(c, g):
    """Every row of the batch against every other."""
    if not c.wild:
        raise Illegal("not wild")
    x = c.pick(g, 0, is_matrix)
    y = c.pick(g, 1, lambda t: is_matrix(t) and t.shape[1] == x.shape[1])
    scores = tf.matmul(x.tensor, y.tensor, transpose_b=True)
    n = c.rows(g)
    labels = tf.range(n) if g.chance(0.6) else None
    if labels is None:
        rows = tf.nn.softmax_cross_entropy_with_logits(labels=tf.eye(n, dtype=c.dtype), logits=scores)
    else:
        rows = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
    keep(c, total(c, g, rows))


@gene("loss", 2)
def of_anything(c, g):
    """Values without a batch axis: a table of sums, a mean, a number."""
    x = c.pick(g, 0, lambda t: t.kind == F and t.batch is None)
    keep(c, g.choice([tf.reduce_mean, tf.reduce_sum, tf.reduce_max])(tf.square(x.tensor - 0.2)))


@gene("loss", 1.5)
def penalty(c, g):
    variables = tf1.trainable_variables()
    if not variables:
        raise Illegal("no weights")
    v = g.choice(sorted(variables, key=lambda v: v.op.name))
    keep(c, g.choice([lambda: 0.1 * tf.nn.l2_loss(v), lambda: 0.05 * tf.reduce_sum(tf.abs(v)),
                      lambda: 0.1 * tf.reduce_mean(tf.square(v))])())  # fmt: skip


# --- What a step writes. ---


def rate_of(c, g, step):
    how = g.below(9)
    r = 0.05
    if how == 0:
        return tf.cast(tf1.train.exponential_decay(r, step, 1, 0.5), c.dtype)
    if how == 1:
        return tf.cast(tf1.train.piecewise_constant(step, [0, 1], [r, r / 2, r / 4]), c.dtype)
    if how == 2:
        return tf.cast(tf1.train.polynomial_decay(r, step, 4, 0.001), c.dtype)
    if how == 3:
        return tf.cast(r, c.dtype) / tf.cast(step + 1, c.dtype)
    if how == 4:
        scalars = [t for t in c.pool if t.kind == F and t.tensor.name in c.feeds and t.rank == 0]
        if scalars:
            return scalars[0].tensor * r
    return r


def optimizer_of(c, g, rate, step):
    T = tf1.train
    how = g.below(14 if c.head["dtype"] == "float32" else 12)  # proximal ones take float32
    return [
        lambda: T.GradientDescentOptimizer(rate),
        lambda: T.GradientDescentOptimizer(rate),
        lambda: T.MomentumOptimizer(rate, 0.9),
        lambda: T.MomentumOptimizer(rate, 0.9, use_nesterov=True),
        lambda: T.AdagradOptimizer(rate, 0.1),
        lambda: T.AdadeltaOptimizer(1.0, 0.9, 0.01),
        lambda: T.AdamOptimizer(rate, epsilon=0.01),
        lambda: T.AdamOptimizer(rate, epsilon=0.01),
        lambda: T.FtrlOptimizer(rate, initial_accumulator_value=0.1, l1_regularization_strength=0.01),
        lambda: T.FtrlOptimizer(rate, initial_accumulator_value=0.1, l2_shrinkage_regularization_strength=0.01),
        lambda: T.RMSPropOptimizer(rate, 0.9, 0.5, 0.1),
        lambda: T.RMSPropOptimizer(rate, 0.9, 0.5, 0.3, centered=True),
        lambda: T.ProximalGradientDescentOptimizer(rate, 0.01, 0.01),
        lambda: T.ProximalAdagradOptimizer(rate, 0.1, 0.01),
    ][how]()


def gradients_of(c, g, loss, variables):
    variables = sorted(variables, key=lambda v: v.op.name)
    if all(d is None for d in tf.gradients(loss, variables)):
        # Nothing of the loss can be trained yet.
        variables = [c.variable(g, [])]
        loss = loss * variables[0]
    pairs = [(d, v) for d, v in zip(tf.gradients(loss, variables), variables) if d is not None]
    if not pairs:
        raise Illegal("no gradient")
    # A reference is memory: without a gate an update may come before another gradient has read it, on one device, too.
    if any(not v.op.type.startswith("VarHandle") for v in tf1.global_variables()) or g.chance(0.6):
        gated = tf.tuple([d for d, _ in pairs])
        pairs = [(d, v) for d, (_, v) in zip(gated, pairs)]
    return pairs


def clipped(c, g, pairs):
    how = g.below(9)
    if how == 0:
        found, _ = tf.clip_by_global_norm([d for d, _ in pairs], 0.5)
        return list(zip(found, [v for _, v in pairs]))
    if how == 1:
        return [(tf.clip_by_norm(d, 0.3), v) for d, v in pairs]
    if how == 2:
        return [(tf.clip_by_value(tf.convert_to_tensor(d), -0.1, 0.1), v) for d, v in pairs]
    if how == 3:  # weight decay
        return [(tf.convert_to_tensor(d) + 0.01 * v, v) for d, v in pairs]
    if how == 4 and len(pairs) > 1:
        norm = tf.linalg.global_norm([d for d, _ in pairs])
        return [(tf.convert_to_tensor(d) / (norm + 0.1), v) for d, v in pairs]
    return pairs


def loss_of(c, g):
    if not c.losses:
        # No loss could be made: of what there is.
        x = c.pick(g, "any", is_float, lambda t: t.batch is not None)
        keep(c, tf.reduce_mean(tf.square(x.tensor)))
    if len(c.losses) > 1 and g.chance(0.3):
        return c.losses[g.below(len(c.losses))]
    return tf.add_n([tf.cast(l, c.dtype) for l in c.losses]) if len(c.losses) > 1 else c.losses[0]


def finish(c, g, op):
    c.trains.append(op)


def step_of(c, g):
    return tf1.train.get_or_create_global_step()


@gene("train", 6)
def optimize(c, g):
    loss = loss_of(c, g)
    # A slot has the name of its variable: no two optimizers write one.
    written = getattr(c, "written", set())
    variables = [v for v in tf1.trainable_variables() if v.op.name not in written]
    if g.chance(0.15) and len(variables) > 1:
        variables = [v for v in variables if g.chance(0.6)] or variables
    if not variables:
        variables = [c.variable(g, [2])]
        loss = loss + tf.reduce_sum(variables[0]) * tf.stop_gradient(loss)
    step = step_of(c, g) if g.chance(0.7) else None
    rate = rate_of(c, g, step) if step is not None else 0.05
    pairs = clipped(c, g, gradients_of(c, g, loss, variables))
    c.written = written | {v.op.name for _, v in pairs}
    updates = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
    fresh = [u for u in updates if u not in getattr(c, "updated", [])]
    c.updated = updates
    with tf.control_dependencies(fresh):
        optimizer = optimizer_of(c, g, rate, step)
        train = optimizer.apply_gradients(pairs, global_step=step)
    if g.chance(0.2):
        average = tf1.train.ExponentialMovingAverage(0.9, step if g.chance(0.5) else None)
        with tf.control_dependencies([train]):
            train = average.apply([v for _, v in pairs])
    finish(c, g, train)


@gene("train", 2.5)
def optimize_by_hand(c, g):
    """Plain assignments: descent, momentum, Adam-like."""
    loss = loss_of(c, g)
    written = getattr(c, "written", set())
    variables = [v for v in tf1.trainable_variables() if v.op.name not in written]
    pairs = clipped(c, g, gradients_of(c, g, loss, variables))
    c.written = written | {v.op.name for _, v in pairs}
    how, updates = g.below(4), []
    with tf.control_dependencies([d.op for d, _ in pairs if isinstance(d, tf.Tensor)]):
        for d, v in pairs:
            if isinstance(d, tf.IndexedSlices) and g.chance(0.6):
                updates.append(tf1.scatter_sub(v, d.indices, 0.05 * d.values))
                continue
            d = tf.convert_to_tensor(d)
            if how == 0:
                updates.append(tf1.assign_sub(v, 0.05 * d))
            elif how == 1:
                updates.append(tf1.assign(v, v - 0.05 * d))
            else:
                m = c.variable(g, v.shape, value=np.zeros(v.shape), trainable=False)
                if how == 2:
                    new = 0.9 * m + d
                    updates += [tf1.assign(m, new), tf1.assign_sub(v, 0.05 * new)]
                else:
                    s = c.variable(g, v.shape, value=np.zeros(v.shape) + 0.1, trainable=False)
                    first, second = 0.9 * m + 0.1 * d, 0.99 * s + 0.01 * tf.square(d)
                    change = first / (tf.sqrt(second) + 0.01) + 0.01 * v
                    updates += [tf1.assign(m, first), tf1.assign(s, second), tf1.assign(v, v - 0.05 * change)]
    finish(c, g, tf.group(*updates))


@gene("train", 1.5)
def running_mean(c, g):
    """A moving average of something of the step, in a train op of its own."""
    x = c.pick(g, 0, lambda t: t.kind == F)
    value = x.tensor
    if x.batch is not None:
        value = g.choice([tf.reduce_mean, tf.reduce_mean, tf.reduce_sum, tf.reduce_max])(value, x.batch)
    shape = [s for a, s in enumerate(x.shape) if a != x.batch]
    average = c.variable(g, shape, trainable=False)
    value = tf.reshape(value, shape)
    how = g.below(3)
    if how == 0:
        op = tf1.assign(average, 0.9 * average + 0.1 * value)
    elif how == 1:
        op = tf1.assign_sub(average, (average - value) * 0.1)
    else:
        op = tf1.assign_add(average, value)
    finish(c, g, op)


@gene("train", 1)
def moving_loss(c, g):
    if not c.losses:
        raise Illegal("no loss")
    average = tf1.train.ExponentialMovingAverage(0.9)
    loss = g.choice(c.losses)
    op = average.apply([loss])
    tf.identity(average.average(loss), name=f"smooth{g.number}")
    finish(c, g, op)


@gene("train", 1)
def counter(c, g):
    """How many rows there were; integers."""
    x = c.pick(g, 0, lambda t: t.batch == 0)
    seen = c.variable(g, [], value=np.int32(0), trainable=False, dtype=tf.int32)
    how = g.below(3)
    n = tf.shape(x.tensor)[0] if how else tf.size(x.tensor)
    if how == 2 and x.kind == I:
        n = tf.reduce_sum(x.tensor)
    finish(c, g, tf1.assign_add(seen, n))


@gene("train", 1)
def metric(c, g):
    x = c.pick(g, 0, lambda t: t.kind == F)
    value, update = tf1.metrics.mean(x.tensor)
    tf.identity(value, name=f"metric{g.number}")
    finish(c, g, update.op)


@gene("train", 0.8)
def scattered(c, g):
    """Rows of a table that the batch names, written by hand."""
    i = c.pick(g, 0, lambda t: t.kind == I and t.batch == 0 and t.rank == 1 and t.classes > 1)
    x = c.pick(g, 1, is_matrix)
    table = c.variable(g, [i.classes, x.shape[1]], trainable=False)
    op = tf1.scatter_add if g.chance(0.5) else tf1.scatter_sub
    finish(c, g, op(table, i.tensor, 0.1 * x.tensor).op)
