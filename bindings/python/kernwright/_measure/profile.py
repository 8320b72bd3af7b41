"""profile(): what a part of the program asks of the devices, and how long each thing takes."""

from __future__ import annotations

import contextlib
import json
import os
from collections import defaultdict, namedtuple
from collections.abc import Iterable
from typing import Any

from kernwright import _core
from kernwright._measure.simulated import REMARK
from kernwright._support import html as _html
from kernwright._support.files import told_of
from kernwright._support.words import counted
from kernwright.errors import ArgumentError, Error

Activity = namedtuple(
    "Activity",
    "kind name device stream grid block bytes address thread place host_begin_ms host_ms begin_ms "
    "device_ms",
)
Activity.__module__ = __name__
Activity.__doc__ = """One thing that was asked of a device.

`kind` is "kernel", "graph", "copy", "fill", "allocation", "release" or "annotation"; times are
milliseconds since the profile began, of the host's call and of the work on the device (`device_ms`
is None where there is none: allocations, annotations, and what a capture recorded). `place` is the
line that asked for it; an annotation's `device` is None.
"""

Row = namedtuple("Row", "kind name count total_ms mean_ms best_ms bytes")
Row.__module__ = __name__
Row.__doc__ = """All activities of one kind and name."""

_HEADER = ("kind", "name", "count", "total ms", "mean ms", "best ms", "GB/s")


class Profile:
    """A recording, begun and ended by `with`; then its activities, their sums and a trace."""

    def __init__(self) -> None:
        self._recording: _core._Recording | None = None
        self._activities: list[Activity] | None = None

    def __enter__(self) -> Profile:
        if self._recording is not None or self._activities is not None:
            raise Error("a profile records once: make another with kw.profile()")
        self._recording = _core._Recording()
        return self

    def __exit__(self, *failure: object) -> None:
        recording, self._recording = self._recording, None
        assert recording is not None
        self._activities = [
            Activity(*values)._replace(device_ms=None if values[-1] < 0 else values[-1])
            for values in recording.end()
        ]

    @property
    def activities(self) -> list[Activity]:
        """Everything recorded, in the order of the calls."""
        if self._activities is None:
            raise Error("the profile is not done: leave its `with` block first")
        return self._activities

    @property
    def is_simulated(self) -> bool:
        """Whether a time of it is one of the simulated device, which has no clock of a GPU."""
        devices = {a.device for a in self.activities if a.device_ms is not None}
        return any(device.is_simulated for device in devices)

    @property
    def rows(self) -> list[Row]:
        """Sums by kind and name, the longest first."""
        groups: dict[tuple[str, str], list[Activity]] = defaultdict(list)
        for activity in self.activities:
            groups[activity.kind, activity.name].append(activity)
        rows = [_row(kind, name, group) for (kind, name), group in groups.items()]
        return sorted(rows, key=lambda row: row.total_ms, reverse=True)

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                row.kind,
                row.name,
                str(row.count),
                f"{row.total_ms:.4f}",
                f"{row.mean_ms:.4f}",
                f"{row.best_ms:.4f}",
                _rate(row),
            )
            for row in self.rows
        ]

    def summary(self) -> str:
        """A table of rows; drawn by rich when that is installed. On the simulated device a line
        below it says that the milliseconds are no GPU's."""
        try:
            table = _rich_table(_HEADER, self._cells())
        except ImportError:
            table = _plain_table(_HEADER, self._cells())
        return f"{table}\n{REMARK}" if self.is_simulated else table

    def _repr_html_(self) -> str:
        if self._activities is None:
            return _html.box("Profile", {"state": "not done: its block has not ended"})
        title = f"Profile of {counted(len(self.activities), 'activity', 'activities')}"
        if self.is_simulated:
            title += f" ({REMARK})"
        return _html.box(title, more=_html.table(_HEADER, self._cells(), texts=2))

    def __str__(self) -> str:
        return self.summary()

    def trace(self) -> dict[str, Any]:
        """The activities in the format of Chrome's trace viewer and of Perfetto."""
        events: list[dict[str, Any]] = []
        used: dict[_core.Device, int] = defaultdict(int)
        for activity in self.activities:
            host = {"pid": "host", "tid": f"thread {activity.thread}"}
            events.append(
                {"name": activity.name, "cat": activity.kind, "ph": "X", **host,
                 "ts": 1e3 * activity.host_begin_ms, "dur": 1e3 * activity.host_ms,
                 "args": _details(activity)}
            )  # fmt: skip
            if activity.device_ms is not None:
                events.append(
                    {"name": activity.name, "cat": activity.kind, "ph": "X",
                     "pid": str(activity.device), "tid": f"stream {activity.stream:#x}",
                     "ts": 1e3 * activity.begin_ms, "dur": 1e3 * activity.device_ms,
                     "args": _details(activity)}
                )  # fmt: skip
            sign = {"allocation": 1, "release": -1}.get(activity.kind)
            if sign is not None:
                used[activity.device] += sign * activity.bytes
                events.append(
                    {"name": "memory of arrays", "ph": "C", "pid": str(activity.device),
                     "ts": 1e3 * activity.host_begin_ms, "args": {"bytes": used[activity.device]}}
                )  # fmt: skip
        return {"traceEvents": events, "displayTimeUnit": "ms"}

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes trace() as JSON, for chrome://tracing or ui.perfetto.dev."""
        name, text = _core._path(path, "save_trace()"), json.dumps(self.trace())
        with told_of(name, "written"), open(name, "w", encoding="utf-8") as file:
            file.write(text)


