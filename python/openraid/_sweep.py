"""Sweeps: many cells, by threads of this machine or as tasks of a Ray cluster."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, Generator, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _cells
from ._cells import Cell, CellFailed, ProgramFailed, Value

#: Seconds between two lines of progress.
_EVERY = 5.0
#: Times that Ray begins a cell again if its worker died.
_RETRIES = 3


@dataclass
class Sweep:
    """The outcome of a sweep: for each configuration a document of the program, or why there is none."""

    cells: List[Cell]
    #: The documents, in the order of the cells.
    documents: List[Optional[Dict[str, Any]]]
    #: Cells without a document, by their position: the program's words.
    failures: Dict[int, str] = field(default_factory=dict)
    #: Cells that were kept from an earlier run.
    kept: int = 0

    def rows(self) -> Iterator[Dict[str, Any]]:
        """A flat row for each cell, and for each level of a plan: the configuration and the figures."""
        for number, (cell, document) in enumerate(zip(self.cells, self.documents)):
            if document is None:
                yield {**cell, "error": self.failures.get(number, "not run")}
            elif "levels" in document:
                yield from (({**cell, **row}) for row in _levels(document))
            else:
                figures = {name: value for name, value in document.items() if isinstance(value, (int, float, str))}
                steady = (document.get("result") or {}).get("steady")
                yield {**figures, **({} if steady is None else {"steady": steady}), **cell}

    def frame(self) -> Any:
        """The rows as a pandas frame; needs pandas."""
        try:
            import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]  # optional
        except ImportError as error:
            raise ImportError("pandas is not installed: install it, or take the rows() instead") from error
        return pandas.DataFrame(list(self.rows()))


def _levels(document: Mapping[str, Any]) -> Iterator[Dict[str, Any]]:
    for body in [document, *document.get("more", [])]:
        for level in body["levels"]:
            machine = {"drives": body["drives"], "drive": body["drive"], "bus": body.get("bus")}
            if "impossible" in level:
                yield {**machine, "array": level["impossible"]["array"], "error": level["impossible"]["reason"]}
                continue
            plan = level["possible"]
            loss = plan.get("loss") or {}
            yield {
                **machine,
                "array": plan["array"],
                "capacity": plan["capacity"],
                **plan["healthy"],
                # Percent by which requests each second may be lower and higher.
                "low_percent": plan.get("low_percent"),
                "high_percent": plan.get("high_percent"),
                # False: the load had not become steady when it was measured.
                "steady": plan.get("steady"),
                "without_journal_iops": ((plan.get("journal") or {}).get("without") or {}).get("iops"),
                "degraded_iops": (plan.get("degraded") or {}).get("iops"),
                # The chance of either loss within five years, of the whole array, and of sectors only.
                "five_years": loss.get("five_years"),
                "array_five_years": (loss.get("array_five_years") or [None])[0],
                "sector_five_years": (loss.get("sector_five_years") or [None])[0],
                "recommended": (body.get("recommendation") or {}).get("array") == plan["array"],
            }


def sweep(
    configurations: Union[Mapping[str, Union[Value, Sequence[Value]]], Sequence[Cell]],
    *,
    verb: str = "simulate",
    out: Union[str, Path, None] = None,
    binary: str = "openraid-lab",
    engine: str = "auto",
    address: Optional[str] = None,
    workers: Optional[int] = None,
    progress: bool = True,
) -> Sweep:
    """Run every configuration.

    ``configurations`` is a grid (each axis with its values; every combination is run) or a list of cells. A cell has the
    options of ``openraid-lab simulate`` or ``openraid-lab plan`` without dashes; ``array`` is simulate's argument.

    ``engine`` is ``local`` (threads, nothing but the standard library), ``ray``, or ``auto``: Ray if it is installed.
    ``address`` is that of a Ray cluster; without it Ray starts on this machine. The same build of the program must be at
    ``binary`` on every worker: a cell of a worker with another build is in ``failures``. A worker that dies costs its cell
    alone: Ray runs it again.

    With ``out``, a cell is kept there as soon as it ends, by whoever ran it; a sweep that is started again runs only what is
    missing. On a cluster ``out`` is written by this process. Another build of the program runs everything again.

    Raises ``ProgramFailed`` if the program does not start. A configuration that the program refuses is in ``failures``.
    """
    if verb not in ("simulate", "plan"):
        raise ValueError(f"verb {verb!r}: give 'simulate' or 'plan'")
    if engine not in ("auto", "local", "ray"):
        raise ValueError(f"engine {engine!r}: give 'auto', 'local' or 'ray'")
    if address is not None and engine == "local":
        raise ValueError("address is that of a Ray cluster; leave it out with engine='local'")
    cells = _cells.grid(configurations) if isinstance(configurations, Mapping) else [dict(cell) for cell in configurations]
    mark = _cells.stamp(binary)
    folder = Path(out) / "cells" if out is not None else None
    result = Sweep(cells, [None] * len(cells))
    names = [_cells.key(mark, verb, cell) for cell in cells]
    todo: List[int] = []
    for number, name in enumerate(names):
        document = _cells.load(folder, name) if folder else None
        result.documents[number] = document
        if document is None:
            todo.append(number)
    result.kept = len(cells) - len(todo)
    tell = _teller(len(cells)) if progress else lambda done: None
    tell(result.kept)
    if not todo:
        return result
    if engine == "ray" or address is not None or (engine == "auto" and _has_ray()):
        ended = _by_ray(binary, verb, cells, todo, address, workers, mark)
    else:
        ended = _by_threads(binary, verb, cells, todo, workers)
    # Whatever ends the loop, also Ctrl-C, ends the engine: cells that have not begun do not begin any more.
    with closing(ended):
        for done, (number, document, error) in enumerate(ended, result.kept + 1):
            if document is None:
                result.failures[number] = error
            else:
                result.documents[number] = document
                if folder:
                    _cells.keep(folder, names[number], document)
            tell(done)
    return result


def _has_ray() -> bool:
    try:
        import ray  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: F401  # optional
    except ImportError:
        return False
    return True


def _teller(all_cells: int) -> Callable[[int], None]:
    last = [float("-inf")]

    def tell(done: int) -> None:
        now = time.monotonic()
        if done == all_cells or now - last[0] >= _EVERY:
            last[0] = now
            print(f"{done} of {all_cells} cells", file=sys.stderr, flush=True)

    return tell


Ended = Generator[Tuple[int, Optional[Dict[str, Any]], str], None, None]

#: The build of each program, as this process has found it.
_builds: Dict[str, str] = {}


def _one(binary: str, verb: str, cell: Cell, mark: Optional[str]) -> Tuple[Optional[Dict[str, Any]], str]:
    """Run a cell. With ``mark``, only by the build of the program that has it: results of two builds are not mixed."""
    try:
        here = None if mark is None else _builds.get(binary) or _builds.setdefault(binary, _cells.stamp(binary))
        if here != mark:
            return None, f"its worker has another build of {binary} ({here}) than this machine ({mark}); install the same build"
        return _cells.run(binary, verb, cell), ""
    except (CellFailed, ProgramFailed, OSError) as error:
        return None, str(error)


def _by_threads(
    binary: str, verb: str, cells: Sequence[Cell], todo: Sequence[int], workers: Optional[int]
) -> Ended:
    pool = ThreadPoolExecutor(max_workers=workers or os.cpu_count() or 1)
    try:
        waiting = {pool.submit(_one, binary, verb, cells[number], None): number for number in todo}
        for future in as_completed(waiting):
            document, error = future.result()
            yield waiting[future], document, error
    finally:
        pool.shutdown(cancel_futures=True)


def _by_ray(
    binary: str,
    verb: str,
    cells: Sequence[Cell],
    todo: Sequence[int],
    address: Optional[str],
    workers: Optional[int],
    mark: str,
) -> Ended:
    import ray  # type: ignore[import-not-found, import-untyped, unused-ignore]  # optional

    starts_ray = not ray.is_initialized()
    if starts_ray:
        options: Dict[str, Any] = {} if address else {"num_cpus": workers}
        try:
            ray.init(address=address, log_to_driver=False, **options)
        except ConnectionError as error:
            raise ConnectionError(
                f"no Ray cluster answers at {address}: start one, or give its address; if it was made by `ray start`, "
                "set RAY_AUTH_MODE=token here too, and RAY_AUTH_TOKEN if its token is not in ~/.ray/auth_token"
            ) from error
    # The package need not be installed on the workers: it is sent with the task.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__package__])
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(_one)
    try:
        # A few for each processor at a time: ten thousand cells are no ten thousand tasks in memory.
        room = max(8, 4 * int(ray.cluster_resources().get("CPU", 1)))
        left = iter(todo)
        waiting: Dict[Any, int] = {}
        while True:
            for number in left:
                waiting[task.remote(binary, verb, cells[number], mark)] = number
                if len(waiting) >= room:
                    break
            if not waiting:
                return
            done, _ = ray.wait(list(waiting), num_returns=1)
            for reference in done:
                number = waiting.pop(reference)
                try:
                    document, error = ray.get(reference)
                except ray.exceptions.WorkerCrashedError:
                    document, error = None, f"its worker died {_RETRIES + 1} times"
                except ray.exceptions.RayError as trouble:
                    document, error = None, f"Ray could not run it: {trouble}"
                yield number, document, error
    finally:
        if starts_ray:
            ray.shutdown()
