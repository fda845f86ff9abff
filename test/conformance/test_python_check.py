# SPDX-License-Identifier: Apache-2.0
"""graft.check finds the outputs that do not compute the step of the input, and graft.keras_step writes one for Keras."""

import os
import subprocess
import sys

import harness
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

SOURCES = os.path.join(harness.ROOT, "tools", "python", "src")
sys.path.insert(0, SOURCES)

import graft


@pytest.fixture(autouse=True)
def programs(monkeypatch):
    monkeypatch.setenv("GRAFT_OPT", harness.graft_opt())


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    """The paths of a step and of the same step for two replicas."""
    folder = tmp_path_factory.mktemp("check")
    one, two = str(folder / "one.meta"), str(folder / "two.meta")
    with tf1.Graph().as_default():
        tf1.set_random_seed(1)
        x = tf1.placeholder(tf1.float32, [None, 4], "x")
        y = tf1.placeholder(tf1.float32, [None, 1], "y")
        w = tf1.get_variable("w", [4, 3], use_resource=False)
        v = tf1.get_variable("v", [3, 1], use_resource=False)
        hidden = tf1.tanh(tf1.matmul(x, w), "hidden")
        loss = tf1.reduce_mean(tf1.square(tf1.matmul(hidden, v) - y), name="loss")
        tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, tf1.train.get_or_create_global_step(), name="train")
        tf1.train.export_meta_graph(one, saver_def=tf1.train.Saver().saver_def)
    os.environ["GRAFT_OPT"] = harness.graft_opt()
    graft.rewrite(one, replicas=2, device_type="CPU", strict=True, output=two)
    return one, two


def node(meta, name):
    return next(each for each in meta.graph_def.node if each.name == name)


def other_op(meta):
    node(meta, "replica_1/hidden").op = "Sigmoid"


def other_shard(meta):
    for each in meta.graph_def.node:
        for i, name in enumerate(each.input):
            if name == "x/split:1":
                each.input[i] = "x/split"


def no_term(meta):
    sums = [each for each in meta.graph_def.node if each.op == "AddN" and "gradients/" in each.name and each.attr["T"].type == 1]
    sums[0].input[1] = sums[0].input[0]


def no_mean(meta):
    scales = [each for each in meta.graph_def.node if each.op == "Mul" and each.name.startswith("gradients/") and "reduce" in each.input[0]]
    scales[0].op = "AddV2"


def loss_of_one(meta):
    merged = node(meta, "loss/merged")
    merged.input[1] = merged.input[0]


def rate(meta):
    value = node(meta, "train/learning_rate").attr["value"].tensor
    value.float_val[:] = [0.2]


def momentum(meta):
    node(meta, "train/momentum").attr["value"].tensor.float_val[:] = [0.5]


def steps_of_two(meta):
    node(meta, "train/value").attr["value"].tensor.int64_val[:] = [2]


def other_operand(meta):
    product = node(meta, "replica_1/MatMul_1")
    product.attr["transpose_a"].b = True


def other_variable(meta):
    update = node(meta, "train/update_w/ApplyMomentum")
    update.input[1] = update.input[0]


def other_gradient(meta):
    update = node(meta, "replica_1/train/update_v/ApplyMomentum")
    update.input[3] = update.input[0]


def negated(meta):
    node(meta, "replica_1/sub").op = "AddV2"


BROKEN = [other_op, other_shard, no_term, no_mean, loss_of_one, rate, momentum, steps_of_two, other_operand, other_variable, other_gradient, negated]


def test_same(step):
    one, two = step
    found = graft.check(one, two)
    assert found and found.same, found
    assert {each.rows for each in found.steps} == {1, 2, 3, 4}
    assert str(found).endswith("the same step")
    assert set(found.variables) == {"w", "v", "w/Momentum", "v/Momentum", "global_step"}


