"""Packed weights: their numbers bit by bit, products against NumPy in float64."""

import pickle

import ml_dtypes
import numpy as np
import pytest
from weight_formats import BYTES, TYPES, VALUES, decoded, fuzzed, same

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument

quant, linear = kw.nn.quant, kw.nn.linear
LIMIT = {"bfloat16": 3e-3, "float16": 5e-4, "float32": 1e-6}
AWQ_ORDER = np.array([0, 2, 4, 6, 1, 3, 5, 7])


def words(codes, order):
    """int32 words of eight codes along the last axis."""
    places = np.zeros(8, np.uint64)
    places[order] = np.arange(8) * 4
    parts = codes.reshape(*codes.shape[:-1], -1, 8).astype(np.uint64) << places
    return parts.sum(-1, dtype=np.uint64).astype(np.uint32).view(np.int32)


def grouped(kind, n, k, group, scale_type="float16", zeros=True):
    """(what pack() takes, the numbers (n, k))."""
    rng = np.random.default_rng(n + k + group)
    codes = rng.integers(0, 16, (k, n))
    scales = (rng.normal(size=(k // group, n)) * 0.1).astype(TYPES[scale_type])
    zero = rng.integers(0, 16, scales.shape) if zeros else np.full(scales.shape, 8)
    order = AWQ_ORDER if kind == "awq" else np.arange(8)
    packed = words(codes, order) if kind == "awq" else words(codes.T, order).T
    parts = [packed, words(zero, order), scales]
    less = np.repeat(zero + (kind == "gptq" and zeros), group, 0)
    numbers = np.repeat(scales.astype(np.float32), group, 0) * (codes - less).astype(np.float32)
    parts = [kw.asarray(np.ascontiguousarray(part)) for part in parts]
    return (parts[0], parts[1] if zeros else None, parts[2]), numbers.T


def acted(n, k, group, kind="gptq"):
    """GPTQ's tensors with the group of each column in no order, and the numbers."""
    blocks, _ = grouped(kind, n, k, group)
    listed = np.random.default_rng(k).permutation(np.repeat(np.arange(k // group), group))
    blocks = (*blocks, kw.asarray(listed.astype(np.int32)))
    return blocks, quant.dequantize(blocks, kind).numpy().T


def made(name, n, k):
    """Packed weights of a format and their numbers, decoded by NumPy or dequantize()."""
    if name in BYTES:
        blocks = fuzzed(name, (n, k // VALUES[name]), k)
        return quant.pack(kw.asarray(blocks), name), decoded(blocks, name)
    kind, _, group = name.partition(" ")
    if group.startswith("act"):
        blocks, numbers = acted(n, k, int(group[3:]), kind)
        return quant.pack(blocks, kind), numbers
    if kind in ("gptq", "gptq_v2", "awq"):
        blocks, numbers = grouped(kind, n, k, int(group))
        return quant.pack(blocks, kind), numbers
    host = np.random.default_rng(k).normal(size=(n, k)).astype(np.float32)
    options = {"block": int(group)} if group.isdigit() else {}
    double = {"double": True} if group == "double" else {}
    blocks = quant.quantize(kw.asarray(host), kind, **options, **double)
    numbers = quant.dequantize(blocks, kind, shape=(n, k), **options).numpy()
    return quant.pack(blocks, kind, shape=(n, k), **options), numbers


# A format, and the shapes that it is tested with.
SHAPES = {
    "gptq 128": [(40, 256)],
    "gptq_v2 32": [(8, 160)],
    "gptq act64": [(24, 320)],
    "gptq_v2 act128": [(8, 256)],
    "awq 64": [(24, 192)],
    "nf4": [(37, 192)],
    "nf4 double": [(90, 192), (17, 256)],
    "nf4 32": [(21, 32)],
    "q4_k": [(37, 512)],
    "q4_0": [(18, 96)],
    "q8_0": [(18, 96)],
    "q6_k": [(18, 256)],
    "mxfp4": [(20, 160)],
    "nvfp4": [(20, 144)],
    "fp8_block": [(140, 264)],
    "q5_k": [(18, 256)],
}


def check(got, x, numbers, dtype, **rest):
    expected = np.asarray(x, np.float64) @ numbers.astype(np.float64).T
    for more in rest.values():
        expected = expected + np.asarray(more, np.float64)
    error = np.linalg.norm(np.asarray(got.numpy(), np.float64) - expected)
    assert error <= LIMIT[dtype] * np.linalg.norm(expected)


@pytest.mark.parametrize("name", SHAPES)
def test_numbers_and_products(name):
    rng = np.random.default_rng(0)
    with kw.checks("memory", "init", "race", "sync") as report:
        for n, k in SHAPES[name]:
            packed, numbers = made(name, n, k)
            assert packed.shape == (n, k)
            same(quant.unpack(packed), np.ascontiguousarray(numbers))
            for dtype, m in (("bfloat16", 1), ("float16", 3)):
                x = kw.asarray((rng.normal(size=(m, k)) / 64).astype(TYPES[dtype]))
                check(linear(x, packed), x.numpy(), numbers, dtype)
    report.raise_if_any()


def test_narrow_numbers():
    packed, numbers = made("q4_k", 18, 256)
    for dtype in ("bfloat16", "float16"):
        with np.errstate(over="ignore"):
            expected = np.ascontiguousarray(numbers).astype(TYPES[dtype])
        same(quant.unpack(packed, dtype=dtype), expected)


def product(x, packed, *plan):
    """By a plan: warps, tiles of rows and columns, loads or stages, splits, stages of a ring, and
    the kernel where it is that of one row (8) or of warpgroups (7)."""
    spec, arrays = packed._spec, packed._arrays
    return kw._core._packed_linear(x, spec, arrays, None, None, "", list(plan))


def check_what_follows(m, n, k, plan):
    """A product of m rows with Q4_K by a plan: x with gaps, bias, activation and residual, under
    all checks."""
    rng = np.random.default_rng(7)
    packed, numbers = made("q4_k", n, k)
    x, bias, residual = (rng.normal(size=size) / 8 for size in ((m, k), n, (m, n)))
    x, bias, residual = (part.astype(TYPES["bfloat16"]) for part in (x, bias, residual))
    wide = kw.asarray(np.concatenate([x, x], 1))[:, :k]
    after = kw.asarray(bias), kw.asarray(residual), "relu", plan
    with kw.checks("memory", "init", "race", "sync") as report:
        got = kw._core._packed_linear(wide, packed._spec, packed._arrays, *after)
    report.raise_if_any()
    sums = x.astype(np.float64) @ numbers.T.astype(np.float64) + bias.astype(np.float64)
    expected = np.maximum(sums, 0) + residual.astype(np.float64)
    off = np.linalg.norm(got.numpy().astype(np.float64) - expected)
    assert off <= LIMIT["bfloat16"] * np.linalg.norm(expected)


MANY = ["gptq 128", "gptq act64", "nf4", "nf4 double", "q4_k", "q6_k", "q8_0", "mxfp4", "nvfp4",
        "fp8_block"]  # fmt: skip


@pytest.mark.parametrize("name", MANY)
def test_products_of_many_rows(name):
    """What a product of the weights as numbers gives, but for sums of another order."""
    rng = np.random.default_rng(6)
    n, k = SHAPES[name][0]
    packed, numbers = made(name, n, k)
    dtype = "float16" if name in ("nf4", "q6_k", "fp8_block") else "bfloat16"
    x = (rng.normal(size=(67, k)) / 64).astype(TYPES[dtype])
    with kw.checks("memory", "init", "race", "sync") as report:
        got = linear(kw.asarray(x), packed)
    report.raise_if_any()
    check(got, x, numbers, dtype)
    rounded = quant.unpack(packed, dtype=dtype).numpy().astype(np.float64)
    expected = (x.astype(np.float64) @ rounded.T).astype(TYPES[dtype]).astype(np.float64)
    limit = LIMIT[dtype] if name.startswith("nf4") else LIMIT[dtype] / 4
    off = np.linalg.norm(got.numpy().astype(np.float64) - expected)
    assert off <= limit * np.linalg.norm(expected)


@pytest.mark.parametrize(("m", "plan"), [(512, []), (200, [4, 2, 16, 2, 3]), (65, [8, 1, 8, 3, 2]),
                                         (130, [4, 1, 8, 2, 9])])  # fmt: skip
def test_plans_of_many_rows(m, plan):
    packed, numbers = made("q4_k", 150, 1024)
    x = np.random.default_rng(m).normal(size=(m, 1024)).astype(ml_dtypes.bfloat16)
    got = product(kw.asarray(x), packed, *plan)
    check(got, x, numbers, "bfloat16")
    assert np.array_equal(product(kw.asarray(x), packed, *plan).numpy(), got.numpy())


@pytest.mark.parametrize("m", [8, 17, 64, 150, 520])
def test_rows_of_x(m):
    packed, numbers = made("q4_k", 37, 512)
    x = np.random.default_rng(m).normal(size=(m, 512)).astype(ml_dtypes.bfloat16)
    given = kw.asarray(x)
    check(linear(given, packed), x, numbers, "bfloat16")
    if m == 17:  # two tiles of rows, as where there are many
        plan = [4, 2, 4, 1, 1]
        got = kw._core._packed_linear(given, packed._spec, packed._arrays, None, None, "", plan)
        check(got, x, numbers, "bfloat16")


def test_blocks_share_k():
    """Few rows of weights and a long k: the parts of blocks are added by a second kernel."""
    packed, numbers = made("awq 128", 8, 8192)
    x = np.random.default_rng(1).normal(size=(3, 8192)).astype(np.float16)
    given = kw.asarray(x)
    got = linear(given, packed)
    check(got, x, numbers, "float16")
    for plan in ([4, 2, 1, 1, 3], [2, 1, 1, 4, 7]):
        again = kw._core._packed_linear(given, packed._spec, packed._arrays, None, None, "", plan)
        check(again, x, numbers, "float16")
    assert np.array_equal(linear(given, packed).numpy(), got.numpy())


def test_what_follows():
    rng = np.random.default_rng(2)
    packed, numbers = made("q8_0", 18, 96)
    for m in (5, 35, 260):
        x = (rng.normal(size=(2, m, 96)) / 64).astype(np.float16)
        bias, residual = rng.normal(size=18), rng.normal(size=(2, m, 18))
        bias, residual = bias.astype(np.float16), residual.astype(np.float16)
        b, r = kw.asarray(bias), kw.asarray(residual)
        check(linear(kw.asarray(x), packed, b, residual=r), x, numbers, "float16",
              bias=bias, residual=residual)  # fmt: skip
        got = linear(kw.asarray(x), packed, b, activation="relu").numpy()
        plain = linear(kw.asarray(x), packed, b).numpy()
        assert got.shape == (2, m, 18) and np.array_equal(got, np.maximum(plain, 0))
    x32 = rng.normal(size=(3, 96)).astype(np.float32)
    check(linear(kw.asarray(x32), packed), x32, numbers, "float32")
    assert linear(kw.asarray(x32[0]), packed).shape == (18,)


def test_layouts_of_x():
    packed, numbers = made("q4_0", 18, 96)
    x = np.random.default_rng(3).normal(size=(6, 96)).astype(np.float16)
    wide = kw.asarray(np.repeat(x, 2, 1))[:, ::2]
    shifted = kw.asarray(np.concatenate([x[0, :1], x.ravel()]))[1:].reshape((6, 96))
    turned = kw.asarray(np.ascontiguousarray(x.T)).T
    expected = linear(kw.asarray(x), packed).numpy()
    for given in (wide, shifted, turned, kw.asarray(x[::-1].copy())[::-1]):
        assert np.array_equal(linear(given, packed).numpy(), expected)
    check(linear(kw.asarray(x)[::2], packed), x[::2], numbers, "float16")
    x = np.random.default_rng(4).normal(size=(70, 96)).astype(np.float16)
    shifted = kw.asarray(np.concatenate([x[0, :1], x.ravel()]))[1:].reshape((70, 96))
    check(linear(shifted, packed), x, numbers, "float16")
    check(linear(kw.asarray(x)[::-1], packed), x[::-1], numbers, "float16")


def test_no_zeros_and_scales_of_each_type():
    x = np.random.default_rng(4).normal(size=(2, 128)).astype(np.float16)
    for kind, scale_type in (("gptq", "bfloat16"), ("awq", "float32")):
        blocks, numbers = grouped(kind, 16, 128, 64, scale_type, zeros=False)
        packed = quant.pack(blocks, kind, shape=(16, 128))
        assert packed.format == "int4" and packed.group == 64 and packed.arrays[3] is None
        same(quant.unpack(packed), np.ascontiguousarray(numbers))
        check(linear(kw.asarray(x), packed), x, numbers, "float16")


def test_empty_and_special():
    for n, k in ((0, 32), (4, 0), (0, 0)):
        packed = quant.pack(kw.zeros((n, k // 32 * 18), dtype="uint8"), "q4_0")
        assert quant.unpack(packed).shape == (n, k) and packed.nbytes == 0
        got = linear(kw.ones((2, k), dtype="float16"), packed, kw.ones(n, dtype="float16"))
        assert got.shape == (2, n) and (got.numpy() == 1).all()
    packed, _ = made("q4_0", 18, 96)
    assert linear(kw.ones((0, 96), dtype="float16"), packed).shape == (0, 18)
    exponents = np.full((4, 1), 255, np.uint8)
    exponents[1:, 0] = 0, 127, 254
    parts = kw.zeros((4, 16), dtype="uint8") + 0x22, kw.asarray(exponents)
    special = quant.pack(parts, "mxfp4")
    same(quant.unpack(special), quant.dequantize(parts, "mxfp4").numpy())
    got = linear(kw.ones((1, 32), dtype="bfloat16"), special).numpy().astype(np.float32)[0]
    assert np.isnan(got[0]) and got[2] == 32 and np.isinf(got[3])


def test_groups_that_are_none():
    (codes, zeros, scales, listed), numbers = acted(16, 128, 32)
    host = listed.numpy().copy()
    host[host == 2] = 1 << 20  # in the last place of the order
    packed = quant.pack((codes, zeros, scales, kw.asarray(host)), "gptq")
    got = quant.unpack(packed).numpy()
    gone = host == 1 << 20
    assert np.isnan(got[:, gone]).all() and gone.sum() == 32
    assert np.array_equal(got[:, ~gone], numbers[:, ~gone])
    host = listed.numpy().copy()
    host[host == 1] = 0  # one group of 64 is two of 32
    packed = quant.pack((codes, zeros, scales, kw.asarray(host)), "gptq")
    same(
        quant.unpack(packed),
        np.ascontiguousarray(
            quant.dequantize((codes, zeros, scales, kw.asarray(host)), "gptq").numpy().T
        ),
    )
    host[0] = 3 - host[0]
    packed = quant.pack((codes, zeros, scales, kw.asarray(host)), "gptq")
    assert np.isnan(quant.unpack(packed).numpy()).any()


def test_sizes():
    """Rows of 16 and k of 128 take what the format's own blocks take."""
    host = kw.ones((32, 512), dtype="bfloat16")
    bits = {name: BYTES[name] * 8 / VALUES[name] for name in BYTES} | {"mxfp4": 4.25}
    for name, each in bits.items():
        packed = quant.pack(quant.quantize(host, name), name)
        assert packed.nbytes * 8 == each * 32 * 512, name
    nested = quant.quantize(kw.ones((256, 1024)), "nf4", double=True)
    assert quant.pack(nested, "nf4", shape=(256, 1024)).nbytes * 8 < 4.17 * 256 * 1024


def test_the_object():
    packed, numbers = made("nf4 double", 17, 256)
    again = pickle.loads(pickle.dumps(packed))
    assert (again.format, again.shape, again.group) == ("nf4", (17, 256), 64)
    same(quant.unpack(again), numbers)
    with pytest.raises(AttributeError):
        packed.shape = (1, 1)
    assert "nf4" in repr(packed) and packed.tile == (128, 128)


def test_no_reference_to_the_blocks():
    blocks, numbers = grouped("gptq", 16, 64, 32)
    packed = quant.pack(blocks, "gptq")
    scales = kw.ones((2, 2))
    tiles = quant.pack((kw.ones((200, 136), dtype="float8_e4m3fn"), scales), "fp8_block")
    for part in (*blocks, scales):
        part[...] = 0
    same(quant.unpack(packed), np.ascontiguousarray(numbers))
    assert (quant.unpack(tiles).numpy() == 1).all()


def test_graph():
    packed, numbers = made("q6_k", 18, 256)
    rng = np.random.default_rng(5)
    x = kw.asarray((rng.normal(size=(4, 256)) / 64).astype(np.float16))
    linear(x, packed)
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream):
        result = linear(x, packed)
    x[...] = kw.asarray((rng.normal(size=(4, 256)) / 64).astype(np.float16))
    kw.synchronize()
    graph.launch(stream)
    stream.synchronize()
    check(result, x.numpy(), numbers, "float16")
    packed, numbers = made("gptq act64", 24, 320)
    x = kw.asarray((rng.normal(size=(80, 320)) / 64).astype(np.float16))
    linear(x, packed)
    with (graph := kw.Graph()).capture(stream):
        result = linear(x, packed)
    x[...] = kw.asarray((rng.normal(size=(80, 320)) / 64).astype(np.float16))
    kw.synchronize()
    graph.launch(stream)
    stream.synchronize()
    check(result, x.numpy(), numbers, "float16")


Q4 = kw.zeros((4, 18), dtype="uint8")
PACKED = quant.pack(Q4, "q4_0")
WORDS = kw.zeros((8, 16), dtype="int32")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: quant.pack(Q4, "q4_2"), InvalidArgument, "q4_2"),
        (lambda: quant.pack(Q4, "q4_k"), InvalidArgument, "(4, 18)"),
        (lambda: quant.pack(Q4, "q4_0", shape=(4, 64)), InvalidArgument, "(4, 64)"),
        (lambda: quant.pack(Q4, "q4_0", shape=(4,)), InvalidArgument, "(n, k)"),
        (lambda: quant.pack(Q4, "q4_0", shape=(2, 2**40)), InvalidArgument, "2**31"),
        (lambda: quant.pack(Q4.reshape((2, 2, 18)), "q4_0"), InvalidArgument, "(2, 2, 18)"),
        (lambda: quant.pack(kw.zeros((4, 18)), "q4_0"), InvalidArgument, "uint8"),
        (lambda: quant.pack(Q4, "q4_0", block=32), InvalidArgument, "block"),
        (lambda: quant.pack((Q4,), "q4_0"), ArgumentError, "one array"),
        (lambda: quant.pack((Q4, Q4), "nf4"), InvalidArgument, "shape"),
        (lambda: quant.pack((Q4, kw.zeros(2)), "nf4", shape=(3, 48)), InvalidArgument, "64"),
        (lambda: quant.pack((Q4, kw.zeros(2)), "nf4", shape=(4, 64)), InvalidArgument, "codes"),
        (lambda: quant.pack((Q4, kw.zeros(2)), "nf4", shape=(1, 256), block=256),
         InvalidArgument, "256"),
        (lambda: quant.pack((WORDS, None, kw.zeros((2, 16))), "gptq", shape=(8, 16)),
         InvalidArgument, "(16, 64)"),
        (lambda: quant.pack((WORDS, None, kw.zeros((3, 16))), "gptq"), InvalidArgument, "3 groups"),
        (lambda: quant.pack((WORDS, None, kw.zeros((4, 16))), "gptq"), InvalidArgument, "not 16"),
        (lambda: quant.pack((WORDS, None, kw.zeros((2, 8))), "gptq"), InvalidArgument, "(2, 8)"),
        (lambda: quant.pack((WORDS, WORDS, kw.zeros((2, 16))), "gptq"), InvalidArgument, "(2, 2)"),
        (lambda: quant.pack((Q4, None, kw.zeros((1, 18))), "gptq"), InvalidArgument, "(18, 32)"),
        (lambda: quant.pack((kw.zeros((4, 16)), None, kw.zeros((1, 16))), "gptq"),
         InvalidArgument, "int32"),
        (lambda: quant.pack((WORDS,) * 4, "awq"), ArgumentError, "qzeros"),
        (lambda: quant.pack((WORDS, None, kw.zeros((2, 16)), kw.zeros(63, "int32")), "gptq"),
         InvalidArgument, "64 numbers of groups of columns"),
        (lambda: quant.pack((WORDS, None, kw.zeros((2, 16)), kw.zeros(64)), "gptq"),
         InvalidArgument, "int32"),
        (lambda: quant.pack((kw.zeros((4, 256), dtype="float8_e4m3fn"), kw.zeros((1, 3))),
                            "fp8_block"), InvalidArgument, "(1, 3)"),
        (lambda: quant.pack((kw.zeros((4, 256), dtype="float8_e4m3fn"), kw.zeros((1, 4))),
                            "fp8_block", block=(128, 64)), InvalidArgument, "128 x 64"),
        (lambda: quant.pack((kw.zeros((4, 258), dtype="float8_e4m3fn"), kw.zeros((1, 3))),
                            "fp8_block"), InvalidArgument, "258"),
        (lambda: quant.unpack(Q4), ArgumentError, "PackedWeight"),
        (lambda: quant.unpack(PACKED, dtype="int8"), InvalidArgument, "int8"),
        (lambda: linear(kw.zeros((2, 31), "float16"), PACKED), InvalidArgument, "(4, 32)"),
        (lambda: product(kw.zeros((70, 32), "float16"), PACKED, 4, 3), InvalidArgument, "plan"),
        (lambda: product(kw.zeros((70, 32), "float16"), PACKED, 4, 2, 16, 5), InvalidArgument,
         "plan"),
        (lambda: product(kw.zeros((17, 32), "float16"), PACKED, 4, 0, 0, 0, 0, 2), InvalidArgument,
         "plan"),
        (lambda: product(kw.zeros((2, 32), "float16"), PACKED, 4, 0, 0, 0, 0, 9), InvalidArgument,
         "plan"),
        (lambda: linear(kw.zeros((2, 32), "int32"), PACKED), InvalidArgument, "int32"),
        (lambda: linear(kw.zeros((2, 32), "float16"), PACKED, kw.zeros(4)), InvalidArgument,
         "bias"),
        (lambda: linear(kw.zeros((2, 32), "float16"), PACKED, residual=kw.zeros((2, 5))),
         InvalidArgument, "residual"),
        (lambda: linear(kw.zeros((2, 32), "float16"), PACKED, scale=kw.ones(1)), ArgumentError,
         "scales"),
        (lambda: quant.PackedWeight("q4_0", (4, 32), PACKED.arrays[:3]), ArgumentError, "8"),
        (lambda: quant.unpack(quant.PackedWeight("q4_0", (17, 32), PACKED.arrays)),
         InvalidArgument, "codes"),
        (lambda: quant.unpack(quant.PackedWeight("q6_k", (4, 256), PACKED.arrays)),
         InvalidArgument, "2048 numbers"),
        (lambda: quant.unpack(quant.PackedWeight("nf4", (4, 32), PACKED.arrays, group=32)),
         InvalidArgument, "float32"),
    ],
)  # fmt: skip
def test_wrong_calls(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["nf4", "gptq 128"])
@pytest.mark.parametrize(("m", "dtype"), [(1, "bfloat16"), (3, "float16"), (80, "float32")])
@pytest.mark.parametrize("normed", [False, True])
def test_a_gate_writes_half_of_the_columns_to_out(name, m, dtype, normed):
    rng = np.random.default_rng(m)
    n, k = 64, 256
    packed, numbers = made(name, n, k)
    x, bias = ((rng.normal(size=size) / 16).astype(TYPES[dtype]) for size in ((m, k), n))
    weight = (1 + rng.normal(size=k) / 8).astype(TYPES[dtype])
    given = x.astype(np.float64)
    options = {}
    if normed:
        scale = 1 / np.sqrt((given**2).mean(-1, keepdims=True) + 1e-6)
        given = given * scale * weight.astype(np.float64)
        options = {"norm": kw.asarray(weight), "eps": 1e-6}
    sums = given @ numbers.T.astype(np.float64) + bias.astype(np.float64)
    gate, up = sums[:, : n // 2], sums[:, n // 2 :]
    expected = gate / (1 + np.exp(-gate)) * up

    def run(out, x=x):
        return kw._core._packed_linear(
            kw.asarray(x), packed._spec, packed._arrays, kw.asarray(bias), None, "", [],
            out=out, gate="silu", **options,
        )  # fmt: skip

    wide = kw.zeros((m, n), dtype)
    for out in (kw.zeros((m, n // 2), dtype), wide[:, ::2]):
        run(out)
        error = np.linalg.norm(out.numpy().astype(np.float64) - expected)
        assert error <= 4 * LIMIT[dtype] * np.linalg.norm(expected)
    assert not wide[:, 1::2].numpy().any()
    same(run(None), out.numpy())
    with pytest.raises(InvalidArgument, match=rf"out.*\({m}, {n // 2}\)"):
        run(kw.zeros((m, n), dtype))


def test_an_out_of_a_gate_lies_apart():
    packed, _ = made("q4_k", 64, 256)
    x, norm = kw.ones((1, 256), "bfloat16"), kw.ones(256, "bfloat16")
    for out in (x[:, :32], norm[None, :32]):
        with pytest.raises(InvalidArgument, match="shares memory"):
            kw._core._packed_linear(
                x, packed._spec, packed._arrays, None, None, "", [], out=out, norm=norm,
                eps=1e-6, gate="silu",
            )  # fmt: skip
    with pytest.raises(ArgumentError, match=r"gate='silu' goes with .* not with a PackedWeight"):
        linear(x, packed, gate="silu")
