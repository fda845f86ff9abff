# SPDX-License-Identifier: Apache-2.0
"""Rules of ops that read the rows of all replicas, of quantized tensors and of other names, as in test_rules.py.

What reads all rows gives every replica the value of the single-device step, whatever is split: a function of values that
nobody can tell from the row that they come of.
"""

import pytest
import tensorflow as tf
import test_rules

tf1 = tf.compat.v1
raw = tf.raw_ops


def flat(results):
    """The tensors, some of which are in lists."""
    return [t for result in results for t in (result if isinstance(result, list) else [result])]


def sparse(f):
    """Sparse tensors with values of some rows, and of sums."""
    at, shape = tf.constant([[0, 1], [1, 0], [2, 3]], tf.int64), tf.constant([3, 4], tf.int64)
    other = tf.constant([[0, 1], [2, 2]], tf.int64)
    values, more = tf.reduce_max(f.x, 1)[:3], f.x[0, :2]
    sums, few = f.part[:3], f.mean[:2]
    dense = f.x[:3]
    csr = raw.SparseTensorToCSRSparseMatrix(indices=at, values=values, dense_shape=shape)
    csr2 = raw.DenseToCSRSparseMatrix(dense_input=f.x, indices=[[0, 1], [2, 0]])
    one = dict(a_indices=at, a_values=values, a_shape=shape)
    two = dict(b_indices=other, b_values=more, b_shape=shape)
    added = raw.SparseAdd(**one, **two, thresh=0.0)
    inputs = dict(input_indices=at, input_values=sums, input_shape=shape)
    plain = dict(sp_indices=at, sp_values=values, sp_shape=shape)
    filled = raw.SparseFillEmptyRows(indices=other, values=few, dense_shape=shape, default_value=f.part[0])
    counts = dict(indices=at, values=f.ids[:3], dense_shape=shape)
    return {
        "SparseAdd": [*added],
        "SparseAddGrad": [
            *raw.SparseAddGrad(backprop_val_grad=added.sum_values, a_indices=at, b_indices=other, sum_indices=added.sum_indices),
        ],
        "SparseBincount": [raw.SparseBincount(**counts, size=4, weights=tf.zeros([0]))],
        "SparseConcat": [
            *raw.SparseConcat(indices=[at, other], values=[values, more], shapes=[shape, shape], concat_dim=0),
        ],
        "SparseCountSparseOutput": [*raw.SparseCountSparseOutput(**counts, weights=tf.zeros([0]), binary_output=False)],
        "SparseDenseCwiseAdd": [raw.SparseDenseCwiseAdd(**plain, dense=dense)],
        "SparseDenseCwiseDiv": [raw.SparseDenseCwiseDiv(**plain, dense=dense)],
        "SparseDenseCwiseMul": [raw.SparseDenseCwiseMul(**plain, dense=f.row)],
        "SparseFillEmptyRows": [*filled],
        "SparseFillEmptyRowsGrad": [
            *raw.SparseFillEmptyRowsGrad(reverse_index_map=filled.reverse_index_map, grad_values=filled.output_values),
        ],
        "SparseReduceMax": [raw.SparseReduceMax(**inputs, reduction_axes=[1])],
        "SparseReduceMaxSparse": [*raw.SparseReduceMaxSparse(**inputs, reduction_axes=[1])],
        "SparseReduceSum": [raw.SparseReduceSum(**inputs, reduction_axes=[1])],
        "SparseReduceSumSparse": [*raw.SparseReduceSumSparse(**inputs, reduction_axes=[1])],
        "SparseReorder": [*raw.SparseReorder(**inputs)],
        "SparseReshape": [*raw.SparseReshape(input_indices=at, input_shape=shape, new_shape=[2, 6])],
        "SparseSlice": [*raw.SparseSlice(indices=at, values=values, shape=shape, start=[0, 0], size=[2, 4])],
        "SparseSoftmax": [raw.SparseSoftmax(**plain)],
        "SparseSparseMaximum": [*raw.SparseSparseMaximum(**one, **two)],
        "SparseSparseMinimum": [*raw.SparseSparseMinimum(**one, **two)],
        "SparseSplit": [
            *flat(raw.SparseSplit(split_dim=1, indices=at, values=values, shape=shape, num_split=2)),
        ],
        "SparseTensorDenseAdd": [raw.SparseTensorDenseAdd(**one, b=dense)],
        "DenseCountSparseOutput": [
            *raw.DenseCountSparseOutput(values=f.ints, weights=tf.zeros([0]), binary_output=False),
        ],
        "DenseToSparseSetOperation": [
            *raw.DenseToSparseSetOperation(set1=f.ints[:3], set2_indices=at, set2_values=f.ids[:3], set2_shape=shape, set_operation="union")
        ],
        "SetSize": [raw.SetSize(set_indices=at, set_values=f.ids[:3], set_shape=shape)],
        "CSRSparseMatrixToDense": [raw.CSRSparseMatrixToDense(sparse_input=c, type=tf.float32) for c in (csr, csr2)],
        "CSRSparseMatrixToSparseTensor": [*raw.CSRSparseMatrixToSparseTensor(sparse_matrix=csr2, type=tf.float32)],
        "SparseMatrixNNZ": [raw.SparseMatrixNNZ(sparse_matrix=csr2)],
        "SparseMatrixMatMul": [raw.SparseMatrixMatMul(a=csr, b=tf.transpose(f.x))],
        "SparseSegmentSumGradV2": [
            *raw.SparseSegmentSumGradV2(grad=f.x[:2], indices=[0, 2, 3], segment_ids=[0, 0, 1], dense_output_dim0=5)
        ],
        "SerializeSparse": [raw.SerializeSparse(sparse_indices=at, sparse_values=values, sparse_shape=shape)],
    }


