# SPDX-License-Identifier: Apache-2.0
"""Which feeds have equally many rows, what a feed of unknown rank is, and sizes that are equal by chance."""

import compare
import harness
import models
import models_habits
import numpy as np
import pytest
import tensorflow as tf
from harness import Options, Rewritten, Session
from models import BATCH, Builder, Spec
from models_habits import descend

tf1 = tf.compat.v1


# --- As many rows as another feed, or not. ---


def by_range(h, k, x):
    return tf.square(tf.gather(k, tf.range(tf.shape(x)[0])) - h)


def by_condition(h, k, x):
    return tf.square(tf.gather(k, tf.where(x[:, 0] > 0.1)[:, 0]) - 0.3)


def by_scatter(h, k, x):
    return tf.square(tf.scatter_nd(tf.range(tf.shape(h)[0])[:, None], h, tf.shape(k)) - k)


def by_shape(h, k, x):
    return tf.square(tf.reduce_logsumexp(tf.reshape(k, [-1, tf.shape(x)[0], 3]), 0) - h)


def by_halves(h, k, x):
    first, last = tf.split(tf.tanh(tf.concat([h, k], 0)), 2)
    return tf.square(first) - 2.0 * tf.square(last - 0.3)


WAYS = [by_range, by_condition, by_scatter, by_shape, by_halves]


def two_feeds(way):
    def fill(b: Builder):
        rows = b.spec.batch
        x = tf1.placeholder(b.dtype, [rows, 4], "x")
        y = tf1.placeholder(b.dtype, [rows and rows * 2, 4], "y")
        w = b.variable("w", [4, 3])
        descend(b, b.loss(b.total(tf.reduce_sum(way(tf.matmul(x, w), tf.matmul(y, w), x), axis=1))))

    return fill


def as_many(rows):
    def data(rng, dtype):
        y = rng.normal(size=(rows, 4)) + np.linspace(0, 1, rows)[:, None]
        return rng.normal(size=(BATCH, 4)).astype(dtype), y.astype(dtype)

    return models_habits.batches(data, 3)


@pytest.mark.parametrize("batch", [None, BATCH])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_rows_of_other_feeds(way, batch):
    """Nothing says that y has as many rows as x, which in fact it has not: that is not proved, and refused where the graph
    might not run."""
    path = compare.export(Spec(way.__name__, batch=batch), two_feeds(way))
    compare.run(path, as_many(2 * BATCH), ["train_op"])  # a step of the single device
    try:
        out, said = harness.rewrite(path, Options(2, extra=("--feed=x=split", "--feed=y=split", "--fallback=mean")))
    except harness.GraftError as error:
        assert "per-replica shard" in str(error), error
    else:
        assert "not proved" in said
        with harness.Session(out, 2) as session:
            session.restart()
            for x, y in as_many(2 * BATCH):
                session.run("train_op", {"x:0": x, "y:0": y})
            session.check_copies("at the end")


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_rows_of_one_batch(way, replicas):
    """The user says that both have equally many."""
    path = compare.export(Spec(way.__name__), two_feeds(way))
    compare.same_steps(path, Options(replicas, extra=("--feed=x+y=split", "--verify-output")), as_many(BATCH))


def several_means(b: Builder):
    """Means over feeds that have nothing to do with each other, and over both joined."""
    x, y = tf1.placeholder(b.dtype, [None, 4], "x"), tf1.placeholder(b.dtype, [None, 4], "y")
    w = b.variable("w", [4, 3])
    h, k = tf.tanh(tf.matmul(x, w)), tf.matmul(y, w)
    both = b.total(tf.reduce_sum(tf.square(tf.concat([h, k], 0) - 0.2), axis=1))
    descend(b, b.loss(b.total(h[:, 0]) + b.total(tf.reduce_sum(k * k, axis=1)) + both))


@pytest.mark.parametrize("loss", ["mean", "sum"])
def test_several_means(loss):
    path = compare.export(Spec("several_means", loss=loss), several_means)
    compare.same_steps(path, Options(3, extra=("--verify-output",)), as_many(2 * BATCH))


# --- Static sizes among unknown ones. ---


