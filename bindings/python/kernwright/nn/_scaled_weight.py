"""Weights of 8 bits with a scale for each row."""

from __future__ import annotations

from dataclasses import dataclass

from kernwright._core import Array


@dataclass(frozen=True)
class ScaledWeight:
    """Weights of 8 bits, (n, k), and the scale of each of their rows."""

    codes: Array
    scale: Array
