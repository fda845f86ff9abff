# SPDX-License-Identifier: Apache-2.0
"""Training steps with conditionals and functions. `test_functions.py` runs them.

Every conditional is built twice: in version 1 (Switch and Merge) and as functions (If, StatelessIf, Case), which
`form` chooses around the building of the graph.
"""

import contextlib

import tensorflow.compat.v2 as tf
from models import Builder, tf1
from models_more import ROWS, More, descend, gradients, regress
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


def without_contexts(fill):
    """The model without the collection that Python builds more gradients from."""

    def build(b: Builder):
        fill(b)
        tf1.get_default_graph().clear_collection("cond_context")
        tf1.get_default_graph().clear_collection("while_context")

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


BRANCHES = {
    "update_in_branch": More(update_in_branch, ROWS, steps=("train_op",) * 4),
    "gradients_in_branch": More(gradients_in_branch, ROWS, steps=("train_op",) * 4),
    "loss_by_step": More(loss_by_step, ROWS),
    "total_in_branch": More(total_in_branch, ROWS),
    "predicate_of_rows": More(predicate_of_rows, ROWS),
    "nested_branches": More(nested_branches, ROWS),
    "counters_in_branches": More(counters_in_branches, ROWS),
}
