# SPDX-License-Identifier: Apache-2.0
"""Rules of lib/infer/rules against TensorFlow, run as in test_rules.py, operand by operand.

`PROVED` cases must come without a warning, on 2 and on 3 replicas; every case without a warning must be right; `REFUSED`
must come with one.
"""

import harness
import numpy as np
import pytest
import tensorflow as tf
import test_rules
from test_rules import ROWS, options, run

tf1 = tf.compat.v1
raw = tf.raw_ops


def rows_of(f):
    """The number of rows, as a float."""
    return tf.cast(tf.shape(f.x)[0], tf.float32)


def products(f):
    """Products of matrices, with the batch as each axis of each operand."""
    square, turned = f.spd, tf.transpose(f.series, [1, 0, 2])  # [b,3,3], [5,b,4]
    whole = tf.reduce_mean(square, 0)
    mean = square / rows_of(f)
    v1, v2 = raw.BatchMatMul, raw.BatchMatMulV2
    three = tf.constant(np.random.RandomState(3).randn(5, 4, 2).astype(np.float32))
    return {
        "v1": v1(x=square, y=square),
        "v1_adj_x": v1(x=square, y=mean, adj_x=True),
        "v1_adj_y": v1(x=f.series, y=f.series, adj_y=True),
        "v1_rows": v1(x=turned, y=three),  # batch in the rows of the product
        "v1_columns": v1(x=three, y=turned, adj_x=True, adj_y=True),
        "v1_contracted": v1(x=turned, y=turned, adj_x=True),
        "v1_contracted_mean": v1(x=turned, y=turned / rows_of(f), adj_x=True),
        "v2_broadcast": v2(x=square, y=whole),
        "v2_broadcast_left": v2(x=whole, y=square),
        "v2_broadcast_one": v2(x=square, y=whole[None]),
        "v2_four": v2(x=tf.stack([square, mean], 1), y=square[:, None]),
        "v2_rows": v2(x=f.x[None], y=f.table[None]),
        "v2_partial": v2(x=whole[None], y=tf.ones([1, 3, 2])),
        "v2_grads": tf.gradients(tf.reduce_sum(v2(x=f.series, y=f.table)), f.table)[0],
        "v3": raw.BatchMatMulV3(x=square, y=square, Tout=tf.float32),
        "conjugate": raw.ConjugateTranspose(x=tf.complex(f.series, f.series), perm=[2, 0, 1]),
    }


def losses(f):
    """Cross entropies and their gradients, with mean and sum."""
    logits, labels = tf.matmul(f.x, f.table), tf.nn.softmax(tf.concat([f.y, f.y[:, :1]], 1))
    dense = raw.SoftmaxCrossEntropyWithLogits(features=logits, labels=labels)
    sparse = raw.SparseSoftmaxCrossEntropyWithLogits(features=logits, labels=f.ids)
    half = tf.reduce_mean(f.x)
    result = {
        "dense_row": raw.SoftmaxCrossEntropyWithLogits(features=f.x, labels=f.row[None]).loss,
        "dense_of_sums": raw.SoftmaxCrossEntropyWithLogits(features=f.part[None], labels=f.mean[None]).loss,
        "sparse_of_sums": raw.SparseSoftmaxCrossEntropyWithLogits(features=f.part[None], labels=[1]).loss,
        "sparse_scaled": raw.SparseSoftmaxCrossEntropyWithLogits(features=logits * half, labels=f.ids).backprop,
    }
    for name, loss in {"dense": dense, "sparse": sparse}.items():
        result[f"{name}_loss"], result[f"{name}_backprop"] = loss.loss, loss.backprop
        result[f"{name}_sum_grad"] = tf.gradients(tf.reduce_sum(loss.loss), f.table)[0]
        result[f"{name}_mean_grad"] = tf.gradients(tf.reduce_mean(loss.loss), f.table)[0]
    return result


def norms(f):
    """A fused batch norm in inference, every version, and its gradient."""
    scale, offset, mean, variance = f.row[:2] + 0.5, f.row[2:], f.row[1:3], f.row[:2] + 1.0
    operands = dict(scale=scale, offset=offset, mean=mean, variance=variance, is_training=False)
    result = {}
    for version in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
        normed = getattr(raw, version)(x=f.image, **operands)
        result[version] = normed.y
        result[version + "_mean"] = normed.batch_mean * 1.0
        grad = getattr(raw, version.replace("Norm", "NormGrad"))
        spaces = dict(reserve_space_1=mean, reserve_space_2=variance)
        if version.endswith("V3"):
            spaces["reserve_space_3"] = tf.zeros([0])
        for kind, dy in {"sum": f.image * 2.0, "mean": f.image / rows_of(f)}.items():
            back = grad(y_backprop=dy, x=f.image, scale=scale, is_training=False, **spaces)
            result[f"{version}_{kind}_dx"] = back.x_backprop
            result[f"{version}_{kind}_dscale"] = back.scale_backprop
            result[f"{version}_{kind}_doffset"] = back.offset_backprop
    return result


