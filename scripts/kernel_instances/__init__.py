"""Template instances of the library for the compile gate, by source text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kernel_instances.arrays import ARRAYS
from kernel_instances.attention import ATTENTION
from kernel_instances.conv import CONV
from kernel_instances.copies import COPIES, INDICES
from kernel_instances.draws import DRAWS
from kernel_instances.experts import EXPERT_INSTANCES
from kernel_instances.few_rows import FEW_ROWS
from kernel_instances.fma import FMA
from kernel_instances.optim import OPTIMIZERS
from kernel_instances.ordering import ORDERING
from kernel_instances.products import (
    FINISHED,
    PRODUCTS,
    PROMOTED,
    QUANTIZED_BLOCKS,
    SCALED_MMA_PRODUCTS,
)
from kernel_instances.recurrent import RECURRENT
from kernel_instances.spatial import SPATIAL
from kernel_instances.tables import ACTIVATIONS, GGUF_BLOCKS, HALF_ACTIVATIONS
from kernel_instances.tokens import TOKENS

ROOT = Path(__file__).resolve().parents[2]
TYPES = ["Bool", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]
TYPES += ["Float16", "BFloat16", "Float32", "Float64", "Float8E4M3", "Float8E5M2"]
TYPES += ["Complex64", "Complex128"]
ROWS = re.compile(r"^KW_OPERATION\(\w+, (\w+), (\d), (\w+), \w+, \w+, (\w+),", re.MULTILINE)


def elementwise() -> Iterator[str]:
    """Each operation of operations.def in both kernels, and every conversion of an operand."""
    table = (ROOT / "kernels_src" / "elementwise" / "operations.def").read_text()
    for functor, arity, domain, result in ROWS.findall(table):
        kinds = {"whole": "Int32", "logical": "Bool", "widest": "Float64"}
        kind = kinds.get(domain, "Float32")
        out = {"BOOL": "Bool", "BYTE": "UInt8"}.get(result, kind)
        operands = [f"Each<{kind}, {kind}>"] * int(arity)
        if domain == "choice":
            operands[0] = "Each<Bool, Bool>"
        if domain == "exponent":
            operands[1] = "Each<Int32, Int64>"
        inputs = ", ".join(operands)
        yield f"flat<{functor}, {out}, {out}, 4, 2, unsigned int, {inputs}>"
        yield f"strided<{functor}, {out}, {out}, 1, unsigned long long, long long, {inputs}>"
    for dtype in TYPES:
        inputs = f"Same<{dtype}, Float64>, Value<Float64>"
        yield f"flat<Add, Float64, {dtype}, 1, 2, unsigned int, {inputs}>"


# Each reducer once; the types differ in how they are loaded and accumulated.
REDUCERS = [
    *(f"{op}<{types}>" for op in ("Total", "Product") for types in
      ("Float32, Float32", "Int8, Int64", "BFloat16, BFloat16", "Complex128, Complex128")),
    *(f"Largest<{types}>" for types in ("Float8E4M3, Float8E4M3", "UInt16, UInt16", "Bool, Bool")),
    *("Average<Float16, Float16>", "Smallest<Float64, Float64>", "Smallest<Complex64, Bool>"),
    *("LargestPlace<Float16, unsigned int>", "SmallestPlace<Int64, unsigned int>"),
    *("NonzeroCount<Complex64, Complex64>", "Variance<Float32, Float32>"),
    *("Deviation<Complex64, Complex64>", "LogSumExp<BFloat16, BFloat16>"),
    *("NumberTotal<Float16, Float16>", "NumberProduct<Complex128, Complex128>"),
    *("NumberAverage<Complex64, Complex64>", "LargestNumber<BFloat16, BFloat16>"),
    *("SmallestNumber<Float64, Float64>", "NumberVariance<Float32, Float32>"),
    "NumberDeviation<Complex64, Complex64>",
    *(f"Norm{order}<Complex64, Complex64>"
      for order in ("Zero", "One", "Two", "Any", "Largest", "Smallest")),
]  # fmt: skip
SCANS = [
    *("RunningSum<Float32, Float32>", "RunningSum<Int8, Int64>", "RunningSum<Float16, Float16>"),
    *("RunningProduct<Complex64, Complex64>", "RunningMaximum<Float64, Float64>"),
    "RunningMinimum<UInt8, UInt8>",
]
NAMED_UNITS, NAMED_INDICES = ["UInt8", "UInt16", "UInt32", "UInt64", "Unit16"], ["UInt32", "UInt64"]
CLAIM_BITS = ("UInt8", "UInt16", "UInt32")
PLACES = [("Int32", "{}<Int32>"), ("Int64", "{}<Int64>"), ("Int64", "Offset")]
REALS = ["Float16", "BFloat16", "Float32", "Float64", "Float8E4M3"]
# An activation; an element type and elements of a pack; packs of a thread.
PACKS = [("Silu", "BFloat16, 8", 2), ("Silu", "BFloat16, 8", 4)]
PACKS += [("GeluTanh", "Float64, 2", 1), ("ShortGelu", "Float8E4M3, 16", 4)]

# As PRODUCTS, for mma_gemm.cu, which writes its result in only one way.
MMA_PRODUCTS = [
    ("BFloat16, BFloat16", "128, 256, 64, 64, 4", "false, false", "Same, NoBias, false"),
    ("Float16, Float16", "128, 128, 64, 64, 3", "true, true", "ErfcGelu, Float16, true"),
    ("BFloat16, Float32", "128, 64, 64, 32, 4", "false, true", "Relu, Float32, true"),
    ("Float16, BFloat16", "64, 64, 32, 32, 4", "true, false", "Silu, NoBias, true"),
    ("Float32, Float32", "128, 128, 64, 64, 4", "false, false", "Same, Float32, false"),
    ("Float32, Float32", "64, 64, 32, 32, 3", "false, false", "Same, NoBias, true"),
    ("Int8, Int32", "128, 128, 64, 64, 4", "false, false", "Same, NoBias, false"),
    ("Int8, Int8", "64, 64, 32, 32, 3", "false, false", "Same, NoBias, false"),
]
MATRICES = ["Float32", "Float64", "Complex64", "Complex128"]
# The instances by source text, named as in the library's C++.
INSTANCES = {
    "cast.cu": [
        f"cast<{to}, {dtype}, {packs}, {index}>"
        for index, packs in zip(INDICES, ("1, 2", "2, 4"), strict=True)
        for to, dtype in [*((t, "Float32") for t in TYPES), *(("Float32", t) for t in TYPES)]
    ],
    "elementwise.cu": list(elementwise()),
    "reduce.cu": [
        *(f"reduce_rows<{op}, 1, 8, kAligned, unsigned int>" for op in REDUCERS),
        *(f"reduce_columns<{op}, 1, unsigned int>" for op in REDUCERS),
        *(
            f"reduce_{part}<Total<Float32, Float32>, {choices}, {index}>"
            for part, choices in (
                ("rows", "4, 2, kWalked"),
                ("rows", "4, 8, kAligned"),
                ("rows", "4, 8, kUnaligned"),
                ("columns", "4"),
            )
            for index in INDICES
        ),
        "reduce_rows<Variance<BFloat16, BFloat16>, 8, 4, kUnaligned, unsigned int>",
        "reduce_rows<LargestPlace<Int8, UInt64>, 8, 8, kUnaligned, UInt64>",
    ],
    "scan.cu": [
        *(f"scan_rows<{op}, 2, 8, unsigned int>" for op in SCANS),
        *(f"scan_few_tiles<{op}, 2, 8, unsigned int, true>" for op in SCANS),
        *(f"scan_tiles<{op}, 2, 8, unsigned int>" for op in SCANS),
        *(f"scan_columns<{op}, 1, unsigned int>" for op in SCANS),
        *(f"scan_carries<{op}, unsigned int>" for op in SCANS),
        *(
            f"scan_{part}<RunningSum<Float32, Float32>, 4, 8, {index}{rest}>"
            for part, rest in (("rows", ""), ("few_tiles", ", false"), ("tiles", ""))
            for index in INDICES
        ),
    ],
    "scan_flow.cu": [
        *(f"scan_flow<RunningSum<Float32, Float32>, 4, 4, {index}>" for index in INDICES),
        "scan_flow<RunningProduct<Float64, Float64>, 2, 2, unsigned int>",
        "scan_flow<RunningMaximum<Int32, Int32>, 4, 4, unsigned int>",
    ],
    "gather.cu": [
        f"{move}<{unit}, {position}, {place.format(rule)}, {index}>"
        for move, rule in (("gather", "Clamped"), ("scatter", "Checked"))
        for unit in NAMED_UNITS
        for position, place in PLACES
        for index in NAMED_INDICES
    ]
    + [
        f"gather<{unit}, {number}, Owned<{number}>, UInt32>"
        for unit in NAMED_UNITS
        for number in NAMED_INDICES
    ],
    "claims.cu": [
        *(f"claim_places<{p}, {bits}>" for p in ("Int32", "Int64") for bits in CLAIM_BITS),
        *(f"write_claims<{bits}, {index}>" for bits in CLAIM_BITS for index in NAMED_INDICES),
    ],
    "slots.cu": [
        *(f"add_positions<{p}, {index}>" for p in ("Int32", "Int64") for index in NAMED_INDICES),
        *(
            f"{name}{number}>"
            for name in ("mark_owners<Int32, ", "mark_owners<Int64, ", "owners_offsets<")
            for number in NAMED_INDICES
        ),
        *(f"count_outside<{p}>" for p in ("Int32", "Int64")),
        "split_positions",
    ],
    "mask_positions.cu": [
        *("count_true", "write_true", "repeat_positions"),
        *(f"write_where<{unit}, {index}>" for unit in NAMED_UNITS for index in NAMED_INDICES),
    ],
    "segment_add.cu": [
        *(f"add_segments<{dtype}, 1>" for dtype in TYPES if dtype != "Bool"),
        *(
            f"add_segments<{dtype}>"
            for dtype in ("BFloat16, 8", "Float32, 4", "Float64, 2", "Int8, 16")
        ),
    ],
    "lu.cu": [
        f"{name}<{dtype}>" for name in ("lu_factor", "lu_solve", "cholesky") for dtype in MATRICES
    ],
    "householder.cu": [
        f"{name}<{dtype}>"
        for name in ("qr_factor", "form_q", "qr_upper", "fill_columns", "tridiagonal", "hessenberg")
        for dtype in MATRICES
    ],
    "hermitian.cu": [
        f"tridiagonal_ql<{dtype}, {v}>" for dtype in MATRICES for v in ("true", "false")
    ],
    "jacobi.cu": [f"jacobi<{dtype}, {v}>" for dtype in MATRICES for v in ("true", "false")],
    "schur.cu": [
        *(f"schur<{dtype}, {v}>" for dtype in MATRICES for v in ("true", "false")),
        *(f"schur_vectors<{dtype}>" for dtype in MATRICES),
    ],
    "sequence.cu": [
        *(f"sequence<{dtype}, Int64>" for dtype in TYPES if "Int" in dtype),
        *(
            f"sequence<{dtype}, Float64>"
            for dtype in TYPES
            if dtype.startswith(("Float", "BFloat"))
        ),
    ],
    "triangle.cu": [
        *(
            f"triangle<{unit}, {pack}, {index}>"
            for unit in NAMED_UNITS[:4]
            for pack in (1, 2)
            for index in NAMED_INDICES
        ),
        *(
            "triangle<UInt8, 8, UInt32>",
            "triangle<UInt32, 4, UInt32>",
            "triangle<Unit16, 1, UInt64>",
        ),
        *(f"diagonal_matrix<{unit}>" for unit in NAMED_UNITS),
    ],
    "activations.cu": [
        f"activate{way}<{op}, {pack}, {k}, unsigned int>"
        for way in ("", "_backward")
        for op, pack, k in [
            *((op, "Float32, 4", 1) for op in ACTIVATIONS),
            *((op, "BFloat16, 8", 2) for op in HALF_ACTIVATIONS),
            *PACKS,
        ]
    ],
    "gates.cu": [
        f"gate_{way}<{op}, {pack}, {k}, {index}>"
        for way in ("forward", "backward")
        for index in INDICES
        for op, pack, k in PACKS
    ],
    "bias_activation.cu": [
        f"bias_activate{tail}"
        for index in INDICES
        for op, pack, k in PACKS
        for tail in (
            f"<{op}, {pack}, {k}, {index}>",
            f"_backward<{op}, {pack}, {index}>",
        )
    ]
    + [f"bias_gradient<{real}, {index}>" for real in REALS for index in INDICES],
    "dropout.cu": [f"dropout<{pack}, {k}, {index}>" for _, pack, k in PACKS for index in INDICES],
    "pointwise_loss.cu": [
        f"pointwise_loss<{op}, {pack}, {flags}, unsigned int>"
        for op in ("SquaredError", "AbsoluteError", "Huber", "BinaryCrossEntropy")
        for pack in ("BFloat16, 8", "Float64, 2")
        for flags in ("true, false, false", "false, true, true", "false, false, true")
    ],
    "embedding.cu": [
        f"embed<{type}, {id}, {n}, 128>"
        for type, n in [("BFloat16", 8), ("Float64", 2), ("Float8E4M3", 16)]
        for id in ("Int32", "Int64")
    ],
    "embedding_gradient.cu": [
        *("count_digits", "scan_counts", "scatter_digits", "make_keys<Int32>", "make_keys<Int64>"),
        *("sum_rows<BFloat16, 8>", "sum_rows<Float32, 1>", "sum_rows<Float64, 2>"),
    ],
    **ATTENTION,
    "attention_backward.cu": [
        *(
            f"attention_gradient<{dtype}, {d}, {d}, {columns}, {stages}, {keys}, {packs}, {extras}>"
            for dtype, d, columns, stages, keys, packs, extras in (
                ("Float16", 64, 64, 2, "true, 3", "true", 0),
                ("BFloat16", 128, 64, 2, "true, 3", "true", 0),
                ("BFloat16", 128, 64, 2, "false, 1", "true", 1),
                ("Float16", 96, 64, 2, "false, 1", "false", 0),
                ("BFloat16", 256, 32, 1, "true, 1", "true", 0),
                ("BFloat16", 256, 32, 1, "true, 2", "true", 2),
            )
        ),
        *(f"gradient_rows<{dtype}>" for dtype in ("Float16", "BFloat16", "Float32")),
        *(f"rebase_rows<{dtype}>" for dtype in ("Float16", "BFloat16", "Float32")),
    ],
    "plain_backward.cu": [
        *(
            f"plain_gradient<{dim}, {dim}, {keys}>"
            for dim in (64, 128, 256)
            for keys in ("true", "false")
        ),
    ],
    "decode_attention.cu": [
        *(
            f"decode_attention<{dtype}, {cache}, {dim}, {value}, {warps}, {stages}, {packs}, "
            f"{extras}, {whole}, false>"
            for dtype, cache, dim, value, warps, stages, packs, extras, whole in (
                ("Float16", "Float16", 64, 64, 4, 4, "true", "false", "false"),
                ("BFloat16", "BFloat16", 128, 128, 8, 3, "true", "false", "true"),
                ("BFloat16", "BFloat16", 128, 128, 4, 2, "true", "false", "false"),
                ("BFloat16", "BFloat16", 256, 256, 4, 1, "true", "true", "true"),
                ("BFloat16", "BFloat16", 96, 96, 4, 4, "false", "false", "false"),
                ("BFloat16", "BFloat16", 192, 128, 4, 2, "true", "false", "true"),
                ("BFloat16", "Float8E4M3", 128, 128, 4, 4, "true", "true", "false"),
                ("Float16", "Float8E5M2", 64, 64, 4, 4, "true", "false", "true"),
                ("Float16", "Int8", 64, 64, 4, 4, "false", "false", "false"),
                ("BFloat16", "Float8E4M3", 256, 256, 2, 1, "true", "false", "true"),
            )
        ),
        "decode_attention<BFloat16, Int8, 128, 128, 4, 4, true, false, false, false, true>",
        *(f"combine_splits<{dtype}, 128>" for dtype in ("Float16", "BFloat16", "Float32")),
    ],
    "plain_attention.cu": [
        *(f"plain_attention<{dim}, {dim}>" for dim in (64, 128, 256)),
    ],
    **CONV,
    **COPIES,
    **RECURRENT,
    **SPATIAL,
    **TOKENS,
    "rope.cu": [
        f"rotate<{type}, {id}, {n}, {layout}>"
        for type in ("BFloat16", "Float32", "Float64")
        for id in ("Int32", "Int64")
        for n in (1, 2)
        for layout in ("false", "true")
    ]
    + ["rotate<BFloat16, Int64, 8, false>", "rotate<Float16, Int64, 4, true>"],
    "qkv.cu": [
        f"split_heads<{pack}, {merge}>"
        for pack in ("BFloat16, 8", "Float32, 1", "Float8E5M2, 16")
        for merge in ("false", "true")
    ],
    **DRAWS,
    "permutation.cu": [
        *(
            f"{name}<{dtype}>"
            for name in ("permute_few", "permute_many")
            for dtype in ("Int32", "Int64")
        ),
        *("weighted_keys", "sort_tiles", "merge_tiles", "merge_far", "take_indices<Int64>"),
    ],
    "choice.cu": [
        "cumulate",
        "draw_weighted<Int64>",
        *(f"gather_rows<{unit}, Int64>" for unit in ("UInt8", "UInt32", "UInt64", "Unit16")),
    ],
    "optimizer.cu": OPTIMIZERS,
    "quantize.cu": [
        f"{name}{rest}>"
        for to in ("Int8", "Float8E4M3", "Float8E5M2")
        for dtype, width in (("Float16", 8), ("BFloat16", 8), ("Float32", 4))
        for name, rest in (
            *(("quantize_short", f"<{to}, {dtype}, {n}, 4, {width}") for n in (32, 256, 1024)),
            ("part_maxima", f"<{dtype}, {width}"),
            ("quantize_parts", f"<{to}, {dtype}, {width}"),
            *(
                ("dequantize", f"<{dtype}, {to}, {width}, {index}")
                for index in ("UInt32", "UInt64")
            ),
        )
    ]
    + QUANTIZED_BLOCKS,
    "gguf.cu": [
        f"{name}>"
        for block, align in GGUF_BLOCKS.items()
        for dtype in ("Float16", "BFloat16", "Float32")
        for name in (
            f"quantize_blocks<{block}, {dtype}",
            f"dequantize_blocks<{block}, {dtype}, 1",
            f"dequantize_blocks<{block}, {dtype}, {align}",
        )
    ],
    "codes.cu": [
        *(
            f"dequantize_codes<{code}, {scale}, {dtype}, {high}, {packed}>"
            for code, scale, high in (
                ("NormalFloat", "PlainScale", "true"),
                ("NormalFloat", "NestedScale", "true"),
                ("TwelfthFloat", "PlainScale", "true"),
                ("Float4", "PowerScale", "false"),
                ("Float4", "Float8Scale", "false"),
            )
            for dtype in ("Float16", "BFloat16", "Float32")
            for packed in ("true", "false")
        ),
        *(
            f"quantize_codes<{code}, {dtype}, {high}>"
            for dtype, lanes in (("Float16", 4), ("BFloat16", 16), ("Float32", 32))
            for code, high in (
                ("NormalFloat, ToPlainScale", f"true, {lanes}"),
                ("Float4, ToPowerScale", "false, 16"),
                ("Float4, ToFloat8Scale", "false, 8"),
            )
        ),
    ],
    "weights.cu": [
        instance
        for dtype, width in (("Float16", 8), ("BFloat16", 8), ("Float32", 4))
        for instance in (
            f"dequantize_tiles<{dtype}, Float8E4M3, {width}>",
            f"dequantize_tiles<{dtype}, Float8E5M2, 1>",
            f"quantize_tiles<{dtype}>",
            f"dequantize_gptq<{dtype}, Float16, true>",
            f"dequantize_gptq<{dtype}, BFloat16, false>",
            f"dequantize_awq<{dtype}, Float16>",
        )
    ],
    "gemm.cu": [
        f"gemm<{types}, Tile<{tile}>, Layout<{layout}>, {store}, {ending}>"
        for types, tile, layout, store, ending in PRODUCTS
    ],
    "promoted_gemm.cu": [
        f"promoted_gemm<{types}, Tile<{tile}>, {blocks}, {store}, {ending}>"
        for types, tile, blocks, store, ending in PROMOTED
    ],
    "mma_gemm.cu": [
        f"mma_gemm<{types}, Tile<{tile}>, Layout<{layout}>, Epilogue<{ending}>>"
        for types, tile, layout, ending in MMA_PRODUCTS
    ]
    + SCALED_MMA_PRODUCTS,
    "finish_product.cu": [
        f"finish_product<{out}, {ending}, {width}>"
        for out in ("Float16", "BFloat16", "Float32")
        for ending, width in FINISHED
    ],
    "softmax.cu": [
        "softmax_rows<Float32, Float32, NoMask, 4, 2, 8, 128, false, false, 1>",
        "softmax_rows<Float32, Float32, NoMask, 4, 4, 256, 256, false, true, 1>",
        "softmax_rows<BFloat16, Float32, Bool, 8, 1, 512, 512, true, false, 8>",
        "softmax_rows<Float64, Float64, Float64, 2, 2, 512, 512, false, true, 8>",
        "softmax_kept<Float16, Float16, 8, 3, 1024, false>",
        "softmax_kept<BFloat16, BFloat16, 8, 2, 512, false>",
        "softmax_sums<Float32, NoMask, 4, 1, 256>",
        "softmax_finish<Float32, Float32, NoMask, 4, 1, 256, false>",
        "softmax_columns<BFloat16, BFloat16, true>",
    ],
    "softmax_backward.cu": [
        "softmax_backward_rows<Float32, 4, 1, 512, 512, false>",
        "softmax_backward_sums<BFloat16, 8, 1, 256, true>",
        "softmax_backward_finish<BFloat16, 8, 1, 256, true>",
        "softmax_backward_columns<Float32, false>",
    ],
    "norm.cu": [
        "norm_rows<Float32, Float32, Float32, 4, 2, 8, 128, 0, false, false, 1, false, 1>",
        "norm_rows<BFloat16, Float32, BFloat16, 8, 2, 256, 256, 1, false, false, 3, true, 1>",
        "norm_rows<BFloat16, BFloat16, Int8, 8, 1, 512, 512, 0, false, true, -1, false, 8>",
        "norm_rows<Float16, Float32, Float8E4M3, 4, 2, 512, 512, 1, false, false, -1, true, 1>",
        "norm_moments<BFloat16, 8, 1, 256, 1, true>",
        "norm_finish<Float64, Float64, Float64, 2, 2, 256, 1, true, -1>",
    ],
    "norm_backward.cu": [
        "norm_backward_rows<Float32, Float32, 4, 2, 8, 128, 1, false, 1, true, true>",
        "norm_backward_rows<BFloat16, BFloat16, 8, 1, 1024, 1024, 0, false, 2, true, false>",
        "norm_backward_rows<Float16, Float16, 8, 1, 32, 128, 2, false, 0, false, false>",
        "norm_backward_staged<BFloat16, BFloat16, 8, 4, 256, 0, 1, true, false>",
        *(f"norm_backward_flow<BFloat16, BFloat16, 8, 2, 512, {kind}, 2, true>" for kind in (0, 1)),
        "norm_backward_flow<Float16, Float32, 8, 2, 256, 1, 3, false>",
        "norm_backward_staged<Float16, Float16, 8, 1, 128, 1, 1, true, true>",
        "norm_backward_staged<Float32, Float32, 4, 8, 512, 1, 2, false, false>",
        "norm_backward_long<Float64, Float64, 2, 1024, 1, true, true>",
        "norm_add_partial<float, BFloat16, BFloat16>",
        "norm_column_sums<Float32, Float32>",
        "norm_channel_sums<BFloat16, Float32, 256>",
    ],
    **FEW_ROWS,
    **ARRAYS,
    **ORDERING,
} | FMA
INSTANCES |= {text: [*INSTANCES.get(text, []), *more] for text, more in EXPERT_INSTANCES.items()}

# The instances for compute capability 9.0 and newer: clusters of blocks, float8. The sources have
# further ones for older devices.
CLUSTER_INSTANCES = {
    "decode_attention.cu": [
        "decode_attention<BFloat16, BFloat16, 128, 128, 8, 3, true, false, true, true>",
        "decode_attention<Float16, Float8E5M2, 64, 64, 4, 4, true, false, false, true>",
    ],
    "skinny_staged.cu": [
        f"skinny_staged<BFloat16, {weights}<BFloat16>, {act}, 4, 2, {columns}, {stages}, true>"
        for weights, act, columns, stages in (
            ("PlainWeights", "Same", 8, 4),
            ("Int8Weights", "Same", 2, 4),
            ("Float8Weights", "Silu", 4, 3),
        )
    ],
    "mma_gemm.cu": [
        f"mma_gemm_block_scaled<Float8E4M3, {out}, Tile<{tile}>, Layout<false, false>, {ending}>"
        for out, tile, ending in (
            ("BFloat16", "128, 64, 64, 32, 4", "Epilogue<Same, BFloat16, false>"),
            ("Float32", "64, 64, 32, 32, 3", "Epilogue<Same, NoBias, false>"),
        )
    ],
    "norm.cu": [
        "norm_cluster<BFloat16, BFloat16, BFloat16, 8, 4, 512, 1, false, true>",
        "norm_cluster<Float64, Float64, Float64, 2, 8, 512, 0, true, false>",
    ],
    "softmax.cu": [
        "softmax_cluster<BFloat16, BFloat16, NoMask, 8, 4, 1024, false>",
        "softmax_cluster<Float32, Float32, Bool, 1, 16, 512, true>",
    ],
}
