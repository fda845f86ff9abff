# SPDX-License-Identifier: Apache-2.0
"""Genes: feeds and families of ops. Each takes what it needs out of the pool and adds what it makes.

What is built is legal on one device: it runs, whatever relates rows with other rows. Those that do are rarer, and more of
them come where the plan is `wild`.
"""

import numpy as np
import tensorflow.compat.v2 as tf
from genes import Context, Gene, Illegal, gene, mix, tf1

raw = tf.raw_ops
F, I, B = "float", "int", "bool"


def is_float(t):
    return t.kind == F


def is_rows(t):
    return t.kind == F and t.batch == 0 and t.rank >= 2


def is_matrix(t):
    return t.kind == F and t.batch == 0 and t.rank == 2


def is_vector(t):
    return t.kind == F and t.batch == 0 and t.rank == 1


def is_series(t):
    return t.kind == F and t.batch == 0 and t.rank == 3


def is_image(t):
    return t.kind == F and t.batch == 0 and t.rank == 4


# --- Feeds. ---


def feed(c: Context, g: Gene, shape, dtype, make, kind=F, classes=0, rows=True):
    """A placeholder, or the component of an iterator or a queue where the plan says so. `shape` is that of a row."""
    name = f"x{g.number}_{c.serial}"
    full = [c.batch if c.static else None, *shape] if rows else list(shape)
    sized = (c.batch, *shape) if rows else tuple(shape)
    source = c.head["source"]
    if rows and source == "iterator":
        values = np.stack([make(np.random.RandomState(g.below(1 << 30) + i), sized) for i in range(8)])
        dataset = tf1.data.Dataset.from_tensor_slices(values.reshape((-1, *shape)))
        dataset = dataset.repeat().batch(c.batch * c.times, drop_remainder=c.static or g.chance(0.5))
        iterator = tf1.data.make_initializable_iterator(dataset)
        tensor = iterator.get_next()
        c.starts = [*getattr(c, "starts", []), iterator.initializer.name]
    elif rows and source == "queue":
        values = np.concatenate([make(np.random.RandomState(g.below(1 << 30) + i), sized) for i in range(40)])
        queue = tf1.FIFOQueue(len(values), [dtype], [list(shape)])
        fill = queue.enqueue_many([tf.constant(values, dtype)])
        # A number that the graph is not sure of: neither is it of the size.
        known = c.static or mix(c.plan.seed, name) < 0.5
        number = c.batch * c.times
        tensor = queue.dequeue_many(number if known else tf1.placeholder_with_default(number, [], f"{name}_number"))
        c.starts = [*getattr(c, "starts", []), fill.name]
    else:
        tensor = tf1.placeholder(dtype, full, name=name)
        c.feeds[tensor.name] = lambda rng: make(rng, sized)
        if rows:
            c.split.append(tensor.name)
    return c.add(tensor, 0 if rows else None, sized, kind, classes)


def numbers(c: Context):
    return lambda rng, shape: rng.uniform(-1.0, 1.0, shape).astype(c.dtype.as_numpy_dtype)


def integers(high):
    return lambda rng, shape: rng.randint(0, high, shape).astype(np.int32)


@gene("feed", 0.5)
def rows_feed(c, g):
    feed(c, g, [c.width(g)], c.dtype, numbers(c))


@gene("feed", 1)
def more_rows(c, g):
    rank = g.choice([0, 1, 1, 2])
    feed(c, g, [c.width(g) for _ in range(rank)], c.dtype, numbers(c))


@gene("feed", 1)
def image_feed(c, g):
    size = g.choice([2, 3, 4])
    feed(c, g, [size, size, g.choice([1, 2, 3])], c.dtype, numbers(c))


@gene("feed", 1)
def series_feed(c, g):
    feed(c, g, [c.width(g, 2), c.width(g)], c.dtype, numbers(c))


@gene("feed", 2)
def label_feed(c, g):
    classes = c.width(g, 2)
    feed(c, g, [], tf.int32, integers(classes), I, classes)


@gene("feed", 2)
def id_feed(c, g):
    classes = g.choice([3, 7, c.batch])
    feed(c, g, [c.width(g)], tf.int32, integers(classes), I, classes)


@gene("feed", 1)
def mask_feed(c, g):
    shape = [] if g.chance(0.7) else [c.width(g)]
    feed(c, g, shape, tf.bool, lambda rng, s: rng.uniform(size=s) < 0.6, B)


@gene("feed", 0.7)
def scalar_feed(c, g):
    feed(c, g, [], c.dtype, lambda rng, s: c.dtype.as_numpy_dtype(rng.uniform(0.5, 1.0)), rows=False)


@gene("feed", 0.5)
def flag_feed(c, g):
    feed(c, g, [], tf.bool, lambda rng, s: np.bool_(rng.uniform() < 0.5), B, rows=False)


# --- Layers. ---


def activation(g):
    return g.choice([tf.tanh, tf.sigmoid, tf.nn.relu, tf.nn.softplus, tf.nn.elu, tf.identity, tf.sin, tf.nn.selu,
                     tf.nn.leaky_relu, tf.nn.softsign, tf.nn.relu6])  # fmt: skip


@gene("op", 6)
def dense(c, g):
    x = c.pick(g, 0, is_rows)
    units = c.width(g)
    w = c.variable(g, [x.shape[-1], units])
    if x.rank == 2:
        h = tf.matmul(x.tensor, w) if g.chance(0.8) else tf.matmul(x.tensor, tf.transpose(w), transpose_b=True)
    elif g.chance(0.5):
        h = tf.tensordot(x.tensor, w, [[x.rank - 1], [0]])
    else:
        letters = "abcde"[: x.rank]
        h = tf.einsum(f"{letters},{letters[-1]}z->{letters[:-1]}z", x.tensor, w)
    if g.chance(0.7):
        b = c.variable(g, [units])
        h = tf.nn.bias_add(h, b) if x.rank == 2 and g.chance(0.5) else h + b
    c.add(activation(g)(h), 0)


