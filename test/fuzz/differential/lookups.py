# SPDX-License-Identifier: Apache-2.0
"""Genes: what numbers of rows, of classes and of features find: lookups, scatters, segments, sparse tensors, parts; slices by
every kind of mask; and integers of 64 bits."""

import numpy as np
import tensorflow.compat.v2 as tf
from families import B, F, I, feed, integers, is_float, is_image, is_matrix, is_rows, is_series, is_vector
from genes import Context, Gene, Illegal, gene, tf1


def is_ids(t):
    return t.kind == I and t.rank == 1 and t.batch == 0 and t.classes > 1


@gene("feed", 1)
def long_label_feed(c, g):
    """Labels of 64 bits, and what is read of them as 32."""
    classes = c.width(g, 2)
    make = lambda rng, shape: rng.randint(0, classes, shape).astype(np.int64)
    item = feed(c, g, [], tf.int64, make, "long", classes)
    c.add(tf.cast(item.tensor, tf.int32), 0, item.shape, I, classes)


@gene("loss", 1.2)
def long_classes_loss(c, g):
    y = c.pick(g, 0, lambda t: t.kind == "long" and t.rank == 1 and 1 < t.classes < 9)
    x = c.pick(g, 1, is_matrix)
    logits = tf.matmul(x.tensor, c.variable(g, [x.shape[1], y.classes]))
    rows = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y.tensor, logits=logits)
    hits = tf.cast(tf.equal(tf.argmax(logits, 1), y.tensor), tf.float32)
    tf.reduce_mean(hits, name=f"hits{g.number}")
    from training import keep, total

    keep(c, total(c, g, rows))


@gene("op", 1.5)
def any_slice(c, g):
    """Slices with an ellipsis, new axes, negative ends and steps, axes that vanish; the rows stay whole."""
    x = c.pick(g, 0, is_rows)
    t, n, how = x.tensor, x.shape[-1], g.below(9)
    start = g.below(n)
    shape = x.shape
    if how == 0:
        h, shape = t[..., start], shape[:-1]
    elif how == 1:
        h, shape = t[..., -1:], (*shape[:-1], 1)
    elif how == 2:
        h, shape = t[:, tf.newaxis, ..., start:], (shape[0], 1, *shape[1:-1], n - start)
    elif how == 3:
        h, shape = t[..., ::-1], shape
    elif how == 4:
        h, shape = t[:, 0], (shape[0], *shape[2:])
    elif how == 5:
        h, shape = t[0:, ..., tf.newaxis], (*shape, 1)
    elif how == 6 and n > 1:
        h, shape = t[..., :-1], (*shape[:-1], n - 1)
    elif how == 7:
        h = tf.strided_slice(t, [0] * x.rank, tf.shape(t), [1] * x.rank)
    elif c.wild:
        k = g.below(x.shape[0])
        h = t[k] if g.chance(0.5) else t[-1]
        c.add(h, None, shape[1:])
        return
    else:
        h, shape = t[:, -1:, ...], (shape[0], 1, *shape[2:])
    c.add(h, 0, tuple(shape))


@gene("op", 1.2)
def scatters(c, g):
    """Sums by class through scatter_nd, counts, and features that are put elsewhere."""
    i = c.pick(g, 0, is_ids)
    x = c.pick(g, 1, is_matrix)
    how = g.below(5)
    if how == 0:
        h = tf.scatter_nd(tf.expand_dims(i.tensor, 1), x.tensor, [i.classes, x.shape[1]])
        c.add(h, None, (i.classes, x.shape[1]))
    elif how == 1:
        rows = tf.range(c.rows(g))
        at = tf.stack([rows, i.tensor], 1)
        h = tf.scatter_nd(at, x.tensor[:, 0], tf.stack([c.rows(g), i.classes]))
        c.add(h, 0, (x.shape[0], i.classes))
    elif how == 2:
        table = c.variable(g, [i.classes, x.shape[1]])
        h = tf.tensor_scatter_nd_add(tf.identity(table), tf.expand_dims(i.tensor, 1), x.tensor * 0.1)
        c.add(h, None, (i.classes, x.shape[1]))
    elif how == 3:
        counts = tf.math.bincount(i.tensor, minlength=i.classes, maxlength=i.classes, dtype=tf.int32)
        c.add(tf.cast(counts, c.dtype) * 0.1, None, (i.classes,))
    else:
        counts = tf.reduce_sum(tf.one_hot(i.tensor, i.classes, dtype=c.dtype), 0)
        c.add(tf.gather(1.0 / (counts + 1.0), i.tensor), 0, x.shape[:1])


