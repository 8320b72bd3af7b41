"""Products of sparse matrices the Hopper way: wgmma.mma_async.sp on whichever device."""

from pathlib import Path

import pytest
from children import run_child

import kernwright as kw

TYPES = [
    *(("f32", "f16", "f16"), ("f16", "f16", "f16"), ("f32", "bf16", "bf16")),
    ("f32", "tf32", "tf32"),
    *((d, a, b) for d in ("f32", "f16") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
    *(("s32", a, b) for a in ("s8", "u8") for b in ("s8", "u8")),
]


def run(statements):
    """In a process of its own, on a device of compute capability 9.0."""
    environment = {}
    device = kw.current_device()
    if device.is_simulated:
        environment["KERNWRIGHT_SIM_CAPABILITY"] = "9.0"
    elif device.compute_capability != (9, 0):
        pytest.skip("wgmma is of compute capability 9.0 alone")
    folder = str(Path(__file__).parent)
    program = f"import sys\nsys.path.insert(0, {folder!r})\nfrom sparse_products import *\n"
    program += f"{statements}\nprint('equal', end='')"
    ended = run_child(program, timeout=300, **environment)
    assert (ended.code, ended.out) == (0, "equal"), ended.err


@pytest.mark.parametrize("types", TYPES, ids=".".join)
def test_products_equal_those_of_the_whole_matrices(types):
    run(f"for seed, one in enumerate(products(*{types})): check(one, seed)")


@pytest.mark.parametrize("number", ["f16", "bf16"])
def test_rows_that_follow_each_other(number):
    run(f"for seed, one in enumerate(transposes({number!r})): check(one, seed)")


@pytest.mark.parametrize("number", ["f16", "bf16", "tf32", "e5m2"])
def test_what_no_index_names_takes_no_part(number):
    run(f"check_infinities('f32', {number!r})")
