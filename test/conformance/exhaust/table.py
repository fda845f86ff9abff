# SPDX-License-Identifier: Apache-2.0
"""The operands of ops.

An op whose operands all have one type needs no line: it gets ELEMENTS. A line says, operand by operand, what TensorFlow
takes, alternatives between bars; those of one number go together:

    B,4            a tensor of that shape, `B` is the batch; of every kind (operands.py)
    spd:B,3,3      the same with elements of a domain (operands.py): matrices, int(0,4), sorted(0,1)
    =[-1, 2]       a constant
    #[B, 2]        a vector or a number that is computed from the rows that are there
    @values B,4    a part of a sparse tensor that is made of such rows (Sparse in operands.py); parts of one kind are of one
    2* B,4         two operands, for a list

and, by name, the values that an attribute may have. Others come from the op's definition: both of a bool, all that are
allowed of a string, types that kernels have.
"""

import dataclasses
import functools
import os
import re
import sys
from typing import Dict, List, Optional, Tuple

from tensorflow.python.framework import dtypes, op_def_registry

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools", "scripts"))
import rule_coverage

from exhaust.operands import BATCH


@dataclasses.dataclass(frozen=True)
class Alternative:
    """One thing that an operand may be."""

    shape: Optional[Tuple] = None
    domain: Optional[str] = None
    constant: Optional[str] = None
    computed: Optional[str] = None
    part: Optional[str] = None

    def __str__(self):
        text = ",".join(str(size) for size in self.shape) if self.shape is not None else self.constant or self.computed
        return f"{self.part} of [{text}]" if self.part else f"[{text}]" if self.shape is not None else text


def alternative(text: str) -> Alternative:
    text = text.strip()
    if text.startswith("="):
        return Alternative(constant=text[1:].strip())
    if text.startswith("#"):
        return Alternative(computed=text[1:].strip())
    domain = part = None
    if text.startswith("@"):
        part, text = text[1:].split()
    if ":" in text:
        domain, text = text.split(":")
    return Alternative(tuple("B" if s == "B" else int(s) for s in text.split(",") if s), domain, part=part)


class Line:
    def __init__(self, *operands: str, types: str = "", close: float = 1.0, empty: bool = True, checked: bool = True, results: int = 99, without: str = "(?!)",
                 digits: bool = False, **attributes):
        self.lists: List[int] = []  # by input of the op: how many operands, 0 for one that is no list
        self.operands: List[List[Alternative]] = []
        for text in operands:
            count = re.match(r"(\d+)\*", text)
            self.lists.append(int(count[1]) if count else 0)
            choices = [alternative(part) for part in re.split(r"(?:^|\s)\|(?:\s|$)", text[count.end() if count else 0 :])]
            self.operands += [choices] * (int(count[1]) if count else 1)
        self.attributes = attributes
        self.types = [getattr(dtypes, name) for name in types.split()]
        self.close = close  # times the usual tolerance
        self.results = results  # of which TensorFlow gives a value
        self.empty = empty  # whether it is tried with few rows, and none
        self.without = without  # kinds of operands that its kernel does not take
        self.digits = digits  # whether it gives digits or bits of numbers, which are others after another rounding
        self.checked = checked  # whether its kernel looks at sizes before it reads


TENSOR = "B,4 | 4 |  | B,1 | B,2,4"
IMAGE, VOLUME = "B,4,4,2", "B,4,4,4,2"
MATRIX = "spd:B,3,3 | spd:3,3 | spd:B,2,3,3"
STRIDES = dict(strides=[[1, 1, 1, 1], [1, 2, 2, 1]])
STRIDES3 = dict(strides=[[1, 1, 1, 1, 1], [1, 2, 2, 2, 1]])
NHWC, NDHWC = dict(data_format=["NHWC"]), dict(data_format=["NDHWC"])
PADDING = dict(padding=["SAME", "VALID"], **NHWC)
POOL = dict(ksize=[[1, 2, 2, 1]], strides=[[1, 2, 2, 1]], **PADDING)
POOL3 = dict(ksize=[[1, 2, 2, 2, 1]], strides=[[1, 2, 2, 2, 1]], padding=["SAME", "VALID"], **NDHWC)
WINDOW = ("=[1,2,2,1]", "=[1,2,2,1]")
SMALL, SMALL3 = "B,2,2,2", "B,2,2,2,2"
SAMPLER = dict(num_true=[2], num_sampled=[3], unique=[True], seed=[1], seed2=[2])
AXES = "=0 | =1 | =-1 | =[0] | =[1] | =[-1] | =[0,1] | =[] | =2 | =0"
REDUCE = Line("B,4 | B,4 | B,4,3 | B | 4,B,3 | 4,B | B,4 | 4 | 4,3,B | 4,B", AXES)
CUMULATE = Line("B,4 | 4 | 4,B | B,2,3", "=0 | =1 | =-1")
LSTM = ("B,4", "B,4", "B,4", "8,16", "4", "4", "4", "16")
BLOCK = ("=[5] | =5", "5,B,4", "B,4", "B,4", "8,16", "4", "4", "4", "16")
SEGMENTS = ("B,4 | B | 4,3 | B,4 | B,4 | @filled_values B,4", "int(0,3):B | int(0,3):B | =[0,2,1,0] | int(0,2):B,4 | int(0,2):B | @which B,4",
            "=3 | =4 | =2 | =3 | #B | @count B,4")
SORTED = ("B,4 | B | 4,3 | B,4 | @filled_values B,4", "=[0]*6+[1]*6 | =[0]*6+[1]*6 | =[0,0,1,2] | #[0]*3+[1]*9 | @filled_rows B,4", "=3 | =2 | =3 | =3 | =20")
SPARSE = ("B,4 | B | 4,3 | @looked B,4 | 5,3", "=[0,2,3] | =[0,3,11] | =[0,1,3] | @which B,4 | @filled_values B,4",
          "=[0,0,1] | =[0,1,1] | =[0,1,2] | @filled_rows B,4 | @filled_rows B,4", "=2 | =2 | =3 | =20 | =20")
SPARSE_GRAD = ("3,4 | 2,4 | @gradient B,4 | @gradient B,4", "=[0,2,3] | int(0,3):3 | @which B,4 | @filled_values B,4",
               "=[0,0,1] | =[0,0,1] | @filled_rows B,4 | @filled_rows B,4", "=5 | #B | @count B,4 | =5")
COO = ("@indices B,4 | =[[0,1],[1,0],[2,3]] | @filled B,4", "@values B,4 | 3 | @filled_values B,4", "@shape B,4 | =[3,4] | @shape B,4")
COO_ONCE = ("@indices B,4 | =[[0,1],[1,0],[2,3]]", "@values B,4 | 3", "@shape B,4 | =[3,4]")
FFT = ("B,4 | 4 | B,2,4",)
FFT2 = ("B,4,4 | 4,4 | 4,B,4",)
FFT3 = ("B,2,4,4 | 2,4,4",)
SCATTER = ("4,3 | 4,3 | B,4,3 | B,3", "int(0,4):B,1 | int(0,4):5,1 | int(0,2):5,2 | int(0,2):3,1", "B,3 | 5,3 | 5,3 | 3,3")
NORM = ("B,2,2,4", "4", "4", "4", "(0.5,1.5):4")
NORM_GRAD = ("B,2,2,4", "B,2,2,4", "4", "4", "(0.5,1.5):4")
NORMS = dict(is_training=[False, True], **NHWC)
STRINGS = dict(types="string")
SLICES = dict(
    begin_mask=[0, 1, 3], end_mask=[0, 1, 3], ellipsis_mask=[0, 1, 2], new_axis_mask=[0, 1, 2], shrink_axis_mask=[0, 1, 2]
)
# An op without a line: each operand that is of the op's own type, and each other.
ELEMENTS, NUMBER = TENSOR, "4 |  | B | B,4"

