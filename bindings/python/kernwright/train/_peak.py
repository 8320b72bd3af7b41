"""How fast a device multiplies matrices, for the share of it that a run uses."""

from __future__ import annotations

from typing import Any

import kernwright
from kernwright.errors import InvalidArgument

__all__ = ["peak_flops"]

# Operations a second of dense bfloat16 products with sums in float32, as NVIDIA's data sheets have
# them, by a part of the device's name. The first that fits counts.
_DATA_SHEETS = (
    ("H100 PCIe", 756e12), ("H100 NVL", 835e12), ("H200 NVL", 835e12), ("H100", 989.4e12),
    ("H200", 989.4e12), ("GH200", 989.4e12), ("B200", 2250e12), ("A100", 312e12),
    ("L40S", 362e12), ("L4", 121e12), ("A10", 125e12),
)  # fmt: skip
_EXTENT = 8192  # of the product that is measured


def peak_flops(device: Any = None, *, measure: bool = False) -> float | None:
    """Operations a second of products in bfloat16, of which a multiplication and an addition are
    two: those of the data sheet for this device's name. None where the name is not known, and for
    the simulated device.

    `measure` times a product of 8192 x 8192 in place of that, which takes a moment.

    >>> kw.train.peak_flops("sim") is None
    True
    """
    chosen = kernwright.current_device() if device is None else device
    if not isinstance(chosen, kernwright.Device):
        chosen = kernwright.Device(chosen)
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
    words = f" {chosen.name} ".replace("-", " ")
    return next((peak for name, peak in _DATA_SHEETS if f" {name} " in words), None)
