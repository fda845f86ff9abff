# SPDX-License-Identifier: Apache-2.0
"""Runs graft-opt and the yardsticks as processes, for performance.py."""

import collections
import glob
import os
import platform
import re
import subprocess
import sys
import time

# Seconds and bytes of a process that has ended; `nodes` only of protobuf's.
Run = collections.namedtuple("Run", "wall user sys peak nodes", defaults=[0])


def run(command, stdout=os.devnull):
    """Runs a process from its start to its end. It must succeed. The peak is at least that of this Python, some 15 MB,
    which it starts as a copy of."""
    remove(stdout)
    create = [(os.POSIX_SPAWN_OPEN, 1, stdout, os.O_WRONLY | os.O_CREAT, 0o644)]
    create.append((os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0))
    start = time.monotonic()
    process = os.posix_spawnp(command[0], command, os.environ, file_actions=create)
    _, status, usage = os.wait4(process, 0)
    wall = time.monotonic() - start
    if status != 0:
        sys.exit(f"performance.py: exit status {os.waitstatus_to_exitcode(status)} of {' '.join(command)}")
    return Run(wall, usage.ru_utime, usage.ru_stime, usage.ru_maxrss * 1024)


def remove(path):
    """To replace an old file costs what it costs to delete it; outputs are new."""
    if os.path.isfile(path):
        os.unlink(path)


def write_page(path, script, lines):
    """Puts what a script measured between its markers in a page."""
    markers = (f"<!-- {script}: begin -->", f"<!-- {script}: end -->")
    with open(path, encoding="utf-8") as page:
        before, _, rest = page.read().partition(markers[0])
    _, found, after = rest.partition(markers[1])
    if not found:
        sys.exit(f"{script}: {path} lacks the lines {markers[0]} and {markers[1]}")
    with open(path, "w", encoding="utf-8") as page:
        page.write(before + markers[0] + "\n\n" + lines + "\n\n" + markers[1] + after)


