# SPDX-License-Identifier: Apache-2.0
"""The claims of graft-opt about a fixed sample of recipes, now and when the record was written; in test/conformance:

    python -m exhaust.golden                        whether anything is claimed that is not in the record
    python -m exhaust.golden --op=Softmax --write   writes what is claimed now; TensorFlow runs what is new

TensorFlow refutes what is claimed too much; that less is claimed than before, or something else that happens to hold on what
was drawn, only the record tells. A claim is text: that of `--emit=types` before anything is done about what is not proved, so
that what would be refused has one as well.
"""

import argparse
import hashlib
import os
import re
import sys
import tempfile
import textwrap
from typing import Dict, List, Optional, Sequence, Set, Tuple

import harness
import tensorflow as tf
from exhaust import driver, operands, record, table
from exhaust.record import RECORD, REFUSED, Block, Part, blocks, kind_of

REPLICAS = 2
AT_ONCE = 120  # recipes in a graph
NOTHING = "TensorFlow makes none"
WIDTH = 120


def recipes_of(op: str) -> List[driver.Recipe]:
    """All of a full run: the same ones each time, as long as the lines, the kinds and TensorFlow's registry are the same."""
    return driver.Recipes(op, 0).take(driver.ALIKE if table.model_of(op) != op else None)


def elements(recipe: driver.Recipe, claim: str) -> Set[Tuple]:
    """The class of a recipe in the sample: the claims, for each form, value of an attribute, and kind of an operand."""
    kind = kind_of(claim)
    form = tuple(index for index, _ in recipe.choices)
    found = {("form", form, kind)}
    for name, value in recipe.attributes:
        is_type = re.fullmatch(r"[a-z]+\d*", value)
        found.add((name, value, kind) if is_type else (name, value, form, kind))
    if table.model_of(recipe.op) == recipe.op:
        found |= {(slot, of, kind) for slot, (_, of) in enumerate(recipe.choices)}
    return found


def covering(claims: Dict[driver.Recipe, str]) -> List[driver.Recipe]:
    """Few recipes that have all elements of all: greedily, the first one of those that add most."""
    left = {recipe: elements(recipe, claim) for recipe, claim in claims.items() if claim != NOTHING}
    chosen = []
    while left:
        best = max(left, key=lambda recipe: len(left[recipe]))
        chosen.append(best)
        seen = left[best]
        left = {recipe: of - seen for recipe, of in left.items() if of - seen}
    return chosen


Parts = List[Tuple[Part, Dict[str, driver.Instance]]]  # graphs, and their recipes by name


def claimed(recipes: Sequence[driver.Recipe], parts: Optional[Parts] = None) -> Dict[driver.Recipe, str]:
    """Returns the claims about the results of each recipe. Adds the graphs from which they come to `parts`."""
    claims = dict.fromkeys(recipes, NOTHING)
    for static in (False, True):
        of = [recipe for recipe in recipes if recipe.static == static]
        for i in range(0, len(of), AT_ONCE):
            claims.update(claimed_of_graph(of[i : i + AT_ONCE], static, parts))
    return claims


def claimed_of_graph(recipes: Sequence[driver.Recipe], static: bool, parts: Optional[Parts]) -> Dict[driver.Recipe, str]:
    owner: Dict[str, driver.Instance] = {}  # by node
    with tf.Graph().as_default() as graph:
        world = operands.World(static, 0)
        for i, recipe in enumerate(recipes):
            first = graph.version
            instance = driver.build(world, recipe, f"q{i}")
            if instance:
                owner.update((op.name, instance) for op in graph.get_operations()[first:] if op.type != "Placeholder")
    instances = {instance.name: instance for instance in owner.values()}
    with tempfile.TemporaryDirectory(dir=harness.workdir()) as folder:
        source = Source(graph.as_graph_def(add_shapes=static), world, owner, os.path.join(folder, "in.pb"))
        said, refused = source.types(sorted(instances))
    result = dict.fromkeys((instances[name].recipe for name in refused), REFUSED)
    for name in set(instances) - set(refused):
        instance = instances[name]
        result[instance.recipe] = record.claim_of(name, instance.outputs, said)
    if parts is not None:
        parts += [(part, {name: instances[name] for name in names}) for part, names in source.parts]
    return result


class Source:
    """A graph of instances, and what is claimed of some of them."""

    def __init__(self, definition, world, owner: Dict[str, driver.Instance], path: str):
        self.definition, self.path, self.feeds = definition, path, list(world.feeds)
        self.owner = {node: instance.name for node, instance in owner.items()}
        self.flags = [f"--replicas={REPLICAS}", *driver.FLAGS, *world.flags(world.feeds)]
        self.pipeline = ""
        self.parts: List[Tuple[Part, List[str]]] = []  # with the names of their instances

    def types(self, names: List[str]) -> Tuple[Dict[str, str], List[str]]:
        """The lines of `--emit=types` by tensor, and the instances that are refused: those that are named, or found by halves."""
        if not names:
            return {}, []
        part = tf.compat.v1.graph_util.extract_sub_graph(self.definition, [*names, *self.feeds])
        data = part.SerializeToString(deterministic=True)
        with open(self.path, "wb") as file:
            file.write(data)
        if not self.pipeline:
            whole = harness.run_graft([self.path, *self.flags, "--print-pipeline-passes"], verify=False).stdout.strip()
            self.pipeline = record.before_reductions(whole)
        done = harness.run_graft([self.path, f"--passes={self.pipeline}", "--emit=types", "-o", "-"], check=False, verify=False)
        refused = done.returncode != 0
        if not refused or len(names) == 1:
            self.parts.append((Part(data, self.flags, refused, {}), names))
            return record.lines_of(done.stdout), names if refused else []
        named = driver.culprit(done.stderr[done.stderr.find("error: ") :], self.owner)
        half = len(names) // 2
        parts = [[named], [n for n in names if n != named]] if named in names else [names[:half], names[half:]]
        (first, refused), (second, more) = map(self.types, parts)
        return {**first, **second}, [*refused, *more]