LINES: Dict[str, Line] = {
    # Concat.cpp
    "Pack": Line("2* B,4 | 4 | B |  | 4,B", axis=[0, 1, -1]),
    "ConcatV2": Line("2* B,4 | 4 | B,2,4 | 4,B", "=0 | =1 | =-1"),
    # Contraction.cpp
    "SparseTensorDenseMatMul": Line(
        "=[[0,0],[1,2],[2,3]] | =[[0,0],[1,2],[2,3]] | int(0,3):3,2", "3", "=[3,4] | =[12,4] | =[3,4]", "4,3 | B,3 | 4,3",
        adjoint_a=[False, True],
    ),
    "MatMul": Line("B,4 | 4,B | B,4 | 4,3 | B,12", "4,3 | B,3 | B,3 | 3,2 | 12,B", grad_a=[False], grad_b=[False]),
    **dict.fromkeys(
        ("BatchMatMul", "BatchMatMulV2"),
        Line("B,2,4 | B,2,4 | 2,B,4 | B,3,2,4 | 2,3,4 | B,2,4", "B,4,3 | 4,3 | 2,4,B | B,1,4,3 | 2,4,2 | B,3,4",
             grad_x=[False], grad_y=[False]),
    ),
    "BiasAddGrad": Line("B,4 | B,2,4 | B,4,2,3 | 4,B,2,3 | 3,4"),
    "Einsum": Line(
        "2* B,3,4 | B,4 | B,3 | 4,B | 1,4", N=[2],
        equation=["bti,bsi->bts", "bti,btj->ij", "bi,bj->bij", "bi,bi->b", "bi,bj->ij", "ab,bc->ac", "bi,ci->bc", "ab,cb->ab",
                  "...i,...i->...", "bi,bi->", "ib,jb->ij", "...i,...j->...ij", "b...,b...->b...", "b...,...->..."],
    ),
    # Convolution.cpp
    "Conv2D": Line(IMAGE, "2,2,2,3", **STRIDES, **PADDING, use_cudnn_on_gpu=[True]),
    "Conv2DBackpropInput": Line("=[B,4,4,2] | #[B,4,4,2]", "2,2,2,3", "B,4,4,3", strides=[[1, 1, 1, 1]],
                                padding=["SAME"], **NHWC, use_cudnn_on_gpu=[True], checked=False),
    "Conv2DBackpropFilter": Line(IMAGE, "=[2,2,2,3]", "B,4,4,3", strides=[[1, 1, 1, 1]], padding=["SAME"], **NHWC,
                                 use_cudnn_on_gpu=[True], checked=False),
    "Conv3D": Line(VOLUME, "2,2,2,2,3", **STRIDES3, padding=["SAME", "VALID"], **NDHWC),
    "Conv3DBackpropInputV2": Line("=[B,4,4,4,2] | #[B,4,4,4,2]", "2,2,2,2,3", "B,4,4,4,3", strides=[[1] * 5],
                                  padding=["SAME"], **NDHWC, checked=False),
    # In 16 bits it adds up all rows and places.
    "Conv3DBackpropFilterV2": Line(VOLUME, "=[2,2,2,2,3]", "B,4,4,4,3", strides=[[1] * 5], padding=["SAME"], **NDHWC, checked=False,
                                   close=4.0),
    "DepthwiseConv2dNative": Line(IMAGE, "2,2,2,3", **STRIDES, **PADDING),
    "DepthwiseConv2dNativeBackpropInput": Line("=[B,4,4,2] | #[B,4,4,2]", "2,2,2,3", "B,4,4,6", strides=[[1, 1, 1, 1]],
                                               padding=["SAME"], **NHWC, checked=False),
    # On no rows it does not write the sums.
    "DepthwiseConv2dNativeBackpropFilter": Line(IMAGE, "=[2,2,2,3]", "B,4,4,6", strides=[[1, 1, 1, 1]], padding=["SAME"],
                                                **NHWC, checked=False, empty=False),
    "MaxPool": Line(IMAGE, **POOL),
    "AvgPool": Line(IMAGE, **POOL),
    "MaxPool3D": Line(VOLUME, **POOL3),
    "AvgPool3D": Line(VOLUME, **POOL3),
    "MaxPoolV2": Line(IMAGE, *WINDOW, **PADDING),
    "AvgPool3DGrad": Line("=[B,4,4,4,2] | #[B,4,4,4,2]", SMALL3, **POOL3, checked=False),
    "AvgPoolGrad": Line("=[B,4,4,2] | #[B,4,4,2]", SMALL, **POOL, checked=False),
    "LRN": Line(IMAGE, depth_radius=[1], types="float32"),
    "SpaceToDepth": Line(IMAGE, block_size=[2], **NHWC),
    "DepthToSpace": Line("B,4,4,8", block_size=[2], **NHWC),
    "ExtractImagePatches": Line(IMAGE, ksizes=[[1, 2, 2, 1]], **STRIDES, rates=[[1, 1, 1, 1]], padding=["SAME", "VALID"]),
    **dict.fromkeys(
        ("ResizeArea", "ResizeBicubic", "ResizeBilinear", "ResizeNearestNeighbor", "ResizeNearestNeighborGrad"),
        Line(IMAGE, "=[6,6] | =[2,3] | #[B,2]", half_pixel_centers=[False]),
    ),
    # Indexing.cpp
    "Gather": Line("4,3 | B,3 | B,3 | 3 | B,3", "int(0,4):B | int(0,2):3 | =[0] | int(0,3):B,2 | int(0,2):B"),
    "GatherV2": Line("4,3 | B,3 | B,5,3 | 4,B | B,4 | 4,3 | B,4", "int(0,4):B | int(0,2):3 | int(0,3):B,2 | int(0,4):3 | int(0,3):B | int(0,3): | int(0,2):B",
                     "=0 | =1 | =-1 | =0 | =1 | =0 | =0", batch_dims=[0, 1]),
    "GatherNd": Line("4,3 | B,3 | 3 | B,3 | 4,3 | B,4 | 2,B",
                     "int(0,3):B,2 | int(0,2):3,1 | int(0,3):B,1 | int(0,2):B,2,2 | int(0,3):1 | @indices B,4 | int(0,2):B,2"),
    "ScatterNd": Line("int(0,4):B,1 | int(0,3):B,2 | int(0,4):3,1 | int(0,2):B,1 | int(0,3):B,1 | int(0,2):B,2",
                      "B,3 | B | 3,2 | B,3 | B,3 | B", "=[4,3] | =[3,4] | =[4,2] | #[B,3] | =[12,3] | #[2,B]"),
    **dict.fromkeys(
        ("TensorScatterAdd", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub", "TensorScatterUpdate"), Line(*SCATTER)
    ),
    "Unique": Line("int(0,4):B | int(0,4):5 | @values B,4 | @filled_values B,4", types="int32 float32"),
    **dict.fromkeys(("UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd"), Line(*SEGMENTS)),
    "OneHot": Line("int(0,4):B | int(0,4):B,2 | int(0,4):3 | int(0,4):", "=4 | =5 | #B", "", "", axis=[-1, 0, 1]),
    "TopKV2": Line("B,4 | 4 | 4,B | B,2,4", "=2 | =1 | #B", sorted=[True]),
    # Matrices.cpp
    **dict.fromkeys(
        ("LogMatrixDeterminant", "MatrixDeterminant", "MatrixInverse", "Lu", "MatrixSquareRoot"),
        Line(MATRIX, close=20.0),
    ),
    # For a singular matrix it does not write most of the result.
    "Cholesky": Line(MATRIX, close=20.0, without="zero"),
    # Signs and orders of what they give are others with another rounding.
    **dict.fromkeys(
        ("Eig", "Qr", "SelfAdjointEigV2", "Svd"),
        Line(MATRIX, close=20.0, without=r"sum|mean|[/*]b", compute_v=[True], compute_uv=[True]),
    ),
    # It does not return from zeros, nor from sums of no rows.
    "MatrixLogarithm": Line(MATRIX, close=20.0, without="zero", empty=False),
    "CholeskyGrad": Line(MATRIX, MATRIX, close=20.0),
    "MatrixBandPart": Line("B,3,3 | B,3 | 3,3 | 3,B", "=1 | =0 | =-1", "=1 | =0 | =-1"),
    "MatrixDiag": Line("B,3 | 3 | B,2,3"),
    "MatrixDiagPart": Line("B,3,3 | 3,3 | B,3"),
    "DiagPart": Line("4,4 | B,B | 2,3,2,3"),
    "MatrixDiagPartV2": Line("B,3,3 | 3,3 | B,3", "=0 | =1 | =[-1,1]", ""),
    "MatrixDiagPartV3": Line("B,3,3 | 3,3 | B,3", "=0 | =1 | =[-1,1]", ""),
    **dict.fromkeys(("MatrixSolve", "MatrixTriangularSolve"), Line(MATRIX, "B,3,2 | 3,2 | B,2,3,2", close=20.0)),
    **dict.fromkeys(("HSVToRGB", "RGBToHSV"), Line("B,3 | 3 | B,2,3 | 3,B,3")),
    **dict.fromkeys(("FFT", "IFFT"), Line(*FFT, types="complex64")),
    **dict.fromkeys(("FFT2D", "IFFT2D"), Line(*FFT2, types="complex64")),
    **dict.fromkeys(("FFT3D", "IFFT3D"), Line(*FFT3, types="complex64")),
    **dict.fromkeys(("RFFT", "IRFFT"), Line(*FFT, "=[4] | =[6] | =[2]")),
    **dict.fromkeys(("RFFT2D", "IRFFT2D"), Line(*FFT2, "=[4,4] | =[2,6]")),
    **dict.fromkeys(("RFFT3D", "IRFFT3D"), Line(*FFT3, "=[2,4,4] | =[2,2,6]")),
    "Cross": Line("B,3 | 3 | B,2,3", "B,3 | 3 | B,2,3"),
    "MatrixDiagV2": Line("B,3 | 3 | B,2,3", "=0 | =1 | =[0,1]", "=-1", "=-1", ""),
    "MatrixDiagV3": Line("B,3 | 3 | B,2,3", "=0 | =1 | =[0,1]", "=-1", "=-1", ""),
    # Normalization.cpp
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"),
                    Line(*NORM, types="float32", epsilon=[0.001], exponential_avg_factor=[1.0, 0.5], results=3, **NORMS)),
    **dict.fromkeys(("FusedBatchNormGrad", "FusedBatchNormGradV2"), Line(*NORM_GRAD, types="float32", epsilon=[0.001], results=3, **NORMS)),
    "FusedBatchNormGradV3": Line(*NORM_GRAD, "4", types="float32", epsilon=[0.001], results=3, **NORMS),
    "Softmax": Line("B,4 | 4 | 4,B | B,2,4"),
    "LogSoftmax": Line("B,4 | 4 | 4,B | B,2,4"),
    "SoftmaxCrossEntropyWithLogits": Line("B,4 | B,4 | 3,4 | 4,B", "B,4 | 1,4 | 3,4 | 4,B"),
    "SparseSoftmaxCrossEntropyWithLogits": Line("B,4 | 3,4", "int(0,4):B | int(0,4):3"),
    # Quantization.cpp
    **dict.fromkeys(("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"),
                    Line("B,4 | 4 | B,4", "(0,0.1): | (0,0.1): | (0,0.1):4", "(0.8,1): | (0.8,1): | (0.8,1):4", axis=[-1, 1])),
    "QuantizeAndDequantizeV3": Line("B,4 | 4 | B,4", "(0,0.1): | (0,0.1): | (0,0.1):4", "(0.8,1): | (0.8,1): | (0.8,1):4", "=8",
                                    axis=[-1, 1]),
    # Records.cpp
    "DecodeCSV": Line("B | 3 | B,2", "1* =[0]", OUT_TYPE=[["int32"]]),
    "DecodePaddedRaw": Line("B | 3 | B,2", "=4", out_type=["uint8"]),
    "DecodeRaw": Line("int(1,9):B | int(1,9):3 | int(1,9):B,2", out_type=["uint8"]),
    # Reduction.cpp
    **dict.fromkeys(("Sum", "Mean", "Max", "Min", "All", "Any", "Prod", "EuclideanNorm"), REDUCE),
    **dict.fromkeys(("ArgMax", "ArgMin"), Line("B,4 | 4 | 4,B | B,2,3", "=0 | =1 | =-1")),
    "L2Loss": Line(TENSOR),
    "ReverseV2": Line("B,4 | 4 | 4,B | B,2,3", "=[0] | =[1] | =[-1] | =[0,1] | =[]"),
    "Roll": Line("B,4 | 4 | 4,B | B,2,3", "=1 | =[2] | =[1] | =[1]", "=0 | =[1] | =[-1] | =[0]"),
    **dict.fromkeys(("Cumsum", "Cumprod", "CumulativeLogsumexp"), CUMULATE),
    "ReverseSequence": Line("B,4 | 4,B | B,4,3 | 3,4", "int(1,4):B | int(1,4):B | int(1,4):B | int(1,4):3", seq_dim=[1, 0],
                            batch_dim=[0, 1]),
    # Reshape.cpp
    "Reshape": Line("B,4 | B,4 | B,4 | B,4 | 4,6 | B,2,4 | B,2,4 | 4,B | 4 | B,4 | B,4 | B,4 | 4,6",
                    "=[-1,2] | =[-1] | #[B,2,2] | =[B,2,2] | =[3,-1] | =[-1,4] | #[B,-1] | =[-1] | =[2,2] | =[4,-1] | =[48] | =[2,-1,4]"
                    " | #[B,-1]"),
    "ExpandDims": Line("B,4 | 4 | 4,B", "=0 | =1 | =-1"),
    "Squeeze": Line("B,1 | 1,4 | 1,B,1 | B,1,4", squeeze_dims=[[], [1], [0], [-1]]),
    **dict.fromkeys(("Transpose", "ConjugateTranspose"),
                    Line("B,4 | B,2,3 | 4,B | 3,4 | 2,B,3", "=[1,0] | =[2,0,1] | =[0,1] | =[1,0] | =[1,0,2]")),
    "Fill": Line("=[3,4] | #[B,4] | #[B] | =[B] | #[B,B]", ""),
    "Tile": Line("B,4 | 4 | 4,B | B,2,3 | B,1 | 1,4 | 4", "=[1,2] | =[3] | =[2,1] | =[1,2,1] | #[1,B] | #[B,1] | #[B]"),
    "BroadcastTo": Line("B,4 | 4 | B,1 | 4 | B,4 | 1,4", "=[B,4] | #[B,4] | #[B,4] | =[3,4] | #[2,B,4] | =[12,4]"),
    # RowIndices.cpp
    "DynamicPartition": Line("B,4 | B | 4,3 | B,4", "int(0,2):B | int(0,2):B | =[0,1,1,0] | int(0,2):B,4", num_partitions=[2]),
    **dict.fromkeys(("ParallelDynamicStitch", "DynamicStitch"),
                    Line("2* int(0,4):B | =[0,2] | int(0,4):5", "2* B,3 | 2,4 | 5,3", N=[2], close=1.0)),
    "Where": Line("B,4 | B | 4 | 4,B", types="bool float32 int32"),
    # RowOps.cpp
    "SpaceToBatchND": Line("B,4,4,2 | 4,4,2 | B,4,3", "=[2,2] | =[2] | =[2]", "=[[0,0],[0,0]] | =[[0,0]] | =[[0,0]]"),
    "BatchToSpaceND": Line("B,4,4,2 | 4,4,2 | B,4,3", "=[2,2] | =[2] | =[2]", "=[[0,0],[0,0]] | =[[0,0]] | =[[1,0]]"),
    "LSTMBlockCell": Line(*LSTM, cell_clip=[3.0], forget_bias=[1.0], types="float32", checked=False),
    # With peepholes the kernel gives something else where it may reuse an operand.
    "LSTMBlockCellGrad": Line(*LSTM, *["B,4"] * 8, types="float32", use_peephole=[False], checked=False),
    "GRUBlockCell": Line("B,4", "B,4", "8,8", "8,4", "8", "4", checked=False),
    "GRUBlockCellGrad": Line("B,4", "B,4", "8,8", "8,4", "8", "4", *["B,4"] * 4, checked=False),
    "BlockLSTM": Line("=5", *BLOCK[1:], types="float32", checked=False),
    "BlockLSTMV2": Line("=5", *BLOCK[1:], types="float32", checked=False),
    # On no rows they do not write the sums.
    "BlockLSTMGrad": Line("=5", *BLOCK[1:], *["5,B,4"] * 9, types="float32", empty=False, checked=False),
    "BlockLSTMGradV2": Line("=5", *BLOCK[1:], *["5,B,4"] * 9, types="float32", empty=False, checked=False),
    # Their kernels compare numbers of elements, and no sizes.
    **dict.fromkeys(
        "SigmoidGrad TanhGrad SqrtGrad RsqrtGrad InvGrad ReciprocalGrad".split(), Line(ELEMENTS, ELEMENTS, checked=False)
    ),
    "AdjustContrastv2": Line("B,4,4,3 | 4,4,3 | 4,B,4,3", "", types="float32"),
    # Its kernel does not return where the delta, a mean of no rows, is not a number.
    "AdjustHue": Line("B,4,4,3 | 4,4,3 | B,3", "(0,0.3):", types="float32", empty=False),
    "AdjustSaturation": Line("B,4,4,3 | 4,4,3 | B,3", "", types="float32"),
    "Dilation2D": Line(IMAGE, "2,2,2", **STRIDES, rates=[[1, 1, 1, 1]], padding=["SAME", "VALID"]),
    "Dilation2DBackpropInput": Line(IMAGE, "2,2,2", IMAGE, strides=[[1, 1, 1, 1]], rates=[[1, 1, 1, 1]], padding=["SAME"], checked=False),
    "Dilation2DBackpropFilter": Line(IMAGE, "2,2,2", IMAGE, strides=[[1, 1, 1, 1]], rates=[[1, 1, 1, 1]], padding=["SAME"], checked=False),
    "DrawBoundingBoxes": Line("B,4,4,3 | B,4,4,1", "boxes:B,2,4", types="float32"),
    "DrawBoundingBoxesV2": Line("B,4,4,3 | B,4,4,1", "boxes:B,2,4", "2,3", types="float32"),
    "ExtractVolumePatches": Line(VOLUME, ksizes=[[1, 2, 2, 2, 1]], **STRIDES3, padding=["SAME", "VALID"]),
    "ImageProjectiveTransformV2": Line(IMAGE, "=[[1.,0.,.5,0.,1.,0.,0.,0.]] | (0,0.1):B,8 | (0,0.1):1,8", "=[4,4] | =[3,5]",
                                       interpolation=["BILINEAR", "NEAREST"]),
    "ImageProjectiveTransformV3": Line(IMAGE, "=[[1.,0.,.5,0.,1.,0.,0.,0.]] | (0,0.1):B,8 | (0,0.1):1,8", "=[4,4] | =[3,5]", "",
                                       interpolation=["BILINEAR", "NEAREST"]),
    "LRNGrad": Line(IMAGE, IMAGE, IMAGE, depth_radius=[1], types="float32"),
    "MaxPool3DGrad": Line(VOLUME, SMALL3, SMALL3, **POOL3, types="float32", checked=False),
    "MaxPool3DGradGrad": Line(VOLUME, SMALL3, VOLUME, **POOL3, checked=False),
    "MaxPoolGrad": Line(IMAGE, SMALL, SMALL, **POOL, checked=False),
    "MaxPoolGradV2": Line(IMAGE, SMALL, SMALL, *WINDOW, **PADDING, checked=False),
    "MaxPoolGradGrad": Line(IMAGE, SMALL, IMAGE, **POOL, checked=False),
    "MaxPoolGradGradV2": Line(IMAGE, SMALL, IMAGE, *WINDOW, **PADDING, checked=False),
    "MaxPoolWithArgmax": Line(IMAGE, ksize=[[1, 2, 2, 1]], strides=[[1, 2, 2, 1]], padding=["SAME", "VALID"]),
    "ResizeBicubicGrad": Line(IMAGE, SMALL, half_pixel_centers=[False], checked=False),
    "ResizeBilinearGrad": Line(IMAGE, SMALL, half_pixel_centers=[False], checked=False),
    "ScaleAndTranslate": Line(IMAGE, "=[5,5] | #[B,5]", "(0.5,1.5):2", "(0,0.2):2"),
    "ScaleAndTranslateGrad": Line(IMAGE, SMALL, "(0.5,1.5):2", "(0,0.2):2", types="float32"),
    "FakeQuantWithMinMaxVarsGradient": Line(TENSOR, TENSOR, "(0.1,0.2):", "(0.6,0.7):"),
    "FakeQuantWithMinMaxVarsPerChannel": Line("B,4 | 4 | B,2,4", "(0.1,0.2):4", "(0.6,0.7):4"),
    "FakeQuantWithMinMaxVarsPerChannelGradient": Line("B,4 | 4 | B,2,4", "B,4 | 4 | B,2,4", "(0.1,0.2):4", "(0.6,0.7):4"),
    "FakeQuantWithMinMaxVars": Line(TENSOR, "(0.1,0.2):", "(0.6,0.7):"),
    "BandedTriangularSolve": Line("(1,2):B,2,3 | (1,2):2,3", "B,3,2 | 3,2", close=20.0),
    "MatrixSetDiag": Line("B,3,3 | 3,3 | B,3", "B,3 | 3 | 3"),
    "MatrixSetDiagV2": Line("B,3,3 | 3,3 | B,3", "B,3 | 3 | 3", "=0"),
    "MatrixSetDiagV3": Line("B,3,3 | 3,3 | B,3", "B,3 | 3 | 3", "=0"),
    "MatrixSolveLs": Line(MATRIX, "B,3,2 | 3,2 | B,2,3,2", "(0.1,0.2):", close=50.0, fast=[True]),
    "NthElement": Line("B,4 | 4 | 4,B", "=1 | =0 | #B"),
    "TridiagonalMatMul": Line("B,1,3", "B,1,3", "B,1,3", "B,3,2"),
    "TridiagonalSolve": Line("(1,2):B,3,3 | (1,2):3,3", "B,3,2 | 3,2", close=50.0, perturb_singular=[False]),
    **dict.fromkeys(("LowerBound", "UpperBound"), Line("sorted:B,4 | sorted:3,4", "B,2 | 3,2")),
    "IsotonicRegression": Line("B,4 | 3,4 | 4,B"),
    "InTopK": Line("B,4 | 3,4", "int(0,4):B | int(0,4):3", k=[2]),
    "InTopKV2": Line("B,4 | 3,4", "int(0,4):B | int(0,4):3", "=2 | =1"),
    "RegexFullMatch": Line(TENSOR, ' | ="1|2"'),
    "RegexReplace": Line(TENSOR, ' | ="1|2"', ' | ="one"'),
    # Elementwise.cpp
    "EnsureShape": Line("B,4 | 4 | B,2,4", shape=[[None, 4], [BATCH, 4], [4], [None, None], [BATCH, 2, 4]]),
    "IdentityN": Line("2* " + TENSOR),
    "AddN": Line("2* " + TENSOR),
    "BiasAdd": Line("B,4 | B,2,4 | B,4,2,3 | 3,4 | 4,B", "4 | 4 | 4 | 4 | B"),
    "Cast": Line(TENSOR, Truncate=[False, True], DstT=["float32", "int32", "float64", "bool"]),
    "Select": Line("int(0,2):B | int(0,2):B,4 | int(0,2): | int(0,2):4", "B,4 | B,4 | B,4 | 4", "B,4 | B,4 | B,4 | 4"),
    "SelectV2": Line("int(0,2):B,1 | int(0,2):B,4 | int(0,2): | int(0,2):4", "B,4 | B,4 | 4 | 4", "B,4 | 4 | B,4 | "),
    "Acosh": Line("(1,3):B,4 | (1,3):4 | (1,3):"),
    "Bucketize": Line(TENSOR, boundaries=[[0.2, 0.4, 0.6]]),
    "CheckNumerics": Line(TENSOR, message=[""]),
    "StringToHashBucketFast": Line(TENSOR, num_buckets=[50]),
    "StringToHashBucket": Line(TENSOR, num_buckets=[50]),
    "StringToHashBucketStrong": Line(TENSOR, num_buckets=[50], key=[[1, 2]]),
    "StaticRegexFullMatch": Line(TENSOR, pattern=["1|2"]),
    "StaticRegexReplace": Line(TENSOR, pattern=["1"], rewrite=["one"]),
    "StringToNumber": Line(TENSOR),
    "DecodeBase64": Line('=["MQ", "Mg"]', types="string"),
    "ClipByValue": Line("B,4 | 4 | B,4", "(0.1,0.3): | (0.1,0.3): | (0.1,0.3):B,4", "(0.6,0.8): | (0.6,0.8): | (0.6,0.8):B,4"),
    "Substr": Line("int(10,99):B,4 | int(10,99):4", "=0 | =1 | int(0,2):4", "=1 | =1 | int(0,2):4"),
    "StringJoin": Line("2* B,4 | 4 |  | B"),
    "LeftShift": Line(TENSOR, "int(0,3):B,4 | int(0,3):4 | int(0,3): | int(0,3):B,1 | int(0,3):4"),
    "RightShift": Line(TENSOR, "int(0,3):B,4 | int(0,3):4 | int(0,3): | int(0,3):B,1 | int(0,3):4"),
    "Polygamma": Line("int(1,3):B,4 | int(1,3):4 | int(1,3):", "B,4 | 4 | B,4", types="float32", close=10.0),
    "Zeta": Line("(1.5,3):B,4 | (1.5,3):4 | (1.5,3):", "B,4 | 4 | B,4", close=10.0),
    "Atanh": Line(TENSOR, close=5.0),
    "Snapshot": Line(TENSOR),
    "AsString": Line(TENSOR, digits=True),
    # ShapeOps.cpp
    "ShapeN": Line("2* B,4 | 4 | B"),
    # Its axes, which a sum and a reshape read, may be more where a replica has one row.
    "BroadcastGradientArgs": Line("#[B,4] | =[3,4] | #[B,4] | #[B,1]", "#[B,4] | =[4] | =[4] | =[1,4]", empty=False),
    "ConcatOffset": Line("=0 | =1", "2* #[B,4] | =[3,4]"),
    "InvertPermutation": Line("=[1,0,2] | =[2,0,1]"),
    "Range": Line("=0 | =1 | #B", "=5 | #B | =60", "=1 | =2 | =7"),
    # Slicing.cpp
    "Unpack": Line("B,4 | 4,B | 3,4", num=[3, 4], axis=[0, 1, -1]),
    "Split": Line("=0 | =1 | =-1", "B,4 | 4,B | 4,6", num_split=[2]),
    "SplitV": Line("B,4 | 4,B | 4,6 | B,4", "=[1,3] | =[3,1] | =[2,-1] | =[4,8]", "=1 | =0 | =-1 | =0", num_split=[2]),
    "Slice": Line("B,4 | B,4 | 4,B | 4,6 | B,4 | B,4 | B,4 | 20,4", "=[0,1] | =[0,0] | =[1,0] | =[0,0] | =[1,0] | =[0,2] | =[0,0] | =[0,0]",
                  "=[-1,2] | #[B,2] | =[2,-1] | =[2,3] | =[1,2] | =[B,2] | =[2,4] | #[B,4]"),
    "StridedSlice": Line("B,4 | B,4 | 4,B | 4,6 | B,4 | B,4 | B,2,4 | 20,4",
                         "=[0,1] | =[0,0] | =[1,0] | =[0,1] | =[1,-1] | =[0] | =[0,0,1] | =[0,0]",
                         "#[B,3] | =[B,2] | =[3,4] | =[3,5] | =[3,-3] | =[1] | =[-1,1,3] | #[B,4]",
                         "=[1,1] | =[1,2] | =[1,1] | =[2,1] | =[1,-1] | =[1] | =[1,1,1] | =[1,1]", **SLICES),
    "StridedSliceGrad": Line("#[B,4] | =[4,6] | =[B,4] | #[B,4]", "=[0,1] | =[0,1] | =[0,0] | =[0,1]", "=[0,3] | =[3,5] | =[0,2] | =[0,2]",
                             "=[1,1] | =[2,1] | =[1,1] | =[1,1]", "B,2 | 2,4 | B,2 | B", begin_mask=[0, 1, 3], end_mask=[0, 1],
                             shrink_axis_mask=[0, 2], ellipsis_mask=[0], new_axis_mask=[0]),
    "Pad": Line("B,4 | 4 | 4,B | B,4", "=[[0,0],[1,2]] | =[[1,2]] | =[[1,1],[0,0]] | =[[1,0],[0,0]]"),
    "PadV2": Line("B,4 | 4 | 4,B | B,4", "=[[0,0],[1,2]] | =[[1,2]] | =[[1,1],[0,0]] | =[[1,0],[0,0]]", ""),
    "MirrorPad": Line("B,4 | 4 | 4,B | B,4", "=[[0,0],[1,2]] | =[[1,2]] | =[[1,1],[0,0]] | =[[1,0],[0,0]]"),
    "MirrorPadGrad": Line("B,6 | 6 | 6,B | B,4", "=[[0,0],[1,1]] | =[[1,2]] | =[[1,1],[0,0]] | =[[1,0],[0,0]]"),
    # WholeBatch.cpp
    "Bincount": Line("int(0,4):B | int(0,4):5", "=5 | =4 | #B", "B | 5"),
    "DenseBincount": Line("int(0,4):B | int(0,4):5 | int(0,4):B,2", "=5 | =4 | =4", "B | 5 | B,2"),
    "BroadcastArgs": Line("#[B,4] | =[3,4] | #[B,1]", "#[B,4] | =[4] | =[1,4]"),
    "CropAndResize": Line(IMAGE, "boxes:2,4 | boxes:B,4", "=[0,1] | int(0,2):B", "=[3,3]"),
    "CropAndResizeGradBoxes": Line("2,3,3,2 | B,3,3,2", IMAGE, "boxes:2,4 | boxes:B,4", "=[0,1] | int(0,2):B"),
    "CropAndResizeGradImage": Line("2,3,3,2 | B,3,3,2", "boxes:2,4 | boxes:B,4", "=[0,1] | int(0,2):B", "=[3,4,4,2] | #[B,4,4,2]",
                                   T=["float32"]),
    "DenseToDenseSetOperation": Line("int(0,5):B,4 | int(0,5):3,4", "int(0,5):B,4 | int(0,5):3,4",
                                     set_operation=["a-b", "union", "intersection"], types="int32"),
    "HistogramFixedWidth": Line("B,4 | 4", "=[0,1]", "=4"),
    "LinSpace": Line("", "", "=3 | #B"),
    "ListDiff": Line("int(0,5):B | int(0,5):5", "int(0,3):2 | int(0,5):B"),
    "NonMaxSuppression": Line("boxes:5,4 | boxes:B,4", "5 | B", "=2"),
    "NonMaxSuppressionV2": Line("boxes:5,4 | boxes:B,4", "5 | B", "=2", ""),
    **dict.fromkeys(("NonMaxSuppressionV3", "NonMaxSuppressionV4"), Line("boxes:5,4 | boxes:B,4", "5 | B", "=2", "", "")),
    **dict.fromkeys(("SegmentMax", "SegmentMean", "SegmentMin", "SegmentProd", "SegmentSum"), Line(*SORTED[:2])),
    **dict.fromkeys(("SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentSum"), Line(*SPARSE[:3])),
    **dict.fromkeys(
        ("SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtNWithNumSegments", "SparseSegmentSumWithNumSegments"), Line(*SPARSE)
    ),
    # On no rows they do not write the sums.
    **dict.fromkeys(("SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad", "SparseSegmentSumGrad"), Line(*SPARSE_GRAD, empty=False)),
    "SparseToDense": Line("=[0,2] | =[[0,1],[2,0]] | int(0,4):B | @indices B,4 | @filled B,4", "=[4] | =[3,4] | =[4] | @shape B,4 | @shape B,4",
                          "2 | 2 | B | @values B,4 | @filled_values B,4", "", validate_indices=[False]),
    "StatelessRandomGetKeyCounter": Line("int(1,9):2"),
    **dict.fromkeys(("UniqueV2", "UniqueWithCountsV2"), Line("int(0,4):B | int(0,4):5 | int(0,2):4,2", "=[0] | =[] | =[0]",
                                                              types="int32 float32")),
    "UniqueWithCounts": Line("int(0,4):B | int(0,4):5", types="int32 float32"),
    # Sampling.cpp: what is drawn is no function of the operands.
    "ComputeAccidentalHits": Line("int(0,4):B,2", "=[0,1,2]", num_true=[2], seed=[1], seed2=[2]),
    # Others of these files.
    "BiasAddV1": Line("B,4 | B,2,4 | 3,4 | 4,B", "4 | 4 | 4 | B"),
    "SparseMatMul": Line("B,4 | 4,B | B,4 | 4,3 | B,12", "4,3 | B,3 | B,3 | 3,2 | 12,B", a_is_sparse=[False], b_is_sparse=[False],
                         Ta=["float32"], Tb=["float32"]),
    "Conv": Line(IMAGE, "2,2,2,3", strides=[[1, 1, 1, 1]], padding=["SAME", "VALID"], data_format=["CHANNELS_LAST"], explicit_paddings=[[]],
                 dilations=[[]], batch_dims=[1], groups=[1]),
    "Bitcast": Line("B,4 | 4 | B | 4,B", T=["float32", "int32"], type=["int32", "uint8"], digits=True),
    "Fingerprint": Line("B,4 | 4 | B", "=b'farmhash64'", T=["int32"]),
    "CheckNumericsV2": Line(TENSOR, message=["it is"]),
    "DecodeCompressed": Line(TENSOR, compression_type=[""]),
    "UnicodeTranscode": Line(TENSOR, input_encoding=["UTF-8"], output_encoding=["UTF-16-BE"], replacement_char=[65533]),
    "DataFormatDimMap": Line("int(0,4):B | int(0,4):4", src_format=["NHWC"], dst_format=["NCHW"]),
    "Diag": Line("B | 4 | 2,3 | B,2"),
    "Reverse": Line("B,4 | 4 | 4,B", "=[True, False] | =[True] | =[False, True]"),
    "UnravelIndex": Line("int(0,4):B | int(0,4):3", "=[2,2]"),
    "NearestNeighbors": Line("B,4 | 5,4", "5,4 | B,4", "=2"),
    "ReduceJoin": Line("B,4 | 4 | B", "=[0] | =0 | =[0]", separator=["-"]),
    # SparseRows.cpp, SparseTensors.cpp
    "SparseReshape": Line("@indices B,4 | =[[0,1],[2,3]] | @indices B,4 | @filled B,4 | @indices B,4",
                          "@shape B,4 | =[3,4] | @shape B,4 | @shape B,4 | @shape B,4", "#[B,-1] | =[4,3] | #[B,2,2] | =[-1,4] | =[-1,2]"),
    "SparseFillEmptyRows": Line(*COO, "", types="int32 float32 string"),
    "SparseFillEmptyRowsGrad": Line("@back B,4 | =[0,2] | int(0,3):B", "@filled_values B,4 | 4 | B"),
    "SparseCross": Line("1* @indices B,4 | @filled B,4", "1* @values B,4 | @filled_values B,4", "1* @shape B,4 | @shape B,4", "1* int(0,4):B,1",
                        sparse_types=[["int64"], ["string"]], dense_types=[["int64"]], hashed_output=[True], num_buckets=[7], hash_key=[3],
                        out_type=["int64"], internal_type=["int64", "string"]),
    "SparseCrossHashed": Line("1* @indices B,4 | @filled B,4", "1* @values B,4 | @filled_values B,4", "1* @shape B,4 | @shape B,4",
                              "1* int(0,4):B,1", "=7", "=False", "=[1,2]", sparse_types=[["int64"], ["string"]], dense_types=[["int64"]]),
    "SparseCrossV2": Line("1* @indices B,4 | @filled B,4", "1* @values B,4 | @filled_values B,4", "1* @shape B,4 | @shape B,4",
                          "1* int(0,4):B,1", "='x'", sparse_types=[["string"]], dense_types=[["string"]]),
    **dict.fromkeys(("SparseReorder", "SparseSoftmax"), Line(*COO_ONCE)),
    **dict.fromkeys(("SerializeSparse", "SerializeManySparse"), Line(*COO_ONCE, out_type=["string"], digits=True)),
    **dict.fromkeys(("SparseReduceSum", "SparseReduceSumSparse", "SparseReduceMax", "SparseReduceMaxSparse"),
                    Line(*COO_ONCE, "=[0] | =[1]")),
    "SparseAdd": Line(*COO_ONCE, "@filled B,4 | =[[0,0],[1,0]]", "@filled_values B,4 | 2", "@shape B,4 | =[3,4]", "=0", types="float32", Treal=["float32"]),
    "SparseAddGrad": Line("3 | B", "=[[0,1],[1,0]] | @indices B,4", "=[[0,1],[2,0]] | @indices B,4", "=[[0,1],[1,0],[2,0]] | @indices B,4"),
    **dict.fromkeys(("SparseSparseMaximum", "SparseSparseMinimum"),
                    Line(*COO_ONCE, "@filled B,4 | =[[0,0],[1,0]]", "@filled_values B,4 | 2", "@shape B,4 | =[3,4]")),
    **dict.fromkeys(("SparseDenseCwiseAdd", "SparseDenseCwiseDiv", "SparseDenseCwiseMul"), Line(*COO, "B,4 | 3,4 | 4")),
    "SparseSlice": Line(*COO_ONCE, "=[0,1] | =[1,0]", "=[12,2] | =[2,3]"),
    "SparseSliceGrad": Line("2 | B", "@indices B,4 | =[[0,1],[1,0],[2,3]]", "=[0,0] | =[0,0]", "=[[0,1],[1,0]] | @indices B,4"),
    "SparseSplit": Line("=1 | =0", *COO_ONCE, num_split=[2]),
    "SparseConcat": Line("2* @indices B,4 | =[[0,1],[2,3]]", "2* @values B,4 | 2", "2* @shape B,4 | =[3,4]", concat_dim=[0, 1]),
    "SparseTensorDenseAdd": Line(*COO_ONCE, "B,4 | 3,4", Tindices=["int64"]),
    # They read as many weights as there are values, whatever these have.
    "SparseBincount": Line("@indices B,4 | =[[0,1],[1,0],[2,3]]", "@values B,4 | int(0,4):3", "@shape B,4 | =[3,4]", "=4 | =5", "@values B,4 | 3",
                           checked=False),
    "SparseCountSparseOutput": Line("@indices B,4 | =[[0,1],[1,0],[2,3]]", "@values B,4 | int(0,4):3", "@shape B,4 | =[3,4]", "@values B,4 | 3"),
    "DenseCountSparseOutput": Line("int(0,4):B,4 | int(0,4):B | int(0,4):4", "B,4 | B | 4"),
    "SetSize": Line(*COO_ONCE, types="int32 int64", validate_indices=[False]),
    "SparseToSparseSetOperation": Line(*COO_ONCE, *COO_ONCE, set_operation=["a-b", "union", "intersection"], types="int32", validate_indices=[False]),
    "DenseToSparseSetOperation": Line("int(0,5):B,4 | int(0,5):3,4", *COO_ONCE, set_operation=["a-b", "union"], types="int32",
                                      validate_indices=[False]),
    "EditDistance": Line(*COO_ONCE, *COO_ONCE, types="int32"),
    **dict.fromkeys(("SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2", "SparseSegmentSumGradV2"), Line(*SPARSE_GRAD, types="float32")),
    "RaggedRange": Line("int(0,3):B | int(0,3):3", "int(3,6):B | int(3,6):3", "=1 | =[1,2,1]"),
    "RaggedTensorToSparse": Line("1* =[0,2,3] | =[0,6,12]", "3 | B", Tsplits=["int64"]),
    "RaggedBincount": Line("=[0,2,3] | =[0,6,12]", "int(0,4):3 | int(0,4):B", "=4 | =5", "3 | B", checked=False, empty=False),
    "RaggedCountSparseOutput": Line("=[0,2,3] | =[0,6,12]", "int(0,4):3 | int(0,4):B", "3 | B"),
    "RaggedGather": Line("1* =[0,2,3,3] | =[0,6,12]", "3 | B", "int(0,3):B | int(0,2):3", PARAMS_RAGGED_RANK=[1], OUTPUT_RAGGED_RANK=[1],
                         Tsplits=["int64"]),
    "RaggedTensorToTensor": Line("=[-1,3] | =[2,6]", "3 | B", "", "1* =[0,1,3] | =[0,6,12]", Tshape=["int64"], Tindex=["int64"],
                                 row_partition_types=[["ROW_SPLITS"]], checked=False, empty=False),
    # WholeBatch.cpp
    "SpaceToBatch": Line("B,4,4,2 | 4,4,4,2", "=[[0,0],[0,0]]", block_size=[2]),
    "BatchToSpace": Line("B,4,4,2 | 4,4,4,2", "=[[0,0],[0,0]]", block_size=[2]),
    "DataFormatVecPermute": Line("4 | #[B,4,4,2] | 4,2"),
    "StringSplit": Line("B | 4", "=','", skip_empty=[True, False]),
    "StringSplitV2": Line("B | 4", "=','"),
    "StringNGrams": Line("B | 4", "=[0,12] | =[0,1,4]", separator=["-"], ngram_widths=[[2]], left_pad=[""], right_pad=[""], pad_width=[0],
                         preserve_short_sequences=[True, False]),
    **dict.fromkeys(("UnicodeDecode", "UnicodeDecodeWithOffsets"), Line("B | 4", input_encoding=["UTF-8"], errors=["replace", "ignore"], empty=False)),
    "UnicodeEncode": Line("int(65,90):B | int(65,90):4", "=[0,6,12] | =[0,1,4]", output_encoding=["UTF-8"]),
    "UnsortedSegmentJoin": Line("B | 4", "int(0,3):B | =[0,2,1,0]", "=3 | =3", separator=["-"]),
    "SerializeTensor": Line("B,4 | 4", digits=True),
    "ScatterNdNonAliasingAdd": Line(*SCATTER),
    "TensorStridedSliceUpdate": Line("B,4 | 4,6", "=[0,1] | =[0,1]", "#[B,3] | =[3,5]", "=[1,1] | =[1,2]", "B,2 | 3,2", begin_mask=[0],
                                     end_mask=[0, 1], shrink_axis_mask=[0], ellipsis_mask=[0], new_axis_mask=[0]),
    "RandomIndexShuffle": Line("int(0,9):B | int(0,9):4", "=[1,2,3]", "=9", dtype=["int32", "int64"], Tseed=["int32"]),
    "CTCLoss": Line("5,B,4 | 5,3,4", "@indices B,2 | =[[0,0],[1,0],[2,1]]", "int(0,3):B | int(0,3):3", "=[5]*12 | =[5,5,4]", types="float32",
                    ignore_longer_outputs_than_inputs=[True], checked=False),
    "CTCGreedyDecoder": Line("5,B,4 | 5,3,4", "int(2,5):B | =[5,5,4]", types="float32"),
    "CTCBeamSearchDecoder": Line("5,B,4 | 5,3,4", "int(2,5):B | =[5,5,4]", types="float32", beam_width=[3], top_paths=[1]),
    "FusedPadConv2D": Line(IMAGE, "=[[0,0],[1,1],[1,1],[0,0]]", "2,2,2,3", mode=["REFLECT", "SYMMETRIC"], strides=[[1, 1, 1, 1]], padding=["VALID"],
                           types="float32"),
    "FusedResizeAndPadConv2D": Line(IMAGE, "=[5,5]", "=[[0,0],[1,1],[1,1],[0,0]]", "2,2,2,3", mode=["REFLECT"], strides=[[1, 1, 1, 1]],
                                    padding=["VALID"], types="float32"),
    "NonMaxSuppressionV5": Line("boxes:5,4 | boxes:B,4", "5 | B", "=2", "", "", "=0.0", types="float32"),
    "NonMaxSuppressionWithOverlaps": Line("5,5", "5", "=2", "", ""),
    "CombinedNonMaxSuppression": Line("boxes:B,5,1,4 | boxes:3,5,1,4", "B,5,2 | 3,5,2", "=2", "=3", "=0.5", "=0.1"),
    "AudioSpectrogram": Line("32,2", window_size=[8], stride=[4]),
    "EncodePng": Line("int(0,9):4,4,3 | int(0,9):B,4,3", types="uint8", empty=False),
    "EncodeJpeg": Line("int(0,9):4,4,3 | int(0,9):B,4,3"),
    "ShardedFilename": Line("=b'name'", "int(0,9):", "=9"),
    "FractionalAvgPoolGrad": Line("=[12,4,4,2]", SMALL, "=[0,2,4]", "=[0,2,4]", types="float32", checked=False),
    # Quantization.cpp
    "Dequantize": Line("B,4 | 4 | B,2,4", "(0,0.1): | (0,0.1): | (0,0.1):4", "(0.8,1): | (0.8,1): | (0.8,1):4", T=["quint8", "qint8"],
                       dtype=["float32"], axis=[-1, 1, 2]),
    # Others.
    "BatchMatMulV3": Line("B,2,4 | B,2,4 | 2,B,4 | 2,3,4", "B,4,3 | 4,3 | 2,4,B | 2,4,2", Ta=["float32"], Tb=["float32"], Tout=["float32"],
                          grad_x=[False], grad_y=[False]),
    "Concat": Line("=0 | =1 | =-1", "2* B,4 | 4 | B,2,4 | 4,B"),
}

