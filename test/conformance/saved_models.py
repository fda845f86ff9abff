# SPDX-License-Identifier: Apache-2.0
"""SavedModels of many kinds, before and after graft-opt, in the loaders that people use.

    python saved_models.py CASE GRAFT_OPT FOLDER REPLICAS...      prints what was found, as JSON

A process of its own: TensorFlow makes its devices once. test_saved_models.py calls it and judges what it prints.
"""

import collections
import functools
import json
import os
import shutil
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

if sys.argv[1:2] == ["keras_tf"]:
    os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.eager import context

tf1 = tf.compat.v1
MOST = 4  # devices
STEPS = 3
ROWS = 8


def tensor(name, *shape):
    return tf.TensorSpec([None, *shape], tf.float32, name=name)


def batch(step, *shapes):
    random = np.random.RandomState(step)
    return [random.randn(ROWS, *shape).astype(np.float32) for shape in shapes]


def start(seed, *shape):
    return (0.3 * np.random.RandomState(seed).randn(*shape)).astype(np.float32)


# --- Models. Each case saves one and says what is called: (signature, the shapes of a row of its inputs). ---


class Case:
    calls = [("train", {"x": (4,), "y": (1,)})]
    tags = ["serve"]
    functions = {"train": "train"}  # of the loaded object, by signature; none of a SavedModel of version 1
    flags = ()
    variables = True  # the calls change them

    def save(self, folder):
        raise NotImplementedError


class Module(Case):
    """tf.Module and an optimizer by hand, with momentum and a counter."""

    def save(self, folder):
        class Model(tf.Module):
            def __init__(self):
                super().__init__()
                self.w = tf.Variable(start(1, 4, 3), name="w")
                self.v = tf.Variable(start(2, 3, 1), name="v")
                self.slots = [tf.Variable(np.zeros(w.shape, np.float32), trainable=False) for w in (self.w, self.v)]
                self.steps = tf.Variable(0, dtype=tf.int64, trainable=False, name="steps")

            @tf.function(input_signature=[tensor("x", 4), tensor("y", 1)])
            def train(self, x, y):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(tf.tanh(x @ self.w) @ self.v - y))
                pairs = zip(tape.gradient(loss, [self.w, self.v]), [self.w, self.v], self.slots)
                for gradient, w, slot in pairs:
                    slot.assign(0.9 * slot + gradient)
                    w.assign_sub(0.1 * slot)
                self.steps.assign_add(1)
                return {"loss": loss}

        model = Model()
        tf.saved_model.save(model, folder, signatures={"train": model.train})


class TwoSignatures(Case):
    """Two training steps on the same variables, and a prediction."""

    calls = [
        ("train", {"x": (4,), "y": (1,)}),
        ("shrink", {"x": (4,)}),
        ("predict", {"x": (4,)}),
    ]
    functions = {name: name for name in ("train", "shrink", "predict")}

    def save(self, folder):
        class Model(tf.Module):
            def __init__(self):
                super().__init__()
                self.w = tf.Variable(start(1, 4, 1), name="w")

            @tf.function(input_signature=[tensor("x", 4), tensor("y", 1)])
            def train(self, x, y):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(tf.square(x @ self.w - y)) / tf.cast(tf.shape(x)[0], tf.float32)
                self.w.assign_sub(0.1 * tape.gradient(loss, self.w))
                return loss

            @tf.function(input_signature=[tensor("x", 4)])
            def shrink(self, x):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.abs(x @ self.w))
                self.w.assign_sub(0.05 * tf.clip_by_norm(tape.gradient(loss, self.w), 0.5))
                return loss

            @tf.function(input_signature=[tensor("x", 4)])
            def predict(self, x):
                return x @ self.w

        model = Model()
        names = ("train", "shrink", "predict")
        tf.saved_model.save(model, folder, signatures={name: getattr(model, name) for name in names})


