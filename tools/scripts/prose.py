#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks prose by docs/Style.md: comments, messages, pages and titles of commits.

    prose.py [FILE...]   of FILE, or of all sources and pages
    prose.py --titles    the titles of the commits since the style page exists
    prose.py --title F   the first line of the file F, a commit message

Prints a line for each finding. The exit status is 1 if there is one.
"""

import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

# A clause in the place of a noun. A question of a page ends with a question mark.
RELATIVE = re.compile(r"^(What(ever)?|Whether|Of|Who(m|se|ever)?|Nobody|Somebody|Such as|Likewise of)\b(?![^.]*\?)")
LONGEST_TITLE = 72
SCRIPTS = (".py", ".sh", ".cmake")
SINCE = "2026-11-27"
# The first words of titles that say what a commit does, not what to do.
NO_COMMAND = re.compile(r"^(\w+ed|\w+ing|Now|The|A|An|It|This|No|All|Some|If|When|Where|So|One|Two)\b")


def comments(text):
    """The blocks of comments of a C++ source: the line and the text of each."""
    block, first = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r"\s*///?(?!/)<?\s?(.*)", line)
        member = None if found else re.search(r"\s///< (.*)", line)
        if found:
            if not block:
                first = number
            block.append(found[1])
            continue
        if block:
            yield first, "\n".join(block)
            block = []
        if member:
            first, block = number, [member[1]]
    if block:
        yield first, "\n".join(block)


def messages(text):
    """Literals that begin like a sentence about a node."""
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r'[^"]*"((?:what|whether|of which|who|nobody|somebody) [^"]*)', line)
        if found and not line.lstrip().startswith("//"):
            yield number, found[1].capitalize()


def beginnings(text):
    """The first lines of docstrings and of blocks of comments of a script."""
    before = ""
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r"\s*(?:\"\"\"|# )(\S.*)", line)
        if found and not re.match(r"\s*#", before):
            yield number, found[1]
        before = line


def paragraphs(text):
    """The paragraphs and items of a page, without code and tables."""
    block, first, fenced = [], 0, False
    for number, line in enumerate([*text.split("\n"), ""], 1):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        item = re.match(r"\s*([-*]|\d+\.) +", line)
        ends = fenced or fence or not line.strip() or line.startswith(("#", "|", "    ", "<", "!")) or item
        if ends and block:
            yield first, "\n".join(block)
            block = []
        if fenced or fence or line.startswith(("|", "    ", "<", "!")) or not line.strip():
            continue
        if not block:
            first = number
        block.append(re.sub(r"^\s*([-*]|\d+\.|#+) +", "", line))
        if line.startswith("#"):
            yield first, "\n".join(block)
            block = []


def sentences(block):
    """The line within the block and the text of each sentence."""
    at = 0
    for found in re.finditer(r"(?<=[a-z0-9)`*'\"][.!?:])\s+(?=[A-Z`*\[])", block):
        yield block[:at].count("\n"), block[at:found.start()]
        at = found.end()
    yield block[:at].count("\n"), block[at:]


def check(name, text):
    if name.endswith(".md"):
        parts = paragraphs(text)
    elif name.endswith(SCRIPTS):
        parts = beginnings(text)
    else:
        parts = [*comments(text), *messages(text)]
    for line, block in parts:
        for offset, sentence in sentences(block):
            found = RELATIVE.match(sentence.lstrip("*[`"))
            if found:
                short = " ".join(sentence.split())[:60]
                yield f"{name}:{line + offset}: begins with '{found[1]}': {short}"


def sources():
    """All sources and pages, without what the build made."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(set(folders) - {"build", ".git", "proto"})
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names if name.endswith((".cpp", ".h", ".md", *SCRIPTS))]
    return sorted(found)


def titles():
    log = subprocess.run(
        ["git", "log", "--format=%h %s", f"--since={SINCE}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for line in log.stdout.splitlines():
        yield from title_faults(*line.split(" ", 1))


def title_faults(commit, title):
    if title:
        if len(title) > LONGEST_TITLE:
            yield f"{commit}: the title has {len(title)} characters, more than {LONGEST_TITLE}: {title}"
        if RELATIVE.match(title) or NO_COMMAND.match(title) or not title[0].isupper() or title.endswith("."):
            yield f"{commit}: the title is no command: {title}"


def main():
    parser = argparse.ArgumentParser(description="Checks prose by docs/Style.md.")
    parser.add_argument("--titles", action="store_true")
    parser.add_argument("--title", metavar="FILE", help="the message of a commit, as git has it for the hook commit-msg")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    findings = list(titles()) if options.titles else []
    files = options.files
    if options.title:
        with open(options.title, encoding="utf-8") as message:
            findings += title_faults("this commit", message.readline().strip())
    elif not files and not options.titles:
        files = sources()
    for name in files:
        with open(os.path.join(ROOT, name) if not os.path.isabs(name) else name, encoding="utf-8") as file:
            findings += check(name, file.read())
    print("\n".join(findings) or "prose: nothing to say")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
