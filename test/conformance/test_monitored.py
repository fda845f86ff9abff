# SPDX-License-Identifier: Apache-2.0
"""The functions that people call after import_meta_graph work on the rewritten graph as it does on the input.

Savers, scaffolds and initializers that are built after the import know the graph by its collections only.
"""

import contextlib
import os
import tempfile

import compare
import harness
import models
import models_habits
import numpy as np
import pytest
import tensorflow.compat.v1 as tf1
from harness import Options, Session
from models import Builder, Spec
from models_habits import HABITS
from tensorflow.core.protobuf import control_flow_pb2

CONFIG = dict(allow_soft_placement=False, inter_op_parallelism_threads=2, intra_op_parallelism_threads=1)


def rewritten(path, replicas=2, strategy="all-reduce", reduction="auto", unordered=()):
    out, said = harness.rewrite(path, Options(replicas, strategy, reduction, ("--verify-output",)))
    if unordered:
        said = harness.without_order(said, *unordered)
    assert said == "", said
    return out


def feeds(batch):
    return {"x:0": batch[0], "y:0": batch[1]}


# --- Savers built after the import. ---


@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("model", ["mlp_adam", "embedding"])
def test_saver_built_after_import(model, kind):
    """Such a saver has the keys of the single-device graph and restores primaries; graft/refresh_copies does the rest."""
    spec = Spec(model, kind)
    want, batches = harness.reference(spec), models.batches(model)
    with Session(rewritten(harness.export(spec), 3), 3) as session:
        with session.graph.as_default():
            saver = tf1.train.Saver()
        assert sorted(v.op.name for v in saver._var_list) == sorted(want.variables[0])
        session.restart()
        session.step(batches[2])
        saver.restore(session.session, want.checkpoint)
        with pytest.raises(AssertionError, match="replica_"):
            session.check_copies("what is stale without a refresh")
        session.run("graft/refresh_copies")
        session.check(want.variables[1], "restored")
        harness.assert_close(session.step(batches[1]), want.losses[1], "loss after restore")
        session.check(want.variables[2], "a step after restore")
        prefix = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "late")
        prefix = saver.save(session.session, prefix, write_meta_graph=False, write_state=False)
    with Session(harness.export(spec)) as single:
        single.restore(prefix)
        single.check(want.variables[2], "the single-device graph restored from it")


@pytest.mark.parametrize("kind", ["ref", "resource"])
def test_copies_without_a_value_are_an_error(kind):
    """In a new session a step after such a restore does not run on what is not there."""
    spec = Spec("mlp_adam", kind)
    with Session(rewritten(harness.export(spec)), 2) as session:
        with session.graph.as_default():
            saver = tf1.train.Saver()
        session.restart(init=False)
        saver.restore(session.session, harness.reference(spec).checkpoint)
        with pytest.raises(tf1.errors.FailedPreconditionError, match="replica_1"):
            session.step(models.batches("mlp_adam")[0])


@pytest.mark.parametrize("kind,reduction", [("ref", "add"), ("resource", "collective")])
@pytest.mark.parametrize("model", ["mlp_adam", "mlp_clip"])
def test_step_on_stale_copies(model, kind, reduction):
    """With --check-copies it is an error, and nothing else is."""
    spec = Spec(model, kind)
    want, batches = harness.reference(spec), models.batches(model)
    options = Options(3, reduction=reduction, extra=("--check-copies", "--verify-output"))
    with harness.Rewritten(spec, options) as session:
        session.check_steps()
        with session.graph.as_default():
            saver = tf1.train.Saver()
        session.restart()
        session.step(batches[2])  # collectives of which no step was completed stay aborted after an error
        saver.restore(session.session, want.checkpoint)
        with pytest.raises(tf1.errors.InvalidArgumentError, match="run graft/refresh_copies"):
            session.step(batches[1])
        saver.restore(session.session, want.checkpoint)
        session.run("graft/refresh_copies")
        harness.assert_close(session.step(batches[1]), want.losses[1], "loss after the refresh")
        session.check(want.variables[2], "a step after the refresh")


@contextlib.contextmanager
def monitored(path, replicas, directory):
    with tf1.Graph().as_default():
        tf1.train.import_meta_graph(path)
        config = tf1.ConfigProto(device_count={"CPU": replicas}, **CONFIG)
        # The scaffold is the default one: all that it has is in the collections, or is built now.
        with tf1.train.MonitoredTrainingSession(
            checkpoint_dir=directory,
            config=config,
            save_checkpoint_steps=1,
            save_summaries_steps=None,
            save_summaries_secs=None,
            log_step_count_steps=None,
        ) as session:
            yield session


