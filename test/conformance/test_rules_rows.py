# SPDX-License-Identifier: Apache-2.0
"""The ops of lib/infer/rules/RowOps.cpp and their like, run as in test_rules.py: every one is proved, and right."""

import os
import re

import harness
import numpy as np
import pytest
import rule_coverage
import tensorflow as tf
import test_rules

tf1 = tf.compat.v1
raw = tf.raw_ops


def constant(*shape):
    return tf.constant(np.random.RandomState(len(shape) + shape[-1]).uniform(-0.5, 0.5, shape).astype(np.float32))


def recurrent(f):
    state, other = f.x * 0.3, f.y - 0.5
    peep, w, bias = constant(4), constant(8, 16), constant(16)
    lstm = dict(x=f.x, cs_prev=state, h_prev=other, w=w, wci=peep, wcf=peep * 2.0, wco=peep * 3.0, b=bias)
    cell = raw.LSTMBlockCell(**lstm, use_peephole=True)
    inner = dict(zip(("i", "cs", "f", "o", "ci", "co"), cell))
    mean = f.y / tf.cast(tf.shape(f.x)[0], tf.float32)
    gru = dict(x=f.x, h_prev=other, w_ru=constant(8, 8), w_c=constant(8, 4), b_ru=constant(8), b_c=peep)
    r, u, c, h = raw.GRUBlockCell(**gru)
    time = dict(lstm, x=tf.transpose(f.series, [1, 0, 2]))
    result = {
        "LSTMBlockCell": list(cell),
        "LSTMBlockCellGrad": list(raw.LSTMBlockCellGrad(**lstm, **inner, cs_grad=f.y, h_grad=f.x, use_peephole=True))
        + list(raw.LSTMBlockCellGrad(**lstm, **inner, cs_grad=mean, h_grad=mean, use_peephole=True)),
        "GRUBlockCell": [r, u, c, h],
        "GRUBlockCellGrad": list(raw.GRUBlockCellGrad(**gru, r=r, u=u, c=c, d_h=f.y))
        + list(raw.GRUBlockCellGrad(**gru, r=r, u=u, c=c, d_h=mean)),
    }
    for name, grad in {"BlockLSTM": "BlockLSTMGrad", "BlockLSTMV2": "BlockLSTMGradV2"}.items():
        block = getattr(raw, name)(seq_len_max=tf.constant(5, tf.int64), **time, use_peephole=True)
        inner = dict(zip(("i", "cs", "f", "o", "ci", "co", "h"), block))
        back = dict(inner, cs_grad=block.cs, h_grad=block.h, use_peephole=True)
        result[name] = list(block)
        result[grad] = list(getattr(raw, grad)(seq_len_max=tf.constant(5, tf.int64), **time, **back))
    return result