def static_rows(b: Builder):
    """One of the feeds has a number of rows, which the others need, and a number in a shape."""
    x, y = tf1.placeholder(b.dtype, [BATCH, 2, 3], "x"), tf1.placeholder(b.dtype, [None], "y")
    h = tf.tanh(tf.matmul(tf.reshape(x, [BATCH, 6]), b.variable("w", [6, 4])))
    error = tf.matmul(h, b.variable("v", [4, 1]))[:, 0] - y
    descend(b, b.loss(b.total(tf.square(error))))


def numbers_of_rows(b: Builder):
    """No feed has one: it is in shapes only."""
    x, y = tf1.placeholder(b.dtype, [None, 2, 3], "x"), tf1.placeholder(b.dtype, [None, 2], "y")
    h = tf.matmul(tf.reshape(x, [-1, 3]), b.variable("w", [3, 1]))
    error = tf.reshape(tf.reshape(h, [BATCH, 2]), [-1]) - tf.reshape(y, [-1])
    error *= tf.reshape(tf.ones([BATCH, 2], b.dtype), [-1])
    descend(b, b.loss(b.total(tf.square(error))))


def with_shapes(*shapes):
    return models_habits.batches(lambda rng, dtype: tuple(rng.normal(size=(BATCH, *s)).astype(dtype) for s in shapes), 3)


@pytest.mark.parametrize("replicas", [2, 3, BATCH])
@pytest.mark.parametrize("model,shapes", [(static_rows, ([2, 3], [])), (numbers_of_rows, ([2, 3], [2]))])
def test_numbers_beside_unknown_sizes(model, shapes, replicas):
    path = compare.export(Spec(model.__name__), model)
    compare.same_steps(path, Options(replicas, extra=("--verify-output",)), with_shapes(*shapes))


def test_numbers_that_do_not_divide():
    """One device computes the step, which is the same."""
    path = compare.export(Spec("numbers_of_rows"), numbers_of_rows)
    options = Options(5, extra=("--verify-output",))
    compare.same_steps(path, options, with_shapes([2, 3], [2]), says="computed once on the whole batch: 12 is a multiple")
    with pytest.raises(harness.GraftError, match="not divisible by 5 replicas"):
        harness.rewrite(path, Options(5, extra=("--strict",)))


def three_feeds(b: Builder):
    """x is as long as the others, which are named."""
    x, y = b.inputs([5], [])
    lengths = b.placeholder("lengths", [])
    error = tf.matmul(x, b.variable("w", [5, 1]))[:, 0] - y
    descend(b, b.loss(b.total(tf.square(error) * lengths)))


def test_named_feeds_beside_others():
    path = compare.export(Spec("three_feeds", batch=BATCH), three_feeds)
    options = Options(2, extra=("--feed=y=split", "--feed=lengths=split"))
    compare.same_steps(path, options, with_shapes([5], [], []))


def state_of_a_number(b: Builder):
    """The state that a recurrence begins with has a number of rows, and the feeds do not say how many."""
    x, y = tf1.placeholder(b.dtype, [None, None, 4], "x"), tf1.placeholder(b.dtype, [None, None], "y")
    w, v, size = b.variable("w", [7, 3]), b.variable("v", [3, 1]), tf.shape(x)[1]
    steps = tf.TensorArray(b.dtype, size).unstack(tf.transpose(x, [1, 0, 2]))

    def cell(t, h, out):
        h = tf.tanh(tf.matmul(tf.concat([steps.read(t), h], 1), w))
        return t + 1, h, out.write(t, h)

    start = tf.fill(tf.concat([tf.constant([BATCH]), [3]], 0), tf.constant(0, b.dtype))
    rows = tf1.while_loop(lambda t, *_: t < size, cell, (0, start, tf.TensorArray(b.dtype, size)))[2].stack()
    pred = tf.reshape(tf.matmul(tf.reshape(tf.transpose(rows, [1, 0, 2]), [-1, 3]), v), [-1])
    # Both are of so many times the batch, not known how many times.
    error = tf.square(pred - tf.reshape(y, [-1])) * tf.cast(tf.reshape(y, [-1]) > -1.0, b.dtype)
    tf.less(tf.size(error), 1000, name="few")
    descend(b, b.loss(b.total(error)))


