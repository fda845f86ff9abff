#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of any number of rows against steps with --even-batches, in TensorFlow, on a batch that the replicas divide.

    any_rows.py GRAFT_OPT [--rounds=R] [--write=FILE]

Prints a table of models: the median time of both steps, in milliseconds, and their ratio. The rounds take turns in one process.
With --write, puts the table between the markers of a page.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "conformance"))

import harness
import models
import numpy as np
from models import Spec

MODELS = {"CNN": "cnn_nobn", "MLP, Adam": "mlp_adam", "embedding": "embedding", "wide MLP": "wide_mlp"}
REPLICAS, TIMES, WARM = 2, 16, 50
BEGIN, END = "<!-- any_rows.py: begin -->", "<!-- any_rows.py: end -->"


def session(graft, path, folder, *flags):
    out = os.path.join(folder, "even.meta" if flags else "any.meta")
    command = [graft, path, "-o", out, f"--replicas={REPLICAS}", "--device-type=CPU", *flags]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    made = harness.Session(out, REPLICAS)
    made.restart()
    return made


def measure(graft, model, rounds):
    path = harness.export(Spec(model))
    batch = [np.concatenate([value] * TIMES) for value in models.batches(model, "float32")[0]]
    feeds = dict(zip(("x:0", "y:0"), batch))
    with tempfile.TemporaryDirectory() as folder:
        both = [session(graft, path, folder), session(graft, path, folder, "--even-batches")]
        times = [[], []]
        for number in range(rounds):
            for each in (0, 1) if number % 2 else (1, 0):
                start = time.perf_counter()
                both[each].session.run("train_op", feeds)
                times[each].append(time.perf_counter() - start)
        for each in both:
            each.close()
    return [statistics.median(each[WARM:]) * 1e3 for each in times]


def main():
    parser = argparse.ArgumentParser(description="Steps of any number of rows against steps of even batches.")
    parser.add_argument("graft")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--write", metavar="FILE", help="put the table into this page")
    options = parser.parse_args()
    lines = ["| model | any number of rows, ms | `--even-batches`, ms | ratio |", "|---|---|---|---|"]
    for name, model in MODELS.items():
        ours, even = measure(options.graft, model, options.rounds)
        lines.append(f"| {name} | {ours:.3f} | {even:.3f} | {ours / even:.3f} |")
    table = "\n".join(lines)
    print(table)
    if options.write:
        with open(options.write, encoding="utf-8") as page:
            before, _, rest = page.read().partition(BEGIN)
        after = rest.partition(END)[2]
        with open(options.write, "w", encoding="utf-8") as page:
            page.write(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
