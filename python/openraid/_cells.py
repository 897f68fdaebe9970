"""Cells of a sweep: one run of the program each, and how it is kept."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Union

Value = Union[str, int, float, bool]
#: One configuration: options of the program without their dashes, as ``{"array": "raid5x8", "depth": 16}``.
Cell = Dict[str, Value]

#: The key that is an argument without a name.
_PLACE = {"simulate": "array"}


class ProgramFailed(RuntimeError):
    """The program does not start."""


class CellFailed(RuntimeError):
    """The program refused a configuration or failed: its own words."""


def grid(axes: Mapping[str, Union[Value, Sequence[Value]]]) -> List[Cell]:
    """Every combination of the values: ``{"array": ["raid5x8", "raid6x8"], "depth": [1, 16], "effort": "quick"}``."""
    if not axes:
        raise ValueError("the grid has no axis; give at least one, as in {'array': ['raid5x8']}")
    lists: List[List[Value]] = []
    for name, values in axes.items():
        several = isinstance(values, Iterable) and not isinstance(values, (str, bytes))
        known: List[Value] = list(values) if several else [values]  # type: ignore[arg-type, list-item]
        if not known:
            raise ValueError(f"the axis {name!r} has no value")
        lists.append(known)
    return [dict(zip(axes, values)) for values in itertools.product(*lists)]


def arguments(verb: str, cell: Mapping[str, Value]) -> List[str]:
    """The command line of a cell, without the program."""
    words = [verb]
    place = _PLACE.get(verb)
    if place is not None and place in cell:
        words.append(str(cell[place]))
    for name in sorted(cell):
        value = cell[name]
        if name == place or value is False or value is None:
            continue
        option = "--" + name.replace("_", "-")
        words += [option] if value is True else [option, str(value)]
    return words + ["--json"]


def key(stamp: str, verb: str, cell: Mapping[str, Value]) -> str:
    """The name under which a cell is kept: other with another program."""
    text = json.dumps([stamp, arguments(verb, cell)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def stamp(program: str) -> str:
    """What tells one build of the program from another: its version and a digest of its file."""
    try:
        version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise ProgramFailed(f"{program}: it does not start: {error}; name the program with binary=") from error
    found = next((Path(folder) / program for folder in _folders(program) if (Path(folder) / program).is_file()), None)
    digest = hashlib.sha256(found.read_bytes()).hexdigest()[:16] if found else "unknown"
    return f"{version} {digest}"


def _folders(program: str) -> Iterator[str]:
    if os.sep in program:
        yield ""
    else:
        yield from os.environ.get("PATH", "").split(os.pathsep)


def run(program: str, verb: str, cell: Mapping[str, Value]) -> Dict[str, Any]:
    """Run one cell; the document that the program prints."""
    done = subprocess.run([program, *arguments(verb, cell)], capture_output=True, text=True, check=False)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        document = None
    if done.returncode == 0 and isinstance(document, dict):
        return document
    words = document.get("error") if isinstance(document, dict) else None
    ended = f"was killed by signal {-done.returncode}" if done.returncode < 0 else f"ended with {done.returncode}"
    reason = words or done.stderr.strip() or f"the program {ended}"
    raise CellFailed(str(reason))


def load(folder: Path, name: str) -> Union[Dict[str, Any], None]:
    """A cell that is kept; none if there is none, or if its file is broken."""
    try:
        document = json.loads((folder / f"{name}.json").read_text())
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def keep(folder: Path, name: str, document: Mapping[str, Any]) -> None:
    """Keep a cell: wholly or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
    with os.fdopen(handle, "w") as file:
        json.dump(document, file)
    os.replace(beside, folder / f"{name}.json")
