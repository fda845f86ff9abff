# SPDX-License-Identifier: Apache-2.0
"""Options of graft-opt, drawn as a user may combine them."""

import random
from typing import List

from genes import Built

BUILDERS = [
    "ps-load-balancing",
    "partitioned-ps",
    "uneven-partitioned-ps",
    "partitioned-all-reduce",
    "random-axis-partition-all-reduce",
    "parallax",
    "auto",
]


def draw(built: Built, seed: int, number: int) -> List[str]:
    if built.beside is not None:
        return of_sizes(built, random.Random(f"sizes/{seed}/{number}"))
    return more(built, random.Random(f"more/{seed}/{number}"), usual(built, seed, number))


def usual(built: Built, seed: int, number: int) -> List[str]:
    rng = random.Random(f"options/{seed}/{number}")
    chance = lambda p: rng.random() < p
    # A TPU has resource variables and adds no doubles.
    on_tpu = built.dtype == "float32" and all(n.op != "VariableV2" for n in built.meta.graph_def.node)
    strategy = rng.choice(["all-reduce"] * 8 + ["ps"] * 4 + BUILDERS * 1)
    if chance(0.25 if on_tpu else 0.01):
        strategy = "tpu"
    flags = [f"--replicas={built.replicas}", f"--strategy={strategy}"]
    flags.append("--device-type=" + ("TPU" if strategy == "tpu" else "CPU"))
    if len(built.split) > 1 and chance(0.9):
        flags.append("--feed=" + "+".join(n.split(":")[0] for n in built.split) + "=split")
    elif built.split and chance(0.3):
        flags.append(f"--feed={rng.choice(built.split).split(':')[0]}=split")
    if chance(0.5 if built.fused else 0.1):
        flags.append("--batch-norm=" + rng.choice(["local", "exact", "sync", "sync"]))
    if chance(0.1):
        flags.append("--fetch=none")
    if chance(0.1):
        flags.append("--strict")
    if chance(0.2):
        what = rng.choice(["mean", "once", "refuse"])
        if strategy != "tpu" or what != "once":
            flags.append("--fallback=" + what)
    if chance(0.05):
        flags.append(f"--min-spread={rng.choice([0, 5, 50, 90])}")
    if strategy == "tpu":
        return flags
    if chance(0.3):
        flags.append("--verify-output")
    if chance(0.7):
        reductions = ["add", "add", "collective", "collective"] + ["accumulator"] * ("ps" in strategy)
        flags.append("--reduction=" + rng.choice(reductions))
    if chance(0.35):
        flags.append("--bucket-bytes=" + rng.choice(["16", "64", "1M"]))
    if "all-reduce" in strategy and chance(0.05):
        flags.append("--compressor=" + rng.choice(["fp16", "bf16", "fp16-ef", "bf16-ef"]))
    if chance(0.08):
        flags.append("--check-copies")
    if chance(0.1):
        names = sorted(built.variables)
        glob = rng.choice(["*", rng.choice(names) if names else "*"])
        policy = rng.choice(["mirrored", "shared", "host", "replicated", "mirrored,mean", "mirrored,sum",
                             "sync-on-read,mean", "sync-on-read,sum", "mirrored,only-first-replica"])  # fmt: skip
        if policy.startswith("sync-on-read") and glob == "*" and names:
            glob = rng.choice(names)
        flags.append(f"--variable={glob}={policy}")
    if chance(0.05):
        flags.append("--group-size=" + rng.choice(["1", "2"]))
    if strategy in BUILDERS:
        flags += [f"--min-shard-size={rng.choice([4, 8, 32])}", f"--seed={rng.randrange(9)}"]
        if chance(0.3):
            flags.append(f"--max-shards={rng.choice([2, 3, 4])}")
        if "ps" in strategy and chance(0.4):
            flags.append("--local-replication")
    if chance(0.05):
        flags.append("--threads=2")
    return flags


# The common options of the graphs of workers.
OF_WORKERS = ("--batch-norm", "--fetch", "--strict", "--bucket-bytes", "--variable", "--min-spread", "--threads",
              "--fallback=mean", "--fallback=refuse")  # fmt: skip


