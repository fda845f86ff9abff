# SPDX-License-Identifier: Apache-2.0
"""Genes about sizes: ops that say that two tensors have equally many rows, where they say so, and what relies on it.

    draw(seed)     a plan of this family

Feeds have row counts that are equal, multiples of each other or unrelated, others in each step. A *statement* is an op that
fails unless two tensors have equally many rows. It stands in the trunk, in a branch, in a loop that may take no turn, in a
function, behind an assertion, or where no run fetches it. A *consumer* reads one tensor by the rows of another.

Each gene says what a step needs (`need`) so that one device runs it, under the conditions of the place where it stands. The
row counts and predicates of the steps are drawn until all of that holds.
"""

import contextlib
import dataclasses
import random
from typing import Callable, Dict, List, Optional

import numpy as np
import tensorflow.compat.v2 as tf
from genes import WEIGHTS, Context, Gene, Illegal, Plan, gene, tf1

WIDTH = 4
TRIES = 400  # draws of the sizes of one step


@dataclasses.dataclass
class Env:
    """The sizes and predicates of one step."""

    rows: Dict[str, int]
    flags: Dict[str, bool]
    counts: Dict[str, int]
    patterns: Dict[str, str]
    before: Optional["Env"]  # that of the step before


@dataclasses.dataclass(frozen=True)
class Rows:
    """A matrix of the pool; `rows` gives its row count in a step."""

    tensor: tf.Tensor
    number: str
    rows: Callable[[Env], int]
    feed: str = ""  # the name, if it is one
    source: bool = False  # a feed or a table
    lies: bool = False  # its static shape is not that of the step
    kind: str = "matrix"
    batch: Optional[int] = None


@dataclasses.dataclass(frozen=True)
class Number:
    tensor: tf.Tensor
    number: str
    kind: str = "number"
    batch: Optional[int] = None


# Which rows of a feed have a first column above 0.
PATTERNS = {
    "some": lambda i, n: i % 3 != 1,
    "all": lambda i, n: True,
    "first half": lambda i, n: 2 * i < n,
    "last half": lambda i, n: 2 * i >= n,
    "one": lambda i, n: i == 0,
    "none": lambda i, n: False,
}


