# SPDX-License-Identifier: Apache-2.0
"""The results of TensorFlow's kernels on no rows; in test/conformance:

    python -m exhaust.no_rows                        whether lib/ops/NoRows.inc says so
    python -m exhaust.no_rows --op=Mean --op=MatMul  of some ops
    python -m exhaust.no_rows --write                writes it

Every op that has a rule runs on 3, 2, 1 and 0 rows, each twice. The memory that a kernel gets holds other bytes each time, so
that a result which it does not write shows. A form of an op counts if graft-opt relates its results, so that a replica could
run it. A result of one row that is unwritten or no number is an error: a rule must not relate it. Kernels are those of CPUs,
with oneDNN and without.
"""

import argparse
import ctypes
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
import traceback
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np
import tensorflow as tf
from exhaust import driver, golden, operands, table

LIST = os.path.join(table.rule_coverage.ROOT, "lib", "ops", "NoRows.inc")
ROWS = (3, 2, 1, 0)
BYTES = (0x43, 0xC5)  # that freed memory holds; what is new holds the complement
M_PERTURB = -6
KINDS = ("Fails", "Unwritten", "NotANumber")  # as in lib/ops/NoRows.h; what counts more comes first

# By recipe: by (rows, byte) the values of the outputs, or None where TensorFlow refuses it.
Runs = Dict[driver.Recipe, Dict[Tuple[int, int], Optional[List[np.ndarray]]]]


def recipes_of(op: str) -> List[driver.Recipe]:
    """The op in each of its forms, with each value of an attribute."""
    operands_of = table.line_of(op).operands

    def is_made_for(recipe):
        return all(kind == driver.base_of(options[i % len(options)]) for (i, kind), options in zip(recipe.choices, operands_of))

    return [r for r in dict.fromkeys(driver.Recipes(op, 0).singles()) if not r.static and is_made_for(r)]


def run(recipes: Sequence[driver.Recipe], numbers: Sequence[int]) -> Runs:
    perturb = ctypes.CDLL(None).mallopt
    with tf.Graph().as_default() as graph:
        world = operands.World(False, 0)
        made = [driver.build(world, recipe, f"q{i}") for i, recipe in enumerate(recipes)]
        instances = {i.name: i for i in made if i and not graph.get_operation_by_name(i.name).op_def.is_stateful}
    runs: Runs = {instance.recipe: {} for instance in instances.values()}
    groups = {name: instance.outputs for name, instance in instances.items()}
    with driver.session(graph) as session:
        for rows in numbers:
            feeds = {f"{name}:0": value for name, value in world.values(rows).items()}
            for byte in BYTES:
                perturb(M_PERTURB, byte)
                values = driver.run_each(lambda g: session.run(g, feeds), groups, {}, dict.fromkeys(groups))
                perturb(M_PERTURB, 0)
                for name, instance in instances.items():
                    found = [np.asarray(value) for value in values[name]] if name in values else None
                    runs[instance.recipe][rows, byte] = found
    return runs


def run_apart(recipes: Sequence[driver.Recipe], numbers=ROWS) -> Runs:
    """The same in a process of its own. One that ends it is found by halves, and run with rows."""
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                pickle.dump(run(recipes, numbers), answer)
                answer.flush()
                status = 0
            except BaseException:  # pylint: disable=broad-except
                traceback.print_exc()
            finally:
                os._exit(status)
        if driver.wait(child, 120 + len(recipes)) == 0:
            answer.seek(0)
            return pickle.load(answer)
    if len(recipes) > 1:
        half = len(recipes) // 2
        return {**run_apart(recipes[:half], numbers), **run_apart(recipes[half:], numbers)}
    if 0 not in numbers:
        return {}
    return {r: {**found, **{(0, byte): None for byte in BYTES}} for r, found in run_apart(recipes, numbers[:-1]).items()}


def bytes_of(value: np.ndarray):
    return value.tolist() if value.dtype == object else (value.shape, value.tobytes())


def has_nan(value: np.ndarray) -> bool:
    return value.dtype.kind in "fc" and bool(np.isnan(value).any())


def fault(found, port: int, rows: int) -> Optional[str]:
    """The faults of a result on so few rows, but not on more. An op that fails on one row may lack the row of an index."""
    more = [n for n in ROWS if n > max(rows, 1)]
    if any(found[n, byte] is None for n in (*more, 1) for byte in BYTES):
        return None
    if any(found[rows, byte] is None for byte in BYTES):
        return "Fails"
    first, second = (found[rows, byte][port] for byte in BYTES)
    if bytes_of(first) != bytes_of(second):
        always = any(bytes_of(found[n, BYTES[0]][port]) != bytes_of(found[n, BYTES[1]][port]) for n in more)
        return None if always else "Unwritten"
    return "NotANumber" if has_nan(first) and not any(has_nan(found[n, BYTES[0]][port]) for n in more) else None


def faults(runs: Runs, rows: int) -> Dict[driver.Recipe, Dict[int, str]]:
    """By recipe and number of a result."""
    result = {}
    for recipe, found in runs.items():
        outputs = next((values for values in found.values() if values is not None), [])
        wrong = {port: fault(found, port, rows) for port in range(len(outputs))}
        if any(wrong.values()):
            result[recipe] = {port: what for port, what in wrong.items() if what}
    return result


