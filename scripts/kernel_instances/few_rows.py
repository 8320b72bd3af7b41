"""Instances of products with few rows and packed weights for the compile gate."""

from __future__ import annotations

# Codes, scales and run length of each format; {} is the type of the pairs.
FORMATS = [
    "WholeCodes<{}, 4>, GroupScales<Float16, 128, -1>, 8",
    "WholeCodes<{}, 4>, GroupScales<BFloat16, 64, 8>, 8",
    "WholeCodes<{}, 4>, GroupScales<Float32, 32, -1>, 8",
    "WholeCodes<{}, 4>, GroupScales<Float16, 32, 8>, 8",
    "TableCodes<{}, NormalTable>, GroupScales<Float32, 64, 0>, 8",
    "TableCodes<{}, NormalTable>, NestedScales<64, true>, 8",
    "TableCodes<{}, NormalTable>, NestedScales<32, false>, 8",
    "ByteCodes<Int8Weights<{}>>, GroupScales<Float16, 32, 0>, 8",
    "ByteCodes<Float8Weights<{}>>, TileScales, 8",
    "WholeCodes<{}, 4>, BlockScales, 8",
    "WholeCodes<{}, 5>, BlockScales, 8",
    "WholeCodes<{}, 6>, SixScales, 4",
    "Float4Codes<{}>, PowerScales, 8",
    "Float4Codes<{}>, TinyScales, 4",
    "WholeCodes<{}, 5>, GroupScales<Float16, 32, 16>, 8",
    "TableCodes<{}, UnevenTable>, GroupScales<Float16, 32, 0>, 8",
    "TableCodes<{}, UnevenTable>, UnevenScales, 8",
    "TableCodes<{}, TwelfthTable>, GroupScales<Float32, 64, 0>, 8",
    "WholeCodes<{}, 4>, AddedScales, 8",
    "WholeCodes<{}, 5>, AddedScales, 8",
    "FewCodes<{}, 2>, TwoScales, 4",
    "FewCodes<{}, 3>, ThreeScales, 4",
]
WITHOUT_BOXES = 4  # how many of the last formats have no kernel by warpgroups
SOURCES = [
    *("GptqWords, 4, 8, false", "AwqWords, 4, 8, false", "Nibbles<true>, 4, 8, true"),
    *("Nibbles<false>, 4, 8, false", "Nibbles<false>, 4, 4, false", "Field, 8, 8, false"),
    *("ShortBlocks<18, false>, 4, 8, false", "ShortBlocks<20, false>, 4, 8, false"),
    *("ShortBlocks<22, true>, 5, 8, false", "ShortBlocks<24, true>, 5, 8, false"),
    *("ShortBlocks<18, false>, 4, 8, true", "UnevenBlocks, 4, 8, true"),
    *("FewBlocks<84, 16, false>, 2, 4, false", "FewBlocks<110, 32, true>, 3, 4, false"),
    *("KBlocks<false>, 4, 8, false", "KBlocks<true>, 5, 8, false"),
    "SixBlocks, 6, 4, false",
]
BRAIN = "BFloat16"


def product(of: str, form: str, rest: str) -> str:
    """The name of a kernel with few rows."""
    return f"packed_tiles<{of}, Packed<{form.format(of)}>, {rest}>"


def ring(of: str, form: str, rest: str) -> str:
    """The name of a kernel with two to sixteen rows on Hopper."""
    return f"packed_ring<{of}, Packed<{form.format(of)}>, {rest}>"


def one(of: str, form: str, rest: str) -> str:
    """The name of a kernel with one row on Hopper."""
    return f"packed_one<{of}, Packed<{form.format(of)}>, {rest}>"


def whole(of: str, form: str, rest: str) -> str:
    """The name of a product of whole numbers, with one row on Hopper."""
    return f"packed_whole<{of}, Packed<{form.format(of)}>, {rest}>"