class Sizes:
    """The steps of a graph, read from its genes."""

    def __init__(self, context: Context):
        self.context = context
        self.head = context.head
        self.feeds: Dict[str, Optional[int]] = {}  # name: the static row count
        self.flags: List[str] = []
        self.counts: Dict[str, int] = {}  # name: numbers are below this
        self.sizes: Dict[str, tf.Tensor] = {}  # the row counts that are fed as well, by feed
        self.needs: List[Callable[[Env], bool]] = []
        self.guards: List[Callable[[Env], bool]] = []
        self.fetches: Dict[str, Callable[[Env], bool]] = {}
        self.order: List[tf.Tensor] = []  # what updates wait for
        self.assigns: List[Callable[[], tf.Operation]] = []
        self.envs: Optional[List[Env]] = None

    def need(self, test):
        guards = tuple(self.guards)
        self.needs.append(lambda env: not all(guard(env) for guard in guards) or test(env))

    @contextlib.contextmanager
    def under(self, guard):
        self.guards.append(guard)
        try:
            yield
        finally:
            self.guards.pop()

    def fetch(self, tensor, when=lambda env: True):
        self.fetches[tensor.name] = when

    # --- The steps. ---

    def draw_env(self, rng, last: bool, before) -> Env:
        n, unit = self.head["replicas"], self.head["replicas"] * self.head["rows"]
        rows: Dict[str, int] = {}
        for name, static in self.feeds.items():
            if static is not None:
                rows[name] = static
                continue
            others = [r for r in rows.values() if r]
            how = 0.0 if self.head["equal"] else rng.random()
            if others and how < 0.3:
                rows[name] = rng.choice(others)
            elif others and how < 0.55:
                rows[name] = rng.choice(others) * rng.choice([2, 2, 3])
            else:
                rows[name] = rng.choice([unit, unit, 2 * unit, n * rng.randint(1, 4)])
            if self.head["equal"] and others:
                continue
            if self.head["empty"] and rng.random() < 0.2:
                rows[name] = 0
            if self.head["odd"] and last and rng.random() < 0.6:
                rows[name] = rng.choice([1, n - 1, n + 1, unit - 1, unit + 1, 2 * unit - 1])
        flags = {name: rng.random() < 0.5 for name in self.flags}
        counts = {name: min(rng.choice([0, 0, 1, 2]), below - 1) for name, below in self.counts.items()}
        patterns = {name: rng.choice(list(PATTERNS)) for name in self.feeds}
        return Env(rows, flags, counts, patterns, before)

    def solve(self) -> List[Env]:
        if self.envs is None:
            found, steps = [], self.head["steps"]
            for step in range(steps):
                rng = random.Random(f"sizes/{self.context.plan.seed}/{step}")
                before = found[-1] if found else None
                for _ in range(TRIES):
                    env = self.draw_env(rng, step == steps - 1, before)
                    if all(need(env) for need in self.needs):
                        found.append(env)
                        break
                else:
                    raise Illegal("no sizes with which one device runs")
            self.envs = found
        return self.envs

    def fetched(self) -> List[List[str]]:
        """The fetches of each step."""
        return [[name for name, when in self.fetches.items() if when(env)] for env in self.solve()]

    # --- Feeds. ---

    def feed_rows(self, name: str, static: Optional[int]) -> tf.Tensor:
        c = self.context
        t = tf1.placeholder(c.dtype, [static, WIDTH], name=name)
        self.feeds[name] = static

        def make(rng):
            env = self.solve()[c.step]
            n, above = env.rows[name], PATTERNS[env.patterns[name]]
            value = rng.uniform(-1, 1, (n, WIDTH))
            for i in range(n):
                value[i, 0] = abs(value[i, 0]) + 0.05 if above(i, n) else -abs(value[i, 0]) - 0.05
            return value.astype(c.dtype.as_numpy_dtype)

        c.feeds[t.name] = make
        c.split.append(t.name)
        return t

    def feed_size(self, name: str):
        """The row count of a feed is fed, too."""
        t = tf1.placeholder(tf.int32, [], name=f"rows_of_{name}")
        self.sizes[name] = t
        self.context.feeds[t.name] = lambda rng: np.array(self.solve()[self.context.step].rows[name], np.int32)

    def flag(self, g: Gene):
        """A predicate that is fed."""
        name = f"flag{g.number}_{len(self.flags)}"
        t = tf1.placeholder(tf.bool, [], name=name)
        self.flags.append(name)
        self.context.feeds[t.name] = lambda rng: np.array(self.solve()[self.context.step].flags[name])
        return t, lambda env: env.flags[name]

    def count(self, g: Gene, below: int):
        """A number that is fed."""
        name = f"count{g.number}_{len(self.counts)}"
        t = tf1.placeholder(tf.int32, [], name=name)
        self.counts[name] = below
        self.context.feeds[t.name] = lambda rng: np.array(self.solve()[self.context.step].counts[name], np.int32)
        return t, lambda env: env.counts[name]


def sizes(c: Context) -> Sizes:
    if not hasattr(c, "sizes"):
        c.sizes = Sizes(c)
    return c.sizes


def add(c, tensor, rows, **more) -> Rows:
    if not more.get("lies"):
        tensor.set_shape([None, WIDTH])
    item = Rows(tensor, f"{c.gene.number}.{c.serial}", rows, **more)
    c.serial += 1
    c.pool.append(item)
    return item


def add_number(c, tensor):
    tensor.set_shape([])
    c.pool.append(Number(tensor, f"{c.gene.number}.{c.serial}"))
    c.serial += 1


def is_matrix(t):
    return t.kind == "matrix" and not t.lies


def is_feed(t):
    return t.kind == "matrix" and bool(t.feed)


def is_source(t):
    return t.kind == "matrix" and t.source


def pair(c, g):
    """Two matrices: mostly feeds or tables, and in many graphs always the same two."""
    sources = [t for t in c.pool if is_source(t)][:2]
    if c.head["pair"] and len(sources) == 2 and g.chance(0.85):
        return sources if g.chance(0.5) else sources[::-1]
    test = is_source if g.chance(0.6) else is_matrix
    a = c.pick(g, "a", test)
    return a, c.pick(g, "b", test, lambda t: t.number != a.number)


def size(c, g, item):
    """The row count of a matrix, as programs write it."""
    fed, t = sizes(c).sizes.get(item.feed), item.tensor
    if fed is not None and g.chance(0.6):
        return fed
    how = g.below(6)
    if how == 0:
        return tf.shape(t[:, 0])[0]
    if how == 1:
        return tf.cast(tf.shape(t, out_type=tf.int64)[0], tf.int32)
    if how == 2:
        return tf.size(t) // WIDTH
    return tf.shape(t)[0]


