# SPDX-License-Identifier: Apache-2.0
"""What measures workers beside TensorFlow's own ways runs, and finds the losses of both equal before it measures."""

import os
import subprocess
import sys

import harness
import pytest

SCRIPT = os.path.join(harness.ROOT, "test", "bench", "workers.py")
PAGE = "above\n<!-- workers.py: begin -->\nold\n<!-- workers.py: end -->\nbelow\n"


@pytest.mark.parametrize("kind,rows", [("^ps$", 1)])
def test_workers(kind, rows, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    flags = ["--workers=2", "--rounds=1", "--seconds=0.05", "--only=MLP", f"--kind={kind}", f"--write={page}"]
    done = subprocess.run(
        [sys.executable, SCRIPT, *flags],
        env={**os.environ, "GRAFT_OPT": harness.graft_opt()},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    lines = page.read_text().splitlines()
    assert [lines[0], lines[-1]] == ["above", "below"], lines
    table = [line.split(" | ") for line in lines if line.startswith("| `")]
    assert len(table) == rows and "old" not in lines, lines
    for _, _, workers, rate, *_, sent, planned in table:
        assert workers == "2" and float(rate) > 0
        # What --plan says, both ways, and no more than what a message has beside its values.
        for each in sent.split(" / "):
            assert float(planned.strip(" |")) <= float(each) < 1.1 * float(planned.strip(" |")), (sent, planned)


def test_inputs(tmp_path):
    """What measures CPU for each node counts the nodes, and puts one row for a graph into its page."""
    build = os.path.dirname(os.path.dirname(harness.graft_opt()))
    if not os.path.exists(os.path.join(build, "bench", "generate")):
        pytest.skip(f"no {build}/bench")
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("workers.py", "inputs.py"))
    script = os.path.join(harness.ROOT, "test", "bench", "inputs.py")
    flags = ["--only=blocks, 10,", "--strategies=all-reduce,ps", f"--write={page}"]
    done = subprocess.run(
        [sys.executable, script, *flags],
        env={**os.environ, "GRAFT_OPT": harness.graft_opt()},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    lines = page.read_text().splitlines()
    assert [lines[0], lines[-1]] == ["above", "below"] and "old" not in lines, lines
    (row,) = (line for line in lines if line.startswith("| blocks"))
    _, _, nodes, *cells, _ = (cell.strip() for cell in row.split("|"))
    assert nodes == "9,978" and len(cells) == 2 and all(0 < float(cell) < 1000 for cell in cells), row
    (small,) = (line for line in lines if line.startswith("graft-opt on a graph of 174 nodes"))
    assert small.count(" ms") == 3, small
