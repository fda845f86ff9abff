# SPDX-License-Identifier: Apache-2.0
"""A good result of a strategy, broken a little, is refused: parts, proxies, accumulators and buckets.

As `test_mutations.py`, whose mutations and judges these are, on graphs that AutoDist's strategies make. Default: a sample
with a fixed seed. --full: a larger one.
"""

import collections
import random

import harness
import mutation_score
import mutations
import pytest
from harness import Options
from models import Spec
from mutation_score import Subject

SMALL = "--min-shard-size=4"  # the variables of the models are small
WAYS = {
    "partitioned-ps": ("auto", "--local-replication"),
    "random-axis-partition-all-reduce": ("collective", "--seed=7"),
    "parallax": ("auto", "--local-replication"),
    "ps": ("accumulator",),
    "all-reduce": ("collective", "--bucket-bytes=1k"),
}
CASES = [
    (strategy, model, ("resource", "ref")[(i + j) % 2])
    for i, strategy in enumerate(WAYS)
    for j, model in enumerate(("embedding", "mlp_clip"))
]
STATE = ("VarHandleOp", "VariableV2", "ConditionalAccumulator")


def state_mutations(meta):
    """Two states become one: a node takes the name that another of its kind has on its device."""
    first = {}
    for node in meta.graph_def.node:
        if node.op not in STATE:
            continue
        shared = node.attr["shared_name"].s or node.name.encode()
        other = first.setdefault((node.op, node.device), shared)
        if other != shared:
            yield mutations.Mutation(
                "state of another",
                f"{node.name}: shared_name {other.decode()}",
                lambda q, n=node.name, s=other: setattr(q.nodes[n].attr["shared_name"], "s", s),
            )


def proxy_mutations(meta):
    """One replica's proxy is left behind."""
    for node in meta.graph_def.node:
        if node.op == "AssignVariableOp" and node.name.endswith("/refresh"):
            yield mutations.Mutation("stale proxy", node.name, lambda q, n=node.name: q.delete(n))


def sample(subject, level, most, listed):
    """Up to `most` mutants of a kind, and `listed` of those of which TensorFlow is known to be the judge."""
    every = subject.mutations(level)
    if level == "lowered":
        every += [*state_mutations(subject.meta(level)), *proxy_mutations(subject.meta(level))]
    rng = random.Random(f"{subject} {level}")
    slow = [m for m in every if mutation_score.is_listed(level, m)]
    names = {id(m) for m in slow}
    kinds = collections.defaultdict(list)
    for mutation in every:
        if id(mutation) not in names:
            kinds[mutation.category].append(mutation)
    chosen = [m for group in kinds.values() for m in rng.sample(group, min(most, len(group)))]
    return chosen + rng.sample(slow, min(listed, len(slow)))


@pytest.mark.parametrize("level", ["program", "lowered"])
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_mutants(case, level, request, monkeypatch):
    """The unbroken file is accepted; every mutant is refused, or is listed and changes no number."""
    monkeypatch.setattr(harness, "RUN_TIMEOUT_MS", 5000)
    strategy, model, kind = case
    reduction, *flags = WAYS[strategy]
    subject = Subject(Spec(model, kind, None), Options(mutation_score.REPLICAS, strategy, reduction, (SMALL, *flags)))
    good = subject.program_path if level == "program" else subject.lowered_path
    assert subject.refusal(good, "certificate") == ""
    most, listed = (20, 20) if request.config.getoption("--full") else (2, 1)
    chosen = sample(subject, level, most, listed)
    score = mutation_score.judge_all(subject, level, chosen)
    assert sum(sum(row[:2]) for row in score.counts.values()) > 20, "hardly a mutant is refused"
    assert not score.holes, f"{len(score.holes)} of {len(chosen)} mutants survive:\n  " + "\n  ".join(score.holes)
