"""TegraObserver: clock and temperature of the GPU in a Jetson, by files of its kernel."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

from kernwright.errors import InvalidArgument
from kernwright.tune._kernel_tuner.sensors import (
    SensorObserver,
    refuse_simulated,
    require_observables,
)

__all__ = ["TegraObserver"]

_NAMES = ("gv11b", "gp10b", "ga10b", "gpu")  # of GPUs among the devices with a clock
_SYSTEM = pathlib.Path("/sys/class")


class TegraObserver(SensorObserver):
    """Adds core_freq (Hz) and gpu_temp (degrees Celsius) to each result: averages of the launches.

    When the tuning begins: InvalidArgument on the simulated device, and on a machine that is no
    Jetson.
    """

    def __init__(self, observables: Sequence[str], save_all: bool = False) -> None:
        super().__init__(require_observables(observables, ("core_freq", "gpu_temp")), save_all)

    def register_device(self, dev: Any) -> None:
        super().register_device(dev)
        refuse_simulated("TegraObserver", dev, "clock and temperature")
        clock = _found("devfreq", "device/of_node/name", _NAMES) / "cur_freq"
        self.readers = {"core_freq": lambda: float(clock.read_text())}
        if "gpu_temp" in self.observables:
            zone = _found("thermal", "type", ("GPU-therm", "gpu-thermal")) / "temp"
            self.readers["gpu_temp"] = lambda: float(zone.read_text()) / 1000


def _found(kind: str, file: str, names: Sequence[str]) -> pathlib.Path:
    """The folder of the device of a kind with one of the names."""
    for folder in sorted((_SYSTEM / kind).glob("*")):
        name = folder / file
        if name.is_file() and name.read_text().strip("\0\n ") in names:
            return folder
    raise InvalidArgument(
        f"TegraObserver finds no GPU of a Jetson below {_SYSTEM / kind}: NVMLObserver is for others"
    )