def channels_first(f):
    """Ops that the CPU runs with the channels before the space: biases, norms, images in blocks."""
    first = tf.transpose(f.image, [0, 3, 1, 2])
    bias = f.row[:2] * 1.0
    added = raw.BiasAdd(value=first, bias=bias, data_format="NCHW")
    mean = added / rows_of(f)
    operands = dict(scale=f.row[:2] + 0.5, offset=f.row[2:], mean=f.row[1:3], variance=f.row[:2] + 1.0)
    return {
        "bias": added,
        "bias_partial": raw.BiasAdd(value=first, bias=f.mean[:2], data_format="NCHW"),
        "bias_grad": raw.BiasAddGrad(out_backprop=added, data_format="NCHW"),
        "bias_grad_mean": raw.BiasAddGrad(out_backprop=mean, data_format="NCHW"),
        "norm": raw.FusedBatchNormV3(x=first, **operands, is_training=False, data_format="NCHW").y,
        "pool": tf.transpose(tf.nn.max_pool2d(tf.transpose(first, [0, 2, 3, 1]), 2, 2, "VALID"), [0, 3, 1, 2]),
    }


def lookups(f):
    """Rows looked up and scattered, with the batch in each operand."""
    pairs = tf.stack([f.ids, f.ids], 1)
    deep = tf.reshape(f.ints[:, :2] % 4, [-1, 2, 1])
    values = f.x / rows_of(f)
    return {
        "gather_partial": tf.gather(f.part, f.ids),
        "gather_mean": tf.gather(f.mean, f.ids),
        "gather_matrix": tf.gather(f.table, f.ints % 4),
        "gather_columns": tf.gather(f.table, f.ids, axis=1),
        "gather_turned": tf.gather(f.turned, [[3, 0]], axis=0),
        "gather_mean_rows": tf.gather(values, [1, 1, 2], axis=1),
        "gather_batch_two": tf.gather(f.series, f.ints[:, :3] % 4, axis=-1, batch_dims=1),
        "gather_v1": raw.Gather(params=f.table * 1.0, indices=f.ids),
        "resource": tf1.nn.embedding_lookup(f.table, f.ints % 4),
        "gather_nd_partial": tf.gather_nd(f.part, pairs[:, :1]),
        "gather_nd_deep": tf.gather_nd(f.table, deep),
        "gather_nd_whole": tf.gather_nd(f.mean, [[2], [0]]),
        "scatter_nd": tf.scatter_nd(pairs, f.x[:, 0], [4, 4]),
        "scatter_nd_mean": tf.scatter_nd(pairs[:, :1], values, [4, 4]),
        "scatter_nd_whole": tf.scatter_nd([[3], [0]], f.part[:2], [4]),
        "segment_sum_mean": tf.math.unsorted_segment_sum(values, f.ids, 4),
        "segment_sum_columns": tf.math.unsorted_segment_sum(f.turned, [0, 1, 0, 1], 2),
        "segment_sum_of_all": tf.math.unsorted_segment_sum(f.x, np.arange(12) % 3, 3),
        "segment_prod": tf.math.unsorted_segment_prod(f.x, f.ids, 4),
        "segment_prod_whole": tf.math.unsorted_segment_prod(f.mean, [0, 1, 0, 1], 2),
        "segment_prod_partial": tf.math.unsorted_segment_prod(f.part, [0, 1, 0, 1], 2),
        "tensor_add_columns": raw.TensorScatterAdd(tensor=f.turned, indices=[[1], [3]], updates=tf.transpose(f.y[:, :2])),
        "tensor_sub_columns": raw.TensorScatterSub(
            tensor=f.turned / rows_of(f), indices=[[1], [3]], updates=tf.transpose(values[:, :2])
        ),
        "tensor_update_columns": raw.TensorScatterUpdate(
            tensor=f.turned, indices=[[1], [3]], updates=tf.transpose(f.y[:, :2])
        ),
        "tensor_update_deep": raw.TensorScatterUpdate(
            tensor=tf.transpose(f.series, [1, 2, 0]), indices=[[[1, 2]], [[0, 3]]], updates=tf.stack([f.turned[:1]] * 2)
        ),
        "tensor_max": raw.TensorScatterMax(tensor=f.turned, indices=[[1]], updates=tf.transpose(f.y[:, :1])),
        "tensor_min": raw.TensorScatterMin(tensor=f.turned, indices=[[1]], updates=tf.transpose(f.y[:, :1])),
        "tensor_add_whole": raw.TensorScatterAdd(tensor=f.row, indices=[[1], [3]], updates=f.mean[:2]),
        "tensor_update_whole": raw.TensorScatterUpdate(tensor=f.part, indices=[[0]], updates=f.mean[:1]),
        "tensor_add_rows": raw.TensorScatterAdd(tensor=f.table[:, :4] * 1.0, indices=pairs[:, :1], updates=f.x),
        "tensor_add_in_rows": raw.TensorScatterAdd(tensor=f.x, indices=[[3], [11]], updates=tf.ones([2, 4])),
        "stitch": raw.DynamicStitch(indices=[[0, 2], [1, 3]], data=[f.part[:2], f.mean[:2]]),
        "stitch_rows": raw.DynamicStitch(indices=[np.arange(12), [12]], data=[f.x, f.row[None]]),
        "partition": raw.DynamicPartition(data=f.x, partitions=f.ids % 2, num_partitions=2)[1],
        "partition_whole": raw.DynamicPartition(data=f.mean, partitions=[1, 0, 1, 0], num_partitions=2)[0],
        "where": tf.where(f.bits[:, 0]),
        "unique_counts": raw.UniqueWithCounts(x=f.ids).count,
        "permutation": tf.math.invert_permutation(tf.constant([2, 0, 1])),
        "range_number": tf.range(0.0, rows_of(f), 2.0),
    }