def zeros(*slots: Tuple[int, ...]):
    return tuple(map(frozenset, slots))


# By linear op: operands that make results zeros if all of them are zeros; each of these does.
ZEROS: Dict[str, Tuple[frozenset, ...]] = {
    **dict.fromkeys(
        "Identity Snapshot Neg Real Imag Conj Cast Sum Mean L2Loss BiasAddGrad AvgPool AvgPool3D ResizeArea ResizeBicubic"
        " ResizeBilinear ResizeNearestNeighbor ResizeNearestNeighborGrad SpaceToDepth DepthToSpace ExtractImagePatches"
        " SpaceToBatchND BatchToSpaceND Gather GatherV2 GatherNd UnsortedSegmentSum SegmentSum SegmentMean"
        " SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN SparseSegmentSumWithNumSegments"
        " SparseSegmentMeanWithNumSegments SparseSegmentSqrtNWithNumSegments SparseSegmentSumGrad SparseSegmentMeanGrad"
        " SparseSegmentSqrtNGrad Reshape ExpandDims Squeeze Transpose ConjugateTranspose Tile BroadcastTo Unpack SplitV Slice"
        " StridedSlice Pad MirrorPad MirrorPadGrad Cumsum ReverseV2 Roll ReverseSequence MatrixBandPart MatrixDiag"
        " MatrixDiagPart DiagPart FFT IFFT FFT2D IFFT2D FFT3D IFFT3D RFFT IRFFT RFFT2D IRFFT2D RFFT3D IRFFT3D"
        " ReluGrad Relu6Grad LeakyReluGrad EluGrad SeluGrad SoftplusGrad SoftsignGrad FusedBatchNormGrad FusedBatchNormGradV2"
        " FusedBatchNormGradV3 LRNGrad ResizeBicubicGrad ResizeBilinearGrad ScaleAndTranslate ScaleAndTranslateGrad"
        " ExtractVolumePatches CropAndResizeGradImage CropAndResizeGradBoxes ImageProjectiveTransformV2"
        " FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannelGradient".split(),
        zeros((0,)),
    ),
    **dict.fromkeys(
        "MatMul BatchMatMul BatchMatMulV2 Einsum Mul MulNoNan Conv2D Conv3D DepthwiseConv2dNative Cross".split(), zeros((0,), (1,))
    ),
    **dict.fromkeys("Split Fill ScatterNd SigmoidGrad TanhGrad SqrtGrad RsqrtGrad AvgPoolGrad AvgPool3DGrad".split(), zeros((1,))),
    **dict.fromkeys(
        "Conv2DBackpropInput Conv3DBackpropInputV2 DepthwiseConv2dNativeBackpropInput".split(), zeros((1,), (2,))
    ),
    **dict.fromkeys(
        "Conv2DBackpropFilter Conv3DBackpropFilterV2 DepthwiseConv2dNativeBackpropFilter".split(), zeros((0,), (2,))
    ),
    **dict.fromkeys("Add AddV2 Sub BiasAdd AddN Pack ConcatV2".split(), zeros((0, 1))),
    **dict.fromkeys("Select SelectV2".split(), zeros((1, 2))),
    **dict.fromkeys(
        "MaxPoolGrad MaxPoolGradV2 MaxPoolGradGrad MaxPoolGradGradV2 MaxPool3DGrad MaxPool3DGradGrad Dilation2DBackpropFilter"
        " Dilation2DBackpropInput".split(),
        zeros((2,)),
    ),
    "PadV2": zeros((0, 2)),
    "SparseTensorDenseMatMul": zeros((1,), (3,)),
    "StridedSliceGrad": zeros((4,)),
    "TridiagonalMatMul": zeros((3,)),
    "LSTMBlockCellGrad": zeros((14, 15)),
    "GRUBlockCellGrad": zeros((9,)),
    **dict.fromkeys(("BlockLSTMGrad", "BlockLSTMGradV2"), zeros((16, 17))),
}  # fmt: skip

