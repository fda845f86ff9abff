# SPDX-License-Identifier: Apache-2.0
"""Operands of every type, made of one feed that is split.

An operand is asked for by its shape, its elements (a domain) and its kind. `B` in a shape is the batch. A kind says how
replicas come by the tensor; each makes nodes of its own, since what one rule demands of an operand holds for all its users.
"""

import re
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
raw = tf.raw_ops

BATCH = 12  # rows, where a size has to be a number
COLUMNS = 1 << 17
Shape = Tuple  # of numbers and "B"


class Impossible(Exception):
    """There is no such operand."""


# --- Elements. ---


def matrices(random, shape, _low, _high):
    """Symmetric, and far from singular."""
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise Impossible
    x = random.uniform(0.0, 0.5, shape)
    return x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1]) * np.arange(1, shape[-1] + 1)


def in_order(random, shape, low, high):
    return np.sort(random.uniform(low, high, shape), axis=-1)


def boxes(random, shape, _low, _high):
    """y, x of a corner and of the other one."""
    x = random.uniform(0.0, 0.4, shape)
    return x + np.array([0.0, 0.0, 0.5, 0.5])


def uniform(random, shape, low, high):
    return random.uniform(low, high, shape)


def integers(random, shape, low, high):
    return random.randint(low, high, shape)


MAKERS: Dict[str, Callable] = {"spd": matrices, "sorted": in_order, "boxes": boxes, "": uniform, "int": integers}


class Domain:
    """`spd`, `(1,2)` for floats in between, `int(0,4)` for whole numbers, `sorted(0,1)`; what goes with any type."""

    def __init__(self, text: str):
        name, low, high = re.fullmatch(r"(\w*)(?:\((-?[\d.]+),(-?[\d.]+)\))?", text).groups()
        self.make = MAKERS[name]
        self.whole = name == "int"
        self.low, self.high = float(low or 0.05), float(high or 0.95)

    def draw(self, random, shape):
        return np.asarray(self.make(random, shape, self.low, self.high), np.float64)


def domain_of(dtype, text: Optional[str]) -> Domain:
    if text is not None:
        return Domain(text)
    return Domain("int(0,2)" if dtype == tf.bool else "(0.05,0.95)" if dtype.is_floating or dtype.is_complex else "int(1,7)")


# --- The world of a graph. ---


