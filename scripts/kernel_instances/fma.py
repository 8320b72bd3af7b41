"""Instances of the products without tensor cores for the compile gate."""

from __future__ import annotations

from kernel_instances.tables import further, tiles

# Types; the tile; how both operands are copied; whether all tiles are whole; the epilogue.
FMA_PRODUCTS = [
    ("Float32, Float32", "128, 128, 8, 8, 8, 4", "kAlong, kPacks, true", "Same, NoBias, false"),
    ("Float32, Float32", "128, 128, 16, 8, 8, 3", "kAlong, kAlong, true", "Same, NoBias, false"),
    ("Float32, Float32", "64, 128, 8, 8, 32, 2", "kAlong, kPacks, false", "Same, NoBias, false"),
    (
        "Float32, Float32",
        "128, 128, 8, 8, 8, 4",
        "kPacks, kPacks, false",
        "ErfcGelu, Float32, true",
    ),
    ("Float32, BFloat16", "128, 64, 8, 8, 8, 4", "kAcross, kAlong, false", "Same, BFloat16, true"),
    ("Float32, Float32", "64, 64, 8, 4, 8, 4", "kAcross, kAcross, false", "Silu, Float16, false"),
    ("Float32, Float32", "32, 64, 4, 4, 16, 4", "kAlong, kAcross, false", "Same, NoBias, false"),
    ("Float64, Float64", "128, 64, 8, 8, 8, 4", "kAlong, kPacks, false", "Same, NoBias, false"),
    ("Float64, Float64", "32, 64, 4, 4, 16, 4", "kAcross, kAcross, false", "Same, NoBias, false"),
]
# Each tile of the planner is here, too, in the plainest instance.
FMA_PRODUCTS += [
    (f"{dtype}, {dtype}", tile, "kAlong, kPacks, false", "Same, NoBias, false")
    for dtype, array in (("Float32", "kFloatTiles"), ("Float64", "kDoubleTiles"))
    for tile in further(
        tiles("gemm/fma/fma_choice.cpp", array),
        [row for row in FMA_PRODUCTS if row[0].startswith(dtype)],
    )
]
WHOLE = ["Bool", "Int8", "Int64", "UInt16", "BFloat16", "Float8E4M3", "Complex64", "Complex128"]
FMA = {
    "matmul.cu": [f"matmul<{dtype}>" for dtype in WHOLE],
    "fma_gemm.cu": [
        f"fma_gemm<{types}, Tile<{types.split(',')[0]}, {tile}>, {ways}, Epilogue<{ending}>>"
        for types, tile, ways, ending in FMA_PRODUCTS
    ],
}
