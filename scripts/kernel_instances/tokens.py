"""Instances of the kernels that write new tokens into caches, for the compile gate."""

from __future__ import annotations

TOKENS = {
    "cache_append.cu": [
        *(
            f"append_cache<{dtype}, {dtype}, {n}>"
            for dtype, n in (("Float16", 8), ("BFloat16", 1), ("Float32", 4))
        ),
        *(
            f"append_cache<{dtype}, {to}, 8>"
            for dtype in ("Float16", "BFloat16")
            for to in ("Int8", "Float8E4M3", "Float8E5M2")
        ),
    ],
    "append_qkv.cu": [
        f"append_qkv<{dtype}, {to}, {pack}, {interleaved}, {norms}>"
        for dtype, to, pack in (
            ("BFloat16", "BFloat16", "8, 2, 8"),
            ("BFloat16", "Float8E4M3", "8, 2, 16"),
            ("Float16", "Int8", "8, 1, 8"),
            ("Float16", "Float8E5M2", "2, 8, 8"),
            ("Float32", "Float32", "4, 4, 16"),
            ("Float32", "Int8", "1, 16, 16"),
        )
        for interleaved in ("false", "true")
        for norms in ("false", "true")
    ]
    + ["append_qkv<BFloat16, Int8, 8, 2, 8, false, true, true>"],
}
