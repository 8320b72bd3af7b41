"""Plans of the library's kernels that no table changes any more."""

from __future__ import annotations

import threading
from typing import Any

from kernwright import _core


class Plans:
    """The plans of the library's kernels, as the tables and rules have them now.

    In its `with` block, products (matmul(), linear(), grouped and gated ones) and launches of this
    thread are planned by these, although tuning (products(), library(), ``tune=True``) or another
    process changes a table meanwhile. So what is captured there has the kernels, and the bits, of
    the calls before it; without the block a capture takes the plans of its own moment.
    kernwright.captured() does this by itself.

    The object may be used often, in several threads, and within itself. Measurements of tuning
    are not bound by it.

    >>> plans = kw.tune.Plans()
    >>> with plans:
    ...     warm = kw.nn.linear(kw.ones((2, 64)), kw.ones((32, 64)))
    >>> graph = kw.Graph()
    >>> x, w = kw.ones((2, 64)), kw.ones((32, 64))
    >>> with plans, graph.capture():
    ...     y = kw.nn.linear(x, w)
    >>> graph.launch()
    >>> float(y[0, 0])
    64.0
    """

    def __init__(self) -> None:
        self._pinned = _core._PinnedChoices.now()
        self._before = threading.local()

    def __enter__(self) -> Plans:
        before = _core._set_choices(self._pinned)
        self._before.stack = [*getattr(self._before, "stack", ()), before]
        return self

    def __exit__(self, *error: Any) -> None:
        *stack, before = self._before.stack
        self._before.stack = stack
        _core._set_choices(before)

    def __repr__(self) -> str:
        return "<Plans of kernels>"
