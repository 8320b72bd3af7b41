"""Softmax and its logarithm, forward and backward."""

from __future__ import annotations

__all__: list[str] = []