class Tools:
    """The programs of a build, and files of theirs in a folder for work."""

    def __init__(self, build, work, graft=None):
        self.build = build
        self.work = work
        self.graft_opt = graft or os.path.join(build, "bin", "graft-opt")
        self.protobuf = os.path.join(build, "bench", "protobuf_baseline")
        for program in (self.graft_opt, self.protobuf):
            if not os.path.exists(program):
                sys.exit(f"performance.py: there is no {program}: build the preset 'release'")
        self.help = self.output("--help-all")

    def path(self, name):
        return os.path.join(self.work, name)

    # --- graft-opt ---

    def output(self, *arguments):
        return subprocess.run([self.graft_opt, *arguments], check=True, text=True, stdout=subprocess.PIPE).stdout

    def has(self, flag):
        return re.search(rf"{flag}\b", self.help) is not None

    def threads(self, count):
        return [f"--threads={count}"] if self.has("--threads") else []

    def flags(self, replicas):
        return [f"--replicas={replicas}", "--device-type=CPU", "--strategy=all-reduce", "--reduction=collective"]

    def graft(self, *arguments):
        if "-o" in arguments:
            remove(arguments[arguments.index("-o") + 1])
        return run([self.graft_opt, *arguments])

    def job(self, source, result, *more, replicas=8):
        return self.graft(source, "-o", result, *self.flags(replicas), *more)

    def sharded(self, source, replicas, shard_size=256 << 20):
        """The job with its output in shards, each of which protobuf must load; their files, and all their nodes."""
        for old in glob.glob(self.path("shard*.pb")):
            os.unlink(old)
        job = self.job(source, self.path("shard.pb"), f"--shard-size={shard_size}", replicas=replicas)
        files = sorted(glob.glob(self.path("shard*.pb")))
        return job, files, sum(self.baseline("message", f).nodes for f in files)

    # --- Yardsticks ---

    def baseline(self, *arguments):
        """protobuf_baseline in a process of its own; it says what the work took, without start and end."""
        for new in arguments[2:]:
            remove(new)
        line = subprocess.run([self.protobuf, *arguments], check=True, text=True, stdout=subprocess.PIPE).stdout
        words = line.split()
        values = {name: float(value) for name, value in zip(words[::2], words[1::2])}
        return Run(values["wall"], values["user"], values["sys"], values["peak"] * 1024, int(values["nodes"]))

    # --- TensorFlow ---

    def python(self):
        """A Python that has TensorFlow, or None."""
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        python = os.path.join(os.environ.get("GRAFT_VENV") or os.path.join(root, "build", "venv"), "bin", "python")
        if not os.path.exists(python):
            return None
        probe = subprocess.run([python, "-c", "import importlib.util as u; assert u.find_spec('tensorflow')"],
                               check=False, stderr=subprocess.DEVNULL)  # fmt: skip
        return python if probe.returncode == 0 else None

    def model(self, name, folder):
        """The file of an exported model, made when there is none; or why there cannot be one."""
        path = os.path.join(folder, name + ".meta")
        if os.path.exists(path):
            return path, ""
        python = self.python()
        if not python:
            return None, "no TensorFlow: set GRAFT_VENV"
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "export_models.py")
        subprocess.run([python, script, "--out", folder, name], check=True, stdout=sys.stderr, stderr=subprocess.DEVNULL)
        return path, ""

    def fused_steps(self):
        """How many times as fast a step with buckets is."""
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fused_steps.py")
        command = [self.python(), script, self.graft_opt]
        done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return float(done.stdout.split()[1])

    def python_import(self, source, replicas):
        """Seconds that Python takes for copies of a graph under name scopes, without starting and reading."""
        program = (
            "import sys, time, tensorflow as tf\n"
            "graph_def = tf.compat.v1.GraphDef.FromString(open(sys.argv[1], 'rb').read())\n"
            "start = time.monotonic()\n"
            "with tf.Graph().as_default() as graph:\n"
            "    for i in range(int(sys.argv[2])):\n"
            "        tf.import_graph_def(graph_def, name=f'replica_{i}')\n"
            "open(sys.argv[3], 'wb').write(graph.as_graph_def().SerializeToString())\n"
            "print(time.monotonic() - start)\n"
        )
        command = [self.python(), "-c", program, source, str(replicas), self.path("new.pb")]
        done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return float(done.stdout)

    # --- Graphs ---

    def graph(self, nodes):
        path = self.path(f"{nodes}.pb")
        if not os.path.exists(path):
            subprocess.run([os.path.join(self.build, "bench", "generate"), str(nodes), path], check=True,
                           stdout=subprocess.DEVNULL)  # fmt: skip
        return path


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, *parts):
    """The head of a length-delimited field with its contents, the last of which may be a length only."""
    size = sum(part if isinstance(part, int) else len(part) for part in parts)
    return varint(number << 3 | 2) + varint(size) + b"".join(part for part in parts if not isinstance(part, int))


LARGE_CONSTANTS = 9


def write_large_graph(path, constants=LARGE_CONSTANTS, size=256 << 20):
    """A GraphDef of constants with `size` bytes each."""
    zeros = bytes(1 << 20)
    with open(path, "wb") as out:
        for i in range(constants):
            float_type = field(5, field(1, b"dtype"), field(2, b"\x30\x01"))
            shape = field(2, field(2, b"\x08" + varint(size // 4)))
            # Heads from the inside out: each says how much follows, and the zeros come last.
            content = b"\x08\x01" + shape + varint(4 << 3 | 2) + varint(size)
            tensor = field(8, content, size)
            value = field(2, tensor, size)
            entry = field(5, field(1, b"value"), value, size)
            node = field(1, f"c{i}".encode()) + field(2, b"Const") + float_type + entry
            out.write(field(1, node, size))
            for _ in range(size // len(zeros)):
                out.write(zeros)
    return os.path.getsize(path)


def machine():
    """The machine of the figures."""
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        model = re.search(r"model name\s*: (.*)", info.read())
    with open("/proc/meminfo", encoding="utf-8") as info:
        memory = int(re.search(r"MemTotal:\s*(\d+)", info.read())[1]) / (1 << 20)
    cores = len(os.sched_getaffinity(0))
    release = re.match(r"\d+\.\d+", platform.release())
    return (
        f"Measured on {cores} cores ({model[1].strip() if model else platform.machine()}), {memory:.0f} GiB of memory, "
        f"Linux {release[0] if release else ''}, with graphs of 100,000 nodes (32 MB) and 8 replicas where nothing else is said."
    )
