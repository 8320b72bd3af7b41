"""Instances of grouped products and of routing for the compile gate, by source text."""

from __future__ import annotations

EXPERT_INSTANCES = {
    "gemm.cu": [
        f"gemm<{types}, Tile<{tile}>, Layout<{layout}>, {store}, {ending}, Grouped<Problem>>"
        for types, tile, layout, store, ending in (
            ("BFloat16, BFloat16", "128, 256, 4, 2, false, 2", "false, false", "kByCopies",
             "GatedEpilogue<Silu, NoBias>"),
            ("BFloat16, BFloat16", "64, 256, 4, 2, true, 1", "false, true", "kByCopies",
             "Epilogue<Same, BFloat16, false>"),
            ("Float16, Float16", "64, 64, 8, 1, false, 1", "false, false", "kByElements",
             "Epilogue<ErfcGelu, NoBias, false>"),
            ("Float8E4M3, BFloat16", "128, 192, 4, 2, true, 1", "false, false", "kByCopies",
             "Scaled<Epilogue<Same, NoBias, false>>"),
        )
    ]
    + [
        f"gemm<{types}, Tile<{tile}>, Layout<true, true>, {store}, Epilogue<Same, NoBias, false>, "
        "GroupedInside<Problem>>"
        for types, tile, store in (
            ("BFloat16, BFloat16", "128, 256, 4, 2, false, 2", "kByCopies"),
            ("BFloat16, Float32", "128, 128, 6, 2, true, 1", "kDirect"),
            ("Float16, Float16", "64, 64, 8, 1, false, 1", "kByElements"),
        )
    ],
    "promoted_gemm.cu": [
        f"promoted_gemm<{types}, Tile<{tile}>, {ending}, Grouped<Problem>>"
        for types, tile, ending in (
            ("Float8E4M3, BFloat16", "128, 256, 4, 2, false, 2",
             "true, kByCopies, Epilogue<Same, NoBias, false>"),
            ("Float8E4M3, BFloat16", "128, 128, 5, 2, false, 1",
             "true, kByCopies, GatedEpilogue<Silu, NoBias>"),
            ("MixedE4M3E5M2, Float32", "128, 192, 4, 2, false, 1",
             "true, kDirect, Epilogue<Same, BFloat16, false>"),
            ("Float8E4M3, Float16", "64, 64, 8, 1, false, 1",
             "false, kByElements, Scaled<Epilogue<Same, NoBias, false>>"),
        )
    ],
    "mma_gemm.cu": [
        *(
            f"mma_gemm<{types}, Tile<{tile}>, Layout<false, {turned}>, Epilogue<{ending}>, "
            "Grouped<Problem>>"
            for types, tile, turned, ending in (
                ("BFloat16, BFloat16", "128, 128, 64, 64, 4", "false", "Silu, BFloat16, false"),
                ("Float16, Float32", "64, 64, 32, 32, 3", "true", "Same, NoBias, false"),
            )
        ),
        *(
            f"mma_gemm<{types}, Tile<{tile}>, Layout<true, true>, Epilogue<Same, NoBias, false>, "
            "GroupedInside<Problem>>"
            for types, tile in (
                ("BFloat16, Float32", "128, 128, 64, 64, 4"),
                ("Float16, Float16", "64, 64, 32, 32, 3"),
            )
        ),
    ],
    "fma_gemm.cu": [
        f"fma_gemm<Float32, Float32, Tile<Float32, {tile}>, {ways}, false, "
        f"Epilogue<{ending}>, {work}<Problem>>"
        for tile, ways, ending, work in (
            ("128, 128, 8, 8, 8, 4", "kAlong, kPacks", "Silu, Float32, false", "Grouped"),
            ("32, 64, 4, 4, 16, 4", "kAcross, kAlong", "Same, NoBias, false", "Grouped"),
            ("64, 128, 8, 8, 32, 2", "kPacks, kPacks", "Same, NoBias, false", "GroupedInside"),
        )
    ],
    "route.cu": ["route<Float16, 1>", "route<BFloat16, 8>", "route<Float32, 32>"],
    "permute.cu": [
        *("count_pairs<int>", "place_pairs<int>"),
        *(f"spread_rows<{unit}>" for unit in ("unsigned char", "unsigned short", "Unit16")),
        *("gather_sums<BFloat16, 8>", "gather_sums<Float32, 4>", "gather_sums<Float64, 1>"),
    ],
}  # fmt: skip