def ragged(f):
    splits = tf.constant([0, 2, 2, 3], tf.int64)
    values = tf.reduce_max(f.x, 1)[:3]
    boxed = raw.RaggedTensorToVariant(rt_nested_splits=[splits], rt_dense_values=values, batched_input=False)
    ranges = raw.RaggedRange(starts=f.ids, limits=f.ids + 2, deltas=1)
    return {
        "RaggedRange": [*ranges],
        "RaggedTensorToSparse": [*raw.RaggedTensorToSparse(rt_nested_splits=[splits], rt_dense_values=values)],
        "RaggedGather": [
            *flat(
                raw.RaggedGather(params_nested_splits=[splits], params_dense_values=f.part[:3], indices=f.ids % 3, OUTPUT_RAGGED_RANK=1)
            ),
        ],
        "RaggedBincount": [raw.RaggedBincount(splits=splits, values=f.ids[:3], size=4, weights=tf.zeros([0]))],
        "RaggedTensorToTensor": [
            raw.RaggedTensorToTensor(
                shape=[3, 4], values=values, default_value=0.0, row_partition_tensors=[splits], row_partition_types=["ROW_SPLITS"]
            )
        ],
        "RaggedTensorFromVariant": [
            *flat(raw.RaggedTensorFromVariant(encoded_ragged=boxed, input_ragged_rank=1, output_ragged_rank=1, Tvalues=tf.float32))
        ],
        "StringNGrams": [*raw.StringNGrams(data=tf.as_string(f.ids)[:3], data_splits=tf.constant([0, 3], tf.int64), separator="-",
                                           ngram_widths=[2], left_pad="", right_pad="", pad_width=0, preserve_short_sequences=False)],
    }


