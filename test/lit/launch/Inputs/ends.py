# SPDX-License-Identifier: Apache-2.0
"""Ends graft-launch, or lets its processes end, and says how that was.

    ends.py GRAFT-LAUNCH CASE...
"""

import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time

LAUNCH, *CASES = sys.argv[1:]
os.chdir(tempfile.mkdtemp(dir=os.getcwd()))
with open("two.json", "w") as file:
    json.dump({"cluster": {"worker": ["a:1", "a:2"]}}, file)
with open("one.json", "w") as file:
    json.dump({"cluster": {"worker": ["a:1"]}}, file)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# The process, one of its group, and one that leaves the group and its parent.
TREE = "sleep 1000 & a=$!; (setsid sleep 1000 & echo $! > out{index}); echo up $$ $a $(cat out{index}); wait"
SLOW = 60


def dispositions(ignored):
    # A shell in the background ignores SIGINT for what it starts.
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)


def start(command, cluster="two.json", flags=(), ignored=(), **pipes):
    return subprocess.Popen(
        [LAUNCH, cluster, *flags, "--", "/bin/sh", "-c", command],
        preexec_fn=lambda: dispositions(ignored),
        **{"stdout": subprocess.PIPE, "text": True, **pipes},
    )


def state(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def until(true):
    end = time.monotonic() + SLOW
    while not true() and time.monotonic() < end:
        time.sleep(0.005)


def there(pids):
    return [pid for pid in pids if state(pid) not in ("", "Z")]


def pids_of(process, count=2):
    """The first lines of the processes."""
    return [int(word) for _ in range(count) for word in process.stdout.readline().split()[2:]]


def report(what, process, pids):
    print(f"{what}: {process.wait(SLOW)}, left: {len(there(pids))}")


def end(what, *numbers, command=TREE, **options):
    process = start(command, **options)
    pids = pids_of(process)
    for i, number in enumerate(numbers):
        time.sleep(0.7 if i else 0)
        process.send_signal(number)
    report(what, process, pids)


def statuses():
    for what, command, *flags in (
        ("exit status 3", ["/bin/sh", "-c", "exit 3"]),
        ("SIGKILL", ["/bin/sh", "-c", "kill -9 $$"]),
        ("time", ["sleep", "1000"], "--timeout=0.05"),
        ("no program", ["./nosuch"]),
        ("no right", ["/dev/null"]),
    ):
        done = subprocess.run([LAUNCH, *flags, "two.json", "--", *command], stderr=subprocess.DEVNULL)
        print(f"{what}: {done.returncode}")


def signals():
    for number in SIGNALS:
        end(number.name, number)
    deaf = "trap '' TERM; " + TREE
    end("SIGTERM without effect", signal.SIGTERM, command=deaf, flags=["--grace=0.1"])
    end("twice, with much grace", signal.SIGINT, signal.SIGINT, command=deaf, flags=["--grace=1000"])
    end("SIGHUP to nohup", signal.SIGHUP, signal.SIGTERM, ignored=[signal.SIGHUP])


def killed():
    process = start("echo up $$; exec sleep 1000")
    pids = pids_of(process)
    process.kill()
    until(lambda: not there(pids))
    report("the launcher is killed", process, pids)


def first():
    """Which failed first is known even if the launcher looks later."""
    process = start(
        "echo up $$; while ! test -e go{index}; do sleep 0.01; done; exit $((2 + {index}))", stderr=subprocess.PIPE
    )
    lines = sorted(process.stdout.readline() for _ in range(2))
    process.send_signal(signal.SIGSTOP)
    until(lambda: state(process.pid) == "T")
    for index in (1, 0):
        open(f"go{index}", "w").close()
        until(lambda: state(int(lines[index].split()[2])) == "Z")
    process.send_signal(signal.SIGCONT)
    message = process.communicate()[1].strip()
    print(f"both failed: {process.returncode}, {message}")


def stuck():
    process = start("echo up $$; exec yes", cluster="one.json", flags=["--grace=0.1"])
    pids = pids_of(process, 1)
    # The pipe is full: what the launcher has got it cannot pass on.
    until(lambda: state(pids[0]) == "S")
    process.send_signal(signal.SIGINT)
    # A reader that holds the launcher up for longer than the grace is left alone.
    report("nobody reads", process, pids)
    process = start("exec yes", cluster="one.json", stderr=subprocess.PIPE)
    process.stdout.close()
    message = process.stderr.read().strip()
    print(f"the reader is gone: {process.wait(SLOW)}, {message}")


def terminal():
    for extra in ({}, {"NO_COLOR": "1"}):
        main, other = pty.openpty()
        environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        subprocess.run(
            [LAUNCH, "one.json", "--", "echo", "{index}"],
            stdout=other,
            env={**environment, "TERM": "xterm", **extra},
            check=True,
        )
        print(os.read(main, 1000))
        os.close(other)
        os.close(main)


for case in CASES:
    globals()[case]()
