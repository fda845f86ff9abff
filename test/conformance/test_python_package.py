# SPDX-License-Identifier: Apache-2.0
"""tools/python: graft.rewrite and graft.load, in this process and as a command."""

import concurrent.futures
import os
import pathlib
import pickle
import re
import subprocess
import sys
import weakref

import harness
import numpy as np
import pytest
import tensorflow.compat.v1 as tf1

SOURCES = os.path.join(harness.ROOT, "tools", "python", "src")
sys.path.insert(0, SOURCES)

import graft

ROWS = np.random.RandomState(0).rand(8, 4)
FEEDS = {"x:0": ROWS, "y:0": ROWS.sum(1, keepdims=True)}


@pytest.fixture(autouse=True)
def programs(monkeypatch):
    monkeypatch.setenv("GRAFT_OPT", harness.graft_opt())
    monkeypatch.setenv("GRAFT_LAUNCH", os.path.join(os.path.dirname(harness.graft_opt()), "graft-launch"))


def build(saver=True, unknown=False):
    """A model with a loss, in a graph of its own."""
    graph = tf1.Graph()
    with graph.as_default():
        tf1.set_random_seed(1)
        x = tf1.placeholder(tf1.float32, [None, 4], "x")
        y = tf1.placeholder(tf1.float32, [None, 1], "y")
        w = tf1.get_variable("w", [4, 1])
        error = tf1.square(tf1.matmul(x, w) - y)
        if unknown:
            error *= tf1.placeholder(tf1.float32, name="weight")
        loss = tf1.reduce_mean(error, name="loss")
        tf1.train.AdamOptimizer(0.1).minimize(loss, name="train")
        saver_def = tf1.train.Saver().saver_def if saver else None
        return graph, tf1.train.export_meta_graph(saver_def=saver_def)


def losses(meta, steps=5, save=None, restore=None):
    with graft.load(meta) as model:
        if restore:
            model.saver.restore(model.session, restore)
        else:
            model.session.run(model.init_op)
        made = [model.session.run([model.tensor("loss"), model.train_op], FEEDS)[0] for _ in range(steps)]
        if save:
            model.saver.save(model.session, save)
        return made


def test_equal_losses_and_checkpoints_both_ways(tmp_path):
    _, single = build()
    double = graft.rewrite(single, replicas=2, device_type="CPU")
    whole = losses(single, 6)
    np.testing.assert_allclose(losses(double, 6), whole, rtol=1e-5)
    for first, then in (single, double), (double, single):
        save = str(tmp_path / "model")
        made = losses(first, 3, save=save) + losses(then, 3, restore=save)
        np.testing.assert_allclose(made, whole, rtol=1e-5)


@pytest.mark.parametrize("form", ["meta", "graph_def", "graph", "path", "pathlib", "text"])
def test_what_it_takes(form, tmp_path):
    graph, meta = build()
    path = tmp_path / "in.meta"
    path.write_bytes(meta.SerializeToString())
    text = tmp_path / "in.pbtxt"
    text.write_text(str(meta.graph_def))
    given = {"meta": meta, "graph_def": meta.graph_def, "graph": graph, "path": str(path), "pathlib": path, "text": str(text)}[form]
    made = graft.rewrite(given, replicas=2, device_type="CPU")
    assert made.kind == ("graph" if form in ("graph_def", "text") else "metagraph")
    assert any(node.name == "w/replica_1" for node in made.graph_def.node)
    if made.kind == "metagraph":
        assert made.meta_graph.graph_def == made.graph_def
        assert type(made.meta_graph) is type(meta)
    else:
        with pytest.raises(ValueError, match="no MetaGraphDef"):
            _ = made.meta_graph
        with pytest.raises(ValueError, match="takes a MetaGraphDef"):
            graft.load(made)


def test_what_it_does_not_take():
    with pytest.raises(TypeError, match="not dict"):
        graft.rewrite({}, replicas=2)


