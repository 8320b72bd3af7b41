"""Waits for a device beside threads that record graphs."""

from __future__ import annotations

import time
from typing import Any

import kernwright as kw
from kernwright.errors import CaptureError

__all__ = ["wait_for_device"]

_LONGEST_CAPTURE = 60.0  # seconds; steps are recorded in well under one


def wait_for_device(device: Any) -> None:
    """Waits for all work of the device. While another thread records a graph, as that of a second
    model does, the device cannot be waited for: that ends soon, and is waited for first. Raises
    CaptureError if this thread's own stream records, or another one for a minute."""
    end = time.monotonic() + _LONGEST_CAPTURE
    while True:
        try:
            device.synchronize()
            return
        except CaptureError:
            if kw.current_stream().is_capturing or time.monotonic() > end:
                raise
            time.sleep(0.0005)
