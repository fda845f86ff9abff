# SPDX-License-Identifier: Apache-2.0
"""The messages of graft about a graph: remarks, warnings and errors."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Sequence, Tuple, Union


@dataclass(frozen=True)
class Diagnostic:
    """A remark, a warning or an error; docs/Remarks.md lists them by their ids."""

    level: str
    """`error`, `warning` or `remark`."""
    message: str
    id: str = ""
    """Stable, such as `reduction`; empty for most errors."""
    node: str = ""
    """The name of a node of the input; empty: of the whole graph."""
    pass_name: str = ""
    """The pass that says it, such as `insert-reductions`."""
    facts: Dict[str, Union[str, int, List[str]]] = field(default_factory=dict)
    """The facts of the message, by stable names: `{"type": "Partial", "scale": -1}`."""
    notes: List[str] = field(default_factory=list)
    file: str = ""
    """The file that it is about, if that is not the graph."""
    line: int = 0
    """From 1 on, of a text; 0: not known."""

    @classmethod
    def of(cls, entry: Dict[str, Any]) -> "Diagnostic":
        """Makes a diagnostic from an element of `--remarks=FILE.json`."""
        return cls(
            level=entry["Level"],
            message=entry["Message"],
            id=entry.get("Id", ""),
            node=entry.get("Node", ""),
            pass_name=entry.get("Pass", ""),
            facts=dict(entry.get("Facts", {})),
            notes=list(entry.get("Notes", [])),
            file=entry.get("File", ""),
            line=entry.get("Line", 0),
        )

    def __str__(self) -> str:
        node = f"node '{self.node}': " if self.node else ""
        notes = "".join(f"\n  note: {note}" for note in self.notes)
        return f"{self.level}: {node}{self.message}{notes}"


class GraftError(Exception):
    """graft did not write an output. `diagnostics` says why, `status` is the exit status of graft-opt."""

    def __init__(self, text: str, status: int, diagnostics: Sequence[Diagnostic], command: Sequence[str]):
        super().__init__(text)
        self.status = status
        self.diagnostics = list(diagnostics)
        self.command = list(command)

    def __reduce__(self) -> Tuple[Any, ...]:
        """All of it, so that it comes out of a process pool."""
        return type(self), (str(self), self.status, self.diagnostics, self.command)

    @property
    def errors(self) -> List[Diagnostic]:
        """The diagnostics that are errors."""
        return [each for each in self.diagnostics if each.level == "error"]


class InputError(GraftError):
    """The graph, or a file beside it, is at fault, or the step is not proved and `strict` asks for a proof (status 1)."""


class UsageError(GraftError, ValueError):
    """An argument is at fault (status 2)."""


class InternalError(GraftError):
    """A fault of graft (status 70, or a signal): please report it, with the command and the graph."""


def error_of(status: int, text: str, diagnostics: Sequence[Diagnostic], command: Sequence[str]) -> GraftError:
    """The exception for an exit status."""
    kind = {1: InputError, 2: UsageError}.get(status, InternalError)
    errors = [str(each) for each in diagnostics if each.level == "error"]
    if status == 1 and errors:
        text = "\n".join(errors)
    return kind(text.strip() or f"graft-opt ended with status {status}", status, diagnostics, command)
