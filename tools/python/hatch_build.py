# SPDX-License-Identifier: Apache-2.0
"""Puts the programs into the wheel, and says where they run.

The programs are linked statically (the CMake targets `static-programs`): they need a Linux kernel and nothing else, so
the wheel has the oldest tags that every pip of Python 3.7 knows. GRAFT_PROGRAMS names a folder that has them already.
"""

import os
import shutil
import subprocess
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = ("graft-opt", "graft-launch", "graft-diff", "graft-extract", "graft-reduce")
# `uname -m` and the tags of wheels say the same.
TAGS = "manylinux_2_17_{0}.manylinux2014_{0}.musllinux_1_1_{0}"


class Programs(BuildHookInterface):
    def initialize(self, version, build_data):
        folder = os.environ.get("GRAFT_PROGRAMS") or self.build()
        self.stripped = tempfile.mkdtemp()
        for program in PROGRAMS:
            to = os.path.join(self.stripped, program)
            shutil.copyfile(os.path.join(folder, program), to)
            os.chmod(to, 0o755)
            subprocess.run(["strip", to], check=True)
            build_data["force_include"][to] = f"graft/bin/{program}"
        tests = os.path.join(ROOT, "tools", "scripts", "reduce")
        for name in os.listdir(tests):
            build_data["force_include"][os.path.join(tests, name)] = f"graft/share/graft/reduce/{name}"
        for name in ("LICENSE", "NOTICE"):
            build_data["force_include"][os.path.join(ROOT, name)] = f"graft/{name}"
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + TAGS.format(os.uname().machine)

    def build(self):
        tree = os.path.join(ROOT, "build", "release")
        if not os.path.exists(os.path.join(tree, "build.ninja")):
            subprocess.run(["cmake", "--preset", "release"], cwd=ROOT, check=True)
        subprocess.run(["cmake", "--build", "--preset", "release", "--target", "static-programs"], cwd=ROOT, check=True)
        return os.path.join(tree, "static")

    def finalize(self, version, build_data, artifact_path):
        shutil.rmtree(self.stripped, ignore_errors=True)
