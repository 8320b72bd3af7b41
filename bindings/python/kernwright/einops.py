"""einops for arrays of Kernwright: importing this module makes them known to it.

```python
import kernwright as kw, kernwright.einops
from einops import rearrange, reduce

rearrange(kw.ones((2, 3, 4)), "b h w -> b (h w)").shape    # (2, 12)
reduce(kw.ones((2, 4, 4)), "b (h 2) (w 2) -> b h w", "mean")
```

`rearrange` makes a view where strides allow it. Nothing is copied to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from einops._backends import AbstractBackend

import kernwright as kw

__all__ = ["KernwrightBackend"]


class KernwrightBackend(AbstractBackend):
    """What einops calls. It finds this class among the subclasses of its own when it first meets an
    array."""

    framework_name = "kernwright"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, kw.Array)

    def from_numpy(self, x: Any) -> kw.Array:
        return kw.asarray(x)

    def to_numpy(self, x: kw.Array) -> np.ndarray[Any, Any]:
        return x.numpy()

    def arange(self, start: int, stop: int) -> kw.Array:
        return kw.arange(start, stop)

    def stack_on_zeroth_dimension(self, tensors: Sequence[kw.Array]) -> kw.Array:
        return kw.stack(tensors)

    def tile(self, x: kw.Array, repeats: Sequence[int]) -> kw.Array:
        return kw.tile(x, tuple(repeats))

    def concat(self, tensors: Sequence[kw.Array], axis: int) -> kw.Array:
        return kw.concat(tensors, axis=axis)

    def add_axis(self, x: kw.Array, new_position: int) -> kw.Array:
        return kw.expand_dims(x, axis=new_position)

    def is_float_type(self, x: kw.Array) -> bool:
        return kw.isdtype(x.dtype, ("real floating", "complex floating"))

    def einsum(self, pattern: str, *x: kw.Array) -> kw.Array:
        return kw.einsum(pattern, *x)
