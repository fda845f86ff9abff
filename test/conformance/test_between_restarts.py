# SPDX-License-Identifier: Apache-2.0
"""A graph for each worker, with every task in a process of its own. The chief is killed and started again: it goes on from
its checkpoint, and so do the others, which were not. Every step is fed the same batch, so variables say how many were made.
"""

import signal
import tempfile
import time

import compare
import harness
import models
import numpy as np
import pytest
import tensorflow.compat.v2 as tf
from models import Spec, tf1
from between_sessions import LIMIT_SECONDS, Task
from test_between_async import counted, harness_read, rewrite
from test_between_faults import after
from test_between_graph import jobs_of
from test_between_proof import written

SPEC = Spec("mlp_adam", "resource")


def rows(i, workers=2, spec=SPEC):
    batch = models.batches(spec.model, spec.dtype)[0]
    share = len(batch[0]) // workers
    return {f"{n}:0": v[i * share : (i + 1) * share] for n, v in zip("xy", batch)}


def checkpoint_of(folder):
    return int(tf1.train.latest_checkpoint(folder).rpartition("-")[2])


def saved_in(folder, path):
    """The values of the last checkpoint, read by the graph of the single device."""
    with harness.Session(path) as single:
        single.restore(tf1.train.latest_checkpoint(folder))
        return single.values()


class Tasks:
    """All tasks of a cluster, which share a folder for checkpoints."""

    def __init__(self, jobs, paths, feeds, filters, **more):
        self.jobs, self.paths, self.feeds, self.filters, self.more = jobs, paths, feeds, filters, more
        self.folder, self.tasks = tempfile.mkdtemp(dir=harness.workdir()), {}

    def __enter__(self):
        for i in range(len(self.jobs.get("ps", []))):
            self.tasks["ps", i] = Task(self.jobs, "ps", i, limit=self.more.get("limit", LIMIT_SECONDS))
        return self

    def __exit__(self, *_):
        for task in self.tasks.values():
            task.kill()

    def start(self, i):
        """Starts worker `i`, again if it is there."""
        if ("worker", i) in self.tasks:
            self.tasks["worker", i].kill()
        one = Task(
            self.jobs, "worker", i, self.paths[i], self.folder, self.feeds(i), filters=self.filters(i), **self.more
        )
        self.tasks["worker", i] = one
        return one

    def kill(self, i):
        self.tasks["worker", i].kill()


def of_strategy(strategy, servers, workers=2, spec=SPEC, **more):
    path, jobs = harness.export(spec), jobs_of(workers, servers)
    paths = written(path, jobs, strategy)

    def filters(i):
        copies = i == 0 and strategy != "ps"
        return ["/job:ps", "/job:worker"] if copies else ["/job:ps", "/job:worker/task:0", f"/job:worker/task:{i}"]

    return path, Tasks(jobs, paths, lambda i: rows(i, workers, spec), filters, **more)


@pytest.mark.parametrize("strategy,servers", [("ps", 1), ("all-reduce", 0), ("parallax", 1)])
def test_killed_chief(strategy, servers):
    """The chief is killed twice. It has the step of its checkpoint when it is there again, the other worker waits, and
    all steps after that are made once."""
    last = 40
    path, tasks = of_strategy(strategy, servers, last=last)
    with tasks:
        chief, other = tasks.start(0), tasks.start(1)
        for step in (12, 24):
            chief.until("step", step)
            tasks.kill(0)
            assert other.waits()
            kept, sessions = checkpoint_of(tasks.folder), len(other.events("session"))
            assert step - 5 <= kept
            chief = tasks.start(0)
            assert chief.until("session") == kept
            assert chief.until("step") == kept + 1
            # A worker that waited for a run to begin does not see it. Others are in a new session, of a step that is at or after that
            # of the checkpoint.
            if strategy != "ps":
                other.until("session", after=sessions)
            assert all(step >= kept for step in other.events("session")[sessions:])
        chief.until("end")
        other.until("end")
        assert chief.events("step") == list(range(kept + 1, last + 1))
        other.let_go()
        chief.let_go()
    got = saved_in(tasks.folder, path)
    assert got["global_step"] == last
    harness.assert_all_close(got, after(path, last), f"after {last} steps")


def stopped_in_a_run(tasks, step):
    """The chief and worker 1 are in a run, for which worker 1 has given its part: it waits for worker 2, which stands still."""
    chief, one, two = (tasks.start(i) for i in range(3))
    chief.until("step", step)
    two.send(signal.SIGSTOP)
    assert chief.waits() and one.waits()
    return chief, one, two


