# SPDX-License-Identifier: Apache-2.0
"""Steps that one device makes are no steps to refuse: they are spread, or computed once with the cause in a warning."""

import os
import re
import tempfile

import harness
import numpy as np
import pytest
import tensorflow as tf
from harness import Options, Session

tf1 = tf.compat.v1
F = tf.float64
ROWS = 6


def feed(name, *shape, dtype=F):
    return tf1.placeholder(dtype, shape, name)


def weights(*shape, name="w"):
    return tf1.get_variable(name, initializer=np.random.RandomState(7).randn(*shape) * 0.3, use_resource=True)


def mean_square(x):
    return tf.reduce_mean(tf.square(x))


def train(loss, *variables):
    """One step of gradient descent."""
    tf.identity(loss, "loss")
    gradients = tf.gradients(loss, list(variables))
    with tf.control_dependencies([loss, *gradients]):
        tf.group(*[tf1.assign_sub(v, 0.1 * g) for v, g in zip(variables, gradients)], name="train")


def scattered_bools():
    """The classes that the batch has: a sum of bools."""
    x, classes = feed("x", None, 4), feed("ids", None, dtype=tf.int32)
    seen = tf.scatter_nd(classes[:, None], tf.ones_like(classes, tf.bool), [5], name="seen")
    w = weights(4, 3)
    train(mean_square(x @ w) * tf.reduce_sum(tf.cast(seen, F)), w)


def single_rows():
    """A fetch that no replica computes anything for."""
    x, y = feed("x", ROWS, 4), feed("y", ROWS, 3)
    tf.identity(x[0, :3] * y[1], "loss")


def mapped_rows():
    """Two static feeds that a map_fn each takes apart."""
    x, y = feed("x", ROWS, 4), feed("y", ROWS, 3)
    w = weights(4, 3)
    loss = tf.reduce_mean(tf.map_fn(tf.reduce_sum, x)) * tf.reduce_mean(tf.map_fn(tf.reduce_max, y))
    tf.identity(loss * tf.reduce_sum(w), "loss")


def static_metric():
    """The confusion matrix of a static batch adds up a constant of as many ones."""
    x, classes = feed("x", ROWS, 4), feed("ids", ROWS, dtype=tf.int32)
    w = weights(4, 3)
    scores = x @ w
    _, update = tf1.metrics.mean_iou(classes, tf.argmax(scores, 1), 3)
    tf.identity(update, "update")
    train(tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=scores)), w)


def several_steps():
    """A loop of optimizer steps."""
    xs, ys = feed("xs", None, None, 4), feed("ys", None, None, 3)
    w = weights(4, 3)

    def body(i, _):
        loss = mean_square(xs[i] @ w.read_value() - ys[i])
        with tf.control_dependencies([w.assign_sub(0.1 * tf.gradients(loss, [w])[0])]):
            return i + 1, tf.identity(loss)

    zero = (0, tf.constant(0.0, F))
    _, loss = tf1.while_loop(lambda i, _: i < tf.shape(xs)[0], body, zero, parallel_iterations=1, back_prop=False)
    tf.group(tf.identity(loss, "loss"), name="train")


def counted_turns(amount):
    """A loop over rows that adds to a variable."""
    x, w = feed("x", None, 4), weights(4, 4)
    total = tf1.get_variable("total", [], F, tf1.zeros_initializer(), trainable=False, use_resource=True)

    def body(i, h):
        h = tf.tanh(h @ w)
        with tf.control_dependencies([total.assign_add(amount(h))]):
            return i + 1, tf.identity(h)

    _, h = tf1.while_loop(lambda i, _: i < 3, body, (0, x), parallel_iterations=1)
    with tf.control_dependencies([h]):
        tf.identity(total.read_value(), "total_now")
    train(mean_square(h), w)


def flat_ids():
    """Ids of all rows in one vector, and the row of each."""
    x, y = feed("x", None, 4), feed("y", None, 3)
    ids, rows = feed("ids", None, dtype=tf.int32), feed("rows", None, dtype=tf.int32)
    table, w = weights(5, 2, name="table"), weights(6, 3)
    sums = tf.math.unsorted_segment_sum(tf.nn.embedding_lookup(table, ids), rows, tf.shape(x)[0])
    sums.set_shape([None, 2])
    loss = tf1.losses.sigmoid_cross_entropy(tf.cast(y > 0, tf.int32), tf.concat([x, sums], 1) @ w)
    tf1.train.AdagradOptimizer(0.1).minimize(tf.identity(loss, "loss"), name="train")


