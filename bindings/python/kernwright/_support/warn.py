"""Warnings at the line of the caller."""

from __future__ import annotations

import sys
import warnings

_BETWEEN = ("kernwright", "torch")
"""Packages whose frames are between the caller and a warning."""


def warn_caller(text: str, category: type[Warning] = RuntimeWarning) -> None:
    """Warns at the nearest line outside of this package, or at the outermost one."""
    level = 1
    frame = sys._getframe()
    while str(frame.f_globals.get("__name__")).partition(".")[0] in _BETWEEN and frame.f_back:
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)
