"""Packed weights of the formats that test_packed_weights.py has not: each in every kernel once."""

import pathlib
import re

import numpy as np
import pytest
import test_packed_weights as weights
from test_packed_plans import run_on_hopper
from test_packed_weights import made, product
from weight_formats import BYTES, same

import kernwright as kw
from kernwright.errors import InvalidArgument

quant, linear = kw.nn.quant, kw.nn.linear

# Odd rows; columns that are no whole blocks of 128, or an odd number of them.
SHAPES = {
    "q4_1": (18, 96),
    "q5_0": (21, 416),
    "q5_1": (33, 160),
    "q2_k": (18, 512),
    "q3_k": (37, 256),
    "iq4_nl": (17, 416),
    "iq4_xs": (19, 512),
    "fp4": (37, 192),
    "fp4 double": (18, 256),
}
SHAPES |= {name: (19, 256) for name in BYTES if name not in {*SHAPES, *weights.SHAPES}}
TABLE = pathlib.Path(__file__).parents[2] / "kernels_src" / "packed" / "packed_format.def"
NO_WARPGROUPS = re.findall(r"KW_PACKED\((\w+),[^)]*has_warpgroups = false", TABLE.read_text())


@pytest.mark.parametrize("name", SHAPES)
def test_numbers(name):
    n, k = SHAPES[name]
    with kw.checks("memory", "init", "race", "sync") as report:
        packed, numbers = made(name, n, k)
        assert packed.shape == (n, k) and packed.format == name.split()[0]
        same(quant.unpack(packed), np.ascontiguousarray(numbers))
    report.raise_if_any()


# A plan for each kernel: few rows, many, one row by a ring (packed_whole.cu or packed_one.cu), some
# rows by a ring, and by warpgroups.
KERNELS = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np, kernwright as kw
from test_packed_formats import NO_WARPGROUPS, SHAPES
from test_packed_weights import TYPES, check, made, product
plans = {{"tiles": (3, ()), "many": (70, ()),
         "one": (1, (4, 0, 0, 0, 0, 2)), "ring": (9, (4, 2, 0, 0, 1, 2)),
         "boxes": (33, (4, 0, 0, 2, 1, 0, 7))}}
for number, (name, (n, k)) in enumerate(SHAPES.items()):
    packed, numbers = made(name, n, k)
    for kernel, (m, plan) in plans.items():
        if kernel == "boxes" and name in NO_WARPGROUPS:
            continue
        number += 1
        dtype = ("bfloat16", "float16")[number % 2]
        x = np.random.default_rng(number).normal(size=(m, k)) / 64
        x = kw.asarray(x.astype(TYPES[dtype]))
        with kw.checks("memory", "init", "race", "sync") as report:
            got = product(x, packed, *plan)
        report.raise_if_any()
        check(got, x.numpy(), numbers, dtype)
"""


def test_every_kernel():
    launched = run_on_hopper(KERNELS, KERNWRIGHT_LOG="debug")
    count, tables = len(SHAPES), 4
    names = ("tiles<", "gemm<", "whole<", "one<", "ring<", "wgmma<")
    assert [launched.count(f"launch packed_{name}") for name in names] == [
        *(count, count, count - tables, tables, count, count - len(NO_WARPGROUPS))
    ]


def test_no_warpgroups():
    packed, _ = made("q4_1", 18, 96)
    with pytest.raises(InvalidArgument, match="plan"):
        product(kw.zeros((17, 96), "float16"), packed, 8, 0, 0, 0, 0, 0, 7)


@pytest.mark.parametrize("name", ["q4_1", "q3_k"])
def test_zeros_and_largest_scales(name):
    """Blocks of zeros are rows of zeros; the largest half is finite in the numbers."""
    k = 256
    host = np.zeros((3, k), np.float32)
    host[1], host[2, ::7] = 6e4, -6e4
    blocks = quant.quantize(kw.asarray(host), name)
    packed = quant.pack(blocks, name)
    numbers = quant.unpack(packed).numpy()
    same(numbers, quant.dequantize(blocks, name).numpy())
    assert (numbers[0] == 0).all() and np.isfinite(numbers).all()
    got = linear(kw.ones((1, k), "bfloat16"), packed).numpy().astype(np.float32)[0]
    expected = numbers.astype(np.float64).sum(1)
    assert got[0] == 0 and np.allclose(got[1:], expected[1:], rtol=2**-7)


BLOCKS = kw.zeros((4, 84), dtype="uint8")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: quant.pack(BLOCKS, "q3_k"), "110 bytes"),
        (lambda: quant.pack(BLOCKS, "q5_1"), "(4, 84)"),
        (lambda: quant.pack(BLOCKS, "q2_k", shape=(4, 512)), "672 numbers of bytes of blocks"),
        (lambda: quant.pack(BLOCKS, "q2_k", shape=(12, 32)), "multiple of 256"),
        (lambda: quant.pack(BLOCKS.astype("int32"), "q2_k"), "uint8"),
        (lambda: quant.pack(BLOCKS, "q2_k", block=16), "block"),
        (lambda: quant.pack((BLOCKS, kw.zeros(2)), "fp4"), "shape=(n, k)"),
        (lambda: quant.pack((BLOCKS, kw.zeros(2)), "fp4", shape=(3, 48)), "multiple of 64"),
        (lambda: quant.pack((BLOCKS, kw.zeros(2)), "fp4", shape=(4, 64)), "codes"),
    ],
)
def test_wrong_calls(call, words):
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert words in str(caught.value)
