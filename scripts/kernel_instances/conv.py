"""Instances of the convolutions, for the compile gate."""

from __future__ import annotations

_TYPES = ("Float16", "BFloat16", "Float32", "Float64")
_INDICES = ("unsigned int", "unsigned long long")

CONV = {
    "windows.cu": [
        name.format(dtype)
        for dtype in _TYPES
        for name in (
            "unfold<{}, 8>",
            "unfold<{}, 64>",
            "lay_weights<{}>",
            "fold<{}>",
            "spread<{}>",
        )
    ],
    "direct.cu": [
        *(
            f"{name}<{dtype}, {index}>"
            for name in ("convolve", "convolve_rows", "convolve_transposed")
            for dtype in _TYPES
            for index in _INDICES
        ),
        *(f"weight_gradient<{dtype}>" for dtype in _TYPES),
    ],
}
