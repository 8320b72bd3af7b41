"""How fast a device multiplies matrices, for the share of it that a run uses."""

from __future__ import annotations

from typing import Any

import kernwright
from kernwright._support.data_sheets import data_sheet
from kernwright.errors import InvalidArgument

__all__ = ["peak_flops"]

_EXTENT = 8192  # of the product that is measured


def peak_flops(device: Any = None, *, measure: bool = False) -> float | None:
    """Operations a second of products in bfloat16, of which a multiplication and an addition are
    two: those of NVIDIA's data sheet for a device of this name (Log writes which). None where no
    data sheet is known, and for the simulated device.

    `measure` times a product of 8192 x 8192 in place of that, which takes a moment.

    >>> kw.train.peak_flops("sim") is None
    True
    """
    chosen = _device(device)
    if chosen.is_simulated:
        if measure:
            raise InvalidArgument("the simulated device has no clock: its speed is not measured")
        return None
    if measure:
        with chosen:
            a = kernwright.random.normal((_EXTENT, _EXTENT), dtype="bfloat16", seed=1)
            b = kernwright.random.normal((_EXTENT, _EXTENT), dtype="bfloat16", seed=2)
            milliseconds = float(kernwright.time(lambda: a @ b).median)
        return 2 * _EXTENT**3 / (milliseconds / 1e3)
    sheet = data_sheet(chosen.name)
    return None if sheet is None else sheet.flops


def peak_source(device: Any = None) -> str:
    """The document that peak_flops() has a device's peak from; "unknown" without one."""
    sheet = data_sheet(_device(device).name)
    return "unknown" if sheet is None else sheet.source


def _device(device: Any) -> Any:
    chosen = kernwright.current_device() if device is None else device
    return chosen if isinstance(chosen, kernwright.Device) else kernwright.Device(chosen)