def lists(f):
    made = raw.TensorListFromTensor(tensor=f.x, element_shape=[4])
    empty = raw.EmptyTensorList(element_shape=[4], max_num_elements=5, element_dtype=tf.float32)
    room = raw.TensorListReserve(element_shape=[4], num_elements=2, element_dtype=tf.float32)
    pushed = raw.TensorListPushBack(input_handle=empty, tensor=f.part)
    kept = raw.TensorListSetItem(input_handle=room, index=1, item=f.mean)
    both = raw.TensorListConcatLists(input_a=made, input_b=pushed, element_dtype=tf.float32)
    mapped = raw.TensorMapInsert(input_handle=raw.EmptyTensorMap(), key=1, value=f.part)

    def stack(handle, count=-1):
        return raw.TensorListStack(input_handle=handle, element_shape=[4], element_dtype=tf.float32, num_elements=count)

    return {
        "TensorListStack": [
            stack(made), stack(pushed), stack(kept), stack(both),
        ],
        "TensorListLength": [raw.TensorListLength(input_handle=made)],
        "TensorListGetItem": [
            raw.TensorListGetItem(input_handle=made, index=2, element_shape=[4], element_dtype=tf.float32),
        ],
        "TensorListGather": [
            raw.TensorListGather(input_handle=made, indices=[1, 3], element_shape=[4], element_dtype=tf.float32),
        ],
        "TensorListElementShape": [raw.TensorListElementShape(input_handle=made, shape_type=tf.int32)],
        "TensorListScatterV2": [
            stack(raw.TensorListScatterV2(tensor=f.x[:2], indices=[1, 0], element_shape=[4], num_elements=2)),
        ],
        "TensorListPopBack": [
            raw.TensorListPopBack(input_handle=made, element_shape=[4], element_dtype=tf.float32).tensor,
        ],
        "TensorMapLookup": [raw.TensorMapLookup(input_handle=mapped, key=1, value_dtype=tf.float32)],
        "TensorMapSize": [raw.TensorMapSize(input_handle=mapped)],
        "TensorMapHasKey": [raw.TensorMapHasKey(input_handle=mapped, key=1)],
    }


def quantized(f):
    """Small numbers, so that all roundings are the same on each replica."""
    zero, one = tf.constant(0.0), tf.constant(1.0)

    def quantize(x, low=zero, high=one):
        return raw.QuantizeV2(input=x, min_range=low, max_range=high, T=tf.quint8)

    def plain(out):
        q, low, high = out
        return [raw.Dequantize(input=q, min_range=low, max_range=high), low, high]

    image, kernel, x, table = quantize(f.image), quantize(tf.sigmoid(f.filter)), quantize(f.x), quantize(tf.sigmoid(f.table))
    ranges = dict(min_input=image.output_min, max_input=image.output_max)
    of_x = dict(min_features=x.output_min, max_features=x.output_max)
    pool = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    conv = raw.QuantizedConv2D(input=image.output, filter=kernel.output, **ranges, min_filter=kernel.output_min,
                               max_filter=kernel.output_max, strides=[1, 1, 1, 1], padding="SAME")
    both = dict(min_a=x.output_min, max_a=x.output_max, min_b=table.output_min, max_b=table.output_max)
    product = raw.QuantizedMatMul(a=x.output, b=table.output, **both)
    turned = raw.QuantizedMatMul(a=x.output, b=quantize(f.y).output, **both, transpose_a=True)
    found = raw.RequantizationRange(input=conv.output, input_min=conv.min_output, input_max=conv.max_output)
    given = dict(input_min=conv.min_output, input_max=conv.max_output)
    two = dict(min_x=x.output_min, max_x=x.output_max, min_y=zero, max_y=one)
    own = quantize(f.x, tf.reduce_min(f.x), tf.reduce_max(f.x))
    return {
        "QuantizeV2": [*plain(x), *plain(own)],
        "QuantizedRelu": plain(raw.QuantizedRelu(features=x.output, **of_x)),
        "QuantizedRelu6": plain(raw.QuantizedRelu6(features=x.output, **of_x)),
        "QuantizedMaxPool": plain(raw.QuantizedMaxPool(input=image.output, **ranges, **pool)),
        "QuantizedAvgPool": plain(raw.QuantizedAvgPool(input=image.output, **ranges, **pool)),
        "QuantizedConv2D": plain(
            raw.Requantize(input=conv.output, **given, requested_output_min=zero, requested_output_max=8.0, out_type=tf.quint8)
        ),
        "QuantizedMatMul": plain(product) + plain(turned),
        "QuantizeDownAndShrinkRange": plain(
            raw.QuantizeDownAndShrinkRange(input=conv.output, **given, out_type=tf.quint8)
        ),
        "RequantizationRange": [*found],
        "QuantizedResizeBilinear": plain(
            raw.QuantizedResizeBilinear(images=image.output, size=[3, 3], min=zero, max=one)
        ),
        "QuantizedAdd": plain(raw.QuantizedAdd(x=x.output, y=quantize(f.y).output, **two)),
        "QuantizedMul": plain(raw.QuantizedMul(x=x.output, y=quantize(f.y).output, **two)),
        "QuantizedReshape": plain(raw.QuantizedReshape(tensor=x.output, shape=[-1, 2], input_min=zero, input_max=one)),
        "QuantizedConcat": plain(
            raw.QuantizedConcat(concat_dim=1, values=[x.output, x.output], input_mins=[zero, zero], input_maxes=[one, one])
        ),
        "QuantizedBiasAdd": plain(
            raw.QuantizedBiasAdd(input=x.output, bias=quantize(tf.sigmoid(f.row)).output, min_input=zero, max_input=one, min_bias=zero,
                                 max_bias=one, out_type=tf.qint32)
        ),
        "QuantizedInstanceNorm": plain(raw.QuantizedInstanceNorm(x=image.output, x_min=zero, x_max=one)),
        "QuantizeAndDequantizeV4Grad": [
            *raw.QuantizeAndDequantizeV4Grad(gradients=f.x, input=f.y, input_min=0.2, input_max=0.7),
        ],
    }


