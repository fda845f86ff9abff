# SPDX-License-Identifier: Apache-2.0
"""graft accepts what it writes: --verify-output has nothing against any output of any graph of the other tiers.

Every graph of `test/inputs` and every input of a lit test, under each strategy, for one, two and three replicas. What
cannot be distributed in one way is left out of that way: that it is refused for a reason is what its own test says.
Default: every graph for two replicas, half of the ways each, and for one or three a tenth. --full: everything.
"""

import os
import re

import harness
import pytest

TESTS = os.path.join(harness.ROOT, "test")
SMALL = "--min-shard-size=1"  # small variables are cut, too
WAYS = (
    ("--strategy=all-reduce", "--reduction=add"),
    ("--strategy=all-reduce", "--reduction=collective"),
    ("--strategy=all-reduce", "--bucket-bytes=1M"),
    ("--strategy=all-reduce", "--bucket-bytes=1M", "--reduction=collective"),
    ("--strategy=ps",),
    ("--strategy=ps", "--reduction=accumulator"),
    ("--strategy=ps", "--local-replication"),
    ("--strategy=ps-load-balancing",),
    ("--strategy=parallax",),
    ("--strategy=partitioned-ps", SMALL),
    ("--strategy=uneven-partitioned-ps", SMALL),
    ("--strategy=partitioned-all-reduce", SMALL),
    ("--strategy=random-axis-partition-all-reduce", SMALL),
    ("--strategy=random-axis-partition-all-reduce", SMALL, "--bucket-bytes=1M"),
    # graft does not certify unproved values in this form.
    ("--strategy=tpu", "--strict", "--verify-output"),
)
# Properties of TPUs that graft cannot certify.
UNKNOWN_OF_TPUS = (
    "the replicas of a TPU may draw the same numbers",
    "uses the variable 'table' in place but is not on its device /device:CPU:1",
)
SEPARATOR = re.compile(r"^#--- (.*\.(?:pbtxt|graph))\n", re.MULTILINE)


def find_graphs():
    """Relative paths; of a file with several parts, the path and the name of the part."""
    for folder in ("inputs", "lit"):
        for place, folders, files in os.walk(os.path.join(TESTS, folder)):
            folders.sort()
            for name in sorted(files):
                path = os.path.join(place, name)
                short = os.path.relpath(path, TESTS)
                if name.endswith((".meta", ".pb")):
                    yield short, None
                elif name.endswith((".pbtxt", ".graph", ".test")):
                    with open(path, errors="replace") as file:
                        parts = SEPARATOR.findall(file.read())
                    yield from ((short, part) for part in parts)
                    if not parts and name.endswith((".pbtxt", ".graph")):
                        yield short, None


GRAPHS = list(find_graphs())
FOLDERS = sorted({os.path.dirname(short) for short, _ in GRAPHS})


def read_part(short: str, part: str, where: str) -> str:
    """The path of a graph, which is written to `where` if it is a part of a file."""
    path = os.path.join(TESTS, short)
    if part is None:
        return path
    with open(path, errors="replace") as file:
        pieces = SEPARATOR.split(file.read())
    out = os.path.join(where, "part" + os.path.splitext(part)[1])
    with open(out, "w") as file:
        file.write(pieces[2 * pieces[1::2].index(part) + 2])
    return out


def ways_of(index: int, full: bool):
    for number, way in enumerate(WAYS):
        for replicas in (1, 2, 3):
            often = 2 if replicas == 2 else 10
            if full or (index + number + replicas) % often == 0:
                yield replicas, way


@pytest.mark.parametrize("folder", FOLDERS)
def test_accepts_its_own(folder, request, tmp_path):
    full = request.config.getoption("--full")
    written, refused = 0, []
    for index, (short, part) in enumerate(GRAPHS):
        if os.path.dirname(short) != folder:
            continue
        path = read_part(short, part, str(tmp_path))
        out = str(tmp_path / ("out" + os.path.splitext(path)[1].replace(".graph", ".pbtxt")))
        for replicas, way in ways_of(index, full):
            devices = () if "--strategy=tpu" in way else ("--device-type=CPU",)
            flags = [path, "-o", out, f"--replicas={replicas}", *devices, *way]
            done = harness.run_graft(flags, check=False)
            assert done.returncode in (0, 1), f"{short} {part} {flags[3:]}: {done.stderr}"
            written += done.returncode == 0
            # Anything else is a refusal of the graph, before it is written.
            if "[verify-output]" in done.stderr or "does not verify" in done.stderr:
                why = next(line for line in done.stderr.splitlines() if "verif" in line)
                if "--strategy=tpu" in way and any(text in why for text in UNKNOWN_OF_TPUS):
                    continue
                refused.append(f"{short} {part or ''} {' '.join(flags[3:])}: {why}")
    assert not refused, "\n".join(refused)
    assert written or folder not in ("inputs", "lit/check-replication", "lit/pipeline"), "nothing was written"
