# SPDX-License-Identifier: Apache-2.0
"""Training steps as people write them, one habit each. `test_habits.py` runs them.

As in `models.py` every model is a function that fills a graph, with the same names (x, y, loss, init). A model may have
several train ops: `Habit.steps` names what each run of a step fetches. Rates of a sum loss are those of the mean loss
divided by the batch.
"""

import dataclasses
from typing import Callable, Dict, Tuple

import models
import numpy as np
import tensorflow.compat.v2 as tf
from models import BATCH, Builder, Built, Spec, tf1


@dataclasses.dataclass(frozen=True)
class Habit:
    """A model and how to run it."""

    build: Callable
    data: Callable  # (rng, dtype) -> (x, y) of one global batch
    steps: Tuple[str, ...] = ("train_op",) * 3
    fetches: Tuple[str, ...] = ("loss:0",)  # fetched with every step
    after: Tuple[str, ...] = ()  # fetched after every step, in a run of its own: what would race with the step
    scale_shows: bool = True  # gradients times 2 give other variables
    losses: Tuple[str, ...] = ("mean", "sum")
    flags: Tuple[str, ...] = ()  # more options of graft-opt


# --- Small networks that the models share. ---


def regress(b: Builder, x_features=5):
    """Two layers; returns the losses of the rows."""
    x, y = b.inputs([x_features], [1])
    w, bias = b.variable("w", [x_features, 4]), b.constant("b", [4], 0.1, trainable=True)
    v = b.variable("v", [4, 1])
    error = tf.matmul(tf.tanh(tf.matmul(x, w, name="project") + bias), v) - y
    return x, y, tf.reduce_sum(tf.square(error), axis=1)


def descend(b: Builder, loss, **kwargs):
    return b.train(tf1.train.GradientDescentOptimizer(0.1 / b.per), loss, **kwargs)


def trained_by(make):
    """A model that trains `regress` with the optimizer that make(b, step) returns."""

    def build(b: Builder):
        _, _, rows = regress(b)
        step = tf1.train.get_or_create_global_step()
        b.train(make(b, step), b.loss(b.total(rows)), global_step=step)

    return build


def looked_up_by(make):
    """A table with sparse gradients and a dense layer, trained with make(b, step)."""

    def build(b: Builder):
        x, y = b.inputs([3], [], x_dtype=tf.int32)
        table, w = b.variable("table", [11, 5], 0.7), b.variable("w", [5, 1], 0.5)
        rows = tf.reduce_sum(tf.nn.embedding_lookup(table, x), axis=1)
        error = tf.squeeze(tf.matmul(rows, w), [1]) - y
        step = tf1.train.get_or_create_global_step()
        b.train(make(b, step), b.loss(b.total(tf.square(error))), global_step=step)

    return build


# Accumulators and epsilons are of the size of the squared gradients: small ones make these optimizers blind to a scale.
OPTIMIZERS = {
    "sgd": lambda b, s: tf1.train.GradientDescentOptimizer(0.1 / b.per),
    "momentum": lambda b, s: tf1.train.MomentumOptimizer(0.1 / b.per, 0.9),
    "nesterov": lambda b, s: tf1.train.MomentumOptimizer(0.1 / b.per, 0.9, use_nesterov=True),
    "adagrad": lambda b, s: tf1.train.AdagradOptimizer(0.1, initial_accumulator_value=0.1 * b.per**2),
    "adagrad_da": lambda b, s: tf1.train.AdagradDAOptimizer(
        0.1, s, initial_gradient_squared_accumulator_value=0.1 * b.per**2, l1_regularization_strength=0.01 * b.per
    ),
    "adadelta": lambda b, s: tf1.train.AdadeltaOptimizer(0.5 / b.per, rho=0.9, epsilon=0.01 * b.per**2),
    "adam": lambda b, s: tf1.train.AdamOptimizer(0.02, epsilon=0.01 * b.per),
    "ftrl": lambda b, s: tf1.train.FtrlOptimizer(
        0.1, initial_accumulator_value=0.1 * b.per**2, l1_regularization_strength=0.01 * b.per
    ),
    "ftrl_shrinkage": lambda b, s: tf1.train.FtrlOptimizer(
        0.1, initial_accumulator_value=0.1 * b.per**2, l2_shrinkage_regularization_strength=0.01 * b.per
    ),
    "rmsprop": lambda b, s: tf1.train.RMSPropOptimizer(0.02, 0.9, momentum=0.5, epsilon=0.01 * b.per**2),
    "rmsprop_centered": lambda b, s: tf1.train.RMSPropOptimizer(
        0.02, 0.9, momentum=0.5, epsilon=0.1 * b.per**2, centered=True
    ),
    "proximal_sgd": lambda b, s: tf1.train.ProximalGradientDescentOptimizer(
        0.1 / b.per, l1_regularization_strength=0.01 * b.per, l2_regularization_strength=0.01 * b.per
    ),
    "proximal_adagrad": lambda b, s: tf1.train.ProximalAdagradOptimizer(
        0.1, initial_accumulator_value=0.1 * b.per**2, l1_regularization_strength=0.01 * b.per
    ),
}


# --- Losses. ---


def loss_over_dynamic_batch(b: Builder):
    """The sum over the rows divided by the number of rows, which the graph reads from the shape."""
    x, _, rows = regress(b)
    size = tf.cast(tf.shape(x)[0], b.dtype)
    loss = tf.identity(tf.reduce_sum(rows) / size * b.per, name="loss")
    descend(b, loss)


def loss_with_addend(b: Builder):
    """A penalty and another term that no row has a part in: they belong to the loss once."""
    _, _, rows = regress(b)
    variables = tf1.trainable_variables()
    b.l2(0.05, *variables)
    offset = b.constant("offset", [], 0.5, trainable=True)
    b.penalties.append(b.per * tf.square(offset - 2.0))
    descend(b, b.loss(b.total(rows)))