class World:
    """The feeds of one graph."""

    def __init__(self, static: bool, seed: int):
        self.static = static
        self.seed = seed
        self.rows = BATCH if static else None
        self.used = 0
        self.own_used = 0
        self.columns: List[Tuple[int, int, Callable]] = []  # of x: where, how many, what
        self.own: List[np.ndarray] = []
        self.feeds: Dict[str, Tuple[str, Callable]] = {}  # name: how replicas get it, its value for so many rows
        self.x = self._feed("x", [self.rows, COLUMNS], "split", self._values_of_x)
        self.w = self._feed("w", [COLUMNS], "copy", self._values_of_w)
        self.four = self._feed("four", [], "copy", lambda rows: np.int32(4), tf.int32)
        self.name = ""
        self.count = 0
        self.drawn: Dict[int, Dict[str, np.ndarray]] = {}  # by rows: the values of the feeds
        self.times: Dict[str, int] = {}  # by feed: as many rows as x, so many times
        self.sparse: Dict[Tuple, "Sparse"] = {}  # of one instance: by kind and shape of what they are made of

    def _feed(self, name, shape, how, value, dtype=tf.float32):
        self.feeds[name] = (how, value)
        return tf1.placeholder(dtype, shape, name=name)

    def _random(self, place):
        return np.random.RandomState((self.seed * 7919 + place) % (1 << 31))

    def _values_of_x(self, rows):
        x = np.zeros((rows, COLUMNS), np.float32)
        for place, size, make in self.columns:
            x[:, place : place + size] = make(self._random(place), rows).reshape(rows, size)
        return x

    def _values_of_w(self, rows):
        w = np.zeros(COLUMNS, np.float32)
        place = 0
        for value in self.own:
            w[place : place + value.size] = value.ravel()
            place += value.size
        return w

    def values(self, rows: int) -> Dict[str, np.ndarray]:
        if rows not in self.drawn:
            self.drawn[rows] = {name: value(rows) for name, (_, value) in self.feeds.items()}
        return self.drawn[rows]

    def flags(self, names) -> List[str]:
        return [f"--feed={name}={how}" for name, (how, _) in self.feeds.items() if name in names]

    def values_rows(self, name: str, rows: int) -> int:
        """The rows of a feed where x has `rows`."""
        return rows * self.times.get(name, 1)

    # The parts of operands.

    def of_rows(self, shape: Sequence[int], make, dtype, feed=None):
        """A tensor [rows, *shape] of the feed, of what `make` draws for so many rows."""
        size = int(np.prod(shape, dtype=np.int64))
        if feed is None:
            try:
                make(self._random(0), 2)
            except ValueError as error:
                raise Impossible from error
            place = self.used
            self.used += size
            if self.used > COLUMNS:
                raise Impossible
            self.columns.append((place, size, make))
            flat = raw.Slice(input=self.x, begin=[0, place], size=[-1, size])
        else:
            flat = feed
        return convert(raw.Reshape(tensor=flat, shape=[-1, *shape]), dtype)

    def of_all(self, value, dtype):
        place = self.own_used
        self.own_used += value.size
        if self.own_used > COLUMNS:
            raise Impossible
        self.own.append(value)
        flat = raw.Slice(input=self.w, begin=[place], size=[value.size])
        return convert(raw.Reshape(tensor=flat, shape=list(value.shape)), dtype)

    def feed_of_rows(self, shape, times, domain, how, unknown=False):
        """A feed of `times` as many rows, of which nothing else is known."""
        self.count += 1
        name = f"feed{self.count}"
        seed = self.count + 100000
        self.times[name] = times

        def value(rows):
            return domain.draw(self._random(seed), (rows * times, *shape)).astype(np.float32)

        rows = None if self.rows is None else self.rows * times
        return self._feed(name, None if unknown else [rows, *shape], how, value)

    def number_of_rows(self, dtype=tf.int32):
        shape = raw.Shape(input=self.x, out_type=tf.int32)
        rows = raw.StridedSlice(input=shape, begin=[0], end=[1], strides=[1], shrink_axis_mask=1)
        return rows if dtype == tf.int32 else raw.Cast(x=rows, DstT=dtype)


def convert(x, dtype):
    """Numbers as what an op takes."""
    if dtype == tf.float32:
        return x
    if dtype == tf.bool:
        return raw.Greater(x=x, y=0.5)
    if dtype == tf.string:
        return raw.AsString(input=raw.Cast(x=x, DstT=tf.int32))
    if dtype == tf.complex64:
        return raw.Complex(real=x, imag=raw.Mul(x=x, y=0.5))
    if dtype.is_quantized:
        plain = {tf.quint8: tf.uint8, tf.qint8: tf.int8, tf.qint32: tf.int32}.get(dtype)
        if plain is None:
            raise Impossible
        return raw.Bitcast(input=raw.Cast(x=x, DstT=plain), type=dtype)
    return raw.Cast(x=x, DstT=dtype)


# --- Kinds. ---


def sized(shape: Shape, batch) -> List:
    return [batch if size == "B" else size for size in shape]


def along(world, shape: Shape, domain, dtype, axis, times=1, make=None):
    """Split along `axis`, which has `times` as many rows as the batch."""
    if axis >= len(shape):
        raise Impossible
    rest = sized([*shape[:axis], *shape[axis + 1 :]], 4)
    moved = [axis, *[i for i in range(len(shape)) if i != axis]]  # where axis i of [rows, *rest] is

    def draw(random, rows):
        # Drawn in the true order of axes: some domains look at the last ones.
        x = np.transpose(domain.draw(random, (*rest[:axis], rows * times, *rest[axis:])), moved)
        return x.reshape(rows, times, *rest)

    x = world.of_rows([times, *rest] if times != 1 else rest, make or draw, dtype)
    if times != 1:
        x = raw.Reshape(tensor=x, shape=[-1, *rest])
    return x if axis == 0 else raw.Transpose(x=x, perm=[*range(1, axis + 1), 0, *range(axis + 1, len(shape))])


