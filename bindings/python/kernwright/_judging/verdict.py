"""Verdict: the result of a judgement."""

from __future__ import annotations

import dataclasses
import html
import json
from typing import Any

from kernwright._support import html as _html
from kernwright.errors import Diagnostic


@dataclasses.dataclass(frozen=True)
class JudgeFinding:
    """One thing that a check found: `kind` is bounds, init, race, sync, order, ...; `line` counts
    the kernel's text from 1 (0: unknown), `other_line` is that of a race's other access."""

    kind: str
    message: str
    hint: str
    file: str
    line: int
    other_line: int
    opcode: str
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    allocation: str
    details: str
    count: int


@dataclasses.dataclass(frozen=True)
class Difference:
    """The first wrong element of an array (`index` in C order, `place` as ``"[3, 4]"``), how many
    of its `elements` are wrong (`count`), and by how much at most. Of these, `not_finite` are wrong
    by NaN or an infinity; `largest_error` is that of the others."""

    index: int
    place: str
    got: str
    expected: str
    count: int
    elements: int
    largest_error: float | None
    not_finite: int


@dataclasses.dataclass(frozen=True)
class Case:
    """One case on one device; ``task.inputs(seed, number)`` are its inputs again. `status` is
    "correct" or as a verdict's."""

    number: int
    seed: int
    arguments: list[str]
    device: str
    status: str
    message: str
    argument: str
    difference: Difference | None


@dataclasses.dataclass(frozen=True)
class JudgeTiming:
    """Times of a launch, `unit` "ms"; on the simulated device counts (`is_counted`), which say
    nothing about seconds. `interval` is that of the median at 95 %."""

    is_counted: bool
    unit: str
    median: float
    interval: tuple[float, float]
    samples: list[float]
    case_number: int


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A judgement's result. `status` is "accepted", "compile" (the text does not compile, lacks the
    entry, or does something refused by the task), "finding" (of the simulated device's checks, a
    write outside of the buffers, or a result that depends on the order of warps and blocks),
    "wrong", "timeout", "crash", "impossible" (faster than the device could be) or "cheating" (the
    result depends on earlier launches or on old contents of memory; a const argument was written;
    the text tells judged launches apart); `reason` says it in a sentence. `warnings` are for the
    author of the task: it judges little, or its timeout left no room for all launches. `seed`
    replays the judgement. `floor` is the least time, in `timing`'s unit.

    With text and task of the example of kw.Task:

    >>> verdict = kw.judge(text.replace("2 *", "3 *"), task)
    >>> verdict.accepted, verdict.status
    (False, 'wrong')
    >>> wrong = verdict.cases[-1].difference
    >>> 0 < wrong.count <= wrong.elements
    True
    """

    status: str
    reason: str
    warnings: list[str]
    diagnostics: list[Diagnostic]
    findings: list[JudgeFinding]
    cases: list[Case]
    timing: JudgeTiming | None
    baseline: JudgeTiming | None
    speedup: float | None
    floor: float | None
    floor_reason: str
    seed: int
    device: str
    compile_seconds: float
    check_seconds: float
    time_seconds: float
    seconds: float
    _json: str = dataclasses.field(repr=False, compare=False)

    @property
    def accepted(self) -> bool:
        """Whether the status is "accepted"."""
        return self.status == "accepted"

    def to_json(self) -> str:
        """One JSON object with the same names."""
        return self._json

    def _repr_html_(self) -> str:
        first, *rest = str(self).splitlines()
        more = f"<pre>{html.escape(chr(10).join(rest))}</pre>" if rest else ""
        rows = {"verdict": first, "device": self.device, "seconds": f"{self.seconds:.3g}"}
        return _html.box("Verdict", rows, _html.part(more))

    def __str__(self) -> str:
        lines = [self.status + (f": {self.reason}" if self.reason else "")]
        lines += [f"warning: {each}" for each in self.warnings]
        lines += [_diagnostic_text(each) for each in self.diagnostics]
        lines += [_finding_text(each) for each in self.findings]
        if self.timing:
            lines.append(_timing_text("time", self.timing))
        if self.baseline:
            lines.append(_timing_text("baseline", self.baseline))
        if self.speedup is not None:
            lines.append(f"speedup: {self.speedup:.3g}")
        if self.floor is not None:
            lines.append(f"floor: {self.floor:.6g} ({self.floor_reason})")
        correct = sum(case.status == "correct" for case in self.cases)
        lines.append(f"cases: {correct} of {len(self.cases)} correct; seed {self.seed}")
        return "\n".join(lines)


def _diagnostic_text(diagnostic: Diagnostic) -> str:
    place = ":".join([diagnostic.file, *(str(n) for n in diagnostic[3:5] if n)])
    # Further lines are indented, so that no text of a kernel looks like a line of the verdict.
    message = diagnostic.message.replace("\n", "\n    ")
    return f"{place}: {diagnostic.severity}: {message}"


def _finding_text(finding: JudgeFinding) -> str:
    hint = f" ({finding.hint})" if finding.hint else ""
    return f"{finding.file}:{finding.line}: {finding.kind}: {finding.message}{hint}"


def _timing_text(name: str, timing: JudgeTiming) -> str:
    low, high = timing.interval
    return f"{name}: {timing.median:.6g} {timing.unit} [{low:.6g}, {high:.6g}]"


def _timing(data: dict[str, Any] | None) -> JudgeTiming | None:
    if data is None:
        return None
    low, high = data["interval"]
    return JudgeTiming(**{**data, "interval": (low, high)})


def _finding(data: dict[str, Any]) -> JudgeFinding:
    return JudgeFinding(**{**data, "block": tuple(data["block"]), "thread": tuple(data["thread"])})


def _case(data: dict[str, Any]) -> Case:
    difference = data["difference"] and Difference(**data["difference"])
    return Case(**{**data, "difference": difference})


def verdict_of(text: str) -> Verdict:
    """From to_json()."""
    data = json.loads(text)
    data["diagnostics"] = [Diagnostic(**each) for each in data["diagnostics"]]
    data["findings"] = [_finding(each) for each in data["findings"]]
    data["cases"] = [_case(each) for each in data["cases"]]
    data["timing"], data["baseline"] = _timing(data["timing"]), _timing(data["baseline"])
    return Verdict(**data, _json=text)
