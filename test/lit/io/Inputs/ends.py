# SPDX-License-Identifier: Apache-2.0
"""Ends graft-opt, or cuts its input, while it writes into FOLDER.

    ends.py FOLDER GRAFT-OPT signals|files
"""

import os
import resource
import signal
import subprocess
import sys

folder, graft_opt, what = sys.argv[1:]
os.chdir(folder)
wire = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wire.py")
EDIT = "--passes=test-edit{node=n0,do=rename,to=n}"


def make(name, kind):
    with open(name, "wb") as file:
        subprocess.run([sys.executable, wire, kind], stdout=file, check=True)


def run(source, during, *flags, prepare=lambda: None):
    """Calls DURING(process, temporary file) while the process is stopped in the
    middle of writing; returns its status and message."""
    while True:
        with open("out.pb", "w") as file:
            file.write("before")
        process = subprocess.Popen(
            [graft_opt, source, EDIT, "-o", "out.pb", *flags], stderr=subprocess.PIPE, text=True, preexec_fn=prepare
        )
        temporary = []
        while process.poll() is None and not temporary:
            temporary = [name for name in os.listdir(".") if name.endswith(".tmp")]
        process.send_signal(signal.SIGSTOP)
        # On a busy machine it may have ended before anybody looked.
        caught = bool(temporary) and process.poll() is None and os.path.exists(temporary[0])
        if caught:
            during(process, temporary[0])
        process.send_signal(signal.SIGCONT)
        message = process.communicate()[1].strip()
        if caught:
            return process.returncode, message


def left(names):
    untouched = open("out.pb", "rb").read(7) == b"before"
    others = sorted(set(os.listdir(".")) - set(names) - {"out.pb"})
    return ("out.pb as before" if untouched else "out.pb NEW") + "".join(", " + name for name in others)


if what == "signals":
    make("big.pb", "big")
    numbers = "HUP INT QUIT TERM USR1 USR2 ALRM VTALRM PROF XCPU IO PWR STKFLT RTMIN RTMAX".split()
    for number in (getattr(signal, "SIG" + name) for name in numbers):
        default = lambda: signal.signal(number, signal.SIG_DFL)
        status, message = run("big.pb", lambda process, _: process.send_signal(number), prepare=default)
        print(f"{number.name}: {'ended by it' if status == -number else status}, {left(['big.pb'])}", message)
    # As nohup starts it.
    status, message = run(
        "big.pb",
        lambda process, _: process.send_signal(signal.SIGHUP),
        prepare=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    print(f"ignored: {status}, {left(['big.pb'])}", message)
    os.umask(0o027)
    status, message = run("big.pb", lambda _, name: print("while written:", oct(os.stat(name).st_mode)))
    print("of before:", oct(os.stat("out.pb").st_mode))
    subprocess.run([graft_opt, "big.pb", EDIT, "-o", "new.pb"], check=True)
    print("of umask:", oct(os.stat("new.pb").st_mode))
else:
    for kind in ("big", "many"):
        for flags in (["--threads=1"], ["--threads=4"]):
            make("in.pb", kind)
            status, message = run("in.pb", lambda *_: os.truncate("in.pb", 4096), *flags)
            print(f"{kind} cut: {status}, {left(['in.pb'])}: {message}")

    def scribble(*_):
        with open("in.pb", "r+b") as file:
            file.write(b"\n")

    make("in.pb", "big")
    status, message = run("in.pb", scribble)
    print(f"written to: {status}, {left(['in.pb'])}: {message}")

    def replace(*_):
        make("other.pb", "graph")
        os.rename("other.pb", "in.pb")

    make("in.pb", "big")
    status, message = run("in.pb", replace)
    print(f"replaced: {status}, {left(['in.pb'])}", message)

    # No system has room for another stack of that size.
    make("in.pb", "many")
    few = lambda: resource.setrlimit(resource.RLIMIT_STACK, (1 << 46, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    done = subprocess.run(
        [graft_opt, "in.pb", EDIT, "-o", "out.pb", "--threads=4"], stderr=subprocess.PIPE, text=True, preexec_fn=few
    )
    print(f"no threads: {done.returncode}, {left(['in.pb'])}", done.stderr.strip())
