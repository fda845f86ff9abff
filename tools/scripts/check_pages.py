#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the pages of docs/ against the repository.

    tools/scripts/check_pages.py GRAFT_OPT            fails where a page says what is not so
    tools/scripts/check_pages.py GRAFT_OPT --write    puts what the commands print now into the pages

- A block that begins with `$ graft-opt ...`, or another program, is what this command prints, run at the root of the repository. Those of pages that
  are played in a folder of their own are test/pages/run_page.py's.
- A link leads to a file that is there, and a path in backticks that begins with a folder of the repository is one; so is
  a test_*.py in test/conformance.
- docs/Limits.md has the numbers that the code has.
- docs/ProgramFormat.md names every attribute `_graft_*` and every op of programs that the code has, and no other, and
  its table of inserted kinds has the rows of lib/graph/Inserted.def.
"""

import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLAYED = {"docs/Tutorial.md", "docs/Troubleshooting.md", "docs/Python.md", "docs/Workers.md"}
FORMAT = os.path.join("docs", "ProgramFormat.md")
BLOCK = re.compile(r"^```[a-z]*\n\$ (graft-[a-z]+ [^\n]*)\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
TEST = re.compile(r"\b(test_\w+\.py)")
KIND = re.compile(r'^GRAFT_INSERTED\(\w+, ("\w+"),\s+((?:"[^"]*"\s*)+),\s+((?:"[^"]*"\s*)+)\)$', re.M)
KINDS = re.compile(r"(?<=^\| kind \| is \| stands for \|\n\|---\|---\|---\|\n)(?:\|[^\n]*\n)*", re.M)
LIMIT = re.compile(r"^\| [^|]+ \| (\d+) \| `([^`]+)`: `(\w+)` \|$", re.M)
PATH = re.compile(r"`((?:lib|passes|tools|test|docs|proto)/[^`]*)`")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def run(tool, command):
    """The messages of the command, and then its output."""
    path = os.path.dirname(os.path.abspath(tool)) + os.pathsep + os.environ["PATH"]
    done = subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=ROOT,
        env={**os.environ, "PATH": path, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        check=False,
    )
    return done.stderr + done.stdout


def check_examples(page, text, tool, problems):
    """The text with what its commands print now."""

    if page in PLAYED:
        return text

    def again(block):
        command, then = block.groups()
        now = run(tool, command)
        if now != then:
            problems.append(f"{page}: '{command}' prints something else; --write puts it in")
        return block.group(0).replace(f"{command}\n{then}", f"{command}\n{now}")

    return BLOCK.sub(again, text)


def check_kinds(text, problems):
    """The text with the kinds of inserted nodes that the code has now."""

    def cells(row):
        name, *others = ("".join(re.findall('"([^"]*)"', strings)) for strings in row)
        return " ".join(f"| {cell}" if cell else "|" for cell in (f"`{name}`", *others)) + " |\n"

    rows = "".join(map(cells, KIND.findall(read("lib/graph/Inserted.def"))))
    now = KINDS.sub(lambda _: rows, text)
    if now != text:
        problems.append(f"{FORMAT}: the kinds are not those of lib/graph/Inserted.def; --write puts them in")
    return now


def check_paths(page, text, problems):
    for link in LINK.findall(text):
        if not os.path.exists(os.path.join(ROOT, os.path.dirname(page), link)):
            problems.append(f"{page}: there is no '{link}' to link to")
    for path in PATH.findall(text):
        if "<" not in path and not glob.glob(os.path.join(ROOT, re.split("[{ ]", path)[0]) + "*"):
            problems.append(f"{page}: there is no '{path}'")
    for name in TEST.findall(text):
        if not os.path.exists(os.path.join(ROOT, "test", "conformance", name)):
            problems.append(f"{page}: there is no 'test/conformance/{name}'")


def check_limits(problems):
    """Rows `| what | number | `file`: `constant` |`."""
    rows = LIMIT.findall(read("docs/Limits.md"))
    for number, path, name in rows:
        found = re.search(rf"\b{name} = (?:size_t\()?(0x[0-9a-f]+|\d+)\)?(?: << (\d+))?;", read(path))
        value = int(found[1], 0) << int(found[2] or 0) if found else None
        if value != int(number):
            problems.append(f"docs/Limits.md: {name} of {path} is {value}, not {number}")
    if not rows:
        problems.append("docs/Limits.md has no numbers")


def words_of_code():
    """Attributes and ops of programs, as the code writes them."""
    attributes = set()
    for folder in ("lib", "passes"):
        for path in glob.glob(os.path.join(ROOT, folder, "**", "*.*"), recursive=True):
            if not path.endswith((".cpp", ".h", ".def")):
                continue
            text = read(path)
            attributes |= set(re.findall(r'"(_graft_\w+)"', text)) - {"_graft_"}
    ops = set(re.findall(r'Op = "(\w+)"', read("lib/ops/ProgramOps.h")))
    return attributes, ops


def check_format(problems):
    text = read(FORMAT)
    attributes, ops = words_of_code()
    rows = {
        section: set(re.findall(r"^\| `(\w+)`", body, re.M))
        for section, body in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    }
    for what, section, code in (
        ("attribute", "Attributes", attributes),
        ("op", "Ops", ops),
    ):
        named = rows.get(section, set())
        problems += [f"{FORMAT}: section '{section}' has no row for the {what} '{word}'" for word in sorted(code - named)]
        problems += [f"{FORMAT}: the code has no {what} '{word}'" for word in sorted(named - code)]


def main():
    tool, *flags = sys.argv[1:] or [""]
    if not tool or flags not in ([], ["--write"]):
        sys.exit(__doc__)
    problems, stale = [], []
    pages = ["README.md", "CONTRIBUTING.md"] + sorted(
        os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, "docs", "*.md"))
    )
    for page in pages:
        text = read(page)
        now = check_examples(page, text, tool, stale)
        if page == FORMAT:
            now = check_kinds(now, stale)
        if flags and now != text:
            with open(os.path.join(ROOT, page), "w", encoding="utf-8") as file:
                file.write(now)
        check_paths(page, text, problems)
    check_format(problems)
    check_limits(problems)
    if not flags:
        problems += stale
    if problems:
        sys.exit("\n".join(problems))


main()
