# SPDX-License-Identifier: Apache-2.0
"""A graph for each worker, parameter servers, and workers that do not wait for each other (--async, --staleness).

Such steps are those of no single device. What holds instead: one worker alone makes the steps of the single device, no
update is lost or made twice, no worker is more steps ahead than it may be, and who is killed stops nobody for good.
"""

import concurrent.futures
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

import compare
import harness
import models
import models_habits
import numpy as np
import pytest
import tensorflow.compat.v2 as tf
from models import BATCH, Spec, tf1
from test_between_graph import Cluster, jobs_of

TIMEOUT_MS = 30000


def rewrite(path, jobs, *flags):
    """The files of all workers, and what was said."""
    folder = tempfile.mkdtemp(dir=harness.workdir())
    file = os.path.join(folder, "cluster.json")
    with open(file, "w") as f:
        json.dump({"cluster": jobs}, f)
    out = os.path.join(folder, "worker-%d.meta")
    said = harness.run_graft(
        [path, "-o", out, "--mode=between-graph", f"--cluster={file}", "--strategy=ps", "--device-type=CPU", *flags]
    ).stderr
    return [out.replace("%d", str(i)) for i in range(len(jobs["worker"]))], said


def files(path, workers, servers, *flags):
    paths, said = rewrite(path, jobs_of(workers, servers), *flags)
    assert said.count("\n") == 1 and "no single-device run gives the same result" in said, said
    return paths


# --- One worker's step. ---

STEPS = [
    (Spec("linear", "ref"), 1, 1),
    (Spec("linear", "resource", BATCH, "sum"), 0, 1),
    (Spec("mlp_adam", "resource"), 2, 1),
    (Spec("mlp_adam", "ref", BATCH), 1, 2),
    (Spec("mlp_clip", "resource"), 2, 2),
    (Spec("embedding", "resource"), 1, 1),
    (Spec("embedding", "ref", BATCH), 1, 2),
    (Spec("adamw_assign", "ref"), 1, 1),
]


@pytest.mark.parametrize("bound", ["--async", "--staleness=2"])
@pytest.mark.parametrize("spec,servers,local", STEPS, ids=str)
def test_steps(spec, servers, local, bound):
    """Two workers in turn: each makes the step of the single device on the whole batch that it is fed, on variables that
    both have; none waits for the other."""
    want = harness.reference(spec)
    paths = files(harness.export(spec), 2, servers, f"--replicas={local}", bound, "--verify-output")
    with Cluster(paths, servers, local) as both:
        both.one(0, "init")
        both.check(want.variables[0], "after init")
        for i, batch in enumerate(models.batches(spec.model, spec.dtype), start=1):
            loss, _ = both.one(i % 2, ["loss:0", "train_op"], dict(zip(("x:0", "y:0"), batch)))
            harness.assert_close(loss, want.losses[i - 1], f"loss of step {i}")
            both.check(want.variables[i], f"after step {i}")


def test_checkpoints():
    """The chief saves and restores for all; the files are those of the single device, without the counts of steps."""
    spec = Spec("mlp_random", "resource")
    path = harness.export(spec)
    paths = files(path, 2, 2, "--staleness=1")
    batches = [dict(zip(("x:0", "y:0"), batch)) for batch in models.batches(spec.model, spec.dtype)]
    with Cluster(paths, 2) as both, harness.Session(path) as single:
        both.one(0, "init")
        prefix = os.path.join(tempfile.mkdtemp(dir=harness.workdir()), "model")
        both.one(0, "save/control_dependency:0", {"save/Const:0": prefix})
        single.restart(init=False)
        single.restore(prefix)
        both.check(single.values(), "saved")
        both.one(1, "train_op", batches[0])
        saved = single.save()
        both.one(0, "save/restore_all", {"save/Const:0": saved})
        both.check(single.values(), "restored by the chief")
        # All count from 0 again.
        both.one(1, "train_op", batches[0])
        with pytest.raises(tf.errors.DeadlineExceededError):
            both.sessions[1].run("train_op", batches[1], options=tf1.RunOptions(timeout_in_ms=500))


