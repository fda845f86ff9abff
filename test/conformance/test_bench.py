# SPDX-License-Identifier: Apache-2.0
"""The benchmark of workers beside TensorFlow's own ways runs, and finds the losses of both equal before it measures."""

import os
import subprocess
import sys

import harness
import pytest

PAGE = "above\n<!-- workers.py: begin -->\nold\n<!-- workers.py: end -->\nbelow\n"


def written(script, flags, page):
    """The lines between the marks of the page that the script of test/bench writes."""
    page.write_text(PAGE.replace("workers.py", script))
    done = subprocess.run(
        [sys.executable, os.path.join(harness.ROOT, "test", "bench", script), *flags, f"--write={page}"],
        env={**os.environ, "GRAFT_OPT": harness.graft_opt()},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    lines = page.read_text().splitlines()
    assert [lines[0], lines[-1]] == ["above", "below"] and "old" not in lines, lines
    return lines


@pytest.mark.parametrize("kind,rows", [("^ps$", 1)])
def test_workers(kind, rows, tmp_path):
    flags = ["--workers=2", "--rounds=1", "--seconds=0.05", "--only=MLP", f"--kind={kind}"]
    lines = written("workers.py", flags, tmp_path / "page.md")
    table = [line.split(" | ") for line in lines if line.startswith("| `")]
    assert len(table) == rows, lines
    for _, _, workers, rate, *_, sent, planned in table:
        assert workers == "2" and float(rate) > 0
        # The bytes of --plan, both ways, and no more than the overhead of the messages.
        for each in sent.split(" / "):
            assert float(planned.strip(" |")) <= float(each) < 1.1 * float(planned.strip(" |")), (sent, planned)


def test_inputs(tmp_path):
    """The benchmark of CPU for each node counts the nodes, and puts one row for a graph into its page."""
    build = os.path.dirname(os.path.dirname(harness.graft_opt()))
    if not os.path.exists(os.path.join(build, "bench", "generate")):
        pytest.skip(f"no {build}/bench")
    lines = written("inputs.py", ["--only=blocks, 10,", "--strategies=all-reduce,ps"], tmp_path / "page.md")
    (row,) = (line for line in lines if line.startswith("| blocks"))
    _, _, nodes, *cells, _ = (cell.strip() for cell in row.split("|"))
    assert nodes == "9,978" and len(cells) == 2 and all(0 < float(cell) < 1000 for cell in cells), row
