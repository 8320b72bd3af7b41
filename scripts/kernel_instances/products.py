"""Instances of products by wgmma, and of the kernels before and after them."""

from __future__ import annotations

from kernel_instances.tables import further, tiles

# For gemm.cu: types; the tile; the operands' layout; how the result is written; the epilogue.
PRODUCTS = [
    ("BFloat16, BFloat16", "128, 256, 4, 2, false, 2", "false, false", "kByCopies",
     "Epilogue<Same, NoBias, false>"),
    ("Float16, Float16", "256, 128, 4, 2, false, 2", "true, true", "kByElements",
     "Epilogue<ErfcGelu, Float16, true>"),
    ("BFloat16, Float32", "128, 192, 4, 2, false, 1", "false, true", "kDirect",
     "Epilogue<Relu, Float32, true>"),
    ("BFloat16, Float16", "128, 128, 6, 2, true, 2", "true, false", "kByCopies",
     "Epilogue<Silu, NoBias, true>"),
    ("Float16, BFloat16", "64, 64, 8, 1, false, 1", "false, false", "kByCopies",
     "Epilogue<Same, BFloat16, false>"),
    ("BFloat16, BFloat16", "128, 256, 4, 2, false, 2", "false, false", "kByCopies",
     "GatedEpilogue<Silu, NoBias>"),
    ("BFloat16, BFloat16", "128, 160, 4, 2, true, 1", "false, true", "kByCopies",
     "Epilogue<Same, BFloat16, true>"),
    ("Float16, Float16", "128, 224, 4, 2, false, 2", "true, false", "kByElements",
     "Epilogue<Same, NoBias, false>"),
    ("BFloat16, BFloat16", "192, 192, 4, 3, false, 2", "false, true", "kByCopies",
     "Epilogue<Same, NoBias, false>"),
    ("Float16, Float16", "192, 192, 4, 3, false, 1", "true, false", "kByElements",
     "Epilogue<ErfcGelu, Float16, true>"),
    ("Float32, Float32", "256, 160, 3, 2, false, 1", "false, false", "kByCopies",
     "Epilogue<Same, NoBias, false>"),
    ("Int8, Int32", "128, 224, 4, 2, false, 1", "false, false", "kDirect",
     "Epilogue<Same, NoBias, false>"),
    ("Float8E4M3, BFloat16", "128, 256, 4, 2, false, 2", "false, false", "kByCopies",
     "Scaled<Epilogue<Same, BFloat16, false>>"),
    ("MixedE5M2E4M3, Float32", "128, 192, 4, 2, false, 1", "false, false", "kDirect",
     "Scaled<Epilogue<Same, NoBias, false>>"),
    ("Float8E4M3, BFloat16", "128, 192, 4, 2, true, 1", "false, false", "kByCopies",
     "Scaled<Epilogue<Same, NoBias, false>>"),
    ("Float8E5M2, Float32", "128, 176, 4, 2, false, 2", "false, false", "kByCopies",
     "Scaled<Epilogue<Same, NoBias, false>, true>"),
    ("Int8, Int32", "256, 128, 4, 2, false, 2", "false, false", "kByCopies",
     "Epilogue<Same, NoBias, false>"),
    ("Int8, Int8", "64, 64, 8, 1, false, 1", "false, false", "kDirect",
     "Epilogue<Same, NoBias, false>"),
    ("Int8, BFloat16", "128, 256, 4, 2, false, 2", "false, false", "kByCopies",
     "Scaled<Epilogue<Same, Float32, false>>"),
    ("Float32, Float32", "128, 256, 4, 2, false, 2", "false, false", "kByCopies",
     "Epilogue<ErfcGelu, Float32, true>"),
    ("Float32, BFloat16", "128, 128, 6, 2, true, 2", "false, false", "kByElements",
     "Epilogue<Same, NoBias, true>"),
    ("BFloat16, BFloat16", "128, 64, 7, 2, false, 2, true", "false, false", "kByCopies",
     "Epilogue<Same, BFloat16, true>"),
    ("Int8, Int32", "64, 64, 12, 1, false, 3, true", "false, false", "kDirect",
     "Epilogue<Same, NoBias, false>"),
    ("Float16, Float32", "64, 96, 8, 1, false, 2", "true, true", "kByCopies",
     "Epilogue<Same, NoBias, false>"),
]  # fmt: skip
# Each tile of the planner is here, too, in the plainest instance.
PRODUCTS += [
    ("BFloat16, BFloat16", tile, "false, false", "kByCopies", "Epilogue<Same, NoBias, false>")
    for tile in further(tiles("gemm/gemm_tile.cpp", "kGemmTiles", "kSplitKTiles"), PRODUCTS)
]
# The same for promoted_gemm.cu; then whether blocks have scales.
PROMOTED = [
    ("Float8E4M3, BFloat16", "256, 128, 3, 2, false, 2", "true", "kByCopies",
     "Epilogue<Same, NoBias, false>"),
    ("Float8E4M3, Float32", "128, 192, 4, 2, false, 1", "true", "kDirect",
     "Epilogue<Same, BFloat16, false>"),
    ("MixedE5M2E4M3, Float16", "128, 128, 5, 2, false, 2", "true", "kByElements",
     "Epilogue<Same, Float32, true>"),
    ("Float8E5M2, BFloat16", "64, 64, 8, 1, false, 1", "true", "kByCopies",
     "Epilogue<Same, NoBias, false>"),
    ("Float8E4M3, BFloat16", "256, 128, 3, 2, false, 1", "false", "kByCopies",
     "Scaled<Epilogue<Same, BFloat16, false>>"),
    ("MixedE4M3E5M2, Float32", "128, 192, 4, 2, false, 2", "false", "kDirect",
     "Scaled<Epilogue<Same, NoBias, false>>"),
    ("Float8E4M3, Float32", "128, 64, 7, 2, false, 1", "false", "kByCopies",
     "Epilogue<Same, NoBias, false>"),
    ("Float8E4M3, BFloat16", "64, 64, 8, 1, false, 2, true", "true", "kByCopies",
     "Epilogue<Same, NoBias, false>"),
    ("Float8E4M3, BFloat16", "128, 64, 7, 2, false, 3, true", "false", "kByCopies",
     "Scaled<Epilogue<Same, NoBias, false>>"),
    ("Float8E4M3, BFloat16", "256, 128, 4, 2, false, 2", "false", "kByCopies",
     "Scaled<Epilogue<Same, NoBias, false>, true>"),
    ("Float8E4M3, BFloat16", "128, 256, 4, 2, false, 2", "true", "kByCopies",
     "Epilogue<Same, NoBias, false>"),
    ("Float8E4M3, BFloat16", "128, 128, 5, 2, false, 2", "false", "kByCopies",
     "GatedEpilogue<Silu, NoBias>"),
]  # fmt: skip
PROMOTED += [
    ("Float8E4M3, BFloat16", tile, scales, "kByCopies", "Epilogue<Same, NoBias, false>")
    for array, scales in (("kPromotedTiles", "false"), ("kSplitKBlockTiles", "true"))
    for tile in further(tiles("gemm/gemm_tile.cpp", array), PROMOTED)
]
SCALED_MMA_PRODUCTS = [
    f"mma_gemm<Int8, {out}, Tile<128, 128, 64, 64, 4>, Layout<false, false>, {ending}>"
    for out, ending in (
        ("BFloat16", "Scaled<Epilogue<Same, BFloat16, false>>"),
        ("Float32", "Scaled<Epilogue<Same, NoBias, false>>"),
    )
]
# For finish_product.cu: the epilogue, and the elements of a pack.
FINISHED = [
    ("Epilogue<Same, NoBias, false>", 4),
    ("Epilogue<GeluTanh, BFloat16, true>", 1),
    ("Scaled<Epilogue<Same, BFloat16, false>>", 4),
]
QUANTIZED_BLOCKS = [
    f"quantize_blocks<{to}, {dtype}, {block}, {width}>"
    for to in ("Int8", "Float8E4M3", "Float8E5M2")
    for dtype, block, width in (("BFloat16", 128, 8), ("Float16", 256, 1), ("Float32", 16, 4))
]