def loss_weighted(b: Builder):
    """sum(w * l) / sum(w): both sums are over all replicas before they are divided."""
    _, y, rows = regress(b)
    weights = tf.exp(tf.squeeze(y, [1]))
    loss = tf.identity(tf.reduce_sum(weights * rows) / tf.reduce_sum(weights) * b.per, name="loss")
    descend(b, loss)


def loss_masked(b: Builder):
    """As a language model pads: the mean over the rows that count, at least one."""
    _, y, rows = regress(b)
    mask = tf.cast(tf.squeeze(y, [1]) > 0.0, b.dtype)
    loss = tf.identity(tf.reduce_sum(mask * rows) / tf.maximum(tf.reduce_sum(mask), 1.0) * b.per, name="loss")
    descend(b, loss)


def losses_module(b: Builder):
    """tf.losses with weights: SUM_BY_NONZERO_WEIGHTS counts the rows that have a weight."""
    x, y = b.inputs([8], [], y_dtype=tf.int32)
    logits, _, _ = models.perceptron(b, x, 8, 16, 4)
    weights = tf.cast(tf.not_equal(y, 0), b.dtype)
    tf1.losses.sparse_softmax_cross_entropy(labels=y, logits=logits, weights=weights)
    descend(b, tf.identity(tf1.losses.get_total_loss() * b.per, name="loss"))


# --- What is done to gradients. ---


def applied(b: Builder, pairs, optimizer=None):
    optimizer = optimizer or tf1.train.GradientDescentOptimizer(0.1 / b.per)
    return optimizer.apply_gradients(pairs, name="train_op")


def gradients(b: Builder, loss):
    variables = tf1.trainable_variables()
    # Gated, as by an optimizer: else an update may change a reference variable that another gradient still reads.
    taken = tf.gradients(loss, variables, gate_gradients=True)
    return [(b.scaled(g), v) for g, v in zip(taken, variables)]


def clip_value(b: Builder):
    _, _, rows = regress(b)
    pairs = gradients(b, b.loss(b.total(rows)))
    limit = 0.3 * b.per
    applied(b, [(tf.clip_by_value(g, -limit, limit), v) for g, v in pairs])


def clip_norm(b: Builder):
    _, _, rows = regress(b)
    applied(b, [(tf.clip_by_norm(g, 0.8 * b.per), v) for g, v in gradients(b, b.loss(b.total(rows)))])


def clip_global_norm(b: Builder):
    """The norm is over dense and sparse gradients."""
    x, y = b.inputs([3], [], x_dtype=tf.int32)
    table, w = b.variable("table", [11, 5], 0.7), b.variable("w", [5, 1], 0.5)
    error = tf.squeeze(tf.matmul(tf.reduce_sum(tf.nn.embedding_lookup(table, x), axis=1), w), [1]) - y
    descend(b, b.loss(b.total(tf.square(error))), clip=1.0 * b.per)


def lars(b: Builder):
    """Every layer's rate is the ratio of two norms."""
    _, _, rows = regress(b)
    pairs = []
    for g, v in gradients(b, b.loss(b.total(rows))):
        ratio = tf.norm(v) / (tf.norm(g) + 0.5 * b.per * tf.norm(v) + 0.3 * b.per)
        pairs.append((g * ratio * b.per, v))
    applied(b, pairs)


def gradient_noise_scale(b: Builder):
    """The norm of the gradients is kept as a moving average in a variable."""
    _, _, rows = regress(b)
    pairs = gradients(b, b.loss(b.total(rows)))
    norm = b.constant("norm", [], 1.0)
    with tf.control_dependencies([norm.assign(0.9 * norm + 0.1 * tf.linalg.global_norm([g for g, _ in pairs]))]):
        pairs = [(tf.identity(g), v) for g, v in pairs]
    applied(b, pairs)


def scaled_loss(b: Builder):
    """A loss scale that is raised, or lowered when a gradient is not finite; then the step changes nothing."""
    _, _, rows = regress(b)
    scale = b.constant("loss_scale", [], 64.0)
    pairs = gradients(b, b.loss(b.total(rows)) * scale)
    finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(g)) for g, _ in pairs])
    pairs = [(tf.where(finite, g / scale, tf.zeros_like(g)), v) for g, v in pairs]
    with tf.control_dependencies([g for g, _ in pairs]):
        change = scale.assign(tf.where(finite, scale * 2.0, scale / 2.0))
    step = tf1.train.GradientDescentOptimizer(0.1 / b.per).apply_gradients(pairs)
    tf.group(step, change, name="train_op")


def scaled_loss_cond(b: Builder):
    """As scaled_loss, but the update stands in a conditional."""
    _, _, rows = regress(b)
    scale = b.constant("loss_scale", [], 64.0)
    pairs = [(g / scale, v) for g, v in gradients(b, b.loss(b.total(rows)) * scale)]
    finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(g)) for g, _ in pairs])
    optimizer = tf1.train.GradientDescentOptimizer(0.1 / b.per)
    step = tf1.cond(finite, lambda: optimizer.apply_gradients(pairs), tf.no_op)
    tf.group(step, name="train_op")


def accumulated(b: Builder):
    """Two runs add their gradients to the user's own variables, a third op applies and clears them."""
    _, _, rows = regress(b)
    pairs = gradients(b, b.loss(b.total(rows)))
    sums = [b.constant(v.op.name + "/sum", v.shape.as_list(), 0.0) for _, v in pairs]
    tf.group(*[s.assign_add(g) for s, (g, _) in zip(sums, pairs)], name="accumulate")
    optimizer = tf1.train.MomentumOptimizer(0.1 / b.per, 0.9)
    step = optimizer.apply_gradients([(s / 2.0, v) for s, (_, v) in zip(sums, pairs)])
    with tf.control_dependencies([step]):
        tf.group(*[s.assign(tf.zeros_like(s)) for s in sums], name="train_op")


