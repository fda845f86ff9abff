# SPDX-License-Identifier: Apache-2.0
"""Where the batch comes from: queues, iterators, records, and feeds of several kinds. `test_batches.py` runs them.

As in `models_habits.py` every model is a function that fills a graph. What it reads is prepared once (`Source.prepare`:
operations and what they are fed), and fed step by step (`Source.feeds`).
"""

import dataclasses
from typing import Callable, Dict, Tuple

import numpy as np
import tensorflow.compat.v2 as tf
from models import BATCH, STEPS, Builder, tf1

ROWS = BATCH * STEPS


def no_feeds(rng):
    return {}


@dataclasses.dataclass(frozen=True)
class Source:
    """A model and how its batches reach it."""

    build: Callable
    prepare: Tuple[str, ...] = ()  # operations that are run once after init
    filled: Callable = no_feeds  # rng -> what they are fed
    feeds: Callable = no_feeds  # rng -> what a step is fed
    runners: bool = False  # queue runners are started
    flags: Tuple[str, ...] = ()  # more options of graft-opt
    batches: Tuple = (None, BATCH)
    losses: Tuple[str, ...] = ("mean", "sum")
    fetches: Tuple[str, ...] = ("loss:0",)


def train(b: Builder, x, y, features=5):
    """Two layers on rows x and targets y: [rows, 1]."""
    w, bias = b.variable("w", [features, 4]), b.constant("b", [4], 0.1, trainable=True)
    v = b.variable("v", [4, 1])
    hidden = tf.tanh(tf.matmul(x, w, name="project") + bias, name="hidden")
    finish(b, tf.reduce_sum(tf.square(tf.matmul(hidden, v) - y), axis=1))


def finish(b: Builder, rows):
    b.train(tf1.train.GradientDescentOptimizer(0.1 / b.per), b.loss(b.total(rows)))


def data(rng, rows=BATCH, features=5, names=("x", "y")):
    x = rng.normal(size=[rows, features])
    return {names[0]: x.astype(np.float32), names[1]: np.sin(x[:, :1]).astype(np.float32)}


def all_data(rng):
    return data(rng, ROWS, names=("all_x", "all_y"))


def all_placeholders(b: Builder):
    return tf1.placeholder(b.dtype, [None, 5], "all_x"), tf1.placeholder(b.dtype, [None, 1], "all_y")


# --- Queues. ---


def dequeued(b: Builder, queue, rows=BATCH):
    queue.enqueue_many(all_placeholders(b), name="fill")
    queue.close(name="closed")
    take = queue.dequeue_many if b.spec.batch else queue.dequeue_up_to
    train(b, *take(rows, name="batch"))


def fifo_queue(b: Builder, rows=BATCH):
    """Examples from a queue, so many at a time."""
    dequeued(b, tf1.FIFOQueue(ROWS, [b.dtype] * 2, [[5], [1]]), rows)


def fifo_fixed(b: Builder, rows=BATCH):
    """As many as a scalar says: a fixed number, which no shape shows."""
    queue = tf1.FIFOQueue(ROWS, [b.dtype] * 2, [[5], [1]])
    queue.enqueue_many(all_placeholders(b), name="fill")
    train(b, *queue.dequeue_many(tf1.placeholder_with_default(rows, [], "rows"), name="batch"))


def shuffle_queue(b: Builder):
    dequeued(b, tf1.RandomShuffleQueue(ROWS, 0, [b.dtype] * 2, [[5], [1]], seed=3))


def queue_of_batches(b: Builder):
    """A queue of whole batches, as a prefetch queue has them, filled from a queue of examples."""
    examples = tf1.FIFOQueue(ROWS, [b.dtype] * 2, [[5], [1]], name="examples")
    examples.enqueue_many(all_placeholders(b), name="fill_examples")
    kind = tf1.FIFOQueue if b.spec.batch else tf1.PaddingFIFOQueue
    ready = kind(STEPS, [b.dtype] * 2, [[b.spec.batch, 5], [b.spec.batch, 1]], name="ready")
    with tf.control_dependencies([ready.enqueue(examples.dequeue_many(BATCH))]):
        tf.no_op("fill")
    train(b, *ready.dequeue(name="batch"))