def images(f):
    ones = [1, 1, 1, 1]
    dilation = dict(strides=ones, rates=ones, padding="SAME")
    kernel = constant(2, 2, 2)
    color = tf.tile(f.image[..., :1], [1, 1, 1, 3])
    boxes = tf.stack([f.x * 0.4, f.x * 0.4 + 0.3], 2)[:, :, :]
    boxes = tf.concat([boxes[:, :1, :], boxes[:, 1:2, :]], 2)
    pool = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    pool3 = dict(ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID")
    top, top3 = raw.MaxPool(input=f.image, **pool), raw.MaxPool3D(input=f.volume, **pool3)
    window = dict(ksize=tf.constant(pool["ksize"]), strides=tf.constant(pool["strides"]), padding="VALID")
    shift = tf.tile(tf.constant([[1.0, 0.0, 0.5, 0.0, 1.0, 0.0, 0.0, 0.0]]), tf.stack([tf.shape(f.x)[0], 1]))
    place = dict(scale=[1.5, 1.5], translation=[0.2, 0.1])
    blocks = raw.SpaceToBatchND(input=f.image, block_shape=[2, 2], paddings=[[0, 0], [0, 0]])
    back = raw.BatchToSpaceND(input=tf.nn.conv2d(blocks, f.filter, 1, "SAME"), block_shape=[2, 2], crops=[[0, 0]] * 2)
    mean = 1.0 / tf.cast(tf.shape(f.x)[0], tf.float32)
    grads, grads3 = [top * top, top * mean], [top3 * top3, top3 * mean]
    normal = raw.LRN(input=f.image)
    return {
        "LRNGrad": [
            raw.LRNGrad(input_grads=g, input_image=f.image, output_image=normal) for g in (f.image, f.image * mean)
        ],
        "MaxPoolGrad": [raw.MaxPoolGrad(orig_input=f.image, orig_output=top, grad=g, **pool) for g in grads],
        "MaxPoolGradV2": [raw.MaxPoolGradV2(orig_input=f.image, orig_output=top, grad=g, **window) for g in grads],
        "MaxPool3DGrad": [raw.MaxPool3DGrad(orig_input=f.volume, orig_output=top3, grad=g, **pool3) for g in grads3],
        "InTopK": [raw.InTopK(predictions=f.x, targets=f.ids, k=2)],
        "InTopKV2": [raw.InTopKV2(predictions=f.x, targets=f.ids, k=2)],
        "AdjustContrastv2": [raw.AdjustContrastv2(images=f.image, contrast_factor=1.5)],
        "AdjustHue": [raw.AdjustHue(images=color, delta=0.2)],
        "AdjustSaturation": [raw.AdjustSaturation(images=color, scale=1.4)],
        "Dilation2D": [raw.Dilation2D(input=f.image, filter=kernel, **dilation)],
        "Dilation2DBackpropInput": [
            raw.Dilation2DBackpropInput(input=f.image, filter=kernel, out_backprop=f.image, **dilation)
        ],
        "Dilation2DBackpropFilter": [
            raw.Dilation2DBackpropFilter(input=f.image, filter=kernel, out_backprop=f.image, **dilation)
        ],
        "DrawBoundingBoxes": [raw.DrawBoundingBoxes(images=color, boxes=boxes)],
        "DrawBoundingBoxesV2": [raw.DrawBoundingBoxesV2(images=color, boxes=boxes, colors=[[1.0, 0.0, 0.0]])],
        "ExtractVolumePatches": [
            raw.ExtractVolumePatches(input=f.volume, ksizes=[1, 2, 2, 2, 1], strides=[1] * 5, padding="VALID")
        ],
        "ImageProjectiveTransformV2": [
            raw.ImageProjectiveTransformV2(
                images=f.image, transforms=shift, output_shape=[4, 4], interpolation="BILINEAR"
            )
        ],
        "ImageProjectiveTransformV3": [
            raw.ImageProjectiveTransformV3(
                images=f.image, transforms=shift, output_shape=[4, 4], fill_value=0.1, interpolation="BILINEAR"
            )
        ],
        "MaxPoolGradGrad": [raw.MaxPoolGradGrad(orig_input=f.image, orig_output=top, grad=f.image, **pool)],
        "MaxPoolGradGradV2": [raw.MaxPoolGradGradV2(orig_input=f.image, orig_output=top, grad=f.image, **window)],
        "MaxPool3DGradGrad": [raw.MaxPool3DGradGrad(orig_input=f.volume, orig_output=top3, grad=f.volume, **pool3)],
        "ResizeBilinearGrad": [raw.ResizeBilinearGrad(grads=f.image, original_image=f.image[:, 1:3, 1:3])],
        "ResizeBicubicGrad": [raw.ResizeBicubicGrad(grads=f.image, original_image=f.image[:, 1:3, 1:3])],
        "ScaleAndTranslate": [raw.ScaleAndTranslate(images=f.image, size=[5, 5], **place)],
        "ScaleAndTranslateGrad": [
            raw.ScaleAndTranslateGrad(grads=f.image, original_image=f.image[:, 1:, 1:], **place)
        ],
        "SpaceToBatchND": [
            tf.reduce_sum(blocks * blocks, 0),
            raw.SpaceToBatchND(input=f.mean[None, :, None], block_shape=[2], paddings=[[0, 0]]),
        ],
        "BatchToSpaceND": [back, *tf.gradients(tf.reduce_mean(back * back, [1, 2, 3]), [f.image, f.filter])],
    }


def matrices(f):
    complex_x = tf.complex(f.x, f.y)
    cube = tf.complex(f.image, f.image)
    low, high = -0.5, 0.5
    lines = tf.cumsum(f.x, 1)
    weights = tf.reduce_sum(f.x, 1)
    return {
        "FFT": [raw.FFT(input=complex_x)],
        "IFFT": [raw.IFFT(input=complex_x)],
        "RFFT": [raw.RFFT(input=f.x, fft_length=[4]), raw.RFFT(input=f.part, fft_length=[4])],
        "IRFFT": [raw.IRFFT(input=complex_x, fft_length=[4])],
        "FFT2D": [raw.FFT2D(input=tf.complex(f.spd, f.spd))],
        "IFFT2D": [raw.IFFT2D(input=tf.complex(f.spd, f.spd))],
        "RFFT2D": [raw.RFFT2D(input=f.spd, fft_length=[3, 3])],
        "FFT3D": [raw.FFT3D(input=cube)],
        "IFFT3D": [raw.IFFT3D(input=cube)],
        "Cross": [raw.Cross(a=f.color, b=f.color[:, ::-1])],
        "Lu": list(raw.Lu(input=f.spd)),
        "Eig": [raw.Eig(input=f.spd, Tout=tf.complex64).e],
        "MatrixDiagV2": [raw.MatrixDiagV2(diagonal=f.x, k=0, num_rows=-1, num_cols=-1, padding_value=0.0)],
        "MatrixDiagV3": [raw.MatrixDiagV3(diagonal=f.x, k=1, num_rows=-1, num_cols=-1, padding_value=0.0)],
        "MatrixDiagPartV2": [raw.MatrixDiagPartV2(input=f.spd, k=0, padding_value=0.0)],
        "MatrixSetDiag": [raw.MatrixSetDiag(input=f.spd, diagonal=f.color)],
        "MatrixSetDiagV2": [raw.MatrixSetDiagV2(input=f.spd, diagonal=f.color, k=0)],
        "MatrixSetDiagV3": [raw.MatrixSetDiagV3(input=f.spd, diagonal=f.color, k=0)],
        "MatrixSolveLs": [raw.MatrixSolveLs(matrix=f.spd, rhs=f.spd, l2_regularizer=tf.constant(0.1, tf.float64))],
        "MatrixSquareRoot": [raw.MatrixSquareRoot(input=f.spd)],
        "MatrixLogarithm": [raw.MatrixLogarithm(input=tf.complex(f.spd, 0.0 * f.spd))],
        "BandedTriangularSolve": [raw.BandedTriangularSolve(matrix=f.spd[:, :2] + 2.0, rhs=f.spd)],
        "TridiagonalSolve": [raw.TridiagonalSolve(diagonals=f.spd + 1.0, rhs=f.spd)],
        "TridiagonalMatMul": [
            raw.TridiagonalMatMul(
                superdiag=f.spd[:, :1], maindiag=f.spd[:, 1:2], subdiag=f.spd[:, 2:], rhs=f.spd
            )
        ],
        "NthElement": [raw.NthElement(input=f.x, n=1)],
        "LowerBound": [raw.LowerBound(sorted_inputs=lines, values=f.x)],
        "UpperBound": [raw.UpperBound(sorted_inputs=lines, values=f.x)],
        "IsotonicRegression": [raw.IsotonicRegression(input=f.x).output],
        "FakeQuantWithMinMaxVarsGradient": list(
            raw.FakeQuantWithMinMaxVarsGradient(gradients=f.x, inputs=f.y, min=0.2, max=0.6)
        ),
        "FakeQuantWithMinMaxVarsPerChannel": [
            raw.FakeQuantWithMinMaxVarsPerChannel(inputs=f.x, min=[low] * 4, max=[high] * 4)
        ],
        "FakeQuantWithMinMaxVarsPerChannelGradient": list(
            raw.FakeQuantWithMinMaxVarsPerChannelGradient(gradients=f.x, inputs=f.y, min=[low] * 4, max=[high] * 4)
        ),
        "Bincount": [raw.Bincount(arr=f.ids, size=5, weights=weights)],
        "DiagPart": [raw.DiagPart(input=tf.matmul(f.x, f.x, transpose_a=True))],
        "HistogramFixedWidth": [raw.HistogramFixedWidth(values=f.x, value_range=[0.0, 1.0], nbins=4)],
        "LinSpace": [raw.LinSpace(start=tf.reduce_sum(f.part), stop=50.0, num=3)],
        "ListDiff": list(raw.ListDiff(x=f.ids, y=[1])),
        "SegmentSum": [raw.SegmentSum(data=f.x, segment_ids=np.arange(12, dtype=np.int32) // 3)],
        "SegmentMean": [raw.SegmentMean(data=f.x, segment_ids=tf.cast(tf.cumsum(tf.ones([12])), tf.int32) // 5)],
        "SparseSegmentSum": [raw.SparseSegmentSum(data=f.x, indices=[0, 3, 11], segment_ids=[0, 0, 1])],
        "SparseSegmentMean": [raw.SparseSegmentMean(data=f.x, indices=f.ids, segment_ids=[0] * 6 + [1] * 6)],
        "StringUpper": [raw.StringUpper(input=tf.as_string(f.x))],
        "StringLower": [raw.StringLower(input=tf.as_string(f.x))],
        "StringLength": [raw.StringLength(input=tf.as_string(f.ints))],
        "StringStrip": [raw.StringStrip(input=tf.as_string(f.ints))],
        "EncodeBase64": [raw.EncodeBase64(input=tf.as_string(f.ints))],
        "DecodeBase64": [raw.DecodeBase64(input=raw.EncodeBase64(input=tf.as_string(f.ints)))],
        "StaticRegexReplace": [raw.StaticRegexReplace(input=tf.as_string(f.ints), pattern="1", rewrite="one")],
        "StaticRegexFullMatch": [raw.StaticRegexFullMatch(input=tf.as_string(f.ints), pattern="1|2")],
        "StringToHashBucket": [raw.StringToHashBucket(string_tensor=tf.as_string(f.ints), num_buckets=9)],
        "StringToHashBucketStrong": [
            raw.StringToHashBucketStrong(input=tf.as_string(f.ints), num_buckets=9, key=[1, 2])
        ],
        "RegexReplace": [raw.RegexReplace(input=tf.as_string(f.ints), pattern="1", rewrite="one")],
        "RegexFullMatch": [raw.RegexFullMatch(input=tf.as_string(f.ints), pattern="1|2")],
        "MaxPoolWithArgmax": list(
            raw.MaxPoolWithArgmax(input=f.image, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
        ),
        "Substr": [raw.Substr(input=tf.as_string(f.ints + 10), pos=0, len=1)],
        "DecodePaddedRaw": [
            raw.DecodePaddedRaw(input_bytes=tf.as_string(f.ints), fixed_length=4, out_type=tf.uint8)
        ],
    }


GROUPS = {"recurrent": recurrent, "images": images, "matrices": matrices}


@pytest.mark.parametrize("group", GROUPS)
def test_rows(group, tmp_path):
    def make(f):
        return {f"{op}.{i}": t for op, tensors in GROUPS[group](f).items() for i, t in enumerate(tensors)}

    program = test_rules.run_alone(make, str(tmp_path / "in.pb"))
    test_rules.check_related(program, 3, str(tmp_path / "out.pb"))


def test_complete():
    """Every op with a letter for each operand is run here."""
    ops = {op for op, entry in rule_coverage.entries().items() if "Inputs" in entry}
    assert len(ops) > 40
    with open(__file__) as file:
        text = file.read()
    missing = sorted(op for op in ops if not re.search(rf'"{op}"', text))
    assert not missing