# --- No update is lost. ---


def counted(optimizer, rows=False, size=64):
    """Every gradient is 1: values count updates."""

    def fill(b):
        x = tf1.placeholder(tf.float32, [None, 1], name="x")
        y = tf1.placeholder(tf.int32, [None], name="y")
        v = tf1.get_variable("v", [size], initializer=tf1.zeros_initializer())
        table = tf1.get_variable("table", [8, size], initializer=tf1.zeros_initializer())
        loss = tf.reduce_mean(x) * tf.reduce_sum(v)
        if rows:
            loss += tf.reduce_sum(tf.gather(table, y))
        step = tf1.train.get_or_create_global_step()
        tf.identity(loss, name="loss")
        optimizer().minimize(loss, global_step=step, name="train_op")

    return fill


def race(paths, servers, steps, fetches):
    """All workers make `steps` steps as fast as they can; what `fetches` are after that."""
    feed = {"x:0": np.ones([2, 1], np.float32), "y:0": np.int32([0, 1, 1, 5])}
    with Cluster(paths, servers) as workers:
        workers.one(0, "init")
        train = [session.make_callable("train_op:0" if has_value(session) else "train_op", ["x:0", "y:0"]) for session in workers.sessions]

        def work(i):
            for _ in range(steps):
                train[i](feed["x:0"], feed["y:0"])

        list(workers.pool.map(work, range(len(paths))))
        return workers.one(0, fetches)


def has_value(session):
    return bool(session.graph.get_operation_by_name("train_op").outputs)


@pytest.mark.parametrize("bound", ["--async", "--staleness=3"])
@pytest.mark.parametrize("kind", ["resource", "ref"])
def test_no_update_is_lost(kind, bound):
    """Gradient descent with rate 1, dense and by rows, of three workers at the same time: exact numbers."""
    workers, steps = 3, 60
    path = compare.export(Spec("counted", kind), counted(lambda: tf1.train.GradientDescentOptimizer(1.0), True, 100000))
    paths = files(path, workers, 1, bound)
    v, table, step = race(paths, 1, steps, [harness_read(paths[0], n) for n in ("v", "table", "global_step")])
    total = workers * steps
    assert step == total
    np.testing.assert_array_equal(v, np.full_like(v, -total))
    want = np.zeros_like(table)
    want[[0, 5]], want[1] = -total, -2 * total
    np.testing.assert_array_equal(table, want)


@pytest.mark.parametrize("kind", ["resource", "ref"])
def test_slots_count(kind):
    """Adagrad's accumulator has one square of each gradient; Adam's moments are those of that many gradients. Powers that
    are made of a read are another matter: docs/Workers.md."""
    workers, steps = 3, 40
    total = workers * steps
    path = compare.export(Spec("counted", kind), counted(lambda: tf1.train.AdagradOptimizer(0.1, 0.5), size=100000))
    paths = files(path, workers, 2, "--async")
    accumulator, step = race(paths, 2, steps, [harness_read(paths[0], n) for n in ("v/Adagrad", "global_step")])
    np.testing.assert_array_equal(accumulator, np.full_like(accumulator, 0.5 + total))
    assert step == total
    path = compare.export(Spec("counted", kind), counted(lambda: tf1.train.AdamOptimizer(0.1, 0.98, 0.98), size=100000))
    paths = files(path, workers, 2, "--async")
    names = ("v/Adam", "v/Adam_1")
    for name, value in zip(names, race(paths, 2, steps, [harness_read(paths[0], n) for n in names])):
        updates = np.log(1 - value) / math.log(0.98)
        assert np.all(np.abs(updates - total) < 0.1), f"{name}: {np.unique(updates)} and not {total}"


def harness_read(path, name):
    """The tensor with the value of a variable."""
    with tf.Graph().as_default():
        tf1.train.import_meta_graph(path)
        return next(harness.read_name(v) for v in tf1.global_variables() if v.op.name == name)