def queue_runner(b: Builder):
    """tf1.train.batch: the queue runners of the collection fill the queues."""
    rng = np.random.default_rng(3)
    x, y = tf1.train.slice_input_producer(list(data(rng, ROWS).values()), shuffle=False)
    train(b, *tf1.train.batch([x, y], BATCH, allow_smaller_final_batch=b.spec.batch is None))


# --- Iterators. ---


def dataset(b: Builder, values, rows=BATCH):
    return tf1.data.Dataset.from_tensor_slices(values).repeat().batch(rows, drop_remainder=b.spec.batch is not None)


def one_shot_iterator(b: Builder, rows=BATCH):
    rng = np.random.default_rng(3)
    train(b, *tf1.data.make_one_shot_iterator(dataset(b, tuple(data(rng, ROWS).values()), rows)).get_next())


def initializable_iterator(b: Builder):
    """The data is fed once, when the iterator is made."""
    iterator = tf1.data.make_initializable_iterator(dataset(b, all_placeholders(b)))
    tf.group(iterator.initializer, name="fill")
    train(b, *iterator.get_next())


def optional_iterator(b: Builder):
    """The element of an Optional; the replicas do not divide an open batch."""
    rng = np.random.default_rng(3)
    rows = b.spec.batch or 7
    source = tf1.data.make_one_shot_iterator(dataset(b, tuple(data(rng, ROWS).values()), rows))
    train(b, *source.get_next_as_optional().get_value())


# --- Feeds. ---


def intermediate(b: Builder):
    """A tensor in the middle is fed in place of the batch, which it depends on."""
    train(b, *b.inputs([5], [1]))


def hidden_data(rng):
    fed = data(rng)
    return {"hidden": rng.normal(size=[BATCH, 4]).astype(np.float32), "y": fed["y"], "x": fed["x"]}


def first_layer(b: Builder):
    """The fed tensor depends on no feed that is split: a table of constants that stands in for the data."""
    everything = b.inputs([5], [1])
    train(b, tf.identity(everything[0], name="shown") * 2.0, everything[1])


def knobs(b: Builder):
    """Scalars that every replica reads whole: a rate, a factor, and a switch between two losses."""
    x, y = b.inputs([5], [1])
    rate, keep = tf1.placeholder(b.dtype, [], "rate"), tf1.placeholder_with_default(np.float32(1.0), [], "keep")
    training = tf1.placeholder(tf.bool, [], "training")
    w, v = b.variable("w", [5, 4]), b.variable("v", [4, 1])
    hidden = tf.tanh(tf.matmul(x, w)) * keep
    rows = tf.reduce_sum(tf.square(tf.matmul(hidden, v) - y), axis=1)
    rows = tf1.where(tf.fill(tf.shape(rows), training), rows, 0.5 * rows)
    b.train(tf1.train.GradientDescentOptimizer(rate), b.loss(b.total(rows)))


def knob_data(rng):
    rate = np.float32(rng.uniform(0.001, 0.01))
    return {**data(rng), "rate": rate, "keep": np.float32(0.7), "training": rng.uniform() < 0.5}


def time_major(b: Builder):
    """Steps of time first: the batch is axis 1 of x."""
    x = tf1.placeholder(b.dtype, [None, b.spec.batch, 5], name="x")
    y = b.placeholder("y", [1])
    train(b, tf.reduce_sum(x, axis=0), y)


def time_major_data(rng):
    fed = data(rng)
    return {"x": rng.normal(size=[4, BATCH, 5]).astype(np.float32), "y": fed["y"]}