def row(of: str, form: str, rest: str) -> str:
    """The name of a product with one row whose weights go straight into registers."""
    return f"packed_row<{of}, Packed<{form.format(of)}>, {rest}>"


def boxes(of: str, form: str, rest: str) -> str:
    """The name of a kernel by warpgroups, with some rows on Hopper."""
    return f"packed_wgmma<{of}, Packed<{form.format(of)}>, {rest}>"


def many(of: str, form: str, rest: str) -> str:
    """The name of a kernel with more rows."""
    return f"packed_gemm<{of}, Packed<{form.format(of)}>, {rest}>"


FEW_ROWS: dict[str, list[str]] = {
    "skinny.cu": [
        *(
            f"skinny_tiles<{of}, {weights}<{of}>, Identity, 8, {rows}, {columns}, {unroll}, {hint}>"
            for of in ("Float16", "BFloat16")
            for weights in ("PlainWeights", "Int8Weights", "Float8Weights")
            for rows, columns, unroll, hint in ((1, 1, 4, 0), (2, 2, 2, 2))
        ),
        "skinny_tiles<BFloat16, PlainWeights<BFloat16>, Silu, 4, 1, 8, 1, 1>",
        "skinny_tiles<BFloat16, Float8Weights<BFloat16>, Identity, 8, 1, 1, 4, 1>",
        "skinny_tiles<BFloat16, Int8Weights<BFloat16>, Identity, 4, 2, 1, 2, 1>",
        "skinny_dot<Float32, Float32, Gelu, 4, 8, 1, 2, 8, 0>",
        "skinny_dot<BFloat16, BFloat16, Identity, 8, 1, 4, 4, 4, 2>",
        "skinny_dot<Float32, Int8, Identity, 16, 1, 2, 4, 8, 0>",
        "skinny_dot<Float16, Float8E4M3, Identity, 1, 4, 2, 4, 1, 0>",
        "skinny_shifted<BFloat16, Identity, 1, 4, 8>",
        "skinny_shifted<Float32, Gelu, 8, 2, 4>",
        *(f"add_splits<{of}, Relu>" for of in ("Float16", "BFloat16", "Float32")),
    ],
    "skinny_columns.cu": [
        "skinny_column_tiles<BFloat16, Identity, 8, 1, 2, 0>",
        "skinny_column_tiles<Float16, Gelu, 8, 8, 1, 0>",
        "skinny_columns<Float32, Float32, Identity, 4, 8, 4, 8>",
        "skinny_columns<BFloat16, Float8E4M3, Identity, 8, 4, 4, 8>",
        "skinny_columns<Float16, Int8, Silu, 1, 1, 4, 8>",
    ],
    "skinny_row.cu": [
        f"skinny_row<{of}, {weights}, {act}, {warps}, {units}>"
        for of, act in (("BFloat16", "Identity"), ("Float16", "Silu"))
        for weights in ("Float8E4M3", "Int8")
        for warps, units in ((8, 1), (16, 1), (14, 2))
    ],
    "skinny_staged.cu": [
        f"skinny_staged<{of}, {weights}<{of}>, Identity, 4, 2, {columns}, 4, false>"
        for of, weights in (("BFloat16", "PlainWeights"), ("Float16", "Int8Weights"))
        for columns in (2, 8)
    ],
    "skinny_wgmma.cu": [
        f"skinny_wgmma<{of}, {rest}>"
        for of, rest in (
            ("BFloat16", "Identity, 8, 8, 4, false"),
            ("BFloat16", "Silu, 8, 4, 5, true"),
            ("Float16", "Gelu, 4, 2, 8, false"),
            ("Float16", "Identity, 4, 8, 6, true"),
        )
    ],
    "skinny_bytes.cu": [
        f"skinny_bytes<{of}, {rest}>"
        for of, rest in (
            ("BFloat16, Int8, Identity", "8, 2, 8, 8"),
            ("BFloat16, Float8E4M3, Identity", "8, 2, 8, 8"),
            ("BFloat16, Int8, Identity", "16, 1, 8, 4"),
            ("Float16, Float8E5M2, Silu", "4, 1, 4, 8"),
        )
    ],
    "repack.cu": [
        *(f"pack_codes<{source}>" for source in SOURCES),
        *(f"pack_units<{unit}, 128>" for unit in ("UInt8", "UInt16", "UInt32")),
        *(f"pack_units<{unit}, 256>" for unit in ("UInt16", "UInt32", "UInt64", "Twelve", "Words")),
        *("pack_zeros<false>", "pack_zeros<true>", "find_lines<UInt32>"),
        *(f"unpack<Packed<{form.format(BRAIN)}>, {BRAIN}>" for form in FORMATS),
        *(f"unpack<Packed<{FORMATS[i].format(BRAIN)}>, Float32>" for i in (0, 9, 13, 16, 20, 21)),
    ],
    "packed_gemm.cu": [
        *(many(BRAIN, form, "Identity, 4, 1, 8, 3") for form in FORMATS),
        *(many("Float16", FORMATS[i], "Identity, 4, 1, 8, 3") for i in (0, 4, 8, 11)),
        many("Float16", FORMATS[2], "GeluTanh, 4, 2, 16, 2"),
    ],
    "packed_ring.cu": [
        *(ring(BRAIN, form, "Identity, 8, 3, 1, 1") for form in FORMATS),
        *(ring(BRAIN, FORMATS[i], "Identity, 8, 3, 2, 1") for i in (0, 4, 9, 13)),
        ring("Float16", FORMATS[4], "Silu, 16, 2, 1, 1"),
    ],
    "packed_one.cu": [
        *(one(BRAIN, FORMATS[i], "Identity, 16, 2, 2") for i in (4, 5, 6, 7, 8, 15, 16, 17)),
        one("Float16", FORMATS[4], "Silu, 8, 3, 0"),
    ],
    "packed_whole.cu": [
        *(
            whole(of, FORMATS[i], rest)
            for of, rest in ((BRAIN, "Identity, 16, 2"), ("Float16", "Silu, 8, 3"))
            for i in (0, 1, 2, 3, 9, 10, 11, 12, 13, 14, 18, 19, 20, 21)
        ),
    ],
    "packed_wgmma.cu": [
        *(boxes(BRAIN, form, "Identity, 4, 8, 4, 2, false") for form in FORMATS[:-WITHOUT_BOXES]),
        *(boxes("Float16", FORMATS[i], "Silu, 8, 4, 2, 1, false") for i in (0, 4, 9, 11)),
        *(boxes(BRAIN, FORMATS[i], "Identity, 4, 8, 4, 2, true") for i in (0, 4, 9, 11, 14, 16)),
        boxes(BRAIN, FORMATS[9], "Identity, 8, 8, 2, 1, false"),
        boxes(BRAIN, FORMATS[9], "Identity, 16, 2, 5, 1, false"),
    ],
    "packed_row.cu": [
        *(row(BRAIN, form, "Identity, 8, 2") for form in FORMATS),
        *(row("Float16", FORMATS[i], "Silu, 8, 2") for i in (0, 9, 11, 13)),
        *(row(of, FORMATS[4], "Identity, 8, 1") for of in (BRAIN, "Float16")),
        row(BRAIN, FORMATS[9], "Identity, 16, 1"),
    ],
    "packed_product.cu": [
        *(product(BRAIN, form, "Identity, 8, 1, 1, 4") for form in FORMATS),
        *(product("Float16", FORMATS[i], "Identity, 8, 1, 1, 4") for i in (0, 4, 7, 8, 10, 12)),
        product(BRAIN, FORMATS[9], "Silu, 8, 1, 2, 2"),
        product("Float16", FORMATS[11], "GeluTanh, 4, 1, 8, 1"),
        product(BRAIN, FORMATS[0], "Identity, 4, 2, 1, 2"),
        *("add_packed_splits<BFloat16, Identity>", "add_packed_splits<Float16, Relu>"),
    ],
}