@gene("op", 3)
def convolution(c, g):
    x = c.pick(g, 0, is_image)
    size = g.choice([1, 2])
    w = c.variable(g, [size, size, x.shape[3], c.width(g)])
    what = g.below(4)
    if what == 0:
        w = c.variable(g, [size, size, x.shape[3], g.choice([1, 2])])
        h = tf.nn.depthwise_conv2d(x.tensor, w, [1, 1, 1, 1], "SAME")
    else:
        h = tf.nn.conv2d(x.tensor, w, g.choice([1, 2]), "SAME")
    if g.chance(0.5):
        h = tf.nn.bias_add(h, c.variable(g, [h.shape[3]]))
    h = activation(g)(h)
    if g.chance(0.3):
        h = tf.nn.max_pool2d(h, 2, 1, "SAME") if g.chance(0.5) else tf.nn.avg_pool2d(h, 2, 1, "SAME")
    c.add(h, 0)


@gene("op", 3)
def flatten(c, g):
    x = c.pick(g, 0, lambda t: t.kind == F and t.batch == 0 and t.rank >= 3)
    width = int(np.prod(x.shape[1:]))
    what = g.below(3)
    shape = [-1, width] if what == 0 else [c.rows(g), width] if what == 1 else [tf.shape(x.tensor)[0], -1]
    h = tf.reshape(x.tensor, tf.stack(shape) if what else shape)
    c.add(h, 0, (c.batch, width))


@gene("op", 2)
def global_pool(c, g):
    x = c.pick(g, 0, is_image)
    c.add(tf.reduce_mean(x.tensor, [1, 2]), 0)


@gene("op", 3)
def batch_norm(c, g):
    """Written out: moments over all axes but the last; the rows of the batch are all of them."""
    x = c.pick(g, 0, is_rows)
    axes = list(range(x.rank - 1))
    mean, variance = tf.nn.moments(x.tensor, axes)
    gamma, beta = c.variable(g, [x.shape[-1]], value=c.value(g, [x.shape[-1]]) + 1), c.variable(g, [x.shape[-1]])
    how = g.below(3)
    if how == 0:
        h = tf.nn.batch_normalization(x.tensor, mean, variance, beta, gamma, 1e-2)
    elif how == 1:
        h = (x.tensor - mean) / tf.sqrt(variance + 0.01) * gamma + beta
    else:
        mean = tf.reduce_mean(x.tensor, axes, keepdims=True)
        variance = tf.reduce_mean(tf.square(x.tensor - mean), axes, keepdims=True)
        h = (x.tensor - mean) * tf.math.rsqrt(variance + 0.01) * gamma + beta
    if g.chance(0.6) and how < 2:
        for value in (mean, variance):
            average = c.variable(g, [x.shape[-1]], trainable=False)
            rate = tf.cast(0.1, c.dtype)
            update = tf1.assign_sub(average, (average - value) * rate)
            tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
    c.add(h, 0)


@gene("op", 1.2)
def fused_batch_norm(c, g):
    x = c.pick(g, 0, is_image)
    if c.head["dtype"] != "float32":
        raise Illegal("a fused batch norm takes float32")
    n = x.shape[3]
    gamma, beta = c.variable(g, [n], value=c.value(g, [n]) + 1), c.variable(g, [n])
    c.fused = True
    h, mean, variance = tf1.nn.fused_batch_norm(x.tensor, gamma, beta, epsilon=1e-2)
    for value in (mean, variance):
        average = c.variable(g, [n], trainable=False)
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, tf1.assign_sub(average, (average - value) * 0.1))
    c.add(h, 0)


@gene("op", 2)
def layer_norm(c, g):
    x = c.pick(g, 0, is_rows)
    axes = list(range(1, x.rank)) if g.chance(0.5) else [x.rank - 1]
    mean, variance = tf.nn.moments(x.tensor, axes, keepdims=True)
    c.add((x.tensor - mean) * tf.math.rsqrt(variance + 0.1) * c.variable(g, [x.shape[-1]]), 0)


@gene("op", 2)
def softmax(c, g):
    x = c.pick(g, 0, is_rows)
    axis = g.choice([-1, -1, 1])
    how = g.below(5)
    t = x.tensor
    h = [
        lambda: tf.nn.softmax(t, axis),
        lambda: tf.nn.log_softmax(t, axis),
        lambda: tf.nn.l2_normalize(t + 0.1, axis, epsilon=1e-3),
        lambda: t / (tf.norm(t, axis=axis, keepdims=True) + 0.1),
        lambda: tf.exp(t) / tf.reduce_sum(tf.exp(t), axis, keepdims=True),
    ][how]()
    c.add(h, 0)


# --- Element by element. ---

