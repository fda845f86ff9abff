#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU of graft-opt for each node of the input: graphs of real kinds with each strategy.

    python test/bench/inputs.py [--only GRAPH] [--strategies a,b] [--write docs/Performance.md]
    python test/bench/inputs.py --instructions     what valgrind counts instead of time, which other work does not change

The graphs are those of export_models.py, made once and kept in build/release/bench/models, and the synthetic one of 10,000, 100,000 and
1,000,000 nodes. A figure is user and system time of the whole process, the least of some runs, over the nodes of the input, in
microseconds; with --instructions, thousands of instructions. Below the table is what a process costs that has next to nothing to do.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

import yardsticks
from builders import BUILDERS
from yardsticks import Tools, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GRAFT = os.environ.get("GRAFT_OPT") or os.path.join(ROOT, "build", "release", "bin", "graft-opt")
MODELS = {
    "resnet50": "ResNet-50",
    "inception": "Inception v3",
    "bert_large": "BERT-large",
    "lstm": "LSTM, unrolled",
    "functions": "5,000 functions",
    "variables": "10,000 variables",
}
SIZES = (10_000, 100_000, 1_000_000)



def count_nodes(graft, path):
    """By what graft counts in it."""
    command = [graft, path, "--passes=count-ops", "--pass-statistics", "--emit=none"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return sum(int(found) for found in re.findall(r"^ +(\d+)  \S+$", said, re.M))


def command(graft, path, out, strategy):
    # Matrices of a kilobyte are cut, too.
    flags = ["--replicas=2", "--device-type=CPU", f"--strategy={strategy}", "--min-shard-size=64", "--threads=1"]
    return [graft, path, "-o", out, *flags]


def seconds(words, out, rounds):
    """CPU of a process, the least of several runs."""
    times = []
    for _ in range(rounds):
        yardsticks.remove(out)
        done = run(words)
        times.append(done.user + done.sys)
    return min(times)


def instructions(words):
    words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *words]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stderr
    return int(re.search(r"Collected : (\d+)", said)[1])


def graphs(options, tools):
    """(name, path) of each graph; why some are left out is said."""
    kept = os.path.join(os.path.dirname(os.path.dirname(GRAFT)), "bench", "models")
    os.makedirs(kept, exist_ok=True)
    for model, name in MODELS.items():
        if re.search(options.only, name):
            path, why = tools.model(model, kept)
            if path:
                yield name, path
            else:
                print(f"{name} is left out: {why}", file=sys.stderr)
    for size in SIZES:
        name = f"blocks, {size:,}"
        if re.search(options.only, name) and not (options.instructions and size > 100_000):
            yield name, tools.graph(size)
            os.unlink(tools.graph(size))


def table(options, tools):
    strategies = options.strategies.split(",")
    lines = ["| | nodes | " + " | ".join(f"`{each}`" for each in strategies) + " |", "|---" * (2 + len(strategies)) + "|"]
    out = tools.path("out.pb")
    for name, path in graphs(options, tools):
        nodes, cells = count_nodes(GRAFT, path), []
        for strategy in strategies:
            words = command(GRAFT, path, out, strategy)
            if options.instructions:
                cells.append(f"{instructions(words) / nodes / 1e3:.1f}")
            else:
                rounds = 2 if nodes > 500_000 else 3 if nodes > 50_000 else 5
                cells.append(f"{1e6 * seconds(words, out, rounds) / nodes:.2f}")
        lines.append(f"| {name} | {nodes:,} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def small(tools):
    """Milliseconds of whole processes, the least of many: graft-opt on a small graph, with nothing to do, and `cat`."""
    source, out = tools.graph(100), tools.path("out.pb")
    jobs = {
        "graft-opt on a graph of {} nodes x2": [GRAFT, source, "-o", out, "--replicas=2", "--device-type=CPU"],
        "graft-opt --version": [GRAFT, "--version"],
        "cat of that graph": ["cat", source],
    }
    least = dict.fromkeys(jobs, float("inf"))
    for _ in range(60):
        for name, words in jobs.items():
            yardsticks.remove(out)
            least[name] = min(least[name], 1e3 * run(words).wall)
    nodes = count_nodes(GRAFT, source)
    return "; ".join(f"{name.format(nodes)}: {each:.1f} ms" for name, each in least.items()) + "."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="graphs whose name this pattern fits")
    parser.add_argument("--strategies", default=",".join(BUILDERS))
    parser.add_argument("--instructions", action="store_true", help="count instructions, not time")
    parser.add_argument("--write", metavar="FILE", help="put the table into this page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(os.path.dirname(os.path.dirname(GRAFT)), folder, GRAFT)
        lines = table(options, tools) + "\n\n" + small(tools)
    print(lines.splitlines()[-1])
    if options.write:
        yardsticks.write_page(options.write, "inputs.py", lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
