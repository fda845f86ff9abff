#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/Messages.md: every sentence that graft can say about a graph, by room, so that all can be read in one go.

    tools/scripts/gen_messages.py           writes the page
    tools/scripts/gen_messages.py --check   fails if the page is another one

A sentence is a string of the sources with three words or more. A value that is put into it is shown as `…`.
"""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs", "Messages.md")
# Help of options and passes: docs/Cli.md and docs/Passes.md have it.
HELP = re.compile(r"/(Options|Print|ReportPage|OptionTable|RemarksFile)\.(cpp|h)$")
TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/"  # comments
    r'|R"([^(\s]*)\(.*?\)\1"'  # raw strings: pages and scripts
    r'|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)+\'|[A-Za-z_]\w*|\S',
    re.S,
)
# How a message is called, by the function that makes it.
LEVELS = {
    "error": "error", "failure": "error", "createStringError": "error", "refuse": "error", "Error": "error",
    "warning": "warning", "unproved": "unproved", "remark": "remark", "addNote": "note", "note": "note",
}
ESCAPES = {"\\n": " ", "\\t": " ", '\\"': '"', "\\\\": "\\", "\\'": "'"}


class Reader:
    """Joins the strings of one expression, and knows the calls around them."""

    def __init__(self):
        self.calls = []  # of each open parenthesis: the function
        self.sentence, self.depth, self.level = "", 0, ""
        self.joins = False  # only `+` and operands since the last string
        self.goes_on = False  # `+` since the last string
        self.found = []

    def end(self):
        text = re.sub(r"\{\d+(:[^{}]*)?\}", "…", self.sentence + ("…" if self.goes_on else ""))
        text = re.sub(r"…[\s…]*…", "…", re.sub(r"\s+", " ", text)).strip()
        if len(re.findall(r"[A-Za-z]{2,}", text)) >= 3 and " " in text:
            self.found.append((self.level, text))
        self.sentence = ""

    def string(self, text):
        text = re.sub(r"\\.", lambda m: ESCAPES.get(m[0], ""), text)
        if not self.sentence:
            self.depth = len(self.calls)
            self.level = next((LEVELS[c] for c in reversed(self.calls) if c in LEVELS), "")
        elif self.joins:
            self.sentence += "…"
        self.sentence += text
        self.joins = self.goes_on = False

    def read(self, source):
        earlier = before = ""
        for match in TOKEN.finditer(source):
            token = match[0]
            if token.startswith(("//", "/*", 'R"')):
                continue
            if token == "Id" and before == ".":  # of a diagnostic: its message ends before
                self.end()
            if token.startswith('"'):
                # No message: what is included, an id, what is compared with ==.
                inside = {"Case", "Cases", "llvm_unreachable"} & set(self.calls)
                if not inside and before not in ("include", "C") and not (before == "=" and earlier in ("Id", "=", "!")):
                    self.string(token[1:-1])
            elif token == "(" or token == "{":
                self.calls.append(before if token == "(" else "")
            elif token == ")" or token == "}":
                if self.calls:
                    self.calls.pop()
                if self.sentence and len(self.calls) < self.depth - 1:
                    self.end()
            elif self.sentence and (token == ";" or (token in ",?:" and len(self.calls) <= self.depth)):
                self.end()
            elif self.sentence and not token.startswith("'"):
                self.joins = True
                self.goes_on |= token == "+"
            earlier, before = before, token
        self.end()
        return self.found


def collect():
    rooms = {}
    for top in ("lib", "passes"):
        for folder, _, names in sorted(os.walk(os.path.join(ROOT, top))):
            for name in sorted(names):
                path = os.path.join(folder, name)
                if not name.endswith((".cpp", ".h")) or HELP.search(path):
                    continue
                with open(path, encoding="utf-8") as file:
                    found = Reader().read(file.read())
                room = os.path.relpath(folder, ROOT)
                rooms.setdefault(room, {}).update(dict.fromkeys(found))
    return rooms


def page():
    lines = [
        "# Messages",
        "",
        "Use this page to look up a message, or to read all of them at once. [Remarks.md](Remarks.md) explains the ids.",
        "`tools/scripts/gen_messages.py` writes the page from the sources: `…` stands for a name or a number. A level is shown where",
        "the sentence is in the call that reports it; other sentences are parts, such as a cause.",
    ]
    for room, found in sorted(collect().items()):
        if found:
            lines += ["", f"## {room}", "", "| level | message |", "|---|---|"]
            lines += [f"| {level} | {text.replace('|', '&#124;').replace('<', '&lt;')} |" for level, text in found]
    return "\n".join(lines) + "\n"


def main():
    text = page()
    if sys.argv[1:] == ["--check"]:
        with open(PAGE, encoding="utf-8") as file:
            if file.read() != text:
                sys.exit("docs/Messages.md is not what tools/scripts/gen_messages.py writes: run it")
        return
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(text)


main()
