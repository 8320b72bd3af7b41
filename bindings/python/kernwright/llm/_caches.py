"""What a model keeps of each token: the elements of its caches, and their scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import kernwright as kw
from kernwright._core import Array
from kernwright.errors import OutOfMemory
from kernwright.llm._errors import ModelError
from kernwright.llm._paged_step import LayerCache
from kernwright.llm._weights.available import available_bytes

__all__ = [
    "BYTES",
    "CacheFormat",
    "CacheLayer",
    "made_caches",
    "named_arrays",
    "on_host",
    "require_pages",
]

CacheLayer = tuple[int, int] | tuple[int, int, int]
"""(kv_heads, head_dim) of the keys and values of a layer, and with latent attention the elements
of the vector in their place."""

BYTES = ("int8", "float8_e4m3fn", "float8_e5m2")
"""Elements of 8 bits, which queries of 16 bits attend to."""
_SCALES = 2 * 4  # bytes of the scales of keys and of values
_WIDEST_FLOAT32 = 256  # elements of latent vectors in attention


class CacheFormat(NamedTuple):
    """The dtype of keys and values, and the scales that files have for the heads of some layers.

    Of "int8" each token and head has a scale of its own, its largest magnitude divided by 127, as
    vLLM's int8_per_token_head has it.
    """

    dtype: str
    scales: Mapping[int, tuple[Array, Array]] = {}

    @classmethod
    def of(cls, dtype: Any) -> CacheFormat:
        """The format of a dtype, or itself."""
        return dtype if isinstance(dtype, cls) else cls(kw.empty((0,), dtype).dtype.name)

    def keeps_latent(self, layer: CacheLayer) -> bool:
        """Whether a layer keeps one vector of each token in place of keys and values. Elements of 8
        bits have scales by heads, and come from keys and values."""
        if len(layer) == 2 or self.dtype in BYTES:
            return False
        return self.dtype != "float32" or layer[2] <= _WIDEST_FLOAT32

    def token_bytes(self, layers: Sequence[CacheLayer]) -> int:
        """Bytes of one token in all layers."""
        item = kw.empty((0,), self.dtype).dtype.itemsize
        more = _SCALES if self.dtype == "int8" else 0
        return sum(
            layer[-1] * item if self.keeps_latent(layer) else
            layer[0] * (2 * layer[1] * item + more)
            for layer in layers
        )  # fmt: skip

    def make(
        self, layers: Sequence[CacheLayer], pages: int, page_size: int, capacity: int,
        device: Any,
    ) -> list[LayerCache]:  # fmt: skip
        """Pages of zeros: 0 times what nobody wrote must not be NaN. Raises OutOfMemory, which
        tells how many tokens would fit."""
        return made_caches([(self, layers)], pages, page_size, capacity, device)[0]

    def _layer(self, number: int, layer: CacheLayer, pages: int, page_size: int) -> LayerCache:
        if self.keeps_latent(layer):
            return LayerCache(kw.zeros((pages, page_size, 1, layer[-1]), self.dtype), None)
        shape = (pages, page_size, *layer[:2])
        keys, values = (kw.zeros(shape, self.dtype) for _ in range(2))
        if self.dtype == "int8":
            return LayerCache(keys, values, *(kw.zeros(shape[:-1]) for _ in range(2)))
        if self.dtype not in BYTES or number not in self.scales:
            return LayerCache(keys, values)
        heads = shape[2]
        found = []
        for scale in self.scales[number]:
            if scale.size not in (1, heads):
                raise ModelError(
                    f"the scales of cached keys or values of layer {number} are {scale.size}, and "
                    f"there is one, or one for each of {heads} heads"
                )
            wide = scale.reshape((-1,)).astype("float32")
            found.append(kw.broadcast_to(wide, (heads,)).copy())
        return LayerCache(keys, values, *found)


def made_caches(
    models: Sequence[tuple[CacheFormat, Sequence[CacheLayer]]], pages: int, page_size: int,
    capacity: int, device: Any,
) -> list[list[LayerCache]]:  # fmt: skip
    """CacheFormat.make() for models that have the same pages."""
    made: list[list[LayerCache]] = []
    try:
        for format, layers in models:
            made.append([])
            for number, layer in enumerate(layers):
                made[-1].append(format._layer(number, layer, pages, page_size))
        return made
    except OutOfMemory as error:
        made.clear()  # else the error would keep it
        token = sum(format.token_bytes(layers) for format, layers in models)
        raise OutOfMemory(_too_large(token, pages * page_size, capacity, device)) from error


def on_host(device: Any) -> Any:
    """Within it arrays are made in page-locked memory of the host, which kernels read and write."""
    return kw.memory.use(kw.memory.PinnedResource(device))


def named_arrays(caches: Sequence[LayerCache]) -> list[tuple[str, Array, bool]]:
    """The arrays of all layers by names like "layers.0.keys", and whether they have pages. Scales
    of files have none: they hold for all tokens."""
    return [
        (f"layers.{number}.{name}", array, array.ndim > 1)
        for number, cache in enumerate(caches)
        for name, array in cache._asdict().items() if array is not None
    ]  # fmt: skip


def require_pages(
    caches: Sequence[tuple[str, Array, bool]], arrays: Mapping[str, Array], pages: int
) -> None:
    """Raises ModelError unless `arrays` have what so many pages of these caches hold."""
    for name, cache, is_paged in caches:
        found = arrays.get(name)
        shape = (pages, *cache.shape[1:]) if is_paged else cache.shape
        if found is None or (found.shape, found.dtype.name) != (shape, cache.dtype.name):
            got = "none" if found is None else f"{found.shape} of {found.dtype.name}"
            raise ModelError(
                f"{name} of {pages} pages is {shape} of {cache.dtype.name}, and the snapshot has "
                f"{got}"
            )
        if not is_paged and not np.array_equal(found.numpy(), cache.numpy()):
            raise ModelError(f"{name} of the snapshot differs from that of this model")


def _too_large(token: int, wanted: int, capacity: int, device: Any) -> str:
    """What fits in place of `wanted` tokens of so many bytes each."""
    left = available_bytes(device)
    fitting = max(left, 0) // token
    whole = fitting // capacity
    several = f"{whole} sequences" if whole else "no sequence"
    return (
        f"keys and values of {wanted} tokens need {wanted * token / 2**30:.2f} GiB, {token} bytes "
        f"each, and {device.name} has {left / 2**30:.2f} GiB left: {fitting} tokens fit, as "
        f"{several} of {capacity} tokens, or a single one of {fitting}"
    )
