"""Which kernels products with few rows and packed weights launch, on simulated devices."""

import os
import subprocess
import sys

from test_packed_weights import SHAPES

RING = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np, kernwright as kw
from test_packed_weights import SHAPES, TYPES, check, check_what_follows, made, product
# Rows of x, warps, tiles of a cluster, splits, stages: warps without a unit, and with two; blocks
# without one; a second round of tiles, whose last one is not whole.
rows = (("bfloat16", 1, 4, 0, 1, 1), ("float16", 1, 2, 0, 1, 3), ("bfloat16", 16, 8, 0, 0, 2),
        ("float16", 9, 4, 3, 2, 3), ("bfloat16", 5, 2, 0, 3, 1), ("float16", 2, 4, 6, 2, 1))
for name in SHAPES:
    wide = (136 if name == "fp8_block" else 104 if "gptq" in name or "awq" in name else 90, 1280)
    shapes = [SHAPES[name][-1], wide, SHAPES[name][0], wide, wide, wide]
    for i, ((n, k), (dtype, m, warps, tiles, splits, stages)) in enumerate(zip(shapes, rows)):
        if "act" in name and i % 3 != 0 or name in ("q8_0", "fp8_block") and m == 1:
            continue
        packed, numbers = made(name, n, k)
        x = np.random.default_rng(m).normal(size=(m, k)) / 64
        x = kw.asarray(x.astype(TYPES[dtype]))
        plan = warps, tiles, 0, 0, splits, stages
        with kw.checks("memory", "init", "race", "sync") as report:
            got = product(x, packed, *plan)
        report.raise_if_any()
        check(got, x.numpy(), numbers, dtype)
        assert np.array_equal(got.numpy(), product(x, packed, *plan).numpy())
for n, splits in ((37, 1), (86, 2)):
    check_what_follows(11, n, 1024, [4, 6, 0, 0, splits, 2])
"""


TABLES = [name for name in SHAPES if name.startswith("nf4")]
WHOLE = [name for name in SHAPES if name not in (*TABLES, "q8_0", "fp8_block")]


def test_rings_of_copies_on_a_newer_device():
    """Up to 16 rows of x, where blocks stay and copy what comes next: every format; the sums are
    the same each time."""
    launched = run_on_hopper(RING, KERNWRIGHT_LOG="debug")
    assert launched.count("launch packed_whole<") == 2 * (2 * len(WHOLE) - 2)
    assert launched.count("launch packed_one<") == 2 * 2 * len(TABLES)
    assert launched.count("launch packed_ring<") == 2 * (4 * len(SHAPES) - 2 * 3) + 2


# x as whole numbers: groups of x whose numbers differ by powers of two from 0 to 34, the smallest
# and the largest of a type, groups of zeros, and one that is not finite.
DIGITS = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np, kernwright as kw
from test_packed_weights import TYPES, check, made, product
plan = 4, 0, 0, 0, 0, 2
for name in ("gptq_v2 32", "q4_k", "q5_k", "q6_k", "mxfp4", "nvfp4"):
    packed, numbers = made(name, n := 24, k := 512)
    sizes = np.abs(numbers.astype(np.float64)).T
    rng = np.random.default_rng(1)
    for dtype, powers in (("bfloat16", 34), ("float16", 14)):
        x = rng.normal(size=(1, k)) * 2.0 ** -rng.integers(0, powers, (1, k))
        x[:, 64:128] = 0
        x = x.astype(TYPES[dtype])
        with kw.checks("memory", "init", "race", "sync") as report:
            got = product(kw.asarray(x), packed, *plan).numpy().astype(np.float64)
        report.raise_if_any()
        expected = x.astype(np.float64) @ numbers.T.astype(np.float64)
        # The result is rounded; of x each group's last bit is 2^-22 of its largest number.
        largest = np.abs(x.astype(np.float64)).reshape(-1, 16).max(1).repeat(16)
        lost = (largest @ sizes) * 2.0**-20
        rounded = np.abs(expected) * (2.0**-8 if dtype == "bfloat16" else 2.0**-11)
        assert (np.abs(got - expected) <= rounded + lost).all(), name
    for scale in (1e-36, 1e33):
        x = (rng.normal(size=(1, k)) * scale).astype(TYPES["bfloat16"])
        check(product(kw.asarray(x), packed, *plan), x, numbers, "bfloat16")
    for value in (np.inf, np.nan):
        x[0, 3] = value
        assert not np.isfinite(product(kw.asarray(x), packed, *plan).numpy().astype(float)).any()
# Blocks whose sums do not all wait for the end.
n, k = 16 * 8 * 132 + 40, 256
made = kw.random.normal((n, k), seed=1).astype("float32")
x = kw.asarray(np.random.default_rng(5).normal(size=(1, k)).astype(np.float16))
for name in ("q4_0", "nf4"):
    packed = kw.nn.quant.pack(kw.nn.quant.quantize(made, name), name, shape=(n, k))
    check(product(x, packed, *plan), x.numpy(), kw.nn.quant.unpack(packed).numpy(), "float16")
"""


