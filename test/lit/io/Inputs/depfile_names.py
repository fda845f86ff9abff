# SPDX-License-Identifier: Apache-2.0
"""Has Make read depfiles of graphs with odd names: each names its files, or there is none.

    depfile_names.py GRAFT-OPT GRAPH
"""

import os
import random
import shutil
import subprocess
import sys

PIECES = ["a", "b", " ", "$(shell touch ran)", "${IFS}", "x!=touch${IFS}ran", "\n", "\t", "\\", "#", ":", ";", "|", "%", "=", "&", "~root", "(b)", "[1]", "*", "?", "'", '"', "é", "define"]
opt, graph = sys.argv[1:]
random.seed(7)
names = [f"{a}{piece}{b}" for piece in PIECES for a, b in (("", ""), ("a", "b"))]
names += ["".join(random.choices(PIECES, k=3)) for _ in range(40)]
read, refused, wrong = 0, 0, []
for name in names:
    shutil.copy(graph, name)
    done = subprocess.run([opt, f"./{name}" if name[0] in "@-" else name, "-o", "out", "-d", "dep"], stderr=subprocess.PIPE, text=True)
    os.remove(name)
    if done.returncode != 0:
        refused += 1
        if "which a rule of Make cannot express" not in done.stderr or os.path.exists("dep") or os.path.exists("out"):
            wrong.append(name)
        continue
    read += 1
    os.remove("out")
    for target, missing in (("out", name), (name, "none")):
        if target != "out":
            # As the name of the output.
            shutil.copy(graph, "none")
            if subprocess.run([opt, "none", "-o", name, "-d", "dep"]).returncode != 0:
                wrong.append(name)
            os.remove(name)
            os.remove("none")
        made = subprocess.run(["make", "-rR", "-f", "dep", "--", f"{target}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if f"No rule to make target '{missing}', needed by '{target}'." not in made.stdout:
            wrong.append((name, made.stdout))
    os.remove("dep")
print("read", read > 20, "refused", refused > 30, "wrong", wrong, "left", *sorted(os.listdir(".")))