def accumulated_cond(b: Builder):
    """One op for both: a counter says when to apply."""
    _, _, rows = regress(b)
    pairs = gradients(b, b.loss(b.total(rows)))
    sums = [b.constant(v.op.name + "/sum", v.shape.as_list(), 0.0) for _, v in pairs]
    count = tf1.train.get_or_create_global_step()
    optimizer = tf1.train.GradientDescentOptimizer(0.1 / b.per)
    with tf.control_dependencies([s.assign_add(g) for s, (g, _) in zip(sums, pairs)]):
        due = tf.equal(tf1.assign_add(count, 1) % 2, 0)

    def apply():
        with tf.control_dependencies([optimizer.apply_gradients([(s / 2.0, v) for s, (_, v) in zip(sums, pairs)])]):
            return tf.group(*[s.assign(tf.zeros_like(s)) for s in sums])

    tf.group(tf1.cond(due, apply, tf.no_op), name="train_op")


# --- Tables. ---


def tied_embedding(b: Builder):
    """One table is looked up and is the output layer too: its gradient has a sparse and a dense part."""
    x, y = b.inputs([3], [], x_dtype=tf.int32, y_dtype=tf.int32)
    table = b.variable("table", [11, 5], 0.7)
    h = tf.tanh(tf.reduce_mean(tf.nn.embedding_lookup(table, x), axis=1))
    descend(b, b.loss(models.cross_entropy(b, y, tf.matmul(h, table, transpose_b=True))))


def two_lookups(b: Builder):
    """Two gathers of one table: its gradient has the rows of both, one after the other."""
    x, y = b.inputs([3], [], x_dtype=tf.int32)
    table, w = b.variable("table", [11, 5], 0.7), b.variable("w", [5, 1], 0.5)
    first = tf.nn.embedding_lookup(table, x[:, 0])
    rest = tf.reduce_sum(tf.nn.embedding_lookup(table, x[:, 1:]), axis=1)
    error = tf.squeeze(tf.matmul(first + 0.5 * rest, w), [1]) - y
    descend(b, b.loss(b.total(tf.square(error))))


def trimmed(b: Builder):
    """Padded sequences are cut at the longest of the batch, a number that all replicas share, and read as one list."""
    x, y = tf1.placeholder(tf.int32, [b.spec.batch, None], name="x"), b.placeholder("y", [1])
    lengths = tf.reduce_sum(tf.cast(tf.cast(x, tf.bool), tf.int32), axis=1)
    rows, longest = b.spec.batch or tf.shape(x)[0], tf.reduce_max(lengths)
    cut = tf.slice(x, [0, 0], [rows, longest])
    words = tf.reshape(tf.nn.embedding_lookup(b.variable("table", [11, 5], 0.7), cut), [rows * longest, 5])
    states = tf.reshape(tf.tanh(tf.matmul(words, b.variable("w", [5, 4]))), [rows, longest, 4])
    mask = tf.cast(tf.sequence_mask(lengths), b.dtype)
    ahead = 0.1 * tf.cast(tf.range(longest), b.dtype) + 0.1  # would be another weight on a replica that counts its own
    kept = tf.reduce_sum(states * tf.expand_dims(mask * tf.reverse(ahead, [0]), 2), axis=1)
    error = tf.matmul(kept, b.variable("v", [4, 1])) - y
    descend(b, b.loss(b.total(tf.square(error))))


def padding_removed(b: Builder):
    """A layer takes words that are no padding, of sequences of unknown length, as transformers do."""
    x, y = tf1.placeholder(tf.int32, [b.spec.batch, None], name="x"), b.placeholder("y", [1])
    words = tf.nn.embedding_lookup(b.variable("table", [11, 5], 0.7), x)
    found = tf.cast(tf.where(tf.reshape(tf.cast(tf.equal(x, 0), b.dtype), [-1]) < 0.5), tf.int32)
    layer = tf.tanh(tf.matmul(tf.gather_nd(tf.reshape(words, [-1, 5]), found), b.variable("w", [5, 5])))
    rows, steps = tf.shape(words)[0], tf.shape(words)[1]
    back = tf.reshape(tf.scatter_nd(found, layer, [rows * steps, 5]), [rows, steps, 5])
    error = tf.matmul(0.2 * tf.reduce_sum(words + back, axis=1), b.variable("v", [5, 1])) - y
    descend(b, b.loss(b.total(tf.square(error))))


def fields(b: Builder):
    """Two axes of unknown size are made one: an example has so many fields as the step divides it into."""
    x, y = tf1.placeholder(tf.int32, [b.spec.batch, None, None], name="x"), b.placeholder("y", [1])
    looked = tf.nn.embedding_lookup(b.variable("table", [11, 5], 0.7), tf.reshape(x, [-1, 3]))
    scaled = looked * tf.reshape(tf.cast(tf.reshape(x, [-1, 3]), b.dtype), [-1, 3, 1])
    deep = tf.matmul(tf.reshape(scaled, [-1, 15]), b.variable("w", [15, 1], 0.1))
    error = tf.reshape(deep, [-1]) + b.variable("bias", [1]) * tf.ones_like(tf.reshape(y, [-1])) - tf.reshape(y, [-1])
    descend(b, b.loss(b.total(tf.square(error))))


def squeezed(b: Builder):
    """All axes of one element are dropped, whichever they are: never the rows, though a replica may have one."""
    x, y = b.inputs([5], [])
    h = tf.squeeze(tf.matmul(x, b.variable("w", [5, 1])))
    descend(b, b.loss(b.total(tf.square(h - y))))


# --- Two players. ---