@pytest.mark.parametrize("breaks", BROKEN, ids=lambda f: f.__name__)
def test_broken_outputs_are_found(step, breaks):
    one, two = step
    meta = tf1.MetaGraphDef()
    with open(two, "rb") as file:
        meta.ParseFromString(file.read())
    breaks(meta)
    found = graft.check(one, meta, steps=2)
    assert not found, found
    assert str(found).endswith("NOT the same step")


def test_without_a_saver(step, tmp_path):
    """A Saver that TensorFlow makes after the import knows one copy of a variable. The others draw their own initial values."""
    one, two = str(tmp_path / "one.meta"), str(tmp_path / "two.meta")
    with tf1.Graph().as_default():
        x = tf1.placeholder(tf1.float32, [None, 4], "x")
        loss = tf1.reduce_sum(tf1.square(tf1.matmul(x, tf1.get_variable("w", [4, 3], use_resource=False))), name="loss")
        tf1.train.GradientDescentOptimizer(0.01).minimize(loss)
        tf1.train.export_meta_graph(one)
    graft.rewrite(one, replicas=2, device_type="CPU", output=two)
    assert graft.check(one, two, steps=1)


def test_rows_that_do_not_run(step, tmp_path):
    one, _ = step
    even = graft.rewrite(one, replicas=2, device_type="CPU", even_batches=True)
    found = graft.check(one, even, steps=1)
    assert not found and any(each.error and each.rows == 3 for each in found.steps), found


def test_given_feeds(step):
    one, two = step
    found = graft.check(one, two, feeds={"x": np.ones([5, 4]), "y:0": np.ones([5, 1])}, fetches="loss")
    assert found and [each.rows for each in found.steps] == [None] * 3
    with pytest.raises(ValueError, match="the graph has no feed 'z'; it has x, y"):
        graft.check(one, two, feeds={"z": 1})


def test_command(step, tmp_path):
    one, two = step
    environment = dict(os.environ, PYTHONPATH=SOURCES)
    command = [sys.executable, "-m", "graft", "check", one]
    done = subprocess.run([*command, two, "--steps=1"], env=environment, stdout=subprocess.PIPE, universal_newlines=True, check=True)
    assert done.stdout.rstrip().endswith("the same step"), done.stdout
    done = subprocess.run([*command, "missing"], env=environment, stderr=subprocess.PIPE, universal_newlines=True, check=False)
    assert done.returncode == 2 and "No such file" in done.stderr, done.stderr


def run_keras(script, which, folder):
    """The lines that a script prints: in a process of its own, since TensorFlow chooses its Keras and its devices once."""
    environment = dict(os.environ, PYTHONPATH=SOURCES, TF_CPP_MIN_LOG_LEVEL="3")
    environment.pop("TF_USE_LEGACY_KERAS", None)
    command = [sys.executable, "-c", BEGIN + script, which, folder]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()


BEGIN = """
import os, sys
which, folder = sys.argv[1:]
if which == "tf_keras":
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy as np
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
keras = __import__(which)
import graft
"""

KERAS = """
keras.utils.set_random_seed(1)
layers = keras.layers
# The loader looks up the operand of swish, which has a custom gradient, by its name.
model = keras.Sequential([layers.Input([8]), layers.Dense(6, activation="swish"), layers.Dense(1, kernel_regularizer="l2")])
try:
    graft.keras_step(model, folder)
except ValueError as error:
    print(error)
model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse", metrics=["mae"])


class Own(keras.Model):
    def train_step(self, data):
        return {}


try:
    own = Own(model.inputs, model.outputs)
    own.compile("sgd", "mse")
    graft.keras_step(own, folder)
except ValueError as error:
    print(error)
try:
    graft.rewrite(model, replicas=2)
except TypeError as error:
    print(error)
one = tf.saved_model.load(graft.keras_step(model, folder))
two = graft.rewrite(folder, replicas=2, device_type="CPU", strict=True, output=folder + ".x2")
two = tf.saved_model.load(two.path)
random = np.random.RandomState(0)
for rows in 8, 5, 1, 3:
    x, y = (tf.constant(random.rand(rows, n), tf.float32) for n in (8, 1))
    a, b = one.train(x, y), two.train(x, y)
    assert set(a) == set(b) == {"loss", "mae"}, a
    for key in a:
        np.testing.assert_allclose(a[key], b[key], rtol=1e-5)
    np.testing.assert_allclose(one.predict(x), two.predict(x), rtol=1e-5)
found = graft.check(folder, folder + ".x2", steps=1)
assert found and {step.rows for step in found.steps} == {None, 1, 2, 3, 4}, found
model.fit(x, y, verbose=0)
print("equal")
"""