class ControlFlow(Case):
    """Functions with If, While and calls inside calls; one of them is the gradient of another."""

    def save(self, folder):
        class Model(tf.Module):
            def __init__(self):
                super().__init__()
                self.w = tf.Variable(start(1, 4, 4), name="w")
                self.v = tf.Variable(start(2, 4, 1), name="v")
                self.steps = tf.Variable(0, dtype=tf.int64, trainable=False)

            @tf.function
            def layer(self, h):
                return tf.tanh(h @ self.w)

            @tf.function
            def network(self, x):
                h = x
                for _ in tf.range(2):
                    h = self.layer(h)
                return self.layer(h) @ self.v

            @tf.function(input_signature=[tensor("x", 4), tensor("y", 1)])
            def train(self, x, y):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(self.network(x) - y))
                gradients = tape.gradient(loss, [self.w, self.v])
                if tf.linalg.global_norm(gradients) > 0.1:
                    for w, gradient in zip([self.w, self.v], gradients):
                        w.assign_sub(0.1 * gradient)
                self.steps.assign_add(1)
                return {"loss": loss}

        model = Model()
        tf.saved_model.save(model, folder, signatures={"train": model.train})


class Tables(Case):
    """A table from an asset, a captured constant, sparse gradients, and an iterator that is an argument."""

    calls = [("train", {"x": (), "y": (1,)})]

    def save(self, folder):
        words = os.path.join(os.path.dirname(folder), "words.txt")
        with open(words, "w", encoding="utf-8") as file:
            file.write("-1\n0\n1\n")

        class Model(tf.Module):
            def __init__(self):
                super().__init__()
                lines = tf.lookup.TextFileIndex
                source = tf.lookup.TextFileInitializer(words, tf.string, lines.WHOLE_LINE, tf.int64, lines.LINE_NUMBER)
                self.table = tf.lookup.StaticVocabularyTable(source, 2)
                self.rows = tf.Variable(start(1, 5, 3), name="rows")
                self.v = tf.Variable(start(2, 3, 1), name="v")
                self.weights = tf.constant([1.0, 2.0, 3.0])

            @tf.function(input_signature=[tensor("x"), tensor("y", 1)])
            def train(self, x, y):
                words = tf.strings.as_string(tf.cast(tf.round(x), tf.int32))
                with tf.GradientTape() as tape:
                    found = tf.nn.embedding_lookup(self.rows, self.table.lookup(words)) * self.weights
                    loss = tf.reduce_mean(tf.square(found @ self.v - y))
                rows, v = tape.gradient(loss, [self.rows, self.v])
                self.rows.scatter_sub(tf.IndexedSlices(0.1 * rows.values, rows.indices))
                self.v.assign_sub(0.1 * v)
                return {"loss": loss}

        model = Model()
        tf.saved_model.save(model, folder, signatures={"train": model.train})


def keras_step(keras, folder):
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((4,)),
            layers.Dense(8, activation="relu", kernel_initializer=keras.initializers.Constant(start(1, 4, 8))),
            layers.BatchNormalization(),
            layers.Dense(1, kernel_initializer=keras.initializers.Constant(start(2, 8, 1))),
        ]
    )
    optimizer = keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)

    class Trainer(tf.Module):
        def __init__(self):
            super().__init__()
            self.model, self.optimizer = model, optimizer
            if keras.__version__.startswith("3"):
                self.tracked = [v.value for v in model.variables + optimizer.variables]

        @tf.function(input_signature=[tensor("x", 4), tensor("y", 1)])
        def train_step(self, x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self.model(x, training=True) - y))
            weights = self.model.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
            return {"loss": loss}

        @tf.function(input_signature=[tensor("x", 4)])
        def predict(self, x):
            return {"y": self.model(x, training=False)}

    trainer = Trainer()
    tf.saved_model.save(trainer, folder, signatures={"train": trainer.train_step, "serving_default": trainer.predict})


class KerasTf(Case):
    """A model and an optimizer of tf_keras, with a train_step."""

    calls = [("train", {"x": (4,), "y": (1,)}), ("serving_default", {"x": (4,)})]
    functions = {"train": "train_step", "serving_default": "predict"}

    def save(self, folder):
        import tf_keras

        keras_step(tf_keras, folder)


class Keras3(KerasTf):
    """The same of Keras 3."""

    def save(self, folder):
        import keras

        keras_step(keras, folder)


class Serving(Case):
    """The output of `model.export()` of Keras 3: predictions only."""

    calls = [("serving_default", {"x": (4,)})]
    functions = {"serving_default": "serve"}
    variables = False

    def save(self, folder):
        import keras

        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((4,), name="x"), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
        model.export(folder, verbose=False)