def others(f):
    pads = [[0, 0], [1, 1], [1, 1], [0, 0]]
    boxes = tf.concat([f.x[:, :2] * 0.3, 0.5 + f.x[:, 2:] * 0.4], 1)
    number = np.arange(12, dtype=np.int32)
    pool = dict(input=f.image, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    place, words = raw.MaxPoolWithArgmax(**pool), tf.as_string(f.ints)
    cell = raw.LSTMBlockCell(
        x=f.x, cs_prev=f.y, h_prev=f.x, w=tf.ones([8, 16]) * 0.1, wci=f.row, wcf=f.row, wco=f.row, b=tf.ones([16])
    )
    rows = tf.shape(f.x)[0]
    return {
        "mirror_pad": raw.MirrorPad(input=f.image, paddings=pads, mode="REFLECT"),
        "mirror_pad_grad": raw.MirrorPadGrad(input=f.image, paddings=pads, mode="REFLECT"),
        "mirror_pad_grad_mean": raw.MirrorPadGrad(input=f.image / rows_of(f), paddings=pads, mode="SYMMETRIC"),
        "mirror_pad_grad_sum": raw.MirrorPadGrad(input=f.part, paddings=[[1, 1]], mode="SYMMETRIC"),
        "squeeze_axis": tf.squeeze(f.x[:, :1], [1]),
        "squeeze_all_of_sum": tf.squeeze(f.part[None]),
        "squeeze_many_rows": tf.squeeze(tf.reshape(f.x, [-1, 1])),
        "rows_matrix": f.x / tf.cast(tf.expand_dims(tf.expand_dims(rows, 0), 1), tf.float32),
        "rows_reshaped": f.x / tf.cast(tf.reshape(rows, [1, 1]), tf.float32),
        "rows_column": f.x / tf.cast(tf.expand_dims(tf.shape(f.x)[:1], 1), tf.float32),
        "argmax_pool": place.output,
        "argmax_index": place.argmax,
        "crop": raw.CropAndResize(image=f.image, boxes=boxes, box_ind=number, crop_size=[2, 2]),
        "crop_some": raw.CropAndResize(image=f.image, boxes=[[0.1, 0.2, 0.7, 0.9]], box_ind=[11], crop_size=[2, 2]),
        "cell_softmax": tf.nn.softmax(cell.h),  # needs the shape of the cell's results
        "join": raw.StringJoin(inputs=[words, "/", words], separator="-"),
        "regex": raw.RegexReplace(input=words, pattern="1", rewrite="one"),
        "match": raw.RegexFullMatch(input=words, pattern="1|2"),
        "substr_lines": raw.Substr(input=tf.as_string(f.ids), pos=[[0], [0]], len=[[1], [1]]),
        "substr": raw.Substr(input=words, pos=[0, 0, 0, 0], len=[1, 1, 1, 1]),
    }


def contracted(f):
    """A contraction says that a constant has a row for each of the batch."""
    turned = tf.transpose(f.series, [1, 0, 2])
    return {"rows": raw.BatchMatMul(x=turned, y=tf.ones([5, 12, 3]), adj_x=True)}


def quantized(f):
    """Ranges that are given, of each column, of each row and of all rows; and straight through them."""
    def rounded(x, **kwargs):
        return raw.QuantizeAndDequantizeV2(input=x, input_min=0.0, input_max=1.0, num_bits=3, **kwargs)

    def sliced(low, high, **kwargs):
        return raw.QuantizeAndDequantizeV3(input=f.x, input_min=low, input_max=high, num_bits=3, **kwargs)

    given = dict(range_given=True)
    return {
        "given": rounded(f.x, **given),
        "given_sums": rounded(f.mean, **given),
        "given_columns": sliced(tf.zeros([4]), f.row + 1.0, axis=1, **given),
        "given_rows": sliced(f.x[:, 0] - 1, f.x[:, 1], axis=0, **given),
        "own_rows": sliced(f.x[:, 0], f.x[:, 1], axis=0, range_given=False),
        "all_rows": rounded(f.x),
        "all_rows_columns": sliced(tf.zeros([4]), f.row, axis=1, range_given=False),
        "v4": raw.QuantizeAndDequantizeV4(input=f.y, input_min=0.0, input_max=1.0, num_bits=3, **given),
        "gradient": tf.gradients(tf.reduce_sum(rounded(tf.matmul(f.x, f.table), **given)), f.table)[0],
    }


PROVED = {
    "products": products,
    "losses": losses,
    "norms": norms,
    "channels_first": channels_first,
    "lookups": lookups,
    "contracted": contracted,
    "others": others,
    "quantized": quantized,
}


def refused(f):
    """An op that mixes rows, numbers the rows of a replica, or depends on their count: a warning for each."""
    pool = dict(input=f.image, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    some = raw.DynamicPartition(data=f.table[:, :4] * 1.0, partitions=[0, 1, 0, 1], num_partitions=2)[0]
    return {
        "squeeze_rows": tf.squeeze(f.ids),
        "argmax": raw.MaxPoolWithArgmax(**pool, include_batch_in_index=True).argmax,
        "xent_other_rows": raw.SoftmaxCrossEntropyWithLogits(features=f.x, labels=some).loss,
        "quantized_rows": raw.QuantizeAndDequantizeV3(
            input=f.x, input_min=tf.zeros([ROWS]), input_max=tf.ones([ROWS]), num_bits=3, axis=0
        ),
        "xent_turned": raw.SoftmaxCrossEntropyWithLogits(features=f.turned, labels=f.turned).loss,
    }


@pytest.mark.parametrize("group", PROVED)
@pytest.mark.parametrize("replicas", [2, 3])
def test_proved(group, replicas, tmp_path):
    program = test_rules.run_alone(PROVED[group], str(tmp_path / "in.pb"))
    test_rules.check_related(program, replicas, str(tmp_path / "out.pb"))


def test_refused(tmp_path):
    test_rules.check_unrelated(refused, str(tmp_path / "refused.pb"))


@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
@pytest.mark.parametrize("rows", [12, 3, None])
def test_squeeze_by_rows(rows, axes, tmp_path):
    """Without axes: no replica of three loses its rows, be it one, or is the batch in another axis."""
    path, out = str(tmp_path / "in.pb"), str(tmp_path / "out.pb")
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [rows, 1], "x")
        w = tf1.get_variable("w", initializer=[[2.0]])
        tf.identity(tf.squeeze(tf.transpose(tf.matmul(x, w), axes)), name="squeezed")
        step = tf1.assign_add(w, tf.reduce_sum(x, 0, keepdims=True)).op.name
        init = tf1.global_variables_initializer().name
    with open(path, "wb") as file:
        file.write(graph.as_graph_def().SerializeToString())
    flags = ["--strict", "--fallback=mean", "--feed=x=split", *options(3, ["squeezed:0", step, init])]
    harness.run_graft([path, "-o", out, *flags])
    fed = {"x": np.arange(rows or 3, dtype=np.float32)[:, None]}
    got = run(harness.read_graph_def(out), fed, {"squeezed": "squeezed:0"}, init, 3)["squeezed"]
    assert np.array_equal(got, 2.0 * fed["x"][:, 0])