@pytest.mark.parametrize("which", ["keras", "tf_keras"])
def test_keras_step(which, tmp_path):
    assert run_keras(KERAS, which, str(tmp_path / "step")) == [
        "the model is not compiled; call model.compile(optimizer, loss) first",
        "the class 'Own' has a train_step of its own, which may compute another step; write the step as a tf.function with an "
        "input signature, and save it with tf.saved_model.save",
        "graft.rewrite takes a graph, not a Keras model; write its training step with graft.keras_step(model, folder), and "
        "rewrite this folder",
        "equal",
    ]


MODELS = """
L, O = keras.layers, keras.optimizers
scaled = O.LossScaleOptimizer if which == "keras" else keras.mixed_precision.LossScaleOptimizer


def attention():
    x = keras.Input((6, 8))
    h = L.LayerNormalization()(L.MultiHeadAttention(2, 4)(x, x) + x)
    return x, L.Dense(1)(L.GlobalAveragePooling1D()(h)), "mse", O.Adam(0.01, clipnorm=0.1)


def images():
    x = keras.Input((8, 8, 3))
    a = L.Conv2D(4, 3, padding="same", activation="gelu")(x)
    b = L.UpSampling2D()(L.Conv2D(8, 3, padding="same")(L.MaxPooling2D()(a)))
    return x, L.Conv2DTranspose(3, 3, padding="same", activation="sigmoid")(L.Concatenate()([a, b])), "binary_crossentropy", "sgd"


def two_inputs():
    a, b = keras.Input((4,)), keras.Input((3,))
    h = L.Concatenate()([L.Dense(4, activation="selu")(a), L.Dense(4, activation="swish")(b)])
    return [a, b], [L.Dense(1)(h), L.Dense(2)(h)], ["mse", "mae"], O.SGD(0.1, use_ema=True)


def named_inputs():
    a, b = keras.Input((4,), name="a"), keras.Input((3,), name="b")
    return {"a": a, "b": b}, L.Dense(1)(L.Concatenate()([a, b])), "mse", "sgd"


def words():
    text = L.TextVectorization(max_tokens=20, output_sequence_length=4)
    text.adapt(["a b c", "b c d a"])
    x = keras.Input((1,), dtype="string")
    return x, L.Dense(1)(L.Flatten()(L.Embedding(20, 4)(text(x)))), "mse", scaled(O.SGD(0.1))


def unrolled():
    x = keras.Input((4, 5))
    return x, L.Dense(1)(L.LSTM(6, unroll=True)(x)), "mse", O.Adam(O.schedules.CosineDecay(0.1, 10))


def recurrent():
    words = keras.Input((None,), dtype="int32")
    h = L.Bidirectional(L.LSTM(4, return_sequences=True))(L.Embedding(9, 5)(words))
    return words, L.Dense(1)(L.GRU(3)(L.SimpleRNN(4, return_sequences=True)(h))), "mse", O.SGD(0.1)


random = np.random.RandomState(0)


def draw(tensor, rows):
    shape = [rows, *[4 if size is None else size for size in list(tensor.shape)[1:]]]
    if "int" in str(tensor.dtype):
        return tf.constant(random.randint(9, size=shape), tf.int32)
    if "str" in str(tensor.dtype):
        return tf.constant(random.choice(["a b", "b c d", "zz"], shape))
    return tf.constant(random.rand(*shape), tf.float32)


def compiled(build):
    keras.utils.set_random_seed(1)
    x, y, loss, optimizer = build()
    model = keras.Model(x, y)
    model.compile(optimizer, loss)
    return model


for build in attention, images, two_inputs, named_inputs, words, unrolled, recurrent:
    model, fitted = compiled(build), compiled(build)
    one, two = folder + build.__name__, folder + build.__name__ + ".x2"
    graft.keras_step(model, one)
    made = graft.rewrite(one, replicas=2, device_type="CPU", output=two, function="train")
    a, b = tf.saved_model.load(one), tf.saved_model.load(two)
    for rows in 6, 5, 1, 2:
        fed = [[draw(each, rows) for each in those] for those in (model.inputs, model.outputs)]
        fed = [each[0] if len(each) == 1 else each for each in fed]
        if isinstance(model.input, dict):
            fed[0] = {name: draw(each, rows) for name, each in model.input.items()}
        got, want = b.train(*fed)["loss"], a.train(*fed)["loss"]
        np.testing.assert_allclose(got, want, rtol=2e-5, err_msg=f"{build.__name__}, {rows} rows")
        fitted.train_on_batch(*fed)
    # Adam makes much of a gradient that is zero but for rounding.
    its = [each.numpy() for each in graft._keras._values(fitted.variables)]
    for i, (mine, value) in enumerate(zip(a.kept, its)):
        np.testing.assert_allclose(mine, value, rtol=1e-4, atol=5e-4, err_msg=f"{build.__name__}, variable {i}")
    print(build.__name__, *[each.id for each in made.warnings])
"""