@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("strategy", ["all-reduce", "ps"])
def test_monitored_training_session(kind, strategy):
    """It initialises, saves, and goes on from the checkpoint in a new session as if nothing had happened."""
    spec = Spec("mlp_adam", kind)
    path, directory = rewritten(harness.export(spec), 3, strategy), tempfile.mkdtemp(dir=harness.workdir())
    batches, losses = models.batches("mlp_adam"), []
    for batch in batches:
        with monitored(path, 3, directory) as session:
            losses.append(session.run(["loss:0", "train_op"], feeds(batch))[0])
    for i, (got, want) in enumerate(zip(losses, harness.reference(spec).losses)):
        harness.assert_close(got, want, f"loss of step {i + 1}, each in a session of its own")
    # And the single-device graph goes on from there.
    with Session(harness.export(spec)) as single:
        single.restore(tf1.train.latest_checkpoint(directory))
        single.check(harness.reference(spec).variables[3], "after three sessions")


def test_monitored_session_starts_from_a_single_device_checkpoint():
    spec, directory = Spec("mlp_adam"), tempfile.mkdtemp(dir=harness.workdir())
    with Session(harness.export(spec)) as single:
        single.restart()
        single.step(models.batches("mlp_adam")[0])
        single.saver.save(single.session, os.path.join(directory, "model.ckpt"), write_meta_graph=False)
    with monitored(rewritten(harness.export(spec)), 2, directory) as session:
        loss = session.run(["loss:0", "train_op"], feeds(models.batches("mlp_adam")[1]))[0]
    harness.assert_close(loss, harness.reference(spec).losses[1], "the second step")


# --- Initializers, tables, summaries, queues. ---


@pytest.mark.parametrize("kind", ["ref", "resource"])
def test_global_variables_initializer(kind):
    """It is built after the import, of the initializers that the collections name, and reaches all copies."""
    spec = Spec("mlp_adam", kind)
    with Session(rewritten(harness.export(spec), 3), 3) as session:
        with session.graph.as_default():
            init = tf1.global_variables_initializer()
            missing = tf1.report_uninitialized_variables()
        session.restart(init=False)
        assert len(session.run(missing)) == len(session.variables)
        session.run(init)
        assert len(session.run(missing)) == 0
        session.check(harness.reference(spec).variables[0], "after the initializer")


UNORDERED = ["weights_summary", "weights_summary/ReadVariableOp"]


def everything(b: Builder):
    """A table of rates, streaming metrics, summaries, and a queue with a runner beside the step."""
    x, y = b.inputs([3], [], x_dtype=tf1.int32)
    rates = tf1.lookup.KeyValueTensorInitializer(np.arange(3, dtype=np.int64), np.float32([0.1, 0.05, 0.2]))
    table = tf1.lookup.StaticHashTable(rates, 0.0)
    weights, w = b.variable("weights", [11, 5], 0.7), b.variable("w", [5, 1], 0.5)
    rows = tf1.reduce_sum(tf1.nn.embedding_lookup(weights, x), axis=1)
    error = tf1.squeeze(tf1.matmul(rows, w), [1]) - y
    loss = b.loss(b.total(tf1.square(error)))
    tf1.summary.scalar("loss_summary", loss)
    tf1.summary.histogram("weights_summary", weights)
    mean, update = tf1.metrics.mean(tf1.square(error), name="mean")
    tf1.identity(mean, name="mean_metric")
    step = tf1.train.get_or_create_global_step()
    queue = tf1.FIFOQueue(4, [tf1.int64], shapes=[[]])
    tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [queue.enqueue(step)]))
    tf1.identity(queue.dequeue(), name="from_queue")
    optimizer = tf1.train.MomentumOptimizer(table.lookup(step), 0.9)
    tf1.group(b.train(optimizer, loss, global_step=step), update, name="step")


