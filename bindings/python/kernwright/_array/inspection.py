"""What the namespace can do, as the array API standard asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernwright import _core
from kernwright._array.data_types import isdtype

__all__ = ["__array_namespace_info__"]

_STANDARD = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip


class __array_namespace_info__:
    """Capabilities, devices and element types of `kernwright` as an array API namespace.

    >>> info = kw.__array_namespace_info__()
    >>> info.default_dtypes()["real floating"]
    dtype('float32')
    """

    def __init__(self) -> None:
        pass

    def capabilities(self) -> dict[str, Any]:
        """Boolean masks and sizes that depend on data work; there is no limit of dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The current device of this thread."""
        return _core.current_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """What Python numbers become."""
        return {
            "real floating": _core._result_type(0.0),
            "complex floating": _core._result_type(0j),
            "integral": np.dtype("int64"),
            "indexing": np.dtype("int64"),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The standard's element types by name, of `kind` (see kw.isdtype) where one is named."""
        types = {name: np.dtype(name) for name in _STANDARD}
        return {n: t for n, t in types.items() if kind is None or isdtype(t, kind)}

    def devices(self) -> list[Any]:
        """All devices: those of kw.devices()."""
        return list(_core.devices())