def two_batches(b: Builder):
    """Labelled rows, and twice as many without labels."""
    x, y = b.inputs([5], [1])
    other = tf1.placeholder(b.dtype, [b.spec.batch and 2 * BATCH, 5], name="other")
    w, v = b.variable("w", [5, 4]), b.variable("v", [4, 1])
    error = tf.reduce_sum(tf.square(tf.matmul(tf.tanh(tf.matmul(x, w)), v) - y), axis=1)
    b.penalties.append(0.1 * b.total(tf.reduce_sum(tf.square(tf.matmul(other, w)), axis=1)))
    finish(b, error)


def two_batches_data(rng):
    return {**data(rng), "other": rng.normal(size=[2 * BATCH, 5]).astype(np.float32)}


# --- Records. ---


def records(b: Builder):
    return tf1.placeholder(tf.string, [b.spec.batch], name="records")


def csv_records(b: Builder):
    """Lines of text: five numbers, and one of a word that is a number too."""
    *columns, word = tf1.decode_csv(records(b), [[0.0]] * 5 + [[""]])
    train(b, tf.stack(columns, axis=1), tf.expand_dims(tf1.string_to_number(word), 1))


def csv_data(rng):
    return {"records": np.array([",".join(f"{v:.3f}" for v in row) for row in rng.normal(size=[BATCH, 6])], object)}


def raw_records(b: Builder):
    """Bytes that are the numbers."""
    rows = tf1.decode_raw(records(b), tf.float32)
    rows.set_shape([b.spec.batch, 6])
    train(b, rows[:, :5], rows[:, 5:])


def raw_data(rng):
    return {"records": np.array([row.tobytes() for row in rng.normal(size=[BATCH, 6]).astype(np.float32)], object)}


def example_records(b: Builder):
    """Serialized examples with features of a fixed length."""
    features = {"x": tf1.FixedLenFeature([5], tf.float32), "y": tf1.FixedLenFeature([1], tf.float32, [0.5])}
    parsed = tf1.parse_example(records(b), features)
    train(b, parsed["x"], parsed["y"])


def example_data(rng):
    def example(row, i):
        feature = {"x": tf1.train.Feature(float_list=tf1.train.FloatList(value=row[:5]))}
        if i % 3:
            feature["y"] = tf1.train.Feature(float_list=tf1.train.FloatList(value=row[5:]))
        return tf1.train.Example(features=tf1.train.Features(feature=feature)).SerializeToString()

    return {"records": np.array([example(row, i) for i, row in enumerate(rng.normal(size=[BATCH, 6]))], object)}


def sparse_records(b: Builder):
    """Serialized examples with a feature of any length: its words, the mean of their rows, beside dense features."""
    features = {"ids": tf1.VarLenFeature(tf.int64), "x": tf1.FixedLenFeature([5], tf.float32)}
    parsed = tf1.parse_example(records(b), {**features, "y": tf1.FixedLenFeature([1], tf.float32)})
    rows = tf1.nn.embedding_lookup_sparse(b.variable("table", [7, 5], 0.7), parsed["ids"], None, combiner="mean")
    train(b, tf.concat([rows, parsed["x"]], 1), parsed["y"], features=10)


def sparse_record_data(rng):
    def example(row):
        ids = tf1.train.Int64List(value=rng.integers(0, 7, rng.integers(1, 5)))
        feature = {"ids": tf1.train.Feature(int64_list=ids)}
        for key, part in ("x", row[:5]), ("y", row[5:]):
            feature[key] = tf1.train.Feature(float_list=tf1.train.FloatList(value=part))
        return tf1.train.Example(features=tf1.train.Features(feature=feature)).SerializeToString()

    return {"records": np.array([example(row) for row in rng.normal(size=[BATCH, 6])], object)}


WORDS = ["the", "quick", "brown", "fox", "jumps"]