def pointers(b: Builder):
    """Words of the rows themselves beside those of the vocabulary: some number of more columns, which is fed."""
    words, attention = tf1.placeholder(tf.int32, [BATCH, None], "x"), tf1.placeholder(b.dtype, [BATCH, None], "y")
    more = tf1.placeholder(tf.int32, [], "lengths")
    known = tf.minimum(words, 4)
    inner = tf.reduce_mean(tf.gather(b.variable("w", [5, 3]), known), 1)
    usual = tf.concat([tf.nn.softmax(tf.matmul(inner, b.variable("v", [3, 5]))), tf.zeros([BATCH, more], b.dtype)], 1)
    # Nothing says that one of the two is not repeated for each column.
    weights = attention * tf.gather(b.variable("u", [5]), known)
    rows = tf.tile(tf.range(BATCH)[:, None], [1, tf.shape(words)[1]])
    pointed = tf.scatter_nd(tf.stack([rows, words], 2), weights, [BATCH, 5 + more])
    found = tf.gather_nd(usual + pointed, tf.stack([tf.range(BATCH), words[:, 1]], 1))
    descend(b, b.loss(b.total(tf.square(found - 0.3))))


def cut_out(b: Builder):
    """So many rows are cut out, and an op wants as many of what is not cut: that are all there are."""
    x = tf1.placeholder(b.dtype, [None, 5, 4], "x")
    lengths = tf.reduce_sum(tf.cast(x[:, :3, 0] > 0, tf.int32), 1)
    h = tf.reverse_sequence(tf.slice(x, [0, 0, 0], [BATCH, 3, 4]), lengths, seq_axis=1)
    h = tf.reshape(tf.tanh(tf.matmul(tf.reshape(h, [-1, 12]), b.variable("w", [12, 3]))), [BATCH, 3])
    descend(b, b.loss(b.total(tf.square(tf.reduce_sum(h * b.variable("v", [3]), 1) - 0.3))))


