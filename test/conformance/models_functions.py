# SPDX-License-Identifier: Apache-2.0
"""Training steps with conditionals and functions. `test_functions.py` runs them.

Every conditional is built twice: in version 1 (Switch and Merge) and as functions (If, StatelessIf, Case), which
`form` chooses around the building of the graph.
"""

import contextlib

import tensorflow.compat.v2 as tf
from models import Builder, tf1
from models_habits import ROWS, Habit, descend, gradients, regress
from tensorflow.python.ops import control_flow_util


@contextlib.contextmanager
def form(functional: bool):
    """Within it tf.cond and its like make functions, or what version 1 has."""
    before = control_flow_util.ENABLE_CONTROL_FLOW_V2
    control_flow_util.ENABLE_CONTROL_FLOW_V2 = functional
    try:
        yield
    finally:
        control_flow_util.ENABLE_CONTROL_FLOW_V2 = before


def importable(fill):
    """The model without the collection that may name an op inside a function, where TensorFlow finds none."""

    def build(b: Builder):
        fill(b)
        tf1.get_default_graph().clear_collection("train_op")

    return build


def descending(b: Builder):
    return tf1.train.GradientDescentOptimizer(0.1 / b.per)


# --- Conditionals. ---


def update_in_branch(b: Builder):
    """The gradients are computed outside; whether they are applied depends on them."""
    _, _, rows = regress(b)
    pairs = gradients(b, b.loss(b.total(rows)))
    small = tf.linalg.global_norm([g for g, _ in pairs]) < 1.5 * b.per
    tf.group(tf1.cond(small, lambda: descending(b).apply_gradients(pairs), tf.no_op), name="train_op")


def gradients_in_branch(b: Builder):
    """Everything that trains stands in a branch that every other step takes."""
    _, _, rows = regress(b)
    loss = b.loss(b.total(rows))
    step = tf1.train.get_or_create_global_step()
    due = tf.equal(step % 2, 0)

    def train():
        pairs = gradients(b, loss)
        with tf.control_dependencies([g for g, _ in pairs]):  # in a ref graph an update may change what others read
            return descending(b).apply_gradients(pairs)

    with tf.control_dependencies([tf1.cond(due, train, tf.no_op)]):
        tf.group(tf1.assign_add(step, 1), name="train_op")


def loss_by_step(b: Builder):
    """Two losses in turn, and the gradient goes through the conditional."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 1])
    error = tf.matmul(x, w) - y
    step = tf1.train.get_or_create_global_step()
    rows = tf1.cond(tf.equal(step % 2, 0), lambda: tf.square(error), lambda: 2.0 * tf.abs(error))
    b.train(descending(b), b.loss(b.total(tf.reduce_sum(rows, axis=1))), global_step=step)


def total_in_branch(b: Builder):
    """The sum over the rows is in one branch, in the other it is clipped."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 1])
    rows = tf.reduce_sum(tf.square(tf.matmul(x, w) - y), axis=1)
    step = tf1.train.get_or_create_global_step()
    total = tf1.cond(tf.equal(step, 1), lambda: b.total(rows), lambda: 0.5 * b.total(rows))
    b.train(descending(b), b.loss(total), global_step=step)


def predicate_of_rows(b: Builder):
    """The largest of all rows decides: replicas must agree on it."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 1])
    rows = tf.reduce_sum(tf.square(tf.matmul(x, w) - y), axis=1)
    large = tf.reduce_max(rows) > 6.0
    rows = tf1.cond(large, lambda: tf.sqrt(rows + 1.0), lambda: rows * 3.0)
    descend(b, b.loss(b.total(rows)))


def nested_branches(b: Builder):
    """A conditional in a conditional; one of them returns its operand."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 1])
    rows = tf.reduce_sum(tf.square(tf.matmul(x, w) - y), axis=1)
    step = tf1.train.get_or_create_global_step()
    rows = tf1.cond(
        step < 2, lambda: tf1.cond(tf.equal(step, 1), lambda: 2.0 * rows, lambda: tf.sqrt(rows)), lambda: rows
    )
    b.train(descending(b), b.loss(b.total(rows)), global_step=step)