def end_well(tasks, path, last, chief, *others):
    for task in (chief, *others):
        task.until("end")
    for task in (*others, chief):
        task.let_go()
    got = saved_in(tasks.folder, path)
    assert got["global_step"] == last
    harness.assert_all_close(got, after(path, last), f"after {last} steps")


def test_killed_chief_in_a_run():
    """A worker that waits for the end of a run on a server, where the chief's death is not seen: when the next run begins it
    has an error that makes it begin again in a new session, by itself."""
    last = 30
    path, tasks = of_strategy("ps", 1, 3, last=last)
    with tasks:
        _, one, two = stopped_in_a_run(tasks, 12)
        tasks.kill(0)
        assert one.waits(2.0) and len(one.events("session")) == 1
        chief = tasks.start(0)
        two.send(signal.SIGCONT)
        kept = chief.until("session")
        assert kept >= 10
        assert one.until("session", after=1) >= kept
        assert chief.until("step") == kept + 1
        end_well(tasks, path, last, chief, one, two)


def test_killed_chief_and_worker_in_a_run():
    """A worker that is killed with the chief, and there again before it, takes no part in the run of the chief that is no
    more: it waits for the next one, without an error."""
    last = 30
    path, tasks = of_strategy("ps", 1, 3, last=last)
    with tasks:
        _, _, two = stopped_in_a_run(tasks, 12)
        for i in range(2):
            tasks.kill(i)
        one = tasks.start(1)
        one.until("serves")
        time.sleep(2)
        chief = tasks.start(0)
        two.send(signal.SIGCONT)
        chief.until("session")
        end_well(tasks, path, last, chief, one, two)
        assert len(one.events("session")) == 1


def send_again(tasks, number):
    """Sends what worker 1 gives in a run, for that of `number`: nothing but zeros."""
    with tf.Graph().as_default() as graph:
        tf1.train.import_meta_graph(tasks.paths[1])
        puts = [op for op in graph.get_operations() if op.type == "QueueEnqueueV2" and op.name.endswith("/put")]
        puts = [(op.inputs[0].op, op.inputs[2:]) for op in puts if "/job:ps" in op.device and len(op.inputs) > 2]
    assert puts
    with tf.Graph().as_default():
        runs = []
        for queue, values in puts:
            types, name = queue.get_attr("component_types"), queue.get_attr("shared_name")
            zeros = [tf.zeros([size or 0 for size in value.shape.as_list()], value.dtype) for value in values]
            same = tf.raw_ops.FIFOQueueV2(component_types=types, shared_name=name, capacity=-1)
            runs.append(tf.raw_ops.QueueEnqueueV2(handle=same, components=[tf.constant(number, tf.int64), *zeros]))
        config = tf1.ConfigProto(device_filters=["/job:ps"])
        with tf1.Session("grpc://" + tasks.jobs["ps"][0], config=config) as session:
            session.run(runs)


def test_late_message():
    """The chief drops the values that a worker sent for the run of a killed chief, and does not add them."""
    last = 20
    path, tasks = of_strategy("ps", 1, last=last)
    with tasks:
        chief, other = tasks.start(0), tasks.start(1)
        chief.until("step", 8)
        tasks.kill(0)
        send_again(tasks, int(time.time()) << 30)
        chief = tasks.start(0)
        chief.until("end")
        other.until("end")
        other.let_go()
        chief.let_go()
    harness.assert_all_close(saved_in(tasks.folder, path), after(path, last), f"after {last} steps")


# --- Workers that do not wait. ---


def not_waiting(bound, workers=3, **more):
    path = compare.export(Spec("counted"), counted(lambda: tf1.train.GradientDescentOptimizer(1.0)))
    jobs = jobs_of(workers, 1)
    paths, _ = rewrite(path, jobs, bound)
    feeds = {"x:0": np.ones([2, 1], np.float32)}
    return Tasks(jobs, paths, lambda i: feeds, lambda i: ["/job:ps", f"/job:worker/task:{i}"], **more)


def values(tasks, *names):
    """The same with variables on the servers."""
    with tf.Graph().as_default():
        tf1.train.import_meta_graph(tasks.paths[0])
        config = tf1.ConfigProto(device_filters=["/job:ps", "/job:worker/task:0"])
        with tf1.Session("grpc://" + tasks.jobs["worker"][0], config=config) as session:
            return session.run([harness_read(tasks.paths[0], name) for name in names])


