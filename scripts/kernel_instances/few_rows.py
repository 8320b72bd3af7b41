"""Instances of products with few rows and packed weights for the compile gate."""

from __future__ import annotations

from kernel_instances.tables import PACKED

# Scales of formats that make theirs of the weights' groups and types.
SCALE_FORMATS = {
    "int4": ("GroupScales<Float16, 128, -1>", "GroupScales<BFloat16, 64, 8>",
             "GroupScales<Float32, 32, -1>"),
    "nf4": ("GroupScales<Float32, 64, 0>", "NestedScales<64, true>", "NestedScales<32, false>"),
    "fp4": ("GroupScales<Float32, 64, 0>",),
}  # fmt: skip


def forms(name: str) -> list[str]:
    """Codes, scales and run length of a format; {} is the type of the pairs."""
    row = PACKED[name]
    scales = SCALE_FORMATS[name] if name in SCALE_FORMATS else (row["scales"],)
    return [f"{row['codes']}, {each}, {row.get('run', 8)}" for each in scales]


def forms_where(column: str, value: str) -> list[str]:
    """The forms of the formats with this value of a column."""
    return [form for name in PACKED if PACKED[name].get(column) == value for form in forms(name)]


FORM = {name: forms(name)[0] for name in PACKED}
FORMS = [form for name in PACKED for form in forms(name)]
WITHOUT_WARPGROUPS = forms_where("has_warpgroups", "false")
# Products of whole numbers take neither tables nor codes of bytes.
TABLES = forms_where("has_table", "true")
NOT_WHOLE = TABLES + forms_where("bits", "8")
SOURCES = dict.fromkeys(
    [
        "GptqWords, 4, 8, false",
        "AwqWords, 4, 8, false",
        *(
            f"{row['source']}, {int(row.get('bits', 4)) + int(row.get('upper_bits', 0))}, "
            f"{row.get('run', 8)}, {row.get('has_table', 'false')}"
            for row in PACKED.values()
            if "source" in row
        ),
    ]
)
BRAIN = "BFloat16"


def product(dtype: str, form: str, rest: str) -> str:
    """The name of a kernel with few rows."""
    return f"packed_tiles<{dtype}, Packed<{form.format(dtype)}>, {rest}>"


def ring(dtype: str, form: str, rest: str) -> str:
    """The name of a kernel with two to sixteen rows on Hopper."""
    return f"packed_ring<{dtype}, Packed<{form.format(dtype)}>, {rest}>"


def one(dtype: str, form: str, rest: str) -> str:
    """The name of a kernel with one row on Hopper."""
    return f"packed_one<{dtype}, Packed<{form.format(dtype)}>, {rest}>"


def whole(dtype: str, form: str, rest: str) -> str:
    """The name of a product of whole numbers, with one row on Hopper."""
    return f"packed_whole<{dtype}, Packed<{form.format(dtype)}>, {rest}>"


def wgmma(dtype: str, form: str, rest: str) -> str:
    """The name of a kernel by warpgroups, with some rows on Hopper."""
    return f"packed_wgmma<{dtype}, Packed<{form.format(dtype)}>, {rest}>"


def many(dtype: str, form: str, rest: str) -> str:
    """The name of a kernel with more rows."""
    return f"packed_gemm<{dtype}, Packed<{form.format(dtype)}>, {rest}>"