# Results of a replica without rows: Replicated results of kernels that fail are made of the rows of all replicas.
CLAIMS = {"Fails": ("Sharded", "Partial"), "Unwritten": ("Replicated", "Partial"), "NotANumber": ("Replicated", "Partial")}


def related(wrong: Dict[driver.Recipe, Dict[int, str]]) -> Dict[driver.Recipe, str]:
    """The faults of results that graft-opt relates to those of the single device, where a replica runs on its own rows."""
    claims, result = {}, {}
    # In graphs of their own: where others count rows by values, less is claimed of an op of the list.
    for op in {recipe.op for recipe in wrong}:
        claims.update(golden.claimed([recipe for recipe in wrong if recipe.op == op]))
    for recipe, ports in wrong.items():
        said = claims[recipe].split("; ")
        whats = [what for port, what in ports.items() if said[min(port, len(said) - 1)].startswith(CLAIMS[what])]
        if whats:
            result[recipe] = min(whats, key=KINDS.index)
    return result


def find(ops: Sequence[str], say=None) -> Tuple[Dict[str, str], List[str]]:
    """The results of kernels on no rows, by op, and the faults on one row."""
    recipes = [recipe for op in ops if table.line_of(op) for recipe in recipes_of(op)]
    runs: Runs = {}
    for i in range(0, len(recipes), driver.AT_ONCE):
        runs.update(run_apart(recipes[i : i + driver.AT_ONCE]))
        if say:
            say(f"{i + driver.AT_ONCE} of {len(recipes)}")
    found: Dict[str, str] = {}
    for recipe, what in related(faults(runs, 0)).items():
        found[recipe.op] = min(what, found.get(recipe.op, what), key=KINDS.index)
        if say:
            say(f"{what}: {recipe}\n")
    return found, [f"{recipe}, one row: {what}" for recipe, what in related(faults(runs, 1)).items()]


def listed() -> Dict[str, str]:
    with open(LIST) as file:
        return dict(re.findall(r'^GRAFT_NO_ROWS\("(\w+)", (\w+)\)$', file.read(), re.M))


def version() -> str:
    """The TensorFlow that the list is of."""
    with open(LIST) as file:
        return re.search(r"(TensorFlow \S+)\. Do", file.read())[1]


def write(found: Dict[str, str]):
    lines = [
        f"// Generated by test/conformance/exhaust/no_rows.py from kernels of TensorFlow {tf.__version__}. Do not edit.",
        "// Write it again, in test/conformance: python -m exhaust.no_rows --write",
        "",
        *[f'GRAFT_NO_ROWS("{op}", {what})' for op, what in sorted(found.items())],
        "",
        "#undef GRAFT_NO_ROWS",
    ]
    with open(LIST, "w", newline="\n") as file:
        file.write("\n".join(lines) + "\n")


def find_with(onednn: str, ops: Sequence[str]) -> Tuple[Dict[str, str], List[str]]:
    """The same in a process of its own, whose C library does not hand out small pieces of memory again as they are."""
    tunables = ":".join(filter(None, [os.environ.get("GLIBC_TUNABLES"), "glibc.malloc.tcache_count=0"]))
    with tempfile.NamedTemporaryFile() as answer:
        command = [sys.executable, "-m", "exhaust.no_rows", f"--found={answer.name}", *(f"--op={op}" for op in ops)]
        subprocess.run(command, env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": onednn, "GLIBC_TUNABLES": tunables}, check=True)
        return json.load(answer)


def main():
    parser = argparse.ArgumentParser(prog="python -m exhaust.no_rows", description=__doc__.split("\n")[0])
    parser.add_argument("--op", action="append", default=[], help="this op; more than once")
    parser.add_argument("--write", action="store_true", help="write the list, or what it says of these ops")
    parser.add_argument("--found", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    ops = options.op or [op for family in table.families().values() for op in family]
    if options.found:
        with open(options.found, "w") as file:
            json.dump(find(ops, lambda text: print(f"\r{text}", end="", file=sys.stderr, flush=True)), file)
        return 0
    found: Dict[str, str] = {}
    of_one_row: List[str] = []
    for onednn in "01":
        kernels, wrong = find_with(onednn, ops)
        found.update({op: min(what, found.get(op, what), key=KINDS.index) for op, what in kernels.items()})
        of_one_row += wrong
    was = listed() if os.path.exists(LIST) else {}
    others = {op: what for op, what in was.items() if op not in ops}
    was = {op: what for op, what in was.items() if op in ops}
    if options.write:
        write({**(others if options.op else {}), **found})
    differ = [f"{op}: the list says {was.get(op)}, the kernel {found.get(op)}" for op in sorted({*was, *found}) if was.get(op) != found.get(op)]
    print("\n".join([*of_one_row, *([] if options.write else differ)]))
    return int(bool(of_one_row or (differ and not options.write)))


if __name__ == "__main__":
    sys.exit(main())
