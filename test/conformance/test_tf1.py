# SPDX-License-Identifier: Apache-2.0
"""Optional: the output loads and runs in TensorFlow 1.15.5.

Needs a Python 3.7 that can import it: GRAFT_TF1_PYTHON, or `python3.7` on the PATH. Skipped otherwise. TensorFlow 1.15
exports the inputs too: a graph from a later version has attrs that it does not know (`grad_a`, `debug_name`).
"""

import functools
import json
import os
import shutil
import subprocess

import harness
import models
import numpy as np
import pytest
from harness import Options

WANTED = "1.15"
RUNNER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_tf1.py")


@functools.lru_cache(maxsize=None)
def find_python():
    """(the interpreter, '') or (None, why there is none)."""
    python = os.environ.get("GRAFT_TF1_PYTHON") or shutil.which("python3.7")
    if not python:
        return None, "no TensorFlow 1.15: GRAFT_TF1_PYTHON is not set and there is no python3.7"
    command = [python, "-c", "import tensorflow; print(tensorflow.__version__)"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment())
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"no TensorFlow 1.15: {python}: {error}"
    version = done.stdout.strip().splitlines()[-1:] or ["none"]
    if done.returncode != 0 or not version[0].startswith(WANTED):
        return None, f"no TensorFlow 1.15: {python} has TensorFlow {version[0]}"
    return python, ""


def environment():
    # The pure-Python protobuf is slow, but it accepts whatever protobuf is installed beside the old TensorFlow.
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}


def run(python, job):
    done = subprocess.run(
        [python, RUNNER], input=json.dumps(job), capture_output=True, text=True, timeout=300, env=environment()
    )
    assert done.returncode == 0, done.stderr
    return np.load(job["out"])


@pytest.mark.parametrize("reduction", ["add", "collective"])
@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("model", ["linear", "mlp_adam", "cnn", "embedding"])
def test_runs_in_tf1(model, kind, reduction, tmp_path):
    python, reason = find_python()
    if python is None:
        pytest.skip(reason)
    replicas = 2
    source, oracle, batches = (str(tmp_path / name) for name in ("input.meta", "oracle.meta", "batches.npz"))
    data = models.batches(model)
    np.savez(batches, **{f"{name}{i}": array for i, pair in enumerate(data) for name, array in zip("xy", pair)})
    job = {"model": model, "kind": kind, "batches": batches}
    towers = replicas if models.MODELS[model].batch_norm else 1
    exports = {source: 1, oracle: towers}
    want = run(python, {**job, "export": exports, "graph": oracle, "replicas": 1, "out": str(tmp_path / "want.npz")})
    path, _ = harness.rewrite(source, Options(replicas, "all-reduce", reduction))
    got = run(python, {**job, "graph": path, "replicas": replicas, "out": str(tmp_path / "got.npz")})
    harness.assert_all_close(dict(got), dict(want), "in TensorFlow 1.15")