def test_one_row_as_whole_numbers():
    launched = run_on_hopper(DIGITS, KERNWRIGHT_LOG="debug")
    assert launched.count("launch packed_whole<") == 6 * 6 + 1


BOXES = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np, kernwright as kw
from test_packed_weights import SHAPES, TYPES, check, check_what_follows, made, product
# Rows of x, warps, tiles of columns, teams, splits, stages: more splits than units, one stage, two
# tiles; teams that lack the last block or unit.
rows = (("bfloat16", 9, 8, 2, 1, 1, 2), ("float16", 33, 8, 0, 1, 3, 1),
        ("bfloat16", 21, 16, 2, 1, 2, 2))
teams = ("bfloat16", 9, 4, 2, 2, 1, 2), ("float16", 33, 4, 0, 2, 2, 1)
odd = "bfloat16", 63, 4, 0, 2, 1, 2
for name in SHAPES:
    shapes = [SHAPES[name][-1], (40 if name != "fp8_block" else 136, 1280)]
    cases = [*zip(shapes, rows), *zip(shapes, teams)]
    if name in ("q6_k", "nvfp4", "nf4 double", "fp8_block"):
        cases.append((shapes[1], odd))
    if name in ("q4_k", "gptq_v2 32", "nvfp4"):
        cases += [(shapes[1], rows[2]), (shapes[0], ("float16", 70, 8, 4, 2, 4, 0))]
    for (n, k), (dtype, m, warps, columns, many, splits, stages) in cases:
        packed, numbers = made(name, n, k)
        x = np.random.default_rng(m).normal(size=(m, k)) / 64
        x = kw.asarray(x.astype(TYPES[dtype]))
        if name in ("q4_k", "q5_k", "q6_k") and stages > 0:
            stages = 2 * many  # each team has stages of its own, and keeps one
        plan = warps, 0, columns, many, splits, stages, 7
        with kw.checks("memory", "init", "race", "sync") as report:
            got = product(x, packed, *plan)
        report.raise_if_any()
        check(got, x.numpy(), numbers, dtype)
        assert np.array_equal(got.numpy(), product(x, packed, *plan).numpy())
    # x in the order of lanes, and codes in that of x, which those of bytes are not read in.
    packed, numbers = made(name, *shapes[1])
    for order in (1, 2)[: 1 if name in ("q8_0", "fp8_block") else 2]:
        dtype = ("bfloat16", "float16")[order % 2]
        x = np.random.default_rng(order).normal(size=(13, shapes[1][1])) / 64
        x = kw.asarray(x.astype(TYPES[dtype]))
        with kw.checks("memory", "init", "race", "sync") as report:
            got = product(x, packed, 4, order, 8, 2, 1, 0, 7)
        report.raise_if_any()
        check(got, x.numpy(), numbers, dtype)
# Rows of x that no tensor map describes: backwards, and all the same.
many = kw.asarray(np.random.default_rng(4).normal(size=(12, 512)) / 64).astype("float16")
packed, numbers = made("q4_0", 40, 512)
for x in (many[::-1], many[3]._broadcast((12, 512))):
    check(product(x, packed, 8, 0, 0, 0, 1, 0, 7), x.numpy(), numbers, "float16")