def counters_in_branches(b: Builder):
    """Each branch counts in a variable of its own, and returns a number."""
    _, _, rows = regress(b)
    step = tf1.train.get_or_create_global_step()
    odd, even = b.constant("odd", [], 0.0), b.constant("even", [], 0.0)
    rate = tf1.cond(
        tf.equal(step % 2, 1),
        lambda: tf.identity(odd.assign_add(1.0)) * 0.01,
        lambda: tf.identity(even.assign_add(2.0)) * 0.02,
    )
    b.train(tf1.train.GradientDescentOptimizer(rate / b.per), b.loss(b.total(rows)), global_step=step)


def loss_of_three(b: Builder):
    """One of three losses, chosen by a number; numbers out of range are the last."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 1])
    error = tf.matmul(x, w) - y
    step = tf1.train.get_or_create_global_step()
    rows = tf.switch_case(
        tf.cast(step, tf.int32) * 2 - 1, [lambda: tf.square(error), lambda: tf.abs(error), lambda: tf.square(error - 1.0)]
    )
    b.train(descending(b), b.loss(b.total(tf.reduce_sum(rows, axis=1))), global_step=step)


def looped_loss(b: Builder):
    """A loop that no row has a part in: the learning rate."""
    _, _, rows = regress(b)
    step = tf1.train.get_or_create_global_step()
    rate = tf1.while_loop(lambda i, r: i < step, lambda i, r: (i + 1, 0.5 * r), [tf.cast(0, step.dtype), 0.1 / b.per])[1]
    b.train(tf1.train.GradientDescentOptimizer(rate), b.loss(b.total(rows)), global_step=step)


def looped_layer(b: Builder):
    """Three layers with one weight as a loop, and the gradient goes through it."""
    x, y = b.inputs([5], [1])
    w, v = b.variable("w", [5, 5]), b.variable("v", [5, 1])
    h = tf1.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [0, x])[1]
    descend(b, b.loss(b.total(tf.reduce_sum(tf.square(tf.matmul(h, v) - y), axis=1))))


# --- Functions. ---


def looped_until(b: Builder):
    """As many layers as the row asks for that asks for most, by its first feature; a row that has ended stays."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 5], 0.4)
    turns = 2 + tf.cast(x[:, 0] > 0, tf.int32)
    _, h, _ = tf1.while_loop(
        lambda t, h, ended: tf.logical_not(tf.reduce_all(ended)),
        lambda t, h, ended: (t + 1, tf1.where(ended, h, tf.tanh(tf.matmul(h, w))), tf.logical_or(ended, t + 1 >= turns)),
        (0, x, tf.zeros_like(turns, tf.bool)),
    )
    error = tf.matmul(h, b.variable("v", [5, 1])) - y
    descend(b, b.loss(b.total(tf.square(error))))


def layer_function(b: Builder):
    """One function is two layers; its gradient is another."""
    x, y = b.inputs([5], [1])

    @tf.function
    def layer(x, w, bias):
        return tf.tanh(tf.matmul(x, w) + bias)

    h = layer(x, b.variable("w", [5, 4]), b.constant("b", [4], 0.1, trainable=True))
    out = layer(h, b.variable("v", [4, 1]), b.constant("c", [1], 0.1, trainable=True))
    descend(b, b.loss(b.total(tf.reduce_sum(tf.square(out - y), axis=1))))


def nested_functions(b: Builder):
    """A function that calls another one twice, and reads variables itself."""
    x, y = b.inputs([5], [1])
    w, v = b.variable("w", [5, 4]), b.variable("v", [4, 4])
    u = b.variable("u", [4, 1])

    @tf.function
    def layer(h):
        return tf.tanh(tf.matmul(h, v))

    @tf.function
    def network(x):
        return tf.matmul(layer(layer(tf.matmul(x, w))), u)

    descend(b, b.loss(b.total(tf.reduce_sum(tf.square(network(x) - y), axis=1))))


