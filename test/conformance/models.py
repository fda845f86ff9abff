# SPDX-License-Identifier: Apache-2.0
"""The model zoo: single-device TensorFlow training graphs, and what is known about them.

Every model is a function that fills a `tf.compat.v1` graph (v2 behaviour off). The names are the same in all of them:

    x, y        placeholders of the global batch
    loss        the loss of the global batch (mean or sum over it, plus penalties)
    train_op    one training step
    init        initialises every variable
    save/...    a Saver over every variable

A variant of a model is a `Spec`: batch None (unknown) or a number, ref or resource variables, mean or sum loss, float32
or float64. Rates of a sum loss are those of the mean loss divided by the batch, so both train alike.

A reference must not race. Three rules keep the models ordered under every schedule; `test_references.py` checks them:

* What reads `global_step` is an input of the updates, and the increment waits for the updates.
* Penalties read the weights, and in a graph with ref variables an update in place may come before such a read. So the
  updates of a ref graph wait for the penalty.
* Where updates are made by hand (`adamw_assign`), clipping by the global norm makes every update wait for all gradients.
"""

import dataclasses
import os
from typing import Callable, Dict, Optional, Tuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # its graph pass fuses nodes into others

import numpy as np
import tensorflow.compat.v2 as tf  # so that TensorFlow 1.15 can build the models too, see test_tf1.py
from tensorflow.python.training import moving_averages

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
tf1.logging.set_verbosity(tf1.logging.ERROR)

BATCH = 12  # divides by 1, 2, 3 and 4; the `wide` models have layers of this size too
STEPS = 3


@dataclasses.dataclass(frozen=True)
class Spec:
    """One variant of a model."""

    model: str
    kind: str = "resource"  # or 'ref'
    batch: Optional[int] = None  # or BATCH
    loss: str = "mean"  # or 'sum'
    dtype: str = "float32"  # or 'float64'

    def __str__(self):
        parts = [self.model, self.kind, "unknown" if self.batch is None else "static", self.loss]
        return "-".join(parts + (["float64"] if self.dtype == "float64" else []))


@dataclasses.dataclass(frozen=True)
class Zoo:
    """The properties of a model that the tests use, apart from its graph."""

    build: Callable
    anchor: str  # the first op that works on rows of x: each replica must see its share there
    data: Callable  # (rng, dtype) -> (x, y) of one global batch
    batch_norm: bool = False
    float64: bool = True


@dataclasses.dataclass
class Built:
    """A finished graph."""

    spec: Spec
    graph: tf.Graph
    saver: tf1.train.Saver

    def write(self, path: str) -> str:
        """Writes a MetaGraphDef (.meta) or a GraphDef (.pb, .pbtxt; no collections, no saver)."""
        with self.graph.as_default():
            if path.endswith(".meta"):
                tf1.train.export_meta_graph(path, graph=self.graph, saver_def=self.saver.as_saver_def())
            else:
                directory, name = os.path.split(path)
                tf1.train.write_graph(self.graph, directory or ".", name, as_text=path.endswith(".pbtxt"))
        return path