# Sums of 32 numbers of x that float16 cannot hold.
small = kw.random.normal((40, 512), seed=3).astype("float32") * 0.01 + 0.01
packed = kw.nn.quant.pack(kw.nn.quant.quantize(small, "q4_k"), "q4_k", shape=(40, 512))
x = kw.asarray(np.random.default_rng(5).uniform(2300, 3500, (12, 512)).astype(np.float16))
with kw.checks("memory", "init", "race", "sync") as report:
    got = product(x, packed, 8, 0, 0, 0, 1, 0, 7)
report.raise_if_any()
check(got, x.numpy(), kw.nn.quant.unpack(packed).numpy(), "float16")
# Numbers of x near the smallest ones of float16, whose sums must keep their digits.
large = kw.nn.quant.quantize(small * 2e6 - 2e4, "q4_k")
packed = kw.nn.quant.pack(large, "q4_k", shape=(40, 512))
x = kw.asarray((np.random.default_rng(6).normal(size=(12, 512)) * 1e-5).astype(np.float16))
got = product(x, packed, 8, 0, 0, 0, 1, 0, 7)
check(got, x.numpy(), kw.nn.quant.unpack(packed).numpy(), "float16")
for n, splits in ((37, 1), (40, 2)):
    check_what_follows(17, n, 512, [8, 0, 0, 0, splits, 0, 7])
"""


def test_some_rows_by_warpgroups():
    """Every format; the sums are the same each time."""
    launched = run_on_hopper(BOXES, KERNWRIGHT_LOG="debug")
    assert launched.count("launch packed_wgmma<") == 2 * (5 * len(SHAPES) + 2 * 3 + 4) + 4


UNITS = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np, kernwright as kw
from test_packed_weights import TYPES, product
from weight_formats import decoded, fuzzed
plan = 8, 0, 0, 0, 1, 0, 7
host = kw.random.normal((48, 512), seed=1).astype("float32") * 0.02
for name in ("q4_k", "q5_k", "q6_k"):
    # x of one sign: errors of weights of a group would add up if they had one direction.
    packed = kw.nn.quant.pack(kw.nn.quant.quantize(host, name), name, shape=host.shape)
    numbers = kw.nn.quant.unpack(packed).numpy().astype(np.float64)
    for dtype in ("bfloat16", "float16"):
        x = np.abs(np.random.default_rng(2).normal(size=(33, 512)) / 8).astype(TYPES[dtype])
        expected = x.astype(np.float64) @ numbers.T
        rounded = kw.nn.quant.unpack(packed, dtype=dtype).numpy().astype(np.float64)
        limit = np.linalg.norm(x.astype(np.float64) @ rounded.T - expected)
        limit = np.hypot(limit, np.linalg.norm(expected.astype(TYPES[dtype]) - expected))
        got = product(kw.asarray(x), packed, *plan).numpy().astype(np.float64)
        assert np.linalg.norm(got - expected) <= 1.25 * limit, (name, dtype)
    # Scales of scales, and of minima, that are zero, or far from each other.
    blocks = fuzzed(name, (16, 2), 5)
    halves = np.array([0, 1, 2**-24, 6e4, -0.5], np.float16)
    pairs = halves[np.random.default_rng(6).integers(0, 5, (16, 2, 2))]
    pairs[:4, 0] = 0
    if name == "q6_k":
        blocks[:, 208:210] = pairs[:, 0, :1].copy().view(np.uint8)
    else:
        blocks.reshape(16, 2, -1)[:, :, :4] = pairs.view(np.uint8)
    packed = kw.nn.quant.pack(kw.asarray(blocks), name)
    numbers = decoded(blocks, name).T.astype(np.float64)
    for dtype, limit in (("bfloat16", 1e-2), ("float16", 2e-3)):
        x = (np.random.default_rng(7).normal(size=(9, 512)) / 2**16).astype(TYPES[dtype])
        with kw.checks("memory", "init", "race", "sync") as report:
            got = product(kw.asarray(x), packed, *plan)
        report.raise_if_any()
        expected = x.astype(np.float64) @ numbers
        off = np.linalg.norm(got.numpy().astype(np.float64) - expected, axis=0)
        assert (off <= limit * np.linalg.norm(expected, axis=0) + 1e-7).all(), (name, dtype, off)
"""