def two_steps(b: Builder):
    """Rows of two sizes that are not known are one axis, which is repeated as often as it is long, and that is once."""
    x, y = tf1.placeholder(b.dtype, [None, None, 5, 4], "x"), tf1.placeholder(b.dtype, [None], "y")
    rows, steps = tf.unstack(tf.shape(x))[:2]
    words = tf.reshape(x, [rows * steps, 5, 4])
    sums = tf.reduce_sum(words, 1, keepdims=True)
    words += 0.1 * tf.tile(sums, tf.shape(words) // tf.maximum(tf.shape(sums), 1))
    h = tf.reduce_mean(tf.tanh(tf.tensordot(words, b.variable("w", [4, 3]), 1)), 1)
    h = tf.reduce_mean(tf.reshape(h, [rows, steps, 3]), 1)
    descend(b, b.loss(b.total(tf.square(tf.matmul(h, b.variable("v", [3, 1]))[:, 0] - y))))


def of_pointers(rng, dtype):
    more = int(rng.integers(1, 4))
    return rng.integers(0, 5 + more, size=(BATCH, 7)), rng.normal(size=(BATCH, 7)).astype(dtype), np.int32(more)


@pytest.mark.parametrize("replicas", [2, 3, BATCH])
@pytest.mark.parametrize("model,data", [(state_of_a_number, with_shapes([5, 4], [5])),
                                        (cut_out, with_shapes([5, 4])), (two_steps, with_shapes([3, 5, 4], [])),
                                        (pointers, models_habits.batches(of_pointers, 3))])
def test_numbers_of_rows_are_spread(model, data, replicas):
    path = compare.export(Spec(model.__name__), model)
    compare.same_steps(path, Options(replicas, extra=("--verify-output", "--min-spread=95")), data)


# --- Which static feeds hold the batch. ---


def validated(b: Builder):
    """The validation feed has another number of rows, and the noise as many as the batch."""
    x, y = tf1.placeholder(b.dtype, [BATCH, 4], "x"), tf1.placeholder(b.dtype, [BATCH, 3], "y")
    valid = tf1.placeholder(b.dtype, [10, 4], "lengths")
    w = b.variable("w", [4, 3])
    tf.reduce_mean(tf.square(tf.matmul(valid, w)), name="validation")
    descend(b, b.loss(b.total(tf.matmul(x, w)[:, 0]) + b.total(tf.reduce_sum(tf.square(y * w[0]), axis=1))))


@pytest.mark.parametrize("replicas", [2, 3])
def test_most_work_is_spread(replicas):
    def data(rng, dtype):
        return tuple(rng.normal(size=shape).astype(dtype) for shape in ([BATCH, 4], [BATCH, 3], [10, 4]))

    path = compare.export(Spec("validated"), validated)
    batches = models_habits.batches(data, 3)
    out = compare.same_steps(path, Options(replicas), batches, fetches=("loss:0", "validation:0"))
    names = {node.name for node in harness.read_meta(out).graph_def.node}
    assert any(name.startswith("y/split") for name in names), sorted(names)
    assert not any(name.startswith("lengths/split") for name in names)


def two_batches(b: Builder):
    """A network over rows of unknown number, and one of its own over twelve: a generator, say, beside a critic."""
    x, y = b.inputs([5], [])
    z = tf1.placeholder(b.dtype, [BATCH, 4], "lengths")
    error = tf.matmul(x, b.variable("w", [5, 1]))[:, 0] - y
    made = tf.tanh(tf.matmul(tf.reshape(z, [BATCH, 2, 2])[:, 0], b.variable("v", [2, 3])))
    descend(b, b.loss(b.total(tf.square(error)) + tf.reduce_mean(tf.square(made))))


def weights_of_columns(b: Builder):
    """They have a number that the replicas divide, and are no rows."""
    x, y = b.inputs([6], [])
    weights = tf1.placeholder(b.dtype, [6, 2], "lengths")
    h = tf.matmul(x, weights * b.variable("u", [6, 2]))
    descend(b, b.loss(b.total(tf.square(tf.matmul(h, b.variable("v", [2, 1]))[:, 0] - y))))


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize(
    "model,shapes,split", [(two_batches, ([5], [], [4]), True), (weights_of_columns, ([6], [], [2]), False)]
)
def test_numbers_of_another_network(model, shapes, split, replicas):
    def data(rng, dtype):
        rows = [BATCH, BATCH, BATCH if split else 6]
        return tuple(rng.normal(size=[n, *s]).astype(dtype) for n, s in zip(rows, shapes))

    path = compare.export(Spec(model.__name__), model)
    out = compare.same_steps(path, Options(replicas, extra=("--verify-output",)), models_habits.batches(data, 3))
    names = {node.name for node in harness.read_meta(out).graph_def.node}
    assert any(name.startswith("lengths/split") for name in names) == split, sorted(names)


def positions(b: Builder):
    """Twelve sequences of a length that is not known, to which positions are added, as GPT-2 has them."""
    x = tf1.placeholder(b.dtype, [BATCH, None, 4], "x")
    at = tf.gather(tf.tanh(b.constant("table", [9, 4], 0.3)), tf.range(tf.shape(x)[1]))
    for _ in range(20):
        at = tf.sin(at)
    h = tf.tanh(tf.tensordot(x + at, b.variable("w", [4, 3]), 1))
    descend(b, b.loss(tf.reduce_mean(tf.square(h)) * b.per))


@pytest.mark.parametrize("replicas", [2, 3])
def test_sequences_with_positions(replicas):
    path = compare.export(Spec("positions"), positions)
    out = compare.same_steps(path, Options(replicas, extra=("--verify-output",)), with_shapes([7, 4]))
    assert any(node.name.startswith("x/split") for node in harness.read_meta(out).graph_def.node)


def dilated(b: Builder):
    """The labeled pixels of a dilated convolution, as TensorFlow 1 writes it: all sizes are numbers."""
    x, y = tf1.placeholder(b.dtype, [BATCH, 6, 7, 2], "x"), tf1.placeholder(b.dtype, [BATCH, 6, 7], "y")
    h = tf.nn.conv2d(x, b.variable("w", [3, 3, 2, 3]), 1, "SAME")
    h = tf.space_to_batch(h, [2, 2], [[2, 2], [2, 3]])
    h = tf.nn.conv2d(h, b.variable("v", [3, 3, 3, 1]), 1, "VALID")
    pixels = tf.reshape(tf1.batch_to_space_nd(h, [2, 2], [[0, 0], [0, 1]]), [-1, 1])
    labels = tf.reshape(y, [-1])
    at = tf.squeeze(tf.where(labels > 0), 1)
    error = tf.gather(pixels, at, name="picked")[:, 0] - tf.gather(labels, at)
    descend(b, b.loss(tf.reduce_sum(tf.square(error)) * 1e-3))


@pytest.mark.parametrize("replicas", [2, 3])
def test_dilated_pixels_are_spread(replicas):
    path = compare.export(Spec("dilated"), dilated)
    out = compare.same_steps(path, Options(replicas, extra=("--verify-output",)), with_shapes([6, 7, 2], [6, 7]))
    assert "replica_1/picked" in {node.name for node in harness.read_meta(out).graph_def.node}


# --- Sizes in shapes, beside others that are not known. ---


def mixed_shape(b: Builder):
    """A shape of what is known of the sizes, and of the graph's own where it is not, as GPT-2 and BERT have it."""
    x = tf1.placeholder(b.dtype, [b.spec.batch, None, 4], "x")
    y = b.placeholder("y", [6])
    sizes = [known or tf.shape(x)[i] for i, known in enumerate(x.shape.as_list())]
    flat = tf.tanh(tf.matmul(tf.reshape(x, [-1, 4]), b.variable("w", [4, 6])))
    heads = tf.transpose(tf.reshape(flat, [sizes[0], sizes[1], 2, 3]), [0, 2, 1, 3])
    scores = tf.nn.softmax(tf.matmul(heads, heads, transpose_b=True))
    rows = tf.reshape(tf.transpose(tf.matmul(scores, heads), [0, 2, 1, 3]), [sizes[0], sizes[1], 6])
    error = tf.reshape(tf.square(rows), [-1, 6])
    descend(b, b.loss(tf.reduce_mean(error) + tf.reduce_mean(tf.square(tf.reduce_mean(rows, 1) - y))))


@pytest.mark.parametrize("replicas", [2, 3, BATCH])
@pytest.mark.parametrize("batch", [None, BATCH])
def test_shape_of_numbers_and_sizes(batch, replicas):
    path = compare.export(Spec("mixed_shape", batch=batch), mixed_shape)
    compare.same_steps(path, Options(replicas, extra=("--min-spread=95",)), with_shapes([5, 4], [6]))


# --- States that are fed. ---


def recurrent(dynamic):
    def fill(b: Builder):
        x, y = b.inputs([5, 4], [])
        rows = b.spec.batch or tf.shape(x)[0]
        state = tf.zeros([rows, 3], b.dtype, name="lengths")
        w, v = b.variable("w", [7, 3]), b.variable("v", [3, 1])

        def cell(h, x):
            return tf.tanh(tf.matmul(tf.concat([x, h], 1), w)) + 0.5 * h

        if dynamic:
            h = tf1.while_loop(lambda t, h: t < 5, lambda t, h: (t + 1, cell(h, x[:, t])), (0, state))[1]
        else:
            h = state
            for t in range(5):
                h = cell(h, x[:, t])
        tf.identity(h, "final")
        descend(b, b.loss(b.total(tf.square(tf.matmul(h, v)[:, 0] - y))))

    return fill


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize("batch", [None, BATCH])
@pytest.mark.parametrize("dynamic", [False, True])
def test_state_is_fed(dynamic, batch, replicas):
    """The zeros that a recurrence begins with have a row for each example, and one may feed others."""
    path = compare.export(Spec("recurrent", batch=batch), recurrent(dynamic))
    data = with_shapes([5, 4], [], [3])
    out = compare.same_steps(path, Options(replicas), data, fetches=("loss:0", "final:0", "lengths:0"))
    unfed = [batch[:2] for batch in data]
    with Session(path) as one, Session(out, replicas) as many:
        for got, want in zip(compare.advance(many, unfed, ("train_op",) * 3, ("final:0",), ()),
                             compare.advance(one, unfed, ("train_op",) * 3, ("final:0",), ())):
            harness.assert_all_close(got[1], want[1], "unfed")


# --- What prepares a feed. ---


def prepared(b: Builder):
    pixels, y = b.placeholder("pixels", [4]), b.placeholder("y", [])
    x = tf.subtract(tf.realdiv(pixels, tf.cast(2.0, b.dtype)), np.array([0.1, 0.2, 0.3, 0.4], b.spec.dtype), name="x")
    h = tf.tanh(tf.matmul(x, b.variable("w", [4, 3])))
    descend(b, b.loss(b.total(tf.square(tf.reduce_sum(h, 1) - y))))


@pytest.mark.parametrize("batch", [None, BATCH])
def test_what_prepares_a_feed_is_fed(batch):
    """`x = tf.placeholder(..) / 2 - mean`: x is fed, or the placeholder."""
    path = compare.export(Spec("prepared", batch=batch), prepared)
    out = compare.same_steps(path, Options(3), with_shapes([4], []))
    names = ("pixels:0", "y:0")
    with Session(path) as one, Session(out, 3) as many:
        for session in (one, many):
            session.restart()
        for rows in with_shapes([4], []):
            for session in (one, many):
                session.run(["train_op"], dict(zip(names, rows)))
            harness.assert_all_close(many.values(), one.values(), "fed the placeholder")


def laid_out(b: Builder):
    """Both names of a placeholder that is reshaped at once are those of the reshape: nothing else can be fed."""
    pixels, y = b.placeholder("pixels", [4]), b.placeholder("y", [])
    other = b.placeholder("other", [2, 2])
    x = tf.reshape(pixels, [-1, 2, 2], name="x")
    z = tf.reshape(other, [tf.shape(y)[0], 2, 2], name="z")
    h = tf.tanh(tf.matmul(tf.reshape(x * z, [-1, 4]), b.variable("w", [4, 3])))
    descend(b, b.loss(b.total(tf.square(tf.reduce_sum(h, 1) - y))))


@pytest.mark.parametrize("names", [("x:0", "z:0"), ("pixels:0", "other:0"), ("x:0", "other:0")], ids=["both", "none", "one"])
@pytest.mark.parametrize("replicas", [2, 3])
def test_what_lays_out_a_feed_is_fed(names, replicas):
    """`x = tf.reshape(tf.placeholder(..), ..)`: x is fed, or the placeholder."""
    path = compare.export(Spec("laid_out"), laid_out)
    out, _ = harness.rewrite(path, Options(replicas))
    with Session(path) as one, Session(out, replicas) as many:
        for session in (one, many):
            session.restart()
        for x, z, y in with_shapes([2, 2], [2, 2], []):
            x = x if names[0] == "x:0" else x.reshape(-1, 4)
            for session in (one, many):
                session.run(["train_op"], {names[0]: x, names[1]: z, "y:0": y})
            harness.assert_all_close(many.values(), one.values(), str(names))


# --- Sizes that are equal by chance. ---


@pytest.mark.parametrize("loss", ["mean", "sum"])
@pytest.mark.parametrize("model", models.MATRIX)
def test_one_row(model, loss):
    """A static batch of one row for each replica."""
    spec = Spec(model, batch=BATCH, loss=loss)
    with Rewritten(spec, Options(BATCH, extra=("--verify-output",))) as session:
        session.check_steps()


def sized(width):
    def fill(b: Builder):
        x, y = b.inputs([width, width], [])
        h = tf.tanh(tf.tensordot(x, b.variable("w", [width, width]), 1))
        h = tf.reshape(h, [b.rows(), width * width]) if b.spec.batch else tf.reshape(h, [-1, width * width])
        h = tf.reshape(tf.matmul(h, b.variable("u", [width * width, width])), [b.rows(), width])
        h -= tf.reduce_mean(h, 1, keepdims=True)
        error = tf.reduce_sum(h * b.variable("v", [width]), 1) - y
        descend(b, b.loss(b.total(tf.square(error))))

    return fill


@pytest.mark.parametrize("batch", [None, BATCH])
@pytest.mark.parametrize("replicas", [2, 3, 4, BATCH])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 6, BATCH])
def test_equal_sizes(width, replicas, batch):
    """Every other size is that of the batch, of a replica's rows, of the replicas, or one."""
    path = compare.export(Spec(f"sized-{width}", batch=batch), sized(width))
    compare.same_steps(path, Options(replicas, extra=("--verify-output",)), with_shapes([width, width], []))


