# SPDX-License-Identifier: Apache-2.0
"""The files of workers that do not wait (--async): each is the step of the input, and all update the same variables under
their locks. With --staleness, too, what counts steps and waits is in them as it must be. Broken ones are refused, in a line
that names the node and the file. That together they are no step of a single device is a declared departure: a warning,
which --strict refuses."""

import collections
import re
import subprocess

import compare
import harness
import models_habits
import pytest
import tensorflow.compat.v2 as tf
from models import BATCH, Spec, tf1
from tensorflow.core.protobuf import meta_graph_pb2
from test_between_proof import certify, rewrite

SAID = "no single-device run gives the same result"
WRITTEN = [
    (Spec("mlp_adam", "resource"), 2, 1, 1),
    (Spec("mlp_adam", "ref", BATCH), 3, 0, 2),
    (Spec("mlp_clip", "resource"), 3, 2, 2),
    (Spec("embedding", "resource"), 2, 2, 1),
    (Spec("embedding", "ref"), 2, 1, 2),
    (Spec("cnn_nobn", "resource"), 2, 1, 1),
    (Spec("adamw_assign", "ref"), 2, 1, 1),
    (Spec("mlp_random", "resource"), 3, 1, 1),
]


def rows(b):
    """Rows that are scattered, a variable of each worker, and a draw."""
    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    y = tf1.placeholder(tf.int32, [None], name="y")
    table = tf1.get_variable("table", [8, 4], initializer=tf1.zeros_initializer())
    tf1.get_variable(
        "seen",
        [],
        initializer=tf1.zeros_initializer(),
        trainable=False,
        collections=[tf1.GraphKeys.LOCAL_VARIABLES],
    ).assign_add(1.0, name="count")
    drawn = tf1.nn.dropout(x, rate=0.5, seed=3)
    loss = tf.reduce_mean(drawn * tf.gather(table, y), name="loss")
    tf1.train.GradientDescentOptimizer(1.0).minimize(loss, tf1.train.get_or_create_global_step(), name="train_op")


@pytest.mark.parametrize("bound", [0, 2])
@pytest.mark.parametrize("spec,workers,servers,local", WRITTEN, ids=str)
def test_accepted(spec, workers, servers, local, bound):
    path = harness.export(spec)
    flag = f"--staleness={bound}" if bound else "--async"
    files = rewrite(path, workers, servers, "ps", f"--replicas={local}", flag, "--verify-output")
    for order in (files, files[::-1]):
        ran = certify(order, path)
        assert ran.returncode == 0 and ran.stderr.count("\n") == 1 and SAID in ran.stderr, ran.stderr
        assert (f"more than {bound} steps ahead" in ran.stderr) == (bound != 0), ran.stderr
    strict = subprocess.run(
        [harness.graft_opt(), "--strict", "--certify", *files, f"--against={path}"], capture_output=True, text=True
    )
    assert strict.returncode == 1 and SAID in strict.stderr


def test_no_variables(tmp_path):
    """A worker without variables has a file of its own all the same."""
    path = str(tmp_path / "no_variables.meta")
    with tf.Graph().as_default():
        tf.reduce_mean(tf1.placeholder(tf.float32, [None, 4], name="x") * 2.0, name="loss")
        tf1.train.export_meta_graph(path)
    files = rewrite(path, 2, 1, "ps", "--async", "--verify-output")
    ran = certify(files, path)
    assert ran.returncode == 0 and SAID in ran.stderr, ran.stderr


# Every replica has a part of a metric that is declared sync-on-read, and the step is made once.
@pytest.mark.parametrize("name", sorted(models_habits.HABITS.keys() - {"metrics"}))
def test_habits(name):
    """The idioms of training steps, with a bound: in conditionals, in several names, beside each other."""
    model = models_habits.HABITS[name]
    path = compare.export(Spec(name), model.build)
    fetches = [f"--fetch={f.split(':')[0]}" for f in (*model.fetches, *model.after)]
    files = rewrite(path, 2, 1, "ps", *model.flags, *fetches, "--staleness=1", "--verify-output")
    ran = certify(files, path)
    assert ran.returncode == 0 and SAID in ran.stderr, ran.stderr


def mutants(node):
    """The edits that make a node wrong, by a word."""

    def lock(n):
        n.attr["use_locking"].b = False

    def name(n):
        n.attr["shared_name"].s = b"private"

    def task(n):
        n.device = re.sub("(job:[a-z]+/task:)[0-9]+", r"\g<1>7", n.device)

    def seed(n):
        n.attr["seed2"].i += 1

    def dropped(n):
        del n.input[:]
        n.op, n.device = "NoOp", ""
        n.attr.clear()

    def local(n):
        n.attr["_graft_part"].s = b"local" if n.attr["_graft_part"].s == b"shared" else b"shared"

    def worker(n):
        n.attr["_graft_worker"].i += 1

    applies = "Apply" in node.op or "Scatter" in node.op
    if applies and "use_locking" in node.attr:
        yield "an update without its lock", lock
    if applies or node.op.startswith("AssignAdd"):
        yield "an update is dropped", dropped
    if node.op in ("VarHandleOp", "VariableV2"):
        yield "shared_name made private", name
        yield "device of another task", task
        yield "a variable of all is each worker's, or the other way round", local
        yield "file of another worker", worker
    if "seed2" in node.attr:
        yield "another seed", seed