def terms(world, shape, domain, dtype, how="sum", batch=BATCH):
    """Rows of tensors: what they are together lies in the domain."""
    full = sized(shape, batch)

    def draw(random, rows):
        value = domain.draw(random, (rows, *full))
        if how != "sum":
            return value
        if domain.whole:
            value[:-1] = 0  # the last row has all of the sum
            return value
        return value / max(rows, 1)

    return world.of_rows(full, draw, dtype)


def partial(how):
    def make(world, shape, domain, dtype):
        if how in ("And", "Or"):
            if dtype != tf.bool:
                raise Impossible
            rows = terms(world, shape, domain, dtype, how)
            return (raw.All if how == "And" else raw.Any)(input=rows, axis=0)
        if not (dtype.is_floating or dtype.is_integer or (dtype.is_complex and how == "Sum")) or dtype.size < 4:
            raise Impossible
        return getattr(raw, how)(input=terms(world, shape, domain, dtype, how.lower()), axis=0)

    return make


def scaled(of, power):
    """Divided by the rows of a replica (power 1), or multiplied by them."""

    def make(world, shape, domain, dtype):
        if not (dtype.is_floating or dtype.is_complex):
            raise Impossible
        rows = world.number_of_rows(dtype)
        x = of(world, shape, domain, dtype)
        if power > 0:
            return raw.RealDiv(x=x, y=rows)
        return raw.Mul(x=raw.Mul(x=x, y=raw.Cast(x=1.0 / BATCH, DstT=dtype)), y=rows)

    return make


def split(axis):
    return lambda world, shape, domain, dtype: along(world, shape, domain, dtype, axis)


def by_design(world, shape, domain, dtype):
    """Split where the shape says."""
    if "B" not in shape:
        raise Impossible
    return along(world, shape, domain, dtype, shape.index("B"))


def last(world, shape, domain, dtype):
    if len(shape) < 3:
        raise Impossible
    return along(world, shape, domain, dtype, len(shape) - 1)


def copied(batch):
    def make(world, shape, domain, dtype):
        if batch != BATCH and "B" not in shape:
            raise Impossible
        return world.of_all(domain.draw(world._random(world.own_used + 50000), sized(shape, batch)), dtype)

    return make


def constant(world, shape, domain, dtype):
    value = domain.draw(world._random(world.own_used + 70000), sized(shape, BATCH))
    world.own_used += 1
    world.own.append(np.zeros(1))
    if dtype == tf.string:
        return tf.constant(np.vectorize(lambda v: str(int(v)), otypes=[object])(value), tf.string)
    return tf.constant(value > 0.5 if dtype == tf.bool else value.astype(dtype.as_numpy_dtype))


def zeros_of(of):
    def make(world, shape, domain, dtype):
        if dtype == tf.string:
            raise Impossible
        return raw.ZerosLike(x=of(world, shape, domain, dtype))

    return make


def zeros_of_size(with_fed):
    """Zeros whose shape is made of the rows, and of another size that is fed."""

    def make(world, shape, domain, dtype):
        if dtype == tf.string or "B" not in shape or (with_fed and 4 not in shape):
            raise Impossible
        sizes = [world.number_of_rows() if s == "B" else world.four if with_fed and s == 4 else tf.constant(s) for s in shape]
        zero = tf.constant(np.zeros([], dtype.as_numpy_dtype))
        return raw.Fill(dims=raw.Pack(values=sizes, axis=0), value=zero)

    return make


def zero_constant(world, shape, domain, dtype):
    if dtype == tf.string:
        raise Impossible
    return tf.constant(np.zeros(sized(shape, BATCH), dtype.as_numpy_dtype))


