# SPDX-License-Identifier: Apache-2.0
"""The claims of `graft-opt --emit=types` about a tensor, and the check that the tensors of the replicas keep them."""

import dataclasses
import re
from typing import Callable, Dict, List, Optional, Sequence

import numpy as np

LINE = re.compile(r"^(\S+):(\d+) = (\w+)(?:\((\w+)\))?((?: .*)?)$")


@dataclasses.dataclass
class Claim:
    layout: str  # Replicated, Sharded, Partial or Varying
    of: str = ""  # the axis, or the operation
    k: int = 0
    words: frozenset = frozenset()
    numbers: Optional[int] = None  # the axis of row numbers
    assumed: bool = False  # it rests on what nobody proved
    shape: Optional[List[str]] = None
    value: Optional[List[str]] = None

    def __str__(self):
        of = f"({self.of})" if self.of else ""
        return " ".join([self.layout + of, *([f"k={self.k}"] if self.k else []), *sorted(self.words)])


def sizes(text: Optional[str]) -> Optional[List[str]]:
    return None if text is None else [size for size in text[1:-1].split(",") if size]


def parse(text: str) -> Dict[str, Claim]:
    """By tensor of the input: what is claimed of what replicas compute."""
    claims = {}
    for line in text.splitlines():
        match = LINE.match(line)
        if not match or " inserted=" in line:
            continue
        name, port, layout, of, rest = match.groups()
        fields = dict(word.split("=", 1) for word in rest.split() if "=" in word)
        words = frozenset(word for word in rest.split() if "=" not in word and "(" not in word)
        numbers = re.search(r" rows\((\d+)\)", rest)
        claims[f"{name}:{port}"] = Claim(
            layout,
            of or "",
            int(fields.get("k", 0)),
            words,
            int(numbers[1]) if numbers else None,
            "assumes" in fields,
            sizes(fields.get("shape")),
            sizes(fields.get("value")),
        )
    return claims


def size_of(text: str, rows: Callable[[str], Optional[float]], replicas: int) -> Optional[float]:
    """The number that a size is on a replica; None where nobody can say."""
    if text in ("?", "same"):
        return None
    result = 1.0
    for factor in text.split("*"):
        base, _, power = factor.partition("^")
        if re.fullmatch(r"-?\d+", base):
            number = float(base)
        elif base == "N":
            number = replicas
        else:
            number = rows(base)
            if number is None:
                return None
        result *= number ** int(power or 1)
    return result


def close(got, want, slack: float) -> bool:
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return False
    slack *= 50.0 if want.dtype == np.float16 else 1.0
    if want.dtype.kind in "fcV" or got.dtype.kind in "f":
        got, want = got.astype(np.complex128), want.astype(np.complex128)
        finite = np.abs(want[np.isfinite(want)])
        limit = 2e-4 * slack * max(1e-3, float(np.max(finite, initial=0.0)))
        with np.errstate(invalid="ignore"):
            return bool(np.all((np.abs(got - want) <= limit) | (got == want) | (np.isnan(got) & np.isnan(want))))
    return np.array_equal(got, want)


def infinite(true, value) -> bool:
    """Returns true if each nonzero value is no number either: zero times infinity, as in the single-device step."""
    return true.dtype.kind in "fc" and bool(np.any(np.isnan(true)) and np.all((value == 0) | np.isnan(value)))


REDUCE = {"sum": np.add, "min": np.minimum, "max": np.maximum, "and": np.logical_and, "or": np.logical_or}


def combine(layout: str, of: str, values: Sequence[np.ndarray]) -> np.ndarray:
    """The tensors of the replicas as one. Raises ValueError where they do not fit."""
    if layout == "Replicated":
        return values[0]
    if layout == "Sharded":
        return np.concatenate(values, int(of))
    if any(value.shape != values[0].shape for value in values):
        raise ValueError("sums of different shapes")
    return REDUCE[of].reduce(list(values)).astype(values[0].dtype)


def scaled(value: np.ndarray, replicas: int, k: int) -> np.ndarray:
    if k == 0:
        return value
    kind = np.complex128 if value.dtype.kind == "c" else np.float64
    return value.astype(kind) * float(replicas) ** -k


def sorted_rows(value: np.ndarray, axis: int) -> np.ndarray:
    if value.size == 0:
        return value
    rows = np.moveaxis(value, axis, 0).reshape(value.shape[axis], -1)
    if rows.dtype.kind in "fc":
        order = np.lexsort(np.round(rows.real, 4).T) if rows.size else np.arange(len(rows))
    else:
        order = np.lexsort(rows.astype(str).T) if rows.size else np.arange(len(rows))
    return rows[order]


