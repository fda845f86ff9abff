# SPDX-License-Identifier: Apache-2.0
"""Rules must not relate what is not related: operands of every kind in every place.

Each case is an op with an operand that is a size of one replica, a partial sum, a slice, or split along another axis,
where a rule may forget to look. Run like test_rules.py; a result is right, or an error or a warning names its op.
PROVED must be right without one.
"""

import re

import harness
import numpy as np
import pytest
import tensorflow as tf
import test_rules
from test_rules import close, options, run, said_of

tf1 = tf.compat.v1
raw = tf.raw_ops


def sizes(f):
    """Sizes of a replica's rows, where a rule may take them for those of all."""
    rows = tf.shape(f.x)[0]
    local = tf.reshape(tf.tile(f.table, [1, 3]), tf.stack([rows, -1]))  # [4, 15] in other rows on each replica
    wide = tf.tile(f.table, [3, 1])  # as many rows as the batch
    one = tf.expand_dims(f.x[:, :1], 2)
    return {
        "reshape": local,
        "slice_table": tf.slice(wide, [0, 0], tf.stack([rows, 5])),
        "strided_table": wide[:rows],
        "strided_from": tf.slice(tf.concat([wide, wide], 0), tf.stack([rows, 0]), [2, 5]),
        "fill": tf.fill(tf.stack([rows, 3]), 2.0) * f.x[:, :3],
        "fill_two": tf.fill(tf.stack([rows, rows]), 2.0),
        "fill_number": tf.fill([3], tf.cast(rows, tf.float32)),
        "tile_two": tf.tile(one, tf.stack([1, rows, 1])),
        "tile_table": tf.tile(f.table, tf.stack([rows, 1])),
        "broadcast_two": tf.broadcast_to(one[:, :, 0], tf.stack([rows, rows])),
        "resize": raw.ResizeBilinear(images=f.image, size=tf.stack([rows, rows])),
        "pad_value": tf.pad(f.x, [[0, 0], [1, 0]], constant_values=tf.cast(rows, tf.float32)),
        "segment_count": tf.math.unsorted_segment_sum(f.part, [0, 1, 0, 2], rows),
        "segment_rows": tf.math.unsorted_segment_sum(f.x, f.ids, rows),
        "one_hot": tf.one_hot([0, 1], rows),
        "range": tf.range(rows),
        "range_sum": tf.reduce_sum(tf.range(rows)),
        "linspace": tf.linspace(0.0, 1.0, rows),
        "odd_size": tf.cast(rows + 1, tf.float32),
        "fill_odd": tf.fill([rows + 1], 1.0),
        "eye": tf.eye(rows),
        "matrix_diag": raw.MatrixDiagV3(
            diagonal=f.part, k=0, num_rows=rows // 12 + 3, num_cols=rows // 12 + 3, padding_value=0.0
        ),
        "top_k": tf.nn.top_k(f.part, rows // 12 + 1).values,
        "roll": tf.roll(f.part, rows, 0),
        "matrix_diag_rows": raw.MatrixDiagV2(
            diagonal=tf.ones([2]), k=[0, 0], num_rows=rows, num_cols=2, padding_value=0.0
        ),
        "cumsum_axis": tf.cumsum(f.part, tf.minimum(rows, 0)),
    }


def ragged(f):
    """Row counts that depend on data."""
    chosen = tf.boolean_mask(f.x, f.bits[:, 0])
    where = tf.where(f.bits[:, 0])
    count = tf.shape(chosen)[0]
    distinct, index = tf.unique(f.ids)
    return {
        "mask": chosen,
        "mask_sum": tf.reduce_sum(chosen, 0),
        "mask_mean": tf.reduce_mean(chosen, 0),
        "mask_count": count,
        "mask_number": tf.cast(count, tf.float32),
        "mask_fill": tf.fill([count], 3.0),
        "mask_fill_sum": tf.reduce_sum(tf.fill([count], 3.0)),
        "mask_zeros": tf.zeros_like(chosen),
        "mask_ones": tf.reduce_sum(tf.ones_like(chosen)),
        "mask_table": tf.slice(tf.tile(f.table, [3, 1]), [0, 0], tf.stack([count, 5])),
        "mask_reshape": tf.reshape(tf.tile(f.table, [3, 1]), tf.stack([-1, 5]))[:count],
        "where": where,
        "unique": distinct,
        "unique_index": index,
        "unique_rows": tf.gather(f.table, distinct),
        "partition": tf.dynamic_partition(f.x, tf.cast(f.bits[:, 0], tf.int32), 2)[1],
    }


def orders(f):
    """Rows in another order, of another place, or along another axis."""
    both = tf.add_n([f.x[::-1], f.y])  # the sizes say that these are the rows of the batch
    cut = tf.add_n([f.x[::-1, 1:], f.y[:, 1:]])
    kernel = tf.reshape(tf.tile(f.row * 1.0, [4]), [2, 2, 2, 2])
    first = tf.transpose(f.image, [0, 3, 1, 2])
    return {
        "reversed": both,
        "reversed_grad": tf.gradients(both, f.x, f.y)[0],
        "reversed_cut_grad": tf.gradients(cut, f.x, f.y[:, 1:])[0],
        "reverse_rows": tf.reverse(f.x, [0]),
        "concat_rows": tf.concat([f.x, f.y], 0),
        "concat_rows_sum": tf.reduce_sum(tf.concat([f.x, f.y * 2.0], 0), 0),
        "concat_rows_split": tf.split(tf.square(tf.concat([f.x, f.y], 0)), 2)[1],
        "concat_rows_grad": tf.gradients(tf.square(tf.concat([f.x, f.y * 3.0], 0)), f.y)[0],
        "concat_rows_mean_grad": tf.gradients(tf.reduce_mean(tf.square(tf.concat([f.x, f.y * 3.0], 0)), 0), f.y)[0],
        "concat_three_mean": tf.reduce_mean(tf.square(tf.concat([f.x, f.y + f.row, f.x[:, 1:2] * f.y], 0)), 0),
        "concat_rows_dot": tf.matmul(tf.concat([f.x, f.y], 0), tf.concat([f.y, f.x * f.x], 0), transpose_a=True),
        "concat_rows_times": tf.reduce_sum(tf.concat([f.x, f.y], 0) * tf.concat([f.y, f.x * f.x], 0), 0),
        "concat_other_order": tf.reduce_sum(
            tf.concat([f.x, tf.concat([f.y, f.y], 0)], 0) * tf.concat([tf.concat([f.x, f.x], 0), f.y], 0), 0
        ),
        "concat_rows_segments": tf.math.unsorted_segment_sum(
            tf.concat([f.x, f.y], 0), tf.concat([f.ids, f.ids + 1], 0), 6
        ),
        "concat_rows_unique": tf.unique(tf.concat([f.ids, f.ids + 1], 0))[1],
        "concat_rows_first": tf.split(tf.concat([f.x, f.y], 0), 2)[0][0],
        "concat_rows_reshaped": tf.reduce_sum(
            tf.reshape(tf.concat([f.x, f.y], 0), [-1]) * tf.reshape(tf.concat([f.x, f.x], 1), [-1])
        ),
        "concat_rows_uneven": tf.split(tf.concat([f.x, f.y, f.y], 0), 2)[0],
        "concat_row": tf.concat([f.x, tf.expand_dims(f.row, 0)], 0),
        "stack_rows": tf.stack([f.x, f.y], 0),
        "unstack": tf.unstack(f.turned, axis=0)[1],
        "transpose": tf.matmul(f.x, f.y, transpose_b=True),
        "gram": tf.matmul(f.x, f.y, transpose_a=True),
        "gram_turned": tf.matmul(f.turned, f.y),
        "outer": tf.expand_dims(f.x[:, 0], 1) * tf.expand_dims(f.y[:, 0], 0),
        "softmax_rows": tf.nn.softmax(f.turned),
        "bias_grad": raw.BiasAddGrad(out_backprop=first, data_format="NCHW"),
        "bias_grad_turned": raw.BiasAddGrad(out_backprop=f.turned),
        "bias_grad_channel": raw.BiasAddGrad(out_backprop=tf.transpose(f.image, [1, 0, 2, 3]), data_format="NCHW"),
        "bias_first": raw.BiasAdd(value=first, bias=f.part[:2], data_format="NCHW"),
        "gather_turned": tf.gather(f.turned, f.ids, axis=0),
        "gather_own": tf.gather(f.x, f.ids, axis=0),
        "gather_column": tf.gather(f.table, f.ids, axis=1),
        "gather_batch": tf.gather(f.series, f.ids % 3, axis=1, batch_dims=1),
        "gather_nd_own": tf.gather_nd(f.x, tf.stack([f.ids, f.ids], 1)),
        "scatter_table": tf.scatter_nd(tf.expand_dims(f.ids, 1), f.table[:1] + f.x[:, :1], [4, 5]),
        "scatter_row": tf.scatter_nd([[1]], f.x[:1], [3, 4]),
        "segment_replicated": tf.math.unsorted_segment_sum(f.x, np.arange(12) % 3, 3),
        "segment_turned": tf.math.unsorted_segment_sum(f.turned, [0, 1, 0, 1], 2),
        "conv_turned": tf.nn.conv2d(tf.transpose(f.image, [1, 0, 2, 3]), f.filter, 1, "SAME"),
        "conv_kernel": tf.nn.conv2d(f.image, kernel * tf.reduce_sum(f.part), 1, "VALID"),
        "pool_turned": tf.nn.max_pool2d(tf.transpose(f.image, [1, 0, 2, 3]), 2, 2, "VALID"),
        "select_row": tf.where(f.bits, f.x, tf.broadcast_to(f.row, tf.shape(f.x))),
        "select_part": tf.where(f.bits, f.x, f.part),
        "select_mean": tf.where([True, False, True, False], f.part, f.mean),
        "argmax_rows": tf.argmax(f.x, 0),
        "prod": tf.reduce_prod(f.x, 0),
        "reduce_unknown": tf.reduce_sum(f.x, tf.reduce_max(f.ids) * 0),
        "reduce_own_axis": tf.reduce_sum(tf.stack([f.part, f.part]), f.ids[0] % 2),
        "slice_own": f.part[f.ids[0] :],
        "transpose_own": tf.transpose(tf.stack([f.part, f.part]), tf.stack([f.ids[0] % 2, 1 - f.ids[0] % 2])),
        "reverse_own": tf.reverse(f.part, [f.ids[0] * 0]),
        "roll_own": tf.roll(f.part, f.ids[0], 0),
    }


def zeros(f):
    """A zero has every layout; what is made of it is not always zero."""
    nil = tf.zeros_like(f.x)
    part = tf.zeros_like(f.part)
    grads = {
        "tanh": raw.TanhGrad(y=nil, dy=f.x),
        "sigmoid": raw.SigmoidGrad(y=nil, dy=f.x),
        "softplus": raw.SoftplusGrad(gradients=f.x, features=nil),
        "softsign": raw.SoftsignGrad(gradients=f.x, features=nil),
        "elu": raw.EluGrad(gradients=f.x, outputs=nil),
        "selu": raw.SeluGrad(gradients=f.x, outputs=nil),
        "leaky": raw.LeakyReluGrad(gradients=f.x, features=nil),
    }
    result = {f"{key}_sum": tf.reduce_sum(value, 0) + f.row for key, value in grads.items()}
    result.update({f"{key}_times": value * tf.reduce_sum(f.y, 0) + f.mean for key, value in grads.items()})
    flat = raw.TanhGrad(y=part, dy=f.mean)
    result["tanh_part"] = flat + f.row
    result["cosine"] = tf.cos(nil) + f.x
    result["cosine_part"] = tf.cos(part) + f.part
    result["ones"] = tf.ones_like(nil) + f.x
    result["ones_part"] = tf.ones_like(part) + f.part
    result["ones_sum"] = tf.reduce_sum(tf.ones_like(nil), 0)
    result["join"] = tf.concat([nil, f.x], 1)
    result["join_part"] = tf.concat([part, f.part, f.row], 0)
    result["stack_mean"] = tf.stack([f.mean, part, f.part])
    result["unknown_shape"] = tf.zeros_like(tf1.placeholder_with_default(f.x, None))
    nil3, none = tf.zeros([4]), tf.zeros([0, 4])
    f.values["given"] = np.full(4, 0.5, np.float32)
    given = tf1.placeholder_with_default(nil3, [4], name="given")
    labels = tf.zeros([100], tf.int32)
    spread = {
        "softmax": tf.nn.softmax(nil3),
        "log_softmax": tf.nn.log_softmax(nil3),
        "top_k": tf.cast(tf.nn.top_k(nil3, 4).indices, tf.float32),
        "pad": tf.pad(nil3[:3], [[1, 0]], constant_values=1.0),
        "cumprod": tf.math.cumprod(nil3, exclusive=True),
        "logsumexp": tf.math.cumulative_logsumexp(nil3),
        "empty_prod": tf.reduce_prod(none, 0),
        "empty_max": tf.maximum(tf.reduce_max(none, 0), -5.0),
        "one_hot": tf.one_hot(labels, 4)[0],
        "scattered": tf.tensor_scatter_nd_update(nil3, [[1]], [2.0]),
        "least": tf.tensor_scatter_nd_max(nil3, [[1]], [2.0]),
        "segment": tf.maximum(tf.math.unsorted_segment_max(tf.zeros([3, 4]), [0, 0, 2], 3)[1], -5.0),
        "divided": tf.where(tf.math.is_nan(nil3 / tf.zeros([4])), f.row, 2.0 * f.row),
        "given": given,
        "selected": tf.where(nil3 > 0, nil3, nil3 + 1.0),
        "losses": tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.zeros([100, 3]))[:4],
        "normalised": raw.FusedBatchNormV3(
            x=tf.zeros([2, 2, 2, 4]), scale=nil3, offset=f.row, mean=nil3, variance=nil3, is_training=False
        ).y[0, 0, 0],
    }
    for key, value in spread.items():
        result[f"{key}_of_zeros"] = f.part + value
        result[f"{key}_of_zeros_beside_count"] = tf.cast(tf.shape(f.x)[0], tf.float32) * 0.1 + value
    return result