def players(b: Builder):
    x, y = b.inputs([4], [2])
    with tf1.variable_scope("generator"):
        fake = tf.tanh(tf.matmul(y, b.variable("w", [2, 4]))) + b.constant("b", [4], 0.1, trainable=True)

    def critic(rows):
        with tf1.variable_scope("critic", reuse=tf1.AUTO_REUSE):
            h = tf.nn.leaky_relu(tf.matmul(rows, b.variable("w", [4, 6])))
            return tf.matmul(h, b.variable("v", [6, 1]))

    return x, fake, critic


def of(scope):
    return tf1.trainable_variables(scope + "/")


def gan(b: Builder):
    """Two optimizers of different kinds, in turn."""
    x, fake, critic = players(b)

    def entropy(logits, label):
        labels = tf.fill(tf.shape(logits), tf.constant(label, b.dtype))
        return b.total(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))

    d_loss = b.loss(entropy(critic(x), 0.9) + entropy(critic(fake), 0.0))
    g_loss = tf.identity(entropy(critic(fake), 1.0), name="g_loss")
    d_optimizer = tf1.train.MomentumOptimizer(0.3 / b.per, 0.5)
    g_optimizer = tf1.train.AdamOptimizer(0.1, epsilon=0.01 * b.per)
    for name, optimizer, loss, scope in (
        ("d_train", d_optimizer, d_loss, "critic"),
        ("g_train", g_optimizer, g_loss, "generator"),
    ):
        pairs = [(b.scaled(g), v) for g, v in optimizer.compute_gradients(loss, of(scope))]
        optimizer.apply_gradients(pairs, name=name)


def wgan_clip(b: Builder):
    """The weights are clipped after the update: two writes of one variable in a step."""
    x, fake, critic = players(b)
    loss = b.loss(b.total(critic(fake) - critic(x)))
    optimizer = tf1.train.RMSPropOptimizer(0.05, epsilon=0.01 * b.per**2)
    pairs = [(b.scaled(g), v) for g, v in optimizer.compute_gradients(loss, of("critic"))]
    with tf.control_dependencies([optimizer.apply_gradients(pairs)]):
        tf.group(*[v.assign(tf.clip_by_value(v, -0.4, 0.4)) for v in of("critic")], name="train_op")


def wgan_penalty(b: Builder):
    """Gradients of gradients: the penalty is on the norm of each row's own gradient."""
    x, fake, critic = players(b)
    mixed = 0.3 * x + 0.7 * fake
    slope = tf.gradients(critic(mixed), [mixed])[0]
    norm = tf.sqrt(tf.reduce_sum(tf.square(slope), axis=1) + 1e-3)
    rows = tf.squeeze(critic(fake) - critic(x), [1]) + 10.0 * tf.square(norm - 1.0)
    loss = b.loss(b.total(rows))
    optimizer = tf1.train.GradientDescentOptimizer(0.02 / b.per)
    pairs = [(b.scaled(g), v) for g, v in optimizer.compute_gradients(loss, of("critic"))]
    optimizer.apply_gradients(pairs, name="train_op")


def target_network(b: Builder):
    """Q-learning: the target is another network, copied from the first by an op of its own, and pulled along by one."""
    x, y = b.inputs([5], [1])

    def network(scope, trainable):
        with tf1.variable_scope(scope):
            w = b.variable("w", [5, 3], trainable=trainable)
            return tf.matmul(x, w), w

    q, w = network("online", True)
    target, copy = network("target", False)
    wanted = tf.stop_gradient(y + 0.9 * tf.reduce_max(target, axis=1, keepdims=True))
    loss = b.loss(b.total(tf.square(tf.reduce_max(q, axis=1, keepdims=True) - wanted)))
    descend(b, loss)
    tf.group(copy.assign(w), name="copy")
    tf.group(copy.assign(0.9 * copy + 0.1 * w), name="follow")


# --- Beside the gradients. ---


def averaged(b: Builder):
    """A moving average of the weights, whose rate depends on the step."""
    _, _, rows = regress(b)
    step = tf1.train.get_or_create_global_step()
    optimizer = tf1.train.GradientDescentOptimizer(0.1 / b.per)
    pairs = [(b.scaled(g), v) for g, v in optimizer.compute_gradients(b.loss(b.total(rows)))]
    average = tf1.train.ExponentialMovingAverage(0.9, num_updates=step)
    with tf.control_dependencies([optimizer.apply_gradients(pairs)]):
        averaging = average.apply(tf1.trainable_variables())
    with tf.control_dependencies([averaging]):
        tf.group(tf1.assign_add(step, 1), name="train_op")


def scheduled(b: Builder):
    """A warm-up, then a cosine; and steps at boundaries."""
    _, _, rows = regress(b)
    step = tf1.train.get_or_create_global_step()
    cosine = tf1.train.cosine_decay(0.2 / b.per, step, 10)
    warm = tf.cast(step + 1, b.dtype) / 2.0
    rate = tf.where(step < 2, cosine * warm, cosine)
    rate = rate * tf1.train.polynomial_decay(1.0, step, 10, 0.1, power=2.0)
    b.train(tf1.train.MomentumOptimizer(rate, 0.9), b.loss(b.total(rows)), global_step=step)


def scheduled_piecewise(b: Builder):
    """Steps at boundaries: conditionals of version 1 on the step."""
    _, _, rows = regress(b)
    step = tf1.train.get_or_create_global_step()
    rate = tf1.train.piecewise_constant(step, [0, 1], [0.1 / b.per, 0.2 / b.per, 0.05 / b.per])
    b.train(tf1.train.GradientDescentOptimizer(rate), b.loss(b.total(rows)), global_step=step)


