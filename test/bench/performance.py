#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of a rewrite against yardsticks that run beside it, as ratios.

    performance.py                               everything; prints a table (some minutes)
    performance.py --write docs/Performance.md   and puts it between the markers of that page
    performance.py --gates                       the rows marked *, in less than a minute; status 1 when one is missed
    performance.py --huge                        graphs of more than 2 GiB

All processes are cold and outputs are new files. Ratios of walls are medians of pairs that run next to each other, user CPU
is the least of five runs. What misses its limit is measured again, eight times at most, and the best counts: a neighbour on a
shared machine takes time away and never gives any. docs/Performance.md says what bounds each row.
"""

import argparse
import dataclasses
import filecmp
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import yardsticks
from yardsticks import Tools, run


# --- Rows. ---


@dataclasses.dataclass
class Row:
    """One line of the table: a figure and the most that it may be."""

    key: str
    text: str
    must: float = None
    aim: float = None
    form: str = "{:.2f}"  # or 'inverse'
    value: float = None
    note: str = ""

    def show(self, value):
        if value is None:
            return ""
        return f"1/{1 / value:.3g}" if self.form == "inverse" else self.form.format(value)

    def better(self, value):
        self.value = value if self.value is None else min(self.value, value)

    def missed(self):
        return self.must is not None and self.value is not None and self.value > self.must

    def verdict(self):
        if self.value is None:
            return self.note
        if self.must is None:
            return ""
        return "FAILED" if self.missed() else "ok"


ROWS = [
    Row("P1", "one thread: wall / protobuf's parse + serialize + write of the output", 1 / 8, 1 / 18, "inverse"),
    Row("P2", "the same with two threads", 1 / 10, 1 / 18, "inverse"),
    Row("P3", "one thread: wall / `cat OUTPUT > new`", 3.5, 2),
    Row("P3b", "two threads: wall / `cat OUTPUT > new`", 2.8, 1.6),
    # User time of a job of 0.1 s is counted in ticks: one binary measures 1/3.6 to 1/6.1 on one machine. Instructions are the
    # same in each run.
    Row("P4*", "instructions / those of protobuf's parse + serialize of the output", 1 / 4.2, 1 / 8, "inverse"),
    Row("cpu4", "the same in user CPU", None, None, "inverse"),
    Row("P5*", "peak memory / size of the output", 0.35, 0.2),
    Row("P5b*", "peak memory at x64 / peak memory at x8", 1.1, None),
    Row("P6*", "1,000,000 nodes x2 / 100,000 nodes x2, user CPU", 18, 13, "{:.1f}"),
    Row("P6b*", "100,000 nodes x2 / 10,000 nodes x2, user CPU", 18, 13, "{:.1f}"),
    Row("P7*", "empty pipeline: wall / protobuf's parse + serialize of the input", 1 / 2, 1 / 4, "inverse"),
    # Instructions as well: 510 per node take 46 to 106 ns on one machine, depending on what else it does.
    Row("P8*", "slowest local pass, instructions / protobuf's parse + serialize of the input", 1 / 14, 1 / 40, "inverse"),
    Row("P9*", "inference of types in the job, instructions / the same", 1 / 1.8, 1 / 5, "inverse"),
    Row("P10", "ResNet-50 x8: whole process / protobuf's parse + serialize of the output", 1 / 4, 1 / 8, "inverse"),
    Row("P11", "1,000,000 nodes x8 in shards: peak memory / size of the output", 0.25, 0.17),
    Row("P12", "text: wall / protobuf's parse + TextFormat::Print", 1 / 2, 1 / 4, "inverse"),
    Row("P13", "a step of 200 small variables x4 in TensorFlow, collectives: in buckets / one by one", 1 / 3, 1 / 10, "inverse"),
    Row("out", "size of the output / size of the input"),
    Row("mem", "protobuf's peak memory / size of the output"),
    Row("copy", "one thread: wall / memcpy of the output into fresh memory"),
    Row("cpu12", "text: user CPU / user CPU of protobuf's parse + TextFormat::Print", None, None, "inverse"),
    Row("bert", "BERT-large x8: whole process / protobuf's parse + serialize of the output", None, None, "inverse"),
    Row("import", "10,000 nodes x8: wall / Python's `import_graph_def` x8, started and parsed", None, None, "inverse"),
]


# A neighbour on a shared machine makes runs slower, never faster.
RETRIES = 16


class Table:
    def __init__(self, only):
        self.rows = {row.key.rstrip("*"): row for row in ROWS}
        self.only = re.compile(only or "")
        self.failures = []

    def wanted(self, *keys):
        return any(self.only.search(key) for key in keys)

    def skip(self, keys, why):
        for key in keys:
            self.rows[key].note = why

    def measure(self, function, *arguments):
        """Calls a function that returns figures by row, again while one misses its limit."""
        for _ in range(1 + RETRIES):
            figures = function(*arguments)
            for key, value in figures.items():
                self.rows[key].better(value)
            if not any(self.rows[key].missed() for key in figures):
                break

    def check(self, text, good):
        """A property that has no figure."""
        print(f"gates: {text:78} {'ok' if good else 'FAILED'}", flush=True)
        if not good:
            self.failures.append(text)

    def missed(self):
        return [row.key for row in self.rows.values() if row.missed()]

    def markdown(self):
        lines = ["| | what | measured | must | aim | |", "|---|---|---|---|---|---|"]
        for row in self.rows.values():
            key = re.sub(r"(?<=\d)b", "", row.key) if row.key.startswith("P") else ""
            figures = [row.show(value) or "–" for value in (row.value, row.must, row.aim)]
            lines.append("| " + " | ".join([key, row.text, *figures, row.verdict()]) + " |")
        return "\n".join(lines)

    def gates(self):
        for row in self.rows.values():
            if row.value is not None:
                limit = f"(at most {row.show(row.must)})" if row.must is not None else ""
                print(f"gates: {row.key:5} {row.text:72} {row.show(row.value):>7}  {limit:16} {row.verdict()}")


# --- Measurements; each returns figures by row. ---


def ratio_of_walls(pairs):
    return statistics.median(a.wall / b.wall for a, b in pairs)


def least_user(runs):
    return min(r.user for r in runs)


def whole_job(tools, source, full):
    """The job, and beside it what protobuf and cat take for its output."""
    result = tools.path("result.pb")
    one, two = tools.threads(1), tools.threads(2)
    seen = {name: [] for name in ("one", "two", "message", "memcpy", "cat")}
    for _ in range(9):
        seen["one"].append(tools.job(source, result, *one))
        # The gates look at CPU time and memory, for which the file is not needed.
        seen["message"].append(tools.baseline("message", result, *([tools.path("new")] if full else [])))
        if full:
            if two:
                seen["two"].append(tools.job(source, tools.path("new"), *two))
            seen["cat"].append(run(["cat", result], stdout=tools.path("new")))
            seen["memcpy"].append(tools.baseline("memcpy", result))
    size = os.path.getsize(result)
    figures = {
        "cpu4": least_user(seen["one"]) / least_user(seen["message"]),
        "P5": min(r.peak for r in seen["one"]) / size,
        "mem": min(r.peak for r in seen["message"]) / size,
        "out": size / os.path.getsize(source),
    }
    if full:
        figures["copy"] = ratio_of_walls(zip(seen["one"], seen["memcpy"]))
    if full and two:
        figures["P1"] = ratio_of_walls(zip(seen["one"], seen["message"]))
        figures["P2"] = ratio_of_walls(zip(seen["two"], seen["message"]))
        figures["P3"] = ratio_of_walls(zip(seen["one"], seen["cat"]))
        figures["P3b"] = ratio_of_walls(zip(seen["two"], seen["cat"]))
    return figures


def instructions(tools, name, command):
    """The instructions that a process executes by function, as Callgrind counts them, without those of its callees."""
    profile = tools.path(f"{name}.callgrind")
    subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", *command],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    return annotate(profile)


def annotate(profile, *flags):
    command = ["callgrind_annotate", "--threshold=100", *flags, profile]
    table = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    lines = re.findall(r"^ *([\d,]+) \([^)]*\)  (?:\?\?\?:)?(.*?)(?: \[.*\])?$", table, re.M)
    return {function: int(count.replace(",", "")) for count, function in lines}


# The passes that look at a node and its neighbours and at nothing else.
LOCAL_PASSES = ["AssignStrategy", "Replicate", "RefineCopies", "MergeFetches", "Place"]
INFERENCE = "graft::ProgramFacts::ProgramFacts(graft::Graph const&, graft::DimOptions)"


def counted_job(tools, table, source):
    """The job in instructions. GraphDef and NodeDef messages are made by the text format, of functions, for --capture, and
    by the verifier of fields of a node that no writer gives it: none of a usual node."""
    result = tools.path("result.pb")
    job = instructions(tools, "graft", [tools.graft_opt, source, "-o", result, *tools.flags(8), *tools.threads(1)])
    parts = annotate(tools.path("graft.callgrind"), "--inclusive=yes")
    total = job["PROGRAM TOTALS"]
    messages = sum(count for function, count in job.items() if re.search(r"tensorflow::(Graph|Node)Def::", function))
    protobuf = instructions(tools, "protobuf", [tools.protobuf, "message", result])
    parsed = sum(count for function, count in protobuf.items() if re.search(r"tensorflow::NodeDef::", function))
    table.check(f"NodeDef messages take {messages / total:.4%} of the job's instructions", messages < total / 1000 and parsed > 0)
    yardstick = instructions(tools, "input", [tools.protobuf, "message", source])["PROGRAM TOTALS"]
    run = "graft::(anonymous namespace)::{}::run(graft::Module&, graft::DiagnosticEngine&)"
    return {
        "P4": total / protobuf["PROGRAM TOTALS"],
        "P8": max(parts[run.format(name)] for name in LOCAL_PASSES) / yardstick,
        "P9": parts[INFERENCE] / yardstick,
    }


def memory_by_replicas(tools, source):
    peaks = {}
    for replicas in (8, 64):
        peaks[replicas] = tools.job(source, tools.path("new.pb"), *tools.threads(1), replicas=replicas).peak
    return {"P5b": peaks[64] / peaks[8]}


def growth(tools, sources, full):
    """User CPU of the job on graphs of growing size. Two replicas: the largest output fits into one file. Medians: of a
    short process the kernel only estimates it. A long one is disturbed more often: its least counts."""
    user = {}
    for nodes, source in sources.items():
        rounds = 15 if nodes <= 100000 else 5 if full else 3
        jobs = [tools.job(source, tools.path("new.pb"), *tools.threads(1), replicas=2) for _ in range(rounds)]
        user[nodes] = (statistics.median if nodes <= 100000 else min)(job.user for job in jobs)
    return {"P6": user[1000000] / user[100000], "P6b": user[100000] / user[10000]}


def empty_pipeline(tools, source):
    pairs = []
    for _ in range(7):
        job = tools.graft(source, "-o", tools.path("new.pb"), *tools.threads(1))
        pairs.append((job, tools.baseline("message", source)))
    return {"P7": ratio_of_walls(pairs)}


def real_model(tools, key, source):
    """A process from its start on, against one that parses and serializes what it wrote."""
    pairs, result = [], tools.path("result.meta")
    for _ in range(7):
        job = tools.job(source, result, *tools.threads(2))
        pairs.append((job, run([tools.protobuf, "message", result])))
    return {key: ratio_of_walls(pairs)}


def shards(tools, source):
    job, files, _ = tools.sharded(source, 8)
    return {"P11": job.peak / sum(map(os.path.getsize, files))}


def text(tools, source):
    jobs, prints = [], []
    for _ in range(7):
        jobs.append(tools.graft(source, "-S", "-o", tools.path("new.pbtxt"), *tools.threads(1)))
        prints.append(tools.baseline("text", source, tools.path("other.pbtxt")))
    assert filecmp.cmp(tools.path("new.pbtxt"), tools.path("other.pbtxt"), shallow=False), "the texts differ"
    return {"P12": ratio_of_walls(zip(jobs, prints)), "cpu12": least_user(jobs) / least_user(prints)}


def fused_steps(tools):
    return {"P13": 1 / tools.fused_steps()}


def python_import(tools, source):
    job = tools.job(source, tools.path("new.pb"), *tools.threads(2))
    return {"import": job.wall / tools.python_import(source, 8)}


# --- Checks without a figure. ---


def check_replicas(table, tools, source):
    """Nothing depends on the number of replicas before the last write."""
    counts, peaks = {}, {}
    for replicas in (2, 64):
        flags = tools.flags(replicas)
        pipeline = tools.output(source, *flags, "--print-pipeline-passes").strip()
        passes = pipeline.removesuffix(",expand-replicas")
        run([tools.graft_opt, source, f"--passes={passes}", "--emit=summary"], stdout=tools.path("summary"))
        with open(tools.path("summary"), encoding="utf-8") as program:
            counts[replicas] = sum(" = " in line for line in program)
        peaks[replicas] = min(tools.graft(source, "--emit=none", *flags).peak for _ in range(3))
    table.check("nodes of the program, x64 as x2", counts[64] == counts[2] > 0)
    table.check("peak memory before the write, x64 within 5 % of x2", peaks[64] <= 1.05 * peaks[2])


def check_identity(table, tools, source):
    tools.graft(source, "-o", tools.path("new.pb"))
    table.check("an empty pipeline writes its input", filecmp.cmp(source, tools.path("new.pb"), shallow=False))


def huge(table, tools):
    """Graphs of more than 2 GiB, which protobuf cannot hold in one message."""
    large = tools.path("large.pb")
    size = yardsticks.write_large_graph(large)
    tools.graft(large, "-o", "/dev/null")
    run([tools.graft_opt, large, "--emit=summary"], stdout=tools.path("summary"))
    with open(tools.path("summary"), encoding="utf-8") as summary:
        table.check(f"an input of {size:,} bytes is read", len(list(summary)) == yardsticks.LARGE_CONSTANTS)
    os.unlink(large)
    if not tools.has("--shard-size"):
        print("gates: shards: --shard-size is not supported by this binary")
        return
    small, million = tools.graph(100000), tools.graph(1000000)
    whole = tools.path("whole.pb")
    tools.job(small, whole)
    _, _, nodes = tools.sharded(small, 8, shard_size=100 << 20)
    table.check("100,000 nodes x8: the shards have the nodes of one file", nodes == tools.baseline("message", whole).nodes)
    os.unlink(whole)
    seen = set()
    for shard_size in (256 << 20, 1000 << 20):
        _, files, nodes = tools.sharded(million, 8, shard_size=shard_size)
        sizes = [os.path.getsize(f) for f in files]
        table.check(f"1,000,000 nodes x8: {len(files)} shards of up to {max(sizes):,} bytes load", nodes > 0)
        table.check("they are more than 2 GiB, and none is too large", sum(sizes) > 2 << 30 and max(sizes) <= shard_size)
        seen.add(nodes)
    table.check("they have the same number of nodes", len(seen) == 1)


# --- The whole. ---


def quick_rows(table, tools, full):
    sources = {nodes: tools.graph(nodes) for nodes in (10000, 100000, 1000000)}
    source = sources[100000]
    if table.wanted("P1", "P2", "P3", "P4", "P5"):
        table.measure(whole_job, tools, source, full)
        if full and not tools.has("--threads"):
            table.skip(["P1", "P2", "P3", "P3b"], "--threads is not supported by this binary")
    if table.wanted("P5b"):
        table.measure(memory_by_replicas, tools, source)
    if table.wanted("P6"):
        table.measure(growth, tools, sources, full)
    if table.wanted("P7"):
        table.measure(empty_pipeline, tools, source)
    if table.wanted("P4", "P8", "P9"):
        for key, value in counted_job(tools, table, source).items():
            table.rows[key].better(value)
    if table.wanted("checks"):
        check_identity(table, tools, source)
        check_replicas(table, tools, source)


def other_rows(table, tools, models):
    for key, model in (("P10", "resnet50"), ("bert", "bert_large")):
        if table.wanted(key):
            path, why = tools.model(model, models)
            if path:
                table.measure(real_model, tools, key, path)
            else:
                table.skip([key], why)
    if table.wanted("P11"):
        if tools.has("--shard-size"):
            table.measure(shards, tools, tools.graph(1000000))
        else:
            table.skip(["P11"], "--shard-size is not supported by this binary")
    if table.wanted("P12"):
        table.measure(text, tools, tools.graph(100000))
    if table.wanted("P13"):
        if tools.python():
            table.measure(fused_steps, tools)
        else:
            table.skip(["P13"], "no TensorFlow: set GRAFT_VENV")
    if table.wanted("import"):
        if tools.python():
            table.measure(python_import, tools, tools.graph(10000))
        else:
            table.skip(["import"], "no TensorFlow: set GRAFT_VENV")


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", action="store_true", help="only the rows marked *, and say so by the exit status")
    parser.add_argument("--huge", action="store_true", help="only the checks on more than 2 GiB")
    parser.add_argument("--write", metavar="FILE", help="put the table between the markers of this page")
    parser.add_argument("--only", metavar="REGEX", help="only rows with such a name, of P1 ... P13, bert, import, checks")
    parser.add_argument("--build", default=os.path.join(root, "build", "release"), help="default: build/release")
    parser.add_argument("--graft", metavar="FILE", help="another graft-opt than the build's")
    parser.add_argument("--models", metavar="FOLDER", help="where exported models are kept; default: BUILD/bench/models")
    parser.add_argument("--work", metavar="FOLDER", help="for graphs of up to 4 GiB; default: the system's")
    options = parser.parse_args()

    work = tempfile.mkdtemp(prefix="graft-performance-", dir=options.work)
    try:
        tools = Tools(os.path.abspath(options.build), work, options.graft)
        table = Table(options.only)
        if options.huge:
            huge(table, tools)
        else:
            quick_rows(table, tools, full=not options.gates)
        if options.gates:
            table.gates()
        elif not options.huge:
            other_rows(table, tools, options.models or os.path.join(options.build, "bench", "models"))
            lines = yardsticks.machine() + "\n\n" + table.markdown()
            print(lines)
            if options.write:
                yardsticks.write_page(options.write, "performance.py", lines)
    finally:
        shutil.rmtree(work)
    missed = table.missed() + table.failures
    if missed:
        print(f"gates: not met: {', '.join(missed)}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