def one_row_each():
    """Feeds of which nobody says which of them has rows."""
    x, y = feed("x", 1, 4 * ROWS), feed("y", ROWS, 3)
    w = weights(4, 3)
    train(mean_square(tf.reshape(x, [ROWS, 4]) @ w - y), w)


def uneven_reshapes():
    """Rows that another feed has in groups."""
    x, y = feed("x", ROWS, 4), feed("y", 3, 6)
    w = weights(4, 3)
    train(mean_square(x @ w - tf.reshape(y, [ROWS, 3])), w)


def odd_rows():
    """A static batch that has no halves."""
    x, y = feed("x", 7, 4), feed("y", 7, 3)
    w = weights(4, 3)
    train(mean_square(x @ w - y), w)


ONCE = r"warning: node '.*': the step is not distributed over the replicas, but computed once on the whole batch: "
LOOP = ONCE + "updates a variable in a loop, where replicas cannot exchange values"
# A model that only computes: graft distributes it, and says that it trains nothing.
NO_STEP = r"\A[^\n]*: warning: no op updates a variable, so there is no training step to distribute; [^\n]*\s*\Z"
# The flags of each model, and the expected messages.
CASES = {
    "scattered_bools": (scattered_bools, [], None),
    "single_rows": (single_rows, [], NO_STEP),
    "mapped_rows": (mapped_rows, [], NO_STEP),
    "static_metric": (static_metric, [], None),
    "several_steps": (several_steps, [], LOOP),
    "several_steps_named": (several_steps, ["--feed=xs+ys=split(1)"], LOOP),
    "counted_turns": (lambda: counted_turns(lambda h: tf.constant(1.0, F)), [], LOOP),
    "added_means": (lambda: counted_turns(tf.reduce_mean), ["--feed=x=split"], LOOP),
    "flat_ids": (flat_ids, ["--feed=ids=sparse"], ONCE),
    "flat_pairs": (flat_ids, ["--feed=ids+rows=sparse"], ONCE),
    "one_row_each": (one_row_each, [], ONCE + "it is not clear which feeds hold the batch"),
    "odd_rows": (odd_rows, [], ONCE + "a batch of 7 rows is not divisible by 2 replicas"),
    "uneven_reshapes": (uneven_reshapes, [], ONCE + "a batch of 3 rows is not divisible by 2 replicas"),
}


def export(fill):
    with tf.Graph().as_default() as graph:
        fill()
        tf.group(tf1.global_variables_initializer(), tf1.local_variables_initializer(), name="all_init")
        handle, path = tempfile.mkstemp(suffix=".meta", dir=harness.workdir())
        os.close(handle)
        tf1.train.export_meta_graph(path, graph=graph)
    return path


def steps(path, replicas):
    """The fetched values of three steps."""
    taken = []
    with Session(path, replicas) as session:
        session.run("all_init")
        names = {op.name for op in session.graph.get_operations()}
        feeds = [op.outputs[0] for op in session.graph.get_operations() if op.type == "Placeholder"]
        fetches = [name + ":0" for name in ("loss", "seen", "update", "total_now") if name in names]
        fetches += ["w/Read/ReadVariableOp:0"] if "w" in names else []
        for turn in range(3):
            fed = {}
            for tensor in feeds:
                sizes = [ROWS if size is None else size for size in tensor.shape.as_list()]
                flat = tensor.op.name == "ids" and "rows" in names
                random = np.random.RandomState(100 * turn + len(fed))
                if tensor.op.name == "rows":
                    fed[tensor] = np.sort(random.randint(0, ROWS, 13))
                elif tensor.dtype.is_integer:
                    fed[tensor] = random.randint(0, 3, 13 if flat else ROWS)
                else:
                    fed[tensor] = random.randn(*sizes)
            taken.append(session.run(fetches[:-1] + ["train"] if "train" in names else fetches, fed))
            taken.append(session.run(fetches[-1:], fed))
    return [[value for value in row if value is not None] for row in taken]


@pytest.mark.parametrize("name", CASES)
def test_is_not_refused(name):
    fill, flags, expected = CASES[name]
    path = export(fill)
    fetches = ["loss", "seen", "update", "total_now"]
    nodes = {node.name for node in harness.read_meta(path).graph_def.node}
    flags = [*flags, *("--fetch=" + fetch for fetch in fetches if fetch in nodes)]
    out, said = harness.rewrite(path, Options(2, extra=tuple(flags)))
    assert re.search(expected, said) if expected else said == "", said
    for i, (ours, theirs) in enumerate(zip(steps(out, 2), steps(path, 1))):
        for a, b in zip(ours, theirs):
            harness.assert_close(a, b, f"what is fetched by run {i}")
