# SPDX-License-Identifier: Apache-2.0
"""Puts the programs into the wheel, and says where they run.

The programs are linked statically (the CMake targets `static-programs`): they need a Linux kernel and nothing else, so
the wheel has the oldest tags that every pip of Python 3.7 knows. GRAFT_PROGRAMS names a folder that has them already.
"""

import os
import re
import shutil
import subprocess
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = ("graft-opt", "graft-launch", "graft-diff", "graft-extract", "graft-reduce")
# `uname -m` and the tags of wheels say the same.
TAGS = "manylinux_2_17_{0}.manylinux2014_{0}.musllinux_1_1_{0}"


# The programs and files that the build needs, and the Debian packages that have them.
NEEDED = {
    "g++": "g++",
    "cmake": "cmake",
    "ninja": "ninja-build",
    "protoc": "protobuf-compiler",
    "/usr/include/google/protobuf/message.h": "libprotobuf-dev",
    "/usr/lib/llvm-19/lib/cmake/llvm/LLVMConfig.cmake": "llvm-19-dev",
    "/usr/include/fmt/core.h": "libfmt-dev",
}


def say(text):
    """Prints a line where a user sees it: pip shows nothing of a build but its errors."""
    print(text, flush=True)
    try:
        with open("/dev/tty", "w", encoding="utf-8") as terminal:
            terminal.write(text + "\n")
    except OSError:
        pass


def check_prerequisites():
    """Ends the build with one line if a program or a library is missing."""
    # Other systems have libraries elsewhere, and CMake finds them.
    is_debian = os.path.exists("/usr/bin/dpkg") and "CMAKE_PREFIX_PATH" not in os.environ
    missing = [
        package
        for name, package in NEEDED.items()
        if (not os.path.exists(name) and is_debian if name.startswith("/") else not shutil.which(name))
    ]
    if missing:
        raise SystemExit(
            "graft: the build needs packages that are not installed: apt-get install " + " ".join(missing) + "; or set "
            "GRAFT_PROGRAMS to a folder that has " + ", ".join(PROGRAMS)
        )


def run(*command):
    """Runs a command of the build, and tells each tenth of its progress."""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True) as process:
        tail, told = [], 0
        for line in process.stdout:
            tail = [*tail[-40:], line]
            match = re.match(r"\[(\d+)/(\d+)\]", line)
            if match and int(match.group(1)) * 10 // int(match.group(2)) > told:
                told = int(match.group(1)) * 10 // int(match.group(2))
                say(f"graft: {told * 10} % built")
    if process.returncode != 0:
        raise SystemExit("".join(tail) + f"graft: {' '.join(command)} failed with status {process.returncode}")


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
        # The data folder of a wheel is copied into the environment: man and the shells find these files below its share.
        share = f"graft_tf-{self.metadata.version}.data/data/share"
        for program in PROGRAMS:
            page = os.path.join(ROOT, "docs", "man", f"{program}.1")
            build_data["force_include"][page] = f"{share}/man/man1/{program}.1"
            completion = os.path.join(self.stripped, f"{program}.bash")
            shutil.copyfile(os.path.join(ROOT, "tools", "completion", "graft.bash"), completion)
            build_data["force_include"][completion] = f"{share}/bash-completion/completions/{program}"
        zsh = os.path.join(ROOT, "tools", "completion", "_graft")
        build_data["force_include"][zsh] = f"{share}/zsh/site-functions/_graft"
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + TAGS.format(os.uname().machine)

    def build(self):
        check_prerequisites()
        tree = os.path.join(ROOT, "build", "release")
        say("graft: building the programs, about 6 minutes on two cores")
        if not os.path.exists(os.path.join(tree, "build.ninja")):
            run("cmake", "--preset", "release")
        run("cmake", "--build", "--preset", "release", "--target", "static-programs")
        return os.path.join(tree, "static")

    def finalize(self, version, build_data, artifact_path):
        shutil.rmtree(self.stripped, ignore_errors=True)