def metrics(b: Builder):
    """Streaming metrics in local variables, updated with the step."""
    x, y = b.inputs([8], [], y_dtype=tf.int32)
    logits, _, _ = models.perceptron(b, x, 8, 16, 4)
    rows = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    guess = tf.argmax(logits, axis=1, output_type=tf.int32)
    mean, mean_update = tf1.metrics.mean(rows, name="mean")
    accuracy, accuracy_update = tf1.metrics.accuracy(y, guess, name="accuracy")
    tf.identity(mean, name="mean_metric")
    tf.identity(accuracy, name="accuracy_metric")
    loss = b.loss(b.total(rows))
    optimizer = tf1.train.GradientDescentOptimizer(0.1 / b.per)
    step = optimizer.apply_gradients(gradients(b, loss))
    tf.group(step, mean_update, accuracy_update, name="train_op")


def metrics_of_numbers(b: Builder):
    """Metrics of what no row tells, such as the learning rate, and one for each class."""
    x, y = b.inputs([8], [], y_dtype=tf.int32)
    logits, _, _ = models.perceptron(b, x, 8, 16, 4)
    rows = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    rate = tf.constant(0.1)
    guess = tf.argmax(logits, axis=1, output_type=tf.int32)
    made = [
        tf1.metrics.mean(rate, name="rate"),
        tf1.metrics.mean_per_class_accuracy(y, guess, 4, name="classes"),
    ]
    for name, (value, _) in zip(("rate_metric", "classes_metric"), made):
        tf.identity(value, name=name)
    step = tf1.train.GradientDescentOptimizer(0.1 / b.per).apply_gradients(gradients(b, b.loss(b.total(rows))))
    tf.group(step, *[update for _, update in made], name="train_op")


def masked_words(b: Builder):
    """The words of a batch that a mask of as many selects: of a static batch their number is a product of constants."""
    x, y = b.inputs([5], [1])
    h = tf.reshape(tf.matmul(x, b.variable("w", [5, 12])), [-1, 3, 4])
    taken = tf.boolean_mask(h, tf.greater(h[:, :, 0], 0))
    error = tf.matmul(tf.reduce_sum(h, axis=1), b.variable("v", [4, 1])) - y
    loss = b.loss(b.total(tf.square(error)) + 0.1 * b.per * tf.reduce_sum(tf.square(taken)) / tf.cast(BATCH, h.dtype))
    descend(b, loss)


def masked_steps(b: Builder):
    """Words of a batch that a mask selects where time comes first, by their class, as an adaptive softmax does."""
    x, y = b.inputs([3, 5], [], y_dtype=tf.int32)
    words = tf.transpose(tf.tile(tf.expand_dims(y, 1), [1, 3])) + tf.constant([[0], [1], [2]])
    h = tf.tensordot(tf.transpose(x, [1, 0, 2]), b.variable("w", [5, 4]), [[2], [0]])
    h = tf.tanh(h + 0.1 * tf.expand_dims(tf.cast(words, h.dtype), 2))
    costs = tf.zeros_like(h[:, :, 0])
    for first, last in ((0, 1), (1, 6)):
        mask = (words >= first) & (words < last)
        classes = tf.boolean_mask(words, mask) - first
        logits = tf.matmul(tf.boolean_mask(h, mask), b.variable(f"v{first}", [4, last - first]))
        cost = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits)
        costs += tf.scatter_nd(tf.where(mask), cost, tf.shape(costs, out_type=tf.int64))
    descend(b, b.loss(b.total(tf.reduce_sum(costs, axis=0))))


def named_steps(b: Builder):
    """Predictions of each step of a recurrence, time before rows in one axis: nothing reads them but who fetches them."""
    x, y = b.inputs([3, 5], [], y_dtype=tf.int32)
    w, state, outputs = b.variable("w", [9, 4]), tf.zeros_like(x[:, 0, :4]), []
    for step in tf.unstack(tf.transpose(x, [1, 0, 2])):
        state = tf.tanh(tf.matmul(tf.concat([step, state], 1), w))
        outputs.append(state)
    logits = tf.matmul(tf.reshape(tf.stack(outputs), [-1, 4]), b.variable("v", [4, 4]))
    tf.nn.softmax(logits, name="predicted")
    tf.argmax(tf.matmul(tf.concat(outputs, 0), b.variable("u", [4, 3])), 1, name="class")
    labels = tf.reshape(tf.transpose(tf.tile(tf.expand_dims(y, 1), [1, 3])), [-1])
    costs = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    descend(b, b.loss(b.total(tf.reduce_mean(tf.reshape(costs, [3, -1]), axis=0))))


def labelled_steps(b: Builder):
    """A label for each step of as many as there are, time first: only what is asserted of sizes says that logits and labels
    have equally many steps."""
    x, y = b.inputs([None, 5], [None], y_dtype=tf.int32)
    h = tf.tanh(tf.transpose(x * b.variable("w", [5]), [1, 0, 2]))
    logits = tf.tensordot(h, b.variable("v", [5, 4]), [[2], [0]])
    costs = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.transpose(y), logits=logits)
    descend(b, b.loss(b.total(tf.reduce_sum(costs, axis=0))))


def fed_behind(b: Builder):
    """A tensor that is computed from rows, or fed in their place."""
    x, y = b.inputs([5], [1])
    ready = tf1.placeholder_with_default(tf.cumsum(x, axis=1), [None, 5], name="ready")
    h = tf.tanh(tf.matmul(ready, b.variable("w", [5, 4])))
    descend(b, b.loss(b.total(tf.reduce_sum(tf.square(tf.matmul(h, b.variable("v", [4, 1])) - y), axis=1))))


def heads_in_a_branch(b: Builder):
    """Heads in front of rows, whose weights go through a branch: the gradient that leaves it is a result that nothing reads."""
    x, y = b.inputs([3, 4], [1])
    heads = tf.concat(tf.split(tf.tanh(tf.einsum("bij,jk->bik", x, b.variable("w", [4, 10]))), 5, axis=2), 0)
    weights = tf.nn.softmax(tf.matmul(heads, heads, transpose_b=True))
    train = tf1.placeholder_with_default(True, [], name="train")
    mixed = tf.matmul(tf1.cond(train, lambda: weights * 0.9, lambda: weights), heads)
    rows = tf.concat(tf.split(mixed, 5, axis=0), 2)
    descend(b, b.loss(b.total(tf.square(tf.reduce_sum(rows, axis=[1, 2]) - y[:, 0]))))


