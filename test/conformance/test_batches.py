# SPDX-License-Identifier: Apache-2.0
"""Where the batch comes from: a step on what a queue, an iterator, records or feeds give is the same step on N devices."""

import contextlib
import dataclasses

import compare
import harness
import numpy as np
import pytest
from harness import Options, Session
from models import BATCH, STEPS, Spec, tf1
from models_batches import SOURCES


class Fed(Session):
    """A session whose queues and iterators are filled."""

    def __init__(self, source, path, replicas=1):
        self.source, self.coordinator = source, None
        super().__init__(path, replicas)

    def close(self):
        if self.coordinator:
            self.coordinator.request_stop()
            self.coordinator.join(self.threads, ignore_live_threads=True)
            self.coordinator = None
        super().close()

    def start(self):
        """Initialises and fills."""
        self.restart()
        rng = np.random.default_rng(11)
        for name in self.source.prepare:
            fed = {f"{key}:0": value for key, value in self.source.filled(rng).items()}
            self.run(name, {k: v for k, v in fed.items() if name.startswith("fill")})
        if self.source.runners:
            self.coordinator = tf1.train.Coordinator()
            with self.graph.as_default():
                self.threads = tf1.train.start_queue_runners(self.session, self.coordinator)

    def advance(self, steps=STEPS):
        """The fetched values of each step, and the variables after it."""
        self.start()
        rng, rows = np.random.default_rng(7), [((), self.values())]
        for _ in range(steps):
            fed = {f"{key}:0": value for key, value in self.source.feeds(rng).items()}
            fetched = self.run([*self.source.fetches, "train_op"], fed)[:-1]
            rows.append((tuple(fetched), self.values()))
        return rows


def check_same(source, got, want):
    for i, (ours, theirs) in enumerate(zip(got, want)):
        harness.assert_all_close(ours[1], theirs[1], f"after step {i}")
        for name, a, b in zip(source.fetches, ours[0], theirs[0]):
            harness.assert_close(a, b, f"{name} of step {i}")


def variants():
    chosen = []
    for name, source in SOURCES.items():
        first, last = source.batches[0], source.batches[-1]
        chosen += [
            (Spec(name, "resource", first, source.losses[0]), Options(2, "all-reduce", "collective", source.flags)),
            (Spec(name, "ref", last, source.losses[-1]), Options(3, "ps", "add", source.flags)),
        ]
    return chosen


@pytest.mark.parametrize("spec,options", variants(), ids=lambda value: str(getattr(value, "strategy", value)))
def test_same_steps(spec, options):
    source = SOURCES[spec.model]
    path = compare.export(spec, source.build)
    with Fed(source, path) as session:
        want = session.advance()
    out, said = harness.rewrite(path, options)
    assert said == "", said
    with Fed(source, out, options.replicas) as session:
        got = session.advance()
        session.check_copies("at the end")
    check_same(source, got, want)


