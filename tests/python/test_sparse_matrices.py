"""mma.sp in a kernel's text: products of sparse matrices against NumPy, on whichever device."""

from __future__ import annotations

import numpy as np
import pytest

import kernwright as kw

PAIRS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
# Name: the opcode behind mma.sp, k, elements of a register, the type of A and B, that of C and D,
# lanes of every four that hold metadata.
CASES = {
    "f16": ("m16n8k32.row.col.f32.f16.f16.f32", 32, 2, np.float16, np.float32, 2),
    "tf32": ("m16n8k16.row.col.f32.tf32.tf32.f32", 16, 1, np.float32, np.float32, 2),
    "s8": ("m16n8k64.row.col.s32.s8.s8.s32", 64, 4, np.int8, np.int32, 4),
}


def kernel(variant: str, opcode: str, constraint: str, selector: int) -> kw.Kernel:
    registers = ", ".join(f"%{i}" for i in range(4))
    a = ", ".join(f'"r"(a[{32 * i} + t])' for i in range(4))
    b = ", ".join(f'"r"(b[{32 * i} + t])' for i in range(4))
    d = ", ".join(f'"+{constraint}"(d[{32 * i} + t])' for i in range(4))
    number = "float" if constraint == "f" else "int"
    return kw.kernel(f"""
__global__ void multiply(const unsigned* a, const unsigned* b, const unsigned* e, {number}* d) {{
    int t = threadIdx.x;
    asm volatile("mma.{variant}.sync.aligned.{opcode} {{{registers}}}, {{%4, %5, %6, %7}}, "
                 "{{%8, %9, %10, %11}}, {{{registers}}}, %12, {selector};"
                 : {d} : {a}, {b}, "r"(e[t]));
}}""")


def sparse(rng: np.random.Generator, k: int, dtype: type) -> tuple[np.ndarray, ...]:
    """A whole 16 x k matrix, its kept elements, and the metadata of each row."""
    whole, kept = np.zeros((16, k), dtype), np.zeros((16, k // 2), dtype)
    indices = [0] * 16
    for row in range(16):
        if dtype is np.float32:  # one of two: 0b0100 and 0b1110
            picks = rng.integers(0, 2, k // 2)
            columns = np.arange(0, k, 2) + picks
            for chunk, pick in enumerate(picks):
                indices[row] |= (0b1110 if pick else 0b0100) << (4 * chunk)
        else:
            pairs = [PAIRS[i] for i in rng.integers(0, 6, k // 4)]
            columns = np.array([4 * i + place for i, pair in enumerate(pairs) for place in pair])
            for chunk, (first, second) in enumerate(pairs):
                indices[row] |= (first | second << 2) << (4 * chunk)
        kept[row] = rng.integers(-4, 4, k // 2)
        whole[row, columns] = kept[row]
    return whole, kept, np.array(indices, np.uint64)


def metadata(
    indices: np.ndarray, lanes: int, selector: int, rng: np.random.Generator
) -> np.ndarray:
    """A word for each lane; those that the selector does not name hold anything."""
    words = rng.integers(0, 2**32, 32, dtype=np.uint64)
    low, high = indices[:8], indices[8:]
    first = np.arange(8) * 4 + selector * lanes
    if lanes == 2:  # 16 bits of row g and of row g + 8
        words[first] = (low & 0xFFFF) | (high & 0xFFFF) << np.uint64(16)
        words[first + 1] = low >> np.uint64(16) | high >> np.uint64(16) << np.uint64(16)
    else:
        for i in range(2):
            words[first + 2 * i] = low >> np.uint64(32 * i) & 0xFFFFFFFF
            words[first + 2 * i + 1] = high >> np.uint64(32 * i) & 0xFFFFFFFF
    return words.astype(np.uint32)


def registers_of(rows: np.ndarray, per_register: int) -> np.ndarray:
    """Rows of A, or columns of B, in groups of eight: word [block of k][lane] of each group."""
    words = np.ascontiguousarray(rows).view(np.uint32)  # [row][k / per_register]
    blocks = words.reshape(len(rows) // 8, 8, -1, 4)  # [group][row][block][lane % 4]
    return blocks.transpose(2, 0, 1, 3).reshape(-1, 32)


@pytest.mark.parametrize("variant", ["sp", "sp::ordered_metadata"])
@pytest.mark.parametrize("name", CASES)
def test_products_equal_those_of_the_whole_matrices(name, variant, device):
    opcode, k, per_register, dtype, sums, lanes = CASES[name]
    rng = np.random.default_rng(k)
    for selector in range(4 // lanes):
        whole, kept, indices = sparse(rng, k, dtype)
        columns = rng.integers(-4, 4, (8, k)).astype(dtype)
        start = rng.integers(-9, 9, (16, 8)).astype(sums)
        # C and D: register 2 * (row / 8) + column % 2 of lane 4 * (row % 8) + column / 2.
        fragment = start.reshape(2, 8, 4, 2).transpose(0, 3, 1, 2).reshape(4, 32)
        d = kw.asarray(np.ascontiguousarray(fragment))
        multiply = kernel(variant, opcode, "r" if sums is np.int32 else "f", selector)
        multiply[1, 32](
            kw.asarray(registers_of(kept, per_register)),
            kw.asarray(registers_of(columns, per_register)),
            kw.asarray(metadata(indices, lanes, selector, rng)),
            d,
        )
        expected = whole.astype(np.float64) @ columns.T.astype(np.float64) + start
        got = d.numpy().reshape(2, 2, 8, 4).transpose(0, 2, 3, 1).reshape(16, 8)
        np.testing.assert_array_equal(got, expected)
