"""The formats of weights in NumPy, from their definitions, one block after the other."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import ml_dtypes
import numpy as np

import kernwright as kw

TYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


# ---- GGUF blocks to numbers, one number after the other


def half(block, at):
    return np.float32(block[at : at + 2].view(np.float16)[0])


def scale_and_minimum(q, j):
    if j < 4:
        return q[j] & 63, q[j + 4] & 63
    return (q[j + 4] & 15) | ((q[j - 4] >> 6) << 4), (q[j + 4] >> 4) | ((q[j] >> 6) << 4)


UNEVEN = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])


def short_codes(block, fifth=False):
    """Of 32 values the codes, whose four bits are the last 16 bytes, fifth bits 4 before them."""
    codes = block[-16:].astype(int)
    codes = np.concatenate([codes & 15, codes >> 4])
    if fifth:
        bits = int(block[-20:-16].copy().view("<u4")[0])
        codes += [(bits >> j & 1) << 4 for j in range(32)]
    return codes


def decode_centred(block, fifth):
    codes = short_codes(block, fifth) - (16 if fifth else 8)
    return half(block, 0) * codes.astype(np.float32)


def decode_moved(block, fifth):
    return half(block, 0) * short_codes(block, fifth).astype(np.float32) + half(block, 2)


def decode_iq4_nl(block):
    return half(block, 0) * UNEVEN[short_codes(block)].astype(np.float32)


def decode_iq4_xs(block):
    d, upper = half(block, 0), int(block[2:4].copy().view("<u2")[0])
    out = []
    for j in range(8):
        scale = (int(block[4 + j // 2]) >> (j % 2 * 4) & 15 | (upper >> 2 * j & 3) << 4) - 32
        codes = short_codes(block[8 + 16 * j :][:16])
        out.append(d * np.float32(scale) * UNEVEN[codes].astype(np.float32))
    return np.concatenate(out)


def decode_q2_k(block):
    d, dmin = half(block, 80), half(block, 82)
    out = []
    for j in range(16):
        part = int(block[j])
        codes = block[16 + j // 8 * 32 + j % 2 * 16 :][:16] >> (j % 8 // 2 * 2) & 3
        scale, minimum = d * np.float32(part & 15), dmin * np.float32(part >> 4)
        out.append(scale * codes.astype(np.float32) - minimum)
    return np.concatenate(out)


def decode_q3_k(block):
    d, packed = half(block, 108), block[96:108].astype(int)
    out = []
    for j in range(16):
        scale = packed[j % 8] >> (j // 8 * 4) & 15 | (packed[8 + j % 4] >> (j // 4 * 2) & 3) << 4
        at = j % 2 * 16
        low = block[32 + j // 8 * 32 + at :][:16] >> (j % 8 // 2 * 2) & 3
        high = block[at:][:16] >> (j // 2) & 1
        codes = low.astype(int) - np.where(high, 0, 4)
        out.append(d * np.float32(scale - 32) * codes.astype(np.float32))
    return np.concatenate(out)


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


def decoded(blocks, name):
    with np.errstate(all="ignore"):
        flat = [GGUF[name].decode(block) for block in blocks.reshape(-1, BYTES[name])]
    shape = (*blocks.shape[:-1], blocks.shape[-1] // BYTES[name] * VALUES[name])
    return np.array(flat, np.float32).reshape(shape)


def fuzzed(name, shape, seed=0):
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (*shape, BYTES[name]), np.uint8)
    for at in GGUF[name].halves:
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


def short_bytes(codes, fifth=False):
    low = codes & 15
    parts = [(low[:16] | low[16:] << 4).astype(np.uint8)]
    if fifth:
        bits = sum(int(code >> 4) << j for j, code in enumerate(codes))
        parts.insert(0, np.array([bits], "<u4").view(np.uint8))
    return np.concatenate(parts)


def encode_centred(x, fifth):
    zero = 16 if fifth else 8
    d = first_largest(x) / np.float32(-zero)
    codes = np.clip((x * inverse(d) + np.float32(zero + 0.5)).astype(int), 0, 2 * zero - 1)
    return np.concatenate([half_bytes(d), short_bytes(codes, fifth)])


def encode_moved(x, fifth):
    most = 31 if fifth else 15
    low = x.min()
    d = (x.max() - low) / np.float32(most)
    codes = np.clip(((x - low) * inverse(d) + np.float32(0.5)).astype(int), 0, most)
    return np.concatenate([half_bytes(d), half_bytes(low), short_bytes(codes, fifth)])


def uneven_codes(x):
    """The nearest number, of two the larger."""
    between = (UNEVEN[1:] + UNEVEN[:-1]) / np.float32(2)
    return (x[:, None] >= between).sum(1)


def divided(x, unit):
    return x / unit if unit != 0 else np.zeros_like(x)


def encode_iq4_nl(x):
    d = as_half(first_largest(x) / np.float32(-127))
    return np.concatenate([half_bytes(d), short_bytes(uneven_codes(divided(x, d)))])


def signed_groups(x, count, lowest, parts):
    """The scale of all, that of each of `count` groups, and the groups in units of both."""
    groups = x.reshape(count, -1)
    ranges = np.array([first_largest(g) for g in groups], np.float32) / np.float32(lowest)
    d = as_half(first_largest(ranges) / np.float32(-parts))
    scales = np.clip(np.rint(divided(ranges, d)), -parts, parts - 1)
    scales = scales.astype(int)
    units = d * scales.astype(np.float32)
    return d, scales, np.array([divided(g, u) for g, u in zip(groups, units, strict=True)])


def encode_iq4_xs(x):
    d, scales, groups = signed_groups(x, 8, -127, 32)
    six = scales + 32
    upper = np.array([sum(int(s >> 4) << 2 * j for j, s in enumerate(six))], "<u2")
    lower = (six[::2] & 15 | (six[1::2] & 15) << 4).astype(np.uint8)
    codes = [short_bytes(uneven_codes(group)) for group in groups]
    return np.concatenate([half_bytes(d), upper.view(np.uint8), lower, *codes])


def bytes_of_pairs(codes):
    """Two bits of each of 256 codes; a byte has the codes 0, 32, 64 and 96 places on."""
    quarters = (codes & 3).reshape(2, 4, 32)
    return sum(quarters[:, k] << 2 * k for k in range(4)).astype(np.uint8).ravel()


def encode_q2_k(x):
    d, dmin, scale, minimum, codes = groups_with_minimum(x, 16, 3, 15)
    parts = [scale | minimum << 4, bytes_of_pairs(codes), half_bytes(d), half_bytes(dmin)]
    return np.concatenate(parts).astype(np.uint8)


def encode_q3_k(x):
    d, scales, groups = signed_groups(x, 16, -4, 32)
    six, codes = scales + 32, np.clip(np.rint(groups), -4, 3).astype(int) + 4
    third = (codes >> 2).reshape(8, 32)
    high = six.reshape(4, 4) >> 4
    parts = [sum(third[k] << k for k in range(8)), bytes_of_pairs(codes)]
    parts += [six[:8] & 15 | (six[8:] & 15) << 4, sum(high[k] << 2 * k for k in range(4))]
    return np.concatenate([*parts, half_bytes(d)]).astype(np.uint8)


def encode_q8_0(x):
    d = np.abs(x).max() / np.float32(127)
    y = (x * inverse(d)).astype(np.float64)
    codes = np.sign(y) * np.floor(np.abs(y) + 0.5)
    return np.concatenate([half_bytes(d), codes.astype(np.int8).view(np.uint8)])


def groups_with_minimum(x, count, most, parts):
    """The scales of all, those of each of `count` groups, and the codes, up to `most`."""
    groups = x.reshape(count, -1)
    low = np.minimum(groups.min(1), np.float32(0))
    ranges = (groups.max(1) - low) / np.float32(most)
    d, dmin = (as_half(of.max() / np.float32(parts)) for of in (ranges, -low))
    scale = np.clip(np.rint(divided(ranges, d)), 0, parts).astype(int)
    minimum = np.clip(np.rint(divided(-low, dmin)), 0, parts).astype(int)
    unit, shift = d * scale.astype(np.float32), dmin * minimum.astype(np.float32)
    safe = np.where(unit > 0, unit, np.float32(1))[:, None]
    codes = np.clip(np.rint((groups + shift[:, None]) / safe), 0, most).astype(int)
    codes[unit == 0] = 0
    return d, dmin, scale, minimum, codes


def encode_k(x, fifth):
    d, dmin, scale, minimum, codes = groups_with_minimum(x, 8, 31 if fifth else 15, 63)
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
    d, scales, groups = signed_groups(x, 16, -32, 128)
    codes = np.clip(np.rint(groups), -32, 31).astype(int) + 32
    low = (codes & 15).reshape(2, 4, 32)
    ql = [low[n, k] | low[n, k + 2] << 4 for n in range(2) for k in range(2)]
    parts = [*ql, bytes_of_pairs(codes >> 4), scales.astype(np.int8).view(np.uint8), half_bytes(d)]
    return np.concatenate(parts).astype(np.uint8)


def with_fifth(decode, encode, fifth):
    return functools.partial(decode, fifth=fifth), functools.partial(encode, fifth=fifth)


class Format(NamedTuple):
    """A format of GGUF blocks."""

    values: int
    bytes: int
    halves: tuple  # where the float16 numbers of a block are
    limit: float  # of the error of normal numbers, in parts of their norm
    decode: Callable
    encode: Callable


# Each format of the kernels has a row here; test_format_lists.py tells which one is missing.
GGUF = {
    "q4_0": Format(32, 18, (0,), 0.12, *with_fifth(decode_centred, encode_centred, False)),
    "q4_1": Format(32, 20, (0, 2), 0.1, *with_fifth(decode_moved, encode_moved, False)),
    "q5_0": Format(32, 22, (0,), 0.06, *with_fifth(decode_centred, encode_centred, True)),
    "q5_1": Format(32, 24, (0, 2), 0.05, *with_fifth(decode_moved, encode_moved, True)),
    "q8_0": Format(32, 34, (0,), 0.01, decode_q8_0, encode_q8_0),
    "iq4_nl": Format(32, 18, (0,), 0.12, decode_iq4_nl, encode_iq4_nl),
    "q2_k": Format(256, 84, (80, 82), 0.4, decode_q2_k, encode_q2_k),
    "q3_k": Format(256, 110, (108,), 0.2, decode_q3_k, encode_q3_k),
    "q4_k": Format(256, 144, (0, 2), 0.1, *with_fifth(decode_k, encode_k, False)),
    "q5_k": Format(256, 176, (0, 2), 0.05, *with_fifth(decode_k, encode_k, True)),
    "q6_k": Format(256, 210, (208,), 0.03, decode_q6_k, encode_q6_k),
    "iq4_xs": Format(256, 136, (0,), 0.12, decode_iq4_xs, encode_iq4_xs),
}
BYTES = {name: row.bytes for name, row in GGUF.items()}
VALUES = {name: row.values for name, row in GGUF.items()}