def profile() -> Profile:
    """Records launches, copies, fills and allocations of the process: ``with kw.profile() as p``.

    One profile at a time. Events around work on its stream time it; they cost a few microseconds a
    call. The end of the block waits for the timed work. The simulated device has no clock: there
    the times are those of this machine's CPU, and the printed table says so.

    >>> x = kw.zeros(64)
    >>> with kw.profile() as profile:
    ...     x.fill(1)
    >>> [each.kind for each in profile.activities]
    ['fill']
    """
    return Profile()


class annotate(contextlib.ContextDecorator):
    """Names a part of the program: ``with kw.annotate("epoch"):``, or a decorator of a function.

    It stands as an activity of its own in a kw.profile() around it, and as a range of the NVTX
    domain "Kernwright" in Nsight Systems and Nsight Compute, beside the ranges of launches, graphs
    and compiles. NVTX is used when a tool has started the program and the library is found (package
    nvidia-nvtx, or a toolkit). Entered and left on one thread; may be nested.

    >>> with kw.profile() as profile, kw.annotate("first part"):
    ...     saxpy[1, 256](2.0, x, y, n)
    >>> sorted({each.kind for each in profile.activities})
    ['annotation', 'kernel']
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ArgumentError(f"an annotation's name must be a str, got {type(name).__name__}")
        self.name = name
        self._entered: list[_core._Annotation] = []

    def _recreate_cm(self) -> annotate:
        return annotate(self.name)  # each call of a decorated function has its own

    def __enter__(self) -> annotate:
        self._entered.append(_core._Annotation(self.name))
        return self

    def __exit__(self, *failure: object) -> None:
        self._entered.pop().end()


def _row(kind: str, name: str, group: list[Activity]) -> Row:
    times = [a.host_ms if a.device_ms is None else a.device_ms for a in group]
    moved = 0 if kind == "kernel" else sum(a.bytes for a in group)
    return Row(kind, name, len(group), sum(times), sum(times) / len(times), min(times), moved)


def _rate(row: Row) -> str:
    if row.kind not in ("copy", "fill") or row.total_ms <= 0:
        return ""
    return f"{row.bytes / row.total_ms / 1e6:.2f}"


def _details(activity: Activity) -> dict[str, Any]:
    details: dict[str, Any] = {"bytes": activity.bytes}
    if activity.place:
        details["from"] = activity.place
    if activity.kind == "kernel":
        details |= {"grid": activity.grid, "block": activity.block}
    return details


def _rich_table(header: Iterable[str], cells: list[tuple[str, ...]]) -> str:
    import importlib
    import io

    console = importlib.import_module("rich.console")
    table = importlib.import_module("rich.table").Table()
    for number, title in enumerate(header):
        table.add_column(title, justify="left" if number < 2 else "right")
    for line in cells:
        table.add_row(*line)
    out = io.StringIO()
    console.Console(file=out, width=120).print(table)
    return out.getvalue().rstrip()


def _plain_table(header: tuple[str, ...], cells: list[tuple[str, ...]]) -> str:
    lines = [header, *cells]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if i < 2 else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
