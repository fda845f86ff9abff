# SPDX-License-Identifier: Apache-2.0
"""Breaks rules, and says whether the default tier finds it; in test/conformance:

    python -m exhaust.mutate            all of MUTATIONS in one build, since each concerns other ops
    python -m exhaust.mutate --apart    one build for each

The sources are changed in place and restored at the end, whatever happens. BUILD, a shell command, builds graft-opt.
"""

import argparse
import dataclasses
import os
import re
import subprocess
import sys
from typing import List, Tuple

import harness
from exhaust import driver, golden, report

RULES = os.path.join(harness.ROOT, "lib", "infer", "rules")
BUILD = os.environ.get("BUILD", f"cmake --build {harness.ROOT}/build/release --target graft-opt")


@dataclasses.dataclass(frozen=True)
class Mutation:
    what: str
    ops: str
    file: str
    old: str
    new: str
    kinds: Tuple[str, ...] = ()  # of operands that it breaks: of other mutations they say nothing
    more: Tuple[Tuple[str, str], ...] = ()  # in the same file: what is looked at twice has to be broken twice


MUTATIONS = [
    Mutation(
        "zeros pass through a softmax", "Softmax", "Normalization.cpp",
        ".Sizes = sizes::same, .Type = types::lastAxis, .Is = KeepsRows};",
        ".Sizes = sizes::same, .Type = types::lastAxis, .Is = KeepsZeros | KeepsRows};",
    ),
    Mutation(
        "zeros pass through an exclusive product", "Cumprod", "Reduction.cpp",
        ".Type = types::alongAxesNonLinear, .Is = KeepsRows};", ".Type = types::alongAxesNonLinear, .Is = KeepsZeros | KeepsRows};",
    ),
    Mutation(
        "a square has the scale of what is squared", "L2Loss", "Normalization.cpp",
        "X = ReplicationType::partial(2 * X.K);", "X = ReplicationType::partial(X.K);",
    ),
    Mutation(
        "keep_dims is forgotten", "Sum Prod Max EuclideanNorm", "Reduction.cpp", 'if (!C.flag("keep_dims")) {', "{",
    ),
    Mutation(
        "the mean of parts is their sum", "Mean", "Reduction.cpp",
        "return Linear ? ReplicationType::partial(X.K + 1)", "return Linear ? ReplicationType::partial(X.K)",
    ),
    Mutation(
        "the least of parts is their sum", "Min", "Reduction.cpp", "reduceBy(C, Combine::Min)", "reduceBy(C, Combine::Sum)", ("min",),
    ),
    Mutation(
        "a bias is added along the other axis", "BiasAddGrad", "Contraction.cpp",
        ': X.Axis == Channel ? ReplicationType::sharded(0, X.K)', ': X.Axis != Channel ? ReplicationType::sharded(0, X.K)',
    ),
    Mutation(
        "an operand that is not split stands beside rows", "InTopK InTopKV2 MaxPoolGradV2", "RowOps.cpp",
        "if (Split && AnyWhole)", "if (false && Split && AnyWhole)",
    ),
    Mutation(
        "the number of segments is not looked at", "UnsortedSegmentMax", "Indexing.cpp",
        "bool Fixed = C.operand(2).isTrue();", "bool Fixed = true;",
    ),
    Mutation(
        "shifts and axes are not looked at; the batch axis neither", "Roll", "Slicing.cpp",
        "return Axes->test(X.Axis) ? C.varying", "return Axes->test(X.Axis) && Listed->front() >= 0 ? C.varying",
    ),
    Mutation(
        "an axis that is inserted is the last one", "OneHot", "Indexing.cpp",
        'if (X.isSharded() && C.intAttr("axis").value_or(-1) != -1)', 'if (false && X.isSharded())',
    ),
    Mutation(
        "a sum is no demand of what is not linear", "Exp", "Elementwise.cpp",
        "static void nonLinear(TypeContext &C) {\n  C.setAll(elementwise(C, allOperands(C)));",
        "static void nonLinear(TypeContext &C) {\n  C.setAll(C.opName() == op::Exp ? C.numeric(0) : elementwise(C, allOperands(C)));",
    ),
    Mutation(
        "rows that all replicas have are broadcast to those of one", "BroadcastTo", "ShapeOps.cpp",
        "else if (C.opName() == op::BroadcastTo)", "else if (false)",
    ),
    Mutation("zeros that others are put beside are zeros", "PadV2", "Slicing.cpp", "  X.Zero &= Linear;\n", ""),
    Mutation(
        "indices of zeros are zeros", "TopKV2", "Indexing.cpp",
        ".Type = types::topK,\n       .SizeOperands", ".Type = types::topK,\n       .ZerosOf = operands(0),\n       .SizeOperands",
    ),
    Mutation(
        "rows of two feeds that are compared are equally many", "Equal NotEqual", "Elementwise.cpp",
        'if (Type.isSharded() &&\n      !C.G.boolAttr(C.N, "incompatible_shape_error")',
        'if (false && Type.isSharded() &&\n      !C.G.boolAttr(C.N, "incompatible_shape_error")',
        more=(("if (!X || !Y || !mustFit(C.Table, *X, *Y))", "if (!X || !Y)"),),
    ),
    Mutation(
        "row numbers of one feed are those of another", "Gather GatherV2", "RowIndices.cpp",
        "if (C.isSameSize(E, Axis, Numbered, At) ||", "if ((S && Of && S->B == Of->B) ||",
    ),
    Mutation(
        "zeros of a size that is fed have the rows of all replicas", "Neg Abs Mul AddV2", "ShapeOps.cpp",
        'if (Axis == -2)\n    return C.varying("makes a tensor of a per-replica size");\n  if (Axis < 0)\n    return Value;',
        "if (Axis < 0)\n    return Value;", ("zero size", "zero fed", "zero found", "zero longest"),
    ),
    Mutation(
        "nobody counts the elements of what is reshaped", "ConcatV2 SoftmaxCrossEntropyWithLogits", "Reshape.cpp",
        "C.require(Product[0] == Product[1], *OfRows,", "C.require(true || Product[0] == Product[1], *OfRows,",
    ),
    Mutation("zeros of a product are forgotten", "Einsum", "Contraction.cpp", "       .ZerosOf = AllOperands,\n", ""),
    Mutation(
        "zeros that are joined are forgotten", "Pack ConcatV2", "Concat.cpp",
        ".Is = KeepsZeros | TakesUnequalRows", ".Is = TakesUnequalRows",
    ),
    Mutation(
        "the gradient of a filter has the scale of one factor", "Conv2DBackpropFilter Conv3DBackpropFilterV2", "Convolution.cpp",
        "? ReplicationType::partial(X.K + Dy.K)", "? ReplicationType::partial(X.K)",
    ),
    Mutation(
        "the range of one replica's rows is that of all", "QuantizeAndDequantizeV2 QuantizeAndDequantizeV3", "Quantization.cpp",
        "C.setAll(X.isSharded() && !PerRow && !Given ? ofAllRows(C) : X);",
        "C.setAll(false && X.isSharded() && !PerRow && !Given ? ofAllRows(C) : X);",
    ),
    Mutation(
        "a transform of each matrix reads all of them", "FFT2D", "Matrices.cpp",
        "entry(op::FFT2D, PerMatrix,", "entry(op::FFT2D, Whole,",
    ),
    Mutation(
        "any indices fill the rows of a replica", "SparseFillEmptyRows", "SparseRows.cpp",
        "if (!countsOwn(C) || !isOfOwnRows(C, 0, 1, 2) ||", "if (!countsOwn(C) || (false && !isOfOwnRows(C, 0, 1, 2)) ||",
    ),
    Mutation(
        "replicas without records decode as many elements of each", "DecodeRaw", "Records.cpp",
        "if (X.isSharded() && C.D.isUneven(C.input(0), X.Axis))", "if (false && X.isSharded())",
    ),
]  # fmt: skip


