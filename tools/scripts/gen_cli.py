#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what describes the command lines, from the options that the programs have.

    tools/scripts/gen_cli.py BIN            writes docs/Cli.md, docs/man/*.1, tools/completion/*
    tools/scripts/gen_cli.py BIN --check    fails where one of these is out of date

BIN is the folder of the programs, which print their options with --print-options-json.
"""

import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = ("graft-opt", "graft-launch", "graft-diff", "graft-extract", "graft-reduce")
SUMMARY = {
    "graft-opt": "rewrites a TensorFlow training graph for many devices",
    "graft-launch": "runs a command for each task of a cluster, to try it out",
    "graft-diff": "says what is different about two graphs",
    "graft-extract": "makes a graph of a part of a graph",
    "graft-reduce": "makes the smallest graph that is still of interest",
}
SYNOPSIS = {
    "graft-opt": "graft-opt [options] INPUT [-o OUTPUT]",
    "graft-launch": "graft-launch [options] CLUSTER -- COMMAND...",
    "graft-diff": "graft-diff [options] GRAPH GRAPH",
    "graft-extract": "graft-extract [options] GRAPH [-o OUTPUT]",
    "graft-reduce": "graft-reduce [options] GRAPH [-- ARGUMENT...]",
}
# Values that are names of files, by what an option calls its value.
FILES = {"file", "name|file"}
EVERY = [
    {"name": "--help", "help": "Print the options and exit; --help-all of graft-opt prints all of them"},
    {"name": "--version", "help": "Print the version and exit"},
]


def options_of(bin_dir, program):
    """The options that the program prints."""
    path = os.path.join(bin_dir, program)
    done = subprocess.run([path, "--print-options-json"], stdout=subprocess.PIPE, check=True)
    table = json.loads(done.stdout)
    version = subprocess.run([path, "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout
    table["version"] = version.split()[1]
    return table


def categories(table):
    """(category, its options) in the order in which the program lists them."""
    groups = {}
    for option in table["options"]:
        groups.setdefault(option["category"], []).append(option)
    return groups.items()


def spelled(option):
    """--name=<value>, as it is typed."""
    name, value = option["name"], option.get("value")
    if not value:
        return name
    if len(name) == 2:
        return f"{name} <{value}>"
    return f"{name}[=<{value}>]" if option["optional"] else f"{name}=<{value}>"


# === docs/Cli.md ===


def cell(text):
    """Text in a table: what is between angles or stars is no markup."""
    return re.sub(r"([|*<>])", r"\\\1", text)


def page(tables):
    lines = [
        "# The command line",
        "",
        "Use this page when you look for an option. Made by `tools/scripts/gen_cli.py` from the options that the programs have; so are",
        "the manual (`man graft-opt`) and the completions of bash and zsh in `tools/completion`, which `cmake --install` puts where",
        "these shells look.",
        "",
        "An option that takes a value takes one: given twice it is an error, unless it is marked as repeated. `@FILE` among the",
        "arguments stands for the arguments in FILE.",
    ]
    for program, table in tables.items():
        lines += ["", f"## {program}", "", f"`{SYNOPSIS[program]}` {SUMMARY[program]}."]
        for category, options in categories(table):
            if len(dict(categories(table))) > 1:
                lines += ["", f"### {category}"]
            lines += ["", "| option | |", "|---|---|"]
            for option in options:
                text = cell(option["help"])
                words = option.get("words")
                if words and not all(re.search(rf"\b{re.escape(word)}\b", option["help"]) for word in words):
                    text += ". One of " + ", ".join(f"`{word}`" for word in words)
                if option["repeated"]:
                    text += ". Repeated"
                name = spelled(option).replace("|", "\\|")
                lines.append(f"| `{name}` | {text} |")
        lines += ["", "Exit status:", "", "| status | says |", "|---|---|"]
        lines += [f"| {row['status']} | {cell(row['meaning'])} |" for row in table["exits"]]
    return "\n".join(lines) + "\n"


# === Manual ===


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.splitlines())


def manual(program, table):
    lines = [
        '.\\" Made by tools/scripts/gen_cli.py; SPDX-License-Identifier: Apache-2.0',
        f'.TH {program.upper()} 1 "" "graft {table["version"]}" "User Commands"',
        ".SH NAME",
        roff(f"{program} - {SUMMARY[program]}"),
        ".SH SYNOPSIS",
        ".B " + roff(SYNOPSIS[program]),
        ".SH DESCRIPTION",
    ]
    # The first paragraph is the summary again.
    for paragraph in table["overview"].strip().split("\n\n")[1:]:
        if paragraph.startswith("  "):
            lines += [".PP", ".nf", roff(paragraph), ".fi"]
        else:
            lines += [".PP", roff(paragraph)]
    lines += [".PP", "The first argument is a " + roff(table["positional"].strip("<>").replace("<", "").replace(">", "")) + "."]
    lines += [".SH OPTIONS"]
    for category, options in [*categories(table), ("General", EVERY)]:
        lines.append(f".SS {category}")
        for option in options:
            lines += [".TP", ".B " + roff(spelled(option)), roff(option["help"]) + "."]
            if option.get("repeated"):
                lines.append("Repeated.")
    lines.append(".SH EXIT STATUS")
    for row in table["exits"]:
        lines += [".TP", f".B {row['status']}", roff(row["meaning"]) + "."]
    others = [other for other in PROGRAMS if other != program]
    lines += [".SH SEE ALSO", *(f".BR {other} (1){',' if other != others[-1] else ''}" for other in others), ".PP", roff("The pages in /usr/share/doc/graft, the first of which is README.md.")]
    return "\n".join(lines) + "\n"


# === Completion ===


def kind(option):
    """The words that complete the value, and if files do, too."""
    return option.get("words", []), option.get("value") in FILES


BASH = """# bash completion for graft. Made by tools/scripts/gen_cli.py; SPDX-License-Identifier: Apache-2.0

_graft() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} flag= words= files=
  COMPREPLY=()
  # bash may take "--flag=value" for three words.
  if [[ $current == "=" ]]; then
    flag=$before current=
  elif [[ $before == "=" ]]; then
    flag=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $current == --*=* ]]; then
    flag=${current%%=*} current=${current#*=}
  elif [[ $before == -? ]]; then
    flag=$before
  fi
  case $1:$flag in
@CASES@
  *) flag= ;;
  esac
  if [[ -n $flag ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    if [[ -n $files ]]; then
      compopt -o filenames 2>/dev/null
      mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$current")
    fi
    return
  fi
  if [[ $current == -* ]]; then
    case $1 in
@FLAGS@
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    return
  fi
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$current")
}
complete -F _graft @PROGRAMS@
"""


def bash(tables):
    cases, flags = [], []
    for program, table in tables.items():
        names = []
        for option in table["options"] + EVERY:
            name = option["name"]
            names.append(name + "=" if option.get("value") and not option["optional"] and len(name) > 2 else name)
            words, files = kind(option)
            if option.get("value"):
                cases.append(f"  *{program}:{name}) words='{' '.join(words)}' files={'1' if files else ''} ;;")
        flags.append(f"    *{program}) words='{' '.join(names)}' ;;")
    return BASH.replace("@CASES@", "\n".join(cases)).replace("@FLAGS@", "\n".join(flags)).replace(
        "@PROGRAMS@", " ".join(PROGRAMS)
    )


def zsh(tables):
    """_arguments of all programs."""
    lines = [
        "#compdef " + " ".join(PROGRAMS),
        "# Made by tools/scripts/gen_cli.py; SPDX-License-Identifier: Apache-2.0",
        "",
        "case $service in",
    ]
    for program, table in tables.items():
        lines += [f"{program})", "  _arguments \\"]
        for option in table["options"] + EVERY:
            text = re.sub(r"([\[\]:\\])", r"\\\1", option["help"]).replace("'", "'\\''")
            words, files = kind(option)
            value = option.get("value")
            spec = option["name"]
            if value and len(spec) > 2:
                spec += "=-" if option["optional"] else "="
            spec = ("*" if option.get("repeated") else "") + spec + f"[{text}]"
            if value:
                action = "_files" if files else " "
                if words:
                    action = f"({' '.join(words)})"
                if words and files:
                    action = f'_alternative "words\\:word\\:({" ".join(words)})" "files\\:file\\:_files"'
                spec += f"{':' if not option['optional'] else '::'}{value.replace(':', ' ')}:{action}"
            lines.append(f"    '{spec}' \\")
        lines += {
            "graft-opt": ["    ':graph file or SavedModel:_files'"],
            "graft-launch": ["    ':cluster file:_files' \\", "    '*:: :_normal'"],
        }.get(program, ["    '*:graph file:_files'"])
        lines.append("  ;;")
    return "\n".join([*lines, "esac", ""])


def main():
    bin_dir, *flags = sys.argv[1:] or [""]
    if not bin_dir or flags not in ([], ["--check"]):
        sys.exit(__doc__)
    tables = {program: options_of(bin_dir, program) for program in PROGRAMS}
    files = {"docs/Cli.md": page(tables), "tools/completion/graft.bash": bash(tables), "tools/completion/_graft": zsh(tables)}
    for program, table in tables.items():
        files[f"docs/man/{program}.1"] = manual(program, table)
    stale = []
    for name, now in files.items():
        path = os.path.join(ROOT, name)
        then = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                then = file.read()
        if then == now:
            continue
        stale.append(name)
        if not flags:
            with open(path, "w", encoding="utf-8") as file:
                file.write(now)
    if flags and stale:
        sys.exit("\n".join(f"{name} is out of date; tools/scripts/gen_cli.py BIN makes it again" for name in stale))


main()
