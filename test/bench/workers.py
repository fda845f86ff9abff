#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps per second of several processes: graft's files beside TensorFlow's own ways, by turns.

    python test/bench/workers.py [--workers 2,3] [--rounds R] [--seconds S] [--only PATTERN] [--write docs/Performance.md]

Every task is a process with a server of its own on the loopback. A figure is the steps per second of graft's files over
those of what stands beside it; both clusters are there for all rounds and make the same number of steps by turns, so that
a busy machine slows both. Bytes are those that pass the loopback device in a step, which the script has to itself where
the system lets it (a network namespace).

Needs TensorFlow, and graft-opt of the preset `release` (or GRAFT_OPT).
"""

import argparse
import contextlib
import ctypes
import dataclasses
import fcntl
import json
import multiprocessing
import os
import re
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from typing import Callable, Dict, List, Sequence

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GRAFT = os.environ.get("GRAFT_OPT") or os.path.join(ROOT, "build", "release", "bin", "graft-opt")
ROWS = 48  # of all workers together
LIMIT_SECONDS = 90  # a task that waits for ever is an error and no hang
LOSSES = 3  # compared before anything is measured
LEADER = "/job:worker/replica:0/task:0"


# --- Tasks: what the processes do. Each gives an object with run() for a step, and loss() for one with its loss. ---


@dataclasses.dataclass(frozen=True)
class Task:
    way: str  # a function below
    model: str
    jobs: Dict[str, List[str]]
    job: str
    index: int
    is_async: bool
    path: str = ""

    @property
    def workers(self):
        return len(self.jobs["worker"])

    def part(self):
        """The model with as many rows as one worker has."""
        model = model_of(self.model)
        return dataclasses.replace(model, batch=model.batch // self.workers)

    def feeds(self):
        """Workers that do not wait have all the same, so that losses can be compared whoever makes a step."""
        share, at = ROWS // self.workers, 0 if self.is_async else self.index
        return {name: rows[at * share : (at + 1) * share] for name, rows in model_of(self.model).feeds().items()}

    def host(self):
        return f"/job:{self.job}/task:{self.index}"


def model_of(name):
    import step_models

    model = next(m for m in step_models.MODELS if m.name == name)
    return dataclasses.replace(model, batch=ROWS)


class Steps:
    """Steps by a session."""

    def __init__(self, session, task, init):
        self.session, self.feeds, self.init_op = session, task.feeds(), init

    def init(self):
        self.session.run(self.init_op)

    def run(self):
        self.session.run(["train_op"], self.feeds)

    def loss(self):
        return float(self.session.run(["loss:0", "train_op"], self.feeds)[0])


def v1():
    import tensorflow.compat.v1 as tf1

    tf1.disable_v2_behavior()
    tf1.get_variable_scope().set_use_resource(True)
    return tf1


def serve(tf1, task, config=None):
    server = tf1.train.Server(task.jobs, job_name=task.job, task_index=task.index, config=config)
    if task.job == "ps":
        say("up")
        server.join()
    return server


def graft(task, collectives=False):
    tf1 = v1()
    config = tf1.ConfigProto()
    if collectives:
        config.experimental.collective_group_leader = LEADER
    server = serve(tf1, task, config)
    tf1.train.import_meta_graph(task.path)
    return Steps(tf1.Session(server.target), task, "init")


def graft_collectives(task):
    return graft(task, collectives=True)


def setter(task, optimizer=lambda own: own, more=lambda own: None):
    """Between graphs, with variables on the servers: what ParameterServerStrategyV1 and scripts of TF 1 do."""
    tf1 = v1()
    server = serve(tf1, task)
    model = task.part()
    with tf1.device(tf1.train.replica_device_setter(worker_device=task.host(), cluster=task.jobs)):
        step = tf1.train.get_or_create_global_step()
        loss = tf1.identity(model.loss(*model.placeholders()), "loss")
        own = optimizer(model.optimizer())
        tf1.group(own.minimize(loss, global_step=step), name="train_op")
        init = tf1.global_variables_initializer()
        prepare = more(own)
    session = tf1.Session(server.target, config=tf1.ConfigProto(device_filters=["/job:ps", task.host()]))
    steps = Steps(session, task, init)
    if prepare:
        steps.init = lambda: prepare(session, init)
    return steps


def sync_replicas(task):
    """Without tokens at the beginning, so that each step has a gradient of each worker and none is dropped."""
    import tensorflow.compat.v1 as tf1

    def optimizer(own):
        return tf1.train.SyncReplicasOptimizer(own, replicas_to_aggregate=task.workers, total_num_replicas=task.workers)

    def more(own):
        runner, tokens = own.get_chief_queue_runner(), own.get_init_tokens_op(num_tokens=0)
        local = own.chief_init_op if task.index == 0 else own.local_step_init_op

        def prepare(session, init):
            session.run([init] if task.index == 0 else [])
            session.run(local)
            if task.index == 0:
                runner.create_threads(session, daemon=True, start=True)
                session.run(tokens)

        return prepare

    return setter(task, optimizer, more)


def collective_v1(task):
    """MultiWorkerMirroredStrategy with sessions."""
    tf1 = v1()
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(task.jobs), task_type=task.job, task_id=task.index, rpc_layer="grpc"
    )
    strategy = tf1.distribute.experimental.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
    config = strategy.update_config_proto(tf1.ConfigProto())
    server = serve(tf1, task, config)
    model = task.part()
    x, y = model.placeholders()
    with strategy.scope():
        step = tf1.train.get_or_create_global_step()
        own = model.optimizer()

        def replica():
            loss = model.loss(x, y)
            with tf1.control_dependencies([own.minimize(loss / task.workers, global_step=step)]):  # gradients are added
                return tf.identity(loss)

        losses = strategy.run(replica)
        tf.identity(strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None), "loss")
        tf1.group(*strategy.experimental_local_results(losses), name="train_op")
        init = tf1.global_variables_initializer()
    return Steps(tf1.Session(server.target, config=config), task, init)


class Eager:
    """Steps by a function; variables are kept between calls of the model as get_variable() keeps them in a graph."""

    def __init__(self, task, strategy):
        import tensorflow as tf
        from tensorflow.python.ops.variable_scope import EagerVariableStore

        self.tf, self.task, self.strategy = tf, task, strategy
        self.model, self.store = task.part(), EagerVariableStore()
        self.feed = tuple(task.feeds().values())
        with strategy.scope(), self.store.as_default():
            self.model.loss(*(tf.constant(part) for part in self.feed))
            self.optimizer = self.model.optimizer()

    def init(self):
        pass

    def step(self, x, y):
        with self.store.as_default():
            with self.tf.GradientTape() as tape:
                loss = self.model.loss(x, y)
                part = loss / self.strategy.num_replicas_in_sync  # gradients are added
            trained = tape.watched_variables()
            self.optimizer.apply_gradients(zip(tape.gradient(part, trained), trained))
            return loss


def multi_worker_mirrored(task):
    os.environ["TF_CONFIG"] = json.dumps({"cluster": task.jobs, "task": {"type": task.job, "index": task.index}})
    import tensorflow as tf

    steps = Eager(task, tf.distribute.MultiWorkerMirroredStrategy())

    @tf.function
    def train(x, y):
        return steps.strategy.run(steps.step, (x, y))

    steps.run = lambda: train(*steps.feed)
    steps.loss = lambda: float(steps.strategy.reduce(tf.distribute.ReduceOp.MEAN, steps.run(), axis=None))
    return steps


def coordinator(task):
    """ParameterServerStrategy: workers serve, and their rows are there; the chief says what they run."""
    os.environ["TF_CONFIG"] = json.dumps({"cluster": task.jobs, "task": {"type": task.job, "index": task.index}})
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if task.job != "chief":
        server = tf.distribute.Server(resolver.cluster_spec(), job_name=task.job, task_index=task.index, protocol="grpc")
        say("up")
        server.join()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    steps = Eager(task, strategy)
    chief = tf.distribute.coordinator.ClusterCoordinator(strategy)
    rows = chief.create_per_worker_dataset(lambda: tf.data.Dataset.from_tensors(steps.feed).repeat())
    rows = iter(rows)

    @tf.function
    def train(rows):
        return strategy.run(steps.step, next(rows))

    def run(steps):
        for _ in range(steps * task.workers):
            chief.schedule(train, args=(rows,))
        chief.join()

    def loss():
        found = chief.schedule(train, args=(rows,))
        chief.join()
        return float(found.fetch())

    steps.run_many, steps.loss = run, loss
    return steps


def say(what):
    Process.to_parent.send(what)


def work(task):
    steps = globals()[task.way](task)
    say("up")
    while True:
        word, count = Process.to_parent.recv()
        if word == "loss":
            say([steps.loss() for _ in range(count)])
            continue
        if word == "init":
            steps.init()
        elif hasattr(steps, "run_many"):
            steps.run_many(count)
        else:
            for _ in range(count):
                steps.run()
        say("done")


# --- Clusters. ---


class Process:
    """A process, which has imported TensorFlow when it begins and ends with this one."""

    context = multiprocessing.get_context("forkserver")
    to_parent = None

    def __init__(self, what, *arguments):
        self.name = f"{what.__name__} {arguments}"
        self.log = tempfile.NamedTemporaryFile("r", errors="replace")
        self.pipe, other = self.context.Pipe()
        self.process = self.context.Process(target=Process.main, args=(what, arguments, other, self.log.name), daemon=True)
        self.process.start()
        other.close()

    @staticmethod
    def main(what, arguments, pipe, log):
        Process.to_parent = pipe
        with open(log, "w", encoding="utf-8") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        with contextlib.suppress(EOFError):
            what(*arguments)

    def tell(self, what, count):
        self.pipe.send((what, count))

    def hear(self):
        with contextlib.suppress(EOFError):
            if self.pipe.poll(LIMIT_SECONDS):
                return self.pipe.recv()
        self.fail()

    def end(self):
        self.process.join(LIMIT_SECONDS)
        if self.process.exitcode != 0:
            self.fail()

    def fail(self):
        raise RuntimeError(f"{self.name} does not go on:\n{self.log.read()[-3000:]}")

    def close(self):
        self.process.kill()
        self.process.join()
        self.pipe.close()
        self.log.close()


@dataclasses.dataclass(frozen=True)
class Way:
    """How workers make steps together."""

    name: str
    task: Callable  # what a process does
    flags: Sequence[str] = ()  # of graft
    servers: int = 0
    coordinated: bool = False  # a job `chief` tells the workers what to run
    tolerance: float = 1e-5  # of losses


def free_addresses(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    found = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    return found


def sent_bytes():
    """That have passed the loopback device."""
    with open("/proc/self/net/dev", encoding="ascii") as table:
        line = next(line for line in table if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[8])


@dataclasses.dataclass(frozen=True)
class Round:
    rate: float  # steps per second
    cpu: float  # of all processes, for a step
    sent: float  # bytes of a step


class Cluster:
    """The processes of a way."""

    def __init__(self, way, model, workers, is_async, source):
        addresses = free_addresses(workers + way.servers + way.coordinated)
        jobs = {"worker": addresses[:workers]}
        if way.servers:
            jobs["ps"] = addresses[workers : workers + way.servers]
        if way.coordinated:
            jobs["chief"] = addresses[-1:]
        self.is_async, self.workers = is_async, workers
        paths = rewrite(source, jobs, way.flags) if way.flags else [""] * workers
        tasks = [(job, i) for job in ("ps", "worker", "chief") for i in range(len(jobs.get(job, ())))]
        self.processes = [
            Process(work, Task(way.task.__name__, model, jobs, job, i, is_async, paths[i] if job == "worker" else ""))
            for job, i in tasks
        ]
        driver = "chief" if way.coordinated else "worker"
        self.drivers = [p for p, (job, _) in zip(self.processes, tasks) if job == driver]

    def start(self, one_by_one):
        """Gives variables their values; the losses of the first steps."""
        for p in self.processes:
            p.hear()
        for group in [[p] for p in self.drivers] if one_by_one else [self.drivers]:
            self.all("init", 1, group)
        found = self.all("loss", LOSSES, self.drivers[:1] if self.is_async else self.drivers)
        self.all("run", 3, self.drivers)
        # Those of SyncReplicasOptimizer are of the rows of each.
        return [statistics.mean(losses) for losses in zip(*found)]

    def all(self, what, count, drivers):
        for p in drivers:
            p.tell(what, count)
        return [p.hear() for p in drivers]

    def run(self, steps):
        """Steps are those of all together where they do not wait."""
        made = steps * (self.workers if self.is_async else 1)
        sent, cpu, start = sent_bytes(), self.cpu_ticks(), time.perf_counter()
        self.all("run", steps, self.drivers)
        rate = made / (time.perf_counter() - start)
        return Round(rate, (self.cpu_ticks() - cpu) / made, (sent_bytes() - sent) / made)

    def cpu_ticks(self):
        """That its processes have taken."""
        total = 0
        for p in self.processes:
            with open(f"/proc/{p.process.pid}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total

    def close(self):
        for p in self.processes:
            p.close()


# --- graft. ---


def write_source(name, path, rows):
    tf1 = v1()
    model = dataclasses.replace(model_of(name), batch=rows)
    with tf1.Graph().as_default() as graph:
        tf1.get_variable_scope().set_use_resource(True)
        step = tf1.train.get_or_create_global_step()
        loss = tf1.identity(model.loss(*model.placeholders()), "loss")
        tf1.group(model.optimizer().minimize(loss, global_step=step), name="train_op")
        tf1.variables_initializer(tf1.global_variables(), name="init")
        tf1.train.export_meta_graph(path, graph=graph)


def rewrite(source, jobs, flags):
    folder = tempfile.mkdtemp(dir=os.path.dirname(source))
    workers = len(jobs["worker"])
    paths = [os.path.join(folder, f"worker-{i}.meta") for i in range(workers)]
    if "--mode=between-graph" in flags:
        file = os.path.join(folder, "cluster.json")
        with open(file, "w", encoding="ascii") as f:
            json.dump({"cluster": jobs}, f)
        runs = [["-o", os.path.join(folder, "worker-%d.meta"), f"--cluster={file}"]]
    else:
        runs = [["-o", path, f"--workers={workers}", f"--worker={i}"] for i, path in enumerate(paths)]
    for run in runs:
        command = [GRAFT, source, *run, *flags, "--device-type=CPU"]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return paths


def planned_bytes(source, strategy, machines):
    """The bytes that a step sends between machines by --plan, or None."""
    spec = os.path.join(os.path.dirname(source), f"machines-{machines}.yml")
    with open(spec, "w", encoding="ascii") as file:
        file.write("nodes:\n")
        for i in range(machines):
            file.write(f"  - address: 10.0.0.{i}\n    cpus: [0]\n" + ("    chief: true\n" if i == 0 else ""))
    command = [GRAFT, source, "--plan=yaml", f"--resources={spec}"]
    plan = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    found = re.findall(r"strategy: (\S+)\n(?:    .*\n)*?    network-bytes: (\d+)", plan)
    return int(dict(found)[strategy]) if strategy in dict(found) else None


# --- What is measured. ---


IPU = ("--strategy=ipu-multi-worker",)
PS = ("--mode=between-graph", "--strategy=ps")


@dataclasses.dataclass(frozen=True)
class Comparison:
    name: str
    ours: Sequence[Way]
    theirs: Sequence[Way]
    is_async: bool = False


COMPARISONS = [
    Comparison(
        "ps",
        [Way("`--strategy=ps`", graft, PS, servers=1)],
        # For a row that only some workers have, it takes the mean of their gradients, not of all.
        [Way("SyncReplicasOptimizer", sync_replicas, servers=1, tolerance=1e-4)],
    ),
    Comparison(
        "async",
        [Way("`--strategy=ps --async`", graft, (*PS, "--async"), servers=1)],
        [
            Way("replica_device_setter", setter, servers=1),
            Way("ParameterServerStrategy, ClusterCoordinator", coordinator, servers=1, coordinated=True),
        ],
        is_async=True,
    ),
    Comparison(
        "collectives",
        [
            Way("`--strategy=ipu-multi-worker`", graft_collectives, IPU),
            Way("`--strategy=ipu-multi-worker --bucket-bytes=0`", graft_collectives, (*IPU, "--bucket-bytes=0")),
            Way("`--strategy=all-reduce`", graft, ("--mode=between-graph", "--strategy=all-reduce")),
        ],
        [
            Way("MultiWorkerMirroredStrategy", multi_worker_mirrored),
            Way("the same in sessions (TF 1)", collective_v1),
        ],
    ),
]
MODELS = ("MLP", "embedding, Adagrad", "CNN")


def own_network():
    """A loopback device that nobody else uses, if the system lets us."""
    if ctypes.CDLL(None).unshare(0x40000000) != 0:  # CLONE_NEWNET
        return False
    with socket.socket() as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 0x49))  # SIOCSIFFLAGS: IFF_UP and what it has
    return True


def measure(comparison, model, workers, rounds, seconds, log):
    """By way its rounds; and the bytes of a step that --plan says, if any."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        source = os.path.join(folder, "single.meta")
        exporter = Process(write_source, model, source, ROWS // workers if comparison.is_async else ROWS)
        stack.callback(exporter.close)
        exporter.end()
        ways, clusters, want = [*comparison.ours, *comparison.theirs], [], None
        for way in ways:
            clusters.append(Cluster(way, model, workers, comparison.is_async, source))
            stack.callback(clusters[-1].close)
            losses = clusters[-1].start(one_by_one=bool(way.servers) or "between-graph" in " ".join(way.flags))
            log(f"{model}, {workers} workers, {way.name}: losses {losses}")
            want = want or losses
            assert all(abs(a - b) < way.tolerance * abs(b) for a, b in zip(losses, want)), (way.name, losses, want)
        rate = clusters[0].run(5).rate
        steps = max(5, round(seconds * rate / (workers if comparison.is_async else 1)))
        found = [[] for _ in ways]
        for _ in range(rounds):
            for cluster, its in zip(clusters, found):
                its.append(cluster.run(steps))
        strategy = {"ps": "ps", "collectives": "all-reduce"}.get(comparison.name)
        # Servers of their own are as far from each worker as one of the machines is from the others.
        plan = planned_bytes(source, strategy, workers + (strategy == "ps")) if strategy else None
    return dict(zip((way.name for way in ways), found)), plan


def size(count):
    return "–" if count is None else f"{count / 1e6:.2f}"


def rows_of(comparison, found, model, workers, plan):
    for ours in comparison.ours:
        for theirs in comparison.theirs:
            pairs = list(zip(found[ours.name], found[theirs.name]))
            ratios = [a.rate / b.rate for a, b in pairs]
            sent = [statistics.median(r.sent for r in found[way.name]) for way in (ours, theirs)]
            yield [
                f"{ours.name} / {theirs.name}",
                model,
                str(workers),
                f"{statistics.median(a.rate for a, _ in pairs):.0f}",
                f"{min(ratios):.2f}",
                f"**{statistics.median(ratios):.2f}**",
                f"{max(ratios):.2f}",
                f"{statistics.median(a.cpu / max(b.cpu, 1e-9) for a, b in pairs):.2f}",
                f"{size(sent[0])} / {size(sent[1])}",
                size(plan),
            ]


HEAD = ["graft / beside it", "model", "W", "graft's steps/s", "min", "median", "max", "CPU of a step", "MB of a step", "planned"]


def main():
    import yardsticks

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="2,3", help="numbers of workers")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a round of graft's")
    parser.add_argument("--only", default="", help="models whose name this pattern fits")
    parser.add_argument("--kind", default="", help="of ps, async and collectives those that this pattern fits")
    parser.add_argument("--write", metavar="FILE", help="put the table into this page")
    options = parser.parse_args()
    alone = own_network()
    Process.context.set_forkserver_preload(["tensorflow", "step_models"])
    log = lambda text: print(text, file=sys.stderr, flush=True)
    table = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    for comparison in COMPARISONS:
        for model in MODELS:
            for workers in (int(n) for n in options.workers.split(",")):
                if not re.search(options.only, model) or not re.search(options.kind, comparison.name):
                    continue
                found, plan = measure(comparison, model, workers, options.rounds, options.seconds, log)
                for row in rows_of(comparison, found, model, workers, plan):
                    table.append("| " + " | ".join(row) + " |")
                    print(table[-1], flush=True)
    if not alone:
        table.append("\nBytes are with those of others on the same loopback device.")
    if options.write:
        yardsticks.write_page(options.write, "workers.py", "\n".join(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
