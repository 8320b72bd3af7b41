"""The exceptions: all derive from Error and, where Python has such a kind of its own, from that."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence

Diagnostic = namedtuple("Diagnostic", "severity message file line column caret hint")
Diagnostic.__module__ = __name__
Diagnostic.__doc__ = """One compiler message; line and column count from 1, 0 when unknown."""


class Error(Exception):
    """Base of all. The message names the failure, the values, and a way out."""

    def __str__(self) -> str:
        # KeyError would show the message in quotes.
        return str(self.args[0]) if self.args else ""


class InvalidArgument(Error, ValueError):
    """A value wrong in every state of the program."""


class AxisError(InvalidArgument, IndexError):
    """An axis beyond those of an array."""


class DivisionByZero(InvalidArgument, ZeroDivisionError):
    """What a result would be divided by is 0."""


class ArgumentError(Error, TypeError):
    """Wrong count, kind, dtype or device of a kernel argument; nothing was launched."""


class ArgumentRangeError(Error, OverflowError):
    """A number outside of the range of the kernel's parameter; nothing was launched."""


class LaunchConfigError(Error, ValueError):
    """Grid, block, cluster or shared memory outside the limits; nothing was launched."""


class NameNotFound(Error, KeyError):
    """No kernel, symbol or option of that name; the message lists the known ones."""


class OutOfBounds(Error, IndexError):
    """A position outside of an array, or more positions than it has axes."""


class DriverNotFound(Error, ImportError):
    """The CUDA driver library is missing or too old."""


class NvrtcNotFound(Error, ImportError):
    """NVRTC or its builtins library is missing; the message lists the places searched."""


class Refused(Error):
    """A scheduler refused a task; the message says what would fit."""


class DeviceNotFound(Error):
    """No device of that index or name."""


class DriverError(Error):
    """A driver call failed: its CUresult in `code`, its CUDA_ERROR_... spelling in `name`."""

    code = 0
    name = ""


class DeviceLost(DriverError):
    """The device met an error beyond recovery; only a new process helps."""


class CaptureError(DriverError):
    """What cannot be part of a graph was asked for during a capture; the capture goes on."""


class PartitionError(Error, ValueError):
    """A device's multiprocessors cannot be divided as asked. All numbers are of multiprocessors:
    `needed` after rounding, `free` in no partition, and the driver's `minimum` and `alignment`."""

    needed = 0
    free = 0
    minimum = 0
    alignment = 0


class OutOfMemory(Error, MemoryError):
    """Not enough device memory. All numbers are bytes."""

    requested = 0
    used = 0
    reserved = 0
    free = 0


class DeviceFault(Error):
    """A fault, found by the simulated device during a launch.

    `kind` is bounds, alignment, use-after-free, init, race, sync, trap or assert; `line` counts
    the kernel's text from 1; `report` is the whole text.
    """

    kind = ""
    kernel = ""
    file = ""
    line = 0
    opcode = ""
    block = (0, 0, 0)
    thread = (0, 0, 0)
    address = 0
    access_size = 0
    allocation = ""
    report = ""


class StoreError(Error, OSError):
    """A file (of arrays, a tuning store, a report, a table) that cannot be read or written; `errno`
    tells why."""


class Timeout(Error, TimeoutError):
    """A deadline or the simulated device's instruction budget ran out."""


class UnsupportedInstruction(Error):
    """The simulated device does not know an instruction; found when the code is loaded."""

    opcode = ""
    line = 0


class NotSliceable(Error):
    """A kernel or a launch that cannot be cut into slices; the message has the reason."""


class PerformanceWarning(RuntimeWarning):
    """A warning: the result is right, and there is a faster way, which the message names."""


class CompileError(Error):
    """The source did not compile; `diagnostics` say where and why, `log` is the compiler's own."""

    diagnostics: Sequence[Diagnostic] = ()
    log = ""
    source = ""
    options: Sequence[str] = ()
