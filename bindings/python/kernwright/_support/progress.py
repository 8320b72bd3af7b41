"""A progress bar for work that takes over a second: on a terminal only, and where rich is."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar

Item = TypeVar("Item")

PATIENCE = 1.0  # seconds of work before a bar appears


class Progress:
    """Counts `total` steps of `what`; ``with Progress("compiling", 10) as p: ... p.advance()``. The
    total may come with a step instead.

    The bar is drawn on stderr and gone when the block ends. Nothing is shown, and rich is not
    imported, before a second has passed, without a terminal, or without rich.
    """

    def __init__(self, what: str, total: int = 0) -> None:
        self._what, self._total, self._done = what, total, 0
        self._begin = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def advance(self, total: int | None = None) -> None:
        """One step more is done. Called by one thread."""
        self._done += 1
        if total is not None:
            self._total = total
        if self._bar is None:
            self._show()
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _show(self) -> None:
        if self._done == self._total or time.monotonic() - self._begin < PATIENCE:
            return
        if sys.stderr is None or not sys.stderr.isatty():
            return
        try:
            console = importlib.import_module("rich.console").Console(stderr=True)
            bar = importlib.import_module("rich.progress").Progress(console=console, transient=True)
        except ImportError:
            return
        self._task = bar.add_task(self._what, total=self._total)
        bar.start()
        self._bar = bar


def steps(what: str, items: Sequence[Item]) -> Iterator[Item]:
    """The items, one after the other, with a bar for the time that is spent on them."""
    with Progress(what, len(items)) as progress:
        for item in items:
            yield item
            progress.advance()