def relates(layout: str, of: str, k: int, true, local, slack=1.0, joined=False) -> bool:
    """Returns true if true = N^-k * combine(local)."""
    if layout == "Replicated" and not all(close(value, local[0], slack) for value in local[1:]):
        return False
    try:
        got = scaled(combine(layout, of, local), len(local), k)
    except (ValueError, TypeError, IndexError, np.exceptions.AxisError if hasattr(np, "exceptions") else ValueError):
        return False
    if joined and got.shape == true.shape:
        return close(sorted_rows(got, int(of)), sorted_rows(true, int(of)), slack)
    return close(got, true, slack)


def alike(claim: Claim, true, local: List[np.ndarray]):
    """The values of the replicas as the true value. Digits that may be rounding errors need only be of one number."""
    if claim.layout == "Varying" or claim.k != 0:
        return true
    try:
        return combine(claim.layout, claim.of, local)
    except ValueError:
        return true


def broken(claim: Claim, true, local: List[np.ndarray], rows, slack: float) -> Optional[str]:
    """The first false claim; None if all hold. `rows(replica, name)`: the rows that a replica has of it."""
    replicas = len(local)
    for replica, value in enumerate(local):
        if claim.shape is not None:
            if len(claim.shape) != value.ndim:
                return f"rank {len(claim.shape)}: replica {replica} has {value.shape}"
            for axis, (text, size) in enumerate(zip(claim.shape, value.shape)):
                said = size_of(text, lambda name: rows(replica, name), replicas)
                # A reshape of no elements may choose any size for -1.
                if value.size == 0 and true.ndim == value.ndim and true.size == 0 and true.shape[axis] == size:
                    continue
                if said is not None and said != size:
                    return f"shape {claim.shape}: replica {replica} has {value.shape}"
            for axis, text in enumerate(claim.shape):
                if text == "same" and (true.ndim <= axis or true.shape[axis] != value.shape[axis]):
                    return f"shape {claim.shape}: the true one is {true.shape}, that of replica {replica} {value.shape}"
        if claim.value is not None and value.size == len(claim.value):
            for text, number in zip(claim.value, value.ravel()):
                said = size_of(text, lambda name: rows(replica, name), replicas)
                if said is not None and said != number:
                    return f"elements {claim.value}: replica {replica} has {value.ravel()}"
        if claim.words & {"zero", "nothing"} and np.any(value) and not infinite(true, value):
            return f"zero: replica {replica} has {value.ravel()[:4]}"
    if claim.value is not None and "size" in claim.words:
        # As a number, each element is so many times smaller than the true one.
        for i, text in enumerate(claim.value):
            power = sum(
                (int(p or 1) if base.startswith("b(") else -int(p or 1))
                for base, _, p in (factor.partition("^") for factor in text.split("*"))
                if base.startswith("b(") or base == "N"
            )
            if text in ("?", "same") or "r(" in text or i >= true.size:
                continue
            if true.ravel()[i] != local[0].ravel()[i] * float(replicas) ** power:
                return f"elements {claim.value}: the true ones are {true.ravel()}, those of replica 0 {local[0].ravel()}"
    if claim.words & {"size", "nothing", "indices"}:
        return None
    if claim.numbers is not None:
        first, moved = 0, []
        for value in local:
            moved.append(value + first)
            first += value.shape[claim.numbers] if claim.numbers < value.ndim else 0
        return None if relates("Sharded", str(claim.numbers), 0, true, moved) else "row numbers: the true ones are others"
    if claim.layout == "Varying" or claim.assumed:
        return None
    if not relates(claim.layout, claim.of, claim.k, true, local, slack, "joined" in claim.words):
        shown = ", ".join(str(value.ravel()[:4]) for value in local)
        return f"{claim}: {true.shape} {true.ravel()[:4]} is not made of {local[0].shape} {shown}"
    return None


def proofs(true, local: List[np.ndarray]) -> List[str]:
    """The types that would be right."""
    found = []
    layouts = [("Replicated", ""), *[("Sharded", str(axis)) for axis in range(true.ndim)], ("Partial", "sum")]
    if true.size == 0 or not np.any(true) or true.dtype.kind not in "fciu":
        return found
    for k in (0, 1, -1):
        for layout, of in layouts:
            if relates(layout, of, k, true, local):
                found.append(str(Claim(layout, of, k)))
    return found