class Version1(Case):
    """tf.compat.v1.saved_model.Builder: a training step, with resource variables."""

    tags = ["train"]
    functions = {}

    def save(self, folder):
        with tf.Graph().as_default(), tf1.Session() as session:
            x, y = tf1.placeholder(tf.float32, [None, 4], "x"), tf1.placeholder(tf.float32, [None, 1], "y")
            w = tf1.get_variable("w", initializer=start(1, 4, 1), use_resource=True)
            loss = tf.reduce_mean(tf.square(x @ w - y), name="loss")
            train = tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
            with tf.control_dependencies([train]):
                result = tf.identity(loss, name="result")
            session.run(tf1.global_variables_initializer())
            builder = tf1.saved_model.Builder(folder)
            signature = tf1.saved_model.predict_signature_def({"x": x, "y": y}, {"loss": result})
            builder.add_meta_graph_and_variables(session, self.tags, {"train": signature})
            builder.save()


class Version1Shared(Version1):
    """The same with variables that exist once: TensorFlow 2 saves it again, as it tracks all that there are."""

    flags = ("--strategy=ps",)


class Estimator(Case):
    """The export of an Estimator of TensorFlow 1.15 for serving."""

    calls = [("predict", {"x": (4,)})]
    functions = {}
    variables = False

    def save(self, folder):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "export_estimator.py")
        command = [os.environ["GRAFT_TF1_PYTHON"], script, folder]
        environment = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
        subprocess.run(command, check=True, capture_output=True, env=environment)


CASES = {
    "module": Module,
    "keras_tf": KerasTf,
    "keras_3": Keras3,
    "control_flow": ControlFlow,
    "two_signatures": TwoSignatures,
    "tables": Tables,
    "serving": Serving,
    "version_1": Version1,
    "version_1_shared": Version1Shared,
    "estimator": Estimator,
}


# --- Loaders. Each runs calls and tells what came out, on which devices, and can save and restore. ---


def devices_of(names):
    return sorted({int(name.rsplit(":", 1)[1]) for name in names if "CPU:" in name})


class Tf2:
    """tf.saved_model.load; the signatures are called."""

    name = "tf2 loader"

    def __init__(self, case, folder):
        self.case = case
        # None says which of the MetaGraphDefs is meant.
        self.object = tf.saved_model.load(folder)
        self.devices = set()

    def function(self, call):
        return self.object.signatures[call]

    def run(self, call, feeds):
        context.context().enable_graph_collection()
        result = self.function(call)(**{name: tf.constant(value) for name, value in feeds.items()})
        ran = context.context().export_run_metadata()
        context.context().disable_graph_collection()
        self.devices |= {node.device for graph in ran.partition_graphs for node in graph.node}
        leaves = tf.nest.flatten(result)
        return [leaf.numpy() for leaf in leaves]

    def variables(self):
        tracked = getattr(self.object, "variables", None) or self.all_variables()
        return [v.numpy() for v in tracked]

    def all_variables(self):
        found, seen, work = [], set(), [self.object]
        while work:
            at = work.pop()
            if id(at) in seen:
                continue
            seen.add(id(at))
            if isinstance(at, tf.Variable):
                found.append(at)
                continue
            work += [child for _, child in sorted(at._trackable_children().items(), reverse=True)]
        return found

    def checkpoint(self, path):
        if hasattr(self.object, "restore"):  # version 1
            return None
        return tf.train.Checkpoint(self.object).write(path)

    def restore(self, path):
        status = tf.train.Checkpoint(self.object).read(path)
        status.assert_existing_objects_matched()

    def save_again(self, folder):
        tf.saved_model.save(self.object, folder, signatures=self.object.signatures)
        return type(self)(self.case, folder)

    def close(self):
        pass


class Functions(Tf2):
    """The functions of the loaded object."""

    name = "tf2 functions"

    def function(self, call):
        inner = getattr(self.object, self.case.functions[call])
        return lambda **feeds: inner(*[feeds[name] for name in dict(self.case.calls)[call]])

    def save_again(self, folder):
        return None  # as with signatures

    def gradient(self, call, feeds):
        """Through the function, with respect to what is fed."""
        tensors = {name: tf.constant(value) for name, value in feeds.items()}
        with tf.GradientTape() as tape:
            tape.watch(list(tensors.values()))
            results = tf.nest.flatten(self.function(call)(**tensors))
            total = tf.add_n([tf.reduce_sum(tf.square(result)) for result in results])
        return [g.numpy() for g in tape.gradient(total, list(tensors.values())) if g is not None]


