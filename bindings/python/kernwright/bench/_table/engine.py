"""Rows of the table: each operation checked, timed beside its peers, and put into a document."""

from __future__ import annotations

import dataclasses
import datetime
import math
import statistics
from collections.abc import Callable, Iterable
from typing import Any

import kernwright as kw
from kernwright import _core
from kernwright.bench._run import VERSION, device_facts
from kernwright.bench._table import clock, peers
from kernwright.bench._table.clock import Clock, Subject
from kernwright.bench._table.plan import Planned
from kernwright.bench._table.work import Work, as_tuple
from kernwright.errors import OutOfMemory

Row = dict[str, Any]
_CEILING = 1 << 28  # elements of the copy that shares are told of
_PEER_FACTOR = 10.0  # a peer may be so much less exact
_EFFORT: dict[str, Any] = {"min_samples": 1, "max_samples": 1, "max_seconds": 1.0, "noise": 1.0}


@dataclasses.dataclass(frozen=True)
class Options:
    peers: tuple[str, ...] = peers.NAMES
    seconds: float = 1.0  # of measuring, a row


def poison(results: Iterable[Any]) -> None:
    """Fills results with NaN or -1: memory that the pool gives to the next run."""
    for result in results:
        if isinstance(result, kw.Array) and result.size and result.is_contiguous:
            result.reshape(-1).view("uint8")._fill(255)


def checked_error(work: Work) -> float:
    """The error of ours in one run, over memory that was poisoned before."""
    work.expected()
    if work.inplace:
        return work.error(work.ours(*work.copies()))
    first = as_tuple(work.ours(*work.arrays))
    inputs = {a.ptr for a in work.arrays}
    poison(r for r in first if isinstance(r, kw.Array) and r.ptr not in inputs)
    del first
    return work.error(work.ours(*work.arrays))


def launches(work: Work, stream: kw.Stream) -> int | None:
    """Kernels of one call; None where it cannot be captured."""
    graph = kw.Graph()
    try:
        with graph.capture(stream):
            work.ours(*work.arrays)
    except Exception:  # what waits for the device, for one, has no number of its own
        return None
    return sum(1 for node in graph.nodes if node.name)