def zero_sizes(f):
    """Zeros have every layout, but one size: that of all rows, or that of the rows of a replica."""
    f.values["width"] = np.array(4, np.int32)
    width = tf1.placeholder(np.int32, [], name="width")
    batch, on = tf.shape(f.x)[0], tf.reduce_sum(f.x) > 0.0
    nil, own = tf.zeros(tf.stack([batch, width])), tf.zeros(tf.stack([batch, 4]))
    labels = tf.zeros([12], tf.int64) + tf.zeros([12], tf.int64)
    cell = {"w": tf.zeros([8, 16]), "b": tf.zeros([16])}

    def step(state):
        gates = {"wci": tf.zeros([4]), "wcf": tf.zeros([4]), "wco": tf.zeros([4]), **cell}
        return raw.LSTMBlockCell(x=f.x, cs_prev=state, h_prev=state, **gates).h

    return {
        "add": f.x + nil,
        "add_own": f.x + own,
        "sum": tf.add_n([f.x, nil]),
        "mul": f.x * nil,
        "mul_own": f.x * own,
        "maximum": tf.maximum(f.x - 0.5, nil),
        "select": tf.where(f.bits, f.x, nil),
        "select_zeros": tf.where(f.bits, nil, nil),
        "select_own": tf.where(f.bits, f.x, own),
        "relu_grad": raw.ReluGrad(gradients=nil, features=f.x),
        "tanh_grad": raw.TanhGrad(y=nil, dy=f.x),
        "join": tf.concat([f.x, nil], 1),
        "join_own": tf.concat([f.x, own], 1),
        "stack": tf.stack([f.x, nil], 1),
        "matmul": tf.matmul(nil, f.x, transpose_a=True),
        "xent": tf.nn.softmax_cross_entropy_with_logits(labels=nil, logits=f.x),
        "sparse_xent": raw.SparseSoftmaxCrossEntropyWithLogits(features=f.x, labels=labels).loss,
        "cell": step(nil),
        "cell_own": step(own),
        "merge": tf1.cond(on, lambda: f.x * 2.0, lambda: nil),
        "merge_own": tf1.cond(on, lambda: f.x * 2.0, lambda: tf.identity(own)),
        "merge_zeros": tf1.cond(on, lambda: nil * 1.0, lambda: own * 1.0),
        "merge_table": tf1.cond(on, lambda: tf.tile(f.table, [3, 1])[:, :4], lambda: own * 1.0),
        "loop": tf1.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, v + f.x), (0, nil))[1],
        "loop_own": tf1.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, v + f.x), (0, own))[1],
        "reshape": tf.reshape(nil, tf.stack([batch, 4])) + f.x,
    }