@pytest.mark.parametrize("which", ["keras", "tf_keras"])
def test_keras_models(which, tmp_path):
    # The ragged words run once, on the whole batch.
    said = run_keras(MODELS, which, str(tmp_path) + "/")
    assert said == ["attention", "images", "two_inputs", "named_inputs", "words spread", "unrolled", "recurrent"]


def test_words(step, tmp_path):
    """A single name is a list of one, and wrong types are named."""
    one, two = step
    made = graft.rewrite(one, replicas=2, device_type="CPU", feeds="x", fetches="loss")
    assert made.kind == "metagraph"
    assert graft.rewrite(one, devices="/device:CPU:0").path
    for arguments, message in [
        ({"replicas": "2"}, "replicas is a number, not '2'"),
        ({"devices": 2}, "devices is a list of names, not 2"),
        ({"replicas": 2, "fetches": [3]}, "fetches is a list of names, but 3 is a int"),
        ({"replicas": 2, "feeds": 1.5}, "feeds is a list of names, not 1.5"),
    ]:
        with pytest.raises(TypeError, match=message.replace("[", r"\[")):
            graft.rewrite(one, **arguments)
    with pytest.raises(graft.InputError) as caught:
        graft.rewrite(one, replicas=2, feeds={"z": "split"})
    assert str(caught.value) == "error: --feed: the graph has no tensor 'z'; the feeds are x, y, save/filename, save/Const"


def test_load_says_what_to_use(step, tmp_path):
    one, _ = step
    with pytest.raises(ValueError, match="is a SavedModel; load the functions with tf.saved_model.load"):
        graft.load(str(tmp_path))
    meta = tf1.MetaGraphDef()
    with open(one, "rb") as file:
        meta.ParseFromString(file.read())
    frozen = tmp_path / "frozen.pb"
    frozen.write_bytes(meta.graph_def.SerializeToString())
    for given in (str(frozen), meta.graph_def):
        with pytest.raises(ValueError, match="a GraphDef has neither collections nor a saver"):
            graft.load(given)
    text = tmp_path / "one.pbtxt"
    text.write_text(str(meta))
    with graft.load(str(text)) as loaded:
        assert set(loaded.feeds) == {"x", "y"}
    assert tf.__version__
