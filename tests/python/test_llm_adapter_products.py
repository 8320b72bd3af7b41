"""The products of adapters: those on tensor cores and the others against NumPy."""

import numpy as np
import pytest

import kernwright as kw
from kernwright.llm._adapters.products import expand, shrink
from kernwright.llm._adapters.slots import padded_rank
from kernwright.llm._adapters.tensor_products import (
    LEAST_TOKENS,
    expand_tiles,
    shrink_tiles,
    takes_tiles,
)

SLOTS = 3
PLAIN, TILES = (shrink, expand), (shrink_tiles, expand_tiles)


def numbers(*shape, seed, dtype):
    values = np.random.default_rng(seed).normal(0, 0.3, shape).astype(np.float32)
    return kw.asarray(values).astype(dtype)


class Case:
    """Arrays of a layer with parts of these widths; ranks[slot] of each slot's ranks count."""

    def __init__(self, tokens, inputs, widths, ranks, dtype="bfloat16", neighbours=1, seed=0):
        self.ranks, self.ends = ranks, np.cumsum(widths)
        rank, outputs = -(-max(ranks) // 8) * 8, int(self.ends[-1])
        self.x = numbers(tokens, inputs, seed=seed, dtype=dtype)
        self.y = numbers(tokens, outputs, seed=seed + 1, dtype=dtype)
        self.down = numbers(SLOTS, len(widths), rank, inputs, seed=seed + 2, dtype=dtype)
        self.up = numbers(SLOTS, rank, outputs, seed=seed + 3, dtype=dtype)
        for slot, used in enumerate(ranks):  # as LayerSlots leaves them
            self.down[slot, :, used:] = 0
            self.up[slot, used:] = 0
        draws = np.random.default_rng(seed + 4).integers(-1, SLOTS, -(-tokens // neighbours))
        self.slots = np.repeat(draws, neighbours)[:tokens].astype(np.int32)

    def expected(self):
        """In float64."""
        x, y, down, up = (np.asarray(each.astype("float32").numpy(), np.float64)
                          for each in (self.x, self.y, self.down, self.up))  # fmt: skip
        for i, slot in enumerate(self.slots):
            begin = 0
            for part, end in enumerate(self.ends):
                if slot >= 0:
                    y[i, begin:end] += (down[slot, part] @ x[i]) @ up[slot][:, begin:end]
                begin = end
        return y

    def made(self, products, tokens=slice(None)):
        shrinking, expanding = products
        slots, used, ends = (kw.asarray(np.asarray(each, np.int32))
                             for each in (self.slots[tokens], self.ranks, self.ends))  # fmt: skip
        y = self.y[tokens].copy()
        low = shrinking(self.x[tokens].copy(), self.down, slots, used)
        expanding(low, self.up, slots, used, ends, y)
        return y.astype("float32").numpy()


CASES = {
    "one part": Case(70, 64, [96], [16, 3, 8], neighbours=40),
    "three parts": Case(66, 96, [64, 8, 24], [8, 5, 0], neighbours=9),
    "a slot a token": Case(97, 32, [72], [20, 40, 1]),
    "float16": Case(64, 160, [40, 304], [9, 24, 16], "float16", neighbours=33),
    "many inputs": Case(65, 544, [16], [33, 2, 7], neighbours=64),
}


@pytest.mark.parametrize("products", [PLAIN, TILES], ids=["plain", "tiles"])
@pytest.mark.parametrize("name", CASES)
def test_products_are_those_of_numpy(name, products):
    case = CASES[name]
    made, expected = case.made(products), case.expected()
    scale = np.abs(expected).max()
    assert np.abs(made - expected).max() < scale * (
        0.006 if case.x.dtype.name == "bfloat16" else 1e-3
    )
    plain = case.y.astype("float32").numpy()
    untouched = case.slots == -1
    assert np.array_equal(made[untouched], plain[untouched]) and (made != plain).any()


def test_a_token_has_the_same_bits_beside_any_others():
    case = CASES["a slot a token"]
    whole = case.made(TILES)
    for begin in (0, 5, 33):
        part = slice(begin, begin + LEAST_TOKENS)
        assert np.array_equal(case.made(TILES, part), whole[part])


def test_tiles_are_taken_where_they_fit():
    case = CASES["one part"]

    def takes(tokens=70, dtype="bfloat16", inputs=64, rank=16, whole=True):
        x, y = kw.empty((tokens, inputs), dtype), kw.empty((tokens, 96), dtype)
        return takes_tiles(x, kw.empty((SLOTS, 1, rank, inputs), dtype), y, whole)

    assert [padded_rank(rank) for rank in (1, 8, 9)] == [8, 8, 16]  # an mma has 8 columns
    assert takes() and takes(LEAST_TOKENS) and takes(dtype="float16")
    assert not takes(LEAST_TOKENS - 1) and not takes(dtype="float32") and not takes(inputs=48)
    assert not takes(whole=False)
    view = case.x[:, 1:33]
    assert not takes_tiles(view, case.down, case.y, True)


def test_no_kernel_makes_a_finding_under_all_checks(sim):
    case = CASES["three parts"]
    with kw.checks("memory", "init", "race", "sync") as report:
        case.made(TILES)
        kw.synchronize()
    assert not report.findings, str(report)