class Engine:
    """Measures on the current device, on a stream of its own."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.device = kw.current_device()
        self.simulated = self.device.is_simulated
        self.stream = kw.Stream()
        self.adapters, self.missing = peers.found(options.peers)
        self.copy_gb_per_s = 0.0
        if self.simulated:
            self._counter = _core._Timer(self.device)
            return
        with self.stream:
            self.clock = Clock(self.stream)
            self._measure_copy()

    def _measure_copy(self) -> None:
        x, y = kw.random.normal(_CEILING, seed=1), kw.empty(_CEILING)
        copy = Subject("copy", lambda i: y._assign(x), self._captured)
        self.clock.measure([copy], 2.0 * x.nbytes, 1, 0.2)
        if copy.error is not None:
            raise kw.Error(f"a copy of {x.nbytes} bytes failed: {copy.error}")
        self.copy_gb_per_s = 2 * x.nbytes / statistics.median(copy.samples) / 1e6

    def _captured(self, run: Callable[[], object]) -> Callable[[], object]:
        return clock.graph_of(run, self.stream)

    def document(self, rows: list[Row]) -> dict[str, Any]:
        now = datetime.datetime.now(datetime.timezone.utc)
        return {
            "v": VERSION,
            "kind": "bench",
            "created": now.isoformat(timespec="seconds"),
            "kernwright": _core.__version__,
            "nvrtc": _core.nvrtc_status().get("version"),
            "device": device_facts(self.device),
            "copy_gb_per_s": self.copy_gb_per_s or None,
            "peers": {adapter.name: adapter.version for adapter in self.adapters},
            "missing": self.missing,
            "rows": rows,
        }

    def row(self, planned: Planned) -> Row:
        """Never raises for a fault of the operation or of a peer."""
        row: Row = {
            "name": planned.operation.name,
            "axes": planned.axes,
            "status": "ok",
            "error": None,
            "checked": False,
        }
        try:
            with self.stream:
                self._fill_row(row, planned)
        except OutOfMemory as error:
            row.update(status="skipped", error=clock.in_a_line(error))
        except Exception as error:
            row.update(status="error", error=clock.in_a_line(error))
        return row

    def _fill_row(self, row: Row, planned: Planned) -> None:
        work = planned.operation.make(planned.shape, planned.dtype)
        work.lay(planned.layout)
        row["moved"] = work.moved
        off = checked_error(work)
        row.update(checked=True, off=_number(off), tolerance=work.tolerance)
        row["launches"] = launches(work, self.stream)
        if not off <= work.tolerance:
            row.update(status="wrong", error=f"an error of {off:.2g}, above {work.tolerance:.2g}")
            return
        if self.simulated:
            self._count(row, work)
        else:
            self._time(row, work)

    def _count(self, row: Row, work: Work) -> None:
        """Instructions and memory transactions: the same in each run."""
        found = self._counter.measure(lambda: work.ours(*work.arrays), policy="warm", **_EFFORT)
        counts = found["counts"]
        cost = float(counts["instructions"] + counts["transactions"]) or 1.0  # a plain copy
        row.update(unit="counts", policy="warm", median=cost, interval=[cost, cost], noise=0.0,
                   samples=[cost], counts=counts)  # fmt: skip

    # ---- a GPU

    def _time(self, row: Row, work: Work) -> None:
        copies = clock.copies_wanted(work.moved, int(self.device.attributes["l2_cache_size"]))
        sets = [work.arrays, *(work.copies() for _ in range(copies - 1))]
        ours = Subject("kernwright", lambda i: work.ours(*sets[i]), self._captured)
        subjects: list[Subject] = [ours]
        found: dict[str, Any] = {}
        for adapter in self.adapters:
            made = self._peer(adapter, work, sets, found)
            if made is not None:
                subjects.append(made)
        self.clock.measure(subjects, work.moved, copies, self.options.seconds)
        if not ours.samples:
            raise kw.Error(str(ours.error))
        self._write(row, work, ours, copies)
        self._compare(row, ours, subjects[1:], found)
        subjects.clear()
        for adapter in self.adapters:
            adapter.release()
        kw.memory.trim()

    def _peer(
        self, adapter: Any, work: Work, sets: list[list[kw.Array]], found: dict[str, Any]
    ) -> Subject | None:
        """A peer's subject with its result looked at; its failure is kept by name."""
        try:
            with adapter.within(self.stream):
                function = adapter.function(work)
                if function is None:
                    return None
                own = work.copies() if work.inplace else sets[0]
                arrays = [adapter.array(a) for a in own]
                off = work.error(function(*arrays))
                theirs = [[adapter.array(a) for a in one] for one in sets]
        except Exception as error:
            found[adapter.name] = {"error": clock.in_a_line(error)}
            return None
        found[adapter.name] = {"off": _number(off)}
        if not off <= max(_PEER_FACTOR * work.tolerance, 1e-5):
            found[adapter.name]["error"] = f"computes something else: an error of {off:.2g}"
        return Subject(
            adapter.name,
            lambda i: function(*theirs[i]),
            adapter.captured,
            lambda: adapter.within(self.stream),
        )

    def _write(self, row: Row, work: Work, ours: Subject, copies: int) -> None:
        median = statistics.median(ours.samples)
        rate = work.moved / median / 1e6
        row.update(
            unit="ms",
            policy=ours.policy,
            batch=ours.batch,
            copies=copies,
            median=median,
            interval=list(clock.interval(ours.samples)),
            noise=clock.noise(ours.samples),
            samples=[float(f"{s:.6g}") for s in ours.samples],
            gb_per_s=rate,
        )
        if work.flops:
            row["tflop_per_s"] = work.flops / median / 1e9
        if copies > 1 or ours.policy == "cold":  # what stays in L2 has no share of the memory's
            row["of_copy"] = rate / self.copy_gb_per_s
        if ours.error is not None:
            row["note"] = ours.error

    def _compare(
        self, row: Row, ours: Subject, others: list[Subject], found: dict[str, Any]
    ) -> None:
        for other in others:
            entry = found[other.name]
            if other.error is not None:
                entry.setdefault("error" if not other.samples else "note", other.error)
            if other.samples:
                entry.update(
                    median=statistics.median(other.samples),
                    interval=list(clock.interval(other.samples)),
                    policy=other.policy,
                    ratio=clock.paired_ratio(ours.samples, other.samples),
                )
        row["peers"] = found
        good = [name for name, e in found.items() if "ratio" in e and "error" not in e]
        if good:
            best = min(good, key=lambda name: found[name]["median"])
            row.update(best_peer=best, times_best_peer=found[best]["ratio"])


def _number(off: float) -> float | None:
    """`off`, or None where it is not finite: JSON has no such numbers."""
    return off if math.isfinite(off) else None