def looked_up_words(b: Builder):
    """Words are looked up in a table, which exists once, then in a matrix."""
    words = tf1.placeholder(tf.string, [b.spec.batch, 3], name="words")
    y = b.placeholder("y", [1])
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(WORDS, np.arange(5, dtype=np.int64)), num_oov_buckets=2
    )
    tf1.tables_initializer("fill")
    rows = tf.nn.embedding_lookup(b.variable("table", [7, 5], 0.7), table.lookup(words))
    train(b, tf.reduce_mean(rows, axis=1), y)


def word_data(rng):
    return {"words": rng.choice(np.array([*WORDS, "lazy", "dog"], object), [BATCH, 3]), "y": data(rng)["y"]}


# --- Sparse tensors. ---


def sparse_feed(b: Builder):
    """A sparse matrix of words in documents: rows of the batch, columns of the vocabulary."""
    x = tf1.sparse_placeholder(b.dtype, [b.spec.batch, 9], name="x")
    w, v = b.variable("w", [9, 4]), b.variable("v", [4, 1])
    hidden = tf.tanh(tf1.sparse_tensor_dense_matmul(x, w))
    finish(b, tf.reduce_sum(tf.square(tf.matmul(hidden, v) - b.placeholder("y", [1])), axis=1))


def sparse_data(rng, columns=9):
    count = rng.integers(BATCH, 3 * BATCH)
    cells = np.sort(rng.choice(BATCH * columns, count, replace=False))
    fed = {"x/indices": np.stack([cells // columns, cells % columns], axis=1), "x/shape": np.array([BATCH, columns])}
    return {**fed, "x/values": rng.normal(size=[count]).astype(np.float32), "y": data(rng)["y"]}


def dense_of_sparse(b: Builder):
    x = tf1.sparse_placeholder(b.dtype, [b.spec.batch, 5], name="x")
    train(b, tf1.sparse_tensor_to_dense(x), b.placeholder("y", [1]))


def sparse_machine(b: Builder):
    """A factorization machine on a sparse tensor of which not even the rank is said: two products share its entries, one
    with the squares of their values, and its shape is cast."""
    x = tf1.sparse_placeholder(b.dtype, name="x")
    w, v = b.variable("w", [9, 1]), b.variable("v", [9, 4])
    squares = tf.SparseTensor(x.indices, tf.square(x.values), tf.cast(tf.shape(x), tf.int64))
    both = tf.square(tf1.sparse_tensor_dense_matmul(x, v, name="pairs"))
    pairs = tf.reduce_sum(both - tf1.sparse_tensor_dense_matmul(squares, tf.square(v)), axis=1)
    rows = tf1.sparse_tensor_dense_matmul(x, w) + 0.5 * tf.reshape(pairs, [-1, 1])
    finish(b, tf.reduce_sum(tf.square(rows - b.placeholder("y", [1])), axis=1))


def mixed_data(rng):
    """Entries in any order, and rows without one."""
    fed = sparse_data(rng)
    order = rng.permutation(len(fed["x/values"]))
    return {**fed, "x/indices": fed["x/indices"][order], "x/values": fed["x/values"][order]}


def sparse_fields(b: Builder):
    """A sparse tensor for each field, looked up by a product with the table of the field; one is transposed."""
    fields = [tf1.sparse_placeholder(b.dtype, name=f"x{i}") for i in range(2)]
    tables = [b.variable(f"table_{i}", [9, 3], 0.7) for i in range(2)]
    first = tf1.sparse_tensor_dense_matmul(fields[0], tables[0])
    last = tf1.sparse_tensor_dense_matmul(fields[1], tf.transpose(tables[1]), adjoint_b=True)
    train(b, tf.concat([first, last], 1), b.placeholder("y", [1]), 6)


def field_data(rng):
    fields = [mixed_data(rng) for _ in range(2)]
    fed = {key.replace("x/", f"x{i}/"): value for i, one in enumerate(fields) for key, value in one.items() if key != "y"}
    return {**fed, "y": fields[0]["y"]}


def sparse_lookup(b: Builder):
    """embedding_lookup_sparse: the mean of the rows of as many words as each document has."""
    ids = tf1.sparse_placeholder(tf.int64, [b.spec.batch, 9], name="x")
    rows = tf1.nn.embedding_lookup_sparse(b.variable("table", [7, 5], 0.7), ids, None, combiner="mean")
    train(b, rows, b.placeholder("y", [1]))


def sparse_lookup_data(rng):
    indices = np.array([(i, j) for i in range(BATCH) for j in range(rng.integers(1, 5))], np.int64)
    fed = {"x/indices": indices, "x/values": rng.integers(0, 7, len(indices)), "x/shape": np.array([BATCH, 9])}
    return {**fed, "y": data(rng)["y"]}


def weighted_lookup(b: Builder):
    """The fields of a row are rows of a sparse tensor; words have weights, which are fed, too."""
    indices, shape = tf1.placeholder(tf.int64, [None, 2], "i"), tf.constant([BATCH * 3, 4], tf.int64)
    words, weights = (tf.SparseTensor(indices, tf1.placeholder(t, [None], name), shape) for t, name in ((tf.int64, "k"), (b.dtype, "r")))
    rows = tf1.nn.embedding_lookup_sparse(b.variable("table", [7, 5], 0.7), words, weights, combiner="sum")
    train(b, tf.reshape(rows, [-1, 15]), b.placeholder("y", [1]), 15)


def weighted_lookup_data(rng):
    indices = np.array([(i, j) for i in range(3 * BATCH) for j in range(rng.integers(1, 4))], np.int64)
    count = len(indices)
    return {"i": indices, "k": rng.integers(0, 7, count), "r": rng.normal(size=[count]).astype(np.float32), "y": data(rng)["y"]}


def mean_of_words(b: Builder, words, axis=1):
    """The mean of the rows of a table that the words of a ragged tensor look up."""
    rows = tf.reduce_mean(tf.ragged.map_flat_values(tf.gather, b.variable("table", [7, 5], 0.7), words), axis)
    return tf.ensure_shape(rows, [None, 5]) if axis == 1 else rows


def words_of_documents(size=tf.int64, name="words"):
    return tf1.placeholder(size, [None], name)


def ragged_splits(b: Builder):
    """A ragged tensor by its row splits, beside dense features."""
    words = tf.RaggedTensor.from_row_splits(words_of_documents(), tf1.placeholder(tf.int64, [None], "splits"), validate=False)
    train(b, tf.concat([mean_of_words(b, words), b.placeholder("x", [5])], 1), b.placeholder("y", [1]), 10)


def ragged_lengths(b: Builder):
    """A ragged tensor by the lengths of its rows."""
    words = tf.RaggedTensor.from_row_lengths(words_of_documents(), tf1.placeholder(tf.int64, [None], "lengths"), validate=False)
    train(b, mean_of_words(b, words), b.placeholder("y", [1]))


def ragged_numbers(b: Builder):
    """A ragged tensor by the row of each value, which is made dense."""
    rows = tf1.placeholder(tf.int64, [None], "rows")
    words = tf.RaggedTensor.from_value_rowids(words_of_documents(), rows, tf.constant(BATCH, tf.int64), validate=False)
    dense = tf.gather(b.variable("table", [7, 5], 0.7), words.to_tensor(shape=[None, 4]))
    train(b, tf.reshape(dense, [-1, 20]), b.placeholder("y", [1]), 20)


def ragged_nested(b: Builder):
    """Words of sentences of documents."""
    splits = [tf1.placeholder(tf.int64, [None], name) for name in ("splits", "sentences")]
    words = tf.RaggedTensor.from_nested_row_splits(words_of_documents(), splits, validate=False)
    rows = tf.reduce_sum(mean_of_words(b, words, 2), 1)
    train(b, tf.ensure_shape(rows, [None, 5]), b.placeholder("y", [1]))


def segments(b: Builder):
    """Words, and the row that each belongs to, beside dense features."""
    x, rows = b.placeholder("x", [5]), tf1.placeholder(tf.int32, [None], "rows")
    found = tf.nn.embedding_lookup(b.variable("table", [7, 5], 0.7), words_of_documents())
    sums = tf.math.unsorted_segment_sum(found, rows, tf.shape(x)[0])
    train(b, tf.concat([x, tf.ensure_shape(sums, [None, 5])], 1), b.placeholder("y", [1]), 10)


def default_of_one_row(b: Builder):
    """Weights of the features, one row by default, which is repeated for the rows that are fed."""
    weights = tf1.placeholder_with_default(np.full([1, 5], 0.3, np.float32), [None, 5], "weights")
    train(b, tf.cast(weights, b.dtype) * b.placeholder("x", [5]), b.placeholder("y", [1]))


def errors_minimized(b: Builder):
    """The errors of rows, which their op gives beside their gradient, are minimized without a sum."""
    x, labels = b.placeholder("x", [5]), b.placeholder("labels", [], tf.int32)
    logits = tf.matmul(tf.tanh(tf.matmul(x, b.variable("w", [5, 4]))), b.variable("v", [4, 3]))
    rows = tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name="rows")
    b.train(tf1.train.GradientDescentOptimizer(0.1 / BATCH), rows)


def label_data(rng):
    return {"x": data(rng)["x"], "labels": rng.integers(0, 3, BATCH)}


def ragged_data(*names):
    def made(rng):
        lengths = rng.integers(1, 5, BATCH)
        sentences = rng.integers(1, 3, BATCH)
        if "sentences" in names:
            lengths = rng.integers(1, 5, sentences.sum())
        fed = {
            "splits": np.r_[0, np.cumsum(sentences if "sentences" in names else lengths)],
            "sentences": np.r_[0, np.cumsum(lengths)],
            "lengths": lengths,
            "rows": np.repeat(np.arange(len(lengths)), lengths),
        }
        dense = {key: value for key, value in data(rng).items() if key in (*names, "y")}
        return {**dense, **{name: fed[name] for name in names if name in fed}, "words": rng.integers(0, 7, lengths.sum())}

    return made


def diffusion(b: Builder):
    """A sparse matrix of nodes times [nodes, features * rows]: the rows are the inner part of the columns."""
    x, rows = b.placeholder("x", [4, 3]), b.spec.batch
    rows = rows or tf.shape(x)[0]
    graph = tf.SparseTensor([[0, 1], [1, 3], [2, 0], [2, 2], [3, 1]], tf.constant([0.5, 1.0, -0.7, 0.3, 1.2], b.dtype), [4, 4])
    first = tf.reshape(tf.transpose(x, [1, 2, 0]), [4, 3 * rows])
    second = tf.sparse.sparse_dense_matmul(graph, first)
    third = 2.0 * tf.sparse.sparse_dense_matmul(graph, second, name="spread") - first
    steps = tf.reshape(tf.stack([first, second, third]), [3, 4, 3, rows])
    train(b, tf.reshape(tf.transpose(steps, [3, 1, 2, 0]), [rows, 36]), b.placeholder("y", [1]), 36)


def diffusion_data(rng):
    return {"x": rng.normal(size=[BATCH, 4, 3]).astype(np.float32), "y": data(rng)["y"]}


def sequence_labels(b: Builder):
    """CTC: as many labels as a sequence has, and how far the best path is off, of time-major logits."""
    x, labels = b.placeholder("x", [6, 5]), tf1.sparse_placeholder(tf.int32, name="labels")
    w, v = b.variable("w", [5, 7]), b.variable("v", [7, 4])
    hidden = tf.tanh(tf.matmul(tf.reshape(x, [-1, 5]), w), name="project")
    rows = b.spec.batch or tf.shape(x)[0]
    logits = tf.transpose(tf.reshape(tf.matmul(hidden, v), [rows, 6, 4]), [1, 0, 2])
    lengths = tf.fill([rows], 6)
    paths, _ = tf1.nn.ctc_greedy_decoder(logits, lengths)
    tf.reduce_mean(tf1.edit_distance(tf.cast(paths[0], tf.int32), labels), name="distance")
    finish(b, tf1.nn.ctc_loss(labels, logits, lengths))


def sequence_label_data(rng):
    lengths = rng.integers(1, 4, BATCH)
    indices = np.array([(i, j) for i in range(BATCH) for j in range(lengths[i])], np.int64)
    fed = {"labels/indices": indices, "labels/values": rng.integers(0, 3, len(indices)), "labels/shape": np.array([BATCH, 3])}
    return {**fed, "x": rng.normal(size=[BATCH, 6, 5]).astype(np.float32)}


FILLED = {"prepare": ("fill",), "filled": all_data}

SOURCES: Dict[str, Source] = {
    "fifo_queue": Source(fifo_queue, **FILLED),
    "fifo_fixed": Source(fifo_fixed, **FILLED, batches=(None,)),
    "shuffle_queue": Source(shuffle_queue, **FILLED),
    "queue_of_batches": Source(queue_of_batches, ("fill_examples", "fill", "fill", "fill"), all_data),
    "queue_runner": Source(queue_runner, runners=True),
    "one_shot_iterator": Source(one_shot_iterator),
    "initializable_iterator": Source(initializable_iterator, **FILLED),
    "optional_iterator": Source(optional_iterator),
    "intermediate": Source(intermediate, feeds=hidden_data, flags=("--feed=hidden=split",)),
    "first_layer": Source(first_layer, feeds=data, flags=("--feed=shown:0=split", "--feed=x=copy")),
    "knobs": Source(knobs, feeds=knob_data),
    "time_major": Source(time_major, feeds=time_major_data, flags=("--feed=x=split(1)",)),
    "two_batches": Source(two_batches, feeds=two_batches_data),
    "sparse_feed": Source(sparse_feed, feeds=sparse_data),
    "sparse_fields": Source(sparse_fields, feeds=field_data),
    "sparse_machine": Source(sparse_machine, feeds=mixed_data),
    "dense_of_sparse": Source(dense_of_sparse, feeds=lambda rng: sparse_data(rng, 5)),
    "sparse_lookup": Source(sparse_lookup, feeds=sparse_lookup_data),
    "weighted_lookup": Source(weighted_lookup, feeds=weighted_lookup_data),
    "default_of_one_row": Source(default_of_one_row, feeds=data, batches=(None,)),
    "errors_minimized": Source(errors_minimized, feeds=label_data, fetches=("rows/rows:0",), losses=("sum",)),
    "ragged_splits": Source(ragged_splits, feeds=ragged_data("splits", "x"), batches=(None,)),
    "ragged_lengths": Source(ragged_lengths, feeds=ragged_data("lengths"), batches=(None,)),
    "ragged_numbers": Source(ragged_numbers, feeds=ragged_data("rows"), batches=(None,)),
    "ragged_nested": Source(ragged_nested, feeds=ragged_data("splits", "sentences"), batches=(None,)),
    "segments": Source(segments, feeds=ragged_data("rows", "x"), batches=(None,)),
    "diffusion": Source(diffusion, feeds=diffusion_data),
    "sequence_labels": Source(sequence_labels, feeds=sequence_label_data, fetches=("loss:0", "distance:0")),
    "csv_records": Source(csv_records, feeds=csv_data),
    "raw_records": Source(raw_records, feeds=raw_data),
    "example_records": Source(example_records, feeds=example_data),
    "sparse_records": Source(sparse_records, feeds=sparse_record_data),
    "looked_up_words": Source(looked_up_words, ("fill",), feeds=word_data),
}