class Wrapped(Tf2):
    """tf.compat.v1.wrap_function, and prune() of it."""

    name = "wrap_function"

    def __init__(self, case, folder):
        super().__init__(case, folder)
        saved = saved_model_pb2.SavedModel()
        with open(os.path.join(folder, "saved_model.pb"), "rb") as file:
            saved.ParseFromString(file.read())
        self.meta = saved.meta_graphs[0]

    @functools.lru_cache(maxsize=None)
    def function(self, call):
        if hasattr(self.object, "prune"):  # a graph, in a wrapped function already
            signature = self.meta.signature_def[call]
            names = sorted(signature.inputs)
            feeds = [signature.inputs[name].name for name in names]
            pruned = self.object.prune(feeds, [signature.outputs[name].name for name in sorted(signature.outputs)])
            return lambda **given: pruned(*[given[name] for name in names])
        inner = self.object.signatures[call]
        names = sorted(self.shapes(call))
        specs = [tensor(name, *self.shapes(call)[name]) for name in names]
        wrapped = tf1.wrap_function(lambda *args: inner(**dict(zip(names, args))), specs)
        inputs = [t for t in wrapped.inputs if t.dtype != tf.resource]
        pruned = wrapped.prune(inputs, tf.nest.flatten(wrapped.structured_outputs))
        return lambda **feeds: pruned(*[feeds[name] for name in names])

    def shapes(self, call):
        return dict(self.case.calls)[call]

    def save_again(self, folder):
        return None


class Tf1:
    """tf.compat.v1.saved_model.load, in a session."""

    name = "tf1 loader"

    def __init__(self, case, folder):
        self.devices = set()
        self.graph = tf.Graph()
        with self.graph.as_default():
            config = tf1.ConfigProto(device_count={"CPU": MOST}, allow_soft_placement=False)
            self.session = tf1.Session(graph=self.graph, config=config)
            self.meta = tf1.saved_model.load(self.session, case.tags, folder)

    def run(self, call, feeds):
        signature = self.meta.signature_def[call]
        names = [signature.outputs[key].name for key in sorted(signature.outputs)]
        metadata = tf1.RunMetadata()
        result = self.session.run(
            names,
            {signature.inputs[name].name: value for name, value in feeds.items()},
            options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE),
            run_metadata=metadata,
        )
        self.devices |= {d.device for d in metadata.step_stats.dev_stats if d.node_stats}
        return result

    def variables(self):
        reader = tf.train.load_checkpoint(self.checkpoint(os.path.join(self.scratch(), "values")))
        names = sorted(reader.get_variable_to_shape_map())
        return [reader.get_tensor(name) for name in names if not name.startswith("_")]

    @staticmethod
    @functools.lru_cache(maxsize=None)
    def scratch():
        import tempfile

        return tempfile.mkdtemp(dir=sys.argv[3])

    def checkpoint(self, path):
        saver = self.meta.saver_def
        return self.session.run(saver.save_tensor_name, {saver.filename_tensor_name: path}).decode()

    def restore(self, path):
        saver = self.meta.saver_def
        self.session.run(saver.restore_op_name, {saver.filename_tensor_name: path})

    def save_again(self, folder):
        return None

    def close(self):
        self.session.close()


class CommandLine:
    """saved_model_cli run. It has one CPU of its own, so it is given a server with more."""

    name = "saved_model_cli"

    def __init__(self, case, folder):
        self.case, self.folder = case, folder
        self.devices = None  # it does not tell

    @staticmethod
    @functools.lru_cache(maxsize=None)
    def server():
        config = tf1.ConfigProto(device_count={"CPU": MOST})
        return tf.distribute.Server({"local": ["localhost:0"]}, config=config)

    def run(self, call, feeds):
        inputs = []
        for name, value in feeds.items():
            path = os.path.join(Tf1.scratch(), f"{name}.npy")
            np.save(path, value)
            inputs.append(f"{name}={path}")
        out = os.path.join(Tf1.scratch(), "out")
        shutil.rmtree(out, ignore_errors=True)
        command = [sys.executable, "-m", "tensorflow.python.tools.saved_model_cli", "run"]
        command += ["--dir", self.folder, "--tag_set", ",".join(self.case.tags), "--signature_def", call]
        command += ["--inputs", ";".join(inputs), "--outdir", out, "--worker", self.server().target]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-2000:])
        return [np.load(os.path.join(out, name)) for name in sorted(os.listdir(out))]

    def variables(self):
        return []

    def checkpoint(self, path):
        return None

    def save_again(self, folder):
        return None

    def close(self):
        pass


