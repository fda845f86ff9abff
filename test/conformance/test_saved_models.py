# SPDX-License-Identifier: Apache-2.0
"""SavedModels through graft-opt, in every loader: the table of docs/SavedModels.md.

Each case is a process of its own (saved_models.py). By default two cases with two replicas; --full runs all and writes the table.
"""

import json
import os
import subprocess
import sys

import harness
import numpy as np
import pytest
import tensorflow as tf

tf1 = tf.compat.v1
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


CONCRETE = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

w = tf.Variable(np.linspace(-1, 1, 4, dtype=np.float32).reshape(4, 1))
steps = tf.Variable(0)

@tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(x @ w - 1.0))
    w.assign_sub(0.1 * tape.gradient(loss, w))
    steps.assign_add(1)
    return loss

@tf.function
def train_on(iterator):
    return train(next(iterator))

x = np.random.RandomState(0).randn(8, 4).astype(np.float32)
rows = iter(tf.data.Dataset.from_tensors(x))
for name, function in (("tensors", train.get_concrete_function()), ("iterator", train_on.get_concrete_function(rows))):
    with open(os.path.join(sys.argv[1], name + ".pb"), "wb") as file:
        file.write(function.graph.as_graph_def(add_shapes=True).SerializeToString())
train(x), train(x)
np.save(os.path.join(sys.argv[1], "w.npy"), w.numpy())
"""


def test_concrete_function(tmp_path):
    """Variables that come from outside are refused in the first line, and are variables once they have names."""
    subprocess.run([sys.executable, "-c", CONCRETE, str(tmp_path)], check=True, capture_output=True)
    flags = ["--replicas=2", "--device-type=CPU", "--strategy=ps"]
    for name, said in (("tensors", "--capture="), ("iterator", "give the SavedModel of the function")):
        done = harness.run_graft([str(tmp_path / f"{name}.pb"), *flags, "--emit=none"], check=False)
        first = done.stderr.splitlines()[0]
        assert done.returncode == 1 and ": error: node" in first and said in first, done.stderr
    source, out = str(tmp_path / "tensors.pb"), str(tmp_path / "out.pb")
    handles = [n.name for n in harness.read_graph_def(source).node if n.op == "Placeholder" and n.name != "x"]
    names = {name: ("w", "steps[]")["Add" in name] for name in handles}
    captures = [f"--capture={name}={variable}" for name, variable in names.items()]
    harness.run_graft([source, "-o", out, *flags, *captures])
    graph = tf.Graph()
    with graph.as_default():
        tf1.import_graph_def(harness.read_graph_def(out), name="")
        get = graph.get_tensor_by_name
        start = np.linspace(-1, 1, 4, dtype=np.float32).reshape(4, 1)
        init = [tf.raw_ops.AssignVariableOp(resource=get("w:0"), value=start)]
        init += [tf.raw_ops.AssignVariableOp(resource=get("steps:0"), value=0)]
        value = tf.raw_ops.ReadVariableOp(resource=get("w:0"), dtype=tf.float32)
    with tf1.Session(graph=graph, config=tf1.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=False)) as session:
        session.run(init)
        x = np.random.RandomState(0).randn(8, 4).astype(np.float32)
        updates = [op for op in graph.get_operations() if op.type in ("AssignSubVariableOp", "AssignAddVariableOp")]
        for _ in range(2):
            session.run(updates, {"x:0": x})
        harness.assert_close(session.run(value), np.load(tmp_path / "w.npy"), "w")


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