def step_function(b: Builder):
    """A training step as people write it: loss, gradients and updates in one function, with a counter."""
    x, y = b.inputs([5], [1])
    w, v = b.variable("w", [5, 4]), b.variable("v", [4, 1])
    steps = b.constant("steps", [], 0.0)

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            rows = tf.reduce_sum(tf.square(tf.matmul(tf.tanh(tf.matmul(x, w)), v) - y), axis=1)
            loss = b.total(rows)
        for variable, gradient in zip((w, v), tape.gradient(loss, (w, v))):
            variable.assign_sub(0.1 / b.per * b.scaled(gradient))
        steps.assign_add(1.0)
        return loss

    tf.group(tf.identity(train(x, y), name="loss"), name="train_op")


def conditional_in_function(b: Builder):
    """The function updates in a branch, and its loss does not depend on it."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 1])
    steps = b.constant("steps", [], 0.0)

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = b.total(tf.reduce_sum(tf.square(tf.matmul(x, w) - y), axis=1))
        gradient = b.scaled(tape.gradient(loss, w))
        if tf.norm(gradient) > 0.2 * b.per:
            w.assign_sub(0.1 / b.per * gradient)
            steps.assign_add(1.0)
        else:
            steps.assign_add(10.0)
        return loss

    tf.group(tf.identity(train(x, y), name="loss"), name="train_op")


def call_behind_control(b: Builder):
    """A function must not read a variable before what its call waits for has written it."""
    x, y = b.inputs([5], [1])
    w, scale = b.variable("w", [5, 1]), b.constant("scale", [], 0.0)

    @tf.function
    def weigh(rows):
        return rows * scale

    rows = tf.reduce_sum(tf.square(tf.matmul(x, w) - y), axis=1)
    with tf.control_dependencies([scale.assign_add(1.0)]):
        rows = weigh(rows)
    descend(b, b.loss(b.total(rows)))


def twice_in_a_branch(b: Builder):
    """Functions in the branches of a conditional of version 1, one of which has nothing but constants."""
    x, y = b.inputs([5], [1])
    w = b.variable("w", [5, 1])
    step = tf1.train.get_or_create_global_step()

    @tf.function
    def square(x):
        return tf.square(x) * tf.constant(2.0, b.dtype)

    @tf.function
    def one(x):
        return tf.ones_like(x) + tf.constant(1.0, b.dtype)

    error = tf.matmul(x, w) - y
    rows = tf1.cond(step < 2, lambda: square(error) + square(error - 1.0), lambda: one(error) * tf.square(error))
    b.train(descending(b), b.loss(b.total(tf.reduce_sum(rows, axis=1))), global_step=step)


BRANCHES = {
    "update_in_branch": Habit(update_in_branch, ROWS, steps=("train_op",) * 4),
    "gradients_in_branch": Habit(gradients_in_branch, ROWS, steps=("train_op",) * 4),
    "loss_by_step": Habit(loss_by_step, ROWS),
    "total_in_branch": Habit(total_in_branch, ROWS),
    "predicate_of_rows": Habit(predicate_of_rows, ROWS),
    "nested_branches": Habit(nested_branches, ROWS),
    "counters_in_branches": Habit(counters_in_branches, ROWS),
    "loss_of_three": Habit(loss_of_three, ROWS),
}

FUNCTIONS = {
    "layer_function": Habit(layer_function, ROWS),
    "nested_functions": Habit(nested_functions, ROWS),
    "step_function": Habit(step_function, ROWS),
    "conditional_in_function": Habit(conditional_in_function, ROWS, steps=("train_op",) * 5),
    "call_behind_control": Habit(call_behind_control, ROWS),
    "twice_in_a_branch": Habit(twice_in_a_branch, ROWS),
}

LOOPS = {
    "looped_loss": Habit(looped_loss, ROWS),
    "looped_layer": Habit(looped_layer, ROWS),
    "looped_until": Habit(looped_until, ROWS),
}