# --- Feeds of unknown rank. ---


def dropout(b: Builder):
    x, y = b.inputs([5], [])
    keep = tf1.placeholder(b.dtype, name="lengths")
    h = tf.tanh(tf.matmul(x, b.variable("w", [5, 4])))
    error = tf.matmul(tf1.nn.dropout(h, keep_prob=keep), b.variable("v", [4, 1]))[:, 0] - y
    descend(b, b.loss(b.total(tf.square(error))))


def old_dropout(b: Builder):
    """As TensorFlow wrote it before it had rates."""
    x, y = b.inputs([5], [])
    keep = tf1.placeholder(b.dtype, name="lengths")
    h = tf.tanh(tf.matmul(x, b.variable("w", [5, 4])))
    h = tf.divide(h, keep) * tf.floor(keep + tf.random.uniform(tf.shape(h), dtype=b.dtype))
    error = tf.matmul(h, b.variable("v", [4, 1]))[:, 0] - y
    descend(b, b.loss(b.total(tf.square(error))))


def training_dropout(b: Builder):
    """The rate is read where one trains, as tf.layers.dropout does."""
    x, y = b.inputs([5], [])
    keep = tf1.placeholder(b.dtype, name="lengths")
    training = tf1.placeholder_with_default(True, [])
    h = tf.tanh(tf.matmul(x, b.variable("w", [5, 4])))
    h = tf1.cond(training, lambda: tf1.nn.dropout(h, rate=1 - keep), lambda: tf.identity(h))
    error = tf.matmul(h, b.variable("v", [4, 1]))[:, 0] - y
    descend(b, b.loss(b.total(tf.square(error))))