def test_batch_is_spread():
    """Each replica works on its share of what one dequeue gives."""
    source = SOURCES["fifo_queue"]
    out, _ = harness.rewrite(compare.export(Spec("fifo_queue", batch=BATCH), source.build), Options(3))
    with Fed(source, out, 3) as session:
        session.start()
        rows = [f"replica_{i}/project:0" for i in range(3)]
        assert [value.shape[0] for value in session.run(rows)] == [BATCH // 3] * 3
        assert [op.name for op in session.graph.get_operations() if op.type == "QueueDequeueManyV2"] == ["batch"]


OWN = ("--batch=per-replica", "--fetch=project:0")


def own_batches(spec, replicas):
    """The results of a step on the batches of all replicas, taken at once; and the graph that takes one batch."""
    source = SOURCES[spec.model]
    with Fed(source, compare.export(spec, lambda b: source.build(b, replicas * BATCH))) as session:
        want = session.advance(STEPS // replicas)
    return want, compare.export(spec, source.build)


@pytest.mark.parametrize(
    "spec,options",
    [
        (Spec("fifo_fixed", "resource", None, "mean"), Options(3, "all-reduce", "collective", OWN)),
        (Spec("fifo_fixed", "ref", None, "sum"), Options(2, "ps", "add", OWN)),
        (Spec("fifo_queue", "ref", BATCH, "sum"), Options(3, "all-reduce", "add", OWN)),
    ],
    ids=str,
)
def test_own_batches(spec, options):
    """Every replica takes a batch: the step is that of all of them together, also where sizes are constants."""
    source = SOURCES[spec.model]
    want, path = own_batches(spec, options.replicas)
    out, said = harness.rewrite(path, options)
    assert said == "", said
    with Fed(source, out, options.replicas) as session:
        got = session.advance(STEPS // options.replicas)
        session.check_copies("at the end")
        session.start()
        assert session.run("project:0").shape[0] == options.replicas * BATCH
        kinds = [op.device for op in session.graph.get_operations() if op.type == "QueueDequeueManyV2"]
        assert len(kinds) == options.replicas and set(kinds) == {""}, kinds
    check_same(source, got, want)
    harness.rewrite(path, dataclasses.replace(options, extra=(*OWN, "--verify-output")))


def test_own_iterator_batches():
    """The elements of an iterator with an open number of rows are joined, which needs no assumption."""
    source, spec = SOURCES["one_shot_iterator"], Spec("one_shot_iterator")
    want, path = own_batches(spec, 3)
    out, said = harness.rewrite(path, Options(3, extra=(*OWN, "--strict")))
    assert said == "", said
    with Fed(source, out, 3) as session:
        check_same(source, session.advance(1), want)
    assert harness.run_graft(["--certify", out, "--against=" + path]).stderr == ""


def epochs(path, replicas):
    """The losses and rows of each step of two epochs, and the weights."""
    tf1.reset_default_graph()
    tf1.train.import_meta_graph(path)
    steps = []
    with tf1.Session(config=tf1.ConfigProto(device_count={"CPU": replicas + 1})) as session:
        session.run(tf1.global_variables_initializer())
        for _ in range(2):
            session.run("again")
            with contextlib.suppress(tf1.errors.OutOfRangeError):
                while True:
                    steps.append(session.run(["loss:0", "rows:0", "train"])[:2])
        return [loss for loss, _ in steps], [rows.tolist() for _, rows in steps], session.run("w:0")


@pytest.mark.parametrize("batch,replicas", [(4, 2), (3, 3), (5, 4), (23, 2)])
@pytest.mark.parametrize("iterators", [1, 2])
def test_last_elements(tmp_path, batch, replicas, iterators):
    """The last step of an epoch takes the elements that are left, and two iterators keep their elements together."""
    features = np.random.default_rng(7).normal(size=(23, 5)).astype(np.float32)
    labels = features[:, :1] * 2

    def export(size, path):
        tf1.reset_default_graph()
        data = [(features, labels)] if iterators == 1 else [features, labels]
        reads = [tf1.data.make_initializable_iterator(tf1.data.Dataset.from_tensor_slices(part).batch(size)) for part in data]
        tf1.group(*(read.initializer for read in reads), name="again")
        x, y = reads[0].get_next() if iterators == 1 else [read.get_next() for read in reads]
        w = tf1.get_variable("w", [5, 1], initializer=tf1.ones_initializer())
        loss = tf1.reduce_mean(tf1.square(tf1.matmul(tf1.identity(x, name="rows"), w) - y), name="loss")
        tf1.train.AdamOptimizer(0.05).minimize(loss, name="train")
        tf1.train.export_meta_graph(path)
        return path

    one = export(batch, str(tmp_path / "one.meta"))
    want = epochs(export(batch * replicas, str(tmp_path / "large.meta")), replicas)
    out, said = harness.rewrite(one, Options(replicas, extra=("--batch=per-replica", "--fetch=rows", "--strict")))
    assert said == "", said
    got = epochs(out, replicas)
    assert got[1] == want[1]
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5)
    np.testing.assert_allclose(got[2], want[2], rtol=1e-5)


def test_own_batches_of_a_fixed_mean():
    """The mean over a static batch divides by a number: there is no such step on more rows."""
    path = compare.export(Spec("fifo_queue", batch=BATCH), SOURCES["fifo_queue"].build)
    done = harness.run_graft([path, "-o", path + ".no", *Options(2, extra=OWN).arguments()], check=False)
    assert done.returncode == 1 and "this number may be the batch size 12" in done.stderr, done.stderr


def test_batch_that_does_not_divide():
    """The last, smaller batch of an iterator is trained on, as on one device."""
    source = SOURCES["fifo_queue"]
    path = compare.export(Spec("fifo_queue"), source.build)
    out, _ = harness.rewrite(path, Options(3))
    values = []
    for graph, replicas in ((path, 1), (out, 3)):
        with Fed(source, graph, replicas) as session:
            session.restart()
            some = {f"{key}:0": value[: BATCH + 2] for key, value in source.filled(np.random.default_rng(11)).items()}
            session.run("fill", some)
            session.run("closed")
            session.run("train_op")
            session.run("train_op")
            values.append(session.values())
    harness.assert_all_close(values[1], values[0], "after two rows")


def test_axis_that_is_not_clear():
    """Steps of time and the batch are both unknown: splitting the wrong one is refused, and a remark says what to do."""
    path = compare.export(Spec("time_major"), SOURCES["time_major"].build)
    done = harness.run_graft([path, "-o", path + ".no", *Options(2, extra=("--remarks", "--strict", "--fallback=mean")).arguments()], check=False)
    assert done.returncode == 1 and "adds a per-replica shard to a replicated value along the batch axis" in done.stderr, done.stderr
    assert "node 'x': split along axis 0 over 2 replicas; axis 1 is unknown too: if that is the batch, give --feed=x=split(1)" in done.stderr


def test_columns_are_spread():
    """The other factor of a sparse matrix has columns of a replica's rows."""
    source = SOURCES["diffusion"]
    out, _ = harness.rewrite(compare.export(Spec("diffusion", batch=BATCH), source.build), Options(3))
    with Fed(source, out, 3) as session:
        session.start()
        fed = {f"{key}:0": value for key, value in source.feeds(np.random.default_rng(7)).items()}
        products = [op.name for op in session.graph.get_operations() if op.type == "SparseTensorDenseMatMul" and "spread" in op.name]
        columns = [value.shape[1] for value in session.run([f"{name}:0" for name in products], fed)]
        assert columns == [3 * BATCH // 3] * 3, (products, columns)


@pytest.mark.parametrize("batch", [None, BATCH])
def test_losses_of_sequences_are_spread(batch):
    """The loss of sparse labels exists once; what leads to it and its gradient are of a replica's rows."""
    source = SOURCES["sequence_labels"]
    out, _ = harness.rewrite(compare.export(Spec("sequence_labels", batch=batch), source.build), Options(3))
    with Fed(source, out, 3) as session:
        session.start()
        rng = np.random.default_rng(7)
        fed = {f"{key}:0": value for key, value in source.feeds(rng).items()}
        rows = session.run([f"replica_{i}/{name}:0" for i in range(3) for name in ("project", "gradients/project_grad/TanhGrad")], fed)
        assert [value.shape[0] for value in rows] == [6 * BATCH // 3] * 6


@pytest.mark.parametrize("name", ["sparse_feed", "sparse_machine", "dense_of_sparse"])
@pytest.mark.parametrize("batch", [None, BATCH])
def test_entries_are_spread(name, batch):
    """Each replica multiplies the entries of its rows, and nothing is computed once."""
    source = SOURCES[name]
    out, said = harness.rewrite(compare.export(Spec(name, batch=batch), source.build), Options(3, extra=("--min-spread=95",)))
    assert said == "", said
    with Fed(source, out, 3) as session:
        session.start()
        fed = {f"{key}:0": value for key, value in source.feeds(np.random.default_rng(7)).items()}
        ops = session.graph.get_operations()
        products = [op for op in ops if op.type == "SparseTensorDenseMatMul" and not op.get_attr("adjoint_a")]
        products += [op for op in ops if op.type == "SparseToDense"]
        assert len(products) == 3 * {"sparse_machine": 3}.get(name, 1), products
        rows = session.run([op.outputs[0] for op in products], fed)
        assert [value.shape[0] for value in rows] == [BATCH // 3] * len(products), rows
        # Eleven rows are no three equal shares.
        with pytest.raises(tf1.errors.InvalidArgumentError):
            session.run("train_op", {**fed, "x/shape:0": [11, fed["x/shape:0"][1]]})


def test_gradient_of_entries():
    """The gradient of the values that are fed is computed by each replica for its own; one that is fetched, on the whole."""
    source = SOURCES["sparse_feed"]
    path = compare.export(Spec("sparse_feed"), source.build)
    with Fed(source, path) as session:
        session.start()
        fed = {f"{key}:0": value for key, value in source.feeds(np.random.default_rng(7)).items()}
        product = next(op for op in session.graph.get_operations() if op.type == "SparseTensorDenseMatMul")
        name = f"gradients/{product.name}_grad/tuple/control_dependency"
        want = session.run(f"{name}:0", fed)
    out, _ = harness.rewrite(path, Options(3))
    with Fed(source, out, 3) as session, pytest.raises(KeyError):
        session.graph.get_tensor_by_name(f"{name}:0")
    out, _ = harness.rewrite(path, Options(3, extra=(f"--fetch={name}",)))
    with Fed(source, out, 3) as session:
        session.start()
        harness.assert_close(session.run(f"{name}:0", fed), want, name)


def test_sparse_parts_that_are_said_to_be_rows():
    """The parts of a sparse tensor have no row for each row of the batch: if they are named so, that is not proved, and is said."""
    path = compare.export(Spec("sparse_lookup"), SOURCES["sparse_lookup"].build)
    named = ("--feed=x/indices=split", "--feed=x/values=split", "--strict", "--fallback=mean")
    done = harness.run_graft([path, "-o", path + ".no", *Options(2, extra=named).arguments()], check=False)
    assert done.returncode == 1 and "is not proved" in done.stderr, done.stderr
