# SPDX-License-Identifier: Apache-2.0
"""The effects of a step beside its variables happen as often as in the input, with the values of the global batch.

Each effect leaves something that can be counted: lines of a file or of stderr, calls, events, elements, nodes that ran.
"""

import glob
import os
import tempfile

import compare
import harness
import models_habits
import numpy as np
import pytest
import tensorflow.compat.v2 as tf
from harness import Options, Session
from models import Builder, Spec, tf1
from models_habits import ROWS, regress

STEPS = 3
CASES = [("resource", "all-reduce", "collective"), ("ref", "ps", "add")]
BATCHES = models_habits.batches(ROWS, STEPS)
KEPT = []  # graphs of the inputs: python functions live as long as these


def export(effect, kind):
    """`regress` with an effect: effect(b, loss, rows) returns what the step waits for."""

    def fill(b: Builder):
        KEPT.append(tf1.get_default_graph())
        _, _, rows = regress(b)
        loss = b.loss(b.total(rows))
        with tf.control_dependencies([effect(b, loss, rows)]):
            b.train(tf1.train.GradientDescentOptimizer(0.1), loss)

    return compare.export(Spec("effect", kind), fill)


def run(path, replicas=1, before=(), after=()):
    """Three steps; returns the losses and what is fetched at the end."""
    with Session(path, replicas) as session:
        session.restart()
        for name in before:
            session.run(name)
        losses = [session.step(batch) for batch in BATCHES]
        return losses, [session.run(name) for name in after]


def both(effect, case, before=(), after=(), flags=(), unordered=()):
    """Runs the input, then the rewritten graph; yields each, after it ran. Nothing orders `unordered` with updates."""
    kind, strategy, reduction = case
    path = export(effect, kind)
    want = run(path, 1, before, after)
    yield want
    out, said = harness.rewrite(path, Options(3, strategy, reduction, (*flags, "--verify-output")))
    if unordered:
        said = harness.without_order(said, *unordered)
    assert said == "", said
    got = run(out, 3, before, after)
    for i, (a, b) in enumerate(zip(got[0], want[0])):
        harness.assert_close(a, b, f"loss of step {i + 1}")
    for name, a, b in zip(after, got[1], want[1]):
        harness.assert_close(a, b, name)
    yield got


@pytest.fixture
def directory():
    return tempfile.mkdtemp(dir=harness.workdir())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_print(case, capfd):
    def effect(b, loss, rows):
        return tf1.Print(loss, [loss], message="printed here: ")

    for losses, _ in both(effect, case):
        lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("printed here: ")]
        assert len(lines) == STEPS, lines
        for line, loss in zip(lines, losses):
            assert abs(float(line.split("[")[-1].split("]")[0]) - loss) < 1e-4, (line, loss)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_print_v2(case, directory):
    path = os.path.join(directory, "printed")

    def effect(b, loss, rows):
        return tf.print(loss, output_stream="file://" + path)

    for losses, _ in both(effect, case):
        with open(path) as file:
            lines = file.read().splitlines()
        os.remove(path)
        assert len(lines) == STEPS, lines
        assert np.allclose([float(line) for line in lines], losses, atol=1e-4)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_python_function(case):
    """It sees the rows of the whole batch, once a step."""
    seen = []

    def effect(b, loss, rows):
        return tf1.py_func(lambda r: seen.append(r) or np.float32(0), [rows], tf.float32)

    counts = []
    for _ in both(effect, case):
        counts.append([np.array(s) for s in seen])
        seen.clear()
    assert [len(c) for c in counts] == [STEPS, STEPS]
    for got, want in zip(counts[1], counts[0]):
        harness.assert_close(got, want, "what the function saw")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_file(case, directory):
    """One file a step, since its name counts the calls of a python function."""
    calls = []

    def effect(b, loss, rows):
        count = tf1.py_func(lambda: calls.append(0) or np.int64(len(calls)), [], tf.int64)
        return tf.io.write_file(tf.strings.join([directory + "/file-", tf.as_string(count)]), tf.as_string(loss))

    for losses, _ in both(effect, case):
        files = sorted(glob.glob(directory + "/file-*"), key=lambda f: int(f.split("-")[-1]))
        assert len(files) == STEPS, files
        for name, loss in zip(files, losses):
            with open(name) as file:
                assert abs(float(file.read()) - loss) < 1e-4
            os.remove(name)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_summary_writer(case, directory):
    """Summaries of TensorFlow 2, which a resource writes from inside the step."""
    made = []

    def effect(b, loss, rows):
        with tf1.variable_scope("", use_resource=True):
            writer = tf.summary.create_file_writer(directory)
        made.append(writer)
        with tf.name_scope("writer"):
            tf.group(writer.init(), name="init")
            tf.group(writer.flush(), name="flush")
        with writer.as_default(step=7):
            return tf.group(tf.summary.write("loss_scalar", loss))

    for losses, _ in both(effect, case, before=["writer/init"], after=["writer/flush"]):
        values = []
        for name in glob.glob(directory + "/events*"):
            for event in tf1.train.summary_iterator(name):
                values += [float(tf.make_ndarray(v.tensor)) for v in event.summary.value if v.tag == "loss_scalar"]
            os.remove(name)
        assert np.allclose(values, losses, atol=1e-4), (values, losses)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_queue(case):
    def effect(b, loss, rows):
        queue = tf1.FIFOQueue(100, [tf.float32], shapes=[[]], shared_name=f"losses-{len(KEPT)}")
        tf.identity(queue.size(), name="size")
        return queue.enqueue(loss)

    for _, (size,) in both(effect, case, after=["size:0"]):
        assert size == STEPS


