"""NVMLObserver: power, energy, clocks and temperature by NVML, the driver's own library."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernwright.errors import InvalidArgument
from kernwright.tune._kernel_tuner.sensors import (
    SensorObserver,
    package,
    refuse_simulated,
    require_observables,
)
from kernwright.tune.observers import ContinuousObserver

__all__ = [
    "NVMLObserver",
    "get_idle_power",
    "get_nvml_gr_clocks",
    "get_nvml_mem_clocks",
    "get_nvml_pwr_limits",
    "nvml",
]

_POWER = ("power_readings", "nvml_power", "nvml_energy")
_READ = ("core_freq", "mem_freq", "temperature")
_POWER_INSTANT = 186  # NVML_FI_DEV_POWER_INSTANT


class nvml:
    """A device as NVML has it, found by its number there or its UUID: settings and sensors.

    ArgumentError without the package pynvml (of nvidia-ml-py). Clocks and the power limit that were
    set are put back by restore_defaults().
    """

    def __init__(
        self,
        device_id: int | None = None,
        device_uuid: str | None = None,
        use_locked_clocks: bool = False,
    ) -> None:
        self._nvml = package("pynvml", "NVMLObserver", "nvidia-ml-py")
        self._nvml.nvmlInit()
        if device_uuid is not None:
            self.dev = self._nvml.nvmlDeviceGetHandleByUUID(device_uuid)
        else:
            self.dev = self._nvml.nvmlDeviceGetHandleByIndex(device_id or 0)
        self.use_locked_clocks = use_locked_clocks
        self._set_clocks: tuple[int, int] | None = None
        self._power_limit_before: int | None = None

    # -- settings --------------------------------------------------------------------------------

    @property
    def pwr_limit(self) -> int:
        """In milliwatts."""
        return int(self._nvml.nvmlDeviceGetPowerManagementLimit(self.dev))

    @pwr_limit.setter
    def pwr_limit(self, limit: int) -> None:
        low, high = self.pwr_constraints
        if not low <= limit <= high:
            raise InvalidArgument(f"the power limit {limit} mW is outside of {low} to {high} mW")
        before = self.pwr_limit
        if limit != before:
            self._nvml.nvmlDeviceSetPowerManagementLimit(self.dev, limit)
            if self._power_limit_before is None:
                self._power_limit_before = before

    @property
    def pwr_constraints(self) -> tuple[int, int]:
        """The least and the greatest power limit in milliwatts."""
        low, high = self._nvml.nvmlDeviceGetPowerManagementLimitConstraints(self.dev)
        return int(low), int(high)

    @property
    def supported_mem_clocks(self) -> list[int]:
        """In MHz."""
        return list(self._nvml.nvmlDeviceGetSupportedMemoryClocks(self.dev))

    def supported_gr_clocks(self, mem_clock: int) -> list[int]:
        """In MHz, beside a memory clock."""
        return list(self._nvml.nvmlDeviceGetSupportedGraphicsClocks(self.dev, mem_clock))

    def set_clocks(self, mem_clock: int, gr_clock: int) -> None:
        """Sets both, in MHz; it takes the rights of an administrator. InvalidArgument for clocks
        that the device does not have."""
        for what, clock, known in (
            ("memory", mem_clock, self.supported_mem_clocks),
            ("graphics", gr_clock, self.supported_gr_clocks(mem_clock)),
        ):
            if clock not in known:
                raise InvalidArgument(f"the {what} clock {clock} MHz is none of {known}")
        if self._set_clocks == (mem_clock, gr_clock):
            return
        if self.use_locked_clocks:
            self._nvml.nvmlDeviceSetGpuLockedClocks(self.dev, gr_clock, gr_clock)
            self._nvml.nvmlDeviceSetMemoryLockedClocks(self.dev, mem_clock, mem_clock)
        else:
            self._nvml.nvmlDeviceSetApplicationsClocks(self.dev, mem_clock, gr_clock)
        self._set_clocks = mem_clock, gr_clock

    def configure(self, params: Mapping[str, Any]) -> None:
        """Sets what parameters of Kernel Tuner's names say: nvml_pwr_limit in Watts, nvml_gr_clock
        and nvml_mem_clock in MHz."""
        if "nvml_pwr_limit" in params:
            self.pwr_limit = int(params["nvml_pwr_limit"] * 1000)
        if "nvml_gr_clock" in params or "nvml_mem_clock" in params:
            memory = params.get("nvml_mem_clock", max(self.supported_mem_clocks))
            graphics = params.get("nvml_gr_clock", max(self.supported_gr_clocks(memory)))
            self.set_clocks(memory, graphics)

    def restore_defaults(self) -> None:
        """Puts back the power limit and the clocks that were changed."""
        if self._power_limit_before is not None:
            self._nvml.nvmlDeviceSetPowerManagementLimit(self.dev, self._power_limit_before)
            self._power_limit_before = None
        if self._set_clocks is not None:
            if self.use_locked_clocks:
                self._nvml.nvmlDeviceResetGpuLockedClocks(self.dev)
                self._nvml.nvmlDeviceResetMemoryLockedClocks(self.dev)
            else:
                self._nvml.nvmlDeviceResetApplicationsClocks(self.dev)
            self._set_clocks = None

    # -- sensors ---------------------------------------------------------------------------------

    @property
    def gr_clock(self) -> int:
        """In MHz, now."""
        return int(self._nvml.nvmlDeviceGetClockInfo(self.dev, self._nvml.NVML_CLOCK_GRAPHICS))

    @property
    def mem_clock(self) -> int:
        """In MHz, now."""
        return int(self._nvml.nvmlDeviceGetClockInfo(self.dev, self._nvml.NVML_CLOCK_MEM))

    @property
    def temperature(self) -> int:
        """In degrees Celsius."""
        return int(self._nvml.nvmlDeviceGetTemperature(self.dev, self._nvml.NVML_TEMPERATURE_GPU))

    def pwr_usage(self) -> int:
        """Milliwatts now: at this moment if the driver tells it, else its own average."""
        try:
            [field] = self._nvml.nvmlDeviceGetFieldValues(self.dev, [_POWER_INSTANT])
        except self._nvml.NVMLError:
            return int(self._nvml.nvmlDeviceGetPowerUsage(self.dev))
        if field.nvmlReturn != self._nvml.NVML_SUCCESS:
            return int(self._nvml.nvmlDeviceGetPowerUsage(self.dev))
        return int(field.value.uiVal)


class NVMLObserver(SensorObserver):
    """Adds readings of NVML to each result. `observables` are some of: nvml_power (Watts),
    nvml_energy (Joules of one launch), power_readings, core_freq, mem_freq (MHz), temperature.

    Power is read while launches follow each other for `continuous_duration` seconds; the others are
    averages over the launches, and with `save_all` also lists ("temperatures"). While clocks and
    the power limit are parameters by the names nvml_gr_clock, nvml_mem_clock and nvml_pwr_limit,
    each configuration is measured with its own (as locked clocks with `use_locked_clocks`), and
    those from before are put back at the end. `device` is a number of nvidia-smi; None: the device
    of the tuning.

    When the tuning begins: InvalidArgument on the simulated device, which has no sensor;
    ArgumentError without the package pynvml (pip install nvidia-ml-py).
    """

    continuous_observer: ContinuousObserver

    def __init__(
        self,
        observables: Sequence[str],
        device: int | None = None,
        save_all: bool = False,
        nvidia_smi_fallback: str | None = None,
        use_locked_clocks: bool = False,
        continuous_duration: float = 1,
    ) -> None:
        observables = require_observables(observables, (*_POWER, *_READ))
        if nvidia_smi_fallback is not None:
            raise InvalidArgument(
                "nvidia_smi_fallback= would set clocks by sudo: give this process the rights, or "
                "set them before the tuning"
            )
        super().__init__([each for each in observables if each in _READ], save_all)
        self.device = device
        self._use_locked_clocks = use_locked_clocks
        power = [each for each in observables if each in _POWER]
        if power:
            self.continuous_observer = ContinuousObserver("nvml", power, self, continuous_duration)

    def register_device(self, dev: Any) -> None:
        super().register_device(dev)
        refuse_simulated("NVMLObserver", dev, "power, clocks and temperature")
        uuid = dev.env["uuid"] if self.device is None else None
        card = self.nvml = nvml(self.device, uuid, use_locked_clocks=self._use_locked_clocks)
        self.readers = {
            "core_freq": lambda: card.gr_clock,
            "mem_freq": lambda: card.mem_clock,
            "temperature": lambda: card.temperature,
        }

    def read_power(self) -> float:
        """Watts now."""
        return self.nvml.pwr_usage() / 1e3


def _spread(values: Sequence[int], n: int | None) -> list[int]:
    """`n` of them from the first to the last."""
    if not n or len(values) <= n:
        return list(values)
    places = np.linspace(0, len(values) - 1, n).round().astype(int)
    return [values[place] for place in places]


def _parameter(name: str, values: list[int], quiet: bool) -> dict[str, list[int]]:
    if not quiet:
        print(f"Using {name}: {values}")
    return {name: values}


def get_nvml_pwr_limits(
    device: int, n: int | None = None, quiet: bool = False
) -> dict[str, list[int]]:
    """A parameter nvml_pwr_limit with `n` limits in Watts between the device's bounds; by default
    one each 5 W."""
    low, high = (limit / 1000 for limit in nvml(device).pwr_constraints)
    count = int((high - low) / 5) + 1 if n is None else n
    limits = sorted({int(limit) for limit in 5 * np.round(np.linspace(low, high, count) / 5)})
    inside = [limit for limit in limits if low <= limit <= high]
    return _parameter("nvml_pwr_limit", inside, quiet)


def get_nvml_gr_clocks(
    device: int, n: int | None = None, quiet: bool = False
) -> dict[str, list[int]]:
    """A parameter nvml_gr_clock with `n` (by default all) graphics clocks of the device in MHz."""
    own = nvml(device)
    clocks = own.supported_gr_clocks(max(own.supported_mem_clocks))
    return _parameter("nvml_gr_clock", _spread(clocks, n), quiet)


def get_nvml_mem_clocks(
    device: int, n: int | None = None, quiet: bool = False
) -> dict[str, list[int]]:
    """A parameter nvml_mem_clock with `n` (by default all) memory clocks of the device in MHz."""
    return _parameter("nvml_mem_clock", _spread(nvml(device).supported_mem_clocks, n), quiet)


def get_idle_power(device: int, n: int = 5, sleep_s: float = 0.1) -> float:
    """Watts of a device without work: the mean of `n` readings, `sleep_s` seconds apart."""
    own = nvml(device)
    readings = []
    for _ in range(n):
        time.sleep(sleep_s)
        readings.append(own.pwr_usage())
    return float(np.mean(readings)) / 1e3