def test_weights_of_units_with_one_scale():
    """K-quants by warpgroups: weights are rounded once, as they are where they are numbers."""
    assert "launch packed_wgmma<" in run_on_hopper(UNITS, KERNWRIGHT_LOG="debug")


CHOSEN = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np, kernwright as kw
from test_packed_weights import check
n, k = 16 * 132 - 3, 4352
made = kw.random.normal((n, k), seed=1).astype("float32")
bias = kw.random.normal((n,), seed=2).astype("bfloat16")
residual = kw.random.normal((9, n), seed=3).astype("bfloat16")
for name, k, rows in (("nf4", 4096, (1, 3, 9)), ("nf4 double", 4096, (1,)),
                      ("q4_k", 4096, (1, 2)), ("q4_k", 4352, (1,))):
    name, *more = name.split()
    blocks = kw.nn.quant.quantize(made[:, :k], name, **{{option: True for option in more}})
    packed = kw.nn.quant.pack(blocks, name, shape=(n, k))
    numbers = kw.nn.quant.unpack(packed).numpy()
    for m in rows:
        x = kw.asarray(np.random.default_rng(m).normal(size=(m, k)) / 64).astype("bfloat16")
        got = kw.nn.linear(x, packed, bias, residual=residual[:m])
        more = dict(bias=bias.numpy(), residual=residual[:m].numpy())
        check(got, x.numpy(), numbers, "bfloat16", **more)
"""


def test_what_few_rows_take_on_a_newer_device():
    launched = run_on_hopper(CHOSEN, KERNWRIGHT_LOG="debug")
    names = ("whole<", "one<", "ring<", "tiles<")
    assert sum(launched.count(f"launch packed_{name}") for name in names) == 7  # one a product


LARGE = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np, kernwright as kw
from test_packed_weights import check
n, k = 4096, 4096
made = kw.random.normal((n, k), seed=1).astype("float32")
bias = kw.random.normal((n,), seed=2).astype("bfloat16")
packed = kw.nn.quant.pack(kw.nn.quant.quantize(made, "q4_0"), "q4_0")
numbers = kw.nn.quant.unpack(packed).numpy()
for m in (16, 17, 33):
    x = kw.asarray(np.random.default_rng(m).normal(size=(m, k)) / 64).astype("bfloat16")
    check(kw.nn.linear(x, packed, bias), x.numpy(), numbers, "bfloat16", bias=bias.numpy())
"""


def test_more_rows_take_warpgroups_on_hopper():
    launched = run_on_hopper(LARGE, KERNWRIGHT_LOG="debug")
    names = ("ring<", "tiles<", "wgmma<")
    assert sum(launched.count(f"launch packed_{name}") for name in names) == 3  # one a product
    assert "launch packed_wgmma<" in launched


HOPPER = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np, kernwright as kw
from test_packed_weights import check, made
with kw.checks("memory", "init", "race", "sync") as report:
    for name in ("q4_k", "nvfp4", "fp8_block", "gptq act64"):
        packed, numbers = made(name, 24, k := 256)
        x = kw.asarray(np.random.default_rng(0).normal(size=(9, k)) / 64).astype("bfloat16")
        check(kw.nn.linear(x, packed), x.numpy(), numbers, "bfloat16")
        x = kw.asarray(np.random.default_rng(1).normal(size=(70, k)) / 64).astype("bfloat16")
        check(kw.nn.linear(x, packed), x.numpy(), numbers, "bfloat16")
report.raise_if_any()
"""


def run_on_hopper(text, **more):
    text = text.format(folder=os.path.dirname(__file__))
    environment = {**os.environ, "KERNWRIGHT_DEVICE": "sim", **more}
    environment["KERNWRIGHT_SIM_CAPABILITY"] = "9.0"
    result = subprocess.run(
        [sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=240
    )
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    return result.stderr


def test_under_all_checks_of_a_newer_device():
    run_on_hopper(HOPPER)