def ellipsis(b: Builder):
    """Einsum with an ellipsis: of a static batch its gradient adds up along axes of which there are none."""
    x, y = b.inputs([3, 5], [], y_dtype=tf.int32)
    h = tf.tanh(tf.einsum("...ij,jk->...ik", x, b.variable("w", [5, 6])))
    rows = tf.einsum("...ij,ij->...", tf.einsum("...ij,jk->...ik", h, b.variable("u", [6, 2])), b.variable("v", [3, 2]))
    descend(b, b.loss(b.total(tf.square(rows - tf.cast(y, h.dtype)))))


def gram(b: Builder):
    """A loss of products of all rows, of which an average is kept, and sizes that people fetch."""
    x, _ = b.inputs([5], [1])
    h = tf.matmul(x, b.variable("w", [5, 3]))
    of = tf.einsum("bi,bj->ij", h, h) / tf.cast(tf.shape(h)[0], h.dtype)
    loss = b.loss(b.per * tf.nn.l2_loss(of))
    tf.identity(tf.shape(h), name="sizes")
    average = b.constant("average", [], 0.0)
    step = tf1.train.GradientDescentOptimizer(0.1 / b.per).apply_gradients(gradients(b, loss))
    keep = tf1.assign(average, 0.9 * average + 0.1 * tf.cast(loss, average.dtype))
    tf.group(step, keep, name="train_op")


# --- Layers. ---


def layer_norm(b: Builder, x, scope, width):
    with tf1.variable_scope(scope):
        mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
        gamma, beta = b.constant("gamma", [width], 1.1, True), b.constant("beta", [width], 0.1, True)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)


