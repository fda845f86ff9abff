# SPDX-License-Identifier: Apache-2.0
"""The matrix of model variants and ways to rewrite them, its default subset, and the table of results."""

import dataclasses
import itertools
from typing import Dict, List

import models
import tensorflow as tf
from covering import covering
from harness import Options
from models import BATCH, MATRIX, Spec

FACTORS = {
    "model": MATRIX,
    "replicas": [1, 2, 3, 4],
    "kind": ["ref", "resource"],
    "batch": [None, BATCH],
    "loss": ["mean", "sum"],
    "strategy": ["all-reduce", "ps"],
    "reduction": ["add", "collective"],
}
STRENGTH = 3  # the default subset meets every combination of any three factors


@dataclasses.dataclass(frozen=True)
class Case:
    spec: Spec
    options: Options

    def __str__(self):
        o = self.options
        return f"{self.spec}-{o.strategy}-{o.reduction}-{o.replicas}"


def make(factors, dtype="float32", extra=()) -> Case:
    f = dict(factors)
    options = Options(f.pop("replicas"), f.pop("strategy"), f.pop("reduction"), tuple(extra))
    return Case(Spec(dtype=dtype, **f), options)


def matrix(full: bool, strength: int = STRENGTH, dtype: str = "float32", extra=(), replicas=None) -> List[Case]:
    factors = dict(FACTORS)
    if dtype == "float64":
        factors["model"] = [name for name in MATRIX if models.MODELS[name].float64]
    if replicas:
        factors["replicas"] = replicas
    if full:
        chosen = [dict(zip(factors, values)) for values in itertools.product(*factors.values())]
    else:
        chosen = covering(factors, strength)
    # Variants of one model follow each other, so that its reference is at hand.
    return sorted((make(f, dtype, extra) for f in chosen), key=str)


def write_table(path: str, results: Dict[str, List[int]]):
    """One row for each model, strategy and reduction; one column for each number of replicas."""
    counts = FACTORS["replicas"]
    lines = [
        "# Conformance",
        "",
        f"Written by `tools/check --full`, TensorFlow {tf.__version__}. Each cell: checks passed of checks made, over ref and",
        "resource variables, unknown and static batch, mean and sum loss. A check compares with the single-device run of",
        "TensorFlow (for `cnn`, which has batch norm, with a graph of N towers): steps, interface, checkpoints, spread of work.",
        "",
        "| model | strategy | reduction | " + " | ".join(f"N={n}" for n in counts) + " |",
        "|---|---|---|" + "---|" * len(counts),
    ]
    cells = {}
    for case in matrix(full=True):
        key = (case.spec.model, case.options.strategy, case.options.reduction, case.options.replicas)
        passed, total = results[str(case)]
        sums = cells.setdefault(key, [0, 0])
        sums[0] += passed
        sums[1] += total
    for row in itertools.product(FACTORS["model"], FACTORS["strategy"], FACTORS["reduction"]):
        texts = ["{}/{}".format(*cells[row + (n,)]) for n in counts]
        lines.append("| " + " | ".join([*row, *texts]) + " |")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
