# SPDX-License-Identifier: Apache-2.0
"""Tasks of a cluster in processes of their own, with the sessions that people use, which tests kill and start again.

    Task(jobs, "worker", 0, path, folder, feeds, last=40)     trains until global_step is 40, and stays until it is let go

What a task says: "serves", "session N", it has one, and global_step is N; "step N", it has made a step; "end".
"""

import faulthandler
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

# A task that waits for ever is an error and no hang.
LIMIT_SECONDS = 240
TIMEOUT_MS = 120000


class Task:
    """A process; `more` are options of main()."""

    def __init__(self, jobs, job, index, path=None, folder=None, feeds=None, limit=LIMIT_SECONDS, **more):
        import harness

        self.name, self.seen, self.changed = f"{job} {index}", [], threading.Condition()
        say = {"jobs": jobs, "job": job, "index": index, "path": path, "folder": folder, **more}
        if feeds:
            file = tempfile.NamedTemporaryFile(suffix=".npz", dir=harness.workdir(), delete=False)
            np.savez(file, **{name.split(":")[0]: value for name, value in feeds.items()})
            file.close()
            say["feeds"] = file.name
        self.errors = tempfile.TemporaryFile("w+", dir=harness.workdir())
        self.process = subprocess.Popen(
            [sys.executable, "-u", __file__, json.dumps(say)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        self.timer = threading.Timer(limit, self.process.kill)
        self.timer.start()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            kind, number = line.split()
            with self.changed:
                self.seen.append((kind, int(number)))
                self.changed.notify_all()
        with self.changed:
            self.seen.append(("over", 0))
            self.changed.notify_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def events(self, kind):
        with self.changed:
            return [number for what, number in self.seen if what == kind]

    def until(self, kind, number=0, after=0, timeout=90):
        """Waits until it says `kind` of `number` or more, once more than `after` times; what it says."""

        def those():
            return [n for what, n in self.seen if what == kind and n >= number][after:]

        with self.changed:
            self.changed.wait_for(lambda: those() or self.seen[-1:] == [("over", 0)], timeout)
            got = those()
        if not got:
            # Where it stands.
            self.send(signal.SIGUSR1)
            time.sleep(0.5)
        assert got, f"{self.name} does not say {kind} {number} but {self.seen[-3:]}\n{self.said()}"
        return got[0]

    def made(self):
        return len(self.events("step"))

    def waits(self, seconds=1.0):
        """Returns true if it makes no step for some time, except one that was on its way."""
        time.sleep(0.5)
        before = self.made()
        time.sleep(seconds)
        return self.made() == before

    def said(self):
        self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, self.errors.tell() - 3000))
        return self.errors.read()

    def send(self, number):
        self.process.send_signal(number)

    def tell(self):
        """Lets a task that was started with `holds` make its session; without `last`, its last step."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def let_go(self, timeout=20):
        """It ends, once it has made all steps."""
        self.process.stdin.close()
        assert self.process.wait(timeout) == 0, self.said()

    def kill(self):
        self.timer.cancel()
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        self.errors.close()


# --- What a task does. ---


def say(kind, number):
    # One write, since several threads may say something.
    os.write(1, f"{kind} {int(number)}\n".encode())


def impatient():
    """A task that finds variables without values looks again after half a minute by default."""
    from tensorflow.python.training import session_manager

    made = session_manager.SessionManager.__init__

    def init(self, *args, **kwargs):
        made(self, *args, **{**kwargs, "recovery_wait_secs": 0.2})

    session_manager.SessionManager.__init__ = init


def options(tf1):
    return tf1.RunOptions(timeout_in_ms=TIMEOUT_MS)


def monitored(tf1, job, server, saver, feeds, config):
    """MonitoredTrainingSession, which makes a new session when a task that it needs is gone, and back."""
    step, is_chief = tf1.train.get_global_step(), job["index"] == 0

    class Says(tf1.train.SessionRunHook):

        def after_create_session(self, session, coord):
            say("session", session.run(step))

        def after_run(self, context, values):
            say("step", context.session.run(step))

    hooks, told = [], threading.Event()
    if "last" in job:
        hooks.append(tf1.train.StopAtStepHook(last_step=job["last"]))
    else:
        threading.Thread(target=lambda: sys.stdin.readline() and told.set(), daemon=True).start()
    if is_chief:
        hooks.append(tf1.train.CheckpointSaverHook(job["folder"], save_steps=job.get("save_steps", 5), saver=saver))
    with tf1.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=is_chief,
        checkpoint_dir=job["folder"],
        scaffold=tf1.train.Scaffold(saver=saver),
        config=config,
        save_checkpoint_secs=None,
        save_checkpoint_steps=None,
        save_summaries_steps=None,
        save_summaries_secs=None,
        log_step_count_steps=None,
        hooks=[*hooks, Says()],
    ) as session:
        while not session.should_stop() and not told.is_set():
            session.run("train_op", feeds, options=options(tf1))
            time.sleep(job.get("sleep", 0.02))


def supervised(tf1, job, server, saver, feeds, config):
    """Supervisor, which makes no second session: after an error the process is to be started again."""
    supervisor = tf1.train.Supervisor(
        is_chief=job["index"] == 0,
        logdir=job["folder"],
        saver=saver,
        save_model_secs=0,
        summary_op=None,
        save_summaries_secs=0,
        recovery_wait_secs=0.2,
        checkpoint_basename="model.ckpt",
    )
    with supervisor.managed_session(server.target, config=config, start_standard_services=False) as session:
        made = session.run(supervisor.global_step)
        say("session", made)
        while not supervisor.should_stop() and made < job["last"]:
            session.run("train_op", feeds, options=options(tf1))
            made = session.run(supervisor.global_step)
            say("step", made)
            if supervisor.is_chief and (made % job.get("save_steps", 5) == 0 or made == job["last"]):
                saver.save(session, supervisor.save_path, supervisor.global_step)
            time.sleep(job.get("sleep", 0.02))
        for name in job.get("show", []):
            say("shown", session.run(name, options=options(tf1)))


def main(job):
    faulthandler.register(signal.SIGUSR1)
    import tensorflow.compat.v1 as tf1

    job = json.loads(job)
    impatient()
    config = tf1.ConfigProto(inter_op_parallelism_threads=4, intra_op_parallelism_threads=1)
    server = tf1.train.Server(job["jobs"], job_name=job["job"], task_index=job["index"], config=config)
    say("serves", 0)
    if not job["path"]:
        server.join()
    if job.get("holds"):
        sys.stdin.readline()
    feeds = {f"{name}:0": value for name, value in np.load(job["feeds"]).items()}
    with tf1.Graph().as_default():
        saver = tf1.train.import_meta_graph(job["path"])
        train = {"monitored": monitored, "supervised": supervised}[job.get("session", "monitored")]
        train(tf1, job, server, saver, feeds, tf1.ConfigProto(device_filters=job["filters"]))
    say("end", 0)
    # Others may still take its messages.
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