def test_save_is_all_or_nothing(tmp_path):
    _, meta = build()
    made = graft.rewrite(meta, replicas=2, device_type="CPU")
    with open(made.path, "rb") as file:
        bytes_of_it = file.read()
    out = tmp_path / "out.meta"
    assert made.save(out) == str(out)
    path = made.path
    del made
    assert not os.path.exists(path), "a temporary file goes with its object"
    assert out.read_bytes() == bytes_of_it
    assert os.listdir(tmp_path) == ["out.meta"]
    given = graft.rewrite(meta, replicas=2, device_type="CPU", output=tmp_path / "given.meta")
    assert given.path == str(tmp_path / "given.meta") and (tmp_path / "given.meta").read_bytes() == bytes_of_it


def test_saves_at_once_leave_each_other_alone(tmp_path):
    _, meta = build()
    two, four = (graft.rewrite(meta, replicas=n, device_type="CPU") for n in (2, 4))
    bytes_of = {made: pathlib.Path(made.path).read_bytes() for made in (two, four)}
    out = tmp_path / "out.meta"

    def save(made):
        for _ in range(200):
            made.save(out)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(save, (two, four)))
    assert out.read_bytes() in bytes_of.values()
    assert all(pathlib.Path(made.path).read_bytes() == its for made, its in bytes_of.items())
    assert os.listdir(tmp_path) == ["out.meta"]


def test_save_does_not_write_through_a_link(tmp_path):
    _, meta = build()
    made = graft.rewrite(meta, replicas=2, device_type="CPU")
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / f"out.meta.{os.getpid()}.tmp").symlink_to(victim)
    (tmp_path / "out.meta").symlink_to(victim)
    made.save(tmp_path / "out.meta")
    assert victim.read_bytes() == b"precious"
    assert (tmp_path / "out.meta").read_bytes() == pathlib.Path(made.path).read_bytes()


def test_a_forked_process_leaves_the_file():
    _, meta = build()
    made = graft.rewrite(meta, replicas=2, device_type="CPU")
    child = os.fork()
    if child == 0:
        try:
            weakref.finalize._exitfunc()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.path.exists(made.path)


def test_errors_are_pickled():
    _, meta = build(unknown=True)
    for arguments, kind in (({"strict": True, "replicas": 2}, graft.InputError), ({"replicas": 0}, graft.UsageError)):
        with pytest.raises(kind) as refused:
            graft.rewrite(meta, device_type="CPU", **arguments)
        error, again = refused.value, pickle.loads(pickle.dumps(refused.value))
        assert type(again) is kind and str(again) == str(error) and vars(again) == vars(error)