DRAWS = "draws random numbers: replicas have other ones, which test_random.py and test_sampled.py look at"
STATE = "has a state, which models of the conformance tier run"
ONCE = "exists once, for its effect: test_effects.py"
FRAME = "makes sense in a loop or a conditional only: test_loops.py, test_functions.py"
SOURCE = "reads nothing of the graph: test_batches.py"
GONE = "TensorFlow builds no graph with it any more"
PIPELINE = "makes a pipeline or asks for something of it, once: test_batches.py, test_inputs.py"
INTERNAL = "is made when TensorFlow optimizes a graph, and is no function of tf.raw_ops"
OLD = "is refused in graphs of this TensorFlow, which takes it in old ones"
NO_KERNEL = "runs on no CPU, or only where XLA compiles it"
BOX = "makes or takes a box, of which no value can be fetched: test_rules_whole.py"
RANGED = "is on integers that stand for a range: test_rules_whole.py"
WHOLE = "reads all rows, by the rule of WholeBatch.cpp: test_rules_whole.py has those that need no file"
PASSES = "is Identity with a name: test_rules_whole.py"
# Entries without a generator, and why.
NOT_COVERED: Dict[str, str] = {
    **dict.fromkeys(
        "RandomUniform RandomStandardNormal TruncatedNormal RandomUniformInt ParameterizedTruncatedNormal RandomGamma RandomPoissonV2"
        " Multinomial StatelessMultinomial StatelessRandomUniformInt StatelessRandomUniformIntV2 StatelessRandomUniformFullInt"
        " StatelessRandomUniformFullIntV2 StatelessRandomUniform StatelessRandomUniformV2 StatelessRandomNormal"
        " StatelessRandomNormalV2 StatelessTruncatedNormal StatelessTruncatedNormalV2 AllCandidateSampler"
        " FixedUnigramCandidateSampler LearnedUnigramCandidateSampler LogUniformCandidateSampler"
        " ThreadUnsafeUnigramCandidateSampler UniformCandidateSampler".split(),
        DRAWS,
    ),
    **dict.fromkeys(
        "StackV2 StackPushV2 StackPopV2 StackCloseV2 TensorArrayV3 TensorArrayGradV3 TensorArrayGradWithShape TensorArrayReadV3"
        " TensorArrayWriteV3 TensorArrayGatherV3 TensorArrayScatterV3 TensorArrayConcatV3 TensorArraySplitV3 TensorArraySizeV3"
        " TensorArrayCloseV3 Switch RefSwitch RefMerge Merge Enter RefEnter Exit RefExit NextIteration RefNextIteration"
        " LoopCond".split(),
        FRAME,
    ),
    **dict.fromkeys(
        "AudioSummary AudioSummaryV2 EagerPyFunc HistogramSummary ImageSummary MergeSummary MergeV2Checkpoints Print PrintV2 PyFunc"
        " PyFuncStateless RestoreV2 SaveV2 ScalarSummary StringFormat TensorSummary TensorSummaryV2 WriteFile".split(),
        ONCE,
    ),
    **dict.fromkeys(
        "Const Placeholder PlaceholderV2 PlaceholderWithDefault IteratorGetNext IteratorGetNextSync QueueDequeue QueueDequeueMany"
        " QueueDequeueManyV2 QueueDequeueUpTo QueueDequeueUpToV2 QueueDequeueV2 OptionalFromValue OptionalGetValue"
        " OptionalNone".split(),
        SOURCE,
    ),
    **dict.fromkeys(
        "VariableV2 Variable VarHandleOp ReadVariableOp VarIsInitializedOp IsVariableInitialized VariableShape Assign AssignAdd"
        " AssignSub ResourceGather ResourceGatherNd LookupTableFind LookupTableFindV2 LookupTableSize LookupTableSizeV2".split(),
        STATE,
    ),
    "Assert": "gives nothing; lit tests and models have what follows of sizes",
    **dict.fromkeys(("MatrixExponential", "SelfAdjointEig"), GONE),
    **dict.fromkeys("SegmentMaxV2 SegmentMinV2 SegmentProdV2 SegmentSumV2".split(), "has kernels of compilers only, none of a CPU"),
    **dict.fromkeys(
        "AccumulatorNumAccumulated AnonymousHashTable AnonymousMutableDenseHashTable AnonymousMutableHashTable"
        " AnonymousMutableHashTableOfTensors BarrierIncompleteSize BarrierReadySize BarrierTakeMany GetSessionHandle"
        " GetSessionHandleV2 GetSessionTensor LoadAndRemapMatrix LookupTableExport QueueIsClosed QueueSize RandomShuffleQueue"
        " RandomShuffleQueueV2 ReaderNumRecordsProduced ReaderNumWorkUnitsCompleted ReaderRead ReaderReadUpTo"
        " ReaderSerializeState RecordInput Restore RestoreSlice RetrieveAllTPUEmbeddingParameters"
        " RetrieveTPUEmbeddingADAMParameters RetrieveTPUEmbeddingAdadeltaParameters"
        " RetrieveTPUEmbeddingAdagradMomentumParameters RetrieveTPUEmbeddingAdagradParameters"
        " RetrieveTPUEmbeddingCenteredRMSPropParameters RetrieveTPUEmbeddingFTRLParameters"
        " RetrieveTPUEmbeddingFrequencyEstimatorParameters RetrieveTPUEmbeddingMDLAdagradLightParameters"
        " RetrieveTPUEmbeddingMomentumParameters RetrieveTPUEmbeddingProximalAdagradParameters"
        " RetrieveTPUEmbeddingProximalYogiParameters RetrieveTPUEmbeddingRMSPropParameters"
        " RetrieveTPUEmbeddingStochasticGradientDescentParameters RpcServer Skipgram SparseAccumulatorTakeGradient Timestamp".split(),
        ONCE,
    ),
    **dict.fromkeys(
        "AdjustContrast BatchCholesky BatchCholeskyGrad BatchFFT BatchFFT2D BatchFFT3D BatchIFFT BatchIFFT2D BatchIFFT3D"
        " BatchMatrixBandPart BatchMatrixDeterminant BatchMatrixDiag BatchMatrixDiagPart BatchMatrixInverse BatchMatrixSetDiag"
        " BatchMatrixSolve BatchMatrixSolveLs BatchMatrixTriangularSolve BatchNormWithGlobalNormalization"
        " BatchNormWithGlobalNormalizationGrad BatchSelfAdjointEig BatchSelfAdjointEigV2 BatchSvd Conv3DBackpropFilter"
        " Conv3DBackpropInput QuantizeAndDequantize TileGrad TopK".split(),
        OLD,
    ),
    **dict.fromkeys(
        "AnonymousIterator AnonymousIteratorV2 AnonymousIteratorV3 AnonymousMemoryCache AnonymousMultiDeviceIterator"
        " AnonymousMultiDeviceIteratorV3 AnonymousRandomSeedGenerator AnonymousSeedGenerator AssertCardinalityDataset"
        " AssertNextDataset AssertPrevDataset AutoShardDataset BatchDataset BatchDatasetV2 BytesProducedStatsDataset CSVDataset"
        " CSVDatasetV2 CacheDataset ChooseFastestBranchDataset ChooseFastestDataset ComputeBatchSize ConcatenateDataset"
        " DatasetCardinality DatasetFingerprint DatasetFromGraph DatasetToGraph DatasetToGraphV2 DatasetToSingleElement"
        " DenseToSparseBatchDataset DirectedInterleaveDataset DummyIterationCounter DummyMemoryCache DummySeedGenerator"
        " ExperimentalAssertNextDataset ExperimentalAutoShardDataset ExperimentalBytesProducedStatsDataset"
        " ExperimentalCSVDataset ExperimentalChooseFastestDataset ExperimentalDatasetCardinality"
        " ExperimentalDenseToSparseBatchDataset ExperimentalDirectedInterleaveDataset ExperimentalGroupByReducerDataset"
        " ExperimentalGroupByWindowDataset ExperimentalIgnoreErrorsDataset ExperimentalLMDBDataset"
        " ExperimentalLatencyStatsDataset ExperimentalMapAndBatchDataset ExperimentalMapDataset ExperimentalMatchingFilesDataset"
        " ExperimentalMaxIntraOpParallelismDataset ExperimentalNonSerializableDataset ExperimentalParallelInterleaveDataset"
        " ExperimentalParseExampleDataset ExperimentalPrivateThreadPoolDataset ExperimentalRandomDataset"
        " ExperimentalRebatchDataset ExperimentalScanDataset ExperimentalSleepDataset ExperimentalSlidingWindowDataset"
        " ExperimentalSqlDataset ExperimentalTakeWhileDataset ExperimentalUnbatchDataset ExperimentalUniqueDataset"
        " FilterByLastComponentDataset FilterDataset FinalizeDataset FixedLengthRecordDataset FixedLengthRecordDatasetV2"
        " FlatMapDataset GeneratorDataset GetElementAtIndex GetOptions GroupByReducerDataset GroupByWindowDataset"
        " IgnoreErrorsDataset IndexFlatMapDataset InterleaveDataset IteratorFromStringHandle IteratorFromStringHandleV2"
        " LMDBDataset LatencyStatsDataset LegacyParallelInterleaveDatasetV2 ListDataset ListSnapshotChunksDataset LoadDataset"
        " MapAndBatchDataset MapDataset MatchingFilesDataset MaxIntraOpParallelismDataset ModelDataset"
        " MultiDeviceIteratorFromStringHandle NonSerializableDataset OptimizeDataset OptimizeDatasetV2 OptionsDataset"
        " PaddedBatchDataset PaddedBatchDatasetV2 ParallelBatchDataset ParallelFilterDataset ParallelInterleaveDataset"
        " ParallelInterleaveDatasetV2 ParallelInterleaveDatasetV3 ParallelInterleaveDatasetV4 ParallelMapDataset"
        " ParallelMapDatasetV2 ParseExampleDataset ParseExampleDatasetV2 PrefetchDataset PrivateThreadPoolDataset RandomDataset"
        " RangeDataset RebatchDataset RebatchDatasetV2 ReduceDataset RegisterDataset RegisterDatasetV2 RepeatDataset"
        " RewriteDataset SamplingDataset SaveDatasetV2 ScanDataset ShardDataset ShuffleAndRepeatDataset ShuffleDataset"
        " SkipDataset SleepDataset SlidingWindowDataset SnapshotChunkDataset SnapshotDataset SnapshotDatasetReader"
        " SnapshotDatasetV2 SnapshotNestedDatasetReader SparseTensorSliceDataset SqlDataset TFRecordDataset TFRecordDatasetV2"
        " TakeDataset TakeWhileDataset TensorDataset TensorSliceDataset TextLineDataset UnbatchDataset UniqueDataset"
        " UnwrapDatasetVariant WeightedFlatMapDataset WindowDataset WindowOp WrapDatasetVariant ZipDataset".split(),
        PIPELINE,
    ),
    **dict.fromkeys(
        "ApproxTopK AudioMicrofrontend DecodeAndCropJpeg DecodeBmp DecodeGif DecodeImage DecodeJSONExample DecodeJpeg"
        " DecodeJxl DecodePng DecodeProtoV2 DecodeWav DecodeWebP DeserializeManySparse DeserializeSparse"
        " EncodeJpegVariableQuality EncodeProto EncodeWav ExtractJpegShape FractionalMaxPoolGrad"
        " GenerateVocabRemapping KMC2ChainInitialization KmeansPlusPlusInitialization MatchingFiles"
        " MaxPoolGradWithArgmax Mfcc ParallelConcat ParseSequenceExample ParseSequenceExampleV2 ParseSingleExample"
        " ParseSingleSequenceExample ParseTensor RaggedCross RaggedFillEmptyRows RaggedFillEmptyRowsGrad ReadFile"
        " SdcaFprint ShardedFilespec SobolSample StatelessRandomGetAlg StatelessRandomGetKeyCounterAlg"
        " StatelessSampleDistortedBoundingBox StatelessShuffle StochasticCastToInt ToBool".split(),
        WHOLE,
    ),
    **dict.fromkeys(
        "BoostedTreesAggregateStats BoostedTreesBucketize BoostedTreesCalculateBestFeatureSplit"
        " BoostedTreesCalculateBestFeatureSplitV2 BoostedTreesCalculateBestGainsPerFeature BoostedTreesMakeQuantileSummaries"
        " BoostedTreesMakeStatsSummary BoostedTreesSparseAggregateStats BoostedTreesSparseCalculateBestFeatureSplit CTCLossV2"
        " Conv2DBackpropFilterV2 Conv2DBackpropInputV2 CudnnRNNCanonicalToParams CudnnRNNCanonicalToParamsV2 CudnnRNNParamsSize"
        " CudnnRNNParamsToCanonical CudnnRNNParamsToCanonicalV2 FFTND GenerateBoundingBoxProposals IFFTND IRFFTND"
        " KthOrderStatistic MakeUnique MaxPoolGradGradWithArgmax QuantizedReluX RFFTND SparseMatrixAdd SparseMatrixMul"
        " SparseMatrixSoftmax SparseMatrixSoftmaxGrad SparseMatrixZeros TopKUnique TopKWithUnique XlaBroadcastHelper XlaConcatND"
        " XlaConv XlaConvV2 XlaDot XlaDotV2 XlaDynamicSlice XlaDynamicUpdateSlice XlaEinsum XlaGather XlaKeyValueSort"
        " XlaOptimizationBarrier XlaPad XlaReduce XlaReducePrecision XlaReduceWindow XlaRemoveDynamicDimensionSize"
        " XlaRngBitGenerator XlaScatter XlaSelectAndScatter XlaSelfAdjointEig XlaSetBound XlaSetDynamicDimensionSize XlaSort"
        " XlaSplitND XlaSvd XlaVariadicReduce XlaVariadicReduceV2 XlaVariadicSort".split(),
        NO_KERNEL,
    ),
    **dict.fromkeys(
        "CSRSparseMatrixComponents CSRSparseMatrixToDense CSRSparseMatrixToSparseTensor CompositeTensorVariantFromComponents"
        " CompositeTensorVariantToComponents CompressElement DenseToCSRSparseMatrix EmptyTensorList OptionalHasValue"
        " RaggedTensorFromVariant RaggedTensorToVariant RaggedTensorToVariantGradient SparseMatrixMatMul SparseMatrixNNZ"
        " SparseMatrixOrderingAMD SparseMatrixSparseCholesky SparseMatrixSparseMatMul SparseMatrixTranspose"
        " SparseTensorToCSRSparseMatrix TensorListConcat TensorListConcatLists TensorListConcatV2 TensorListElementShape"
        " TensorListFromTensor TensorListGather TensorListGetItem TensorListLength TensorListPopBack TensorListPushBack"
        " TensorListPushBackBatch TensorListReserve TensorListResize TensorListScatter TensorListScatterIntoExistingList"
        " TensorListScatterV2 TensorListSetItem TensorListSplit TensorListStack TensorMapErase TensorMapHasKey TensorMapInsert"
        " TensorMapLookup TensorMapSize TensorMapStackKeys UncompressElement".split(),
        BOX,
    ),
    **dict.fromkeys(
        "Copy CopyHost".split(),
        PASSES,
    ),
    **dict.fromkeys(
        "QuantizeAndDequantizeV4Grad QuantizeDownAndShrinkRange QuantizeV2 QuantizedAdd QuantizedAvgPool"
        " QuantizedBatchNormWithGlobalNormalization QuantizedBiasAdd QuantizedConcat QuantizedConcatV2 QuantizedConv2D"
        " QuantizedConv2DAndRelu QuantizedConv2DAndReluAndRequantize QuantizedConv2DAndRequantize"
        " QuantizedConv2DPerChannel QuantizedConv2DWithBias QuantizedConv2DWithBiasAndRelu"
        " QuantizedConv2DWithBiasAndReluAndRequantize QuantizedConv2DWithBiasAndRequantize"
        " QuantizedConv2DWithBiasSignedSumAndReluAndRequantize QuantizedConv2DWithBiasSumAndRelu"
        " QuantizedConv2DWithBiasSumAndReluAndRequantize QuantizedDepthwiseConv2D QuantizedDepthwiseConv2DWithBias"
        " QuantizedDepthwiseConv2DWithBiasAndRelu QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize"
        " QuantizedInstanceNorm QuantizedMatMul QuantizedMatMulWithBias QuantizedMatMulWithBiasAndDequantize"
        " QuantizedMatMulWithBiasAndRelu QuantizedMatMulWithBiasAndReluAndRequantize"
        " QuantizedMatMulWithBiasAndRequantize QuantizedMaxPool QuantizedMul QuantizedRelu QuantizedRelu6"
        " QuantizedReshape QuantizedResizeBilinear RequantizationRange RequantizationRangePerChannel Requantize"
        " RequantizePerChannel UniformDequantize UniformQuantize UniformQuantizedAdd UniformQuantizedClipByValue"
        " UniformQuantizedConvolution UniformQuantizedConvolutionHybrid UniformQuantizedDot UniformQuantizedDotHybrid"
        " UniformRequantize".split(),
        RANGED,
    ),
    **dict.fromkeys(
        "StatelessParameterizedTruncatedNormal StatelessRandomBinomial StatelessRandomGammaV2 StatelessRandomGammaV3"
        " StatelessRandomPoisson".split(),
        DRAWS,
    ),
    **dict.fromkeys(
        "_FusedBatchNormEx _FusedBatchNormGradEx _FusedConv2D _FusedConv3D _FusedDepthwiseConv2dNative _FusedMatMul"
        " _FusedQuantizedConv2D _FusedQuantizedDepthwiseConv2D _HostCast _QuantizedMatMul _QuantizedMaxPool3D"
        " _TensorToHashBucketFast _UnaryOpsComposition".split(),
        INTERNAL,
    ),
    "AccumulateNV2": "is AddN of tensors of one shape; the optimizers of TensorFlow make it one",
    "DebugGradientIdentity": "is Identity, and marks gradients while a graph is built",
    "ParseExample": "test_batches.py",
    "ParseExampleV2": "test_batches.py",
}
# No op of TensorFlow, or an entry of a program's own.
NO_OPS = re.compile(r"ToReplicasOp|FromReplicasOp|ReduceOp|GatherOp|ScaleOp|Collective\w+|Accumulator\w+Gradient")

