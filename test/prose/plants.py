#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants sentences that docs/Style.md forbids, and looks that tools/scripts/prose.py finds each of them and nothing else."""

import os
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "scripts", "prose.py")
FORBIDDEN = {
    "comment.cpp": "/// What is fed in parts is waited for.\nvoid f();\n",
    "second.cpp": "// Adds a queue. Of several queues the first counts.\nvoid f();\n",
    "member.h": "int Count; ///< Of the rows that are left.\n",
    "whether.h": "/// Whether \\p N has rows.\nbool f(int N);\n",
    "message.cpp": 'error(N, "what is read here is not written");\n',
    "page.md": "# Feeds\n\nEach replica reads its shard. What is left of it is dropped.\n",
    "item.md": "- Who runs the step runs all of it.\n",
    "heading.md": "# What is promised\n",
}
ALLOWED = {
    "comment.cpp": "/// Returns true if \\p N has rows, whatever their number.\nbool f(int N);\n",
    "message.cpp": 'error(N, "has rows, of which none is read");\n',
    "page.md": "# Feeds\n\nEach replica reads its shard.\n\n```\nWhat a program prints\n```\n\n| What | is a table |\n",
    "question.md": "# Questions\n\nWhat does a replica read? Its shard.\n",
}


def findings(text, name):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([sys.executable, "-B", SCRIPT, path], capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout if done.returncode else ""


for name, text in FORBIDDEN.items():
    assert findings(text, name).count("\n") == 1, (name, findings(text, name))
for name, text in ALLOWED.items():
    assert not findings(text, name), findings(text, name)
print("prose: all plants are found")
