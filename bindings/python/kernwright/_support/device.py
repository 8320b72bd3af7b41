"""What a device says about itself: memory and attributes."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Iterator, Mapping

from kernwright import _core
from kernwright.errors import DriverError

MemoryInfo = namedtuple("MemoryInfo", "free total")
MemoryInfo.__module__ = __name__
MemoryInfo.__doc__ = """Device memory in bytes."""

PartitionRules = namedtuple("PartitionRules", "supported multiprocessors minimum alignment free")
PartitionRules.__module__ = __name__
PartitionRules.__doc__ = """How a device's multiprocessors can be divided.

`supported`: the driver has green contexts; without, the last three are 0. `multiprocessors` of the
device, `minimum` of a partition, `alignment` of sizes, `free` in no partition."""


@functools.lru_cache(maxsize=1)
def attribute_numbers() -> dict[str, int]:
    return _core._attribute_numbers()


class DeviceAttributes(Mapping[str, int]):
    """The driver's attributes of a device, by CUDA's name in lower case, or by number.

    Names are items and attributes alike: ``d.attributes["warp_size"]``, ``d.attributes.warp_size``,
    ``d.attributes[10]``.
    """

    def __init__(self, device: _core.Device) -> None:
        self._device = device

    def __getitem__(self, name: str | int, /) -> int:
        number = attribute_numbers().get(name) if isinstance(name, str) else name
        if number is None:
            raise KeyError(f"no device attribute {name!r}{_nearest(name)}")
        return self._device._attribute(number)

    def __getattr__(self, name: str) -> int:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __iter__(self) -> Iterator[str]:
        for name, number in attribute_numbers().items():
            try:
                self._device._attribute(number)
            except DriverError:  # newer than this driver
                continue
            yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *attribute_numbers()]

    def __repr__(self) -> str:
        return f"<{len(self)} attributes of {self._device}>"


def _nearest(name: str | int) -> str:
    import difflib

    close = difflib.get_close_matches(str(name), attribute_numbers(), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
