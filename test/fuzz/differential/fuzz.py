#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random training graphs through graft-opt, against TensorFlow. README.md says how.

    fuzz.py --seconds=60 [--seed=N]      as many graphs as that takes
    fuzz.py --graphs=1000 --seed=N       so many
    fuzz.py --repeat=SEED[:NUMBER]       one graph again, with one or each of its draws of options
    fuzz.py --minimize=SEED:NUMBER       make what fails small
    fuzz.py --family=sizes ...           graphs of a family of its own
"""

import argparse
import collections
import gc
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "conformance")]
DRAWS = {"all": 3, "sizes": 2}  # of options for each graph of a family
QUIET = 120  # seconds without a word after which a worker hangs
LIFE = 300  # graphs of one worker process


def cases(family: str, seed: int, numbers, report):
    """Builds the graph of a seed and judges it with each draw of options."""
    import genes
    import options
    import running
    import tensorflow as tf

    plan = genes.draw(family, seed)
    try:
        built = genes.build(plan)
        reference = running.Reference(built)
        if not running.finite(reference.rows):
            raise genes.Illegal("not finite")
    except (genes.Illegal, tf.errors.OpError) as error:
        report(seed, -1, running.Verdict("illegal", running.first_line(error)), [])
        return
    with tempfile.TemporaryDirectory(prefix="graft-fuzz-") as folder:
        for number in numbers:
            flags = options.draw(built, seed, number)
            report(seed, number, None, flags)
            report(seed, number, running.judge(built, reference, flags, folder), flags)
    reference.close()


def work(family: str, start: int, stop: int):
    """A worker: one line of JSON when it begins a case and one when it has a verdict."""

    def report(seed, number, verdict, flags):
        line = {"seed": seed, "number": number, "flags": flags}
        if verdict is not None:
            line.update(kind=verdict.kind, detail=verdict.detail, where=verdict.where, warnings=list(verdict.warnings))
        print(json.dumps(line), flush=True)

    import genes

    genes.register_all()
    # Imported modules stay, so the garbage collector need not visit them again.
    gc.collect()
    gc.freeze()
    for seed in range(start, stop):
        report(seed, -2, None, [])
        cases(family, seed, range(DRAWS[family]), report)


class Worker:
    """A process that judges seeds; what kills it or makes it silent is a verdict, too."""

    def __init__(self, family, start, stop):
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "TF_ENABLE_ONEDNN_OPTS": "0"}
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, "-B", os.path.abspath(__file__), f"--worker={start}:{stop}", f"--family={family}"],
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=environment,
        )
        self.last, self.buffer = {"seed": start, "number": -2, "flags": []}, b""

    def lines(self):
        """Lines as they come; at the end one that says what became of the process, if that was not well."""
        out = self.process.stdout.fileno()
        while True:
            ready, _, _ = select.select([out], [], [], QUIET)
            if not ready:
                self.stop()
                yield {**self.last, "kind": "hang", "detail": f"nothing for {QUIET} s", "where": "", "warnings": [],
                       "dead": True}  # fmt: skip
                return
            data = os.read(out, 1 << 16)
            if not data:
                code = self.process.wait()
                if code:
                    self.errors.seek(0)
                    said = self.errors.read()[-1500:].decode("utf-8", "replace")
                    detail = f"TensorFlow ended with {code}: {said}"
                    yield {**self.last, "kind": "crash", "detail": detail, "where": "", "warnings": [],
                           "dead": True}  # fmt: skip
                return
            self.buffer += data
            *whole, self.buffer = self.buffer.split(b"\n")
            for text in whole:
                if text.startswith(b"{"):
                    self.last = json.loads(text)
                    yield self.last

    def stop(self):
        self.process.kill()
        self.process.wait()


def signature(line) -> str:
    """The fault, without names and numbers."""
    detail = re.sub(r"'[^']*'|\{\{.*|[0-9][0-9.e+-]*", "_", line["detail"])
    if line["kind"] == "wrong":
        detail = re.sub(r"\S*:_ is off.*", "off", detail)
    return f"{line['kind']} {detail}"[:150]


class Tally:
    def __init__(self):
        self.kinds, self.refusals, self.warnings = (collections.Counter() for _ in range(3))
        self.first = {}  # the first case of each refusal
        self.graphs, self.bad, self.seen = set(), [], collections.Counter()

    def note(self, line):
        kind = line["kind"]
        self.kinds[kind] += 1
        if kind != "illegal":
            self.graphs.add(line["seed"])
        if kind in ("refused", "uncertified"):
            self.refusals[signature(line)] += 1
            self.first.setdefault(signature(line), f"{line['seed']}:{line['number']}")
        for warning in line["warnings"]:
            self.warnings[warning] += 1
        if kind in ("wrong", "fails", "drift", "crash", "hang"):
            # One line for each kind of finding: a defect comes with many graphs.
            self.seen[signature(line)] += 1
            if self.seen[signature(line)] == 1:
                self.bad.append(line)
                return True
        return False

    def text(self):
        rows = sum(n for kind, n in self.kinds.items() if kind != "illegal")
        kinds = ", ".join(f"{n} {kind}" for kind, n in self.kinds.most_common())
        return f"{len(self.graphs)} graphs, {rows} rewrites: {kinds}"


def describe(line, family="all") -> str:
    text = f"{line['kind'].upper()} {line['seed']}:{line['number']} {' '.join(line['flags'])}\n  {line['detail']}"
    if line["warnings"]:
        text += f"\n  warned of: {', '.join(line['warnings'])}"
    of = "" if family == "all" else f"--family={family} "
    return text + f"\n  again: test/fuzz/differential/fuzz.py {of}--repeat={line['seed']}:{line['number']}"


def explore(args) -> int:
    began, tally, seed = time.time(), Tally(), args.seed
    stop = seed + args.graphs if args.graphs else 1 << 62
    log = open(args.log, "a", encoding="utf-8") if args.log else None
    over = lambda: args.seconds and time.time() - began > args.seconds
    print(f"differential fuzzing from seed {seed}", flush=True)
    while seed < stop and not over():
        worker = Worker(args.family, seed, min(seed + LIFE, stop))
        seed = min(seed + LIFE, stop)
        for line in worker.lines():
            if "kind" in line:
                new = tally.note(line)
                if log:
                    print(json.dumps(line), file=log, flush=True)
                if new:
                    print(describe(line, args.family), flush=True)
                if line.get("dead"):
                    seed = min(seed, line["seed"] + 1)
            if over():
                worker.stop()
                break
        worker.stop()
    spent = time.time() - began
    if args.table:
        print("refused:", *(f"  {n} {what} (as {tally.first[what]})" for what, n in tally.refusals.most_common(40)), sep="\n")
        print("warnings:", *(f"  {n} {what}" for what, n in tally.warnings.most_common()), sep="\n")
    pace = len(tally.graphs) / max(spent, 1e-9)
    print(f"differential: {tally.text()} ({pace:.1f} graphs a second, {60 * pace:.0f} a minute)")
    for line in tally.bad[: args.minimized]:
        if line["number"] >= 0:
            command = [sys.executable, "-B", os.path.abspath(__file__), f"--minimize={line['seed']}:{line['number']}",
                       f"--found={args.found}", f"--family={args.family}"]  # fmt: skip
            try:
                subprocess.run(command, stderr=subprocess.DEVNULL, timeout=600)
            except subprocess.TimeoutExpired:
                print(f"{line['seed']}:{line['number']} was not made small in 600 s")
    if tally.bad:
        print(f"differential: {sum(tally.seen.values())} findings of {len(tally.bad)} kinds")
        return 1
    if not tally.kinds["ok"]:
        print("differential: nothing was proved, so nothing was tested")
        return 1
    print("differential: no finding" if not args.seconds else f"differential: {args.seconds} s, no finding")
    return 0


def repeat(family: str, text: str) -> int:
    seed, _, number = text.partition(":")
    bad = False

    def report(seed, number, verdict, flags):
        nonlocal bad
        if verdict is not None:
            line = {"seed": seed, "number": number, "flags": flags, **vars(verdict)}
            print(describe(line, family))
            bad |= verdict.kind in ("wrong", "fails", "drift", "crash", "hang")

    import genes

    genes.register_all()
    cases(family, int(seed), [int(number)] if number else range(DRAWS[family]), report)
    return int(bad)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=0, help="stop after so many seconds")
    parser.add_argument("--graphs", type=int, default=0, help="stop after so many seeds")
    parser.add_argument("--seed", type=int, default=None, help="the first seed; default: of the clock")
    parser.add_argument("--family", choices=sorted(DRAWS), default="all", help="which graphs; `sizes` are those of sizes.py")
    parser.add_argument("--repeat", help="SEED or SEED:NUMBER: judge it again")
    parser.add_argument("--minimize", help="SEED:NUMBER: make it small")
    parser.add_argument("--minimized", type=int, default=5, help="make at most so many findings small (default: 5)")
    parser.add_argument("--found", default="build/fuzz/differential", help="where small findings are written")
    parser.add_argument("--log", help="append every verdict to this file, as JSON")
    parser.add_argument("--table", action="store_true", help="print why graphs were refused, and the warnings")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        start, stop = map(int, args.worker.split(":"))
        work(args.family, start, stop)
        return 0
    if args.repeat:
        return repeat(args.family, args.repeat)
    if args.minimize:
        import minimize

        return minimize.main(args.family, args.minimize, args.found)
    if args.seed is None:
        args.seed = int(time.time()) % 100_000_000 * 1000
    if not args.seconds and not args.graphs:
        args.seconds = 60
    return explore(args)


if __name__ == "__main__":
    sys.exit(main())