def times_zero(world, shape, domain, dtype):
    if not dtype.is_floating:
        raise Impossible
    return raw.Mul(x=by_design(world, shape, domain, dtype), y=tf.zeros([], dtype))


def zeros_of_found(world, shape, domain, dtype):
    """As many zeros as a condition selects rows."""
    if dtype == tf.string or "B" not in shape:
        raise Impossible
    where = raw.Where(condition=along(world, ("B",), Domain("int(0,2)"), tf.bool, 0))
    found_rows = raw.StridedSlice(input=raw.Shape(input=where), begin=[0], end=[1], strides=[1], shrink_axis_mask=1)
    return raw.Fill(dims=raw.Pack(values=[found_rows if s == "B" else tf.constant(s) for s in shape], axis=0), value=tf.zeros([], dtype))


def zeros_of_longest(world, shape, domain, dtype):
    """Zeros of a size that is the largest of a number in each row."""
    if dtype == tf.string or 4 not in shape:
        raise Impossible

    def lengths(random, rows):
        value = random.randint(1, 5, (rows,))
        value[:1] = 4
        return value

    longest = raw.Max(input=world.of_rows([], lengths, tf.int32), axis=0)
    sizes_of = [world.number_of_rows() if s == "B" else longest if s == 4 else tf.constant(s) for s in shape]
    return raw.Fill(dims=raw.Pack(values=sizes_of, axis=0), value=tf.zeros([], dtype))


def of_fed_size(world, shape, domain, dtype):
    """Rows of which a size is fed."""
    if "B" not in shape or 4 not in shape:
        raise Impossible
    dims = [tf.constant(-1) if s == "B" else world.four if s == 4 else tf.constant(s) for s in shape]
    return raw.Reshape(tensor=by_design(world, shape, domain, dtype), shape=raw.Pack(values=dims, axis=0))


def joined(world, shape, domain, dtype):
    """Rows of two tensors, one after the other."""
    if "B" not in shape:
        raise Impossible
    axis = shape.index("B")
    parts = [along(world, shape, domain, dtype, axis) for _ in range(2)]
    return raw.ConcatV2(values=parts, axis=axis)


def twice(world, shape, domain, dtype):
    """As many rows as `joined`, in order."""
    if "B" not in shape or shape.index("B") != 0:
        raise Impossible
    return along(world, shape, domain, dtype, 0, times=2)


def row_numbers(world, shape, domain, dtype):
    if dtype not in (tf.int32, tf.int64) or tuple(shape) not in (("B",), ("B", 1)):
        raise Impossible
    numbers = raw.Range(start=0, limit=world.number_of_rows(), delta=1)
    if dtype != tf.int32:
        numbers = raw.Cast(x=numbers, DstT=dtype)
    return numbers if len(shape) == 1 else raw.ExpandDims(input=numbers, axis=1)


def sizes(world, shape, domain, dtype):
    """The rows of a replica, as an integer."""
    if dtype not in (tf.int32, tf.int64) or len(shape) > 1 or "B" in shape:
        raise Impossible
    rows = world.number_of_rows(dtype)
    if not shape:
        return rows
    rest = [tf.constant(4, dtype) for _ in range(shape[0] - 1)]
    return raw.Pack(values=[rows, *rest], axis=0)


def largest(world, shape, domain, dtype):
    """Where a row is largest: indices that replicas make."""
    if dtype not in (tf.int32, tf.int64) or not shape or shape[0] != "B":
        raise Impossible
    rows = along(world, [*shape, 4], Domain(""), tf.float32, 0)
    return raw.ArgMax(input=rows, dimension=len(shape), output_type=dtype)


def found(world, shape, domain, dtype):
    """Numbers of the rows that a condition selects."""
    if dtype != tf.int64 or tuple(shape) not in (("B",), ("B", 1)):
        raise Impossible
    where = raw.Where(condition=along(world, ("B",), Domain("int(0,2)"), tf.bool, 0))
    return where if len(shape) == 2 else raw.Reshape(tensor=where, shape=[-1])