class Builder:
    """The common parts of the models: placeholders, variables, the loss's two forms, and the training op."""

    def __init__(self, spec: Spec, towers: int = 1, gradient_scale: float = 1.0, random: bool = False):
        self.spec = spec
        self.dtype = tf.as_dtype(spec.dtype)
        self.towers = towers
        self.gradient_scale = gradient_scale  # other than 1: a deliberately wrong graph
        self.random = random  # unseeded initialisers
        self.penalties = []
        self.seeds = 0
        self.y = None

    # Sum-loss quantities are `per` times those of the mean loss.
    @property
    def per(self) -> float:
        return float(BATCH) if self.spec.loss == "sum" else 1.0

    def placeholder(self, name, shape, dtype=None):
        return tf1.placeholder(dtype or self.dtype, [self.spec.batch] + shape, name=name)

    def inputs(self, x_shape, y_shape, x_dtype=None, y_dtype=None):
        return self.placeholder("x", x_shape, x_dtype), self.placeholder("y", y_shape, y_dtype)

    def initializer(self, shape, scale=None):
        self.seeds += 1
        if scale is None:
            scale = 1.0 / np.sqrt(max(1, int(np.prod(shape[:-1]))))
        if self.random:
            return tf1.random_uniform_initializer(-2 * scale, 2 * scale, dtype=self.dtype)
        if self.seeds % 2:
            return tf1.random_uniform_initializer(-1.7 * scale, 1.7 * scale, seed=self.seeds, dtype=self.dtype)
        values = np.random.RandomState(self.seeds).uniform(-1.7 * scale, 1.7 * scale, shape)
        return tf1.constant_initializer(values, dtype=self.dtype)

    def variable(self, name, shape, scale=None, **kwargs):
        if "initializer" not in kwargs:
            kwargs["initializer"] = self.initializer(shape, scale)
        return tf1.get_variable(name, shape, self.dtype, **kwargs)

    def constant(self, name, shape, value, trainable=False):
        return tf1.get_variable(
            name, shape, self.dtype, initializer=tf1.constant_initializer(value, dtype=self.dtype), trainable=trainable
        )

    def l2(self, weight, *variables):
        """A penalty; it belongs to the loss of a batch once, whatever the batch."""
        for v in variables:
            self.penalties.append(weight * self.per * tf.nn.l2_loss(v))

    def total(self, per_example):
        """The loss over the batch without penalties."""
        return tf.reduce_mean(per_example) if self.spec.loss == "mean" else tf.reduce_sum(per_example)

    def loss(self, data_loss):
        total = data_loss
        if self.penalties:
            total = total + tf.add_n(self.penalties)
        return tf.identity(total, name="loss")

    def rows(self):
        """The size of axis 0 in a Reshape: -1, or the number, as users of a static batch write it."""
        if self.spec.batch is None or self.towers > 1:
            return -1
        return self.spec.batch

    def ordered(self):
        """Control inputs of the updates: see the top of the file."""
        return tf.control_dependencies(self.penalties if self.spec.kind == "ref" else [])

    def scaled(self, gradient):
        if self.gradient_scale == 1.0 or gradient is None:
            return gradient
        if isinstance(gradient, tf.IndexedSlices):
            return tf.IndexedSlices(gradient.values * self.gradient_scale, gradient.indices, gradient.dense_shape)
        return gradient * self.gradient_scale

    def train(self, optimizer, loss, clip=None, global_step=None):
        pairs = [(self.scaled(g), v) for g, v in optimizer.compute_gradients(loss)]
        if clip is not None:
            clipped, _ = tf.clip_by_global_norm([g for g, _ in pairs], clip)
            pairs = list(zip(clipped, [v for _, v in pairs]))
        with self.ordered():
            return optimizer.apply_gradients(pairs, global_step=global_step, name="train_op")


# --- The models. ---


def linear(b: Builder):
    """Linear regression by gradient descent."""
    x, y = b.inputs([5], [1])
    w, bias = b.variable("w", [5, 1]), b.constant("b", [1], 0.3, trainable=True)
    error = tf.matmul(x, w, name="project") + bias - y
    loss = b.loss(b.total(tf.square(error)))
    b.train(tf1.train.GradientDescentOptimizer(0.1 / b.per), loss)


def perceptron(b: Builder, x, features, hidden, classes):
    with tf1.variable_scope("hidden"):
        w1, b1 = b.variable("kernel", [features, hidden]), b.constant("bias", [hidden], 0.1, trainable=True)
        h = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w1, name="project"), b1))
    with tf1.variable_scope("output"):
        w2, b2 = b.variable("kernel", [hidden, classes]), b.constant("bias", [classes], 0.0, trainable=True)
        return tf.matmul(h, w2) + b2, w1, w2


