"""Compiles every kernel of the library, examples and simulator tests for every architecture.

Needs no GPU. A compile that fails or warns fails the gate. Architectures that the NVRTC at hand
does not know are named and left out. Ends with "N passed, N failed".
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

os.environ["KERNWRIGHT_CACHE"] = "off"

import kernwright as kw
from kernwright import _core
from kernwright._jit.literals import find_literals

ROOT = Path(__file__).resolve().parents[1]
ARCHS = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"]
RAW_STRING = re.compile(r'R"(\w*)\((.*?)\)\1"', re.DOTALL)
TEMPLATE_ID = re.compile(r'"(\w+<[^">]+>)"')

TYPES = ["Bool", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]
TYPES += ["Float16", "BFloat16", "Float32", "Float64", "Float8E4M3", "Float8E5M2"]
TYPES += ["Complex64", "Complex128"]
INDICES = ["unsigned int", "unsigned long long"]
UNITS = ["unsigned char", "unsigned short", "unsigned int", "unsigned long long", "Unit16"]
ROWS = re.compile(r"^KW_OPERATION\(\w+, (\w+), (\d), (\w+), \w+, \w+, (\w+),", re.MULTILINE)


def elementwise() -> Iterator[str]:
    """Each operation of operations.def in both kernels, and every conversion of an operand."""
    table = (ROOT / "kernels_src" / "elementwise" / "operations.def").read_text()
    for functor, arity, domain, result in ROWS.findall(table):
        kind = {"whole": "Int32", "logical": "Bool"}.get(domain, "Float32")
        out = "Bool" if result == "BOOL" else kind
        operands = [f"Each<{kind}, {kind}>"] * int(arity)
        if domain == "choice":
            operands[0] = "Each<Bool, Bool>"
        inputs = ", ".join(operands)
        yield f"flat<{functor}, {out}, {out}, 4, 2, unsigned int, {inputs}>"
        yield f"strided<{functor}, {out}, {out}, 1, unsigned long long, long long, {inputs}>"
    for of in TYPES:
        yield f"flat<Add, Float64, {of}, 1, 2, unsigned int, Same<{of}, Float64>, Value<Float64>>"


# Each reducer once, over types that differ in how they are read and kept.
REDUCERS = [
    *(f"{op}<{types}>" for op in ("Total", "Product") for types in
      ("Float32, Float32", "Int8, Int64", "BFloat16, BFloat16", "Complex128, Complex128")),
    *(f"Largest<{types}>" for types in ("Float8E4M3, Float8E4M3", "UInt16, UInt16", "Bool, Bool")),
    *("Average<Float16, Float16>", "Smallest<Float64, Float64>", "Smallest<Complex64, Bool>"),
    *("LargestPlace<Float16, unsigned int>", "SmallestPlace<Int64, unsigned int>"),
    *("NonzeroCount<Complex64, Complex64>", "Variance<Float32, Float32>"),
    *("Deviation<Complex64, Complex64>", "LogSumExp<BFloat16, BFloat16>"),
    *(f"Norm{order}<Complex64, Complex64>"
      for order in ("Zero", "One", "Two", "Any", "Largest", "Smallest")),
]  # fmt: skip
SCANS = [
    *("RunningSum<Float32, Float32>", "RunningSum<Int8, Int64>", "RunningSum<Float16, Float16>"),
    *("RunningProduct<Complex64, Complex64>", "RunningMaximum<Float64, Float64>"),
    "RunningMinimum<UInt8, UInt8>",
]
NAMED_UNITS = ["UInt8", "UInt16", "UInt32", "UInt64", "Unit16"]
NAMED_INDICES = ["UInt32", "UInt64"]
PLACES = [("Int32", "{}<Int32>"), ("Int64", "{}<Int64>"), ("Int64", "Offset")]
REALS = ["Float16", "BFloat16", "Float32", "Float64", "Float8E4M3"]
ACTIVATIONS = ["Relu", "Relu2", "HardTanh", "LeakyRelu", "Elu", "Selu", "Sigmoid", "LogSigmoid"]
ACTIVATIONS += ["Tanh", "Silu", "Gelu", "GeluTanh", "QuickGelu", "Softplus", "Softsign", "Mish"]
ACTIVATIONS += ["HardSwish", "HardSigmoid"]
# An activation, an element type and the elements of a pack, packs of a thread.
PACKS = [("Silu", "BFloat16, 8", 4), ("GeluTanh", "Float64, 2", 1), ("Gelu", "Float8E4M3, 16", 4)]
# Instances of the library's templates, as its C++ asks for them.
INSTANCES = {
    "elementwise.cu": list(elementwise()),
    "copy.cu": [f"strided_copy<{unit}, {index}>" for unit in UNITS for index in INDICES],
    "cast.cu": [
        f"cast<{to}, {of}, {index}>"
        for index in INDICES
        for to, of in [*((t, "Float32") for t in TYPES), *(("Float32", t) for t in TYPES)]
    ],
    "reduce.cu": [
        *(f"reduce_rows<{op}, 1, unsigned int>" for op in REDUCERS),
        *(f"reduce_columns<{op}, 1, unsigned int>" for op in REDUCERS),
        *(f"combine_segments<{op}, unsigned int>" for op in REDUCERS),
        *(
            f"reduce_{part}<Total<Float32, Float32>, 4, {index}>"
            for part in ("rows", "columns")
            for index in INDICES
        ),
    ],
    "scan.cu": [
        *(f"scan_rows<{op}, 2, 8, unsigned int>" for op in SCANS),
        *(f"scan_tiles<{op}, 2, 8, unsigned int>" for op in SCANS),
        *(f"scan_columns<{op}, 1, unsigned int>" for op in SCANS),
        *(f"scan_carries<{op}, unsigned int>" for op in SCANS),
        *(
            f"scan_{part}<RunningSum<Float32, Float32>, 4, 8, {index}>"
            for part in ("rows", "tiles")
            for index in INDICES
        ),
    "gather.cu": [
        f"{move}<{unit}, {position}, {place.format(rule)}, {index}>"
        for move, rule in (("gather", "Clamped"), ("scatter", "Checked"))
        for unit in NAMED_UNITS
        for position, place in PLACES
        for index in NAMED_INDICES
    "slots.cu": [
        *(f"add_positions<{p}, {index}>" for p in ("Int32", "Int64") for index in NAMED_INDICES),
            f"{name}<{number}>"
            for name in ("mark_owners", "owners_offsets")
            for number in NAMED_INDICES
        ),
        *(f"count_outside<{p}>" for p in ("Int32", "Int64")),
        "split_positions",
    "mask_positions.cu": [
        *("count_true", "write_true", "repeat_positions"),
        *(f"write_where<{unit}, {index}>" for unit in NAMED_UNITS for index in NAMED_INDICES),
    "segment_add.cu": [
        *("make_entries", "count_digits", "place_entries"),
        *(f"add_segments<{of}>" for of in TYPES if of != "Bool"),
    "tiled_transpose.cu": [
        f"tiled_transpose<{unit}, {tile}, {pack}>"
        for unit, (tile, *packs) in zip(
            UNITS, ((128, 8, 1), (64, 4, 1), (64, 4, 1), (32, 2, 1), (32, 1)), strict=True
        )
        for pack in packs
    "triangle.cu": [
            f"triangle<{unit}, {pack}, {index}>"
            for unit in NAMED_UNITS[:4]
            for pack in (1, 2)
            for index in NAMED_INDICES
        ),
            "triangle<UInt8, 8, UInt32>",
            "triangle<UInt32, 4, UInt32>",
            "triangle<Unit16, 1, UInt64>",
        ),
        *(f"diagonal_matrix<{unit}>" for unit in NAMED_UNITS),
    "distributions.cu": [
            f"random_fill<{kind}, {of}, {packed}>"
            for kind in ("Uniform", "Normal", "Exponential", "Gamma")
            for of in ("Float16", "BFloat16", "Float32", "Float64")
            for packed in ("true", "false")
        ),
        *(f"random_fill<Bernoulli, {of}, true>" for of in TYPES[:13]),
        *(f"random_fill<Integers, {of}, true>" for of in TYPES[1:9]),
        "random_fill<WideIntegers, Int64, true>",
        "random_fill<WideIntegers, UInt64, true>",
        "advance_counter",
    "permutation.cu": [
        *(f"{name}<{of}>" for name in ("permute_few", "permute_many") for of in ("Int32", "Int64")),
        *("weighted_keys", "sort_tiles", "merge_tiles", "merge_far", "take_indices<Int64>"),
    "choice.cu": [
        "cumulate",
        "draw_weighted<Int64>",
        *(f"gather_rows<{unit}, Int64>" for unit in ("UInt8", "UInt32", "UInt64", "Unit16")),
    "optimizer.cu": [
            f"optimizer_step<{rule}, {types}, {width}>"
            for rule in ("AdamW", "Adam", "Momentum", "Plain", "Lion")
            for types, width in (
                ("Float32, Float32, Float32, false, false", 4),
                ("Float64, Float64, Float64, false, false", 2),
                ("BFloat16, BFloat16, Float32, true, false", 4),
                ("BFloat16, BFloat16, Float32, false, true", 1),
            )
        ),
        *(f"norm_of_chunks<{of}, true, 4>" for of in ("Float16", "BFloat16", "Float32")),
        *("norm_of_chunks<Float64, false, 2>", "finish_norm<true>", "finish_norm<false>"),
        *(f"scale_tensors<{of}, 4>" for of in ("Float16", "BFloat16", "Float32")),
    "sampling.cu": [
        f"sample_rows<{of}, {packed}>"
        for of in ("Float16", "BFloat16", "Float32")
        for packed in ("true", "false")
    "quantize.cu": [
        f"{name}{rest}>"
        for to in ("Int8", "Float8E4M3", "Float8E5M2")
        for of, width in (("Float16", 8), ("BFloat16", 8), ("Float32", 4))
        for name, rest in (
            *(("quantize_short", f"<{to}, {of}, {n}, 4, {width}") for n in (32, 256, 1024)),
            ("largest_of_parts", f"<{of}, {width}"),
            ("quantize_parts", f"<{to}, {of}, {width}"),
            *(("dequantize", f"<{of}, {to}, {width}, {index}") for index in ("UInt32", "UInt64")),
        )
    ],
    "activations.cu": [
        f"activate{way}<{op}, {pack}, {k}, unsigned int>"
        for way in ("", "_backward")
        for op, pack, k in [*((op, "Float32, 4", 1) for op in ACTIVATIONS), *PACKS]
    "gates.cu": [
        f"gate_{way}<{op}, {pack}, {k}, {index}>"
        for way in ("forward", "backward")
        for index in INDICES
        for op, pack, k in PACKS
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
    "cross_entropy.cu": [
        f"cross_entropy<{type}, {id}, {n}, {threads}, {held}, {grad}>"
        for type, n in (("BFloat16", 8), ("Float32", 4), ("Float64", 1))
        for id, threads, held, grad in [
            ("Int64", 512, 12, "true"),
            ("Int32", 32, 4, "true"),
            ("Int64", 512, 4, "false"),
        ]
    ]
    + ["target_scale<Int32, Float32>", "target_scale<Int64, Float64>"],
    "total.cu": ["total<Float32>", "total<Float64>"],
    "pointwise_loss.cu": [
        f"pointwise_loss<{op}, {pack}, {flags}, unsigned int>"
        for op in ("SquaredError", "AbsoluteError", "Huber", "BinaryCrossEntropy")
        for pack in ("BFloat16, 8", "Float64, 2")
        for flags in ("true, false, false", "false, true, true", "false, false, true")
    "embedding.cu": [
        f"embed<{type}, {id}, {n}, 128>"
        for type, n in [("BFloat16", 8), ("Float64", 2), ("Float8E4M3", 16)]
        for id in ("Int32", "Int64")
    "embedding_gradient.cu": [
        *("count_digits", "scan_counts", "scatter_digits", "make_keys<Int32>", "make_keys<Int64>"),
        *("sum_rows<BFloat16, 8>", "sum_rows<Float32, 1>", "sum_rows<Float64, 2>"),
    "rope.cu": [
        f"rotate<{type}, {id}, {n}, {layout}>"
        for type in ("BFloat16", "Float32", "Float64")
        for id in ("Int32", "Int64")
        for n in (1, 2)
        for layout in ("false", "true")
    ]
    + ["rotate<BFloat16, Int64, 8, false>", "rotate<Float16, Int64, 4, true>"],
    "rope_tables.cu": [
        *("rope_frequencies", "rope_tables", "alibi_slopes"),
        *(f"alibi_bias<{real}>" for real in REALS),
    "pope.cu": [
        name
        for real in REALS
        for name in (
            f"pope<{real}, Int64, false>",
            f"pope<{real}, Int32, true>",
            f"scale_tokens<{real}, Int64, 2>",
        )
    "qkv.cu": [
        f"split_heads<{pack}, {merge}>"
        for pack in ("BFloat16, 8", "Float32, 1", "Float8E5M2, 16")
        for merge in ("false", "true")
}
# What an example gets from variables of its program.
DEFINES = {"02_shared_sgemm.py": {"TILE": 16}, "demo.cu": {"RADIUS": 6, "TILE": 256}}
NAMES = {"03_template.py": ["scale<float, 3>", "scale<double, 3>", "scale<int, 3>"]}
# What a source needs beyond the defaults: NVRTC's options, and the oldest architecture.
EXTRA = {
    "barriers.cu": ["--diag-suppress=20054"],  # cuda::barrier in shared memory is made by a call
    "recursion.cu": ["--ptxas-options=--suppress-stack-size-warning"],
    "wide_integers.cu": ["--device-int128"],
}
OLDEST = {
    f"{name}.cu": 80
    for name in ("async_copy", "bfloat16_math", "mma_half", "mma_types", "votes", "wmma_types")
}
OLDEST |= {"08_tensor_maps.py": 90, "08_tensor_maps.cpp": 90}


class Job(NamedTuple):
    title: str
    text: str
    names: list[str] | None
    options: dict[str, Any]
    oldest: int


def library() -> Iterator[Job]:
    folder = ROOT / "kernels_src"
    headers = {f"kernwright/{path.name}": path.read_text() for path in folder.rglob("*.cuh")}
    for path in sorted(folder.rglob("*.cu")):
        names = INSTANCES.get(path.name)
        yield Job(str(path.relative_to(ROOT)), path.read_text(), names, {"headers": headers}, 0)


def examples() -> Iterator[Job]:
    for path in sorted([*(ROOT / "examples").rglob("*.py"), *(ROOT / "bindings").rglob("demo.py")]):
        source = path.read_text()
        for literal in find_literals(source, str(path)):
            if not literal.skipped:
                title = f"{path.relative_to(ROOT)}:{literal.line}"
                yield job_of(title, literal.text, source, literal.options)
    for path in sorted((ROOT / "examples").rglob("*.cpp")):
        source = path.read_text()
        for match in RAW_STRING.finditer(source):
            if "__global__" in match[2]:
                defines = dict(re.findall(r'\{"(\w+)", "(\w+)"\}', source))
                line = source.count("\n", 0, match.start()) + 1
                title = f"{path.relative_to(ROOT)}:{line}"
                yield job_of(title, match[2], source, {"defines": defines})
    for path in sorted([*(ROOT / "examples").rglob("*.cu"), *(ROOT / "bindings").rglob("*.cu")]):
        yield job_of(str(path.relative_to(ROOT)), path.read_text(), "", {})


def job_of(title: str, text: str, source: str, options: dict[str, Any]) -> Job:
    """Template instances are the ones that the file around the kernel names."""
    declared = kw.Program(text).names
    file = re.sub(r":\d+$", "", title).rsplit("/", 1)[-1]
    names = [name for name in TEMPLATE_ID.findall(source) if name.split("<")[0] in declared]
    names = NAMES.get(file) or list(dict.fromkeys(names)) or None
    options = {**options, "defines": {**options.get("defines", {}), **DEFINES.get(file, {})}}
    return Job(title, text, names, options, OLDEST.get(file, 0))


def simulator_sources() -> Iterator[Job]:
    folder = ROOT / "tests" / "sim"
    cases = json.loads((folder / "cases.json").read_text())["cases"]
    for path in sorted((folder / "sources").glob("*.cu")):
        mine = [case for case in cases if case.get("source", case["name"]) == path.stem]
        names = [case["expression"] for case in mine if "expression" in case] or None
        options = {"extra": EXTRA.get(path.name, [])}
        title = str(path.relative_to(ROOT))
        yield Job(title, path.read_text(), names, options, OLDEST.get(path.name, 0))


def number_of(arch: str) -> int:
    return int(re.sub(r"\D", "", arch))


def check(job: Job, arch: str) -> str:
    """Empty when the job compiles without a word, else what was said."""
    try:
        code = kw.Program(job.text, kw.ProgramOptions(arch=arch, **job.options)).compile(
            "cubin", job.names
        )
    except kw.Error as error:
        return f"{job.title} for {arch}: {error}"
    if code.diagnostics:
        first = code.diagnostics[0]
        return f"{job.title} for {arch}: line {first.line}: {first.severity}: {first.message}"
    if not code.code or not code.kernels:
        return f"{job.title} for {arch}: no kernel came out"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", action="append", help="only these architectures")
    parser.add_argument("--only", default="", help="only sources whose title contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    status = _core.nvrtc_status()
    if not status["found"]:
        sys.exit(status["error"])
    wanted = arguments.arch or ARCHS
    archs = [arch for arch in wanted if number_of(arch) in status["archs"]]
    left_out = ", ".join(arch for arch in wanted if arch not in archs)
    print(f"NVRTC {status['version']}: {', '.join(archs)}" + (left_out and f"; not {left_out}"))
    jobs = [
        job
        for group in (library(), examples(), simulator_sources())
        for job in group
        if arguments.only in job.title
    ]
    pairs = [(job, arch) for arch in archs for job in jobs if number_of(arch) >= job.oldest]
    begin = time.monotonic()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        problems = [said for said in pool.map(lambda pair: check(*pair), pairs) if said]
    for problem in problems:
        print(f"FAILED {problem}")
    seconds = time.monotonic() - begin
    sources = f"{len(jobs)} source{'' if len(jobs) == 1 else 's'}"
    print(f"{sources}, {len(archs)} architecture{'' if len(archs) == 1 else 's'}, {seconds:.0f} s")
    print(f"{len(pairs) - len(problems)} passed, {len(problems)} failed")
    return 1 if problems or not pairs else 0


if __name__ == "__main__":
    sys.exit(main())