def build():
    done = subprocess.run(BUILD, shell=True, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("does not build:\n" + done.stdout[-3000:] + done.stderr[-1000:])


def score(mutations: List[Mutation], seed: int) -> List[str]:
    """A row for each mutation: how many recipes of its ops fail, of how many others something else is claimed, and one of them."""
    texts = {path: open(path).read() for path in {os.path.join(RULES, m.file) for m in mutations}}  # noqa: SIM115
    try:
        changed = dict(texts)
        for m in mutations:
            path = os.path.join(RULES, m.file)
            for old, new in [(m.old, m.new), *m.more]:
                assert changed[path].count(old) == 1, f"{m.file} has not once: {old}"
                changed[path] = changed[path].replace(old, new)
        for path, text in changed.items():
            with open(path, "w") as file:
                file.write(text)
        build()
        rows = []
        for m in mutations:
            ops = m.ops.split()
            failures: list = driver.run(ops, report.BUDGET, seed).failures
            failures += driver.run(ops, report.ZEROS, seed, kinds="zero").failures
            others = {kind for other in mutations if other is not m for kind in other.kinds}
            failures = [f for f in failures if not others & {kind for _, kind in f.recipe.choices}]
            differing = {r: c for r, c in golden.changed(ops)[1].items() if not others & {kind for _, kind in r.choices}}
            found = [*map(str, failures), *golden.told(differing, [])]
            rows.append(
                f"{'found' if found else 'MISSED':7} {len(failures):4} wrong, {len(differing):4} of the record  {m.what}:"
                f" {found[0] if found else m.ops}"[:400]
            )
            print(rows[-1], flush=True)
        return rows
    finally:
        for path, text in texts.items():
            with open(path, "w") as file:
                file.write(text)


def main():
    parser = argparse.ArgumentParser(prog="python -m exhaust.mutate", description=__doc__.split("\n")[0])
    parser.add_argument("--apart", action="store_true", help="one build for each mutation")
    parser.add_argument("--seed", type=int, default=0, help="of the recipes that are drawn")
    parser.add_argument("--only", default="", help="those whose words this pattern fits")
    options = parser.parse_args()
    mutations = [m for m in MUTATIONS if re.search(options.only, m.what)]
    rows = []
    for part in [[m] for m in mutations] if options.apart else [mutations]:
        rows += score(part, options.seed)
    build()
    found = sum(row.startswith("found") for row in rows)
    print(f"{found} of {len(rows)} mutations are found")
    return int(found != len(rows))


if __name__ == "__main__":
    sys.exit(main())