def bounded(b: Builder):
    """How often a loop turns."""
    x, y = b.inputs([5], [])
    turns = tf1.placeholder(b.dtype, name="lengths")
    w = b.variable("w", [5, 5])

    def turn(i, h):
        return i + 1, tf.tanh(tf.matmul(h, w))

    _, h = tf1.while_loop(lambda i, h: i < turns, turn, (tf.zeros([], b.dtype), x))
    descend(b, b.loss(b.total(tf.square(tf.reduce_sum(h, axis=1) - y))))


def weighted(b: Builder):
    """Rows with weights, or a weight of all: nothing tells."""
    x, y = b.inputs([5], [])
    weight = tf1.placeholder(b.dtype, name="lengths")
    error = tf.matmul(x, b.variable("w", [5, 1]))[:, 0] - y
    descend(b, b.loss(b.total(weight * tf.square(error))))


def of_a_rate(b: Builder):
    """A learning rate."""
    x, y = b.inputs([5], [])
    error = tf.matmul(x, b.variable("w", [5, 1]))[:, 0] - y
    loss = b.loss(b.total(tf.square(error)))
    rate = tf1.placeholder(b.dtype, name="lengths")
    tf1.train.AdamOptimizer(rate * 0.5).minimize(loss, name="train_op")


def with_number(number):
    return [(x, y, np.asarray(number, x.dtype)) for x, y in with_shapes([5], [])]


