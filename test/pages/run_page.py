#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what a page of docs says, in an empty folder, and compares what the page says with what happens.

    test/pages/run_page.py PAGE --python=PYTHON [--tf1=PYTHON --tf1-path=FOLDER] [--keep=FOLDER]

- A block `python` whose first line is `# NAME.py` is written to NAME.py. Another one is run, and a block `text` behind it is
  what it prints.
- A block `console` has commands, `$ ...`, each with what it prints; of Python's only standard output, unless it is expected to
  fail. `$ pip install` is what has been done before. A status other than 0 is expected where an error is.
- `...` stands for any text, alone on a line for any lines. Numbers may be a little off.
- `<!-- tf1 -->` before a block: it is run by TensorFlow 1.15, or not at all without --tf1. `<!-- any -->`: it is not run.

`graft-opt` and `python` are those of PYTHON's environment. Indented blocks are not run.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^(?P<mark><!-- (?:tf1|any) -->\n+)?```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S)
NAME = re.compile(r"# (\w+\.py)\n")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
NOISE = re.compile(r"WARNING|Instructions for updating|non-resource variables are not|^[IWE]0000 |^I\d{4} ")


def agrees(expected, said):
    """Returns true if a line is the expected one."""
    pattern, numbers = "", []
    for literal, number in re.findall(r"(?s)(.*?)(" + NUMBER.pattern + r"|$)", expected):
        pattern += ".*".join(re.escape(part) for part in literal.split("..."))
        if number:
            pattern += f"({NUMBER.pattern})"
            numbers.append(float(number))
    match = re.fullmatch(pattern, said)
    return match is not None and all(
        abs(float(found) - number) <= 2e-3 * max(abs(number), 1e-3) for found, number in zip(match.groups(), numbers)
    )


def compare(expected, said):
    """Returns true if lines are the expected ones: `...` alone stands for any number of lines."""
    if not expected:
        return not said
    if expected[0].strip() == "...":
        return any(compare(expected[1:], said[skip:]) for skip in range(len(said) + 1))
    return bool(said) and agrees(expected[0].rstrip(), said[0].rstrip()) and compare(expected[1:], said[1:])


class Page:
    def __init__(self, path, python, tf1, tf1_path, folder):
        self.path, self.tf1, self.tf1_path, self.folder = path, tf1, tf1_path, folder
        self.ran = self.skipped = 0
        self.python = python

    def environment(self, python):
        bin_dir = os.path.dirname(os.path.abspath(python))
        made = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        made["PATH"] = bin_dir + os.pathsep + made["PATH"]
        made.update(TF_CPP_MIN_LOG_LEVEL="3", PYTHONWARNINGS="ignore", LC_ALL="C.UTF-8", CUDA_VISIBLE_DEVICES="-1")
        if python == self.tf1:
            made["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = "python"
            if self.tf1_path:
                made["PYTHONPATH"] = self.tf1_path
        return made

    def run(self, command, expected, python):
        """Runs a command of a block, and stops the page if it prints something else."""
        of_python = command.startswith("python")
        if of_python:
            fails = any(re.match(r"\w+Error: ", line) for line in expected)
        else:
            fails = any(": error: " in line for line in expected)
        done = subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=self.folder,
            env=self.environment(python),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        said = done.stdout
        if not of_python:
            said = done.stderr + done.stdout
        elif fails:
            said += "\n".join(done.stderr.splitlines()[-1:])
        lines = [line for line in said.splitlines() if not NOISE.search(line)]
        if (done.returncode != 0) != fails or not compare(expected, lines):
            self.fail(f"$ {command}\nexit status {done.returncode}\n{said}\n{done.stderr[-3000:]}\nexpected:\n" + "\n".join(expected))
        self.ran += 1

    def fail(self, why):
        sys.exit(f"{self.path}: {why}")

    def console(self, text, python):
        commands = []
        for line in text.splitlines():
            if line.startswith("$ "):
                commands.append([line[2:], []])
            elif commands and not commands[-1][1] and commands[-1][0].endswith("\\"):
                commands[-1][0] = commands[-1][0][:-1] + line.strip()
            elif commands:
                commands[-1][1].append(line)
            else:
                self.fail(f"a block 'console' does not begin with '$ ': {line}")
        for command, expected in commands:
            if command.startswith("pip install "):
                continue
            self.run(command, expected, python)

    def play(self):
        with open(self.path, encoding="utf-8") as file:
            blocks = list(FENCE.finditer(file.read()))
        for i, block in enumerate(blocks):
            kind, text, mark = block["kind"], block["text"], (block["mark"] or "").strip()
            python = self.tf1 if mark == "<!-- tf1 -->" else self.python
            if mark == "<!-- any -->":
                continue
            if python is None:
                self.skipped += 1
                continue
            if kind == "python":
                name = NAME.match(text)
                file_name = name[1] if name else "block.py"
                with open(os.path.join(self.folder, file_name), "w", encoding="utf-8") as file:
                    file.write(text)
                if not name:
                    after = blocks[i + 1] if i + 1 < len(blocks) and blocks[i + 1]["kind"] == "text" else None
                    self.run("python block.py", after["text"].splitlines() if after else [], python)
            elif kind == "console":
                self.console(text, python)
            elif kind not in ("text", "cmake"):
                self.fail(f"a block '{kind}' is nothing that can be run: <!-- any --> before it says so")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page")
    parser.add_argument("--python", required=True)
    parser.add_argument("--tf1")
    parser.add_argument("--tf1-path", help="the folder that has the module graft for it")
    parser.add_argument("--keep")
    options = parser.parse_args()
    folder = options.keep or tempfile.mkdtemp(prefix="graft-page-")
    os.makedirs(folder, exist_ok=True)
    folder = os.path.realpath(folder)
    page = Page(options.page, options.python, options.tf1, options.tf1_path, folder)
    try:
        page.play()
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{options.page}: {page.ran} commands as the page says, {page.skipped} skipped without TensorFlow 1.15")


if __name__ == "__main__":
    main()
