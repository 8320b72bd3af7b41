"""A progress bar for work that takes over a second: on a terminal only, and where rich is."""

from __future__ import annotations

import importlib
import sys
import time
from types import TracebackType
from typing import Any

PATIENCE = 1.0  # seconds of work before a bar appears


class Progress:
    """Counts `total` steps of `what`; ``with Progress("compiling", 10) as p: ... p.advance()``.

    The bar is drawn on stderr and gone when the block ends. Nothing is shown, and rich is not
    imported, before a second has passed, without a terminal, or without rich.
    """

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done = what, total, 0
        self._begin = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def advance(self) -> None:
        """One step more is done. Called by one thread."""
        self._done += 1
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