def others(f):
    """Losses, images, strings, shapes."""
    time = tf.transpose(f.series, [1, 0, 2])
    length = f.ids * 0 + 5
    texts = tf.as_string(f.ints)
    boxes = tf.concat([f.x[:, :2] * 0.4, f.x[:, 2:] * 0.4 + 0.5], 1)
    scores = f.x[:, 0]
    sound = tf.reshape(f.x, [-1, 1])
    spectrum = raw.AudioSpectrogram(input=sound, window_size=8, stride=4)
    pixels = tf.cast(f.image[0] * 200, tf.uint8)[:, :, :1]
    nearest = raw.NearestNeighbors(points=f.x, centers=tf.transpose(f.table)[:, :4], k=2)
    labels = dict(labels_indices=tf.constant([[i, 0] for i in range(test_rules.ROWS)], tf.int64), labels_values=f.ids % 3)
    return {
        "Diag": [raw.Diag(diagonal=f.part), raw.Diag(diagonal=scores)],
        "CTCGreedyDecoder": [*raw.CTCGreedyDecoder(inputs=time, sequence_length=length)[:2]],
        "CTCLoss": [
            *raw.CTCLoss(inputs=time, **labels, sequence_length=length, ignore_longer_outputs_than_inputs=True),
        ],
        "BiasAddV1": [raw.BiasAddV1(value=f.x, bias=f.row)],
        "SparseMatMul": [raw.SparseMatMul(a=f.x, b=f.table), raw.SparseMatMul(a=f.x, b=f.y, transpose_a=True)],
        "SpaceToBatch": [raw.SpaceToBatch(input=f.image, paddings=[[0, 0], [0, 0]], block_size=2)],
        "BatchToSpace": [raw.BatchToSpace(input=f.image, crops=[[0, 0], [0, 0]], block_size=2)],
        "DataFormatVecPermute": [raw.DataFormatVecPermute(x=f.ints[0])],
        "DataFormatDimMap": [raw.DataFormatDimMap(x=f.ids)],
        "EditDistance": [
            raw.EditDistance(hypothesis_indices=[[0, 0], [0, 1]], hypothesis_values=f.ids[:2], hypothesis_shape=[1, 2],
                             truth_indices=[[0, 0], [0, 1]], truth_values=f.ids[1:3], truth_shape=[1, 2])
        ],
        "Reverse": [raw.Reverse(tensor=f.x, dims=[True, False])],
        "NearestNeighbors": [*nearest],
        "TensorStridedSliceUpdate": [
            raw.TensorStridedSliceUpdate(input=f.x, begin=[0], end=[2], strides=[1], value=f.y[:2]),
        ],
        "UnravelIndex": [raw.UnravelIndex(indices=f.ids, dims=[2, 2])],
        "ToBool": [raw.ToBool(input=f.part[0])],
        "RandomIndexShuffle": [raw.RandomIndexShuffle(index=f.ids, seed=[1, 2, 3], max_index=5)],
        "ParseTensor": [raw.ParseTensor(serialized=raw.SerializeTensor(tensor=f.x), out_type=tf.float32)],
        "ShardedFilename": [raw.ShardedFilename(basename="a", shard=f.ids[0], num_shards=4)],
        "AudioSpectrogram": [spectrum],
        "Mfcc": [raw.Mfcc(spectrogram=spectrum, sample_rate=8000)],
        "CombinedNonMaxSuppression": [
            *raw.CombinedNonMaxSuppression(boxes=tf.reshape(boxes, [-1, 1, 1, 4]), scores=f.x[:, :1, None], max_output_size_per_class=2,
                                           max_total_size=2, iou_threshold=0.5, score_threshold=0.1)
        ],
        "NonMaxSuppressionV5": [
            *raw.NonMaxSuppressionV5(boxes=boxes, scores=scores, max_output_size=3, iou_threshold=0.5, score_threshold=0.1,
                                     soft_nms_sigma=0.0)
        ],
        "NonMaxSuppressionWithOverlaps": [
            raw.NonMaxSuppressionWithOverlaps(overlaps=tf.matmul(f.x, f.x, transpose_b=True), scores=scores, max_output_size=3,
                                              overlap_threshold=0.5, score_threshold=0.1)
        ],
        "EncodePng": [raw.EncodePng(image=pixels), raw.DecodePng(contents=raw.EncodePng(image=pixels))],
        "EncodeWav": [raw.EncodeWav(audio=sound, sample_rate=8000)],
        "ReduceJoin": [
            raw.ReduceJoin(inputs=texts, reduction_indices=[0]), raw.ReduceJoin(inputs=texts, reduction_indices=[1]),
        ],
        "StringSplitV2": [*raw.StringSplitV2(input=texts[:, 0], sep="")],
        "UnicodeDecode": [*raw.UnicodeDecode(input=texts[:, 0], input_encoding="UTF-8")],
        "UnsortedSegmentJoin": [raw.UnsortedSegmentJoin(inputs=texts[:, 0], segment_ids=f.ids, num_segments=4)],
        "Fingerprint": [raw.Fingerprint(data=f.x, method="farmhash64")],
        "Bitcast": [
            raw.Bitcast(input=f.x, type=tf.int32), raw.Bitcast(input=f.x, type=tf.uint8), raw.Bitcast(input=scores, type=tf.uint8),
        ],
        "KmeansPlusPlusInitialization": [
            raw.KmeansPlusPlusInitialization(points=f.x, num_to_sample=2, seed=3, num_retries_per_sample=1)
        ],
        "CheckNumericsV2": [
            raw.CheckNumericsV2(tensor=f.x, message="x"), raw.CheckNumericsV2(tensor=f.part, message=""),
        ],
        "Copy": [
            raw.Copy(input=f.x, tensor_name="", debug_ops_spec=[]), raw.CopyHost(input=f.mean, tensor_name="", debug_ops_spec=[]), raw.DeepCopy(x=f.mean), raw.GuaranteeConst(input=f.part),
        ],
    }


GROUPS = {"sparse": sparse, "ragged": ragged, "lists": lists, "quantized": quantized, "others": others}


@pytest.mark.parametrize("group", GROUPS)
def test_whole(group, tmp_path):
    def make(f):
        made = {f"{op}.{i}": t for op, tensors in GROUPS[group](f).items() for i, t in enumerate(tensors)}
        # A string alone is no array of numpy.
        return {name: t[None] if t.dtype == tf.string and t.shape.rank == 0 else t for name, t in made.items()}

    program = test_rules.run_alone(make, str(tmp_path / "in.pb"))
    test_rules.check_related(program, 3, str(tmp_path / "out.pb"))