@gene("op", 1)
def segments_in_order(c, g):
    """Segments whose numbers are sorted: those of a feed that is split keep together only by chance."""
    x = c.pick(g, 0, is_matrix)
    i = c.pick(g, 1, is_ids)
    if not c.wild and g.chance(0.7):
        raise Illegal("not wild")
    order = tf.argsort(i.tensor)
    ids, rows = tf.gather(i.tensor, order), tf.gather(x.tensor, order)
    op = g.choice([tf.math.segment_sum, tf.math.segment_mean, tf.math.segment_max])
    h = op(rows, ids)
    total = tf.reduce_sum(tf.square(h), 0)
    c.add(total, None, x.shape[1:])


@gene("op", 1.2)
def sparse_lookup(c, g):
    """embedding_lookup_sparse of ids of which some are left out, with weights or without."""
    i = c.pick(g, 0, lambda t: t.kind == I and t.rank == 2 and t.batch == 0 and t.classes > 1)
    width = c.width(g)
    table = c.variable(g, [i.classes, width])
    kept = tf.where(tf.greater_equal(i.tensor, g.below(2)) if g.chance(0.5) else tf.greater_equal(i.tensor, 0))
    values = tf.gather_nd(i.tensor, kept)
    shape = tf.cast(tf.shape(i.tensor), tf.int64)
    ids = tf.SparseTensor(kept, values, shape)
    combiner = g.choice(["sum", "mean", "sqrtn"])
    how = g.below(3)
    if how == 0:
        h = tf1.nn.embedding_lookup_sparse(table, ids, None, combiner=combiner)
    elif how == 1:
        h = tf1.nn.safe_embedding_lookup_sparse([table], ids, combiner=combiner)
    else:
        dense = tf.sparse.to_dense(tf.SparseTensor(kept, tf.cast(values, c.dtype) * 0.1 + 0.1, shape))
        c.add(tf.ensure_shape(dense, [None, i.shape[1]]), 0, i.shape)
        return
    if how == 0 and combiner != "sum":
        raise Illegal("rows without ids")  # of which there is no mean, and fewer results
    h = h if how == 1 else tf.pad(h, [[0, tf.shape(i.tensor)[0] - tf.shape(h)[0]], [0, 0]])
    c.add(tf.ensure_shape(h, [None, width]), 0, (i.shape[0], width))


@gene("op", 0.8)
def sparse_product(c, g):
    x = c.pick(g, 0, is_matrix)
    at = tf.where(tf.greater(x.tensor, 0.1))
    s = tf.SparseTensor(at, tf.gather_nd(x.tensor, at), tf.cast(tf.shape(x.tensor), tf.int64))
    if g.chance(0.5):
        c.add(tf.sparse.sparse_dense_matmul(s, c.variable(g, [x.shape[1], 2])), 0, (x.shape[0], 2))
    else:
        c.add(tf.reshape(tf.sparse.reduce_sum(s, 1), [-1]), 0, x.shape[:1])


@gene("op", 1)
def parts_by_class(c, g):
    """dynamic_partition into several parts, something done with each, and dynamic_stitch."""
    x = c.pick(g, 0, is_matrix)
    i = c.pick(g, 1, is_ids)
    n = min(i.classes, 3)
    to = tf.minimum(i.tensor, n - 1)
    rows = tf.range(tf.shape(x.tensor)[0])
    parts, at = tf.dynamic_partition(x.tensor, to, n), tf.dynamic_partition(rows, to, n)
    done = [tf.tanh(tf.matmul(p, c.variable(g, [x.shape[1], x.shape[1]]))) for p in parts]
    c.add(tf.ensure_shape(tf.dynamic_stitch(at, done), [None, x.shape[1]]), 0, x.shape)
    if g.chance(0.4):
        means = [tf.reduce_sum(p, 0) / (tf.cast(tf.shape(p)[0], c.dtype) + 1.0) for p in parts]
        c.add(tf.stack(means), None, (n, x.shape[1]))


