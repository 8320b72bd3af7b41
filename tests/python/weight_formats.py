"""The formats of weights in NumPy, from their definitions, one block after the other."""

import ml_dtypes
import numpy as np

import kernwright as kw

BYTES = {"q4_0": 18, "q8_0": 34, "q4_k": 144, "q5_k": 176, "q6_k": 210}
VALUES = {name: 32 if name in ("q4_0", "q8_0") else 256 for name in BYTES}
# Where the float16 numbers of a block are.
HALVES = {"q4_0": (0,), "q8_0": (0,), "q4_k": (0, 2), "q5_k": (0, 2), "q6_k": (208,)}
TYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


# ---- GGUF blocks to numbers, one number after the other


def half(block, at):
    return np.float32(block[at : at + 2].view(np.float16)[0])


def scale_and_minimum(q, j):
    if j < 4:
        return q[j] & 63, q[j + 4] & 63
    return (q[j + 4] & 15) | ((q[j - 4] >> 6) << 4), (q[j + 4] >> 4) | ((q[j] >> 6) << 4)


def decode_q4_0(block):
    codes = block[2:].astype(int)
    codes = np.concatenate([codes & 15, codes >> 4]) - 8
    return half(block, 0) * codes.astype(np.float32)


def decode_q8_0(block):
    return half(block, 0) * block[2:].view(np.int8).astype(np.float32)


