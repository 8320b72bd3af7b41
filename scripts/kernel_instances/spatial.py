"""Instances of the pools and interpolations, for the compile gate."""

from __future__ import annotations

SPATIAL = {
    "pool.cu": [
        f"{name}<{dtype}, {index}>"
        for name in ("pool_largest", "pool_average", "pool_backward")
        for dtype, index in (
            ("Float16", "unsigned int"),
            ("BFloat16", "unsigned long long"),
            ("Float32", "unsigned int"),
            ("Float64", "unsigned long long"),
        )
    ],
    "resample.cu": [
        f"{name}<{mode}, {types}, {index}>"
        for name in ("resample", "resample_backward")
        for mode in ("kNearest", "kNearestExact", "kLinear", "kCubic")
        for types, index in (
            ("Float16, Float32", "unsigned int"),
            ("Float32, BFloat16", "unsigned long long"),
            ("Float64, Float64", "unsigned int"),
        )
    ],
}
