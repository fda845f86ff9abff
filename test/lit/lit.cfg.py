# SPDX-License-Identifier: Apache-2.0
"""lit configuration. Run through ctest, or directly on a file or folder:

    python3 /usr/lib/llvm-19/build/utils/lit/lit.py -v build/release/test/lit
"""

import glob
import os
import shutil

import lit.formats

config.name = "graft"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".graph", ".pbtxt", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = config.graft_exec_root

# Tools are replaced by their full paths, so that a test can never run an
# installed graft-opt or another LLVM's FileCheck by accident. lit replaces
# these before %s, so a path that contains a tool's name is safe.
tools = dict(config.llvm_tools)
for path in glob.glob(os.path.join(config.graft_bin_dir, "graft-*")):
    tools[os.path.basename(path)] = path
tools.setdefault("graft-opt", os.path.join(config.graft_bin_dir, "graft-opt"))
for name, path in sorted(tools.items(), key=lambda item: -len(item[0])):
    config.substitutions.append((r"(?<![\w./%-])" + name + r"(?![\w./=-])", path))

inputs = os.path.join(config.graft_source_root, "test", "inputs")
config.substitutions.append(("%inputs", inputs))
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%optviewer", config.opt_viewer))
config.substitutions.append(("%root", config.graft_source_root))

if config.graft_asserts:
    config.available_features.add("asserts")
if shutil.which("dot"):
    config.available_features.add("graphviz")
if shutil.which("make"):
    config.available_features.add("make")
if config.graft_asan:
    config.available_features.add("asan")

for variable in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]
# FileCheck shows the whole input around a failed check.
config.environment["FILECHECK_OPTS"] = "--dump-input-filter=all"