def decode_k(block, fifth):
    d, low, scales = half(block, 0), half(block, 2), block[4:16].astype(int)
    codes, high = block[48 if fifth else 16 :].astype(int), block[16:48].astype(int)
    out = []
    for j in range(8):
        part = codes[j // 2 * 32 :][:32]
        part = part >> 4 if j % 2 else part & 15
        if fifth:
            part = part + 16 * (high >> j & 1)
        scale, minimum = scale_and_minimum(scales, j)
        out.append(d * np.float32(scale) * part.astype(np.float32) - low * np.float32(minimum))
    return np.concatenate(out)


def decode_q6_k(block):
    d, scales = half(block, 208), block[192:208].view(np.int8)
    out = np.zeros(256, np.float32)
    for n in range(2):
        ql, qh = block[64 * n :][:64].astype(int), block[128 + 32 * n :][:32].astype(int)
        for i in range(32):
            codes = (
                (ql[i] & 15) | (qh[i] >> 0 & 3) << 4,
                (ql[i + 32] & 15) | (qh[i] >> 2 & 3) << 4,
                (ql[i] >> 4) | (qh[i] >> 4 & 3) << 4,
                (ql[i + 32] >> 4) | (qh[i] >> 6 & 3) << 4,
            )
            for k, code in enumerate(codes):
                scale = np.float32(scales[8 * n + i // 16 + 2 * k])
                out[128 * n + 32 * k + i] = d * scale * np.float32(code - 32)
    return out


DECODE = {
    "q4_0": decode_q4_0,
    "q8_0": decode_q8_0,
    "q4_k": lambda block: decode_k(block, False),
    "q5_k": lambda block: decode_k(block, True),
    "q6_k": decode_q6_k,
}


def decoded(blocks, name):
    with np.errstate(all="ignore"):
        flat = [DECODE[name](block) for block in blocks.reshape(-1, BYTES[name])]
    shape = (*blocks.shape[:-1], blocks.shape[-1] // BYTES[name] * VALUES[name])
    return np.array(flat, np.float32).reshape(shape)


def fuzzed(name, shape, seed=0):
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (*shape, BYTES[name]), np.uint8)
    for at in HALVES[name]:
        scales = rng.normal(size=shape).astype(np.float16)
        scales.reshape(-1)[1::5] = np.float16(6e-8) * rng.integers(1, 9)  # subnormal
        blocks[..., at : at + 2] = scales.reshape(-1, 1).view(np.uint8).reshape(*shape, 2)
    return blocks.reshape(*shape[:-1], -1)


def same(got, expected):
    """The same bits, but any NaN for a NaN."""
    got = got.numpy() if isinstance(got, kw.Array) else got
    assert got.shape == expected.shape and got.dtype == expected.dtype
    nan = np.isnan(expected.astype(np.float32))
    unit = np.dtype(f"u{got.dtype.itemsize}")
    assert np.array_equal(np.isnan(got.astype(np.float32)), nan)
    assert np.array_equal(got.view(unit)[~nan], np.ascontiguousarray(expected).view(unit)[~nan])


# ---- numbers to GGUF blocks


def first_largest(x):
    return x[np.argmax(np.abs(x))]


def as_half(x):
    with np.errstate(over="ignore"):
        return np.float32(np.float16(x))


def half_bytes(x):
    return np.array([x], np.float32).astype(np.float16).view(np.uint8)


def inverse(d):
    return np.float32(1) / d if d != 0 else np.float32(0)


def encode_q4_0(x):
    d = first_largest(x) / np.float32(-8)
    codes = np.clip((x * inverse(d) + np.float32(8.5)).astype(int), 0, 15)
    return np.concatenate([half_bytes(d), (codes[:16] | codes[16:] << 4).astype(np.uint8)])


def encode_q8_0(x):
    d = np.abs(x).max() / np.float32(127)
    y = (x * inverse(d)).astype(np.float64)
    codes = np.sign(y) * np.floor(np.abs(y) + 0.5)
    return np.concatenate([half_bytes(d), codes.astype(np.int8).view(np.uint8)])


def encode_k(x, fifth):
    most = 31 if fifth else 15
    groups = x.reshape(8, 32)
    low = np.minimum(groups.min(1), np.float32(0))
    ranges = (groups.max(1) - low) / np.float32(most)
    d, dmin = as_half(ranges.max() / np.float32(63)), as_half((-low).max() / np.float32(63))
    scale = np.clip(np.rint(ranges / d), 0, 63).astype(int) if d > 0 else np.zeros(8, int)
    minimum = np.clip(np.rint(-low / dmin), 0, 63).astype(int) if dmin > 0 else np.zeros(8, int)
    unit, shift = d * scale.astype(np.float32), dmin * minimum.astype(np.float32)
    safe = np.where(unit > 0, unit, np.float32(1))[:, None]
    codes = np.clip(np.rint((groups + shift[:, None]) / safe), 0, most).astype(int)
    codes[unit == 0] = 0
    packed = np.zeros(12, int)
    packed[:4] = scale[:4] | (scale[4:] >> 4) << 6
    packed[4:8] = minimum[:4] | (minimum[4:] >> 4) << 6
    packed[8:] = (scale[4:] & 15) | (minimum[4:] & 15) << 4
    parts = [half_bytes(d), half_bytes(dmin), packed]
    if fifth:
        parts.append(sum((codes[j] >> 4) << j for j in range(8)))
    low_bits = codes & 15
    parts += [low_bits[2 * j] | low_bits[2 * j + 1] << 4 for j in range(4)]
    return np.concatenate(parts).astype(np.uint8)


def encode_q6_k(x):
    groups = x.reshape(16, 16)
    ranges = np.array([first_largest(g) for g in groups], np.float32) / np.float32(-32)
    d = as_half(first_largest(ranges) / np.float32(-128))
    scale = np.clip(np.rint(ranges / d), -128, 127) if d != 0 else np.zeros(16)
    unit = (d * scale.astype(np.float32)).astype(np.float32)
    safe = np.where(unit != 0, unit, np.float32(1))[:, None]
    codes = np.clip(np.rint(groups / safe), -32, 31).astype(int) + 32
    codes[unit == 0] = 32
    quarters = codes.reshape(2, 4, 32)
    low, high = quarters & 15, quarters >> 4
    ql = [low[n, k] | low[n, k + 2] << 4 for n in range(2) for k in range(2)]
    qh = [sum(high[n, k] << 2 * k for k in range(4)) for n in range(2)]
    parts = [*ql, *qh, scale.astype(np.int8).view(np.uint8), half_bytes(d)]
    return np.concatenate(parts).astype(np.uint8)


ENCODE = {
    "q4_0": encode_q4_0,
    "q8_0": encode_q8_0,
    "q4_k": lambda x: encode_k(x, False),
    "q5_k": lambda x: encode_k(x, True),
    "q6_k": encode_q6_k,
}