def loaders(case):
    """Those that GRAFT_LOADERS names, or all that there are for such a SavedModel."""
    wanted = os.environ.get("GRAFT_LOADERS")
    kinds = [Tf1, Tf2, *([Functions] if case.functions else []), Wrapped, CommandLine]
    return [kind for kind in kinds if not wanted or kind.name in wanted.split(",")]


# --- What is compared. ---


def calls(case, step):
    for call, shapes in case.calls:
        yield call, dict(zip(sorted(shapes), batch(step, *[shapes[name] for name in sorted(shapes)])))


def off(got, want):
    """The largest difference, as a part of the largest value, or the reason why there is none."""
    if len(got) != len(want):
        return f"{len(got)} values, not {len(want)}"
    worst = 0.0
    for g, w in zip(got, want):
        g, w = np.asarray(g), np.asarray(w)
        if g.shape != w.shape or g.dtype != w.dtype:
            return f"{g.dtype}{g.shape}, not {w.dtype}{w.shape}"
        if not np.all(np.isfinite(np.asarray(g, np.float64))):
            return "not finite"
        difference = np.max(np.abs(g.astype(np.float64) - w), initial=0)
        worst = max(worst, difference / max(1e-2, np.max(np.abs(w.astype(np.float64)), initial=0)))
    return float(worst)


def steps(loaded, case, first=0, count=STEPS):
    """The results of the calls of some steps, and the variables after them."""
    results = []
    for step in range(first, first + count):
        for call, feeds in calls(case, step):
            results += loaded.run(call, feeds)
    return results + list(loaded.variables())


def attempt(work):
    try:
        return work()
    except Exception as error:  # pylint: disable=broad-except
        return f"{type(error).__name__}: {error}"[:1500]


def compare(kind, case, single, spread, folder):
    """One loader on one pair of SavedModels."""
    count = 1 if kind is CommandLine else STEPS
    a, b = kind(case, single), kind(case, spread)
    found = {"numbers": attempt(lambda: off(steps(b, case, count=count), steps(a, case, count=count)))}
    found["devices"] = devices_of(b.devices) if b.devices is not None else None

    def there_and_back():
        """The checkpoint of each goes on in the other."""
        worst = 0.0
        for i, (source, to) in enumerate([(a, b), (b, a)]):
            path = source.checkpoint(os.path.join(folder, f"checkpoint{i}"))
            if path is None:
                return None
            steps(to, case, 10, 1)
            to.restore(path)
            difference = off(steps(to, case, 20, 1), steps(source, case, 20, 1))
            if isinstance(difference, str):
                return difference
            worst = max(worst, difference)
        return worst

    def again():
        path = os.path.join(folder, "again")
        shutil.rmtree(path, ignore_errors=True)
        saved = b.save_again(path)
        if saved is None:
            return None
        difference = off(steps(saved, case, 30, 1), steps(b, case, 30, 1))
        return {"numbers": difference, "devices": devices_of(saved.devices)}

    if kind is Functions:
        found["gradient"] = attempt(
            lambda: max(off(b.gradient(*call), a.gradient(*call)) for call in calls(case, 40))
        )
    found["checkpoint"] = attempt(there_and_back)
    found["again"] = attempt(again)
    a.close()
    b.close()
    return found


def main(name, graft_opt, folder, *replicas):
    for cpu in tf.config.list_physical_devices("CPU"):
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * MOST)
    tf.config.set_soft_device_placement(False)
    case = CASES[name]()
    single = os.path.join(folder, "single")
    case.save(single)
    found = collections.OrderedDict()
    for count in replicas:
        spread = os.path.join(folder, f"x{count}")
        command = [graft_opt, single, "-o", spread, f"--replicas={count}", "--device-type=CPU", *case.flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        found[count] = {"status": done.returncode, "said": done.stderr}
        if done.returncode == 0:
            for kind in loaders(case):
                found[count][kind.name] = attempt(lambda kind=kind: compare(kind, case, single, spread, folder))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