def more(built: Built, rng: random.Random, flags: List[str]) -> List[str]:
    """The rest, from a draw of its own: it changes none of the usual ones, but that it may leave some out."""
    chance = lambda p: rng.random() < p
    value = lambda option: next((f.partition("=")[2] for f in flags if f.startswith(option + "=")), "")
    named = lambda tensor: tensor.split(":")[0]
    if chance(0.12) and built.source == "feed" and built.split:
        flags = [f for f in flags if f.startswith(OF_WORKERS)]
        flags = ["--strategy=ipu-multi-worker", f"--workers={built.replicas}", "--device-type=CPU", *flags]
        return [*flags, "--feed=" + "+".join(map(named, built.split)) + "=split"]
    if value("--strategy") == "tpu":
        return flags
    if built.source != "feed" and chance(0.5) and not built.static and not built.wild and built.sources == 1:
        flags = [*flags, "--batch=per-replica"]
    if "--fetch=none" not in flags and built.source == "feed" and built.probes and chance(0.25):
        flags = [*flags, *(f"--fetch={named(rng.choice(built.probes))}" for _ in range(rng.choice([1, 2])))]
    fed = sorted(n for n in built.axes if n.endswith(":0"))
    if built.source == "feed" and fed and chance(0.1):
        name = rng.choice(fed)
        axis = built.axes[name]
        how = "copy" if axis is None else "split" if axis == 0 else f"split({axis})"
        flags = [*flags, f"--feed={named(name)}={how}"]
    elif len(built.split) > 1 and chance(0.05) and value("--fallback") in ("", "once"):
        # (Replicas have not as many rows of it as of others then: what joins them is computed once.)
        whole = rng.choice(built.split)
        flags = [f for f in flags if not f.startswith("--feed=")]
        flags = [*flags, f"--feed={named(whole)}=copy"]
    if value("--strategy") and "--compressor" not in " ".join(flags) and chance(0.1):
        flags = [*flags, "--emit-strategy={folder}/strategy." + rng.choice(["pb", "pbtxt"])]
    where = rng.random()
    if where < 0.06 and built.replicas in (2, 4):
        each = built.replicas // 2
        flags = [f for f in flags if not f.startswith(("--replicas", "--emit-strategy", "--reduction"))]
        flags = [f"--replicas={each}", *flags, "--cluster={folder}/cluster.json"]
    elif where < 0.12:
        order = list(range(built.replicas))
        rng.shuffle(order)
        flags = [f for f in flags if not f.startswith(("--replicas", "--device-type"))]
        flags = ["--devices=" + ",".join(f"/device:CPU:{i}" for i in order), *flags]
    if value("--reduction") == "collective" and chance(0.2):
        flags = [*flags, "--spec=ring"]
    return flags


def of_sizes(built: Built, rng: random.Random) -> List[str]:
    """Those of the graphs of `sizes.py`: nothing that makes numbers differ, and nothing that says what is not so."""
    chance = lambda p: rng.random() < p
    named = lambda tensor: tensor.split(":")[0]
    flags = [f"--replicas={built.replicas}", "--device-type=CPU", "--strategy=" + rng.choice(["all-reduce"] * 5 + ["ps"])]
    if chance(0.4):
        flags += [f"--fetch={named(p)}" for p in built.probes]
        if chance(0.5):
            flags += [f"--fetch={named(t)}" for t in built.trains]
    if built.plan.head["equal"] and chance(0.5) and len(built.split) > 1:
        flags.append("--feed=" + "+".join(map(named, built.split)) + "=split")
    elif chance(0.15):
        flags.append(f"--feed={named(rng.choice(built.split))}=" + rng.choice(["split", "copy"]))
    if chance(0.1):
        flags.append("--strict")
    if chance(0.2):
        flags.append("--fallback=" + rng.choice(["mean", "once", "refuse"]))
    if chance(0.15):
        flags.append("--verify-output")
    if chance(0.3):
        flags.append("--reduction=" + rng.choice(["add", "add", "collective"]))
    return flags
