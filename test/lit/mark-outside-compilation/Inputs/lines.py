"""Text on stdin with one line for each node: its name, device and what marks it."""

import re
import sys

for node in re.split(r"\b(?=node(?:_def)? \{|signature \{)", sys.stdin.read()):
    found = re.search(r'name: "([^"]*)"', node)
    if found and not node.startswith("signature"):
        device = re.search(r'device: "([^"]*)"', node)
        mark = re.search(r'"_xla_outside_compilation"\s+value \{\s+s: "([^"]*)"', node)
        cores = re.findall(r'"(\d+:\d+)"', node)
        print(found[1], "@" + (device[1] if device else ""), "id=" + (mark[1] if mark else ""), *cores)
