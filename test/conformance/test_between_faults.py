# SPDX-License-Identifier: Apache-2.0
"""A graph for each worker, with tasks in processes that are killed, stopped and late. Every step is fed the same batch, so
variables say how many steps were made: none is lost, and none is made twice."""

import concurrent.futures
import signal
import tempfile
import threading
import time

import harness
import models
import pytest
import tensorflow.compat.v2 as tf
from models import Spec, tf1
from processes import Process
from test_between_graph import jobs_of
from test_between_proof import written

SPEC = Spec("mlp_adam", "resource")
TIMEOUT_MS = 40000


def batch(spec=SPEC):
    return models.batches(spec.model, spec.dtype)[0]


def rows(i, workers=2):
    share = len(batch()[0]) // workers
    return {f"{n}:0": v[i * share : (i + 1) * share] for n, v in zip("xy", batch())}


def after(path, steps, spec=SPEC):
    """The variables of the single device after that many steps."""
    with harness.Session(path) as single:
        single.run("init")
        for _ in range(steps):
            single.step(batch(spec))
        return single.values()


class Chief:
    """The chief, in this process, which makes steps until it is told to stop."""

    def __init__(self, path, server, places=("ps", "worker/task:0"), workers=2):
        self.workers = workers
        self.graph, self.made, self.stop = tf.Graph(), 0, threading.Event()
        with self.graph.as_default():
            tf1.train.import_meta_graph(path)
            self.variables = {v.op.name: harness.read_name(v) for v in tf1.global_variables()}
        config = tf1.ConfigProto(device_filters=[f"/job:{place}" for place in places])
        self.session = tf1.Session(server.target, graph=self.graph, config=config)
        self.run("init")
        self.pool = concurrent.futures.ThreadPoolExecutor(1)

    def run(self, fetches, feeds=None):
        return self.session.run(fetches, feeds, options=tf1.RunOptions(timeout_in_ms=TIMEOUT_MS))

    def values(self):
        return self.run(self.variables)

    def work(self):
        while not self.stop.is_set():
            self.run("train_op", rows(0, self.workers))
            self.made += 1

    def begin(self):
        self.running = self.pool.submit(self.work)

    def waits(self):
        """Returns true if it makes no step in a second, except one that was on its way."""
        time.sleep(0.3)
        before = self.made
        time.sleep(1)
        return self.made == before

    def reaches(self, steps):
        """Returns true if it makes as many in the next seconds."""
        limit = time.monotonic() + 30
        while self.made < steps and time.monotonic() < limit and not self.running.done():
            time.sleep(0.02)
        return self.made >= steps

    def end(self):
        """All steps that were begun end, since the other worker goes on."""
        self.stop.set()
        self.running.result(timeout=40)
        values = self.values()
        self.session.close()
        self.pool.shutdown()
        return values


def check(chief, path):
    made = chief.made
    got = chief.end()
    assert chief.made <= made + 1
    harness.assert_all_close(got, after(path, chief.made), f"after {chief.made} steps")
    assert got["global_step"] == chief.made


def outlives(path, jobs, paths, chief):
    """The chief waits for a worker that is killed, and goes on when it is there again; twice."""
    chief.begin()
    for _ in range(2):
        with Process(jobs, "worker", 1, paths[1], 1000, rows(1)) as worker:
            worker.until(7)
        assert chief.waits()
    with Process(jobs, "worker", 1, paths[1], 1000, rows(1)) as worker:
        worker.until(7)
        check(chief, path)


@pytest.fixture(name="started")
def fixture_started():
    path = harness.export(SPEC)
    jobs = jobs_of(2, 1)
    paths = written(path, jobs, "ps")
    with Process(jobs, "ps", 0) as server:
        server.until(0)
        chief = Chief(paths[0], tf1.train.Server(jobs, job_name="worker", task_index=0))
        yield path, jobs, paths, chief
        chief.stop.set()


@pytest.mark.parametrize("strategy", ["all-reduce", "parallax"])
def test_killed_worker_with_copies(strategy):
    """A worker that is killed takes its copies of variables with it, and gets the values that the chief has."""
    path = harness.export(SPEC)
    jobs = jobs_of(2, 1)
    paths = written(path, jobs, strategy)
    with Process(jobs, "ps", 0) as server:
        server.until(0)
        with Process(jobs, "worker", 1) as worker:
            worker.until(0)
            chief = Chief(paths[0], tf1.train.Server(jobs, job_name="worker", task_index=0), ("ps", "worker"))
        outlives(path, jobs, paths, chief)