def cross_entropy(b: Builder, labels, logits):
    return b.total(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def mlp_adam(b: Builder):
    """Two layers, Adam. A large epsilon, since a small one makes Adam blind to the gradients' scale."""
    x, y = b.inputs([8], [], y_dtype=tf.int32)
    logits, _, _ = perceptron(b, x, 8, 16, 4)
    loss = b.loss(cross_entropy(b, y, logits))
    step = tf1.train.get_or_create_global_step()
    b.train(tf1.train.AdamOptimizer(0.02, epsilon=0.01 * b.per), loss, global_step=step)


def mlp_clip(b: Builder):
    """Two layers, clipping by the global norm, a penalty. The batches make the clip bite in some steps only."""
    x, y = b.inputs([8], [], y_dtype=tf.int32)
    logits, w1, w2 = perceptron(b, x, 8, 16, 4)
    b.l2(0.05, w1, w2)
    loss = b.loss(cross_entropy(b, y, logits))
    tf1.losses.add_loss(loss)
    step = tf1.train.get_or_create_global_step()
    b.train(tf1.train.GradientDescentOptimizer(0.3 / b.per), loss, clip=1.2 * b.per, global_step=step)


def mlp_random(b: Builder):
    """As mlp_adam, but no seed: two runs of `init` never agree, so only checkpoints carry values over."""
    b.random = True
    mlp_adam(b)


def wide_linear(b: Builder):
    """Every dimension of the model is as large as the batch."""
    x, y = b.inputs([BATCH], [BATCH])
    w, bias = b.variable("w", [BATCH, BATCH]), b.constant("b", [BATCH], 0.3, trainable=True)
    error = tf.matmul(x, w, name="project") + bias - y
    loss = b.loss(b.total(tf.square(error)))
    b.train(tf1.train.GradientDescentOptimizer(1.0 / b.per), loss)


def wide_mlp(b: Builder):
    """As many features and hidden units as rows in the batch; Momentum and a penalty."""
    x, y = b.inputs([BATCH], [], y_dtype=tf.int32)
    logits, w1, w2 = perceptron(b, x, BATCH, BATCH, 4)
    b.l2(0.02, w1, w2)
    loss = b.loss(cross_entropy(b, y, logits))
    step = tf1.train.get_or_create_global_step()
    b.train(tf1.train.MomentumOptimizer(0.2 / b.per, 0.9), loss, global_step=step)


def embedding(b: Builder):
    """A table with sparse gradients and Adagrad. Ids repeat inside a shard and across shards; some rows stay unused."""
    ids_per_row, width = 3, 5
    x, y = b.inputs([ids_per_row], [], x_dtype=tf.int32)
    table = b.variable("table", [11, width], 0.7)
    w = b.variable("w", [ids_per_row * width, 1], 0.5)
    rows = tf.nn.embedding_lookup(table, x, name="lookup")
    flat = tf.reshape(rows, [b.rows(), ids_per_row * width])
    error = tf.squeeze(tf.matmul(flat, w), [1]) - y
    loss = b.loss(b.total(tf.square(error)))
    b.train(tf1.train.AdagradOptimizer(0.1, initial_accumulator_value=0.1 * b.per**2), loss)


def adamw_assign(b: Builder):
    """Adam with decoupled weight decay, as in BERT's AdamWeightDecayOptimizer: no optimizer op, only Assign."""
    x, y = b.inputs([8], [], y_dtype=tf.int32)
    logits, _, _ = perceptron(b, x, 8, 16, 4)
    loss = b.loss(cross_entropy(b, y, logits))
    variables = tf1.trainable_variables()
    gradients = [b.scaled(g) for g in tf.gradients(loss, variables)]
    gradients, _ = tf.clip_by_global_norm(gradients, 4.0 * b.per)
    step = tf1.train.get_or_create_global_step()
    rate, beta1, beta2, epsilon, decay = 0.02, 0.9, 0.99, 0.01 * b.per, 0.1
    updates = []
    for gradient, variable in zip(gradients, variables):
        name = variable.op.name
        m = b.constant(name + "/adam_m", variable.shape.as_list(), 0.0)
        v = b.constant(name + "/adam_v", variable.shape.as_list(), 0.0)
        next_m = beta1 * m + (1.0 - beta1) * gradient
        next_v = beta2 * v + (1.0 - beta2) * tf.square(gradient)
        update = next_m / (tf.sqrt(next_v) + epsilon)
        if "kernel" in name:
            update += decay * variable
        next_variable = variable - rate * update
        updates += [variable.assign(next_variable), m.assign(next_m), v.assign(next_v)]
    with tf.control_dependencies(updates):
        updates.append(tf1.assign_add(step, 1))
    tf.group(*updates, name="train_op")


def convolution(b: Builder, x, scope, channels, batch_norm):
    """conv, batch norm or bias, relu, max-pool; x may be one tensor or one for each tower."""
    xs = x if isinstance(x, list) else [x]
    with tf1.variable_scope(scope, reuse=tf1.AUTO_REUSE):
        depth = xs[0].shape.as_list()[-1]
        kernel = b.variable("kernel", [3, 3, depth, channels])
        b.l2(0.01, kernel)
        hs = [tf.nn.conv2d(h, kernel, strides=1, padding="SAME", name="conv") for h in xs]
        if batch_norm:
            gamma, beta = b.constant("gamma", [channels], 1.1, True), b.constant("beta", [channels], 0.1, True)
            mean, variance = b.constant("moving_mean", [channels], 0.0), b.constant("moving_variance", [channels], 1.0)
            triples = [tf1.nn.fused_batch_norm(h, gamma, beta, epsilon=1e-3) for h in hs]
            hs = [t[0] for t in triples]
            for average, index in ((mean, 1), (variance, 2)):
                value = sum(t[index] for t in triples) / len(triples) if len(triples) > 1 else triples[0][index]
                update = moving_averages.assign_moving_average(average, value, 0.7, zero_debias=False)
                tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
        else:
            bias = b.constant("bias", [channels], 0.1, trainable=True)
            hs = [tf.nn.bias_add(h, bias) for h in hs]
        hs = [tf.nn.max_pool2d(tf.nn.relu(h), 2, 2, "VALID") for h in hs]
    return hs if isinstance(x, list) else hs[0]


def cnn_graph(b: Builder, batch_norm: bool):
    x, y = b.inputs([8, 8, 3], [], y_dtype=tf.int32)
    xs, ys = (x, y) if b.towers == 1 else (tf.split(x, b.towers), tf.split(y, b.towers))
    hs = convolution(b, xs, "conv1", 6, batch_norm)
    hs = convolution(b, hs, "conv2", 8, batch_norm)
    with tf1.variable_scope("dense"):
        kernel, bias = b.variable("kernel", [32, 5]), b.constant("bias", [5], 0.0, trainable=True)
        b.l2(0.01, kernel)

        def head(h, labels):
            logits = tf.nn.bias_add(tf.matmul(tf.reshape(h, [b.rows(), 32]), kernel), bias)
            return cross_entropy(b, labels, logits)

        if b.towers == 1:
            data_loss = head(hs, ys)
        else:
            data_loss = tf.add_n([head(h, labels) for h, labels in zip(hs, ys)])
            if b.spec.loss == "mean":
                data_loss = data_loss / b.towers
    loss = b.loss(data_loss)
    step = tf1.train.get_or_create_global_step()
    rate = tf1.train.exponential_decay(0.1 / b.per, step, 2, 0.6)
    with tf.control_dependencies(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        b.train(tf1.train.MomentumOptimizer(rate, 0.9), loss, global_step=step)


def cnn(b: Builder):
    """Convolutions with batch norm, penalties in the loss, Momentum, a rate that decays with the steps.

    With towers > 1 it is the oracle of a replicated batch norm: every tower normalises with the statistics of its shard,
    and the moving averages take the mean of the towers' statistics.
    """
    cnn_graph(b, batch_norm=True)


def cnn_nobn(b: Builder):
    """As cnn with biases in place of batch norm, so that the single-device graph is the oracle for every N."""
    cnn_graph(b, batch_norm=False)


def resnet(b: Builder):
    """A small residual network, as people train it: the bundled graph of `tools/demo`. Towers as in `cnn`."""
    x, y = b.inputs([32, 32, 3], [], y_dtype=tf.int32)
    xs, ys = ([x], [y]) if b.towers == 1 else (tf.split(x, b.towers), tf.split(y, b.towers))

    def conv(hs, scope, channels, size, stride):
        with tf1.variable_scope(scope):
            b.seeds += 1
            he = tf1.variance_scaling_initializer(2.0, "fan_out", "truncated_normal", seed=b.seeds, dtype=b.dtype)
            kernel = b.variable("kernel", [size, size, hs[0].shape[-1], channels], initializer=he)
            b.l2(1e-3, kernel)
            return [tf.nn.conv2d(h, kernel, strides=stride, padding="SAME", name="Conv2D") for h in hs]

    def batch_norm(hs, scope):
        with tf1.variable_scope(scope):
            channels = hs[0].shape[-1]
            gamma, beta = b.constant("gamma", [channels], 1.0, True), b.constant("beta", [channels], 0.0, True)
            mean, variance = b.constant("moving_mean", [channels], 0.0), b.constant("moving_variance", [channels], 1.0)
            triples = [tf1.nn.fused_batch_norm(h, gamma, beta, epsilon=1e-3) for h in hs]
            for average, index in ((mean, 1), (variance, 2)):
                value = sum(t[index] for t in triples) / len(triples) if len(triples) > 1 else triples[0][index]
                update = moving_averages.assign_moving_average(average, value, 0.9, zero_debias=False)
                tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
            return [t[0] for t in triples]

    def relu(hs):
        return [tf.nn.relu(h) for h in hs]

    def block(hs, scope, channels, stride):
        with tf1.variable_scope(scope):
            shortcut = hs
            if stride != 1:
                shortcut = batch_norm(conv(hs, "shortcut", channels, 1, stride), "shortcut_bn")
            hs = relu(batch_norm(conv(hs, "conv1", channels, 3, stride), "bn1"))
            hs = batch_norm(conv(hs, "conv2", channels, 3, 1), "bn2")
            return relu([h + s for h, s in zip(hs, shortcut)])

    hs = relu(batch_norm(conv(xs, "stem", 8, 3, 1), "stem_bn"))
    for i, channels in enumerate((8, 16, 32), start=1):
        hs = block(hs, f"stage{i}/block1", channels, 1 if i == 1 else 2)
        hs = block(hs, f"stage{i}/block2", channels, 1)
    with tf1.variable_scope("head"):
        kernel, bias = b.variable("kernel", [32, 10]), b.constant("bias", [10], 0.0, trainable=True)
        b.l2(1e-3, kernel)
        pooled = [tf.reduce_mean(h, [1, 2]) for h in hs]
        losses = [cross_entropy(b, t, tf.nn.bias_add(tf.matmul(h, kernel), bias)) for h, t in zip(pooled, ys)]
    data_loss = losses[0] if b.towers == 1 else tf.add_n(losses)
    if b.towers > 1 and b.spec.loss == "mean":
        data_loss = data_loss / b.towers
    loss = b.loss(data_loss)
    step = tf1.train.get_or_create_global_step()
    rate = tf1.train.exponential_decay(0.05 / b.per, step, 100, 0.9, staircase=True)
    with tf.control_dependencies(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        b.train(tf1.train.MomentumOptimizer(rate, 0.9), loss, global_step=step)


# --- Data. Rows differ in size along the batch, so no two shards have the same gradient. ---


def ramp(rng, shape):
    x = rng.standard_normal((BATCH,) + shape)
    return x * np.linspace(0.5, 1.5, BATCH).reshape((BATCH,) + (1,) * len(shape))


def regression(features, targets):
    return lambda rng, dtype: (ramp(rng, (features,)).astype(dtype), rng.standard_normal((BATCH, targets)).astype(dtype))


def classification(shape, classes, offset=0.0):
    return lambda rng, dtype: (
        (ramp(rng, shape) + offset).astype(dtype),
        rng.integers(0, classes, BATCH).astype(np.int32),
    )


def lookups(rng, dtype):
    ids = rng.integers(0, 9, (BATCH, 3)).astype(np.int32)  # rows 9 and 10 of the table stay unused
    ids[:, 0] = 2  # in every shard, and more than once in each
    ids[1::3, 1] = 5
    return ids, rng.standard_normal(BATCH).astype(dtype)


MODELS: Dict[str, Zoo] = {
    "linear": Zoo(linear, "project", regression(5, 1)),
    "mlp_adam": Zoo(mlp_adam, "hidden/project", classification((8,), 4)),
    "cnn": Zoo(cnn, "conv1/conv", classification((8, 8, 3), 5, offset=0.7), batch_norm=True, float64=False),
    "cnn_nobn": Zoo(cnn_nobn, "conv1/conv", classification((8, 8, 3), 5, offset=0.7)),
    "mlp_clip": Zoo(mlp_clip, "hidden/project", classification((8,), 4)),
    "embedding": Zoo(embedding, "lookup", lookups),
    "wide_mlp": Zoo(wide_mlp, "hidden/project", lambda *args: classification((BATCH,), 4)(*args)),
    "wide_linear": Zoo(wide_linear, "project", lambda *args: regression(BATCH, BATCH)(*args)),
    "adamw_assign": Zoo(adamw_assign, "hidden/project", classification((8,), 4)),
    # Not in the matrix: these have tests of their own.
    "mlp_random": Zoo(mlp_random, "hidden/project", classification((8,), 4)),
    "resnet": Zoo(
        resnet, "stem/Conv2D", classification((32, 32, 3), 10, offset=0.5), batch_norm=True, float64=False
    ),
}
MATRIX = [name for name in MODELS if name not in ("mlp_random", "resnet")]


def build(spec: Spec, towers: int = 1, gradient_scale: float = 1.0) -> Built:
    graph = tf.Graph()
    with graph.as_default():
        tf1.get_variable_scope().set_use_resource(spec.kind == "resource")
        MODELS[spec.model].build(Builder(spec, towers, gradient_scale))
        tf1.add_to_collection(tf1.GraphKeys.TRAIN_OP, graph.get_operation_by_name("train_op"))
        tf1.variables_initializer(tf1.global_variables(), name="init")
        saver = tf1.train.Saver()
    return Built(spec, graph, saver)


def batches(model: str, dtype: str = "float32", count: int = STEPS) -> Tuple[Tuple[np.ndarray, np.ndarray], ...]:
    """The global batches of the first steps; the same for every variant of a model."""
    rng = np.random.default_rng(sorted(MODELS).index(model) + 100)
    return tuple(MODELS[model].data(rng, dtype) for _ in range(count))
