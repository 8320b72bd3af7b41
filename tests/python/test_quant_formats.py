"""kw.nn.quant bit by bit against NumPy, which follows the definitions of the formats."""

import ml_dtypes
import numpy as np
import pytest
from weight_formats import BYTES, GGUF, TYPES, VALUES, decoded, fuzzed, same

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument

dequantize, quantize = kw.nn.quant.dequantize, kw.nn.quant.quantize


# ---- GGUF blocks

# float32 and a narrower type for each format.
PAIRS = {name: ("float32", ("float16", "bfloat16")[i % 2]) for i, name in enumerate(BYTES)}


@pytest.mark.parametrize("name", BYTES)
def test_gguf_numbers(name):
    blocks = fuzzed(name, (3, 4))
    expected = decoded(blocks, name)
    for dtype in PAIRS[name]:
        with np.errstate(over="ignore"):
            wanted = expected.astype(TYPES[dtype])
        same(dequantize(kw.asarray(blocks), name, dtype=dtype), wanted)
    same(dequantize(kw.asarray(blocks), name, shape=(2, expected.size // 2)),
         expected.reshape(2, -1))  # fmt: skip


@pytest.mark.parametrize("name", BYTES)
def test_gguf_layouts(name):
    """Blocks that begin anywhere, rows in another order, none, infinite and NaN scales."""
    blocks = fuzzed(name, (3, 2), 1)
    expected = decoded(blocks, name)
    for shift in (1, 2, 8):
        padded = kw.asarray(np.concatenate([np.zeros(shift, np.uint8), blocks.ravel()]))
        same(dequantize(padded[shift:].reshape(blocks.shape), name), expected)
    same(dequantize(kw.asarray(blocks)[::-1], name), expected[::-1])
    assert dequantize(kw.zeros((0, BYTES[name]), dtype="uint8"), name).shape == (0, VALUES[name])
    assert dequantize(kw.zeros((5, 0), dtype="uint8"), name).shape == (5, 0)
    for bad in (np.inf, np.nan):
        blocks[1, GGUF[name].halves[-1] :][:2] = np.array([bad], np.float16).view(np.uint8)
        same(dequantize(kw.asarray(blocks), name), decoded(blocks, name))


@pytest.mark.parametrize("name", BYTES)
def test_gguf_blocks(name):
    host = np.random.default_rng(3).normal(size=(9, 256)).astype(np.float32)
    host[1], host[2], host[3] = 0, 1e-6, np.abs(host[3])
    host[4, ::2] *= np.float32(1e-3)
    host[5] = -np.abs(host[5])
    host[6] = np.tile([2.5, -2.5, 0.5, 1.5], 64)  # ties of magnitude and of rounding
    for dtype in PAIRS[name]:
        x = host.astype(TYPES[dtype])
        wide = x.astype(np.float32).reshape(-1, VALUES[name])
        expected = np.array([GGUF[name].encode(row) for row in wide]).reshape(9, -1)
        blocks = quantize(kw.asarray(x), name)
        assert np.array_equal(blocks.numpy(), expected), dtype
        error = dequantize(blocks, name).numpy()[0] - x[0].astype(np.float32)
        assert np.linalg.norm(error) < GGUF[name].limit * np.linalg.norm(x[0].astype(np.float32))
    turned = kw.asarray(np.ascontiguousarray(host.T)).T
    assert np.array_equal(quantize(turned, name).numpy(), quantize(kw.asarray(host), name).numpy())
    assert quantize(kw.zeros((0, 256)), name).shape == (0, 256 // VALUES[name] * BYTES[name])
    host[0, 3], host[7, 5] = np.nan, np.inf
    back = dequantize(quantize(kw.asarray(host), name), name).numpy()
    assert np.isfinite(back[0]).all() and not np.isfinite(back[7]).all()


# ---- 4-bit codes

NF4 = np.array(
    [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
     -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
     0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
     0.7229568362236023, 1.0], np.float32)  # fmt: skip
FP4 = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32)


# FP4 of bitsandbytes by code, and the bounds between its numbers from 0 on with the codes there.
TWELFTHS = np.array([0, 0.0625, 8, 12, 4, 6, 2, 3], np.float32) / np.float32(12)
TWELFTHS = np.concatenate([TWELFTHS, -TWELFTHS])
BOUNDS = np.array([0.00260417, 0.0859375, 0.20833333, 0.29166667, 0.4166667, 0.583333, 0.8333333],
                  np.float32)  # fmt: skip
RISING = np.array([0, 1, 6, 7, 4, 5, 2, 3])


def unpacked(codes, high_first):
    low, high = codes & 15, codes >> 4
    pair = (high, low) if high_first else (low, high)
    return np.stack(pair, -1).reshape(*codes.shape[:-1], -1)


@pytest.mark.parametrize("count", [1, 7, 64, 301, 4096])
def test_nf4(count):
    rng = np.random.default_rng(count)
    host = rng.normal(size=count).astype(np.float32)
    codes, absmax = quantize(kw.asarray(host), "nf4")
    padded = np.pad(host, (0, -count % 64)).reshape(-1, 64)
    largest = np.abs(padded).max(1)
    assert np.array_equal(absmax.numpy(), largest)
    wanted = np.abs((padded / largest[:, None])[..., None] - NF4).argmin(-1).ravel()[:count]
    got = unpacked(codes.numpy(), True)
    assert np.array_equal(got[:count], wanted) and (got[count:] == 7).all()
    for dtype, kind in TYPES.items():
        expected = (NF4[wanted] * np.repeat(largest, 64)[:count]).astype(kind)
        same(dequantize((codes, absmax), "nf4", shape=(count,), dtype=dtype), expected)


def test_nf4_double():
    host = np.random.default_rng(0).normal(size=(300, 70)).astype(np.float32)
    parts = quantize(kw.asarray(host), "nf4", double=True)
    codes, places, table, scales, offset = (part.numpy() for part in parts)
    assert table.shape == (256,) and (np.diff(table) > 0).all() and table[-1] == 1
    count = len(places)
    absmax = table[places] * np.repeat(scales, 256)[:count] + offset
    expected = NF4[unpacked(codes, True)] * np.repeat(absmax, 64)[: host.size]
    same(dequantize(parts, "nf4", shape=host.shape), expected.reshape(host.shape))
    plain = quantize(kw.asarray(host), "nf4")[1].numpy()
    assert np.abs(absmax - plain).max() < 0.01
    empty = quantize(kw.zeros((0, 4)), "nf4", double=True)
    assert dequantize(empty, "nf4", shape=(0, 4)).shape == (0, 4)


@pytest.mark.parametrize("count", [1, 301])
def test_fp4(count):
    host = np.random.default_rng(count).normal(size=count).astype(np.float32)
    padded = np.pad(host, (0, -count % 64)).reshape(-1, 64)
    largest = np.abs(padded).max(1)
    padded.reshape(-1)[1:8] = BOUNDS * largest[0]  # exactly, or one bit off, once divided
    host = padded.reshape(-1)[:count]
    codes, absmax = quantize(kw.asarray(host), "fp4")
    assert np.array_equal(absmax.numpy(), largest)
    shares = padded / largest[:, None]
    wanted = RISING[np.searchsorted(BOUNDS, np.abs(shares))] + 8 * (shares < 0)
    wanted = wanted.ravel()[:count]
    got = unpacked(codes.numpy(), True)
    assert np.array_equal(got[:count], wanted) and (got[count:] == 0).all()
    every = kw.asarray(np.arange(256, dtype=np.uint8))
    for dtype in ("float32", "float16"):
        expected = (TWELFTHS[wanted] * np.repeat(largest, 64)[:count]).astype(TYPES[dtype])
        same(dequantize((codes, absmax), "fp4", shape=(count,), dtype=dtype), expected)
    numbers = dequantize((every, kw.asarray(np.full(8, 3, np.float32))), "fp4").numpy()
    same(numbers, np.float32(3) * TWELFTHS[unpacked(np.arange(256, dtype=np.uint8), True)])


def test_fp4_double_and_special():
    host = np.random.default_rng(0).normal(size=(30, 70)).astype(np.float32)
    parts = quantize(kw.asarray(host), "fp4", double=True)
    codes, places, table, scales, offset = (part.numpy() for part in parts)
    absmax = table[places] * np.repeat(scales, 256)[: len(places)] + offset
    expected = TWELFTHS[unpacked(codes, True)] * np.repeat(absmax, 64)[: host.size]
    same(dequantize(parts, "fp4", shape=host.shape), expected.reshape(host.shape))
    rows = np.zeros((4, 64), np.float32)
    rows[1, 3], rows[2, :], rows[3, 5] = np.nan, 3e38, np.inf
    codes, absmax = quantize(kw.asarray(rows), "fp4")
    assert absmax.numpy()[0] == 0 and np.isnan(absmax.numpy()[1]) and np.isinf(absmax.numpy()[3])
    back = dequantize((codes, absmax), "fp4", shape=rows.shape).numpy()
    assert (back[0] == 0).all() and np.isnan(back[1]).all()
    assert np.array_equal(back[2], rows[2])


def test_nf4_special():
    rows = np.zeros((4, 128), np.float32)
    rows[1, 3], rows[2, :], rows[3, 5] = np.nan, 1e-42, np.inf
    codes, absmax = quantize(kw.asarray(rows), "nf4", block=128)
    assert absmax.numpy()[0] == 0 and np.isnan(absmax.numpy()[1]) and np.isinf(absmax.numpy()[3])
    back = dequantize((codes, absmax), "nf4", shape=rows.shape, block=128).numpy()
    assert (back[0] == 0).all() and np.isnan(back[1]).all()
    assert np.array_equal(back[2], rows[2])


def test_mxfp4():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 256, (5, 64), np.uint8)
    exponents = rng.integers(0, 256, (5, 4), np.uint8)
    exponents[0] = 0, 1, 254, 255
    powers = exponents.view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = FP4[unpacked(codes, False)] * np.repeat(powers, 32, 1)
        for dtype, kind in TYPES.items():
            got = dequantize((kw.asarray(codes), kw.asarray(exponents)), "mxfp4", dtype=dtype)
            same(got, expected.astype(kind))
    host = (rng.normal(size=(6, 96)) * 10.0 ** rng.integers(-30, 30, (6, 1))).astype(np.float32)
    host[0], host[1] = 0, 1e-44
    host[2, :8] = -0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6
    got, scales = quantize(kw.asarray(host), "mxfp4")
    most = np.abs(host).reshape(6, 3, 32).max(-1)
    wanted = np.maximum(np.frexp(most)[1] - 1 - 2 + 127, 0) * (most > 0)
    assert np.array_equal(scales.numpy(), wanted)
    powers = np.repeat(wanted.astype(np.uint8).view(ml_dtypes.float8_e8m0fnu), 32, 1)
    scaled = np.clip(host / powers.astype(np.float32), -6, 6)
    expected = scaled.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    assert np.array_equal(unpacked(got.numpy(), False), expected)
    host[3, 3], host[4, 40] = np.nan, np.inf
    scales = quantize(kw.asarray(host), "mxfp4")[1].numpy()
    assert scales[3, 0] == 255 and scales[4, 1] == 255 and scales[3, 1] != 255


def test_nvfp4():
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 256, (5, 24), np.uint8)
    scales = rng.integers(0, 256, (5, 3), np.uint8)
    number = np.array(0.37, np.float32)
    factors = scales.view(ml_dtypes.float8_e4m3fn).astype(np.float32) * number
    expected = FP4[unpacked(codes, False)] * np.repeat(factors, 16, 1)
    parts = kw.asarray(codes), kw.asarray(scales), kw.asarray(number)
    for dtype, kind in TYPES.items():
        same(dequantize(parts, "nvfp4", dtype=dtype), expected.astype(kind))
    host = rng.normal(size=(7, 80)).astype(np.float32)
    host[0], host[1] = 0, 1e-5
    got, scales, factor = quantize(kw.asarray(host), "nvfp4")
    assert factor.numpy() == np.abs(host).max() / np.float32(2688)
    blocks = host.reshape(7, 5, 16)
    wanted = np.abs(blocks).max(-1) / np.float32(6) / factor.numpy()
    wanted = np.minimum(wanted, 448).astype(ml_dtypes.float8_e4m3fn)
    assert np.array_equal(scales.numpy().view(np.uint8), wanted.view(np.uint8))
    units = wanted.astype(np.float32) * factor.numpy()
    scaled = blocks / np.where(units == 0, np.inf, units)[..., None].astype(np.float32)
    expected = np.clip(scaled, -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    assert np.array_equal(unpacked(got.numpy(), False), expected.reshape(7, 80))
    zeros = quantize(kw.zeros((2, 16), "bfloat16"), "nvfp4")
    assert (dequantize(zeros, "nvfp4").numpy() == 0).all()
    assert quantize(kw.zeros((0, 16)), "nvfp4")[0].shape == (0, 8)


# ---- matrices with scales beside them


@pytest.mark.parametrize(
    ("shape", "tile"), [((130, 264), (128, 128)), ((2, 7, 33), (4, 16)), ((3, 300), (1, 128))]
)
def test_fp8_tiles(shape, tile):
    rng = np.random.default_rng(4)
    host = rng.normal(size=shape).astype(np.float32)
    host[..., 0, 0] = 0
    values, scales = quantize(kw.asarray(host), "fp8_block", block=tile)
    rows, columns = (-(-n // t) for n, t in zip(shape[-2:], tile, strict=True))
    assert scales.shape == (*shape[:-2], rows, columns)
    pads = [(0, 0)] * (len(shape) - 2) + [
        (0, -n % t) for n, t in zip(shape[-2:], tile, strict=True)
    ]
    whole = np.abs(np.pad(host, pads)).reshape(*shape[:-2], rows, tile[0], columns, tile[1])
    wanted = whole.max((-3, -1)) / np.float32(448)
    assert np.array_equal(scales.numpy(), wanted)
    spread = np.repeat(np.repeat(wanted, tile[0], -2), tile[1], -1)[..., : shape[-2], : shape[-1]]
    expected = np.clip(host / spread, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    same(values, expected)
    for dtype, kind in TYPES.items():
        got = dequantize((values, scales), "fp8_block", block=tile, dtype=dtype)
        same(got, (expected.astype(np.float32) * spread).astype(kind))
    brain = scales.astype("bfloat16")
    got = dequantize((values, brain), "fp8_block", block=tile)
    same(got, dequantize((values, brain.astype("float32")), "fp8_block", block=tile).numpy())


def test_fp8_special():
    host = np.ones((2, 256), np.float32)
    host[0, 3], host[1, 200] = np.nan, np.inf
    scales = quantize(kw.asarray(host), "fp8_block")[1]
    assert np.isnan(scales.numpy()[0, 0]) and np.isinf(scales.numpy()[0, 1])
    zeros = quantize(kw.zeros((5, 5)), "fp8_block")
    assert (dequantize(zeros, "fp8_block").numpy() == 0).all()
    assert quantize(kw.zeros((0, 5)), "fp8_block")[1].shape == (0, 1)


@pytest.mark.parametrize("scale_type", TYPES)
def test_gptq(scale_type):
    rng = np.random.default_rng(5)
    rows, columns, groups = 64, 40, 4
    codes, zeros = rng.integers(0, 16, (rows, columns)), rng.integers(0, 16, (groups, columns))
    scales = rng.normal(size=(groups, columns)).astype(TYPES[scale_type])
    scales[0, 0] = 6e-8
    places = (np.arange(8) * 4).astype(np.uint64)
    words = (codes.reshape(8, 8, columns).astype(np.uint64) << places[None, :, None]).sum(1)
    packed = (zeros.reshape(groups, 5, 8).astype(np.uint64) << places).sum(-1)
    parts = [kw.asarray(a.astype(np.uint32).view(np.int32)) for a in (words, packed)]
    parts.append(kw.asarray(scales))
    group = np.arange(rows) // 16
    for name, offset in (("gptq", 1), ("gptq_v2", 0)):
        for order in (None, rng.permutation(group)):
            at = group if order is None else order
            more = [] if order is None else [kw.asarray(order.astype(np.int32))]
            expected = scales.astype(np.float32)[at] * (codes - zeros[at] - offset)
            got = dequantize([*parts, *more], name, dtype="float16")
            same(got, expected.astype(np.float32).astype(np.float16))
    outside = kw.asarray(np.where(np.arange(rows) == 3, 4, group).astype(np.int32))
    assert np.isnan(dequantize([*parts, outside], "gptq").numpy()[3]).all()


@pytest.mark.parametrize("dtype", TYPES)
def test_awq(dtype):
    rng = np.random.default_rng(6)
    rows, columns, groups = 24, 72, 3
    codes, zeros = rng.integers(0, 16, (rows, columns)), rng.integers(0, 16, (groups, columns))
    scales = rng.normal(size=(groups, columns)).astype(np.float16)

    def packed(values):
        parts = values.reshape(len(values), -1, 8).astype(np.uint64)
        order = (0, 2, 4, 6, 1, 3, 5, 7)
        words = sum(parts[..., order[i]] << np.uint64(4 * i) for i in range(8))
        return kw.asarray(words.astype(np.uint32).view(np.int32))

    at = np.arange(rows) // 8
    expected = (scales.astype(np.float32)[at] * (codes - zeros[at])).astype(np.float32)
    got = dequantize((packed(codes), packed(zeros), kw.asarray(scales)), "awq", dtype=dtype)
    same(got, expected.astype(TYPES[dtype]))


# ---- what holds for all


def test_in_a_graph():
    host = np.random.default_rng(7).normal(size=(4, 256)).astype(np.float32)
    x, stream, graph = kw.asarray(host), kw.Stream(), kw.Graph()
    kw.synchronize()
    names = ("q4_k", "nf4", "mxfp4", "nvfp4", "fp8_block")
    with graph.capture(stream):
        made = [dequantize(quantize(x, name), name, shape=(4, 256)) for name in names]
    x[...] = 2 * host
    graph.launch(stream)
    stream.synchronize()
    for name, result in zip(names, made, strict=True):
        expected = dequantize(quantize(kw.asarray(2 * host), name), name, shape=(4, 256))
        assert np.array_equal(result.numpy(), expected.numpy())


def test_every_kernel_under_all_checks(sim):
    x = kw.asarray(np.random.default_rng(8).normal(size=(3, 512)).astype(np.float32))
    words = kw.ones((8, 16), "int32")
    with kw.checks("memory", "init", "race", "sync") as report:
        for name in (*BYTES, "nf4", "mxfp4", "nvfp4", "fp8_block"):
            dequantize(quantize(x, name), name, dtype="bfloat16")
        dequantize(quantize(x[:, 3:], "nf4", double=True), "nf4", shape=(3, 509))
        scales = kw.ones((2, 16), "float16")
        dequantize((words, kw.ones((2, 2), "int32"), scales), "gptq")
        dequantize((words, kw.ones((2, 16), "int32"), kw.ones((2, 128), "float16")), "awq")
        kw.synchronize()
    assert not report.findings, str(report)


BLOCK = lambda n, dtype="uint8": kw.zeros(n, dtype=dtype)  # noqa: E731


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: dequantize(BLOCK(145), "q4_k"), InvalidArgument, "144 bytes"),
        (lambda: dequantize(BLOCK(144, "int8"), "q4_k"), InvalidArgument, "uint8"),
        (lambda: dequantize(BLOCK(144), "q4_k", dtype="float64"), InvalidArgument, "float64"),
        (lambda: dequantize(BLOCK(144), "q4_k", shape=(3, 5)), InvalidArgument, "(3, 5)"),
        (lambda: dequantize(BLOCK(144), "q4_k", block=3), InvalidArgument, "block"),
        (lambda: dequantize(BLOCK(144), "q4_2"), InvalidArgument, "q6_k"),
        (lambda: dequantize(BLOCK(144), "q3_k"), InvalidArgument, "110 bytes"),
        (lambda: dequantize(BLOCK(18), "q5_1"), InvalidArgument, "24 bytes"),
        (lambda: quantize(kw.ones(32), "iq4_xs"), InvalidArgument, "256 numbers"),
        (lambda: dequantize(BLOCK(32), "fp4"), ArgumentError, "absmax"),
        (lambda: dequantize(np.zeros(144, np.uint8), "q4_k"), ArgumentError, "asarray"),
        (lambda: dequantize([BLOCK(144)], "q4_k"), ArgumentError, "one array"),
        (lambda: dequantize(BLOCK(32), "nf4"), ArgumentError, "absmax"),
        (lambda: dequantize((BLOCK(32), kw.ones(2)), "nf4"), InvalidArgument, "1 numbers"),
        (lambda: dequantize((BLOCK(32), kw.ones(1)), "nf4", shape=(99,)), InvalidArgument, "50"),
        (lambda: dequantize((BLOCK(32), kw.ones(1)), "nf4", block=48), InvalidArgument, "48"),
        (lambda: dequantize((BLOCK(32), BLOCK(1)), "nf4"), InvalidArgument, "float32"),
        (lambda: dequantize((BLOCK(12), BLOCK(1)), "mxfp4"), InvalidArgument, "blocks of 32"),
        (lambda: dequantize((kw.zeros((2, 2), "float8_e4m3fn"), kw.ones((2, 1))), "fp8_block"),
         InvalidArgument, "(1, 1)"),
        (lambda: dequantize((kw.ones((2, 2)), kw.ones((1, 1))), "fp8_block"), InvalidArgument,
         "float32"),
        (lambda: dequantize((BLOCK((8, 1), "int32"),) * 3, "awq"), InvalidArgument, "int32"),
        (lambda: dequantize((BLOCK((7, 1), "int32"), BLOCK((2, 1), "int32"), kw.ones((2, 8))),
                            "awq"), InvalidArgument, "7 rows"),
        (lambda: quantize(kw.ones(33), "q4_0"), InvalidArgument, "32 numbers"),
        (lambda: quantize(kw.ones(32, "float64"), "q4_0"), InvalidArgument, "float64"),
        (lambda: quantize(kw.ones(32), "awq"), InvalidArgument, "read only"),
        (lambda: quantize(kw.ones(32), "mxfp4", double=True), InvalidArgument, "nf4"),
        (lambda: quantize(kw.ones(40), "mxfp4"), InvalidArgument, "whole blocks of 32"),
        (lambda: quantize(kw.ones(40), "fp8_block"), InvalidArgument, "matrices"),
        (lambda: quantize(kw.ones((4, 4)), "fp8_block", block=(0, 4)), InvalidArgument, "0 x 4"),
    ],
)  # fmt: skip
def test_wrong_calls(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_names():
    assert set(kw.nn.quant.formats()) > {
        *BYTES,
        "nf4",
        "mxfp4",
        "nvfp4",
        "fp8_block",
        "gptq",
        "awq",
    }
    for junk in (None, 3, "q", [], kw.ones(1)):
        with pytest.raises(kw.Error):
            quantize(kw.ones(32), junk)
        with pytest.raises(kw.Error):
            dequantize(junk, "q4_0")
        with pytest.raises(kw.Error):
            dequantize((junk, junk), "nf4")