def same_but_for(path, options, batches, expected):
    """The same steps, and nothing said but `expected` in each line."""
    out, said = harness.rewrite(path, options)
    assert said and all(expected in line for line in said.splitlines()), said
    with Session(path) as single, Session(out, options.replicas) as session:
        want = compare.advance(single, batches, ["train_op"] * 3, ["loss:0"], ())
        got = compare.advance(session, batches, ["train_op"] * 3, ["loss:0"], ())
    for ours, theirs in zip(got, want):
        harness.assert_all_close(ours[1], theirs[1], "variables")
    return out


@pytest.mark.parametrize("model", [dropout, old_dropout, training_dropout], ids=lambda model: model.__name__)
@pytest.mark.parametrize("replicas", [2, 3])
def test_rate_of_dropout(model, replicas):
    """It is a scalar, and nothing else can be fed; with a rate that keeps all, the steps are the same."""
    path = compare.export(Spec(model.__name__), model)
    out = same_but_for(path, Options(replicas, extra=("--verify-output",)), with_number(1.0), "draws its own random")
    x, y, _ = with_number(1.0)[0]
    with Session(out, replicas) as session:
        session.restart()
        with pytest.raises(ValueError, match="Cannot feed value of shape"):
            session.run(["loss:0"], {"x:0": x, "y:0": y, "lengths:0": np.ones([BATCH, 1], x.dtype)})