def selected(world, shape, domain, dtype):
    """The rows that a condition selects."""
    if not shape or shape[0] != "B":
        raise Impossible
    where = raw.Where(condition=along(world, ("B",), Domain("int(0,2)"), tf.bool, 0))
    numbers = raw.Reshape(tensor=where, shape=[-1])
    return raw.GatherV2(params=along(world, shape, domain, dtype, 0), indices=numbers, axis=0)


def joined_mask(world):
    return joined(world, ("B",), Domain("int(0,2)"), tf.bool)


def found_joined(world, shape, domain, dtype):
    """Numbers of the rows that a condition selects among those of two tensors, one after the other."""
    if dtype not in (tf.int32, tf.int64) or tuple(shape) not in (("B",), ("B", 1)):
        raise Impossible
    where = convert(raw.Where(condition=joined_mask(world)), dtype)
    return where if len(shape) == 2 else raw.Reshape(tensor=where, shape=[-1])


def selected_joined(world, shape, domain, dtype):
    """The rows that it selects."""
    if not shape or shape[0] != "B":
        raise Impossible
    numbers = raw.Reshape(tensor=raw.Where(condition=joined_mask(world)), shape=[-1])
    return raw.GatherV2(params=joined(world, shape, domain, dtype), indices=numbers, axis=0)


def found_steps(world, shape, domain, dtype):
    """Places that a condition selects where the rows are not first."""
    if dtype not in (tf.int32, tf.int64) or tuple(shape) != ("B", 2):
        raise Impossible
    return convert(raw.Where(condition=along(world, (2, "B"), Domain("int(0,2)"), tf.bool, 1)), dtype)


def other_feed(times, unknown=False):
    def make(world, shape, domain, dtype):
        if not shape or shape[0] != "B":
            raise Impossible
        feed = world.feed_of_rows(sized(shape[1:], 4), times, domain, "split", unknown)
        return convert(feed, dtype)

    return make


def narrow(world, shape, domain, dtype):
    """The last axis has one element."""
    if len(shape) < 2 or shape[0] != "B" or domain.make is matrices:
        raise Impossible
    return along(world, [*shape[:-1], 1], domain, dtype, 0)


def square(world, shape, domain, dtype):
    """As wide as the batch is long, by chance."""
    if len(shape) < 2 or shape[0] != "B" or domain.make is matrices:
        raise Impossible
    return along(world, [*shape[:-1], BATCH], domain, dtype, 0)


KINDS: Dict[str, Callable] = {
    "rows": by_design,
    "copy": copied(BATCH),
    "copy1": copied(1),
    "const": constant,
    "axis0": split(0),
    "axis1": split(1),
    "axis2": split(2),
    "last": last,
    "sum": partial("Sum"),
    "min": partial("Min"),
    "max": partial("Max"),
    "and": partial("And"),
    "or": partial("Or"),
    "mean": scaled(partial("Sum"), 1),
    "sum*b": scaled(partial("Sum"), -1),
    "copy/b": scaled(copied(BATCH), 1),
    "copy*b": scaled(copied(BATCH), -1),
    "rows/b": scaled(by_design, 1),
    "rows*b": scaled(by_design, -1),
    "zero rows": zeros_of(by_design),
    "zero sum": zeros_of(partial("Sum")),
    "zero const": zero_constant,
    "zero size": zeros_of_size(False),
    "zero fed": zeros_of_size(True),
    "zero found": zeros_of_found,
    "zero longest": zeros_of_longest,
    "times zero": times_zero,
    "joined": joined,
    "twice": twice,
    "numbers": row_numbers,
    "size": sizes,
    "largest": largest,
    "found": found,
    "selected": selected,
    "found joined": found_joined,
    "selected joined": selected_joined,
    "found steps": found_steps,
    "other": other_feed(1),
    "other2": other_feed(2),
    "unknown": other_feed(1, unknown=True),
    "fed": of_fed_size,
    "narrow": narrow,
    "square": square,
}
# Those that have the shape that was asked for: with the rows of the feed, and without.
OF_THAT_SIZE = {
    True: ["rows", "rows/b", "rows*b", "zero rows", "zero size", "times zero", "other", "unknown"],
    False: ["copy", "const", "sum", "mean", "sum*b", "min", "max", "copy/b", "copy*b", "zero const", "zero sum"],
}