def equal_rows(a, b):
    return lambda env: a.rows(env) == b.rows(env)


# --- Statements: two matrices have equally many rows. Each gives a matrix with these rows, or a number. ---


def broadcasts(s, a, b):
    """As many rows, or one that is repeated."""
    s.need(lambda env: a.rows(env) == b.rows(env) or 1 in (a.rows(env), b.rows(env)))
    return lambda env: b.rows(env) if a.rows(env) == 1 else a.rows(env)


def state_arithmetic(c, g, s, a, b):
    op = g.choice([tf.add, tf.subtract, tf.multiply, tf.math.squared_difference, tf.maximum])
    return op(a.tensor, b.tensor), broadcasts(s, a, b)


def state_strict(c, g, s, a, b):
    s.need(equal_rows(a, b))
    x, y = a.tensor, b.tensor
    made = g.choice([
        lambda: tf.add_n([x, y]),
        lambda: tf1.where(x > 0.0, x, y),
        lambda: tf.concat([x, y], 1)[:, 2 : 2 + WIDTH],
        lambda: tf.reduce_sum(tf.stack([x, y]), 0),
        lambda: tf.linalg.matmul(tf.expand_dims(x, 2), tf.expand_dims(y, 1))[:, 1],
    ])()  # fmt: skip
    return made, a.rows


def state_reshape(c, g, s, a, b):
    s.need(equal_rows(a, b))
    n = size(c, g, b)
    shape = tf.shape(b.tensor) if g.chance(0.4) else tf.stack([n, WIDTH])
    return tf.reshape(tf.sin(a.tensor), shape), a.rows


def state_broadcast(c, g, s, a, b):
    s.need(lambda env: a.rows(env) in (1, b.rows(env)))
    return tf.broadcast_to(a.tensor, tf.shape(b.tensor)) * 0.5, b.rows


def state_number(c, g, s, a, b):
    """One of them has as many rows as a constant, which is added, or as a shape says."""
    k = c.batch * g.choice([1, 1, 2])
    s.need(lambda env: a.rows(env) == k)
    how = g.below(3)
    if how == 0:
        return a.tensor + tf.constant(c.value(g, [k, WIDTH])), a.rows
    if how == 1:
        return tf.ensure_shape(a.tensor, [k, WIDTH]) * 1.5, a.rows
    return tf.reshape(a.tensor, [k, WIDTH]) * 1.5, a.rows


def state_product(c, g, s, a, b):
    s.need(equal_rows(a, b))
    product = tf.matmul(a.tensor, b.tensor, transpose_a=True)
    return tf.reduce_sum(product) * 0.1, None


def state_loss(c, g, s, a, b):
    s.need(equal_rows(a, b))
    s.need(lambda env: a.rows(env) > 0)
    x, y = a.tensor, b.tensor
    loss = g.choice([
        lambda: tf1.losses.mean_squared_error(x, y, loss_collection=None),
        lambda: tf1.losses.sigmoid_cross_entropy(tf.sigmoid(x), y, loss_collection=None),
        lambda: tf1.losses.huber_loss(x, y, loss_collection=None),
        lambda: tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=tf.nn.softmax(x), logits=y)),
        lambda: tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.argmax(x, 1), logits=y)),
        lambda: tf1.losses.cosine_distance(tf.nn.l2_normalize(x, 1), tf.nn.l2_normalize(y, 1), 1, loss_collection=None),
    ])()  # fmt: skip
    return tf.cast(loss, c.dtype), None


def state_assert(c, g, s, a, b):
    """An assertion that sizes or shapes are equal, and something that waits for it."""
    s.need(equal_rows(a, b))
    x, y = a.tensor, b.tensor
    check = g.choice([
        lambda: tf1.assert_equal(tf.shape(x)[0], tf.shape(y)[0]),
        lambda: tf1.assert_equal(tf.shape(x), tf.shape(y)),
        lambda: tf1.Assert(tf.equal(tf.shape(y)[0], tf.shape(x)[0]), [tf.shape(x)]),
        lambda: tf1.Assert(tf.reduce_all(tf.equal(tf.shape(y), tf.shape(x))), ["sizes"]),
    ])()  # fmt: skip
    with tf.control_dependencies([check] if check is not None else []):
        if g.chance(0.5):
            return tf.constant(0.8, c.dtype), None
        return tf.identity(x), a.rows