@pytest.mark.parametrize("name", ["@in.meta", "-in.meta", "-"])
def test_any_name_is_that_of_a_file(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, meta = build()
    pathlib.Path(name).write_bytes(meta.SerializeToString())
    for response_file in ("in.meta", "out"):
        pathlib.Path(response_file).write_text("--no-such-flag")
    out = f"{name[0]}out"
    made = graft.rewrite(name, replicas=2, device_type="CPU", output=out)
    assert made.path == out and os.path.getsize(out) > 0 and made.plan.replicas == 2


def test_remarks_and_plan():
    _, meta = build(unknown=True)
    made = graft.rewrite(meta, replicas=2, device_type="CPU", fetches=["loss:0"])
    assert {remark.node for remark in made.remarks if remark.id == "feed"} >= {"x", "y"}
    reduction = next(remark for remark in made.remarks if remark.id == "reduction")
    assert reduction.pass_name in ("insert-reductions", "merge-fetches") and reduction.facts["scale"] in (-1, 1)
    warning = next(each for each in made.warnings if each.node == "weight")
    assert warning.id == "feed" and "rank of this feed is not known" in str(warning)
    plan = made.plan
    assert plan.replicas == 2 and plan.variables == 1 and plan.variable_bytes == 16
    assert plan.best.seconds == min(row.seconds for row in plan.strategies)
    assert graft.rewrite(meta, replicas=2, device_type="CPU", feeds={"weight": "copy"}).warnings == []


def test_options_are_those_of_the_program(tmp_path):
    _, meta = build()
    strategy = tmp_path / "ps.pbtxt"
    graft.rewrite(meta, replicas=2, device_type="CPU", strategy="ps", emit_strategy=strategy)
    shared = graft.rewrite(meta, devices=["/device:CPU:0", "/device:CPU:1"], strategy=strategy, check_copies=False)
    assert not any(node.name == "w/replica_1" for node in shared.graph_def.node)
    once = graft.rewrite(meta, replicas=2, device_type="CPU", variable={"w": "shared"}, feeds={"x": 0, "y": "split"})
    assert not any(node.name == "w/replica_1" for node in once.graph_def.node)
    np.testing.assert_allclose(losses(shared), losses(meta), rtol=1e-5)


def test_errors(tmp_path):
    _, meta = build(unknown=True)
    with pytest.raises(graft.InputError) as refused:
        graft.rewrite(meta, replicas=2, device_type="CPU", strict=True)
    error = refused.value
    assert error.status == 1 and [each.node for each in error.errors] == ["weight"]
    assert "--strict" in error.command
    with pytest.raises(graft.UsageError, match="did you mean 'all-reduce'") as usage:
        graft.rewrite(meta, replicas=2, strategy="al-reduce")
    assert usage.value.status == 2 and isinstance(usage.value, ValueError)
    with pytest.raises(graft.UsageError, match="no_such_option|no-such-option"):
        graft.rewrite(meta, replicas=2, no_such_option=1)
    with pytest.raises(graft.InputError, match="No such file"):
        graft.rewrite(str(tmp_path / "none.meta"), replicas=2)
    bad = tmp_path / "bad.pbtxt"
    bad.write_text("node_config { var_name: 'w'")
    with pytest.raises(graft.InputError, match=r"bad.pbtxt:1:\d+: error: .*is missing"):
        graft.rewrite(meta, replicas=2, strategy=bad)


def test_without_a_saver_or_with_a_session():
    _, meta = build(saver=False)
    made = graft.rewrite(meta, replicas=2, device_type="CPU")
    config = tf1.ConfigProto(device_count={"CPU": 2})
    with tf1.Session(graph=tf1.Graph(), config=config) as session:
        model = graft.load(made, session)
        assert model.session is session and sorted(model.feeds) == ["x", "y"]
        session.run(model.init_op)
        session.run(model.train_op, FEEDS)


def test_as_a_command(tmp_path):
    _, meta = build()
    path = tmp_path / "in.meta"
    path.write_bytes(meta.SerializeToString())
    command = [sys.executable, "-m", "graft", str(path), "-o", str(tmp_path / "out.meta"), "--replicas=2", "--device-type=CPU"]
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and (tmp_path / "out.meta").exists(), done.stderr
    done = subprocess.run([sys.executable, "-m", "graft", "--no-such-flag"], env=environment, capture_output=True, text=True)
    assert done.returncode == 2


@pytest.mark.parametrize("keras", ["import keras", "import tf_keras as keras"])
def test_keras(keras, tmp_path):
    """The program of docs/Tutorial.md, with Keras 3 and Keras 2."""
    with open(os.path.join(harness.ROOT, "docs", "Tutorial.md"), encoding="utf-8") as page:
        program = re.search(r"```python\n(# keras_mlp.py\n.*?)```", page.read(), re.S)[1]
    wanted = "from tensorflow import keras"
    assert wanted in program
    (tmp_path / "program.py").write_text(program.replace(wanted, keras))
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    done = subprocess.run([sys.executable, "program.py"], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip() == "the same loss on one device: True", done.stderr


def test_needs_no_tensorflow(tmp_path):
    """In an interpreter that can import nothing but the standard library."""
    program = (
        "import sys, graft\n"
        "made = graft.rewrite(sys.argv[1], replicas=2, device_type='CPU')\n"
        "assert made.plan.replicas == 2 and made.remarks and graft.version()\n"
        "assert not [name for name in sys.modules if name.startswith(('tensorflow', 'google', 'numpy'))]\n"
    )
    path = os.path.join(harness.ROOT, "test", "inputs", "cnn_bn.meta")
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    subprocess.run([sys.executable, "-S", "-c", program, path], env=environment, check=True, cwd=tmp_path)
