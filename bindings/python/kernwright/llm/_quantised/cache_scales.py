"""Scales of cached keys and values that files have beside their weights."""

from __future__ import annotations

import re

from kernwright._core import Array
from kernwright.llm._errors import ModelError
from kernwright.llm._tensors import SafeTensorsFiles

__all__ = ["take_cache_scales"]

# compressed-tensors and ModelOpt give scales these names. The scales of queries (q) and of weights
# of softmax (prob) are dropped: they are for products in float8, which are not made here.
_SCALE = re.compile(
    r"(?:.*\.)?layers\.([0-9]{1,5})\.self_attn\.(?:[qkv]_proj\.)?(q|k|v|prob)_scale"
)


def take_cache_scales(files: SafeTensorsFiles) -> dict[int, tuple[Array, Array]]:
    """The scales of keys and of values by the number of the layer; `files` has none of them then.

    An element of 8 bits times the scale is the number. Raises ModelError for a layer that has only
    one of both.
    """
    found: dict[int, dict[str, Array]] = {}
    for name in files.names():
        match = _SCALE.fullmatch(name)
        if match is None:
            continue
        if match[2] in ("k", "v"):
            found.setdefault(int(match[1]), {})[match[2]] = files.read(name)
        del files.files[name]
    for layer, scales in found.items():
        if len(scales) != 2:
            raise ModelError(
                f"{files.source}: layer {layer} has the {next(iter(scales))}_scale alone"
            )
    return {layer: (scales["k"], scales["v"]) for layer, scales in found.items()}