STATEMENTS = [state_arithmetic] * 4 + [state_strict] * 3 + [state_assert] * 3 + [
    state_reshape, state_broadcast, state_product, state_loss, state_number]  # fmt: skip


def square(t):
    return tf.reduce_mean(tf.square(t))


def as_number(c, g, s, made, rows):
    """A number near 1 of what a statement gives."""
    if rows is None:
        return 1.0 + 0.1 * made
    if g.chance(0.5):
        s.need(lambda env: rows(env) > 0)
        return 1.0 + 0.2 * square(made)
    return 1.0 + 0.05 * tf.reduce_sum(tf.tanh(made))


# --- Consumers: one matrix is read by the rows of another. ---


def consume(c, g, s, a, b):
    """A matrix with the rows of `a`, made of rows of `b`."""
    n = size(c, g, a)
    y = b.tensor
    enough = lambda: s.need(lambda env: b.rows(env) >= a.rows(env))
    how = g.below(5 if b.lies else 12)
    if how <= 2:
        enough()
        return tf.gather(y, tf.range(n)), a.rows
    if how == 3:
        enough()
        return y[:n], a.rows
    if how == 4:
        enough()
        return tf.slice(y, [0, 0], tf.stack([n, WIDTH])), a.rows
    if how == 5:
        enough()
        return tf.split(y, tf.stack([n, tf.shape(y)[0] - n]), num=2)[0], a.rows
    if how == 6:  # as many rows at the end
        enough()
        return y[tf.shape(y)[0] - n :], a.rows
    if how == 7:  # sums of rows that lie apart by the rows of the other
        s.need(lambda env: a.rows(env) > 0)
        ids = tf.math.floormod(tf.range(tf.shape(y)[0]), n)
        return tf.math.unsorted_segment_sum(y, ids, n), a.rows
    if how == 8:
        s.need(lambda env: a.rows(env) > 0 and b.rows(env) % a.rows(env) == 0 and b.rows(env) > 0)
        parts = tf.reshape(y, tf.stack([n, -1]) if g.chance(0.5) else tf.stack([n, tf.size(y) // n]))
        return tf.tile(tf.reduce_sum(parts, 1, keepdims=True), [1, WIDTH]) * 0.3, a.rows
    if how == 9:
        s.need(lambda env: b.rows(env) <= a.rows(env))
        return tf.pad(y, tf.stack([tf.stack([0, n - tf.shape(y)[0]]), tf.constant([0, 0])])), a.rows
    if how == 10:
        s.need(lambda env: b.rows(env) <= a.rows(env))
        return tf.math.unsorted_segment_sum(y, tf.range(tf.shape(y)[0]), n), a.rows
    enough()
    return tf.linalg.matmul(tf.eye(n, tf.shape(y)[0], dtype=c.dtype), y), a.rows


# --- Predicates. ---


def predicate(c, g, s, a, b):
    """A scalar of type bool, and its value in a step; it may compare the sizes of two matrices."""
    how = g.below(10)
    if how <= 2:
        return s.flag(g)
    n, m = size(c, g, a), size(c, g, b)
    if how <= 5:
        return tf.equal(n, m), equal_rows(a, b)
    if how == 6:
        return tf.reduce_all(tf.equal(tf.shape(a.tensor), tf.shape(b.tensor))), equal_rows(a, b)
    if how == 7:
        return tf.not_equal(n, m), lambda env: a.rows(env) != b.rows(env)
    if how == 8:
        return tf.less(n, m), lambda env: a.rows(env) < b.rows(env)
    k = c.batch
    return tf.greater(n, k), lambda env: a.rows(env) > k


def flow(c, g):
    v2 = g.chance(0.4)
    (tf1.enable_control_flow_v2 if v2 else tf1.disable_control_flow_v2)()
    c.v1_flow |= not v2
    return v2


# --- Genes. ---


@gene("size_feed")
def sizes_feed(c, g):
    """Rows that are fed, of unknown number or of a static one."""
    s = sizes(c)
    name = f"x{g.number}"
    static = c.batch * g.choice([1, 1, 2]) if c.static and g.chance(0.5) else None
    t = s.feed_rows(name, static)
    add(c, t, lambda env: env.rows[name], feed=name, source=True)
    if g.chance(0.12):
        s.feed_size(name)


@gene("size_op", 2)
def sizes_layer(c, g):
    """A layer, or another op on each row."""
    a = c.pick(g, 0, is_matrix)
    h = tf.matmul(a.tensor, c.variable(g, [WIDTH, WIDTH])) if g.chance(0.6) else a.tensor * 0.7
    add(c, tf.tanh(h) if g.chance(0.5) else h, a.rows)


@gene("size_op", 0.8)
def sizes_table(c, g):
    """A constant or a variable of some rows, such as an embedding of positions."""
    k = c.batch * g.choice([1, 1, 2, 3])
    value = c.value(g, [k, WIDTH])
    t = tf.constant(value) if g.chance(0.4) else c.variable(g, None, value=value) + 0.0
    add(c, t, lambda env: k, source=True)


@gene("size_op", 0.6)
def sizes_ratio(c, g):
    """A number made of the sizes of two matrices."""
    s = sizes(c)
    a, b = pair(c, g)
    n, m = size(c, g, a), size(c, g, b)
    how = g.below(4)
    if how == 0:
        add_number(c, 1.0 + 0.5 * tf.cast(tf.equal(n, m), c.dtype))
    elif how == 1:
        add_number(c, tf1.where(tf.less(n, m), tf.constant(0.7, c.dtype), tf.constant(1.3, c.dtype)))
    elif how == 2:
        s.need(lambda env: b.rows(env) > 0)
        add_number(c, 0.5 + tf.cast(n, c.dtype) / tf.cast(m, c.dtype))
    else:
        s.need(lambda env: b.rows(env) > 0)
        add_number(c, 1.0 + 0.5 * tf.cast(n // m, c.dtype))


@gene("size_op", 0.3)
def sizes_walk(c, g):
    """A loop over the rows of one matrix that reads those of another."""
    s = sizes(c)
    flow(c, g)
    a, b = pair(c, g)
    s.need(lambda env: b.rows(env) >= a.rows(env))
    n = size(c, g, a)
    body = lambda i, acc: (i + 1, acc + 0.05 * tf.reduce_sum(tf.tanh(b.tensor[i])))
    add_number(c, tf1.while_loop(lambda i, acc: i < n, body, [0, tf.constant(1.0, c.dtype)])[1])


@gene("size_op", 4)
def sizes_consumer(c, g):
    s = sizes(c)
    a, b = pair(c, g)
    made, rows = consume(c, g, s, a, b)
    add(c, made if g.chance(0.3) else made + a.tensor, rows)


@gene("size_op", 1)
def sizes_stated(c, g):
    """A statement in the trunk."""
    s = sizes(c)
    a, b = pair(c, g)
    made, rows = g.choice(STATEMENTS)(c, g, s, a, b)
    add_number(c, 1.0 + 0.1 * made) if rows is None else add(c, made, rows)


@gene("size_op", 1.2)
def sizes_unfetched(c, g):
    """A statement that no run fetches, or that only some runs fetch."""
    s = sizes(c)
    a, b = pair(c, g)
    if g.chance(0.6):
        with s.under(lambda env: False):
            made, rows = g.choice(STATEMENTS)(c, g, s, a, b)
            as_number(c, g, s, made, rows)
        return
    name = f"fetch{g.number}"
    s.flags.append(name)
    guard = lambda env: env.flags[name]
    with s.under(guard):
        made, rows = g.choice(STATEMENTS)(c, g, s, a, b)
        s.fetch(tf.identity(as_number(c, g, s, made, rows), name=f"metric{g.number}"), guard)


@gene("size_op", 3)
def sizes_branch(c, g):
    """A statement in a branch of a conditional; the other branch does without, or is a consumer."""
    s = sizes(c)
    flow(c, g)
    a, b = pair(c, g)
    on, value = predicate(c, g, s, a, b)
    turned = g.chance(0.3)
    # (Equal sizes are what the branch is for, unless it is turned.)
    takes = (lambda env: not value(env)) if turned else value
    state, give_rows, nested = g.choice(STATEMENTS), g.chance(0.5), g.chance(0.15)
    inner, inner_value = s.flag(g) if nested else (None, lambda env: True)
    consumes, made_rows = g.chance(0.5), []

    def other():
        if not give_rows:
            return tf.constant(1.1, c.dtype)
        if consumes:
            with s.under(lambda env: not takes(env)):
                t = consume(c, g, s, a, b)[0]
            return t + a.tensor
        return a.tensor * 0.9

    def statement():
        with s.under(lambda env: takes(env) and inner_value(env)):
            made, rows = state(c, g, s, a, b)
            if not give_rows:
                return as_number(c, g, s, made, rows)
            if rows is None:
                return a.tensor * made
            made_rows.append(rows)
            return made

    def yes():
        if not nested:
            return statement()
        return tf1.cond(inner, statement, lambda: a.tensor * 1.2 if give_rows else tf.constant(1.2, c.dtype))

    h = tf1.cond(on, other, yes) if turned else tf1.cond(on, yes, other)
    if not give_rows:
        add_number(c, h)
        return
    stated_rows = made_rows[0] if made_rows else a.rows
    add(c, h, lambda env: stated_rows(env) if takes(env) and inner_value(env) else a.rows(env))


@gene("size_op", 2)
def sizes_turns(c, g):
    """A statement in the body of a loop that may take no turn."""
    s = sizes(c)
    flow(c, g)
    a, b = pair(c, g)
    how = g.below(4)
    if how <= 1:
        n, value = s.count(g, 3)
        more = lambda i: i < n
    elif how == 2:  # as often as one has more rows than the other, at most once
        n, m = size(c, g, a), size(c, g, b)
        more = lambda i: tf.logical_and(i < 1, tf.equal(n, m))
        value = lambda env: int(a.rows(env) == b.rows(env))
    else:
        on, decided = predicate(c, g, s, a, b)
        n = tf.cast(on, tf.int32)
        more, value = lambda i: i < n, lambda env: int(decided(env))
    state = g.choice(STATEMENTS)

    nested = g.chance(0.2)
    inner, inner_value = s.flag(g) if nested else (None, lambda env: True)

    def statement():
        with s.under(lambda env: value(env) > 0 and inner_value(env)):
            made, rows = state(c, g, s, a, b)
            return as_number(c, g, s, made, rows)

    def body(i, acc):
        made = tf1.cond(inner, statement, lambda: tf.constant(1.2, c.dtype)) if nested else statement()
        return i + 1, acc + 0.1 * made

    grows = g.chance(0.2)
    if grows:  # the rows of one behind those of the other
        _, h = tf1.while_loop(
            lambda i, h: more(i), lambda i, h: (i + 1, tf.concat([h, b.tensor], 0)), [0, a.tensor * 1.0],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, WIDTH])],
        )  # fmt: skip
        add(c, h, lambda env: a.rows(env) + value(env) * b.rows(env))
        return
    _, acc = tf1.while_loop(lambda i, acc: more(i), body, [0, tf.constant(1.0, c.dtype)])
    add_number(c, acc)


@gene("size_op", 1)
def sizes_called(c, g):
    """A function that states, in a branch of its own or not."""
    s = sizes(c)
    flow(c, g)
    a, b = pair(c, g)
    inside = g.chance(0.7)
    on, value = predicate(c, g, s, a, b) if inside else (tf.constant(True), lambda env: True)
    state = g.choice(STATEMENTS)

    @tf.function(autograph=False)
    def of_rows(x, y, p):
        mine, its = dataclasses.replace(a, tensor=x), dataclasses.replace(b, tensor=y)

        def yes():
            with s.under(value):
                made, rows = state(c, g, s, mine, its)
                return as_number(c, g, s, made, rows)

        return tf.cond(p, yes, lambda: tf.constant(0.9, c.dtype)) if inside else yes()

    add_number(c, of_rows(a.tensor, b.tensor, on))


@gene("size_op", 1.5)
def sizes_kept(c, g):
    """Elements of several sizes in a TensorArray, a tensor list or a stack."""
    s = sizes(c)
    a, b = pair(c, g)
    items = [a, b] if g.chance(0.7) else [b, a, b]
    how = g.below(5)
    which = g.below(len(items))
    if how <= 2:
        v2 = flow(c, g)
        infer = g.chance(0.35)
        array = tf.TensorArray(
            c.dtype, len(items), infer_shape=infer, clear_after_read=False,
            element_shape=g.choice([None, tf.TensorShape([None, WIDTH])]),
        )  # fmt: skip
        for i, item in enumerate(items):
            array = array.write(i, item.tensor)
        if infer and not v2:  # TensorFlow wants them equal at run time
            for item in items:
                s.need(equal_rows(item, a))
        last = g.below(6)
        if last == 0:
            s.need(lambda env: all(i.rows(env) == a.rows(env) for i in items))
            add(c, tf.reduce_sum(tf.ensure_shape(array.stack(), [None, None, WIDTH]), 0), a.rows)
        elif last == 1 and not v2:
            add(c, array.concat(), lambda env: sum(i.rows(env) for i in items))
        elif last == 2:
            n, value = s.count(g, len(items))
            add(c, array.read(n), lambda env: items[value(env)].rows(env))
        else:
            add(c, array.read(which), items[which].rows)
    elif how == 3:
        shape = g.choice([-1, [-1, WIDTH]])
        listed = tf.raw_ops.EmptyTensorList(element_shape=shape, max_num_elements=-1, element_dtype=c.dtype)
        for item in items:
            listed = tf.raw_ops.TensorListPushBack(input_handle=listed, tensor=item.tensor)
        for item in reversed(items[which:]):
            listed, t = tf.raw_ops.TensorListPopBack(
                input_handle=listed, element_shape=[-1, WIDTH], element_dtype=c.dtype
            )
        add(c, t, items[which].rows)
    else:
        stack = tf.raw_ops.StackV2(max_size=len(items), elem_type=c.dtype, stack_name=f"stack{g.number}")
        done = []
        for item in items:
            with tf.control_dependencies(done):
                done = [tf.raw_ops.StackPushV2(handle=stack, elem=tf.stop_gradient(item.tensor))]
        for item in reversed(items[which:]):
            with tf.control_dependencies(done):
                t = tf.raw_ops.StackPopV2(handle=stack, elem_type=c.dtype)
                done = [t]
        add(c, tf.stop_gradient(t), items[which].rows)


@gene("size_op", 1.2)
def sizes_memory(c, g):
    """A variable that keeps the rows of the last step, however many there were."""
    s = sizes(c)
    a = c.pick(g, 0, is_matrix)
    first = c.batch * g.choice([1, 2])
    value = c.value(g, [first, WIDTH])
    how = g.below(3)
    name = f"m{g.number}"
    with tf.control_dependencies(None):
        if how == 0:  # made with a shape that it does not keep
            m = tf1.get_variable(name, initializer=tf.constant(value), use_resource=False, trainable=False)
        elif how == 1:
            m = tf1.get_variable(name, initializer=tf.constant(value), use_resource=False, trainable=False, validate_shape=False)
        else:
            m = tf.Variable(value, shape=[None, WIDTH], trainable=False, name=name)
    old = tf.identity(m.read_value() if how == 2 else m) + 0.0
    s.order.append(old)
    new = a.tensor * g.choice([2.0, 0.5])
    if how == 2:
        s.assigns.append(lambda: m.assign(new, read_value=False))
    else:
        s.assigns.append(lambda: tf1.assign(m, new, validate_shape=False).op)
    rows = lambda env: first if env.before is None else a.rows(env.before)
    item = add(c, old, rows, lies=how == 0)
    made, made_rows = consume(c, g, s, a, item)
    add(c, made + a.tensor, made_rows)


@gene("size_op", 1.2)
def sizes_selected(c, g):
    """The rows for which the first column of a feed is above 0: of one replica possibly none."""
    s = sizes(c)
    x = c.pick(g, 0, is_feed)
    y = x if g.chance(0.5) else c.pick(g, 1, is_matrix)
    above = x.tensor[:, 0] > 0.0
    count = lambda env: sum(PATTERNS[env.patterns[x.feed]](i, x.rows(env)) for i in range(x.rows(env)))
    how = g.below(3)
    if how == 0:
        s.need(equal_rows(x, y))
        add(c, tf.boolean_mask(y.tensor, above), count)
    elif how == 1:
        s.need(lambda env: y.rows(env) >= x.rows(env))
        add(c, tf.gather(y.tensor, tf.reshape(tf.where(above), [-1])), count)
    else:
        s.need(equal_rows(x, y))
        parts = tf.dynamic_partition(y.tensor, tf.cast(above, tf.int32), 2)
        add(c, parts[1], count)


@gene("size_op", 0.6)
def sizes_joined(c, g):
    """The rows of one behind those of another, and those of one of them again."""
    a, b = pair(c, g)
    both, n, how = tf.concat([a.tensor, b.tensor], 0), size(c, g, a), g.below(4)
    if how <= 1:
        add(c, both, lambda env: a.rows(env) + b.rows(env))
    elif how == 2:
        add(c, both[:n], a.rows)
    else:
        add(c, both[n:], b.rows)


@gene("size_loss", 1)
def sizes_loss(c, g):
    """The mean or the sum over the rows of one matrix, by its own rows or by those of another, times a number."""
    s = sizes(c)
    a = c.pick(g, 0, is_matrix)
    h = tf.matmul(a.tensor, c.variable(g, [WIDTH, 3]))
    squares = tf.square(h)
    some = lambda: s.need(lambda env: a.rows(env) > 0)
    how = g.below(8)
    if how <= 2:
        some()
        loss = tf.reduce_mean(squares)
    elif how <= 4:
        loss = tf.reduce_sum(squares) * 0.1
    elif how == 5:
        loss = tf.reduce_sum(squares) / tf.cast(tf.maximum(size(c, g, a), 1), c.dtype)
    elif how == 6:
        b = c.pick(g, 1, is_matrix)
        s.need(lambda env: b.rows(env) > 0)
        loss = tf.reduce_sum(squares) / tf.cast(size(c, g, b), c.dtype)
    else:
        some()
        loss = tf1.losses.mean_squared_error(tf.zeros_like(h) + 0.2, h, loss_collection=None)
    loss = tf.cast(loss, c.dtype)
    numbers = [t for t in c.pool if t.kind == "number"]
    if numbers and g.chance(0.8):
        loss *= c.pick(g, 2, lambda t: t.kind == "number").tensor
    loss = tf.identity(loss, name=f"loss{g.number}")
    c.losses.append(loss)
    s.fetch(loss)
    if g.chance(0.3):
        rows = tf.identity(h, name=f"scores{g.number}")
        s.fetch(rows)


@gene("size_train", 1)
def sizes_train(c, g):
    """One step of gradient descent, by hand or by an optimizer, and what is kept of the rows."""
    s = sizes(c)
    if not c.losses:
        raise Illegal("no loss")
    loss = tf.identity(tf.add_n(c.losses), name="loss")
    s.fetch(loss)
    trained = tf1.trainable_variables()
    grads = tf.gradients(loss, trained)
    pairs = [(d, v) for d, v in zip(grads, trained) if d is not None]
    graph = tf1.get_default_graph()
    fetched = [graph.get_tensor_by_name(name) for name, when in s.fetches.items() if not name.startswith("metric")]
    with tf.control_dependencies([loss, *(d for d, _ in pairs), *s.order, *fetched]):
        if g.chance(0.5):
            updates = [tf1.train.GradientDescentOptimizer(0.1).apply_gradients(pairs)]
        else:
            updates = [v.assign_sub(0.1 * d, read_value=False) if hasattr(v, "handle") else tf1.assign_sub(v, 0.1 * d) for d, v in pairs]
        c.trains.append(tf.group(*updates, *(assign() for assign in s.assigns)))


def draw(seed: int) -> Plan:
    rng = random.Random(f"sizes/{seed}")
    head = {
        "family": "sizes",
        "replicas": rng.choice([2, 2, 2, 3, 4]),
        "rows": rng.choice([1, 2, 2, 3, 3]),
        "static": rng.random() < 0.2,
        "dtype": "float64",
        "variables": rng.choice(["resource", "resource", "ref"]),
        "sizes": "any",
        "source": "feed",
        "shuffle": rng.random() < 0.05,
        "scope": "",
        "wild": True,
        "half": "",
        "steps": 3,
        "pair": rng.random() < 0.6,  # all ops take the same two matrices
        "equal": rng.random() < 0.06,  # all feeds have equally many rows
        "empty": rng.random() < 0.2,  # steps without rows
        "odd": rng.random() < 0.05,  # a last step that replicas do not divide
    }
    genes = []

    def put(stage, count):
        kinds = list(WEIGHTS[stage])
        for kind in rng.choices(kinds, [WEIGHTS[stage][k] for k in kinds], k=count):
            genes.append((len(genes), kind, rng.randrange(1 << 30)))

    put("size_feed", rng.choice([2, 2, 3]))
    put("size_op", rng.choice([2, 2, 3, 3, 4, 5, 6]))
    put("size_loss", rng.choice([1, 1, 2]))
    put("size_train", 1)
    return Plan(seed, head, genes)