def after_import(path, replicas):
    """Runs three steps with what is built after the import; returns what can be compared."""
    graph, seen = tf1.Graph(), []
    with graph.as_default():
        tf1.train.import_meta_graph(path)
        init = [tf1.global_variables_initializer(), tf1.local_variables_initializer(), tf1.tables_initializer()]
        merged = tf1.summary.merge_all()
        config = tf1.ConfigProto(device_count={"CPU": replicas}, **CONFIG)
        with tf1.Session(graph=graph, config=config) as session:
            for op in init:
                session.run(op)
            coordinator = tf1.train.Coordinator()
            threads = tf1.train.start_queue_runners(session, coordinator)
            assert len(threads) > 0
            seen.append(session.run("from_queue:0"))
            for batch in models_habits.batches(models.lookups, 3):
                summary, loss, _ = session.run([merged, "loss:0", "step"], feeds(batch))
                parsed = {v.tag: v for v in tf1.Summary.FromString(summary).value}
                seen += [loss, np.float32(parsed["loss_summary"].simple_value), parsed["weights_summary"].histo.num]
                seen.append(session.run("mean_metric:0"))
            assert sorted(parsed) == ["loss_summary", "weights_summary"]
            coordinator.request_stop()
            session.close()
            coordinator.join(threads, stop_grace_period_secs=5)
    return seen


@pytest.mark.parametrize("kind,strategy,reduction", [("ref", "ps", "add"), ("resource", "all-reduce", "collective")])
def test_after_import(kind, strategy, reduction):
    """Local variables, tables, merged summaries and queue runners of the collections."""
    path = compare.export(Spec("everything", kind), everything)
    out = rewritten(path, 3, strategy, reduction, unordered=UNORDERED)
    got, want = after_import(out, 3), after_import(path, 1)
    assert len(got) == len(want) == 13
    for i, (a, b) in enumerate(zip(got, want)):
        harness.assert_close(a, b, f"value {i}")


def test_local_init_of_a_monitored_session():
    """graft/local_init_op also runs what TensorFlow's own would: local variables and tables."""
    path = compare.export(Spec("everything", "resource"), everything)
    with monitored(rewritten(path, unordered=UNORDERED), 2, None) as session:
        batch = models_habits.batches(models.lookups, 1)[0]
        loss = session.run(["loss:0", "step"], feeds(batch))[0]
        assert session.run("mean_metric:0") > 0
    with monitored(path, 1, None) as session:
        harness.assert_close(loss, session.run(["loss:0", "step"], feeds(batch))[0], "loss")


# --- Signatures and contexts. ---


def test_signature():
    """A v1 SavedModel: what its signature names is there, with global values."""
    spec, batch = Spec("mlp_adam"), models.batches("mlp_adam")[0]
    directory = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "model")
    with Session(harness.export(spec)) as single:
        single.restart()
        want = single.run("loss:0", feeds(batch))
        with single.graph.as_default():
            get = single.graph.get_tensor_by_name
            signature = tf1.saved_model.predict_signature_def({"x": get("x:0"), "y": get("y:0")}, {"loss": get("loss:0")})
            builder = tf1.saved_model.Builder(directory)
            builder.add_meta_graph_and_variables(
                single.session, ["train"], {"loss": signature}, saver=tf1.train.Saver(), strip_default_attrs=False
            )
            builder.save()
    out = rewritten(os.path.join(directory, "saved_model.pb"))
    os.replace(out, os.path.join(directory, "saved_model.pb"))
    config = tf1.ConfigProto(device_count={"CPU": 2}, **CONFIG)
    with tf1.Session(graph=tf1.Graph(), config=config) as session:
        meta = tf1.saved_model.load(session, ["train"], directory)
        named = meta.signature_def["loss"]
        x, y = (named.inputs[name].name for name in ("x", "y"))
        got = session.run(named.outputs["loss"].name, {x: batch[0], y: batch[1]})
        harness.assert_close(got, want, "the signature's output")


def test_contexts_name_what_is_in_the_branch():
    """The tensors of a conditional are those of replica 0, so that gradients can be built after the import."""
    path = compare.export(Spec("losses_module"), HABITS["losses_module"].build)
    graph = tf1.Graph()
    with graph.as_default():
        meta = tf1.train.import_meta_graph(rewritten(path)) and tf1.train.export_meta_graph(graph=graph)
        for collected in graph.get_collection(tf1.GraphKeys.COND_CONTEXT):
            assert collected.pred.op.graph is graph
        local = 0
        for bytes_ in meta.collection_def["cond_context"].bytes_list.value:
            context = control_flow_pb2.CondContextDef.FromString(bytes_)
            for name in context.values_def.values:
                op = graph.get_tensor_by_name(name).op
                local += op.name.startswith("replica_0/")
                assert not op.name.startswith("replica_1/")
                # A value that was merged has left the branch.
                assert "_graft_replicas" not in op.node_def.attr, name
        assert local > 10
        variables = tf1.trainable_variables()
        assert None not in tf1.gradients(graph.get_tensor_by_name("replica_0/loss:0"), variables[:1])