@pytest.mark.parametrize("case", CASES, ids=str)
def test_table(case):
    """A mutable table: one element a step, under the number of the call."""

    def effect(b, loss, rows):
        table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, -1.0)
        count = table.size()
        tf.identity(table.size(), name="size")
        tf.identity(table.lookup(tf.constant([0, 1, 2, 3], tf.int64)), name="content")
        return table.insert(count, loss)

    for losses, (size, content) in both(effect, case, after=["size:0", "content:0"]):
        assert size == STEPS
        assert np.allclose(content, [*losses, -1.0], atol=1e-4)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_table_initializer(case, directory):
    """It is run once: a static table refuses other values, and its file is read by one node."""
    path = os.path.join(directory, "words")
    with open(path, "w") as file:
        file.write("zero\none\ntwo\n")

    def effect(b, loss, rows):
        source = tf1.lookup.TextFileInitializer(
            path, tf.string, tf1.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf1.lookup.TextFileIndex.LINE_NUMBER
        )
        table = tf1.lookup.StaticHashTable(source, -1)
        tf.group(tf1.tables_initializer(), name="tables")
        tf.identity(table.lookup(tf.constant(["two", "five"])), name="found")
        return table.size()

    for _, (found,) in both(effect, case, before=["tables"], after=["found:0"]):
        assert found.tolist() == [2, -1]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_checkpoint(case, directory):
    """A step that saves: one file, with the values of the primaries."""
    prefix = os.path.join(directory, "in-step")

    def effect(b, loss, rows):
        (w,) = [v for v in tf1.global_variables() if v.op.name == "w"]
        return tf.raw_ops.SaveV2(prefix=prefix, tensor_names=["w"], shape_and_slices=[""], tensors=[w.value()])

    saved = []
    for _ in both(effect, case):
        saved.append(tf.train.load_checkpoint(prefix).get_tensor("w"))
        assert sorted(os.listdir(directory)) == ["in-step.data-00000-of-00001", "in-step.index"]
    harness.assert_close(saved[1], saved[0], "w in the file")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_counters(case):
    """Integers, floats, and one that the user adds to after the step, in every form that writes."""

    def effect(b, loss, rows):
        step = tf1.train.get_or_create_global_step()
        kinds = [b.constant("count", [], 0.0)]
        integer = tf1.get_variable("integer", [], tf.int32, initializer=tf1.zeros_initializer(), trainable=False)
        for variable in (*kinds, integer, step):
            tf.identity(variable.read_value(), name="read_" + variable.op.name)
        return tf.group(tf1.assign_add(step, 1), integer.assign_add(2), kinds[0].assign(kinds[0] + 0.5))

    after, unordered = ["read_global_step:0", "read_integer:0", "read_count:0"], ["read_count", "Read/ReadVariableOp"]
    for _, values in both(effect, case, after=after, unordered=unordered):
        assert [float(v) for v in values] == [STEPS, 2 * STEPS, 0.5 * STEPS]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("limit", [1e9, -1.0])
def test_assert(case, limit):
    """An assertion on rows holds, or fails, as in the input; it may do so on each replica."""

    def effect(b, loss, rows):
        return tf1.Assert(tf.reduce_all(rows < limit), [rows])

    if limit > 0:
        assert len(list(both(effect, case))) == 2
        return
    path = export(effect, case[0])
    out, _ = harness.rewrite(path, Options(3, *case[1:]))
    for name, replicas in ((path, 1), (out, 3)):
        with pytest.raises(tf1.errors.InvalidArgumentError, match="assertion failed"):
            run(name, replicas)