def row_numbers(f):
    """The numbers of a replica's rows: right where they look up its rows, and nowhere else."""
    batch = tf.shape(f.x)[0]
    rows, rows64 = tf.range(batch), tf.range(tf.cast(batch, tf.int64))
    column, wide = rows[:, None], tf.tile(f.table, [3, 1])  # as many rows as the batch
    pairs = tf.stack([rows, f.ids], 1)
    tiled = tf.tile(tf.expand_dims(rows, 1), [1, 4])
    shape = tf.shape(f.x)
    return {
        "pick": tf.gather_nd(f.x, pairs),
        "pick_grad": tf.gradients(tf.reduce_mean(tf.gather_nd(f.x, pairs) ** 2), f.x)[0],
        "pick_mean": tf.reduce_mean(tf.gather_nd(f.x, pairs)),
        "pick_concat": tf.gather_nd(f.x, tf.concat([column, f.ids[:, None]], 1)),
        "pick_rows": tf.gather_nd(f.series + f.x[:, :1, None], column),
        "pick_tiled": tf.gather_nd(f.x, tf.stack([tiled, f.ints % 4], 2)),
        "pick_64": tf.gather_nd(f.x, tf.cast(tf.stack([rows64, tf.cast(f.ids, tf.int64)], 1), tf.int32)),
        "pick_same": tf.gather_nd(tf.ones_like(f.x) * f.row, pairs),
        "look_up": tf.gather(f.x, rows),
        "look_up_column": tf.gather(f.turned, rows, axis=1),
        "scatter": tf.scatter_nd(pairs, f.y[:, 0], shape),
        "scatter_rows": tf.scatter_nd(column, f.y, shape),
        "segment": tf.math.unsorted_segment_sum(f.y, rows, batch),
        "to_table": tf.gather_nd(wide, pairs),
        "to_table_rows": tf.gather(wide, rows),
        "second": tf.gather_nd(f.x, tf.stack([f.ids, rows % 4], 1)),
        "swapped": tf.gather_nd(f.turned, tf.stack([f.ids, rows], 1)),
        "moved": tf.gather(f.x, (rows + 1) % batch),
        "doubled": tf.gather(tf.concat([f.x, f.y], 0), rows * 2),
        "joined": tf.gather(tf.concat([f.x, f.y], 0), rows),
        "half": tf.gather(f.x, tf.range(batch // 2)),
        "number": tf.cast(rows, tf.float32) * f.x[:, 0],
        "float": tf.gather(f.x, tf.cast(tf.cast(rows, tf.float32), tf.int32)),
        "shape": tf.reduce_sum(tf.fill(rows[-1:], 1.0)),
        "compare": tf.where(tf.equal(rows, f.ids), f.x[:, 0], f.y[:, 0]),
        "one_hot": tf.one_hot(rows, 4),
        "padded": tf.gather(f.x, tf.pad(rows, [[0, 0]])),
        "least": tf.gather(f.x, tf.minimum(rows, 1)),
        "reversed": tf.gather(f.x, tf.reverse(rows, [0])),
        "first": rows[0],
        "labels": tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.minimum(rows, 3), logits=f.x),
        "scatter_table": tf.scatter_nd(pairs, f.y[:, 0], [12, 4]),
        "scatter_part": tf.scatter_nd(column, tf.tile(f.part[None], tf.stack([batch, 1])), shape),
        "segment_table": tf.math.unsorted_segment_sum(f.y, rows, 12),
    }


def hits(f):
    """Which labels were sampled: a sparse matrix with the rows of a replica, and what is not one."""
    labels = tf.cast(f.ids, tf.int64)
    two = tf.stack([labels, labels // 2], 1)
    batch, classes = tf.shape(f.ids)[0], tf.constant([0, 3, 1], tf.int64)
    hit = raw.ComputeAccidentalHits(true_classes=two, sampled_candidates=classes, num_true=2)
    same = raw.ComputeAccidentalHits(true_classes=two[::1], sampled_candidates=classes, num_true=2)
    rows, columns = tf.reshape(hit.indices, [-1, 1]), tf.reshape(tf.cast(hit.ids, tf.int32), [-1, 1])
    indices, shape = tf.concat([rows, columns], 1), tf.stack([batch, 3])

    def dense(at, size, values, default=0.0):
        return raw.SparseToDense(
            sparse_indices=at, output_shape=size, sparse_values=values, default_value=default, validate_indices=False
        )

    weights = tf.cast(hit.ids, tf.float32)
    return {
        "dense": dense(indices, shape, weights),
        "dense_weights": raw.SparseToDense(
            sparse_indices=indices,
            output_shape=shape,
            sparse_values=hit.weights,
            default_value=0.0,
            validate_indices=False,
        ),
        "dense_sum": tf.reduce_sum(dense(indices, shape, weights, 0.5) * f.x[:, :3], 0),
        "default": dense(indices, shape, weights, f.part[0]),
        "turned": dense(tf.concat([columns, rows], 1), tf.stack([12, batch]), weights),
        "numbered": dense(tf.concat([rows, rows], 1), tf.stack([batch, 12]), weights),
        "numbers": dense(indices, shape, tf.cast(hit.indices, tf.float32)),
        "one": dense(indices, shape, 1.0),
        "others": dense(indices, shape, tf.cast(same.ids, tf.float32)),
        "other_columns": dense(tf.concat([rows, tf.cast(same.ids, tf.int32)[:, None]], 1), shape, weights),
        "all_rows": dense(indices, [12, 3], weights),
        "twice": dense(indices, tf.stack([batch * 2, 3]), weights),
        "rows": hit.indices,
        "rows_sum": tf.reduce_sum(hit.indices),
        "columns": hit.ids,
        "columns_sum": tf.reduce_sum(hit.ids),
        "look_up": tf.gather(f.x, hit.indices),
        "two_columns": tf.reshape(hit.ids, [1, -1]),
        "of_part": raw.ComputeAccidentalHits(
            true_classes=classes[:, None], sampled_candidates=labels, num_true=1
        ).ids,
    }


def parts(f):
    """Rows that are sent to parts and back, and what is not put back as it was sent."""
    n = tf.size(f.ids)
    to, other = f.ids % 2, tf.cast(f.y[:, 0] > 0.5, tf.int32)
    numbers = tf.range(n)
    at, at_other, rows = (tf.dynamic_partition(v, p, 2) for v, p in ((numbers, to), (numbers, other), (f.x, to)))
    shuffled = tf.dynamic_partition(tf.gather(numbers, numbers), to, 2)  # numbers of rows, but no Range
    stitch = tf.dynamic_stitch
    # As many of all rows are sent to each part, but not of those of a replica.
    ones, first = int(np.sum(f.values["ids"] % 2)), np.sort(f.values["y"][:, 0])
    as_many = tf.cast(f.y[:, 0] > (first[-ones - 1] + first[-ones]) / 2, tf.int32)
    found = [tf.gather(f.table, tf.dynamic_partition(f.ids // 2, to, 2)[i]) for i in (0, 1)]
    back = stitch(at, rows)
    wide = tf.dynamic_partition(tf.reshape(tf.range(2 * n), [n, 2]), tf.stack([to, other], 1), 2)
    wide_rows = tf.dynamic_partition(f.x[:, :2], tf.stack([to, other], 1), 2)
    return {
        "sum": tf.reduce_sum(rows[1], 0),
        "mean": tf.reduce_mean(rows[1], 0),
        "part_as_it_is": rows[1],
        "back": back,
        "back_parallel": raw.ParallelDynamicStitch(indices=at, data=rows),
        "back_turned": stitch(at[::-1], rows[::-1]),
        "back_grad": tf.gradients(tf.reduce_mean(back**2), f.x)[0],
        "found": stitch(at, found),
        "wide": stitch(wide, wide_rows),
        "two_scales": stitch(at, [rows[0], rows[1] / tf.cast(n, tf.float32)]),
        "picked": tf.gather(f.y, at[0]),
        "picked_sum": tf.reduce_sum(tf.gather(f.y, at[1]) * rows[1], 0),
        "numbers": at[1],
        "numbers_sum": tf.reduce_sum(at[1]),
        "complement": stitch(at, tf.dynamic_partition(f.x, 1 - to, 2)[::-1]),
        "reversed": stitch(tf.dynamic_partition(numbers, tf.reverse(to, [0]), 2), rows),
        "twice": stitch([at[0], at[1], at[0]], [rows[0], rows[1], 2.0 * rows[0]]),
        "by_as_many": stitch(at, tf.dynamic_partition(f.x, as_many, 2)),
        "by_other": stitch(at_other, tf.dynamic_partition(f.x, other, 2)),
        "shuffled": stitch(shuffled, rows),
        "shuffled_back": stitch(tf.dynamic_partition(tf.gather(numbers, n - 1 - numbers), to, 2), rows),
        "times_two": stitch([at[0] * 2, at[0] * 2 + 1], [rows[0], rows[0]]),
        "added": rows[0][:1] + rows[1][:1],
        "combined": tf.reduce_sum(rows[0], 0) * tf.reduce_sum(rows[1], 0),
        "table_rows": stitch(at, [tf.tile(f.table, [3, 1])[: tf.size(a)] for a in at]),
        "of_table": tf.dynamic_partition(f.table, tf.constant([0, 1, 0, 1]), 2)[0] * 2.0,
        "table_numbers": stitch(
            tf.dynamic_partition(tf.range(4), tf.constant([0, 1, 0, 1]), 2),
            tf.dynamic_partition(f.table, tf.constant([0, 1, 0, 1]), 2),
        ),
        "from_two": stitch(tf.dynamic_partition(tf.range(2, n + 2), to, 2), rows)[2:],
        "by_turned": tf.dynamic_partition(tf.transpose(f.x), tf.constant([0, 1, 1, 0]), 2)[0],
    }


def sparse(f):
    """Sparse tensors that a replica makes of its rows, and what is none. Each is made anew: a use that needs the rows of all
    replicas says so of what it reads."""

    ints = tf.cast(f.ints, tf.float32)
    bits, x = ints > 3.0, ints * 0.3  # of one feed: they have equally many rows

    def where(of=None):
        return tf.where(bits if of is None else of)

    def shape(of=None):
        return tf.shape(ints if of is None else of, out_type=tf.int64)

    def fill(at=None, size=None, values=None):
        at = where() if at is None else at
        values = tf.gather_nd(ints, at) if values is None else values
        size = shape() if size is None else size
        return raw.SparseFillEmptyRows(indices=at, values=values, dense_shape=size, default_value=2.0)

    def row_of(filled, column=0):
        return filled.output_indices[:, column]

    def unique(filled, modulo=4):
        return tf.unique(tf.cast(filled.output_values, tf.int32) % modulo)

    def dense(at, size, values):
        return raw.SparseToDense(
            sparse_indices=at, output_shape=size, sparse_values=values, default_value=-1.0, validate_indices=False
        )

    def looked_up(op, filled=None, row=None, table=f.table):
        filled = fill() if filled is None else filled
        ids = unique(filled)
        return op(tf.gather(table, ids.y), ids.idx, row_of(filled) if row is None else row)

    def weighted(filled):
        ids = unique(filled)
        rows = tf.gather(tf.gather(f.table, ids.y), ids.idx)
        return tf1.segment_sum(rows * tf.cast(filled.output_values, tf.float32)[:, None], row_of(filled))

    def gradient(op, dense_table=True):
        filled = fill()
        ids = unique(filled)
        rows = tf.gather(f.table, ids.y)
        y = op(rows, ids.idx, row_of(filled))
        got = tf1.gradients(tf.reduce_sum(tf.square(y)) + tf.reduce_mean(y), rows)[0]
        if not dense_table:
            again = tf.unique(ids.y)
            return tf.math.unsorted_segment_sum(got, again.idx, tf.shape(again.y)[0])
        return tf.math.unsorted_segment_sum(got, ids.y, 4)

    def of_two(take):
        a, b = fill(), fill(where(tf.reverse(bits, [1])))
        return take(a, b, unique(a), unique(b))

    def reshaped(size, back=None):
        at = where()
        made = raw.SparseReshape(input_indices=at, input_shape=shape(), new_shape=size)
        if back is not None:
            made = raw.SparseReshape(input_indices=made[0], input_shape=made[1], new_shape=back)
        return dense(made[0], made[1], tf.gather_nd(ints, at))

    def cross(first, sizes, values=None, rows=None):
        values = tf.cast(tf.gather_nd(ints, first), tf.int64) if values is None else values
        made = raw.SparseCross(
            indices=[first],
            values=[values],
            shapes=[sizes],
            dense_inputs=[tf.cast((bits if rows is None else rows)[:, :2], tf.int64)],
            hashed_output=True,
            num_buckets=50,
            hash_key=7,
            out_type=tf.int64,
            internal_type=tf.int64,
        )
        return raw.SparseToDense(
            sparse_indices=made.output_indices,
            output_shape=tf.stack([made.output_shape[0], 8]),
            sparse_values=made.output_values,
            default_value=-1,
            validate_indices=False,
        )

    batch = shape()[0]
    few, kept, all_of = where(), fill(), where()
    some = tf.reshape(tf.where(tf.gather_nd(ints, all_of) > 4.0), [-1])
    segment_sum, segment_mean = tf1.sparse_segment_sum, tf1.sparse_segment_mean
    root = tf1.sparse_segment_sqrt_n
    turned = tf.reverse(where(), [0])
    b = tf.stack
    return {
        "dense": dense(where(), shape(), tf.gather_nd(ints, where())),
        "columns": tf.reduce_sum(where()[:, 1]),
        "empty": fill().empty_row_indicator,
        "values_sum": tf.reduce_sum(fill().output_values),
        "filled_dense": dense(kept.output_indices, shape(), kept.output_values),
        "back": tf.reduce_sum(tf.gather(kept.output_values, kept.reverse_index_map)),
        "some": dense(tf.gather(all_of, some), shape(), tf.gather(tf.gather_nd(ints, all_of), some)),
        "reshape_columns": reshaped(b([batch, 2, 2]), b([batch, -1])),
        "reshape_wild": reshaped(b([batch, -1])),
        "sum": looked_up(segment_sum),
        "mean": looked_up(segment_mean),
        "sqrt_n": looked_up(root),
        "weighted": weighted(fill()),
        "sum_grad": gradient(segment_sum),
        "mean_grad": gradient(segment_mean),
        "sqrt_n_grad": gradient(root),
        "distinct_grad": gradient(segment_mean, dense_table=False),
        "table_rows": segment_sum(f.table, tf.cast(kept.output_values, tf.int32) % 4, row_of(kept)),
        "cross": cross(where(), shape()),
        # Other tensors, and those that need more than the rows of a replica.
        "rows_sum": tf.reduce_sum(where()[:, 0]),
        "all_columns": tf.reduce_sum(fill().output_indices),
        "reverse_map": tf.reduce_sum(fill().reverse_index_map),
        "distinct": unique(fill()).y,
        "distinct_sum": tf.reduce_sum(unique(fill()).y),
        "distinct_count": tf.size(unique(fill()).y),
        "which": tf.reduce_sum(unique(fill()).idx),
        "rows_of_distinct": tf.reduce_mean(tf.gather(f.table, unique(fill()).y), 0),
        "which_of_rows": tf.gather(tf.tile(f.table, [3, 1]), unique(fill()).idx),
        "distinct_by_rows": tf.gather(x, unique(fill()).y),
        "distinct_of_distinct": tf.unique(tf.unique(unique(fill()).y).y % 3).y,
        "scaled": (lambda u: tf.gather(tf.gather(f.table, u.y) * 2.0, u.idx))(unique(fill())),
        "normed": (lambda u: tf.gather(tf.nn.l2_normalize(tf.gather(f.table, u.y), 0), u.idx))(unique(fill())),
        "which_of_others": of_two(lambda a, b, u, v: segment_sum(tf.gather(f.table, u.y), unique(b, 2).idx, row_of(b))),
        "rows_of_others": of_two(lambda a, b, u, v: segment_sum(tf.gather(f.table, u.y), u.idx, row_of(b))),
        "by_other_rows": tf.gather(x, tf.cast(looked_up(segment_sum)[:, 0] > 0, tf.int32)),
        "column_of_others": looked_up(segment_sum, row=None, filled=fill(values=tf.gather_nd(x, where()))),
        "no_fill": segment_sum(f.table, tf.cast(tf.gather_nd(ints, few), tf.int32) % 4, few[:, 0]),
        "no_fill_sum": tf1.segment_sum(tf.gather_nd(ints, few), few[:, 0]),
        "no_fill_mean": tf1.segment_mean(tf.gather_nd(ints, few), few[:, 0]),
        "by_column": tf1.segment_sum(tf.sort(kept.output_values), row_of(kept)),
        "fill_more": fill(size=b([batch * 2, 4])).empty_row_indicator,
        "fill_table": fill(size=tf.constant([12, 4], tf.int64)).empty_row_indicator,
        "fill_turned": tf.reduce_sum(fill(at=turned).output_values),
        "fill_turned_rows": looked_up(segment_sum, fill(at=turned)),
        "fill_part": tf.reduce_sum(raw.SparseFillEmptyRows(
            indices=few, values=tf.gather_nd(ints, few), dense_shape=shape(), default_value=f.part[0]).output_values),
        "fill_rows": fill(at=few, values=tf.cast(few[:, 0], tf.float32)).empty_row_indicator,
        "fill_rows_sum": tf.reduce_sum(fill(at=few, values=tf.cast(few[:, 0], tf.float32)).output_values),
        "reshape_rows": reshaped(b([batch * 2, 2])),
        "reshape_rows_back": reshaped(b([batch * 2, 2]), b([batch, 4])),
        "reshape_one": reshaped(b([batch * 4, 1])),
        "reshape_table": reshaped(tf.constant([12, 4], tf.int64)),
        "reshape_turned": reshaped(b([4, batch])),
        "dense_all": dense(where(), tf.constant([12, 4], tf.int64), tf.gather_nd(ints, where())),
        "dense_more": dense(where(), b([batch * 2, 4]), tf.gather_nd(ints, where())),
        "dense_turned": dense(tf.reverse(where(), [1]), b([tf.constant(12, tf.int64), batch]), tf.gather_nd(ints, where())),
        "dense_others": dense(where(), shape(), tf.gather_nd(ints, where(tf.reverse(bits, [1])))),
        "dense_rows": dense(few, shape(), tf.cast(few[:, 0], tf.float32)),
        "cross_rows": cross(where(), shape(), tf.gather_nd(tf.cast(ints, tf.int64), where())[::-1]),
        "cross_table": cross(where(), shape(), rows=tf.cast(tf.tile(f.table, [3, 1]), tf.float32)),
        "twice_sorted": tf.unique(tf.sort(unique(fill()).y)).idx,
        "sums_by_which": (lambda v, u: tf.math.unsorted_segment_sum(v.output_values, u.idx, tf.size(u.y)))(kept, unique(kept)),
        "sums_by_number": (lambda v, u: tf.math.unsorted_segment_sum(v.output_values, u.idx, 4))(kept, unique(kept)),
        "most_by_which": (lambda v, u: tf.math.unsorted_segment_max(v.output_values, u.idx, tf.size(u.y)))(kept, unique(kept)),
        "squares": (lambda v, u: tf.nn.l2_loss(tf.math.unsorted_segment_sum(v.output_values, u.idx, tf.size(u.y))))(
            kept, unique(kept)
        ),
        "sums_of_others": of_two(
            lambda a, b, u, v: tf.math.unsorted_segment_sum(
                tf.math.unsorted_segment_sum(a.output_values, u.idx, 4), tf.pad(v.y, [[0, 4 - tf.size(v.y)]]), 4
            )
        ),
    }


CASES = {
    "sparse": sparse,
    "parts": parts,
    "hits": hits,
    "row_numbers": row_numbers,
    "sizes": sizes,
    "ragged": ragged,
    "orders": orders,
    "zeros": zeros,
    "zero_sizes": zero_sizes,
}
# Cases that must be proved: a warning here is a lost rule.
PROVED = {
    "sparse": "dense columns empty values_sum filled_dense back some reshape_columns reshape_wild sum mean sqrt_n weighted"
    " sum_grad mean_grad sqrt_n_grad distinct_grad table_rows cross",
    "parts": "sum mean part_as_it_is back back_parallel back_turned back_grad found wide two_scales picked picked_sum"
    " combined of_table table_numbers",
    "hits": "dense dense_weights dense_sum default",
    "row_numbers": "pick pick_grad pick_mean pick_concat pick_rows pick_tiled pick_same look_up look_up_column"
    " scatter scatter_rows segment",
    "sizes": "fill fill_number tile_table pad_value resize",
    "orders": "stack_rows unstack gram gram_turned bias_grad bias_grad_turned bias_first gather_column gather_batch"
    " concat_rows_sum concat_rows_split concat_rows_grad concat_rows_mean_grad concat_rows_dot concat_rows_times"
    " concat_rows_segments concat_rows_unique segment_replicated segment_turned conv_kernel select_part select_mean",
    "zeros": "tanh_sum sigmoid_sum softplus_sum tanh_times softplus_times tanh_part cosine cosine_part ones ones_part"
    " ones_sum join join_part stack_mean",
}


@pytest.mark.parametrize("group", CASES)
def test_sound(group, tmp_path):
    path, out = str(tmp_path / "in.pb"), str(tmp_path / "out.pb")
    values, names, step, init = test_rules.export(CASES[group], path)
    # Each case is a fetch of its own: an op of another says nothing of the rows of its feeds. The user does.
    alike = ["--feed=" + "+".join(test_rules.Feeds.SPLIT) + "=split"]
    flags = [*alike, *options(2, [*names.values(), step, init])]
    want = run(harness.read_graph_def(path), values, names, init, 1)
    # A warning names the first result of a cause, --explain says which others there are.
    nodes = [name.removesuffix(":0") for name in names.values()]
    explain = [f"--explain={node}" for node in nodes]
    strict = harness.run_graft([path, "--emit=none", "--strict", "--fallback=refuse", *flags, *explain], check=False)
    warned = said_of(strict.stderr) | set(re.findall(r"^(\S+) = \w+: Varying", strict.stderr + strict.stdout, re.M))
    sure = {key: name for key, name in names.items() if name.split(":")[0] not in warned}
    # The others cannot be written to a file that is certified.
    rest = tf1.graph_util.extract_sub_graph(
        harness.read_graph_def(path), [name.removesuffix(":0") for name in (*sure.values(), step, init)]
    )
    values = {key: value for key, value in values.items() if any(node.name == key for node in rest.node)}
    with open(path, "wb") as file:
        file.write(rest.SerializeToString())
    alike = [f"--feed={'+'.join(name for name in test_rules.Feeds.SPLIT if name in values)}=split"]
    harness.run_graft([path, "-o", out, *alike, *options(2, [*sure.values(), step, init])])
    graph_def = harness.read_graph_def(out)
    wrong = []
    for key, name in sure.items():
        try:
            got = run(graph_def, values, {key: name}, init, 2)[key]
        except tf.errors.OpError as error:
            wrong.append(f"{key}: {error.message.splitlines()[0]}")
            continue
        if not close(got, want[key]):
            wrong.append(f"{key}: {got.shape} {got.ravel()[:4]}, not {want[key].shape} {want[key].ravel()[:4]}")
    assert not wrong, "\n".join(wrong)
    lost = set(PROVED.get(group, "").split()) - set(sure)
    assert not lost, f"not related: {sorted(lost)}\n{strict.stderr}"


def other_batches(f):
    """A tensor that is not split is no parameter where an op takes a row of it for each row of the batch."""
    random = np.random.RandomState(3)

    def own(name, *shape):
        """A fed tensor of as many rows as the batch, which every replica reads whole."""
        f.values[name] = random.uniform(0.1, 0.9, (*shape, test_rules.ROWS)).astype(np.float32)
        fed = tf1.placeholder(np.float32, [*shape, None], name=name)
        return tf.transpose(fed, [len(shape), *range(len(shape))])

    wide, image, volume = own("wide", 4), own("own_image", 4, 4, 2), own("own_volume", 4, 4, 4, 2)
    spd = own("own_spd", 3, 3) + np.eye(3, dtype=np.float32)
    pool = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    pool3 = dict(ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID")
    window = dict(ksize=tf.constant(pool["ksize"]), strides=tf.constant(pool["strides"]), padding="VALID")
    conv = dict(strides=[1, 1, 1, 1], padding="SAME")
    top, top3 = raw.MaxPool(input=f.image, **pool), raw.MaxPool3D(input=f.volume, **pool3)
    own_top, own_top3 = raw.MaxPool(input=image, **pool), raw.MaxPool3D(input=volume, **pool3)
    y, own_y = raw.Conv2D(input=f.image, filter=f.filter, **conv), raw.Conv2D(input=image, filter=f.filter, **conv)
    labels = tf.cast(wide[:, 0] * 4.0, tf.int32)
    mask = wide[:, 1] > 0.5
    channels = tf.reshape(f.turned, [2, -1, 2, 1])  # the batch is axis 1
    bias, lengths = wide[:, 2], labels + 1
    words = tf.as_string(f.ints[:, 0])
    return {
        "max_grad": raw.MaxPoolGrad(orig_input=f.image, orig_output=top, grad=own_top, **pool),
        "max_grad_input": raw.MaxPoolGrad(orig_input=image, orig_output=top, grad=top, **pool),
        "max_grad_v2": raw.MaxPoolGradV2(orig_input=f.image, orig_output=top, grad=own_top, **window),
        "max_grad_3d": raw.MaxPool3DGrad(orig_input=f.volume, orig_output=top3, grad=own_top3, **pool3),
        "max_grad_grad": raw.MaxPoolGradGrad(orig_input=f.image, orig_output=top, grad=image, **pool),
        "lrn_grad": raw.LRNGrad(input_grads=image, input_image=f.image, output_image=raw.LRN(input=f.image)),
        "average_grad": raw.AvgPoolGrad(orig_input_shape=tf.shape(image), grad=top, **pool),
        "average_grad_sizes": raw.AvgPoolGrad(orig_input_shape=tf.shape(f.image), grad=own_top, **pool),
        "average_grad_3d": raw.AvgPool3DGrad(orig_input_shape=tf.shape(volume), grad=top3, **pool3),
        "conv_grad": raw.Conv2DBackpropInput(input_sizes=tf.shape(image), filter=f.filter, out_backprop=y, **conv),
        "conv_grad_sizes": raw.Conv2DBackpropInput(
            input_sizes=tf.shape(f.image), filter=f.filter, out_backprop=own_y, **conv
        ),
        "conv_filter": raw.Conv2DBackpropFilter(input=image, filter_sizes=[2, 2, 2, 3], out_backprop=y, **conv),
        "in_top_k": raw.InTopK(predictions=f.x, targets=labels, k=2),
        "in_top_k_predictions": raw.InTopKV2(predictions=wide, targets=f.ids, k=2),
        "in_top_k_same": raw.InTopKV2(predictions=f.x, targets=f.ids, k=2),
        "max_grad_same": raw.MaxPoolGrad(orig_input=f.image, orig_output=top, grad=top * top, **pool),
        "conv_grad_same": raw.Conv2DBackpropInput(
            input_sizes=tf.shape(f.image), filter=f.filter, out_backprop=y, **conv
        ),
        "average_grad_same": raw.AvgPoolGrad(orig_input_shape=tf.shape(f.image), grad=top, **pool),
        "lengths_beside": raw.ReverseSequence(
            input=tf.transpose(f.series, [1, 2, 0]), seq_lengths=[1, 2, 3, 4], seq_dim=0, batch_dim=1
        ),
        "in_top_k_k": raw.InTopKV2(predictions=f.x, targets=f.ids, k=f.ids[0] % 2 + 1),
        "xent": tf.nn.softmax_cross_entropy_with_logits(labels=wide, logits=f.x),
        "xent_row": tf.nn.softmax_cross_entropy_with_logits(labels=f.row[None], logits=f.x),
        "sparse_xent": tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=f.x),
        "sparse_xent_logits": tf.nn.sparse_softmax_cross_entropy_with_logits(labels=f.ids, logits=wide),
        "where": tf.where(mask[:, None], f.x, f.y),
        "where_row": tf.where([True, False, True, True], f.x, f.y),
        "where_sum": tf.reduce_sum(tf.where(mask[:, None], f.x, 0.0), 0),
        "select_vector": raw.Select(condition=mask, x=f.x, y=f.y),
        "select_columns": raw.Select(condition=[True, False, True, True], x=f.turned, y=f.turned * 2.0),
        "select_scalar": raw.Select(condition=True, x=f.x, y=f.y),
        "select_one": raw.Select(condition=f.part[0] > 0.0, x=f.x, y=f.y),
        "bias_channels": raw.BiasAdd(value=channels, bias=bias, data_format="NCHW"),
        "bias_of_rows": raw.BiasAdd(
            value=tf.tile(tf.reshape(bias, [1, -1, 1, 1]), [2, 1, 2, 12]), bias=f.x[:, 0], data_format="NCHW"
        ),
        "bias_last": raw.BiasAdd(value=f.turned, bias=bias),
        "solve": raw.MatrixSolve(matrix=spd, rhs=f.spd),
        "triangular": raw.MatrixTriangularSolve(matrix=spd, rhs=f.spd),
        "set_diag": raw.MatrixSetDiag(input=f.spd, diagonal=wide[:, :3]),
        "cross": raw.Cross(a=f.color, b=wide[:, :3]),
        "lengths": raw.ReverseSequence(input=f.series, seq_lengths=lengths, seq_dim=1, batch_dim=0),
        "einsum": raw.Einsum(inputs=[f.x, wide], equation="bi,bj->bij"),
        "batch_matmul": tf.matmul(f.spd, spd),
        "gather_batch": tf.gather(f.x, labels[:, None], axis=1, batch_dims=1),
        "gather_batch_table": tf.gather(wide, f.ids[:, None], axis=1, batch_dims=1),
        "scatter": tf.scatter_nd(labels[:, None], f.x, [4, 4]),
        "scatter_updates": tf.scatter_nd(f.ids[:, None], wide, [4, 4]),
        "tensor_scatter": tf.tensor_scatter_nd_add(f.table, f.ids[:, None], tf.concat([wide, wide[:, :1]], 1)),
        "segment": tf.math.unsorted_segment_sum(wide, f.ids, 4),
        "segment_ids": tf.math.unsorted_segment_max(f.x, labels, 4),
        "partition": tf.reduce_sum(tf.dynamic_partition(wide, f.ids, 4)[1], 0),
        "partition_numbers": tf.reduce_sum(tf.dynamic_partition(f.x, labels, 4)[1], 0),
        "resize_grad": raw.ResizeBilinearGrad(grads=image, original_image=f.image),
        "boxes": raw.DrawBoundingBoxes(images=f.image[..., :1], boxes=tf.tile(wide[:, None], [1, 2, 1])),
        "quantised": raw.FakeQuantWithMinMaxVarsGradient(gradients=wide, inputs=f.x, min=0.0, max=1.0).backprops_wrt_input,
        "bounds": raw.LowerBound(sorted_inputs=tf.sort(wide), values=f.x),
        "relu_grad": raw.ReluGrad(gradients=wide, features=f.x),
        "join_strings": tf.strings.join([words, tf.as_string(labels)]),
        "csv": raw.DecodeCSV(records=words, record_defaults=[tf.constant([0], tf.int32)])[0],
        "records": raw.ParseExample(
            serialized=tf.tile([""], [tf.size(words)]),
            names=tf.as_string(labels),
            sparse_keys=[],
            dense_keys=["a"],
            dense_defaults=[f.row[:1]],
            sparse_types=[],
            dense_shapes=[[1]],
        ).dense_values[0],
        "norm_grad": raw.FusedBatchNormGradV3(
            y_backprop=f.image,
            x=f.image,
            scale=f.row[:2],
            reserve_space_1=f.row[:2],
            reserve_space_2=f.row[2:],
            reserve_space_3=f.row[:0],
            is_training=False,
        ).scale_backprop,
        "norm_grad_part": raw.FusedBatchNormGradV3(
            y_backprop=f.image,
            x=f.image,
            scale=f.row[:2],
            reserve_space_1=f.part[:2],
            reserve_space_2=f.row[2:],
            reserve_space_3=f.row[:0],
            is_training=False,
        ).scale_backprop,
        "norm_grad_training": raw.FusedBatchNormGradV3(
            y_backprop=f.image * f.image,
            x=f.image,
            scale=f.row[:2],
            reserve_space_1=f.row[:2],
            reserve_space_2=f.row[2:],
            reserve_space_3=f.row[:0],
            is_training=True,
        ).x_backprop,
        "norm_offset": raw.FusedBatchNormV3(
            x=f.image, scale=f.row[:2], offset=f.part[:2], mean=f.row[:2], variance=f.part[2:], is_training=False
        ).y,
    }


# Right steps, which must be proved.
PARAMETERS = (
    "where_row select_columns select_scalar select_one norm_grad norm_grad_part norm_offset xent_row"
    " in_top_k_same max_grad_same conv_grad_same average_grad_same lengths_beside"
)


def test_other_batches(tmp_path):
    """Case by case, since one that is refused is refused as a whole."""
    path, out = str(tmp_path / "in.pb"), str(tmp_path / "out.pb")
    with tf.Graph().as_default():
        cases = list(other_batches(test_rules.Feeds()))
    wrong, lost = [], []
    for case in cases:
        values, names, step, init = test_rules.export(lambda f, case=case: {case: other_batches(f)[case]}, path)
        graph_def = tf1.graph_util.extract_sub_graph(
            harness.read_graph_def(path), [*(name.removesuffix(":0") for name in names.values()), step, init]
        )
        values = {key: value for key, value in values.items() if any(node.name == key for node in graph_def.node)}
        with open(path, "wb") as file:
            file.write(graph_def.SerializeToString())
        done = harness.run_graft([path, "-o", out, *options(2, [*names.values(), step, init])], check=False)
        said = done.stderr
        if "nothing in the input orders" in said:  # a parameter that `step` updates
            said = harness.without_order(said, "softmax_cross_entropy_with_logits_1")
        if done.returncode != 0 or "warning:" in said:
            lost += [f"{case}: {said}"] if case in PARAMETERS.split() else []
            continue
        want = run(graph_def, values, names, init, 1)[case]
        try:
            got = run(harness.read_graph_def(out), values, names, init, 2)[case]
        except tf.errors.OpError as error:
            wrong.append(f"{case}: {error.message.splitlines()[0]}")
            continue
        if not close(got, want):
            wrong.append(f"{case}: {got.shape} {got.ravel()[:4]}, not {want.shape} {want.ravel()[:4]}")
    assert not wrong, "\n".join(wrong)
    assert not lost, "\n".join(lost)


def static_parts(x, h):
    """Parts that nothing of the step uses; TensorFlow infers their shapes all the same."""
    odd = raw.Bitcast(input=h, type=tf.float32)  # no rule
    ones = tf.ones([12, 3])
    return {
        "diagonal": lambda: tf.gather(tf.reshape(tf.linalg.diag(h), [36, 3]), tf.cast(tf.tile(x[:, 0], [3]), tf.int32)),
        "broadcast": lambda: tf.gradients(tf.broadcast_to(h, [5, 12, 3]), h)[0],
        "ensured": lambda: tf.reduce_sum(raw.EnsureShape(input=h, shape=[12, 3])),
        "lengths": lambda: tf.reverse_sequence(h, [2] * 12, seq_axis=1, batch_axis=0),
        "vectors": lambda: tf.reshape(tf.linalg.eigh(tf.linalg.diag(h))[1], [36, 3]) * tf.ones([36, 3]),
        "odd_sum": lambda: odd + ones,
        "odd_product": lambda: tf.matmul(ones, odd, transpose_a=True),
        "odd_labels": lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1] * 12, logits=odd),
        "odd_ensured": lambda: raw.EnsureShape(input=odd, shape=[12, 3]),
        "odd_reshape": lambda: tf.reshape(odd, [36]) + tf.ones([36]),
        "row": lambda: h[11],
        "unstacked": lambda: tf.unstack(h)[2] * 2.0,
        "parts": lambda: tf.split(h, [4, 8], 0)[1] * 2.0,
        "most": lambda: tf.nn.top_k(tf.transpose(h), 8).values,
    }


def test_static_parts(tmp_path):
    """With a static batch, an output without a warning is one that TensorFlow loads, and it makes the step."""
    path, out = str(tmp_path / "in.pb"), str(tmp_path / "out.pb")
    wrong, right = [], []
    for case in static_parts(tf.zeros([12, 3]), tf.zeros([12, 3])):
        with tf.Graph().as_default() as graph:
            x = tf1.placeholder(tf.float32, [12, 3], name="x")
            w = tf1.get_variable("w", initializer=np.linspace(-0.4, 0.5, 9).reshape(3, 3).astype(np.float32))
            h = tf.matmul(x, w)
            static_parts(x, h)[case]()
            loss = tf.identity(tf.reduce_mean(tf.square(h - 0.2)), name="loss")
            step, init = tf1.train.GradientDescentOptimizer(0.1).minimize(loss), tf1.global_variables_initializer()
        with open(path, "wb") as file:
            file.write(graph.as_graph_def(add_shapes=True).SerializeToString())
        done = harness.run_graft(
            [path, "-o", out, "--verify-output", *options(2, ["loss:0", step.name, init.name])], check=False
        )
        if done.returncode != 0 or "warning:" in done.stderr:
            continue
        values = {"x": np.random.RandomState(0).uniform(size=(12, 3)).astype(np.float32)}
        want = run(harness.read_graph_def(path), values, {"loss": "loss:0"}, init.name, 1)["loss"]
        try:
            got = run(harness.read_graph_def(out), values, {"loss": "loss:0"}, init.name, 2)["loss"]
        except (ValueError, tf.errors.OpError) as error:
            wrong.append(f"{case}: {str(error).splitlines()[0]}")
            continue
        right.append(case)
        if not close(got, want):
            wrong.append(f"{case}: {got}, not {want}")
    assert not wrong, "\n".join(wrong)
    assert set(right) >= {"broadcast", "ensured", "lengths"}, right