UNARY = {
    "tanh": tf.tanh, "sigmoid": tf.sigmoid, "relu": tf.nn.relu, "softplus": tf.nn.softplus, "abs": tf.abs,
    "neg": tf.negative, "sin": tf.sin, "cos": tf.cos, "erf": tf.math.erf, "sign": tf.sign, "stop": tf.stop_gradient,
    "exp": lambda t: tf.exp(-tf.square(t)), "log": lambda t: tf.math.log(1.0 + tf.square(t)),
    "sqrt": lambda t: tf.sqrt(1.0 + tf.square(t)), "rsqrt": lambda t: tf.math.rsqrt(1.0 + tf.square(t)),
    "clip": lambda t: tf.clip_by_value(t, -0.5, 0.5), "reciprocal": lambda t: tf.math.reciprocal(1.0 + tf.square(t)),
    "down": lambda t: tf.cast(tf.cast(t, tf.float32), t.dtype), "log1p": lambda t: tf.math.log1p(tf.square(t)),
    "expm1": lambda t: tf.math.expm1(tf.clip_by_value(t, -1.0, 1.0)), "atan": tf.atan, "round": tf.round,
    "floor": lambda t: t - tf.floor(t), "pow": lambda t: tf.pow(1.0 + tf.square(t), 0.3),
    "zeros": lambda t: t + tf.zeros_like(t), "ones": lambda t: t * tf.ones_like(t),
    "check": lambda t: tf.debugging.check_numerics(t, "not a number"), "swish": tf.nn.silu,
    "xlogy": lambda t: tf.math.xlogy(tf.square(t), 1.0 + tf.square(t)),
}  # fmt: skip


@gene("op", 4)
def unary(c, g):
    x = c.pick(g, 0, is_float)
    c.add(UNARY[g.choice(sorted(UNARY))](x.tensor), x.batch, x.shape)


BINARY = {
    "add": tf.add, "sub": tf.subtract, "mul": tf.multiply, "max": tf.maximum, "min": tf.minimum,
    "div": lambda a, b: a / (1.0 + tf.square(b)), "sd": tf.math.squared_difference,
    "where": lambda a, b: tf.where(a > b, a, tf.zeros_like(a) + b * 2.0),
    "divno": lambda a, b: tf.math.divide_no_nan(a, 1.0 + tf.abs(b)), "atan2": lambda a, b: tf.atan2(a, 1.0 + b * b),
    "addn": lambda a, b: tf.add_n([a, b, a]) if a.shape == b.shape else a + b,
    "fm": lambda a, b: tf.math.floormod(a, 1.0 + tf.square(b)),
}  # fmt: skip


@gene("op", 5)
def binary(c, g):
    x = c.pick(g, 0, is_float)
    loose = c.wild and g.chance(0.3)

    def fits(t):
        if t.kind != F or t.number == x.number:
            return False
        try:
            shape = np.broadcast_shapes(x.shape, t.shape)
        except ValueError:
            return False
        if np.prod(shape) > 1000:
            return False
        if loose or t.batch is None or x.batch is None:
            return t.batch is None or x.batch is None or loose
        # The rows of both are along the same axis of the result.
        return x.batch - x.rank == t.batch - t.rank

    y = c.pick(g, 1, fits)
    shape = tuple(np.broadcast_shapes(x.shape, y.shape))
    a, b = (x, y) if g.chance(0.5) else (y, x)
    h = BINARY[g.choice(sorted(BINARY))](a.tensor, b.tensor)
    batch = None
    for t in (x, y):
        if t.batch is not None:
            batch = t.batch + len(shape) - t.rank
    c.add(h, batch, shape)


@gene("op", 3)
def with_variable(c, g):
    """A weight that is broadcast, or a number."""
    x = c.pick(g, 0, is_float)
    rank = g.below(x.rank + 1)
    shape = list(x.shape[x.rank - rank :])
    if x.batch is not None and rank > x.rank - 1 - x.batch:
        shape[rank - x.rank + x.batch] = 1
    v = c.variable(g, shape) if g.chance(0.7) else tf.constant(c.value(g, shape))
    op = g.choice([tf.add, tf.multiply, tf.subtract, tf.maximum])
    c.add(op(x.tensor, v) if g.chance(0.7) else op(v, x.tensor), x.batch, x.shape)


@gene("op", 1.5)
def compare(c, g):
    x = c.pick(g, 0, is_float)
    y = c.pick(g, 1, lambda t: t.kind == F and t.shape == x.shape and t.batch == x.batch)
    op = g.choice([tf.greater, tf.less_equal, lambda a, b: tf.greater(a, 0.1)])
    bits = op(x.tensor, y.tensor)
    if g.chance(0.4):
        c.add(bits, x.batch, x.shape, B)
    else:
        c.add(tf.cast(bits, c.dtype), x.batch, x.shape)


@gene("op", 2)
def select(c, g):
    m = c.pick(g, 0, lambda t: t.kind == B and t.rank >= 1)
    x = c.pick(g, 1, lambda t: t.kind == F and t.batch == m.batch and t.shape[: m.rank] == m.shape)
    bits = m.tensor
    if x.rank > m.rank:
        bits = tf.reshape(bits, tf.concat([tf.shape(bits), [1] * (x.rank - m.rank)], 0))
    how = g.below(3)
    if how == 0:
        h = tf.where(tf.broadcast_to(bits, tf.shape(x.tensor)), x.tensor, tf.zeros_like(x.tensor))
    elif how == 1:
        h = x.tensor * tf.cast(bits, c.dtype)
    elif m.rank == 1:
        h = tf1.where(m.tensor, x.tensor, x.tensor * 0.5)
    else:
        h = tf.where(bits, x.tensor, tf.cast(1.0, c.dtype))
    c.add(h, x.batch, x.shape)


# --- Reductions. ---

REDUCE = {
    "sum": tf.reduce_sum, "mean": tf.reduce_mean, "max": tf.reduce_max, "min": tf.reduce_min,
    "lse": tf.reduce_logsumexp, "prod": tf.reduce_prod,
    "std": lambda t, a, keepdims: tf.sqrt(tf.math.reduce_variance(t, a, keepdims=keepdims) + 0.1),
    "norm": lambda t, a, keepdims: tf.sqrt(tf.reduce_sum(tf.square(t), a, keepdims=keepdims) + 0.1),
}  # fmt: skip


