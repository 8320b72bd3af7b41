"""The checks of the simulated device: memory nobody wrote, races, barriers that do not match.

>>> import numpy as np, kernwright as kw
>>> double = kw.kernel('''__global__ void twice(float* x) {
...     x[threadIdx.x] *= 2;
... }''')
>>> with kw.checks("init", "race") as report:
...     with kw.Device("sim"):
...         double[1, 32](kw.empty(32))
>>> [(finding.kind, finding.line) for finding in report]
[('init', 2)]

Bounds, alignment and lifetime of memory are checked always, and raise. A block adds:

- `init`: reads of unwritten global, shared or local memory. Device memory counts as
  unwritten from its allocation until a copy, a fill or a kernel writes it; memory that is older
  than the block counts as written.
- `race`: two threads of one launch touch the same bytes of global or shared memory, one of them
  writes, nothing orders them, and they are not both atomic. Barriers, __syncwarp() and the other
  .sync instructions, grid.sync(), mbarriers, and fences with atomics or flags order. Two writes of
  the same value are no finding.
- `sync`: threads of a block that wait at different barriers for each other, masks without their own
  lane, different masks of lanes at one instruction, registers of wgmma touched before the wait. A
  barrier that can never be complete raises.

Findings of these three do not stop a launch and raise nothing: they are collected, as
compute-sanitizer does. KERNWRIGHT_CHECKS=all (or some of the words) turns them on for a whole
process; findings outside of a `with` block are then logged as warnings.
"""

from __future__ import annotations

import dataclasses
import json
import operator
import pathlib
import re
import sys
import threading
import types
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Generic, TypeVar

import numpy

from kernwright import _core
from kernwright._sim import watch as _watch
from kernwright._support import progress as _progress
from kernwright._support.files import told_of
from kernwright._support.typed import publish
from kernwright._support.words import counted
from kernwright.checks import _page as _checks_page
from kernwright.errors import DeviceFault, Error, InvalidArgument

__all__ = [
    "CheckFailed",
    "Difference",
    "Finding",
    "Other",
    "Report",
    "checks",
    "fuzz",
    "schedule",
]

WORDS = ("memory", "init", "race", "sync")
MOST_SEED = (1 << 64) - 1
MOST_FINDINGS = (1 << 63) - 1

Made = TypeVar("Made", _core._CheckScope, _core._Schedule)


class CheckFailed(Error):
    """Report.raise_if_any() found something; `report` is the Report."""

    report: Report


@dataclasses.dataclass(frozen=True)
class Other:
    """The other access of a race, or the other barrier; fields as in Finding.

    With the report of the example of kw.checks:

    >>> report[0].other.what, report[0].other.line
    ('read', 2)
    """

    what: str
    file: str
    line: int
    file_line: int
    opcode: str
    block: tuple[int, int, int] | None  # None: one of several threads
    thread: tuple[int, int, int] | None
    value: str


@dataclasses.dataclass(frozen=True)
class Finding:
    """One finding, however often it happened (`count`).

    `kind` is init, race or sync, or that of a DeviceFault (bounds, alignment, use-after-free, ...).
    `line` counts the kernel's text from 1, `file_line` the file that holds the text. `what` is
    "read", "write", "atomic access" or "barrier" (with "asynchronous" in front for a copy's),
    `space` the kind of memory, `value` what was read or written, in hexadecimal. `block` and
    `thread` are those of its first occurrence. `details` has further lines, for instance the
    waiting threads. `kernel` is the name in the object code; texts and pages write it as in C++.

    With the report of the example of kw.checks:

    >>> finding = report[0]
    >>> finding.what, finding.line, finding.space
    ('write', 2, 'global memory')
    """

    kind: str
    message: str
    hint: str
    count: int
    kernel: str
    file: str
    line: int
    file_line: int
    opcode: str
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    what: str
    space: str
    address: int
    size: int
    value: str
    allocation: str
    details: str
    other: Other | None

    @property
    def lines(self) -> tuple[int, ...]:
        """The lines involved, of the kernel's text, in order."""
        found = {self.line} | ({self.other.line} if self.other else set())
        return tuple(sorted(found - {0}))

    def _repr_html_(self) -> str:
        return _checks_page.box([self], [(None, None)], 0)