def test_killed_chief_of_others_that_go_on():
    """--async: nobody waits for a chief that is killed, or sees it. When it is there again all go on from its checkpoint.
    Each update is 1, so variables say how many were made: for those that were on their way when the chief was killed, or
    restored, the count may differ."""
    tasks = not_waiting("--async", save_steps=20)
    with tasks:
        chief = tasks.start(0)
        chief.until("session")
        others = [tasks.start(1), tasks.start(2)]
        for other in others:
            other.until("step")
        chief.until("step", 90)
        tasks.kill(0)
        kept = checkpoint_of(tasks.folder)
        assert kept >= 60
        for other in others:
            other.until("step", after=other.made() + 20)
        chief = tasks.start(0)
        assert kept <= chief.until("session")
        chief.until("step", after=30)
        for other in others:
            other.until("step", after=other.made() + 10)
        for task in (chief, *others):
            task.tell()
        for task in (chief, *others):
            task.until("end")
        for other in others:
            steps = other.events("step")
            assert len(other.events("session")) == 1
            assert sum(after < before for before, after in zip(steps, steps[1:])) == 1
        v, step = values(tasks, "v", "global_step")
        saved = int(tf1.train.load_variable(tasks.folder, "global_step"))
    assert saved <= step < saved + 50
    assert np.all(v == v[0]) and abs(-v[0] - step) <= 5


def test_killed_chief_of_others_that_go_on_for_a_while():
    """--staleness=2: the others make two steps more than the chief has made, and wait for it; from its checkpoint all count
    from zero."""
    bound, last = 2, 120
    tasks = not_waiting(f"--staleness={bound}", workers=2, last=last, save_steps=10)
    with tasks:
        chief = tasks.start(0)
        chief.until("session")
        other = tasks.start(1)
        chief.until("step", 30)
        tasks.kill(0)
        before = other.made()
        assert other.waits() and 10 <= other.made() <= before + bound + 2
        kept, made = checkpoint_of(tasks.folder), other.made()
        chief = tasks.start(0)
        assert chief.until("session") >= kept
        chief.until("end")
        other.until("step", after=made + 20)
        assert abs(other.made() - made - chief.made()) <= bound + 1
        v, step = values(tasks, "v", "global_step")
    assert last <= step <= last + bound + 1
    assert np.all(v == v[0]) and abs(-v[0] - step) <= 3


# --- Supervisor. ---


def with_metric(b):
    """The model of SPEC, which counts the rows that it has seen in a local variable."""
    x, y = b.inputs([8], [], y_dtype=tf.int32)
    logits, _, _ = models.perceptron(b, x, 8, 16, 4)
    errors = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    step = tf1.train.get_or_create_global_step()
    _, update = tf1.metrics.mean(errors, name="error")
    tf.identity(next(v for v in tf1.local_variables() if v.op.name == "error/count"), name="seen")
    optimizer = tf1.train.AdamOptimizer(0.02, epsilon=0.01)
    train = optimizer.apply_gradients(optimizer.compute_gradients(b.loss(tf.reduce_mean(errors))), global_step=step)
    tf.group(train, update, name="train_op")


@pytest.mark.parametrize("strategy", ["ps", "all-reduce"])
def test_supervisor(strategy):
    """The chief initialises, and saves; the other, whose session is there first, waits until variables have values, and
    gives its own local ones theirs. The chief is killed: both, started again, go on from its checkpoint."""
    last, batch, kept = 24, models.BATCH, 0
    path = compare.export(Spec("with_metric", "resource"), with_metric)
    jobs = jobs_of(2, int(strategy == "ps"))
    paths = written(path, jobs, strategy, "--fetch=seen")

    def filters(i):
        return ["/job:ps", "/job:worker"]

    with Tasks(jobs, paths, rows, filters, session="supervised", holds=True, last=last, show=["seen:0"]) as tasks:

        def start():
            both = [tasks.start(i) for i in range(2)]
            for task in both:
                task.until("serves")
            both[1].tell()
            assert both[1].waits() and not both[1].events("session")
            both[0].tell()
            assert both[0].until("session") == kept
            return both

        chief, other = start()
        chief.until("step", 12)
        tasks.kill(0)
        assert other.waits()
        tasks.kill(1)
        kept = checkpoint_of(tasks.folder)
        assert kept >= 10
        both = start()
        for task in both:
            task.until("end")
            assert task.events("step") == list(range(kept + 1, last + 1))
            assert task.events("shown") == [(last - kept) * batch]
        for task in reversed(both):
            task.let_go()
    got = saved_in(tasks.folder, path)
    assert got["global_step"] == last
    harness.assert_all_close(got, after(path, last), f"after {last} steps")
