# SPDX-License-Identifier: Apache-2.0
"""The recorded claims of graft-opt about a sample of recipes, and the graphs of these recipes. Needs no TensorFlow:

    python3 -m exhaust.record GRAFT_OPT     runs graft-opt on each recorded graph; prints the claims that differ

A claim is the text that `--emit=types` prints for the results of an op before `insert-reductions` runs. claims.txt has the
claims of each op. graphs/FAMILY.tar.xz has, for each op of a file of lib/infer/rules, the graphs that claims.txt was made of,
and an index:

    {"digest": "fed2e1cf", "graphs": [{"flags": ["--replicas=2"], "refused": false, "recipes": {"17": ["q3", ["q3:0"]]}}]}

The key of a recipe is its place in the enumeration of the op; the value has the name of the node and its results. graft-opt
refuses a graph with the flag `refused`. golden.py writes both.
"""

import concurrent.futures
import glob
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

FOLDER = os.path.dirname(os.path.abspath(__file__))
RECORD = os.path.join(FOLDER, "claims.txt")
GRAPHS = os.path.join(FOLDER, "graphs")
REFUSED = "refused"


class Part(NamedTuple):
    """A graph of several recipes, and the flags that it was given to graft-opt with."""

    graph: bytes
    flags: List[str]
    refused: bool
    recipes: Dict[int, Tuple[str, List[str]]]  # by place: the name and the results


Differing = Dict[int, Tuple[str, str]]  # by the place of a recipe: the recorded claim, and the claim now


class Block(NamedTuple):
    """The graphs of an op."""

    digest: str  # of all its recipes
    parts: List[Part]


def kind_of(claim: str) -> str:
    """Returns a claim without sizes."""
    return re.sub(r" (shape|value)=\S+", "", claim)


def plain(line: str, name: str) -> str:
    """Returns a line of `--emit=types` without the parts that depend on the graph around it."""
    text = line.split(" = ", 1)[1].replace(" copies=2", "")
    text = re.sub(rf"\b{name}\b(?:/[\w/]+)?", "self", text)
    return re.sub(r"\b([A-Za-z]+?)_?\d+(?=[:/)])", r"\1", text)


def claim_of(name: str, results: Sequence[str], lines: Dict[str, str]) -> str:
    return "; ".join(plain(lines[tensor], name) if tensor in lines else "nothing" for tensor in results)


def lines_of(printed: str) -> Dict[str, str]:
    """Returns the lines of `--emit=types` by tensor."""
    return {line.split(" = ", 1)[0]: line for line in printed.splitlines()}


def before_reductions(pipeline: str) -> str:
    return pipeline.strip()[: pipeline.index(",insert-reductions")]


# --- The record. ---


def blocks() -> Dict[str, str]:
    """Returns the text of claims.txt by op."""
    if not os.path.exists(RECORD):
        return {}
    with open(RECORD) as file:
        parts = re.split(r"\n(?=\S)", file.read().strip())[1:]
    return {part.split(" ", 1)[0]: part for part in parts}


def recorded(text: str) -> Tuple[str, Dict[int, str]]:
    """Returns the digest of all recipes of a block, and the claims of some by their place."""
    first, *lines = text.split("\n")
    claims = dict(line.strip().split(" ", 1) for line in lines if not line.startswith("  = "))
    places = " ".join(line[4:] for line in lines if line.startswith("  = ")).split()
    return first.split()[1], {int(re.match(r"\d+", place)[0]): claims[place.lstrip("0123456789")] for place in places}


# --- The graphs. ---


def path_of(family: str) -> str:
    return os.path.join(GRAPHS, f"{family}.tar.xz")


def read_graphs(path: str) -> Dict[str, Block]:
    """Returns the graphs of a family by op."""
    with tarfile.open(path) as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive}
    result = {}
    for name, data in files.items():
        op, _, kind = name.partition("/")
        if kind != "index.json":
            continue
        index = json.loads(data)
        parts = [
            Part(files[f"{op}/{i}.pb"], of["flags"], of["refused"], {int(k): tuple(v) for k, v in of["recipes"].items()})
            for i, of in enumerate(index["graphs"])
        ]
        result[op] = Block(index["digest"], parts)
    return result


def write_graphs(path: str, ops: Dict[str, Block]):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tarfile.open(path, "w:xz", format=tarfile.USTAR_FORMAT, preset=9) as archive:

        def add(name: str, data: bytes):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))

        for op, block in sorted(ops.items()):
            index = [part._asdict() for part in block.parts]
            for i, of in enumerate(index):
                add(f"{op}/{i}.pb", of.pop("graph"))
            add(f"{op}/index.json", json.dumps({"digest": block.digest, "graphs": index}, sort_keys=True).encode())


# --- Comparing. ---


class Reader:
    """The claims of a program about the graphs of an op."""

    def __init__(self, program: str, folder: str, op: str):
        self.program, self.op = program, op
        self.path = os.path.join(folder, f"{op}.pb")
        self.pipelines: Dict[Tuple[str, ...], str] = {}  # by flags

    def run(self, *flags: str) -> Optional[str]:
        done = subprocess.run([self.program, self.path, *flags], capture_output=True, text=True, timeout=120)
        return done.stdout if done.returncode == 0 else None

    def claims(self, part: Part) -> Dict[int, str]:
        with open(self.path, "wb") as file:
            file.write(part.graph)
        key = tuple(part.flags)
        if key not in self.pipelines:
            self.pipelines[key] = before_reductions(self.run(*part.flags, "--print-pipeline-passes"))
        printed = self.run(f"--passes={self.pipelines[key]}", "--emit=types", "-o", "-")
        if printed is None:
            return dict.fromkeys(part.recipes, REFUSED)
        lines = lines_of(printed)
        return {place: claim_of(name, results, lines) for place, (name, results) in part.recipes.items()}

    def differing(self, block: Block, text: str) -> Differing:
        digest, wanted = recorded(text)
        assert digest == block.digest, f"{self.op}: the graphs are not those of the claims"
        found: Dict[int, str] = {}
        for part in block.parts:
            found.update(self.claims(part))
        assert set(found) == set(wanted), f"{self.op}: the graphs and the claims are of different recipes"
        return {place: (was, found[place]) for place, was in wanted.items() if found[place] != was}


def differing(program: str, graphs: Dict[str, Block]) -> Dict[str, Differing]:
    """Returns, by op, the recipes of which the program has another claim than the record."""
    known = blocks()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda op: Reader(program, folder, op).differing(graphs[op], known[op]), graphs)
        return {op: of for op, of in zip(graphs, found) if of}


def main():
    graphs: Dict[str, Block] = {}
    for path in sorted(glob.glob(path_of("*"))):
        graphs.update(read_graphs(path))
    lines = [f"{op} has claims but no graphs, or graphs but no claims" for op in sorted(set(blocks()) ^ set(graphs))]
    for op, found in ({} if lines else differing(sys.argv[1], graphs)).items():
        lines += [f"{op} {place}: was {was}, is {now}" for place, (was, now) in found.items()]
    print(f"compared the claims of {len(graphs)} ops in {sum(len(b.parts) for b in graphs.values())} graphs")
    print("\n".join(lines[:40]))
    if lines:
        print(f"{len(lines)} differ. test_claims of test_exhaust.py asks TensorFlow for its verdict, and says how to record them.")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
