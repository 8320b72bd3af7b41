"""Shared by the watchers of kernels on the simulated device: their launches, their lines."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeVar

from kernwright import _core
from kernwright.errors import InvalidArgument

if TYPE_CHECKING:
    from typing_extensions import Self

Made = TypeVar("Made", _core._Trace, _core._LineProfile)

Source = tuple[str, str, int]
"""Name of a file, the compiler's text under this name, and the first line of the text there."""


def require_simulated(what: str) -> None:
    device = _core.current_device()
    if not device.is_simulated:
        raise InvalidArgument(
            f"{what} needs the simulated device, and {device.name} is a GPU: launch within "
            '`with kw.Device("sim"):`, or set KERNWRIGHT_DEVICE=sim'
        )


def finish_simulated() -> None:
    """Waits for work put off by a schedule seed: it belongs to the block."""
    device = _core.current_device()
    if device.is_simulated:
        device.synchronize()


def source_of(kernel: _core.Kernel) -> Source:
    """The kernel's own text; an empty name where there is only object code."""
    program = kernel._program
    if program is None:
        return "", "", 1
    return program.source_name, program.text, program.first_line


def texts_of(kernel: _core.Kernel) -> list[Source]:
    """The kernel's own text and its headers in memory."""
    program = kernel._program
    if program is None:
        return []
    headers: dict[str, str] = getattr(program.options, "headers", {})
    return [source_of(kernel), *((name, text, 1) for name, text in headers.items())]


class Watch(Generic[Made]):
    """A `with` block; `made` watches its launches, `what` names it for errors."""

    def __init__(self, made: Made, what: str) -> None:
        self._made: Made = made
        self._what = what

    def __enter__(self) -> Self:
        require_simulated(self._what)
        self._made.enter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                finish_simulated()
        finally:
            self._made.leave()


def source_lines(text: str) -> list[str]:
    """The lines of a source as compilers count them: form feeds and the like end none."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines if lines[-1] else lines[:-1]


def shown_lines(file: str, first_line: int) -> list[str]:
    """Lines of texts that a compile of this process was given or read, or of CUDA's headers.

    A #line may give a text the name of any other file: lines of such files are not shown.
    """
    return source_lines(_core._shown_text(file, first_line) or "")


class Lines:
    """The text of source lines: of known texts, else of those found by shown_lines()."""

    def __init__(self, known: Iterable[Source]) -> None:
        self._texts = {(name, first): source_lines(text) for name, text, first in known if name}

    def find(self, file: str, line: int, first_line: int) -> str:
        """Line `line`, from 1, of the text at `first_line` of `file`."""
        lines = self.text(file, first_line)
        return lines[line - 1] if 0 < line <= len(lines) else ""

    def text(self, file: str, first_line: int) -> list[str]:
        """That text; empty where it is not known."""
        key = (file, first_line)
        if key not in self._texts:
            self._texts[key] = shown_lines(file, first_line)
        return self._texts[key]