def test_killed_worker_of_three_with_copies():
    """A worker has the copies of all others in its file: with two others it must see them, and makes no step with them."""
    path, jobs, places = harness.export(SPEC), jobs_of(3, 0), ("worker",)
    paths = written(path, jobs, "all-reduce")
    # It serves before the other asks for it: one that was not there is asked again only some time later.
    server = tf1.train.Server(jobs, job_name="worker", task_index=0)
    with Process(jobs, "worker", 1) as first, Process(jobs, "worker", 2, paths[2], 1000, rows(2, 3), places) as other:
        first.until(0)
        other.until(0)
        chief = Chief(paths[0], server, places, 3)
        first.kill()
        chief.begin()
        for i in range(2):
            with Process(jobs, "worker", 1, paths[1], 1000, rows(1, 3), places) as worker:
                worker.until(7)
                other.until(7 * (i + 1))
            assert chief.waits()
        with Process(jobs, "worker", 1, paths[1], 1000, rows(1, 3), places) as worker:
            worker.until(7)
            check(chief, path)


def test_killed_worker(started):
    """A worker is killed and started again."""
    outlives(*started)


def test_stopped_worker(started):
    """A worker that stands still for some seconds (SIGSTOP) is waited for."""
    path, jobs, paths, chief = started
    chief.begin()
    with Process(jobs, "worker", 1, paths[1], 1000, rows(1)) as worker:
        worker.until(7)
        worker.send(signal.SIGSTOP)
        assert chief.waits()
        time.sleep(3)
        made = chief.made
        worker.send(signal.SIGCONT)
        assert chief.reaches(made + 5)
        check(chief, path)


def test_late_worker(started):
    """A worker that starts after the chief has begun a step."""
    path, jobs, paths, chief = started
    chief.begin()
    assert chief.waits() and chief.made == 0
    with Process(jobs, "worker", 1, paths[1], 1000, rows(1)) as worker:
        worker.until(7)
        check(chief, path)


def test_killed_server():
    """A parameter server is killed, with all variables, and started again: MonitoredTrainingSession restores the chief's
    checkpoint, and the steps behind it are made once more."""
    path = harness.export(SPEC)
    jobs, last = jobs_of(2, 1), 40
    paths = written(path, jobs, "ps")
    folder = tempfile.mkdtemp(dir=harness.workdir())
    servers = [tf1.train.Server(jobs, job_name="worker", task_index=i) for i in range(2)]
    initialised, seen = threading.Event(), [0, 0]

    def work(i):
        if i != 0:
            assert initialised.wait(60)
        with tf.Graph().as_default():
            tf1.train.import_meta_graph(paths[i])
            variables = {v.op.name: harness.read_name(v) for v in tf1.global_variables()}
            hooks = [tf1.train.StopAtStepHook(last_step=last)]
            if i == 0:
                hooks.append(tf1.train.CheckpointSaverHook(folder, save_steps=5))
            with tf1.train.MonitoredTrainingSession(
                master=servers[i].target,
                is_chief=i == 0,
                checkpoint_dir=folder,
                save_checkpoint_secs=None,
                save_checkpoint_steps=None,
                save_summaries_steps=None,
                save_summaries_secs=None,
                log_step_count_steps=None,
                hooks=hooks,
            ) as session:
                initialised.set()
                while not session.should_stop():
                    session.run("train_op", rows(i), options=tf1.RunOptions(timeout_in_ms=TIMEOUT_MS))
                    seen[i] += 1
                    time.sleep(0.05)
        return variables

    server = Process(jobs, "ps", 0)
    try:
        server.until(0)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(work, i) for i in range(2)]
            while seen[0] < 17 and not any(run.done() for run in runs):
                time.sleep(0.02)
            server.kill()
            server = Process(jobs, "ps", 0)
            server.until(0)
            variables = runs[0].result(timeout=80)
            runs[1].result(timeout=80)
        with tf1.Session(servers[0].target, graph=tf.Graph()) as session:
            with session.graph.as_default():
                tf1.train.import_meta_graph(paths[0])
            got = session.run(variables)
    finally:
        server.kill()
    assert got["global_step"] == last and max(seen) > last
    harness.assert_all_close(got, after(path, last), "after all steps")