# --- Nobody runs ahead. ---


@pytest.mark.parametrize("workers,bound", [(2, 1), (3, 2)])
def test_bound(workers, bound):
    """Random delays: who is fast comes to be `bound` steps ahead of the slowest, and never more."""
    path = compare.export(Spec("counted"), counted(lambda: tf1.train.GradientDescentOptimizer(1.0)))
    paths = files(path, workers, 1, f"--staleness={bound}")
    feed = {"x:0": np.ones([2, 1], np.float32)}
    # Steps that have begun to end, and that have ended: what a worker sees of others is at least the former.
    ended, lead, lock, steps = [0] * workers, [0], threading.Lock(), 12
    with Cluster(paths, 1) as all_of_them:
        all_of_them.one(0, "init")

        def work(i):
            draw = random.Random(i)
            for _ in range(steps):
                time.sleep(draw.uniform(0, 0.12 if i == 0 else 0.03))
                all_of_them.one(i, "train_op", feed)
                with lock:
                    ended[i] += 1
                time.sleep(0.01)  # who let this worker go has written that down by now
                with lock:
                    lead[0] = max(lead[0], ended[i] - min(ended))

        list(all_of_them.pool.map(work, range(workers)))
        assert lead[0] == bound
        assert all_of_them.one(0, harness_read(paths[0], "global_step")) == workers * steps


def test_only_steps_are_counted():
    """A worker that is ahead waits in a step, but not in a run of the loss, and goes on when the other has stepped."""
    spec = Spec("mlp_adam", "resource")
    paths = files(harness.export(spec), 2, 1, "--staleness=1")
    feed = dict(zip(("x:0", "y:0"), models.batches(spec.model, spec.dtype)[0]))
    with Cluster(paths, 1) as both:
        both.one(0, "init")
        for _ in range(5):
            both.one(0, "loss:0", feed)
        both.one(0, "train_op", feed)
        late = both.pool.submit(both.one, 0, "train_op", feed)
        with pytest.raises(concurrent.futures.TimeoutError):
            late.result(timeout=1)
        before = both.one(1, both.variables)
        both.one(1, "loss:0", feed)
        harness.assert_all_close(both.one(1, both.variables), before, "while one waits")
        assert not late.done()
        both.one(1, "train_op", feed)
        late.result(timeout=20)
        both.one(1, "train_op", feed)


def test_steps_that_may_write():
    """An update in a conditional: a run is a step whether or not it is made, and who is not let through is not counted."""
    model = models_habits.HABITS["accumulated_cond"]
    paths = files(compare.export(Spec("accumulated_cond"), model.build), 2, 1, "--staleness=1")
    feed = dict(zip(("x:0", "y:0"), models_habits.batches(model.data, 1)[0]))
    with Cluster(paths, 1) as both:
        both.one(0, "init")
        both.one(0, "train_op", feed)
        for _ in range(2):
            with pytest.raises(tf.errors.DeadlineExceededError):
                both.sessions[0].run("train_op", feed, options=tf1.RunOptions(timeout_in_ms=1000))
        both.one(1, "train_op", feed)
        both.one(0, "train_op", feed)


# --- Sessions that people use, and workers that are killed. ---