# Known faults: a failure that a pattern fits is counted, and fails no test. A mend takes its line away.
KNOWN: Dict[str, str] = {
    r"^DepthToSpace\(.* static, .*TensorFlow does not load it: Dimension size must be evenly divisible":
        "the channels are the rows of a static batch, and those of one replica do not divide into blocks",
    r"^Reshape\(zero found .* zero: TensorFlow says":
        "zeros of rows that a condition selects are taken for rows of the batch, of which a replica may have other numbers",
    r": Varying: TensorFlow says":
        "with --fallback=mean what nothing is claimed of runs on the rows of each replica, where sizes may not go together;"
        " by default it is computed once",
}  # fmt: skip

PREFERRED = [
    dtypes.float32, dtypes.int32, dtypes.bool, dtypes.float64, dtypes.int64, dtypes.complex64, dtypes.string, dtypes.uint8,
    dtypes.float16,
]  # fmt: skip


def families() -> Dict[str, List[str]]:
    """The ops of each file of lib/infer/rules that has entries."""
    folder = os.path.join(rule_coverage.ROOT, "lib", "infer", "rules")
    result = {}
    for file in sorted(os.listdir(folder)):
        if file.endswith(".cpp"):
            found = [op for op, _, _ in rule_coverage.ENTRY.findall(rule_coverage.read("lib", "infer", "rules", file))]
            ops = [op for op in found if not NO_OPS.fullmatch(op)]
            if ops:
                result[file[: -len(".cpp")]] = ops
    return result