@pytest.mark.parametrize("kind", ["resource", "ref"])
def test_mutants(kind):
    path = compare.export(Spec("async_rows", kind), rows)
    files = rewrite(path, 2, 1, "ps", "--async")
    ran = certify(files, path)
    assert ran.returncode == 0 and SAID in ran.stderr, ran.stderr
    seen = set()
    for i, file in enumerate(files):
        with open(file, "rb") as f:
            read = meta_graph_pb2.MetaGraphDef.FromString(f.read())
        for k, node in enumerate(read.graph_def.node):
            for word, edit in mutants(node):
                broken = meta_graph_pb2.MetaGraphDef()
                broken.CopyFrom(read)
                edit(broken.graph_def.node[k])
                mutant = file + ".mutant"
                with open(mutant, "wb") as f:
                    f.write(broken.SerializeToString(deterministic=True))
                ran = certify([*files[:i], mutant, *files[i + 1 :]], path)
                line = next((each for each in ran.stderr.splitlines() if "error:" in each), "")
                assert ran.returncode == 1 and ("node '" in line or "worker" in line), (node.name, word, ran.stderr)
                seen.add(word)
    assert len(seen) == 7, seen


def changed(value):
    """Another value of an attribute."""
    other = type(value)()
    other.CopyFrom(value)
    kind = value.WhichOneof("value")
    if kind == "s":
        other.s += b"x"
    elif kind == "i":
        other.i += 1
    elif kind == "b":
        other.b = not value.b
    elif kind == "type":
        other.type = tf.float64.as_datatype_enum
    elif kind == "shape":
        other.shape.dim.add().size = 3
    elif kind == "tensor":
        array = tf.make_ndarray(value.tensor)
        array = array ^ True if array.dtype == bool else array - 1 if array.max(initial=0) > 1e6 else array + 1
        other.tensor.CopyFrom(tf.make_tensor_proto(array))
    else:
        other.list.type.append(tf.float64.as_datatype_enum)
    return other


def bound_mutants(meta, loose):
    """Graphs with one change, by a word and the node: of what only a file with a bound has, and of who waits."""

    def broken(k):
        other = meta_graph_pb2.MetaGraphDef()
        other.CopyFrom(meta)
        return other, other.graph_def.node[k]

    before = {n.name: n for n in loose.graph_def.node}
    seen = {n.attr["_graft_part"].s: f"^{n.name}" for n in meta.graph_def.node if "_graft_part" in n.attr}
    for k, node in enumerate(meta.graph_def.node):
        was = before.get(node.name)
        if was is None or was.op != node.op:
            other, n = broken(k)
            n.device = n.device.replace("task:0", "task:1") if "job:ps" in n.device else "/job:ps/task:0/device:CPU:0"
            yield "device", node.name, other
            if node.device:
                other, n = broken(k)
                n.device = ""
                yield "no device", node.name, other
            for key, value in node.attr.items():
                other, n = broken(k)
                n.attr[key].CopyFrom(changed(value))
                yield f"attribute {key}", node.name, other
                if key.startswith("_graft"):
                    other, n = broken(k)
                    del n.attr[key]
                    yield f"no attribute {key}", node.name, other
        for part in (b"gate", b"zeros") if was is not None else ():
            if seen[part] not in node.input:
                other, n = broken(k)
                n.input.append(seen[part])
                yield f"waits for {part.decode()}", node.name, other
        for i, source in enumerate(node.input):
            if was is not None and was.op == node.op and source in was.input:
                continue
            other, n = broken(k)
            if source.startswith("^"):
                del n.input[i]
                yield "does not wait", node.name, other
            else:
                spare = other.graph_def.node.add(name="spare", op="Const", device=node.device)
                spare.attr["dtype"].type = tf.int64.as_datatype_enum
                spare.attr["value"].tensor.CopyFrom(tf.make_tensor_proto([0, 0], tf.int64))
                n.input[i] = "spare"
                yield "another input", node.name, other


def graph_of(file):
    with open(file, "rb") as f:
        return meta_graph_pb2.MetaGraphDef.FromString(f.read())


def refused(files, i, mutant, path):
    """The first line of what is said of the files with another one for worker i, or nothing if they are accepted."""
    written = files[i] + ".mutant"
    with open(written, "wb") as f:
        f.write(mutant.SerializeToString(deterministic=True))
    ran = certify([*files[:i], written, *files[i + 1 :]], path)
    assert ran.returncode in (0, 1), ran.stderr
    return next((line for line in ran.stderr.splitlines() if "error:" in line), "") if ran.returncode else ""


def test_bound_mutants():
    """Every node of what counts and waits, its device, attributes and inputs, and every edge to it."""
    path = harness.export(Spec("linear", "resource"))
    files = rewrite(path, 2, 1, "ps", "--staleness=2")
    loose = rewrite(path, 2, 1, "ps", "--async")
    made = collections.Counter()
    for i in range(2):
        for word, name, mutant in bound_mutants(graph_of(files[i]), graph_of(loose[i])):
            line = refused(files, i, mutant, path)
            assert "node '" in line or "worker" in line, (i, name, word, line)
            made[word] += 1
    assert sum(made.values()) > 300 and len(made) > 20, made
    print(f"{sum(made.values())} mutants are refused: {dict(made)}")


@pytest.mark.parametrize("chosen,said", [((0,), "2 workers"), ((0, 0), "two files"), ((1,), "2 workers")])
def test_files_are_missing(chosen, said):
    path = harness.export(Spec("linear", "resource"))
    files = rewrite(path, 2, 1, "ps", "--async")
    ran = certify([files[i] for i in chosen], path)
    assert ran.returncode == 1 and said in ran.stderr, ran.stderr