def test_rate_of_learning():
    path = compare.export(Spec("of_a_rate"), of_a_rate)
    compare.same_steps(path, Options(2, extra=("--verify-output",)), with_number(0.1))


@pytest.mark.parametrize("replicas", [2, 3])
def test_number_of_turns(replicas):
    path = compare.export(Spec("bounded"), bounded)
    compare.same_steps(path, Options(replicas, extra=("--verify-output",)), with_number(2.0))


def test_unknown_rank():
    """It is taken for a scalar, which is said; that it is one can be said."""
    path = compare.export(Spec("weighted"), weighted)
    same_but_for(path, Options(2, extra=("--verify-output",)), with_number(0.7), "rank of this feed is not known")
    compare.same_steps(path, Options(2, extra=("--feed=lengths=copy", "--verify-output")), with_number(0.7))


def unrolled(b: Builder):
    """A loss of all turns of two layers, which are nearer to it than the states that they end in."""
    steps, width = 16, 4
    x, y = b.inputs([steps, 2], [1])
    zeros = tf.zeros(tf.stack([tf.shape(x)[0], width]), b.dtype)
    cells = [[b.variable(f"w{i}", [n + width, 4 * width]), zeros, zeros] for i, n in enumerate([2, width])]
    outputs = []
    for turn, rows in enumerate(tf.unstack(x, axis=1)):
        for i, (kernel, state, output) in enumerate(cells):
            give, take, keep, new = tf.split(tf.matmul(tf.concat([rows, output], 1), kernel), 4, axis=1)
            last = turn == steps - 1
            kept, taken = tf.sigmoid(keep) * state, tf.sigmoid(take) * tf.tanh(new)
            state = tf.add(kept, taken, name=f"last{i}" if last else None)
            rows = tf.multiply(tf.tanh(state), tf.sigmoid(give), name=f"said{i}" if last else None)
            cells[i][1:] = [state, rows]
        outputs.append(rows)
    predicted = tf.matmul(tf.concat(outputs, 0), b.variable("v", [width, 1]))
    descend(b, b.loss(b.total(tf.square(tf.reduce_sum(tf.stack(tf.split(predicted, steps)), 0) - y))))


def test_last_states_are_fetched():
    path = compare.export(Spec("unrolled"), unrolled)
    names = [f"{name}{i}:0" for name in ("last", "said") for i in range(2)]
    options = Options(2, extra=("--verify-output",))
    compare.same_steps(path, options, with_shapes([16, 2], [1]), fetches=["loss:0", *names])


# --- How many rows there are is fed. ---


def repeated(b: Builder):
    """A row is repeated as often as there are rows, or once and then for all of them."""
    x, y = b.inputs([4], [3])
    rows = tf1.placeholder(tf.int32, [], "lengths")
    tiled = tf.tile(b.variable("v", [1, 3]), [rows, 1])
    tf.identity(tf.tanh(tf.tile(b.constant("c", [1, 3], 0.2), [rows, 1])), "alone")
    descend(b, b.loss(b.total(tf.reduce_sum(tf.square(tf.matmul(x, b.variable("w", [4, 3])) + tiled - y), 1))))


@pytest.mark.parametrize("replicas", [2, 3])
def test_number_of_rows_is_fed(replicas):
    """A number that is fed is the number of rows of a step. A step that needs another number of rows, too, fails."""
    path = compare.export(Spec("repeated"), repeated)
    options = Options(replicas, extra=("--verify-output", "--fetch=alone"))
    batches = [(x, y, np.int32(BATCH)) for x, y in with_shapes([4], [3])]
    out = same_but_for(path, options, batches, "is assumed to be the number of fed rows")
    x, y, _ = batches[0]
    with Session(out, replicas) as session:
        session.restart()
        with pytest.raises(tf.errors.InvalidArgumentError, match="have different numbers of rows"):
            session.run(["loss:0", "train_op"], {"x:0": x, "y:0": y, "lengths:0": 1})
        for rows in (1, BATCH + 1):
            alone = session.run("alone:0", {"lengths:0": rows})
            harness.assert_close(alone, np.full([rows, 3], np.tanh(0.2), np.float32), "the rows that no other feed has")
