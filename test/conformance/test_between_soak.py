# SPDX-License-Identifier: Apache-2.0
"""Three workers and two servers, and faults at random: workers and the chief are killed and started again, any task stands
still for some seconds. With --full only; by hand

    python test_between_soak.py --form=waiting --steps=300 --faults=5 --seed=1
"""

import argparse
import collections
import random
import signal
import threading
import time

import harness
import models
import pytest
from models import Spec
from test_between_async import rewrite
from test_between_faults import after
from test_between_graph import jobs_of
from test_between_restarts import Tasks, checkpoint_of, of_strategy, saved_in

# In doubles, since after some hundred steps gradients are small differences.
SPEC = Spec("mlp_adam", "resource", dtype="float64")
FORMS = ("waiting", "async")
WORKERS, SERVERS, SAVE_STEPS = 3, 2, 25


def batch():
    return {f"{n}:0": v for n, v in zip("xy", models.batches(SPEC.model, SPEC.dtype)[0])}


def tasks_of(form, steps, limit):
    # A worker that does not wait makes hundreds of steps while another starts again: slowly, so that faults are among steps.
    more = dict(last=steps, save_steps=SAVE_STEPS, sleep=0.1 if form == "async" else 0, limit=limit)
    if form == "waiting":
        return of_strategy("ps", SERVERS, WORKERS, SPEC, **more)
    path, jobs = harness.export(SPEC), jobs_of(WORKERS, SERVERS)
    paths, _ = rewrite(path, jobs, "--async")
    return path, Tasks(jobs, paths, lambda i: batch(), lambda i: ["/job:ps", f"/job:worker/task:{i}"], **more)


def loss_of(values, path):
    with harness.Session(path) as single:
        single.run("init")
        with single.graph.as_default():
            for variable in models.tf1.global_variables():
                variable.load(values[variable.op.name], single.session)
        return single.run("loss:0", batch())


KINDS = ("kill a worker", "kill the chief", "stop a worker", "stop the chief", "stop a server")


def faults_of(draw, steps, number):
    """(step, kind, task, seconds), as many of each kind as of the others; some come at once with the one before."""
    kinds = [KINDS[i % len(KINDS)] for i in range(number)]
    draw.shuffle(kinds)
    last = 0
    for step, kind in zip(sorted(draw.randrange(10, steps - 30) for _ in kinds), kinds):
        last = step = last if last and draw.random() < 0.3 else step
        index = {"worker": draw.randrange(1, WORKERS), "chief": 0, "server": draw.randrange(SERVERS)}[kind.split()[-1]]
        yield step, kind, ("ps" if kind.endswith("server") else "worker", index), draw.uniform(0.5, 4)


def soak(form, steps, number, seed, limit=3000):
    """Returns what was done and measured."""
    print(f"again: test_between_soak.py --form={form} --steps={steps} --faults={number} --seed={seed}", flush=True)
    begun, done, again = time.monotonic(), collections.Counter(), 0
    path, tasks = tasks_of(form, steps, limit)
    with tasks:
        for i in range(WORKERS):
            tasks.start(i)
            if i == 0:
                tasks.tasks["worker", 0].until("session")
        for step, kind, task, seconds in faults_of(random.Random(seed), steps, number):
            chief = tasks.tasks["worker", 0]
            reached = chief.until("step", step, timeout=180)
            print(f"{time.monotonic() - begun:6.1f} s, step {reached}: {kind}, {task[1]}, {seconds:.1f} s", flush=True)
            done[kind] += 1
            if kind.startswith("stop"):
                tasks.tasks[task].send(signal.SIGSTOP)
                threading.Timer(seconds, tasks.tasks[task].send, [signal.SIGCONT]).start()
                continue
            reached = max(chief.events("step"), default=0)
            tasks.kill(task[1])
            kept = checkpoint_of(tasks.folder)
            one = tasks.start(task[1])
            if task[1] == 0:
                got = one.until("session")
                assert got == kept if form == "waiting" else got >= kept, (got, kept)
                again += max(reached - kept, 0)
        workers = [tasks.tasks["worker", i] for i in range(WORKERS)]
        for worker in workers:
            worker.until("end", timeout=600)
        for worker in reversed(workers):
            worker.let_go()
    seconds = time.monotonic() - begun
    got, want = saved_in(tasks.folder, path), after(path, steps, SPEC)
    first, fault_free, loss = (loss_of(v, path) for v in (after(path, 0, SPEC), want, got))
    print(
        f"{form}: {steps} steps, {sum(done.values())} faults ({dict(done)}), {again} steps made again, {seconds:.0f} s; "
        f"loss {first:.4f} at first, {loss:.6f}, and {fault_free:.6f} without faults",
        flush=True,
    )
    if form == "waiting":
        assert got["global_step"] == steps
        harness.assert_all_close(got, want, f"after {steps} steps", slack=10)
    else:
        assert steps <= got["global_step"] <= steps + WORKERS
        assert loss <= 2 * fault_free + 0.02 * first


@pytest.mark.parametrize("form", FORMS)
def test_soak(form, request):
    if not request.config.getoption("--full"):
        pytest.skip("takes minutes: --full")
    soak(form, 2000, 20, int(time.time()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--form", choices=FORMS, default=FORMS[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    flags = parser.parse_args()
    soak(flags.form, flags.steps, flags.faults, flags.seed)