@gene("op", 5)
def reduce(c, g):
    x = c.pick(g, 0, is_float, lambda t: t.rank >= 1)
    others = [a for a in range(x.rank) if a != x.batch]
    axes = [a for a in others if g.chance(0.5)] or others[:1]
    if x.batch is not None and (not axes or g.chance(0.3)):
        axes.append(x.batch)
        if g.chance(0.3):
            axes = list(range(x.rank))
    axes = sorted(set(axes))
    if not axes:
        raise Illegal("no axis")
    keep = g.chance(0.4)
    op = REDUCE[g.choice(sorted(REDUCE))]
    negative = g.chance(0.3)
    h = op(x.tensor, [a - x.rank if negative else a for a in axes], keepdims=keep)
    shape = tuple(1 if a in axes else s for a, s in enumerate(x.shape) if keep or a not in axes)
    batch = None
    if x.batch is not None and x.batch not in axes:
        batch = x.batch if keep else x.batch - sum(a < x.batch for a in axes)
    c.add(h, batch, shape)


@gene("op", 1)
def count_rows(c, g):
    """A number that is the size of something."""
    x = c.pick(g, 0, lambda t: t.rank >= 1 and t.batch is not None)
    how = g.below(4)
    n = [
        lambda: tf.shape(x.tensor)[x.batch],
        lambda: tf.size(x.tensor),
        lambda: tf.reduce_prod(tf.shape(x.tensor)),
        lambda: tf.math.count_nonzero(x.tensor, dtype=tf.int32) if x.kind == F else tf.size(x.tensor),
    ][how]()
    value = tf.cast(n, c.dtype)
    result = g.choice([
        lambda: value * 0.01,
        lambda: 1.0 / (value + 1.0),
        lambda: tf.math.log(value + 1.0),
        lambda: value / tf.cast(tf.size(x.tensor) + 1, c.dtype),
    ])()  # fmt: skip
    c.add(result, None, ())


# --- Moving elements. ---


@gene("op", 2.5)
def transpose(c, g):
    x = c.pick(g, 0, lambda t: t.kind == F and t.rank >= 2)
    order = list(range(x.rank))
    g.rng.shuffle(order)
    batch = None if x.batch is None else order.index(x.batch)
    c.add(tf.transpose(x.tensor, order), batch, tuple(x.shape[a] for a in order))


@gene("op", 1.5)
def back_to_rows(c, g):
    x = c.pick(g, 0, lambda t: t.kind == F and t.batch not in (None, 0))
    order = [x.batch] + [a for a in range(x.rank) if a != x.batch]
    c.add(tf.transpose(x.tensor, order), 0, tuple(x.shape[a] for a in order))