FEW_ROWS: dict[str, list[str]] = {
    "skinny.cu": [
        *(
            f"skinny_tiles<{dtype}, {weights}<{dtype}>, Same, "
            f"8, {rows}, {columns}, {unroll}, {hint}>"
            for dtype in ("Float16", "BFloat16")
            for weights in ("PlainWeights", "Int8Weights", "Float8Weights")
            for rows, columns, unroll, hint in ((1, 1, 4, 0), (2, 2, 2, 2))
        ),
        "skinny_tiles<BFloat16, PlainWeights<BFloat16>, Silu, 4, 1, 8, 1, 1>",
        "skinny_tiles<BFloat16, Float8Weights<BFloat16>, Same, 8, 1, 1, 4, 1>",
        "skinny_tiles<BFloat16, Int8Weights<BFloat16>, Same, 4, 2, 1, 2, 1>",
        "skinny_dot<Float32, Float32, Gelu, 4, 8, 1, 2, 8, 0>",
        "skinny_dot<BFloat16, BFloat16, Same, 8, 1, 4, 4, 4, 2>",
        "skinny_dot<Float32, Int8, Same, 16, 1, 2, 4, 8, 0>",
        "skinny_dot<Float16, Float8E4M3, Same, 1, 4, 2, 4, 1, 0>",
        "skinny_shifted<BFloat16, Same, 1, 4, 8>",
        "skinny_shifted<Float32, Gelu, 8, 2, 4>",
        *(f"add_splits<{dtype}, Relu>" for dtype in ("Float16", "BFloat16", "Float32")),
    ],
    "skinny_columns.cu": [
        "skinny_column_tiles<BFloat16, Same, 8, 1, 2, 0>",
        "skinny_column_tiles<Float16, Gelu, 8, 8, 1, 0>",
        "skinny_columns<Float32, Float32, Same, 4, 8, 4, 8>",
        "skinny_columns<BFloat16, Float8E4M3, Same, 8, 4, 4, 8>",
        "skinny_columns<Float16, Int8, Silu, 1, 1, 4, 8>",
    ],
    "skinny_row.cu": [
        f"skinny_row<{dtype}, {weights}, {act}, {warps}, {units}>"
        for dtype, act in (("BFloat16", "Same"), ("Float16", "Silu"))
        for weights in ("Float8E4M3", "Int8")
        for warps, units in ((8, 1), (16, 1), (14, 2))
    ],
    "skinny_staged.cu": [
        f"skinny_staged<{dtype}, {weights}<{dtype}>, Same, 4, 2, {columns}, 4, false>"
        for dtype, weights in (("BFloat16", "PlainWeights"), ("Float16", "Int8Weights"))
        for columns in (2, 8)
    ],
    "skinny_wgmma.cu": [
        f"skinny_wgmma<{dtype}, {rest}>"
        for dtype, rest in (
            ("BFloat16", "Same, 8, 8, 4, false"),
            ("BFloat16", "Silu, 8, 4, 5, true"),
            ("Float16", "Gelu, 4, 2, 8, false"),
            ("Float16", "Same, 4, 8, 6, true"),
        )
    ],
    "skinny_bytes.cu": [
        f"skinny_bytes<{dtype}, {rest}>"
        for dtype, rest in (
            ("BFloat16, Int8, Same", "8, 2, 8, 8"),
            ("BFloat16, Float8E4M3, Same", "8, 2, 8, 8"),
            ("BFloat16, Int8, Same", "16, 1, 8, 4"),
            ("Float16, Float8E5M2, Silu", "4, 1, 4, 8"),
        )
    ],
    "repack.cu": [
        *(f"pack_codes<{source}>" for source in SOURCES),
        *(f"pack_units<{unit}, 128>" for unit in ("UInt8", "UInt16", "UInt32")),
        *(f"pack_units<{unit}, 256>" for unit in ("UInt16", "UInt32", "UInt64", "Twelve", "Words")),
        *("pack_zeros<false>", "pack_zeros<true>", "find_lines<UInt32>"),
        *(f"unpack<Packed<{form.format(BRAIN)}>, {BRAIN}>" for form in FORMS),
        *(
            f"unpack<Packed<{FORM[name].format(BRAIN)}>, Float32>"
            for name in ("int4", "q4_k", "nvfp4", "iq4_xs", "q2_k", "q3_k")
        ),
    ],
    "packed_gemm.cu": [
        *(many(BRAIN, form, "Same, 4, 1, 8, 3") for form in FORMS),
        *(
            many("Float16", FORM[name], "Same, 4, 1, 8, 3")
            for name in ("int4", "nf4", "fp8_block", "q6_k")
        ),
        many("Float16", forms("int4")[2], "GeluTanh, 4, 2, 16, 2"),
    ],
    "packed_ring.cu": [
        *(ring(BRAIN, form, "Same, 8, 3, 1, 1") for form in FORMS),
        *(ring(BRAIN, FORM[name], "Same, 8, 3, 2, 1") for name in ("int4", "nf4", "q4_k", "nvfp4")),
        ring("Float16", FORM["nf4"], "Silu, 16, 2, 1, 1"),
    ],
    "packed_one.cu": [
        *(one(BRAIN, form, "Same, 16, 2, 2") for form in TABLES),
        one("Float16", FORM["nf4"], "Silu, 8, 3, 0"),
    ],
    "packed_whole.cu": [
        *(
            whole(dtype, form, rest)
            for dtype, rest in ((BRAIN, "Same, 16, 2"), ("Float16", "Silu, 8, 3"))
            for form in FORMS
            if form not in NOT_WHOLE
        ),
    ],
    "packed_wgmma.cu": [
        *(
            wgmma(BRAIN, form, "Same, 4, 8, 4, 2, false")
            for form in FORMS
            if form not in WITHOUT_WARPGROUPS
        ),
        *(
            wgmma("Float16", FORM[name], "Silu, 8, 4, 2, 1, false")
            for name in ("int4", "nf4", "q4_k", "q6_k")
        ),
        *(
            wgmma(BRAIN, FORM[name], "Same, 4, 8, 4, 2, true")
            for name in ("int4", "nf4", "q4_k", "q6_k", "q5_0", "iq4_xs")
        ),
        wgmma(BRAIN, FORM["q4_k"], "Same, 8, 8, 2, 1, false"),
        wgmma(BRAIN, FORM["q4_k"], "Same, 16, 2, 5, 1, false"),
    ],
    "packed_product.cu": [
        *(product(BRAIN, form, "Same, 8, 1, 1, 4") for form in FORMS),
        *(
            product("Float16", FORM[name], "Same, 8, 1, 1, 4")
            for name in ("int4", "nf4", "q8_0", "fp8_block", "q5_k", "mxfp4")
        ),
        product(BRAIN, FORM["q4_k"], "Silu, 8, 1, 2, 2"),
        product("Float16", FORM["q6_k"], "GeluTanh, 4, 1, 8, 1"),
        product(BRAIN, FORM["int4"], "Same, 4, 2, 1, 2"),
        *("add_packed_splits<BFloat16, Same>", "add_packed_splits<Float16, Relu>"),
    ],
}
