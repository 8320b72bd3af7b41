"""Normalisation: RMS, layer, group, instance and L2, forward and backward."""

from __future__ import annotations

__all__: list[str] = []