@gene("op", 3)
def reshape_rows(c, g):
    """Rows and time in one axis, and apart again; features in two axes."""
    x = c.pick(g, 0, is_rows)
    sizes = c.dynamic(g, x)
    how = g.below(4)
    if how == 0 and x.rank >= 3:
        h = tf.reshape(x.tensor, [-1, *x.shape[2:]])
        units = c.width(g)
        w = c.variable(g, [x.shape[-1], units])
        h = tf.tensordot(h, w, 1) if x.rank > 3 else tf.matmul(h, w)
        shape = [-1 if g.chance(0.5) else c.rows(g), *x.shape[1:-1], units]
        c.add(tf.reshape(h, tf.stack(shape)), 0, (c.batch, *x.shape[1:-1], units))
    elif how == 1 and x.rank >= 3:
        flat = x.shape[0] * x.shape[1]
        h = tf.reshape(x.tensor, [-1, *x.shape[2:]])
        c.add(h, None, (flat, *x.shape[2:]))  # rows of rows: what takes rows does not take these
    elif how == 2:
        axis = 1 + g.below(x.rank - 1)
        h = tf.expand_dims(x.tensor, axis)
        c.add(h, 0, (*x.shape[:axis], 1, *x.shape[axis:]))
    else:
        width = x.shape[-1]
        divisors = [d for d in range(1, width + 1) if width % d == 0]
        d = g.choice(divisors)
        h = tf.reshape(x.tensor, tf.stack([*sizes[:-1], d, width // d]))
        c.add(h, 0, (*x.shape[:-1], d, width // d))


@gene("op", 1)
def squeeze(c, g):
    x = c.pick(g, 0, lambda t: t.kind == F and 1 in t.shape)
    axes = [a for a, s in enumerate(x.shape) if s == 1 and a != x.batch and x.tensor.shape[a] == 1]
    if not axes:
        raise Illegal("nothing to squeeze")
    axis = g.choice(axes)
    batch = x.batch if x.batch is None or x.batch < axis else x.batch - 1
    c.add(tf.squeeze(x.tensor, [axis]), batch, x.shape[:axis] + x.shape[axis + 1 :])


@gene("op", 3)
def concat(c, g):
    x = c.pick(g, 0, is_rows)
    y = c.pick(g, 1, lambda t: is_rows(t) and t.rank == x.rank and t.shape[:-1] == x.shape[:-1])
    parts = [x.tensor, y.tensor] + ([tf.stop_gradient(x.tensor)] if g.chance(0.2) else [])
    h = tf.concat(parts, g.choice([-1, x.rank - 1]))
    c.add(h, 0, (*x.shape[:-1], x.shape[-1] * (len(parts) - 1) + y.shape[-1]))


@gene("op", 1)
def stack(c, g):
    x = c.pick(g, 0, is_float, lambda t: t.rank >= 1)
    y = c.pick(g, 1, lambda t: t.kind == F and t.shape == x.shape and t.batch == x.batch)
    axis = g.below(x.rank + 1)
    h = tf.stack([x.tensor, y.tensor], axis)
    batch = None if x.batch is None else x.batch + (axis <= x.batch)
    shape = list(x.shape)
    shape.insert(axis, 2)
    c.add(h, batch, tuple(shape))


@gene("op", 2)
def split(c, g):
    x = c.pick(g, 0, is_float, lambda t: t.rank >= 1)
    axis = g.choice([a for a in range(x.rank) if a != x.batch or c.wild] or [None])
    if axis is None or x.shape[axis] < 2:
        raise Illegal("nothing to split")
    if axis == x.batch and not c.static:
        raise Illegal("unknown size")
    n = x.shape[axis]
    how = g.below(3)
    if how == 0:
        d = g.choice([d for d in range(2, n + 1) if n % d == 0])
        parts = tf.split(x.tensor, d, axis)
    elif how == 1:
        cut = 1 + g.below(n - 1)
        parts = tf.split(x.tensor, [cut, n - cut], axis)
    else:
        parts = tf.unstack(x.tensor, n, axis)
        batch = None if axis == x.batch else x.batch if x.batch is None or x.batch < axis else x.batch - 1
        c.add(g.choice(parts), batch, x.shape[:axis] + x.shape[axis + 1 :])
        return
    for part in parts[:2]:
        shape = list(x.shape)
        shape[axis] = part.shape[axis]
        c.add(part, None if axis == x.batch else x.batch, tuple(shape))


@gene("op", 2)
def cut(c, g):
    """slice and strided_slice of features, and of rows where the plan is wild."""
    x = c.pick(g, 0, is_rows)
    axis = 1 + g.below(x.rank - 1)
    n = x.shape[axis]
    start = g.below(n)
    stop = start + 1 + g.below(n - start)
    how = g.below(6)
    slices = [slice(None)] * x.rank
    shape = list(x.shape)
    if how == 0:
        begin, size = [0] * x.rank, [-1] * x.rank
        begin[axis], size[axis] = start, stop - start
        h = tf.slice(x.tensor, begin, size)
        shape[axis] = stop - start
    elif how == 1:
        slices[axis] = slice(start, stop)
        h = x.tensor[tuple(slices)]
        shape[axis] = stop - start
    elif how == 2:
        slices[axis] = slice(None, None, -1)
        h = x.tensor[tuple(slices)]
    elif how == 3:
        slices[axis] = start
        h = x.tensor[tuple(slices)]
        del shape[axis]
    elif how == 4:
        slices[axis] = slice(None, None, 2)
        h = x.tensor[tuple(slices)]
        shape[axis] = (n + 1) // 2
    else:
        begin, size = [0] * x.rank, c.dynamic(g, x)
        begin[axis], size[axis] = start, stop - start
        h = tf.slice(x.tensor, begin, tf.stack(size))
        shape[axis] = stop - start
    c.add(h, 0, tuple(shape))


@gene("op", 1.2)
def pad_or_tile(c, g):
    x = c.pick(g, 0, is_rows)
    axis = 1 + g.below(x.rank - 1)
    shape = list(x.shape)
    how = g.below(6)
    if how < 2:
        pads = [[0, 0] for _ in shape]
        pads[axis] = [g.below(2), g.below(3)]
        value = 0.0 if g.chance(0.7) else 1.5
        h = tf.pad(x.tensor, pads, constant_values=tf.cast(value, c.dtype))
        shape[axis] += sum(pads[axis])
    elif how == 2:
        times = [1] * x.rank
        times[axis] = 2
        h = tf.tile(x.tensor, times)
        shape[axis] *= 2
    elif how == 3:
        h = tf.roll(x.tensor, 1, axis)
    elif how == 4:
        h = tf.reverse(x.tensor, [axis])
    else:
        h = tf.repeat(x.tensor, 2, axis)
        shape[axis] *= 2
    c.add(h, 0, tuple(shape))


@gene("op", 1)
def broadcast(c, g):
    """A vector or a weight for each row."""
    x = c.pick(g, 0, lambda t: t.kind == F and t.batch is None and t.rank <= 2)
    n = c.rows(g)
    how = g.below(3)
    if how == 0:
        h = tf.tile(tf.expand_dims(x.tensor, 0), tf.stack([n] + [1] * x.rank))
    elif how == 1:
        h = tf.broadcast_to(x.tensor, tf.stack([n, *c.dynamic(g, x)]))
    else:
        h = tf.fill(tf.stack([n, *x.shape]), tf.cast(0.5, c.dtype)) * x.tensor
    c.add(h, 0, (c.batch, *x.shape))


@gene("op", 1.2)
def order(c, g):
    """Along the features: sums, sorted, the largest, where the largest is."""
    x = c.pick(g, 0, is_rows)
    t, n = x.tensor, x.shape[-1]
    how = g.below(8)
    if how == 0:
        c.add(tf.cumsum(t, x.rank - 1, exclusive=g.chance(0.3), reverse=g.chance(0.3)), 0, x.shape)
    elif how == 1:
        c.add(tf.sort(t, -1), 0, x.shape)
    elif how == 2:
        k = 1 + g.below(n)
        values, indices = tf.nn.top_k(t, k)
        c.add(values, 0, (*x.shape[:-1], k))
        c.add(indices, 0, (*x.shape[:-1], k), I, n)
    elif how == 3:
        c.add(tf.argmax(t, -1, output_type=tf.int32), 0, x.shape[:-1], I, n)
    elif how == 4:
        c.add(tf.math.cumprod(tf.tanh(t), x.rank - 1), 0, x.shape)
    elif how == 5:
        c.add(tf.argsort(t, -1), 0, x.shape, I, n)
    elif how == 6 and x.rank == 2:
        c.add(tf.cast(tf.nn.in_top_k(tf.zeros([c.rows(g)], tf.int32), tf.cast(t, tf.float32), 1), c.dtype), 0, x.shape[:1])
    else:
        c.add(tf.linalg.band_part(t, 0, -1) if x.rank >= 3 else tf.math.cumulative_logsumexp(t, 1), 0, x.shape)


# --- Indices. ---


@gene("op", 3)
def embedding(c, g):
    x = c.pick(g, 0, lambda t: t.kind == I and t.classes > 1)
    width = c.width(g)
    how = g.below(5)
    if how == 0:
        part = tf1.fixed_size_partitioner(min(2, x.classes))
        name = f"v{g.number}_{c.variables}"
        c.variables += 1
        kind = c.head["variables"] != "ref"
        seed = g.below(100)
        table = tf1.get_variable(name, [x.classes, width], c.dtype, partitioner=part, use_resource=kind,
                                 initializer=tf1.constant_initializer(0.1 + seed / 200.0))  # fmt: skip
        h = tf1.nn.embedding_lookup(table, x.tensor, partition_strategy=g.choice(["mod", "div"]))
    elif how == 1:
        tables = [c.variable(g, [(x.classes + 1) // 2, width]) for _ in range(2)]
        h = tf1.nn.embedding_lookup(tables, x.tensor, partition_strategy="mod")
    else:
        table = c.variable(g, [x.classes, width])
        h = tf.nn.embedding_lookup(table, x.tensor) if how < 4 else tf.gather(tf.identity(table), x.tensor)
    c.add(h, x.batch, (*x.shape, width))


@gene("op", 1.5)
def one_hot(c, g):
    x = c.pick(g, 0, lambda t: t.kind == I and t.classes > 0)
    c.add(tf.one_hot(x.tensor, x.classes, dtype=c.dtype), x.batch, (*x.shape, x.classes))


@gene("op", 1)
def integer_math(c, g):
    x = c.pick(g, 0, lambda t: t.kind == I and t.classes > 0)
    how = g.below(5)
    if how == 0:
        c.add(tf.cast(x.tensor, c.dtype) * 0.1, x.batch, x.shape)
    elif how == 1:
        c.add(tf.math.floormod(x.tensor + 1, x.classes), x.batch, x.shape, I, x.classes)
    elif how == 2:
        c.add(tf.equal(x.tensor, 0), x.batch, x.shape, B)
    elif how == 3 and x.rank >= 1 and x.batch is not None:
        c.add(tf.cast(tf.reduce_sum(x.tensor), c.dtype) * 0.01, None, ())
    else:
        c.add(x.tensor // 2, x.batch, x.shape, I, (x.classes + 1) // 2)


@gene("op", 1.5)
def pick_features(c, g):
    x = c.pick(g, 0, is_rows)
    axis = 1 + g.below(x.rank - 1)
    count = c.width(g)
    ids = [g.below(x.shape[axis]) for _ in range(count)]
    shape = list(x.shape)
    shape[axis] = count
    c.add(tf.gather(x.tensor, ids, axis=axis), 0, tuple(shape))


@gene("op", 1.5)
def pick_by_label(c, g):
    """One feature of each row, by number: with gather_nd, with batch_dims, or with one_hot."""
    x = c.pick(g, 0, is_rows)
    i = c.pick(g, 1, lambda t: t.kind == I and t.rank == 1 and t.batch == 0 and 0 < t.classes <= x.shape[1])
    how = g.below(3)
    if how == 0:
        rows = tf.range(tf.shape(x.tensor)[0]) if g.chance(0.6) else tf.range(c.rows(g))
        h = tf.gather_nd(x.tensor, tf.stack([rows, i.tensor], 1))
    elif how == 1:
        h = tf.gather(x.tensor, i.tensor, axis=1, batch_dims=1)
    else:
        hot = tf.one_hot(i.tensor, x.shape[1], dtype=c.dtype)
        h = tf.einsum("ab...,ab->a...", x.tensor, hot) if x.rank > 2 else tf.reduce_sum(x.tensor * hot, 1)
    c.add(h, 0, (x.shape[0], *x.shape[2:]))


@gene("op", 1.5)
def segments(c, g):
    """Sums of rows by class: one for each class, of the whole batch."""
    x = c.pick(g, 0, is_rows)
    i = c.pick(g, 1, lambda t: t.kind == I and t.rank == 1 and t.batch == 0 and t.classes > 1)
    op = g.choice([tf.math.unsorted_segment_sum, tf.math.unsorted_segment_mean, tf.math.unsorted_segment_sqrt_n,
                   lambda a, b, n: tf.maximum(tf.math.unsorted_segment_max(a, b, n), tf.cast(-2.0, c.dtype))])  # fmt: skip
    h = op(x.tensor, i.tensor, i.classes)
    item = c.add(h, None, (i.classes, *x.shape[1:]))
    if g.chance(0.5):
        c.add(tf.gather(item.tensor, i.tensor), 0, x.shape)


@gene("op", 2)
def masked_rows(c, g):
    """Rows that a condition selects; their sum or mean."""
    x = c.pick(g, 0, lambda t: t.kind == F and t.batch == 0)
    m = c.pick(g, 1, lambda t: t.kind == B and t.rank == 1 and t.batch == 0)
    how = g.below(5)
    chosen = tf.boolean_mask(x.tensor, m.tensor) if how != 1 else tf.gather(x.tensor, tf.where(m.tensor)[:, 0])
    count = tf.cast(tf.shape(chosen)[0], c.dtype)
    total = tf.reduce_sum(chosen, 0)
    if how in (0, 1):
        h = total
    elif how == 2:
        h = total / (count + 1.0)
    elif how == 3:
        h = total / tf.maximum(tf.reduce_sum(tf.cast(m.tensor, c.dtype)), 1.0)
    else:
        parts = tf.dynamic_partition(x.tensor, tf.cast(m.tensor, tf.int32), 2)
        rows = tf.dynamic_partition(tf.range(tf.shape(x.tensor)[0]), tf.cast(m.tensor, tf.int32), 2)
        c.add(tf.dynamic_stitch(rows, [tf.tanh(parts[0]), parts[1] * 2.0]), 0, x.shape)
        return
    c.add(h, None, x.shape[1:])


@gene("op", 1)
def lengths_mask(c, g):
    x = c.pick(g, 0, is_series)
    i = c.pick(g, 1, lambda t: t.kind == I and t.rank == 1 and t.batch == 0 and t.classes > 0)
    mask = tf.sequence_mask(i.tensor, x.shape[1], c.dtype)
    h = x.tensor * tf.expand_dims(mask, -1)
    how = g.below(3)
    if how == 0:
        c.add(h, 0, x.shape)
    elif how == 1:
        c.add(tf.reduce_sum(h, 1) / tf.maximum(tf.reduce_sum(mask, 1, keepdims=True), 1.0), 0, (x.shape[0], x.shape[2]))
    else:
        c.add(tf.reduce_sum(h, [0, 1]) / (tf.reduce_sum(mask) + 1.0), None, x.shape[2:])


# --- Products. ---


@gene("op", 2)
def product(c, g):
    x = c.pick(g, 0, is_matrix)
    y = c.pick(g, 1, lambda t: is_matrix(t))
    how = g.below(4)
    if how == 0:  # the sum over rows
        h = tf.matmul(x.tensor, y.tensor, transpose_a=True)
        c.add(h * 0.2, None, (x.shape[1], y.shape[1]))
    elif how == 1:  # outer products, row by row
        c.add(tf.einsum("ab,ac->abc", x.tensor, y.tensor), 0, (*x.shape, y.shape[1]))
    elif how == 2 and x.shape[1] == y.shape[1]:
        if not c.wild:
            c.add(tf.einsum("ab,ab->a", x.tensor, y.tensor), 0, x.shape[:1])
        else:
            c.add(tf.matmul(x.tensor, y.tensor, transpose_b=True), 0, (x.shape[0], y.shape[0]))
    else:
        s = c.variable(g, [x.shape[1], y.shape[1], 2])
        c.add(tf.einsum("ab,bcd,ac->ad", x.tensor, s, y.tensor), 0, (x.shape[0], 2))


@gene("op", 2)
def attention(c, g):
    x = c.pick(g, 0, is_series)
    width = c.width(g)
    q, k, v = (tf.tensordot(x.tensor, c.variable(g, [x.shape[2], width]), 1) for _ in range(3))
    how = g.below(3)
    if how == 0:
        scores = tf.matmul(q, k, transpose_b=True)
        h = tf.matmul(tf.nn.softmax(scores / np.sqrt(width)), v)
    elif how == 1:
        scores = tf.einsum("btd,bsd->bts", q, k)
        h = tf.einsum("bts,bsd->btd", tf.nn.softmax(scores), v)
    else:
        scores = tf.matmul(q, tf.transpose(k, [0, 2, 1]))
        mask = np.triu(np.ones([x.shape[1]] * 2), 1) * -1e3
        h = tf.matmul(tf.nn.softmax(scores + tf.constant(mask, c.dtype)), v)
    c.add(h, 0, (*x.shape[:2], width))


# --- Control flow, functions. ---


@gene("op", 2)
def unrolled(c, g):
    """A recurrent cell, step by step without a loop."""
    x = c.pick(g, 0, is_series)
    units = c.width(g)
    w = c.variable(g, [x.shape[2] + units, units * 2])
    h = tf.zeros(tf.stack([c.rows(g), units]), c.dtype)
    for step in tf.unstack(x.tensor, x.shape[1], 1)[:3]:
        a, b = tf.split(tf.matmul(tf.concat([step, h], 1), w), 2, 1)
        h = tf.sigmoid(a) * tf.tanh(b) + 0.5 * h
    c.add(h, 0, (x.shape[0], units))


@gene("op", 2.5)
def loop(c, g):
    """A while loop of either version that goes over time, or repeats a layer."""
    v2 = g.chance(0.4)
    (tf1.enable_control_flow_v2 if v2 else tf1.disable_control_flow_v2)()
    c.v1_flow |= not v2
    how = g.below(4)
    if how < 2:
        x = c.pick(g, 0, is_series)
        units = c.width(g)
        w = c.variable(g, [x.shape[2] + units, units])
        major = tf.transpose(x.tensor, [1, 0, 2])
        steps = x.shape[1] if g.chance(0.5) else tf.shape(major)[0]
        start = tf.zeros(tf.stack([c.rows(g), units]), c.dtype)
        array = tf.TensorArray(c.dtype, size=steps, element_shape=None).unstack(major)
        outs = tf.TensorArray(c.dtype, size=steps, element_shape=None)

        def layer(i, h):
            read = tf.ensure_shape(array.read(i), [None, x.shape[2]])
            return i + 1, tf.tanh(tf.matmul(tf.concat([read, h], 1), w))

        def body(i, h, o):
            h = layer(i, h)[1]
            return i + 1, h, o.write(i, h)

        shape = [tf.TensorShape([]), tf.TensorShape([None, units]), None]
        if how == 0:
            shape[2] = tf.TensorShape(None)
            _, last, outs = tf1.while_loop(lambda i, h, o: i < steps, body, (0, start, outs), tuple(shape))
            c.add(tf.ensure_shape(last, [None, units]), 0, (x.shape[0], units))
            stacked = tf.ensure_shape(outs.stack(), [None, None, units])
            c.add(stacked, 1, (x.shape[1], x.shape[0], units))
        else:
            _, last = tf1.while_loop(lambda i, h: i < steps, layer, (0, start), tuple(shape[:2]))
            c.add(tf.ensure_shape(last, [None, units]), 0, (x.shape[0], units))
    else:
        x = c.pick(g, 0, is_matrix)
        w = c.variable(g, [x.shape[1], x.shape[1]])
        if how == 2:
            steps = 1 + g.below(3)
            _, h = tf1.while_loop(lambda i, h: i < steps, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w) + x.tensor)),
                                  (0, x.tensor))  # fmt: skip
        else:  # as often as a value of the whole batch says
            limit = tf.reduce_sum(tf.abs(x.tensor)) if g.chance(0.5) else tf.reduce_max(tf.abs(x.tensor)) * 3.0
            _, h = tf1.while_loop(
                lambda i, h: tf.logical_and(i < 3, tf.cast(i, c.dtype) < limit),
                lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))),
                (0, x.tensor),
            )
        c.add(h, 0, x.shape)


@gene("op", 2)
def conditional(c, g):
    v2 = g.chance(0.5)
    (tf1.enable_control_flow_v2 if v2 else tf1.disable_control_flow_v2)()
    c.v1_flow |= not v2
    x = c.pick(g, 0, is_float)
    flags = [t for t in c.pool if t.kind == B and t.rank == 0]
    if flags and g.chance(0.6):
        on = flags[0].tensor
    else:
        y = c.pick(g, 1, is_float)
        on = tf.reduce_mean(y.tensor) > 0.0 if g.chance(0.5) else tf.reduce_max(y.tensor) > 0.3
    w = c.variable(g, [])
    h = tf1.cond(on, lambda: tf.tanh(x.tensor) * w, lambda: x.tensor * 0.5)
    c.add(h, x.batch, x.shape)


@gene("op", 1.5)
def call(c, g):
    """A function of rows: a call that is inlined or stays."""
    x = c.pick(g, 0, is_matrix)
    w = c.variable(g, [x.shape[1], x.shape[1]])

    if g.chance(0.6):
        inner = tf.function(lambda a, b: tf.tanh(tf.matmul(a, b)) + tf.reduce_mean(a, 1, keepdims=True),
                            autograph=False)  # fmt: skip
        h = inner(x.tensor, tf.convert_to_tensor(w))
    else:
        from tensorflow.python.framework import function

        @function.Defun(c.dtype, c.dtype, func_name=f"layer{g.number}")
        def layer(a, b):
            return tf.sigmoid(tf.matmul(a, b))

        h = layer(x.tensor, tf.convert_to_tensor(w))
    h = tf.ensure_shape(h, [None if x.tensor.shape[0] is None else x.shape[0], x.shape[1]])
    c.add(h, 0, x.shape)


@gene("op", 0.8)
def mapped(c, g):
    """Something done for each row by a loop over the rows."""
    if not c.wild:
        raise Illegal("a loop over rows")
    x = c.pick(g, 0, is_matrix)
    w = c.variable(g, [x.shape[1]])
    c.v1_flow = True
    h = tf1.map_fn(lambda row: tf.tanh(row * w), x.tensor)
    c.add(tf.ensure_shape(h, [None, x.shape[1]]), 0, x.shape)


# --- What relates rows with rows, or sizes with sizes. ---


@gene("op", 3)
def mixed_rows(c, g):
    if not c.wild:
        raise Illegal("not wild")
    x = c.pick(g, 0, is_rows)
    t = x.tensor
    how = g.below(14)
    n = tf.shape(t)[0]
    if how == 0:
        c.add(t[::-1], 0, x.shape)
    elif how == 1:
        c.add(tf.cumsum(t, 0), 0, x.shape)
    elif how == 2:
        c.add(tf.reverse(t, [0]), 0, x.shape)
    elif how == 3:
        c.add(tf.nn.softmax(t, 0), 0, x.shape)
    elif how == 4:
        c.add(tf.concat([t, t * 2.0], 0), None, (2 * x.shape[0], *x.shape[1:]))
    elif how == 5:
        k = 1 + g.below(x.shape[0])
        c.add(t[:k], None, (k, *x.shape[1:]))
    elif how == 6:
        c.add(tf.roll(t, 1, 0), 0, x.shape)
    elif how == 7:
        k = 1 + g.below(x.shape[0])
        c.add(tf.gather(t, [g.below(x.shape[0]) for _ in range(k)]), None, (k, *x.shape[1:]))
    elif how == 8:
        c.add(tf.sort(t, 0), 0, x.shape)
    elif how == 9:
        h = tf.reshape(t, tf.stack([*x.shape[1:], n]) if g.chance(0.5) else [*x.shape[1:], -1])
        c.add(h, None, (*x.shape[1:], x.shape[0]))
    elif how == 10:
        c.add(tf.reshape(t, [-1]), None, (x.size,))
    elif how == 11:
        c.add(tf.cast(tf.range(n), c.dtype) * 0.1, 0, x.shape[:1])
    elif how == 12:
        c.add(tf.cast(tf.argmax(t, 0), c.dtype), None, x.shape[1:])
    else:
        c.add(tf.tile(t, [2] + [1] * (x.rank - 1)), None, (2 * x.shape[0], *x.shape[1:]))


@gene("op", 1)
def of_weights(c, g):
    """Values on which no row has an influence."""
    shape = [c.width(g) for _ in range(g.choice([1, 2]))]
    v = c.variable(g, shape)
    c.add(activation(g)(v * 1.0), None, tuple(shape))


@gene("op", 0.4)
def draw(c, g):
    """A draw for the whole batch, with a seed."""
    shape = [c.width(g)]
    if g.chance(0.5):
        h = tf.random.stateless_uniform(shape, [g.below(100), 3], dtype=c.dtype)
    else:
        h = tf.random.uniform(shape, seed=g.below(100) + 1, dtype=c.dtype)
        c.random = True
    c.add(h, None, tuple(shape))