@gene("op", 1)
def distinct(c, g):
    """The values that occur, with their counts."""
    i = c.pick(g, 0, is_ids)
    x = c.pick(g, 1, is_matrix)
    values, where = tf.unique(i.tensor)
    if g.chance(0.5):
        table = c.variable(g, [i.classes, 2])
        h = tf.gather(tf.gather(table, values), where)
        c.add(tf.ensure_shape(h, [None, 2]), 0, (x.shape[0], 2))
    else:
        sums = tf.math.unsorted_segment_sum(x.tensor, where, tf.shape(values)[0])
        c.add(tf.reduce_sum(tf.square(sums), 0), None, x.shape[1:])


@gene("op", 1)
def per_row_gather(c, g):
    """Features that each row names: batch_dims, gather_nd with batch_dims, take_along_axis of an order."""
    x = c.pick(g, 0, is_rows)
    n, how = x.shape[1], g.below(3)
    key = x.tensor if x.rank == 2 else tf.reduce_sum(x.tensor, list(range(2, x.rank)))
    order = tf.argsort(key, 1, direction=g.choice(["ASCENDING", "DESCENDING"]))
    if how == 0:
        h = tf.gather(x.tensor, order, batch_dims=1)
    elif how == 1:
        h = tf.gather(x.tensor, order, axis=1, batch_dims=1)
    else:
        h = tf.gather_nd(x.tensor, tf.expand_dims(order, -1), batch_dims=1)
    c.add(h, 0, x.shape)


@gene("op", 0.8)
def reversed_sequences(c, g):
    x = c.pick(g, 0, is_series)
    i = c.pick(g, 1, lambda t: is_ids(t) and t.classes <= x.shape[1] + 1)
    c.add(tf.reverse_sequence(x.tensor, i.tensor, seq_axis=1, batch_axis=0), 0, x.shape)


@gene("op", 0.8)
def blocks(c, g):
    """Rows are cut out of images, and put together again."""
    x = c.pick(g, 0, lambda t: is_image(t) and t.shape[1] % 2 == 0 and t.shape[2] % 2 == 0)
    h = tf.space_to_batch(x.tensor, [2, 2], [[0, 0], [0, 0]])
    h = tf.tanh(h)
    c.add(tf.ensure_shape(tf1.batch_to_space(h, [[0, 0], [0, 0]], 2), [None, *x.shape[1:]]), 0, x.shape)


@gene("op", 1)
def matrices(c, g):
    """A matrix of each row: inverse, determinant, factor, trace."""
    x = c.pick(g, 0, is_series)
    n = x.shape[2]
    square = tf.matmul(x.tensor, x.tensor, transpose_a=True) + tf.eye(n, dtype=c.dtype) * 2.0
    how = g.below(6)
    if how == 0:
        c.add(tf.linalg.inv(square), 0, (x.shape[0], n, n))
    elif how == 1:
        c.add(tf.linalg.det(square) * 0.01, 0, x.shape[:1])
    elif how == 2:
        c.add(tf.linalg.cholesky(square), 0, (x.shape[0], n, n))
    elif how == 3:
        c.add(tf.linalg.trace(square), 0, x.shape[:1])
    elif how == 4:
        c.add(tf.linalg.solve(square, tf.transpose(x.tensor, [0, 2, 1])), 0, (x.shape[0], n, x.shape[1]))
    else:
        c.add(tf.linalg.diag_part(square) + 0.1, 0, (x.shape[0], n))


@gene("op", 1.2)
def sums_along(c, g):
    """einsum and tensordot over several axes, matmul with an adjoint, a bilinear form."""
    x = c.pick(g, 0, is_series)
    t, (_, time, width), how = x.tensor, x.shape, g.below(6)
    if how == 0:
        c.add(tf.tensordot(t, c.variable(g, [time, width, 2]), [[1, 2], [0, 1]]), 0, (x.shape[0], 2))
    elif how == 1:
        c.add(tf.einsum("bij,jk,bkl->bil", t, c.variable(g, [width, width]), tf.transpose(t, [0, 2, 1])), 0, (x.shape[0], time, time))
    elif how == 2:
        c.add(tf.einsum("...ij,jk->...ik", t, c.variable(g, [width, 2])), 0, (x.shape[0], time, 2))
    elif how == 3:
        c.add(tf.einsum("bij->ij", t) * 0.2, None, (time, width))
    elif how == 4:
        c.add(tf.matmul(t, c.variable(g, [width, 2])), 0, (x.shape[0], time, 2))
    else:
        c.add(tf.einsum("bij->bji", t), 0, (x.shape[0], width, time))
