# SPDX-License-Identifier: Apache-2.0
"""Lets graft-opt fail while it writes.

    fail.py FOLDER GRAFT-OPT GRAPH
"""

import os
import resource
import signal
import subprocess
import sys
import time

folder, graft_opt, graph = sys.argv[1:]
os.chdir(folder)
OUTPUT = "out.meta"
DISTRIBUTE = ["--device-type=CPU", "--replicas=200"]
subprocess.run([graft_opt, graph, "--input-kind=metagraph", "-o", OUTPUT], check=True)
before = open(OUTPUT, "rb").read()


def limit():
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


def show(what, status, text=""):
    message = next((": ".join(line.split(": ")[1:]) for line in text.splitlines() if "error" in line), "")
    print(f"{what}: status {status}" + (f", {message}" if message else ""))
    if what == "next run":
        return
    left = sorted(os.listdir("."))
    temporary = [name for name in left if name.endswith(".tmp")]
    same = open(OUTPUT, "rb").read() == before
    rest = ", ".join(name for name in left if name not in temporary)
    print(f"left: {rest}, {'as before' if same else 'CHANGED'}" + (", and a temporary file" if temporary else ""))


def run(what, arguments, **options):
    done = subprocess.run([graft_opt, *arguments], stderr=subprocess.PIPE, text=True, **options)
    show(what, done.returncode, done.stderr)


def graph_def():
    """The GraphDef of GRAPH, in a file outside of the folder."""
    path = os.path.abspath("../" + os.path.basename(folder) + ".graph.pb")
    text = subprocess.run([graft_opt, graph, "-S"], stdout=subprocess.PIPE, text=True, check=True).stdout
    body, depth = [], 0
    for line in text.splitlines():
        if line.startswith("graph_def {"):
            depth = 1
        elif depth and line == "}":
            break
        elif depth:
            body.append(line)
    with open(path + "txt", "w") as file:
        file.write("\n".join(body))
    subprocess.run([graft_opt, path + "txt", "-o", path], check=True)
    return path


def stop(what, number):
    """Ends a run while its temporary file is there."""
    process = subprocess.Popen(
        [graft_opt, graph, "-o", OUTPUT, "--device-type=CPU", "--replicas=300"],
        stderr=subprocess.DEVNULL,
        # Ignored where a shell started the test in the background.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while process.poll() is None and not any(name.endswith(".tmp") for name in os.listdir(".")):
        time.sleep(0.001)
    process.send_signal(signal.SIGSTOP)
    process.send_signal(number)
    process.send_signal(signal.SIGCONT)
    show(what, process.wait())


run("limit on files", [graph, "-o", OUTPUT, *DISTRIBUTE], preexec_fn=limit)
pb = graph_def()
run("limit on files, shards", [pb, "-o", "out.pb", *DISTRIBUTE, "--shard-size=90K"],
    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)))
run("full device", [graph, "-o", "/dev/full", *DISTRIBUTE])
read, write = os.pipe()
os.close(read)
run("closed pipe", [graph, *DISTRIBUTE], stdout=write)
os.close(write)
directory = os.open(".", os.O_RDONLY)
run("read error", ["-", "-o", OUTPUT, *DISTRIBUTE], stdin=directory)
os.close(directory)
stop("SIGTERM", signal.SIGTERM)
stop("SIGINT", signal.SIGINT)
stop("SIGKILL", signal.SIGKILL)
run("next run", [graph, "--input-kind=metagraph", "-o", OUTPUT])
for name in os.listdir("."):
    if name.endswith(".tmp"):
        os.remove(name)
run("too large", [graph, "-o", OUTPUT, "--device-type=CPU", "--replicas=60000"])
