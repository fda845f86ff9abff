#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says what the analysis of types knows of which ops.

    tools/scripts/rule_coverage.py [--missing]             the ops of TensorFlow's registry, by family
    tools/scripts/rule_coverage.py --write                 writes that into docs/Coverage.md
    tools/scripts/rule_coverage.py --check                 fails if a family has fewer covered ops than docs/Coverage.md
    tools/scripts/rule_coverage.py [--graft-opt=P] GRAPH...   fails if an op of a graph is not covered

An op is covered if the analysis can say of a result more than "no rule for op", whatever replicas hold. It has

    rule     a type rule in the entry that a file of lib/infer/rules has for it,
    variable an update or a read of variables in the op table, whose operands are true values,
    once     one copy, which reads merged values (trait::Once, and what holds a state that is no variable: isOnceOp),
    source   no inputs and no state, so that all replicas compute the same,
    end      no outputs.

In a graph, functions are inlined first, and two kinds of nodes outside of the step need nothing more: those that read
nothing of the batch (no feed, no element of a queue or an iterator), whose values are true, and those that only ops with
one copy read, such as the data sets of an iterator. An op that the registry does not know is not covered.
"""

import argparse
import collections
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs", "Coverage.md")
TRIED = ("test", "conformance", "exhaust", "results.txt")  # what TensorFlow said of each rule
STATEFUL = 1  # of the flags in OpTable.inc
RESOURCE = "20"  # DT_RESOURCE
KINDS = ("rule", "variable", "once", "source", "end")
ARG_ROW = re.compile(r'^GRAFT_ARG\("[^"]*", (\d+), "[^"]*", "[^"]*", "[^"]*", (\d)\)', re.M)
ATTR_ROW = re.compile(r'^GRAFT_ATTR\("([^"]*)"', re.M)
OP_ROW = re.compile(r'^GRAFT_OP\("([^"]+)", (\d+), (\d+), (\d+), (\d+), (\d+), (\d+), \d+\)', re.M)
VARIABLE_ROW = re.compile(r'^GRAFT_(?:UPDATE|READ)\("([^"]+)"', re.M)
# Entries of ops in lib/infer/rules: {.Op = op::Abs, ...}, or entry(op::Abs, Like, {...}), where Like is a constant.
CONSTANT = re.compile(r"constexpr OpRule (\w+) = \{([^{}]*)\}")
ENTRY = re.compile(r'(?:\{\.Op = |entry\(\s*)(?:op::)?"?(\w+)"?,?(?:\s*(\w+),?)?(?:\s*\{)?([^{}]*?)(?:\}|\),\n)')
FIELD = re.compile(r"\.(\w+) = ((?:[^,(]|\([^)]*\))+)")
SUMMARY_ROW = re.compile(r"^\s*(\S+) = ([\w>]+)\(([^)]*)\)", re.M)
TABLE_ROW = re.compile(r"^\| ([^|]+?) \| (\d+) \| (\d+) \|", re.M)
# The first that fits, for the table only.
FAMILIES = (
    ("ops of a compiler or a device (XLA, TPU, MKL, fused, debugging)",
     r"_?Xla|_?TPU|TPU|_Mkl|_Fused|_|Risc|Debug|DTensor|Copy|Collective|Nccl|Infeed|Outfeed|Tpu|.*SparseCore|Recv|Send"),
    ("ops of TensorFlow's own tests", r"((Int|Float|Two|Test|List)\w*Output\w*|[ABCF]oo?\d?|Int\w*|\w*Polymorphic\w*|NIntsOut\w*|\w*Struct|Kernel"
     r"Label\w*|Old|Ref(In|Out)\w*|ResourceInit\w*|ResourceUsing\w*|Restrict|Test\w*|Two\w*|Simple|Unary|Binary|ListInput|ListOutput"
     r"|None|A|B|Attr\w*|OpWith\w*|Namespace>.*|OutT\w*|ReservedAttr|ReservedInput|Default\w*|MlirPass\w*|StubRes\w*)$"),
    ("datasets and iterators", r".*(Dataset|Iterator)"),
    ("quantized", r"Quantized?|Requantiz|Uniform|Dequantize"),
    ("sparse and ragged tensors, sets", r".*Sparse|.*Ragged|.*Set(Operation|Size)"),
    ("lists, maps, arrays, stacks, optionals", r"TensorList|TensorMap|TensorArray|Stack|EmptyTensor|Optional"),
    ("tables, readers, queues, barriers, summaries, files", r".*(Table|Reader|Queue|Barrier|Summary|Accumulator|File|Stage|Map(Clear|Size|Peek))"),
    ("boosted trees, sampling of candidates, embeddings", r"BoostedTrees|.*CandidateSampler|.*Embedding|Sdca|KMC|Kmeans"),
    ("random numbers", r".*Random|.*Stateless|Multinomial|.*Rng|TruncatedNormal|Parameterized"),
    ("variables and optimizers", r"(Resource|Sparse)?(Apply|Scatter)|.*Variable|Assign|VarHandle|Variable"),
    ("images, audio, codecs", r"Decode|Encode|.*Jpeg|.*Image|.*Crop|Resize|Adjust|.*BoundingBox|NonMax|Extract|Audio|Mfcc"
     r"|RGB|HSV"),
    ("strings", r".*String|.*Regex|Unicode|.*Base64|AsString|Substr|ReduceJoin"),
    ("linear algebra and transforms", r".*(Matrix|MatMul|Cholesky|FFT|Svd|Eig|Solve|Diag|Qr|Lu|Einsum)"),
    ("networks (convolutions, pools, norms, cells, losses)", r".*(Conv|Pool|BatchNorm|LSTM|GRU|RNN|CTC|Softmax|Relu|Elu|Bias"
     r"|LRN|Dilation|L2Loss|TopK)"),
)


def read(*path):
    with open(os.path.join(ROOT, *path)) as file:
        return file.read()


def fields(text):
    return {key: " ".join(value.split()) for key, value in FIELD.findall(text)}


def entries():
    """By op: the fields of its entry in lib/infer/rules."""
    result = {}
    everywhere = {name: fields(body) for name, body in CONSTANT.findall(read("lib", "infer", "rules", "Rules.h"))}
    for path in sorted(glob.glob(os.path.join(ROOT, "lib", "infer", "rules", "*.cpp"))):
        text = read(path)
        shared = {**everywhere, **{name: fields(body) for name, body in CONSTANT.findall(text)}}
        for op, like, own in ENTRY.findall(text):
            own, its = fields(own), shared.get(like, {})
            traits = [one["Is"] for one in (its, own) if "Is" in one]
            result[op] = {**its, **own, **({"Is": " | ".join(traits)} if traits else {})}
    return result


def kinds():
    """Op by op of the registry: why it is covered, or None."""
    table = read("lib", "ops", "OpTable.inc")
    rules = entries()
    arguments, attributes = ARG_ROW.findall(table), ATTR_ROW.findall(table)
    variable, once = set(VARIABLE_ROW.findall(table)), {op for op, entry in rules.items() if "Once" in entry.get("Is", "").split(" | ")}
    # An entry without a type rule makes true values of true values only.
    ruled = {op for op, entry in rules.items() if "Type" in entry}
    result = {}
    for op, *numbers in OP_ROW.findall(table):
        first, inputs, outputs, attr, attrs, flags = map(int, numbers)
        stateful = flags & STATEFUL
        operands, names = arguments[first : first + inputs], attributes[attr : attr + attrs]
        holds = "shared_name" in names or any(kind == RESOURCE or ref == "1" for kind, ref in operands)
        draws = stateful and "seed" in names and "seed2" in names
        result[op] = (
            "rule" if op in ruled
            else "variable" if op in variable or op in ("VarHandleOp", "VariableV2", "Variable")
            else "once" if op in once or (stateful and holds and not draws)
            else "end" if outputs == 0
            else "source" if inputs == 0 and not stateful
            else None
        )  # fmt: skip
    return result


def by_family(covered):
    counts = collections.OrderedDict((name, collections.Counter()) for name, _ in FAMILIES)
    counts["mathematics, shapes, control flow and the rest"] = collections.Counter()
    for op, kind in covered.items():
        found = next((name for name, pattern in FAMILIES if re.match(pattern, op)), list(counts)[-1])
        counts[found][kind] += 1
    return counts


def page(covered):
    total = sum(kind is not None for kind in covered.values())
    lines = [
        "# Coverage of TensorFlow's ops",
        "",
        "Generated by `tools/scripts/rule_coverage.py --write`, which says what covered means. The test `coverage` fails when",
        "a family has fewer covered ops than here; every op of the models of the conformance tier is covered",
        "(`test_coverage.py`). An op that is not covered gives true values of true values, and a warning of anything else.",
        "",
        "| family | ops | covered | share | " + " | ".join(KINDS) + " |",
        "|---|" + "---|" * (3 + len(KINDS)),
    ]
    for name, counts in [*by_family(covered).items(), ("all", collections.Counter(covered.values()))]:
        ops = sum(counts.values())
        known = ops - counts[None]
        share = f"{100 * known // max(ops, 1)} %"
        lines.append(f"| {name} | {ops} | {known} | {share} | " + " | ".join(str(counts[kind]) for kind in KINDS) + " |")
    assert total == sum(counts for kind, counts in collections.Counter(covered.values()).items() if kind)
    return "\n".join(lines) + "\n"


def tried():
    """A table of the record of test_exhaust.py."""
    lines = [
        "",
        "## Rules that were tried",
        "",
        "The results of `python -m exhaust --write` in `test/conformance`, with operands of every type (`test_exhaust.py`,",
        "[Testing.md](Testing.md)): the number of instances of an op in which TensorFlow found that all claims of the results hold,",
        "that have a result without a claim, and that are refused. `exhaust/table.py` has the reason of each",
        "entry of a rule that is not here.",
        "",
        "| op | held | nothing claimed | refused |",
        "|---|---|---|---|",
    ]
    for line in read(*TRIED).splitlines():
        if not line.startswith("#"):
            op, held, varying, refused, *_ = line.split()
            lines.append(f"| {op} | {held} | {varying} | {refused} |")
    return "\n".join(lines) + "\n"


def fallen(covered):
    """Families that have fewer covered ops than the page says."""
    with open(PAGE) as file:
        recorded = {name: int(known) for name, _, known in TABLE_ROW.findall(file.read().split("\n## ")[0])}
    counts = by_family(covered)
    now = {name: sum(c.values()) - c[None] for name, c in counts.items()}
    now["all"] = sum(now.values())
    assert set(now) == set(recorded), "docs/Coverage.md has other families: write it again"
    return [f"{name}: {now[name]} ops are covered, not {recorded[name]}" for name in now if now[name] < recorded[name]]


def summary(path, graft_opt):
    """Name, op and inputs of each node of a graph."""
    command = [graft_opt, path, "--passes=inline-functions", "--emit=summary", "-o", "-"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{path}: {done.stderr.strip()}")
    rows = SUMMARY_ROW.findall(done.stdout)
    if not rows:
        sys.exit(f"{path}: no ops in its summary")
    return rows


def untested(paths, covered, graft_opt):
    """The ops with a rule that are in none of the graphs."""
    ops = {op for path in paths for _, op, _ in summary(path, graft_opt)}
    return sorted(op for op, kind in covered.items() if kind == "rule" and op not in ops)


def lacking(path, covered, graft_opt):
    """The ops of a graph, and those that are not covered with how often they occur."""
    nodes = {name: (op, inputs(text)) for name, op, text in summary(path, graft_opt)}
    users = collections.defaultdict(list)
    for name, (_, operands) in nodes.items():
        for operand in operands:
            users[operand].append(name)
    # The nodes that the batch reaches.
    reached = {name for name, (op, _) in nodes.items() if op.startswith("Placeholder") or covered.get(op) == "once"}
    work = list(reached)
    while work:
        new = set(users[work.pop()]) - reached
        reached |= new
        work += new

    def read_once(name, seen):
        return bool(users[name]) and all(
            covered.get(nodes[user][0]) == "once" or (user not in seen and read_once(user, seen | {user}))
            for user in users[name]
        )

    missing = collections.Counter(
        op
        for name, (op, _) in nodes.items()
        if not covered.get(op) and (op not in covered or (name in reached and not read_once(name, {name})))
    )
    return {op for op, _ in nodes.values()}, missing


def inputs(text):
    """The nodes that a row of a summary reads as data."""
    operands = [operand.strip() for operand in text.split(",")]
    return [operand.split(":")[0] for operand in operands if operand and not operand.startswith("^")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    default = os.path.join(ROOT, "build", "release", "bin", "graft-opt")
    parser.add_argument("--graft-opt", default=os.environ.get("GRAFT_OPT", default), help="the compiler")
    parser.add_argument("--missing", action="store_true", help="list the ops of the registry that are not covered")
    parser.add_argument("--untested", action="store_true", help="list the rules whose ops no GRAPH has, no more")
    parser.add_argument("--write", action="store_true", help="write docs/Coverage.md")
    parser.add_argument("--check", action="store_true", help="compare with docs/Coverage.md")
    parser.add_argument("graphs", nargs="*", metavar="GRAPH")
    options = parser.parse_args()

    covered = kinds()
    if options.write:
        with open(PAGE, "w") as file:
            file.write(page(covered) + tried())
        return 0
    if options.check:
        errors = fallen(covered)
        with open(PAGE) as file:
            if not file.read().endswith(tried()):
                errors.append("docs/Coverage.md has other results than " + "/".join(TRIED) + ": write it again")
        print("\n".join(errors) or f"{sum(kind is not None for kind in covered.values())} ops are covered")
        return int(bool(errors))
    if options.untested:
        print("\n".join(untested(options.graphs, covered, options.graft_opt)))
        return 0
    if not options.graphs:
        print(page(covered), end="")
    if options.missing:
        print("\n".join(f"  {op}" for op, kind in sorted(covered.items()) if not kind))
    found = False
    for path in options.graphs:
        ops, missing = lacking(path, covered, options.graft_opt)
        print(f"{path}: {len(ops)} ops, {100 * (len(ops) - len(missing)) // len(ops)} % covered")
        for op, n in sorted(missing.items(), key=lambda item: (-item[1], item[0])):
            print(f"  {op} {n}{'' if op in covered else ' (not in the registry)'}")
        found |= bool(missing)
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