class Sparse:
    """A sparse tensor of what is not zero in a matrix, as columns of features make it, and what is made of that."""

    def __init__(self, source, dtype):
        self.source, self.dtype = source, dtype
        self.made: Dict[str, tf.Tensor] = {}

    def __getitem__(self, name: str):
        if name not in self.made:
            self.made[name] = getattr(self, name)()
        return self.made[name]

    def indices(self):
        return raw.Where(condition=self.source)

    def values(self):
        return convert(raw.GatherNd(params=self.source, indices=self["indices"]), self.dtype)

    def shape(self):
        return raw.Shape(input=self.source, out_type=tf.int64)

    def rows(self):
        return raw.StridedSlice(input=self["indices"], begin=[0, 0], end=[0, 1], strides=[1, 1], begin_mask=1, end_mask=1, shrink_axis_mask=2)

    def _filled(self):
        default = tf.constant("0" if self.dtype == tf.string else 0, self.dtype)
        return raw.SparseFillEmptyRows(indices=self["indices"], values=self["values"], dense_shape=self["shape"], default_value=default)

    def filled(self):
        return self["_filled"].output_indices

    def filled_values(self):
        return self["_filled"].output_values

    def filled_rows(self):
        rows = raw.StridedSlice(input=self["filled"], begin=[0, 0], end=[0, 1], strides=[1, 1], begin_mask=1, end_mask=1, shrink_axis_mask=2)
        return raw.Cast(x=rows, DstT=tf.int32)

    def back(self):
        return self["_filled"].reverse_index_map

    def _distinct(self):
        return raw.Unique(x=self["filled_values"], out_idx=tf.int32)

    def ids(self):
        return self["_distinct"].y

    def which(self):
        return self["_distinct"].idx

    def count(self):
        return raw.Size(input=self["ids"], out_type=tf.int32)

    def looked(self):
        """Rows of a table for the distinct values."""
        table = tf.constant(np.linspace(0.1, 0.9, 15).reshape(5, 3), tf.float32)
        return raw.GatherV2(params=table, indices=self["ids"], axis=0)

    def gradient(self):
        """A row for each row of the matrix."""
        return raw.Cast(x=self.source, DstT=tf.float32)


# Parts that have a type of their own; values have that of the operand, and those that are looked up are whole numbers.
PARTS = {"indices": tf.int64, "shape": tf.int64, "rows": tf.int64, "filled": tf.int64, "filled_rows": tf.int32, "back": tf.int64,
         "ids": tf.int32, "which": tf.int32, "count": tf.int32, "looked": tf.float32, "gradient": tf.float32}  # fmt: skip


def part(world: World, kind: str, shape: Shape, dtype, name: str):
    """A part of the sparse tensor that all operands of an instance have which are of one kind and shape."""
    looked_up = name in ("ids", "which", "count", "looked", "filled_rows", "gradient")
    key = (kind, shape, tf.int32 if looked_up else dtype if name in ("values", "filled_values") else None)
    of = world.sparse.get(key)
    if of is None:
        alike = [sparse for (*which, _), sparse in world.sparse.items() if which == [kind, shape]]
        source = alike[0].source if alike else KINDS[kind](world, shape, Domain("int(0,4)"), tf.int32)
        of = world.sparse[key] = Sparse(source, key[2] or tf.int32)
        if alike:
            of.made = {made: tensor for made, tensor in alike[0].made.items() if made in ("indices", "shape", "rows")}
    if PARTS.get(name, dtype) != dtype:
        return convert(of[name], dtype)
    return of[name]


def operand(world: World, kind: str, shape: Shape, dtype, domain: Optional[str]):
    """Raises Impossible where a kind has no such tensor."""
    return KINDS[kind](world, shape, domain_of(dtype, domain), dtype)