def attention(b: Builder):
    """A block of a transformer: two heads, layer norms, residuals, a feed-forward layer."""
    steps, width, heads = 4, 6, 2
    x, y = b.inputs([steps, width], [], y_dtype=tf.int32)
    flat = tf.reshape(layer_norm(b, x, "norm1", width), [-1, width])

    def split(scope):
        h = tf.matmul(flat, b.variable(scope, [width, width]))
        return tf.transpose(tf.reshape(h, [-1, steps, heads, width // heads]), [0, 2, 1, 3])

    q, k, v = split("q"), split("k"), split("v")
    weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / np.sqrt(width // heads))
    mixed = tf.reshape(tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3]), [-1, width])
    h = x + tf.reshape(tf.matmul(mixed, b.variable("o", [width, width])), [-1, steps, width])
    inner = tf.nn.gelu(tf.tensordot(layer_norm(b, h, "norm2", width), b.variable("up", [width, 8]), 1))
    h = h + tf.tensordot(inner, b.variable("down", [8, width]), 1)
    logits = tf.matmul(h[:, 0], b.variable("out", [width, 3]))
    loss = b.loss(models.cross_entropy(b, y, logits))
    b.train(tf1.train.AdamOptimizer(0.02, epsilon=0.01 * b.per), loss)


def normalised(b: Builder):
    """Layer norm alone, between two layers."""
    x, y = b.inputs([5], [1])
    h = layer_norm(b, tf.matmul(x, b.variable("w", [5, 6])), "norm", 6)
    error = tf.matmul(tf.nn.relu(h), b.variable("v", [6, 1])) - y
    descend(b, b.loss(b.total(tf.square(error))))


def batch_norm_written_out(b: Builder):
    """Batch norm in plain ops: the statistics are those of the whole batch."""
    x, y = b.inputs([5], [1])
    h = tf.matmul(x, b.variable("w", [5, 6]))
    mean, variance = tf.nn.moments(h, axes=[0])
    h = tf.nn.batch_normalization(h, mean, variance, None, b.constant("gamma", [6], 1.1, True), 1e-3)
    error = tf.matmul(tf.nn.relu(h), b.variable("v", [6, 1])) - y
    descend(b, b.loss(b.total(tf.square(error))))


def without_barriers(b: Builder):
    """tf.gradients has no barrier behind the gradients of an op: nothing orders the read of a weight with its update."""
    x, y = b.inputs([5], [1])
    weights = [b.variable("w", [5, 6]), b.variable("u", [6, 6]), b.variable("v", [6, 1])]
    h = tf.nn.relu(tf.matmul(tf.tanh(tf.matmul(x, weights[0])), weights[1]))
    loss = b.loss(b.total(tf.square(tf.matmul(h, weights[2]) - y)))
    pairs = [(b.scaled(g), w) for g, w in zip(tf.gradients(loss, weights), weights)]
    tf1.train.GradientDescentOptimizer(0.1 / b.per).apply_gradients(pairs, name="train_op")


def recurrent(b: Builder):
    """A cell unrolled over the steps; the state starts from zeros of the batch's size."""
    steps, width = 3, 4
    x, y = b.inputs([steps, 2], [1])
    kernel, bias = b.variable("kernel", [2 + width, 2 * width]), b.constant("bias", [2 * width], 0.1, trainable=True)
    state = tf.zeros(tf.stack([tf.shape(x)[0], width]), b.dtype)
    for part in tf.unstack(x, axis=1):
        gate, value = tf.split(tf.matmul(tf.concat([part, state], 1), kernel) + bias, 2, axis=1)
        gate = tf.sigmoid(gate)
        state = gate * state + (1.0 - gate) * tf.tanh(value)
    error = tf.matmul(state, b.variable("v", [width, 1])) - y
    descend(b, b.loss(b.total(tf.square(error))), clip=2.0 * b.per)


def fed_rows(b: Builder):
    """The number of rows is fed: states start as long, vectors are tiled to it, rows are numbered and counted by it."""
    steps, width = 3, 4
    x, y = b.inputs([steps, 2], [1])
    rows = tf1.placeholder_with_default(BATCH, [], name="rows")
    kernel = b.variable("kernel", [2 + width, width])
    state = tf.zeros([rows, width], b.dtype)
    for part in tf.unstack(x, axis=1):
        state = tf.tanh(tf.matmul(tf.concat([part, state], 1), kernel))
    state = tf.reshape(tf.matmul(state, b.variable("m", [width, 6])), [rows, 2, 3])
    tiled = tf.tile(tf.expand_dims(b.variable("q", [3, 2]), 0), [rows, 1, 1])
    both = tf.reshape(tf.matmul(state, tiled), [rows, 4])
    chosen = tf.gather_nd(both, tf.stack([tf.range(rows), tf.zeros([rows], tf.int32)], 1))
    error = tf.matmul(both, b.variable("v", [4, 1])) - y + tf.expand_dims(chosen, 1)
    loss = tf.reduce_sum(tf.square(error)) / (tf.cast(rows, b.dtype) if b.per == 1 else 1.0)
    descend(b, b.loss(loss))


def hardest(b: Builder):
    """The largest losses of the batch count once more; a mean over no axis, as Keras takes it of a loss for each row."""
    x, y, rows = regress(b)
    count = tf.minimum(tf.reduce_sum(tf.cast(y[:, 0] > 0, tf.int32)), tf.shape(x)[0])
    _, indices = tf.nn.top_k(rows, count, sorted=False)
    kept = tf.scatter_nd(tf.expand_dims(indices, 1), tf.ones_like(indices), tf.shape(rows))
    size = tf.cast(tf.shape(x)[0], b.dtype)
    rows = tf.reduce_mean(rows * (1.0 + tf.cast(kept, b.dtype)) * size, axis=[])
    descend(b, b.loss(b.total(rows / size)))


def steps_first(b: Builder):
    """A loop takes steps of unknown number, each with the rows of the batch, of which a number says how many."""
    width = 4
    x, y = tf1.placeholder(b.dtype, [None, BATCH, 2], "x"), tf1.placeholder(b.dtype, [BATCH, 1], "y")
    kernel = b.variable("kernel", [2 + width, width])
    count = tf.shape(x)[0]
    parts = tf.TensorArray(b.dtype, count, element_shape=[BATCH, 2]).unstack(x)

    def advance(i, state):
        return i + 1, tf.tanh(tf.matmul(tf.concat([parts.read(i), state], 1), kernel))

    _, state = tf.while_loop(lambda i, state: i < count, advance, (0, tf.zeros([BATCH, width], b.dtype)))
    error = tf.matmul(state, b.variable("v", [width, 1])) - y
    descend(b, b.loss(b.total(tf.square(error))))


def tiled_support(b: Builder):
    """A vector is repeated as often as a constant says that there are rows."""
    x, y = b.inputs([5], [1])
    support = tf.reshape(tf.tile(tf.linspace(tf.cast(-1.0, b.dtype), 1.0, 3), [BATCH]), [BATCH, 3])
    chances = tf.nn.softmax(tf.matmul(x, b.variable("w", [5, 3])))
    error = tf.reduce_sum(chances * (support + 0.1 * y), axis=1, keepdims=True) - y
    descend(b, b.loss(b.total(tf.square(error))))


def warm_up(b: Builder):
    """Early steps have other targets: what a conditional gives has sizes that nobody knows."""
    x, y = b.placeholder("x", [5]), tf1.placeholder(b.dtype, [None, None], "y")
    early = tf1.placeholder_with_default(True, [], name="early")
    out = tf.matmul(x, b.variable("w", [5, 3]))
    target = tf.cond(early, lambda: y + 0.5 * tf.ones_like(out), lambda: tf.identity(y))
    error = tf.tanh(target) - out
    descend(b, b.loss(b.total(tf.reduce_sum(tf.square(error), axis=1))))


def dropout(b: Builder):
    """Random draws differ from replica to replica: nothing but a warning can be exact."""
    x, y = b.inputs([5], [1])
    h = tf1.nn.dropout(tf.matmul(x, b.variable("w", [5, 6])), rate=0.4, seed=5)
    error = tf.matmul(h, b.variable("v", [6, 1])) - y
    descend(b, b.loss(b.total(tf.square(error))))


# --- Data. ---


def tokens(rng, dtype):
    return models.lookups(rng, dtype)[0], rng.integers(0, 11, BATCH).astype(np.int32)


def one_target(rng, dtype):
    return models.ramp(rng, (5,)).astype(dtype), rng.standard_normal(BATCH).astype(dtype)


def padded(rng, dtype):
    """The longest is in one half of the batch."""
    ids = rng.integers(1, 11, (BATCH, 6))
    lengths = np.where(np.arange(BATCH) == rng.integers(BATCH), 5, rng.integers(1, 4, BATCH))
    return np.where(np.arange(6) < lengths[:, None], ids, 0).astype(np.int32), rng.standard_normal((BATCH, 1)).astype(dtype)


def grouped(rng, dtype):
    return rng.integers(0, 11, (BATCH, 3, 1)).astype(np.int32), rng.standard_normal((BATCH, 1)).astype(dtype)


def latent(rng, dtype):
    return models.ramp(rng, (4,)).astype(dtype), rng.standard_normal((BATCH, 2)).astype(dtype)


def sequences(rng, dtype):
    return models.ramp(rng, (3, 2)).astype(dtype), rng.standard_normal((BATCH, 1)).astype(dtype)


def steps_of_rows(rng, dtype):
    return models.ramp(rng, (3, 2)).astype(dtype).swapaxes(0, 1), rng.standard_normal((BATCH, 1)).astype(dtype)


ROWS = models.regression(5, 1)
CLASSES = models.classification((8,), 4)

HABITS: Dict[str, Habit] = {
    **{f"dense_{name}": Habit(trained_by(make), ROWS) for name, make in OPTIMIZERS.items()},
    **{
        f"sparse_{name}": Habit(looked_up_by(make), models.lookups)
        for name, make in OPTIMIZERS.items()
        if name in ("sgd", "momentum", "adam", "ftrl", "rmsprop", "adadelta")
    },
    "loss_over_dynamic_batch": Habit(loss_over_dynamic_batch, ROWS, losses=("mean",)),
    "loss_with_addend": Habit(loss_with_addend, ROWS),
    "loss_weighted": Habit(loss_weighted, ROWS, losses=("mean",)),
    "loss_masked": Habit(loss_masked, ROWS, losses=("mean",)),
    "losses_module": Habit(losses_module, CLASSES, losses=("mean",)),
    "clip_value": Habit(clip_value, ROWS),
    "clip_norm": Habit(clip_norm, ROWS),
    "clip_global_norm": Habit(clip_global_norm, models.lookups),
    "lars": Habit(lars, ROWS),
    "gradient_noise_scale": Habit(gradient_noise_scale, ROWS),
    "scaled_loss": Habit(scaled_loss, ROWS, flags=("--fetch=loss",)),
    "scaled_loss_cond": Habit(scaled_loss_cond, ROWS, flags=("--fetch=loss",)),
    "accumulated": Habit(
        accumulated, ROWS, ("accumulate", "accumulate", "train_op", "accumulate", "train_op"), (), ("loss:0",)
    ),
    "accumulated_cond": Habit(accumulated_cond, ROWS, steps=("train_op",) * 4),
    "two_lookups": Habit(two_lookups, models.lookups),
    "tied_embedding": Habit(tied_embedding, tokens),
    "squeezed": Habit(squeezed, one_target),
    "trimmed": Habit(trimmed, padded),
    "padding_removed": Habit(padding_removed, padded),
    "fields": Habit(fields, grouped),
    "gan": Habit(
        gan,
        latent,
        steps=("d_train", "g_train") * 2,
        fetches=(),
        after=("loss:0", "g_loss:0"),
        flags=("--feed=x=split", "--feed=y=split"),  # no op joins rows of one with rows of the other
    ),
    "wgan_clip": Habit(wgan_clip, latent),
    "wgan_penalty": Habit(wgan_penalty, latent),
    "target_network": Habit(
        target_network, ROWS, ("train_op", "copy", "train_op", "follow", "train_op"), (), ("loss:0",)
    ),
    "averaged": Habit(averaged, ROWS),
    "scheduled": Habit(scheduled, ROWS),
    "scheduled_piecewise": Habit(scheduled_piecewise, ROWS),
    "metrics": Habit(metrics, CLASSES, after=("mean_metric:0", "accuracy_metric:0")),
    "metrics_of_numbers": Habit(
        metrics_of_numbers, CLASSES, after=("rate_metric:0", "classes_metric:0")
    ),
    "masked_words": Habit(masked_words, ROWS, flags=("--min-spread=90",)),
    "masked_steps": Habit(
        masked_steps, models.classification((3, 5), 4), flags=("--min-spread=90",)
    ),
    "named_steps": Habit(
        named_steps,
        models.classification((3, 5), 4),
        fetches=("loss:0", "predicted:0", "class:0"),
        flags=("--min-spread=90",),
    ),
    "labelled_steps": Habit(
        labelled_steps,
        lambda rng, dtype: (models.ramp(rng, (3, 5)).astype(dtype), rng.integers(0, 4, (models.BATCH, 3)).astype(np.int32)),
        flags=("--min-spread=90",),
    ),
    "heads_in_a_branch": Habit(
        heads_in_a_branch,
        lambda rng, dtype: (models.ramp(rng, (3, 4)).astype(dtype), rng.standard_normal((models.BATCH, 1)).astype(dtype)),
    ),
    "fed_behind": Habit(fed_behind, ROWS),
    "ellipsis": Habit(ellipsis, models.classification((3, 5), 2), flags=("--min-spread=90",)),
    "gram": Habit(gram, ROWS, fetches=("loss:0", "sizes:0")),
    "attention": Habit(attention, models.classification((4, 6), 3)),
    "normalised": Habit(normalised, ROWS),
    "batch_norm_written_out": Habit(batch_norm_written_out, ROWS),
    "without_barriers": Habit(without_barriers, ROWS),
    "recurrent": Habit(recurrent, sequences),
    "fed_rows": Habit(fed_rows, sequences),
    "hardest": Habit(hardest, ROWS),
    "steps_first": Habit(steps_first, steps_of_rows),
    "tiled_support": Habit(tiled_support, ROWS),
    "warm_up": Habit(warm_up, models.regression(5, 3)),
    "dropout": Habit(dropout, ROWS),
}


# On a TPU nothing exists once, and of a file it is not proved which numbers are the rows.
NOT_FOR_TPU = ("hardest", "tiled_support", "warm_up")


def build(spec: Spec, fill: Callable, gradient_scale: float = 1.0) -> Built:
    """The graph that fill(builder) makes, with an initialiser of global and local variables and a saver."""
    graph = tf.Graph()
    with graph.as_default():
        tf1.get_variable_scope().set_use_resource(spec.kind == "resource")
        fill(Builder(spec, gradient_scale=gradient_scale))
        tf1.variables_initializer(tf1.global_variables() + tf1.local_variables(), name="init")
        saver = tf1.train.Saver()
    return Built(spec, graph, saver)


def batches(data: Callable, count: int, dtype: str = "float32"):
    rng = np.random.default_rng(7)
    return [data(rng, dtype) for _ in range(count)]