@pytest.mark.parametrize("bound", ["--async", "--staleness=2"])
def test_monitored_sessions(bound):
    """MonitoredTrainingSession: the chief initialises, others wait for it. All stop by the number of updates, or, where a
    worker would wait for one that has stopped, after the same number of steps each."""
    path = compare.export(Spec("counted"), counted(lambda: tf1.train.GradientDescentOptimizer(1.0)))
    jobs = jobs_of(3, 1)
    paths, _ = rewrite(path, jobs, bound)
    servers = [tf1.train.Server(jobs, job_name=job, task_index=i) for job, all_of in jobs.items() for i in range(len(all_of))]
    initialised = threading.Event()

    def work(i):
        done = 0
        if i != 0:
            assert initialised.wait(60)
        with tf.Graph().as_default():
            tf1.train.import_meta_graph(paths[i])
            with tf1.train.MonitoredTrainingSession(
                master=servers[i].target,
                is_chief=i == 0,
                config=tf1.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{i}"]),
                save_summaries_steps=None,
                save_summaries_secs=None,
                log_step_count_steps=None,
                hooks=[tf1.train.StopAtStepHook(last_step=40)] if bound == "--async" else [],
            ) as session:
                initialised.set()
                while not session.should_stop() and (bound == "--async" or done < 14):
                    time.sleep(0.02 * (i == 1))
                    session.run("train_op", {"x:0": np.ones([2, 1], np.float32)})
                    done += 1
        return done

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        done = list(pool.map(work, range(3)))
    # Each may have begun one more when the last was counted, and read the count before.
    assert 40 <= sum(done) <= 46


def worker_main(jobs, index, path, steps):
    """A worker in a process of its own, which says how many steps it has made."""
    jobs = json.loads(jobs)
    server = tf1.train.Server(jobs, job_name="worker", task_index=int(index))
    with tf.Graph().as_default():
        tf1.train.import_meta_graph(path)
        config = tf1.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{index}"])
        with tf1.Session(server.target, config=config) as session:
            for i in range(int(steps)):
                session.run("train_op", {"x:0": np.ones([2, 1], np.float32)})
                print(i + 1, flush=True)
                time.sleep(0.02)


class Process:
    """The worker 1 of `jobs`."""

    def __init__(self, jobs, path, steps):
        command = [sys.executable, "-u", __file__, json.dumps(jobs), "1", path, str(steps)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        # A worker that waits for ever is an error and no hang.
        self.timer = threading.Timer(60, self.process.kill)
        self.timer.start()

    def until(self, step):
        for line in self.process.stdout:
            if int(line) >= step:
                return
        raise AssertionError(f"the worker ended before step {step}")

    def kill(self):
        self.timer.cancel()
        self.process.kill()
        self.process.wait()


@pytest.mark.parametrize("bound", [0, 1])
def test_killed_worker(bound):
    """One worker is killed, twice, in the middle of its steps. Without a bound the other goes on; with one it waits, and
    goes on when the killed worker is back."""
    path = compare.export(Spec("counted"), counted(lambda: tf1.train.GradientDescentOptimizer(1.0)))
    jobs = jobs_of(2, 1)
    paths, _ = rewrite(path, jobs, f"--staleness={bound}" if bound else "--async")
    servers = [tf1.train.Server(jobs, job_name=job, task_index=0) for job in ("ps", "worker")]
    made, stop = [0], threading.Event()
    with tf.Graph().as_default():
        tf1.train.import_meta_graph(paths[0])
        config = tf1.ConfigProto(device_filters=["/job:ps", "/job:worker/task:0"])
        with tf1.Session(servers[1].target, config=config) as session:
            session.run("init")

            def work():
                while not stop.is_set():
                    options = tf1.RunOptions(timeout_in_ms=TIMEOUT_MS)
                    session.run("train_op", {"x:0": np.ones([2, 1], np.float32)}, options=options)
                    made[0] += 1
                    time.sleep(0.002)

            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                other = pool.submit(work)
                for _ in range(2):
                    killed = Process(jobs, paths[1], 1000)
                    killed.until(5)
                    killed.kill()
                    time.sleep(0.5)
                    before = made[0]
                    time.sleep(0.5)
                    assert (made[0] == before) if bound else (made[0] > before + 20), (before, made[0])
                last = Process(jobs, paths[1], 1000)
                last.until(10)
                stop.set()
                other.result(timeout=20)
                last.kill()
            step = session.run(harness_read(paths[0], "global_step"))
            v = session.run(harness_read(paths[0], "v"))
    # A step that is cut short may have counted its update or not.
    assert abs(-v[0] - step) <= 3 and np.all(v == v[0])


if __name__ == "__main__":
    worker_main(*sys.argv[1:])
