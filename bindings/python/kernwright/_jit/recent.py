"""The kernels asked for lately: the same request from the same line gets the same Kernel again."""

from __future__ import annotations

import re
from collections import OrderedDict
from types import FrameType
from typing import Any

from kernwright import _core

_LIMIT = 1024
# A text with variables of its own has state, and each request for it begins with a fresh one.
_VARIABLE = re.compile(
    r"__(?:device|constant|managed)__[^(){};]*[;=\[{]|\bstatic\b|#\s*include\s*\"", re.DOTALL
)
# Without any of these words there is no match, which is found ten times as fast.
_HINTS = ("__device__", "__constant__", "__managed__", "static", "include")
# A text with this may be PTX.
_OTHER = (".version",)
# Of options, those whose values say all: what a folder or a table of headers holds may change.
_PLAIN = frozenset(("arch", "fast_math", "max_registers", "lineinfo", "opt_level", "std"))

_kernels: OrderedDict[Any, _core.Kernel] = OrderedDict()
_hits = 0
# kernel() looks here first, without Python, where a request has no options.
_core._use_recent(_kernels, _LIMIT, (*_HINTS, *_OTHER))


def request_key(
    source: Any, name: str | None, fields: dict[str, Any], frame: FrameType
) -> tuple[Any, ...] | None:
    """Identifies a request, the line that makes it included; None for one that is not kept."""
    if type(source) is not str or not _PLAIN.issuperset(fields):
        return None
    options = ((option, type(value), value) for option, value in fields.items())
    # The file's name, not the code object: those of two files may be equal.
    return source, name, frame.f_code.co_filename, frame.f_lineno, *options


def find(key: tuple[Any, ...]) -> _core.Kernel | None:
    """The kernel of an equal request that is still remembered."""
    global _hits
    try:
        kernel = _kernels[key]
        _kernels.move_to_end(key)
    except (KeyError, TypeError):  # unknown, or an option's value of a wrong kind
        return None
    _hits += 1
    return kernel


def keep(key: tuple[Any, ...], kernel: _core.Kernel) -> None:
    """Remembers the kernel unless its text has state; the least recently used one goes."""
    text = key[0]
    if any(hint in text for hint in _HINTS) and _VARIABLE.search(text):
        return
    _kernels[key] = kernel
    while len(_kernels) > _LIMIT:
        _kernels.popitem(last=False)


def hits() -> int:
    """How often a request was answered here."""
    return _hits + _core._plain_hits()


def clear() -> None:
    """Forgets all; who holds a kernel keeps it."""
    _kernels.clear()
