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