def _file_line(data: dict[str, Any]) -> int:
    line, first_line = int(data["line"]), int(data["first_line"])
    return line and line + first_line - 1


def _other(data: dict[str, Any] | None) -> Other | None:
    if data is None:
        return None
    return Other(
        data["what"],
        data["file"],
        data["line"],
        _file_line(data),
        data["opcode"],
        data["block"] and tuple(data["block"]),
        data["thread"] and tuple(data["thread"]),
        data["value"],
    )


def _finding(data: dict[str, Any]) -> Finding:
    fields: dict[str, Any] = {
        field.name: data.get(field.name) for field in dataclasses.fields(Finding)
    }
    fields["file_line"] = _file_line(data)
    fields["block"] = tuple(data["block"])
    fields["thread"] = tuple(data["thread"])
    fields["other"] = _other(data["other"])
    return Finding(**fields)


class Report:
    """What a `with kw.checks(...)` block found; a sequence of Finding, complete when it has ended.

    While the block runs, the findings so far.

    With the report of the example of kw.checks:

    >>> len(report), report.total, report.dropped
    (1, 63, 0)
    >>> report.save("report.html")
    """

    def __init__(self, scope: _core._CheckScope) -> None:
        self._scope = scope

    @property
    def findings(self) -> list[Finding]:
        """What was found so far, each place once, in the order of discovery."""
        return [_finding(data) for data in json.loads(self._scope.json())]

    @property
    def total(self) -> int:
        """The number of all findings, also those beyond the limit of the list."""
        return self._scope.total()

    @property
    def dropped(self) -> int:
        """The number of findings beyond the limit of the list; see `limit`."""
        total = self.total  # first, as more may be found meanwhile
        return max(0, total - sum(finding.count for finding in self))

    def __len__(self) -> int:
        return len(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __getitem__(self, index: int) -> Finding:
        return self.findings[index]

    def __bool__(self) -> bool:
        return self.total != 0

    def __str__(self) -> str:
        return self._scope.text()

    def __repr__(self) -> str:
        return f"<kernwright.checks.Report: {counted(len(self), 'finding')}>"

    def to_text(self) -> str:
        """All findings as text, as print() shows them."""
        return str(self)

    def to_json(self) -> str:
        """An array of objects with the fields of Finding."""
        return json.dumps([dataclasses.asdict(finding) for finding in self], indent=2)

    def to_html(self) -> str:
        """A page with each finding beside the source around its lines."""
        dropped = self.dropped
        return _checks_page.page(self.findings, self._scope.texts(), dropped)

    def _repr_html_(self) -> str:
        dropped = self.dropped
        return _checks_page.box(self.findings, self._scope.texts(), dropped)

    def save(self, path: str | pathlib.Path) -> None:
        """Writes the report as the suffix says: .json, .html or .htm, else text."""
        path = pathlib.Path(_core._path(path, "save()"))
        forms = {".json": self.to_json, ".html": self.to_html, ".htm": self.to_html}
        text = forms.get(path.suffix.lower(), self.to_text)()
        with told_of(path, "written"):
            path.write_text(text, encoding="utf-8")

    def raise_if_any(self) -> None:
        """Raises CheckFailed with the text of all findings when there are any."""
        if self:
            error = CheckFailed(str(self))
            error.report = self
            raise error


class _Open(Generic[Made]):
    """The part of a `with` block alive while it runs: one at a time."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._held: list[Made] = []
        self._free = threading.Lock()

    def enter(self, made: Made) -> Made:
        if not self._free.acquire(blocking=False):
            raise InvalidArgument(
                f"this {self._what} has been entered and not left: make another one for a `with` "
                "block inside of it or on another thread"
            )
        try:
            made.enter()
        except BaseException:
            self._free.release()
            raise
        self._held.append(made)
        return made

    def leave(self, kind: type[BaseException] | None) -> None:
        """Waits for the launches of a block without an error."""
        if not self._held:
            raise InvalidArgument(f"this {self._what} is left and was not entered")
        try:
            if kind is None:
                _watch.finish_simulated()
        finally:
            self._held.pop().leave()
            self._free.release()


def _whole(value: Any, what: str, least: int, most: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        raise InvalidArgument(f"{what} = {value!r}: a whole number from {least} to {most}")
    return number


class schedule:
    """Launches on simulated devices run their blocks and warps in an order chosen by `seed`.

    Until the end of the block, on one thread, a few blocks in flight at a time, warps taking turns
    before accesses to memory. The same launches after the same seed run the same way. None is the
    usual order on one thread: blocks begin in the order of their numbers. Blocks nest: the
    innermost one decides, for the launches of all threads, and one outside of it goes on where it
    was.

    >>> with kw.checks.schedule(7):
    ...     saxpy[2, 128](2.0, x, y, n)
    """

    def __init__(self, seed: int | None) -> None:
        self.seed = None if seed is None else _whole(seed, "seed", 0, MOST_SEED)
        self._open: _Open[_core._Schedule] = _Open("kw.checks.schedule(...)")

    def __enter__(self) -> schedule:
        self._open.enter(_core._Schedule(self.seed))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.leave(kind)


@dataclasses.dataclass(frozen=True)
class Difference:
    """Two schedules that do not agree: `with kw.checks.schedule(seed)` runs the second again.

    >>> last = kw.kernel("__global__ void last(int* x) { *x = blockIdx.x; }")
    >>> def run():
    ...     x = kw.zeros(1, "int32")
    ...     last[8, 1](x)
    ...     return x.numpy()
    >>> kw.checks.fuzz(run, count=20).what
    'output'
    """

    seed: int
    what: str  # "output", "finding" or "error"
    message: str

    def __str__(self) -> str:
        return f"schedule {self.seed}: {self.message}"


@dataclasses.dataclass(frozen=True)
class _Failure:
    """An error as far as it is the same in each run, and its words with addresses."""

    identity: tuple[Any, ...]
    text: str = dataclasses.field(compare=False)

    @classmethod
    def of(cls, error: Error) -> _Failure:
        first = (str(error).splitlines() or [""])[0]
        kind = type(error).__name__
        identity: tuple[Any, ...] = (kind, re.sub("0x[0-9a-fA-F]+", "0x", first))
        text = f"{kind}: {first}"
        if isinstance(error, DeviceFault):
            place = (error.kind, error.kernel, error.file, error.line, error.opcode)
            identity = (kind, *place, error.block, error.thread)
            text += f" in block {error.block}, thread {error.thread}"
        return cls(identity, text)


_Outcome = tuple[_Failure, list[Any], list[Any]]


def _outcome(run: Callable[[], Any], seed: int | None, words: tuple[str, ...]) -> _Outcome:
    """(error, findings, outputs) of one run; each compares equal where the runs agree."""
    error = _Failure((), "no error")
    outputs: list[Any] = []
    with checks(*words) as report, schedule(seed):
        try:
            result = run()
            found = result if isinstance(result, (tuple, list)) else (result,)
            outputs = [_plain(value) for value in found]
        except Error as caught:
            error = _Failure.of(caught)
    findings = sorted({(finding.kind, finding.kernel, finding.lines) for finding in report})
    return error, findings, outputs


def _plain(value: Any) -> Any:
    """A copy on the host, fit for comparison."""
    if value is None:
        return None
    array = value.numpy() if hasattr(value, "numpy") else numpy.asarray(value)
    return array.shape, array.dtype.str, array.tobytes()


def fuzz(
    run: Callable[[], Any], count: int = 20, *, seed: int = 1, words: tuple[str, ...] = ("sync",)
) -> Difference | None:
    """Runs `run` in the usual order (schedule None) and then under `count` schedules, from `seed`
    on; returns the first difference in output, finding or error, with its seed, or None.

    `run` makes its inputs anew, launches, and returns the arrays (one, or a tuple) to compare, bit
    for bit. Faults are the same where kind, place, block and thread are. `words` are the checks
    that are on meanwhile. Not for results that may depend on the order, such as sums of floats by
    atomics.

    >>> kw.checks.fuzz(lambda: kw.ones(64).sum(), count=2) is None
    True
    """
    seed = _whole(seed, "seed", 0, MOST_SEED)
    count = _whole(count, "count", 0, MOST_SEED - seed + 1)
    expected = _outcome(run, None, words)
    for number in _progress.steps("running", range(seed, seed + count)):
        error, findings, outputs = _outcome(run, number, words)
        if error != expected[0]:
            return Difference(number, "error", f"{error.text}, not {expected[0].text}")
        if findings != expected[1]:
            new = [finding for finding in findings if finding not in expected[1]]
            gone = [finding for finding in expected[1] if finding not in findings]
            message = f"findings {new or 'none'} more, {gone or 'none'} less"
            return Difference(number, "finding", message)
        if len(outputs) != len(expected[2]):
            message = f"{counted(len(outputs), 'output')}, not {len(expected[2])}"
            return Difference(number, "output", message)
        for index, (got, wanted) in enumerate(zip(outputs, expected[2], strict=False)):
            if got != wanted:
                return Difference(number, "output", f"output {index} differs")
    return None


class checks:
    """Turns checks of the simulated device on until the end of the block; see the module's text.

    `with kw.checks("memory", "init", "race", "sync") as report:` - no word means all of them.
    `memory` is always on. At most `limit` different findings are kept; equal ones (same kind of
    access at the same lines of the same kernel) are one with a count. An error that stops a launch
    is raised as ever and is in the report too. Real GPUs are not checked.

    Blocks nest, and may end in any order; the checks of all that are open are on, for all threads
    and simulated devices. Findings of a launch go to the innermost block of the thread that
    launches. If that thread has entered none, they go to the last entered block. Each `with` has a
    report of its own; an object whose block is open cannot be entered again.

    >>> shift = kw.kernel('''
    ... __global__ void shift(float* x) { x[threadIdx.x] = x[threadIdx.x + 1]; }''')
    >>> with kw.checks("race") as report:
    ...     shift[1, 64](kw.zeros(65))
    >>> [finding.kind for finding in report]
    ['race']
    """

    schedule = schedule
    fuzz = staticmethod(fuzz)

    def __init__(self, *words: str, limit: int = 1000) -> None:
        for word in words:
            if not isinstance(word, str):
                raise InvalidArgument(
                    f"kw.checks({word!r}): every check is an argument of its own, as in "
                    'kw.checks("init", "race")'
                )
        self._words = list(words or WORDS)
        self._limit = _whole(limit, "limit", 0, MOST_FINDINGS)
        _core._CheckScope(self._words, self._limit)  # refuses words that it does not know
        self._open: _Open[_core._CheckScope] = _Open("kw.checks(...)")

    def __reduce__(self) -> tuple[type[checks], tuple[str, ...], dict[str, int]]:
        """The same checks, not yet entered."""
        return type(self), tuple(self._words), {"_limit": self._limit}

    def __enter__(self) -> Report:
        return Report(self._open.enter(_core._CheckScope(self._words, self._limit)))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.leave(kind)


class _Checks(types.ModuleType):
    """This module: kw.checks(...) makes a block and kw.checks.Report is its report."""

    def __call__(self, *words: Any, **options: Any) -> checks:
        return checks(*words, **options)


publish(globals(), __all__)
sys.modules[__name__].__class__ = _Checks
