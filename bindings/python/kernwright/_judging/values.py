"""Values of tasks on their way to the extension and back."""

from __future__ import annotations

from typing import Any

import numpy

from kernwright.errors import ArgumentError

# ("array", dtype's name, shape, bytes), ("integer", int), ("real", float), ("bytes", bytes),
# ("null",)
Packed = tuple[Any, ...]

_INT64 = range(-(1 << 63), 1 << 63)
_UINT64 = range(1 << 64)


def from_torch(value: Any) -> Any:
    """A torch tensor as a NumPy array; any other value as it is."""
    if not (hasattr(value, "detach") and hasattr(value, "cpu")):
        return value
    value = value.detach().cpu()
    if str(value.dtype) == "torch.bfloat16":  # NumPy alone has no such type
        import ml_dtypes
        import torch

        return value.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return value.resolve_conj().numpy() if value.is_complex() else value.numpy()


def _array_dtype(array: numpy.ndarray[Any, Any], what: str) -> str:
    from kernwright import _core

    try:
        return _core._dtype(array.dtype.name).name
    except Exception as error:
        raise ArgumentError(f"{what}: a kernel has no arrays of {array.dtype}") from error


def _bytes_of(array: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """A view of them where the array has no gaps; whoever takes it copies."""
    return numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8)


def pack_array(array: numpy.ndarray[Any, Any], what: str) -> Packed:
    if array.dtype.hasobject:
        raise ArgumentError(f"{what}: an array of Python objects cannot go to a device")
    if array.dtype.kind == "V" and array.dtype.names:  # structs: their bytes
        size = array.dtype.itemsize
        return ("array", "uint8", (*array.shape, size), _bytes_of(array))
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return ("array", _array_dtype(array, what), array.shape, _bytes_of(array))


def pack(value: Any, what: str) -> Packed:
    """A value as the extension takes it. `what` names it in messages."""
    value = from_torch(value)
    if value is None:
        return ("null",)
    if isinstance(value, numpy.ndarray):
        return pack_array(value, what)
    if isinstance(value, (bool, numpy.bool_)):
        return ("integer", int(value))
    if isinstance(value, (int, numpy.integer)):
        number = int(value)
        if number in _INT64:
            return ("integer", number)
        if number in _UINT64:
            return ("bytes", number.to_bytes(8, "little"))
        raise ArgumentError(f"{what}: {number} needs more than 64 bits")
    if isinstance(value, (complex, numpy.complexfloating)):
        return ("bytes", numpy.asarray(value).tobytes())
    if isinstance(value, (float, numpy.floating)):
        return ("real", float(value))
    if isinstance(value, numpy.void):
        return ("bytes", value.tobytes())
    if isinstance(value, (bytes, bytearray)):
        return ("bytes", bytes(value))
    if isinstance(value, numpy.generic):  # the scalars of ml_dtypes
        return ("real", float(value))
    raise ArgumentError(
        f"{what} is a {type(value).__name__}; a task's values are NumPy arrays, numbers, NumPy's "
        "scalars, bytes of a struct, or None for a null pointer"
    )


class Kinds:
    """What the arguments of a task are in Python, so that its functions get such values again."""

    def __init__(self, values: list[Any]) -> None:
        self._kinds = [self._kind(from_torch(value)) for value in values]

    @staticmethod
    def _kind(value: Any) -> Any:
        if isinstance(value, numpy.ndarray):
            return value.dtype
        if isinstance(value, (numpy.generic, complex)):
            return numpy.asarray(value).dtype
        return type(value)

    def unpack(self, packed: list[Packed]) -> list[Any]:
        return [self._one(kind, each) for kind, each in zip(self._kinds, packed, strict=True)]

    @staticmethod
    def _one(kind: Any, packed: Packed) -> Any:
        if packed[0] == "array":
            shape = packed[2]
            if isinstance(kind, numpy.dtype) and kind.names:
                shape = shape[:-1]
            dtype = kind if isinstance(kind, numpy.dtype) else numpy.dtype(packed[1])
            # A bytearray of its own, so that the function may change it.
            return numpy.frombuffer(packed[3], dtype.newbyteorder("=")).reshape(shape)
        if packed[0] == "null":
            return None
        if packed[0] == "bytes":
            if isinstance(kind, numpy.dtype):
                return numpy.frombuffer(packed[1], kind)[0]
            return int.from_bytes(packed[1], "little") if kind is int else packed[1]
        return kind.type(packed[1]) if isinstance(kind, numpy.dtype) else kind(packed[1])
