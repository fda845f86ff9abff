#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over source files, some at a time.

    tidy.py [-j JOBS] BUILD FILE...

Most of a run of clang-tidy is its walk through the headers of the standard
library, LLVM and Catch2, whatever the file that includes them. So files of one
folder are read as one, up to GROUP of them, and the walk is paid once. A group
that is not clean, be it for a finding or for two functions of one name that do
not go together, is halved, and what is said of a file alone counts.

BUILD is the build folder that has compile_commands.json. The exit status is 1
where a file has a finding.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

GROUP = 10
# The database holds g++'s command lines; clang need not know its warnings.
ARGUMENTS = ["--quiet", "--extra-arg=-Wno-unknown-warning-option",
             "--extra-arg=-Wno-error"]


def commands(build):
    """The arguments of the compiler of each file, without the file's own."""
    found = {}
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        for entry in json.load(f):
            # The compiler may stand behind a launcher: arguments begin at the first option.
            words = shlex.split(entry["command"])
            words = words[next(i for i, word in enumerate(words) if word.startswith("-")):]
            kept = []
            skip = False
            for word in words:
                if skip or word in ("-o", "-c"):
                    skip = not skip
                else:
                    kept.append(word)
            found[os.path.realpath(entry["file"])] = tuple(kept)
    return found


def groups(files, build):
    """Lists of files that can be read as one, and the arguments of each list."""
    known = commands(build)
    alike = collections.defaultdict(list)
    for name in files:
        words = known.get(os.path.realpath(name))
        # Files that the build does not know have a list of their own.
        folder = os.path.dirname(name) if words is not None else name
        alike[(folder, words)].append(name)
    # Small folders go together.
    wide = collections.defaultdict(list)
    for (folder, words), names in alike.items():
        key = folder if len(names) >= GROUP // 2 or words is None else folder.split("/")[0]
        wide[(key, words)] += names
    for (_, words), names in wide.items():
        count = -(-len(names) // GROUP)
        for index in range(count):
            yield words, names[index::count]


def tidy(arguments):
    """The output of clang-tidy; None if it found nothing."""
    run = subprocess.run(["clang-tidy-19", *ARGUMENTS, *arguments], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, check=False)
    if run.returncode == 0:
        return None
    return re.sub(r"^\d+ warnings? generated\.\n", "", run.stdout, flags=re.M)


def look(build, words, names, folder):
    """Looks at one group; returns what was said of files, and how many runs it took."""
    if len(names) == 1:
        text = tidy(["-p", build, names[0]])
        return ([] if text is None else [text]), 1
    with tempfile.NamedTemporaryFile("w", suffix=".cpp", dir=folder, delete=False) as f:
        for name in names:
            f.write(f'#include "{os.path.realpath(name)}" // NOLINT(bugprone-suspicious-include)\n')
    header = r"--header-filter=/(lib|passes|tools|test)/[^:]*\.(h|cpp)$"
    config = "--config-file=" + os.path.realpath(".clang-tidy")
    if tidy([header, config, f.name, "--", *words]) is None:
        return [], 1
    middle = len(names) // 2
    first, runs = look(build, words, names[:middle], folder)
    second, more = look(build, words, names[middle:], folder)
    return first + second, 1 + runs + more


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-j", type=int, default=os.cpu_count(), metavar="JOBS")
    parser.add_argument("build")
    parser.add_argument("files", nargs="+")
    given = parser.parse_args()
    runs = 0
    findings = 0
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(given.j) as pool:
        work = [pool.submit(look, given.build, words, names, folder)
                for words, names in groups(given.files, given.build)]
        for job in work:
            said, count = job.result()
            runs += count
            findings += len(said)
            for text in said:
                print(text, end="", flush=True)
    if findings:
        print(f"clang-tidy: findings in {findings} of {len(given.files)} files")
        return 1
    print(f"clang-tidy: {runs} runs")
    print(f"clang-tidy: {len(given.files)} files clean")
    return 0


if __name__ == "__main__":
    sys.exit(main())
