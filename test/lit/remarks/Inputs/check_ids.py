# SPDX-License-Identifier: Apache-2.0
"""Holds the ids and fields of remarks and warnings in the code against docs/Remarks.md.

    check_ids.py ROOT PAGE
"""

import glob
import os
import re
import sys

root, page = sys.argv[1:]
problems = []
# (section, id) -> (passes and libraries that use it, fields)
code, documented = {}, {}

for folder in ("lib", "passes", "tools"):
    for path in sorted(glob.glob(os.path.join(root, folder, "**", "*.cpp"), recursive=True)):
        if os.path.basename(path) in ("Diagnostics.cpp", "TestPasses.cpp"):
            continue
        with open(path) as f:
            text = f.read()
        for call in re.finditer(r"(?:\.|->)\s*(remark|unproved|warning)\(\s*", text):
            where = f"{os.path.relpath(path, root)}:{text.count(chr(10), 0, call.start()) + 1}"
            literal = re.compile(r'"([a-z-]+)"').match(text, call.end())
            if not literal:
                problems.append(f"{where}: a {call[1]} without an id that this test can read")
                continue
            key = ("Remarks" if call[1] == "remark" else "Warnings", literal[1])
            statement = text[call.start() : text.index(";\n", call.start())]
            facts = statement.partition(".Facts = ")[2]
            code.setdefault(key, set()).update(re.findall(r'\{"([a-z-]+)",', facts))

section = None
with open(page) as f:
    for line in f:
        if line.startswith("## "):
            section = line[3:].strip()
        row = re.match(r"\| `([a-z-]+)` \|[^|]*\|[^|]*\|([^|]*)\|[^|]*\|$", line)
        if row:
            fields = {part.split("`")[1] for part in row[2].split(";") if "`" in part}
            documented[(section, row[1])] = fields

for section, name in sorted(code.keys() | documented.keys()):
    here, there = code.get((section, name)), documented.get((section, name))
    if there is None:
        problems.append(f"'{name}' is missing under {section}")
    elif here is None:
        problems.append(f"'{name}' under {section} is in no code")
    elif here != there:
        problems.append(f"'{name}' under {section} has the fields {sorted(there)}, in the code {sorted(here)}")

print("\n".join(problems) or f"{len(code)} ids")
sys.exit(bool(problems))
