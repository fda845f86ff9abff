# SPDX-License-Identifier: Apache-2.0
"""Random strategy records: any synchronizer, destination, proxy, partition and compressor for each variable and part.

Every draw is of a seed, so a failure can be run again; the record that failed is in the message.
"""

import functools
import random

import harness
import numpy as np
import pytest
import tensorflow.compat.v2 as tf
from models import Spec, tf1
from strategies import Placed, Strategic, temporary

MODELS = ["embedding", "mlp_clip", "adamw_assign"]
DRAWS = 6  # of each model, kind of variables and compression
REPLICAS = 3


@functools.lru_cache(maxsize=None)
def shapes(spec: Spec):
    with tf.Graph().as_default():
        tf1.train.import_meta_graph(harness.export(spec))
        return [(v.name, v.shape.as_list()) for v in tf1.trainable_variables()]


def synchronizer(rng, compressed: bool) -> str:
    if rng.random() < 0.5:
        fields = [f'reduction_destination: "/device:CPU:{rng.randrange(REPLICAS)}"', "sync: true"]
        if rng.random() < 0.5:
            fields.append("local_replication: true")
        if rng.random() < 0.2:
            fields.append(f"staleness: {rng.randrange(3)}")
        return "PSSynchronizer { %s }" % " ".join(fields)
    fields = [f"spec: {rng.choice(['AUTO', 'NCCL', 'RING'])}", f"group: {rng.randrange(3)}"]
    if compressed and rng.random() < 0.6:
        fields.append(f"compressor: {rng.choice(['HorovodCompressor', 'HorovodCompressorEF'])}")
    return "AllReduceSynchronizer { %s }" % " ".join(fields)


def record(spec: Spec, seed: int, compressed: bool) -> str:
    rng = random.Random(f"{spec}-{seed}-{compressed}")
    lines = [f'id: "draw-{seed}"']
    for name, shape in shapes(spec):
        if rng.random() < 0.1:
            continue  # what a record does not name has the default
        name = name if rng.random() < 0.5 else name.split(":")[0]
        lines += ["node_config {", f'  var_name: "{name}"', f"  {synchronizer(rng, compressed)}"]
        axes = [axis for axis, size in enumerate(shape) if size > 1]
        if axes and rng.random() < 0.6:
            axis = rng.choice(axes)
            parts = rng.randrange(2, min(shape[axis], 4) + 1)
            counts = [parts if a == axis else 1 for a in range(len(shape))]
            lines.append('  partitioner: "%s"' % ",".join(map(str, counts)))
            for i in range(parts):
                base = name.split(":")[0]
                lines.append(f'  part_config {{ var_name: "{base}/part_{i}:0" {synchronizer(rng, compressed)} }}')
        lines.append("}")
    lines.append("graph_config { %s }" % " ".join(f'replicas: "/device:CPU:{i}"' for i in range(REPLICAS)))
    return "\n".join(lines) + "\n"


def write(text: str) -> str:
    path = temporary(".pbtxt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def check(spec: Spec, seed: int, compressed: bool):
    text = record(spec, seed, compressed)
    reduction = ("add", "collective")[seed % 2]
    try:
        options = Placed(REPLICAS, write(text), reduction, ("--verify-output",))
        with Strategic(spec, options) as session:
            if not compressed:
                session.check_steps()
                session.check_checkpoints()
                return
            session.restart()
            want = session.reference
            for i, batch in enumerate(session.batches):
                session.step(batch)
                # A gradient in 16 bits is off by 2^-11 of itself, the update that it makes by a few times that.
                for name, value in session.values().items():
                    step = np.max(np.abs(want.variables[i + 1][name] - want.variables[0][name]), initial=0.0)
                    error = np.max(np.abs(value - want.variables[i + 1][name]), initial=0.0)
                    assert error <= 0.02 * step + harness.tolerance(want.variables[i + 1][name]), (name, error, step)
    except AssertionError as error:
        raise AssertionError(f"{error}\nthe record:\n{text}") from error


@pytest.mark.parametrize("seed", range(DRAWS))
@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("model", MODELS)
def test_equal(model, kind, seed):
    check(Spec(model, kind), seed, compressed=False)


@pytest.mark.parametrize("seed", range(DRAWS))
@pytest.mark.parametrize("model", MODELS[:2])
def test_compressed(model, seed):
    check(Spec(model, "resource"), seed, compressed=True)
