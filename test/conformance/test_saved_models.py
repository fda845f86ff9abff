# SPDX-License-Identifier: Apache-2.0
"""SavedModels through graft-opt, in every loader: the table of docs/SavedModels.md.

Each case is a process of its own (saved_models.py). By default two cases with two replicas; --full runs all and writes the table.
"""

import json
import os
import subprocess
import sys

import harness
import pytest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "saved_models.py")
PAGE = os.path.join(harness.ROOT, "docs", "SavedModels.md")
BEGIN, END = "<!-- made by test_saved_models.py --full -->\n", "<!-- end -->\n"
TITLES = {
    "module": "`tf.Module`, optimizer by hand",
    "keras_tf": "tf_keras model and Adam, `train_step` and `predict`",
    "keras_3": "Keras 3 model and Adam, `train_step` and `predict`",
    "control_flow": "`If`, `While`, calls inside calls",
    "two_signatures": "two training steps and a prediction",
    "tables": "a table from an asset, a captured constant, sparse gradients",
    "serving": "Keras 3 `export()`, predictions only",
    "version_1": "version 1 `Builder`, momentum",
    "version_1_shared": "the same with `--strategy=ps`",
    "estimator": "Estimator of TensorFlow 1.15, predictions only",
}
# TensorFlow 2 does not track copies of variables in the graph of a SavedModel of version 1, so it does not save them again.
COPIES = {"version_1", "estimator"}
# Conditionals and loops are those of version 1 in a body that was rewritten, and TensorFlow has no gradient of them there.
NO_GRADIENT = {"control_flow"}
SAMPLE = {"module": ["2"], "version_1": ["2"], "keras_3": ["2"]}
ALL = ["1", "2", "4"]
CLOSE = 1e-5
FOUND = {}


def run(case, replicas, folder, loaders=()):
    command = [sys.executable, SCRIPT, case, harness.graft_opt(), str(folder), *replicas]
    environment = {**os.environ, "GRAFT_LOADERS": ",".join(loaders)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def is_close(value):
    return value is None or (isinstance(value, float) and value <= CLOSE)


def check(case, replicas, found):
    """Every loader runs the same numbers, on every device, with checkpoints both ways."""
    want = list(range(int(replicas)))
    faults = []
    for loader, result in found.items():
        if loader in ("status", "said"):
            continue
        if isinstance(result, str):
            faults.append(f"{loader}: {result}")
            continue
        again = result["again"]
        if not is_close(result["numbers"]):
            faults.append(f"{loader}: numbers are off by {result['numbers']}")
        if case in NO_GRADIENT:
            if "outer_context" not in str(result.get("gradient", "outer_context")):
                faults.append(f"{loader}: there is a gradient, {result['gradient']}")
        elif not is_close(result.get("gradient")):
            faults.append(f"{loader}: gradients are off by {result['gradient']}")
        if not is_close(result["checkpoint"]):
            faults.append(f"{loader}: behind a checkpoint numbers are off by {result['checkpoint']}")
        if result["devices"] is not None and result["devices"] != want:
            faults.append(f"{loader}: runs on devices {result['devices']}")
        if case in COPIES and replicas != "1" and again is not None:
            if not isinstance(again, str) or "FailedPreconditionError" not in again:
                faults.append(f"{loader}: saved again it is {again}, and not an error of a copy without a value")
        elif isinstance(again, str) or (again and (not is_close(again["numbers"]) or again["devices"] != want)):
            faults.append(f"{loader}: saved again it is {again}")
    assert found["status"] == 0, found["said"]
    assert not faults, f"{case} with {replicas} replicas:\n  " + "\n  ".join(faults) + "\n" + found["said"]


@pytest.fixture(scope="module", autouse=True)
def table(request):
    yield
    if request.config.getoption("--full") and set(FOUND) >= set(TITLES) - {"estimator"}:
        write_table()


@pytest.mark.parametrize("case", list(TITLES))
def test_saved_model(case, request, tmp_path):
    full = request.config.getoption("--full")
    if not full and case not in SAMPLE:
        pytest.skip("with --full")
    if case == "estimator" and not os.environ.get("GRAFT_TF1_PYTHON"):
        pytest.skip("no TensorFlow 1.15: GRAFT_TF1_PYTHON is not set")
    replicas = ALL if full else SAMPLE[case]
    loaders = () if full else ("tf1 loader", "tf2 loader", "tf2 functions", "wrap_function")
    found = run(case, replicas, tmp_path, loaders)
    FOUND[case] = found
    for count in replicas:
        check(case, count, found[count])


def cell(result):
    if isinstance(result, str):
        return result.splitlines()[0]
    return f"{result['numbers']:.0e}" if result["numbers"] else "equal"


def write_table():
    lines = ["| SavedModel | loader | devices | numbers, 1 replica | 2 | 4 | checkpoint | again |", "|---|---|---|---|---|---|---|---|"]
    for case, title in TITLES.items():
        found = FOUND.get(case)
        if not found:
            continue
        for loader in found["1"]:
            if loader in ("status", "said"):
                continue
            results = [found[count][loader] for count in ALL]
            devices = "1, 2, 4" if results[0]["devices"] is not None else "not told"
            both = [r["checkpoint"] for r in results]
            again = [r["again"] for r in results][-1]
            again = "-" if again is None else "an error" if isinstance(again, str) else "yes"
            lines.append(
                f"| {title} | {loader} | {devices} | "
                + " | ".join(cell(r) for r in results)
                + f" | {'both ways' if both[0] is not None else '-'} | {again} |"
            )
            title = ""
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "\n".join(lines) + "\n" + END + after)
