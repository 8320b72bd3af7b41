"""What observers of sensors want: a package, and a device that has sensors."""

from __future__ import annotations

import importlib
from typing import Any

from kernwright.errors import ArgumentError, InvalidArgument


def package(name: str, user: str, distribution: str) -> Any:
    """The module of a package that is no requirement of this one."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ArgumentError(
            f"{user} reads sensors by the package {name} ({error}): pip install {distribution}"
        ) from error


def refuse_simulated(user: str, dev: Any, what: str) -> None:
    """InvalidArgument for a simulated device."""
    device = getattr(dev, "device", None)
    if getattr(device, "is_simulated", False):
        raise InvalidArgument(
            f"{user} observes {what}, and {dev.name} has no sensor: run it on a GPU, or leave the "
            "observer out"
        )
