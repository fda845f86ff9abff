# SPDX-License-Identifier: Apache-2.0
"""Genes: recurrent cells in loops and without, scans, loops in conditionals and conditionals in loops, calls of calls."""

import tensorflow.compat.v2 as tf
from families import B, F, I, activation, is_float, is_matrix, is_series
from genes import Context, Gene, Illegal, gene, tf1
from tensorflow.python.keras.layers.legacy_rnn import rnn_cell_impl as cells


def cell_of(c, g, units):
    make = g.choice([cells.BasicRNNCell, cells.GRUCell, cells.LSTMCell, cells.BasicLSTMCell])
    return make(units, dtype=c.dtype, name=f"cell{g.number}_{g.below(1 << 16)}")


def lengths_of(c, g, time):
    """How long each row is, if there is a feed for it."""
    items = [t for t in c.pool if t.kind == I and t.rank == 1 and t.batch == 0 and 0 < t.classes <= time + 1]
    return items[-1].tensor if items and g.chance(0.6) else None


def start_again(c, g, time):
    """Weights with fixed values: the library draws them, which the input may do in another order."""
    tf1.disable_control_flow_v2()
    c.v1_flow = True
    low = -0.5
    number = g.below(100)
    return tf1.variable_scope(f"rnn{g.number}", initializer=lambda shape, dtype, **_: tf.cast(
        tf.reshape(tf.sin(tf.cast(tf.range(int(tf.TensorShape(shape).num_elements())) * (number + 1), tf.float64)), shape) * low, dtype),
        use_resource=c.head["variables"] == "resource")  # fmt: skip


@gene("op", 1.5)
def dynamic_rnn(c, g):
    """tf.nn.dynamic_rnn and what is made with it."""
    x = c.pick(g, 0, is_series)
    units, time = c.width(g), x.shape[1]
    how = g.below(4)
    with start_again(c, g, time):
        lengths = lengths_of(c, g, time)
        if how == 0:
            layers = cells.MultiRNNCell([cell_of(c, g, units) for _ in range(2)])
            outputs, state = tf1.nn.dynamic_rnn(layers, x.tensor, lengths, dtype=c.dtype)
        elif how == 1:
            major = tf.transpose(x.tensor, [1, 0, 2])
            outputs, state = tf1.nn.dynamic_rnn(cell_of(c, g, units), major, lengths, dtype=c.dtype, time_major=True)
            outputs = tf.transpose(outputs, [1, 0, 2])
        elif how == 2:
            pair, state = tf1.nn.bidirectional_dynamic_rnn(
                cell_of(c, g, units), cell_of(c, g, units), x.tensor, lengths, dtype=c.dtype
            )
            outputs, state, units = tf.concat(pair, -1), state[0], 2 * units
        else:
            cell = cell_of(c, g, units)
            zero = cell.zero_state(c.rows(g), c.dtype)
            outputs, state = tf1.nn.dynamic_rnn(cell, x.tensor, lengths, initial_state=zero)
    c.add(tf.ensure_shape(outputs, [None, time, units]), 0, (x.shape[0], time, units))
    last = tf.nest.flatten(state)[-1]
    c.add(tf.ensure_shape(last, [None, last.shape[-1]]), 0, (x.shape[0], int(last.shape[-1])))


@gene("op", 1)
def static_rnn(c, g):
    x = c.pick(g, 0, is_series)
    units = c.width(g)
    with start_again(c, g, x.shape[1]):
        steps = tf.unstack(x.tensor, x.shape[1], 1)
        outputs, _ = tf1.nn.static_rnn(cell_of(c, g, units), steps, dtype=c.dtype)
    c.add(tf.stack(outputs, 1), 0, (x.shape[0], x.shape[1], units))