# --- The record. ---


def version() -> str:
    return f"TensorFlow {tf.__version__}"


def digest(recipes: Sequence[driver.Recipe]) -> str:
    return hashlib.sha256("\n".join(map(str, recipes)).encode()).hexdigest()[:8]


def word(number: int) -> str:
    """a, ..., z, ba, bb, ..."""
    return (word(number // 26) if number >= 26 else "") + chr(ord("a") + number % 26)


def block(op: str) -> Tuple[str, Block]:
    """Returns the claims about a sample of the recipes of an op, and the graphs."""
    recipes = recipes_of(op)
    sample = set(covering(claimed(recipes)))
    return text_of(op, recipes, [place for place, recipe in enumerate(recipes) if recipe in sample])


def text_of(op: str, recipes: Sequence[driver.Recipe], sample: Sequence[int]) -> Tuple[str, Block]:
    # Other nodes of a graph may relate the rows of several feeds: those of the sample are alone in theirs.
    parts: Parts = []
    claims = claimed([recipes[place] for place in sample], parts)
    words: Dict[str, str] = {}
    places = [f"{place}{words.setdefault(claims[recipes[place]], word(len(words)))}" for place in sample]
    lines = [f"{op} {digest(recipes)}", *[f"  {name} {claim}" for claim, name in words.items()]]
    text = "\n".join([*lines, *textwrap.wrap(" ".join(places), WIDTH, initial_indent="  = ", subsequent_indent="  = ")])
    place_of = {recipes[place]: place for place in sample}
    graphs = [
        part._replace(recipes={place_of[of.recipe]: (name, of.outputs) for name, of in instances.items()})
        for part, instances in parts
    ]
    return text, Block(digest(recipes), graphs)


def recorded_version() -> str:
    with open(RECORD) as file:
        return file.readline().split(": ")[-1].strip()


def write(ops: Sequence[str]):
    made = {op: block(op) for op in ops}
    found = {**blocks(), **{op: text for op, (text, _) in made.items()}}
    with open(RECORD, "w") as file:
        file.write(f"# Written by `python -m exhaust.golden --write`, with: {version()}\n")
        file.writelines(text + "\n" for op, text in sorted(found.items()) if table.line_of(op))
    for family in table.families():
        path, of_family = record.path_of(family), ops_of(family)
        if set(of_family) & set(made):
            graphs = record.read_graphs(path) if os.path.exists(path) else {}
            graphs.update((op, graph) for op, (_, graph) in made.items())
            record.write_graphs(path, {op: graphs[op] for op in of_family if op in graphs})


def changed(ops: Sequence[str]) -> Tuple[List[str], Dict[driver.Recipe, Tuple[str, str]]]:
    """Ops whose recipes are others than in the record, and recipes of which something else is claimed: what was, and what is."""
    recipes = {op: recipes_of(op) for op in ops}
    graphs: Dict[str, Block] = {}
    for family in table.families():
        if set(ops) & set(ops_of(family)) and os.path.exists(record.path_of(family)):
            graphs.update(record.read_graphs(record.path_of(family)))
    stale = [op for op in ops if op not in graphs or graphs[op].digest != digest(recipes[op])]
    found = record.differing(harness.graft_opt(), {op: graphs[op] for op in ops if op not in stale})
    return stale, {recipes[op][place]: claims for op, of in found.items() for place, claims in of.items()}


def told(differing: Dict[driver.Recipe, Tuple[str, str]], failures: Sequence[driver.Failure]) -> List[str]:
    """A line for each, those that TensorFlow refutes first."""
    lines = [f"wrong: {failure}" for failure in failures]
    for recipe, (was, now) in differing.items():
        less = kind_of(now) in ("refused", NOTHING) or (now.startswith("Varying") and not was.startswith("Varying"))
        lines.append(f"{'less' if less else 'other'}: {recipe}: was {was}, is {now}")
    return lines


def refuted(differing: Dict[driver.Recipe, Tuple[str, str]], seed=0) -> List[driver.Failure]:
    """The verdict of TensorFlow on those."""
    return driver.run_recipes(list(differing), seed).failures


def ops_of(family: str) -> List[str]:
    return [op for op in table.families()[family] if table.line_of(op)]


def main():
    parser = argparse.ArgumentParser(prog="python -m exhaust.golden", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--op", action="append", default=[], help="this op; more than once")
    parser.add_argument("--family", action="append", default=[], help="the ops of a file of lib/infer/rules")
    parser.add_argument("--write", action="store_true", help=f"write {RECORD}")
    options = parser.parse_args()
    ops = options.op + [op for family in options.family for op in ops_of(family)]
    ops = ops or [op for family in table.families() for op in ops_of(family)]
    stale, differing = changed(ops)
    failures = refuted(differing)
    if stale and not options.write:
        print(f"has no record of these recipes: {' '.join(stale)}")
    for line in told(differing, failures):
        print(line)
    print(f"{len(differing)} claims differ from the record; TensorFlow refutes {len(failures)}")
    if options.write:
        write(ops)
    return int(bool(failures) or (bool(differing or stale) and not options.write))


if __name__ == "__main__":
    sys.exit(main())