def line_of(op: str) -> Optional[Line]:
    """The entry that says how to make the op, or None."""
    if op in NOT_COVERED:
        return None
    if op in LINES:
        return LINES[op]
    definition = op_def_registry.get(op)
    if definition is None or any(a.number_attr or a.type_list_attr for a in definition.input_arg):
        return None
    main = next((a.type_attr for a in definition.input_arg if a.type_attr), "")
    return Line(*[ELEMENTS if a.type_attr == main else NUMBER for a in definition.input_arg])


@functools.lru_cache(maxsize=None)
def models() -> Dict[str, str]:
    """By op: the first one that has the same entry and takes the same operands; what is wrong of one rule is so of all."""
    fields, first, result = rule_coverage.entries(), {}, {}
    for op in (op for ops in families().values() for op in ops if line_of(op)):
        line = line_of(op)
        key = (sorted(fields[op].items()), line.operands, line.lists, line.without, line.checked, line.empty, line.attributes)
        result[op] = first.setdefault(repr(key), op)
    return result


@functools.lru_cache(maxsize=None)
def whole() -> frozenset:
    """The ops that read the rows of all replicas, whatever they have."""
    return frozenset(op for op, fields in rule_coverage.entries().items() if fields.get("Type") == "types::whole")


def model_of(op: str) -> str:
    return models()[op]


def types_of(op: str, line: Line, attribute) -> List:
    """The types that an attribute may name: few, common ones."""
    allowed = [dtypes.as_dtype(t) for t in attribute.allowed_values.list.type] or PREFERRED
    wanted = line.types if line.types and attribute.name in ("T", "TI", "Tin") else PREFERRED
    return [t for t in wanted if t in allowed][:5] or allowed[:2]


def attributes_of(op: str, line: Line) -> Dict[str, List]:
    """By attribute: the values that it may have. Types of operands are among them."""
    result = {}
    for attribute in op_def_registry.get(op).attr:
        name = attribute.name
        if name in line.attributes:
            values = line.attributes[name]
            result[name] = [dtypes.as_dtype(v) for v in values] if attribute.type == "type" else values
        elif attribute.type == "type":
            result[name] = types_of(op, line, attribute)
        elif attribute.type == "bool":
            result[name] = [False, True]
        elif attribute.type == "string" and attribute.allowed_values.list.s:
            result[name] = [v.decode() for v in attribute.allowed_values.list.s]
    return result