@gene("op", 1)
def scanned(c, g):
    """tf.scan, foldl and map_fn over time, which is the first axis."""
    x = c.pick(g, 0, is_series)
    tf1.disable_control_flow_v2()
    c.v1_flow = True
    major = tf.transpose(x.tensor, [1, 0, 2])
    w = c.variable(g, [x.shape[2], x.shape[2]])
    start = tf.zeros_like(x.tensor[:, 0]) if g.chance(0.5) else tf.zeros(tf.stack([c.rows(g), x.shape[2]]), c.dtype)
    step = lambda h, t: tf.tanh(tf.matmul(h, w) + t)
    how = g.below(3)
    if how == 0:
        h = tf1.scan(step, major, start)
        c.add(tf.ensure_shape(h, [x.shape[1], None, x.shape[2]]), 1, (x.shape[1], x.shape[0], x.shape[2]))
    elif how == 1:
        c.add(tf.ensure_shape(tf1.foldl(step, major, start), [None, x.shape[2]]), 0, (x.shape[0], x.shape[2]))
    else:
        h = tf1.map_fn(lambda t: tf.sigmoid(tf.matmul(t, w)), major)
        c.add(tf.ensure_shape(h, [x.shape[1], None, x.shape[2]]), 1, (x.shape[1], x.shape[0], x.shape[2]))


@gene("op", 1.2)
def nested_flow(c, g):
    """A conditional in a loop, a loop in a conditional, a loop in a loop, a case of several branches."""
    x = c.pick(g, 0, is_matrix)
    v2 = g.chance(0.35)
    (tf1.enable_control_flow_v2 if v2 else tf1.disable_control_flow_v2)()
    c.v1_flow |= not v2
    w = c.variable(g, [x.shape[1], x.shape[1]])
    t, how = x.tensor, g.below(4)
    layer = lambda h: tf.tanh(tf.matmul(h, w))
    turns = 1 + g.below(3)
    if how == 0:
        body = lambda i, h: (i + 1, tf1.cond(tf.equal(i % 2, 0), lambda: layer(h), lambda: h * 0.5))
        h = tf1.while_loop(lambda i, h: i < turns, body, (0, t))[1]
    elif how == 1:
        flags = [f for f in c.pool if f.kind == B and f.rank == 0]
        on = flags[0].tensor if flags else tf.reduce_max(t) > 0.4
        repeated = lambda: tf1.while_loop(lambda i, h: i < turns, lambda i, h: (i + 1, layer(h)), (0, t))[1]
        h = tf1.cond(on, repeated, lambda: t + 0.1)
    elif how == 2:
        inner = lambda h: tf1.while_loop(lambda j, h: j < 2, lambda j, h: (j + 1, layer(h)), (0, h))[1]
        h = tf1.while_loop(lambda i, h: i < turns, lambda i, h: (i + 1, inner(h) + t * 0.1), (0, t))[1]
    else:
        mean = tf.reduce_mean(t)
        h = tf1.case([(mean > 0.2, lambda: layer(t)), (mean > 0.0, lambda: t * 0.5)], default=lambda: t - 0.1)
    c.add(tf.ensure_shape(h, [None, x.shape[1]]), 0, x.shape)


@gene("op", 1)
def nested_calls(c, g):
    """A function that calls another one twice, with rows, weights and a number."""
    x = c.pick(g, 0, is_matrix)
    w = c.variable(g, [x.shape[1], x.shape[1]])

    @tf.function(autograph=False)
    def inner(a, b):
        return activation(g)(tf.matmul(a, b))

    @tf.function(autograph=False)
    def outer(a, b, by):
        first = inner(a, b)
        return inner(first * by, b) + tf.reduce_mean(first, -1, keepdims=True)

    h = outer(x.tensor, tf.convert_to_tensor(w), tf.cast(0.7, c.dtype))
    c.add(tf.ensure_shape(h, [None if x.tensor.shape[0] is None else x.shape[0], x.shape[1]]), 0, x.shape)


@gene("op", 0.8)
def arrays(c, g):
    """A TensorArray that is filled without a loop, read out of order, and split or concatenated."""
    x = c.pick(g, 0, is_series)
    tf1.disable_control_flow_v2()
    major = tf.transpose(x.tensor, [1, 0, 2])
    n = x.shape[1]
    array = tf.TensorArray(c.dtype, size=n, clear_after_read=False, element_shape=None).unstack(major)
    how = g.below(3)
    if how == 0:
        h = array.read(n - 1) + array.read(0)
        c.add(tf.ensure_shape(h, [None, x.shape[2]]), 0, (x.shape[0], x.shape[2]))
    elif how == 1:
        h = array.gather([n - 1 - i for i in range(n)])
        c.add(tf.ensure_shape(h, [n, None, x.shape[2]]), 1, (n, x.shape[0], x.shape[2]))
    else:
        h = array.concat()
        c.add(tf.reshape(h, tf.stack([n, -1, x.shape[2]])), 1, (n, x.shape[0], x.shape[2]))
