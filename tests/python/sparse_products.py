"""wgmma.mma_async.sp against NumPy, for a process on a device of compute capability 9.0.

A is sparse: of every four elements of a row two are kept (tf32: one of two). The packed A is 64
rows of 32 bytes, B is 64 bytes of k for each column, and metadata gives the columns of the kept
elements. Numbers are small and whole: every order of summing gives the same.
"""

from __future__ import annotations

import dataclasses

import ml_dtypes
import numpy as np

import kernwright as kw

PAIRS = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
NUMBERS = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8,
    "u8": np.uint8,
    "f32": np.float32,
    "s32": np.int32,
}


@dataclasses.dataclass(frozen=True)
class Product:
    """One instruction. Modes of swizzles as in descriptors: 0 none, 1 128 bytes, 2 64, 3 32."""

    d: str
    a: str
    b: str
    n: int
    selector: int = 0
    registers: bool = False
    mode_a: int = 1
    mode_b: int = 1
    transposed_a: bool = False
    transposed_b: bool = False
    sign_a: int = 1
    sign_b: int = 1
    adds: bool = True
    satfinite: bool = False
    slices: int = 0  # of 32 bytes (B: 64) of k skipped by descriptors, in rows of 128 bytes

    @property
    def bytes_of_a(self) -> int:
        return np.dtype(NUMBERS[self.a]).itemsize

    @property
    def k(self) -> int:
        return 64 // self.bytes_of_a


def descriptor(start: int, leading: int, stride: int, mode: int) -> int:
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62


def place(
    rows: np.ndarray, image: np.ndarray, start: int, mode: int, transposed: bool, skipped: int
) -> int:
    """Puts a matrix [row][k] into the bytes of shared memory; returns its descriptor."""
    count, k = rows.shape
    size = rows.dtype.itemsize
    row, step = (axis.ravel() for axis in np.mgrid[0:count, 0:k])
    span = 256 >> mode if mode else 16  # bytes of a row of the swizzle's pattern
    chunks = k * size // 16
    if not transposed:
        leading, stride = (128 * (count // 8), 128) if mode == 0 else (16, 8 * span)
        byte = step * size
        if mode == 0:
            at = row % 8 * 16 + row // 8 * stride + byte // 16 * leading + byte % 16
        else:
            at = row % 8 * span + row // 8 * stride + skipped + byte
    else:
        byte = row * size
        if mode == 0:  # to the next eight rows; to the next eight steps of k
            leading, stride = 128 * (count // 8), 128
            at = byte % 16 + row // 8 * stride + step % 8 * 16 + step // 8 * leading
        else:  # to the rows outside of the pattern's row; to the next eight steps of k
            leading, stride = chunks * 8 * span, 8 * span
            at = byte % span + byte // span * leading + step % 8 * span + step // 8 * stride
    if mode:
        at = at ^ (at // 128 % (span // 16) * 16)
    raw = np.ascontiguousarray(rows).view(np.uint8).reshape(count * k, size)
    for i in range(size):
        image[start + at + i] = raw[:, i]
    return descriptor(start + skipped, leading, stride, mode)


def whole_numbers(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    if name == "s8":
        return rng.integers(-128, 128, shape)
    return rng.integers(0, 256, shape) if name == "u8" else rng.integers(-4, 5, shape)


def sparse(rng: np.random.Generator, whole: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Zeroes all but the kept elements; returns these, and the four bits of each chunk of a row."""
    rows, k = whole.shape
    width = 2 if size == 4 else 4
    if width == 2:
        picks = rng.integers(0, 2, (rows, k // 2, 1))
        bits = np.where(picks[..., 0] == 1, 0b1110, 0b0100)
    else:
        picks = PAIRS[rng.integers(0, 6, (rows, k // 4))]
        bits = picks[..., 0] | picks[..., 1] << 2
    chunks = whole.reshape(rows, k // width, width)
    kept = np.take_along_axis(chunks, picks, 2)
    zeroed = np.zeros_like(chunks)
    np.put_along_axis(zeroed, picks, kept, 2)
    whole[:] = zeroed.reshape(rows, k)
    return kept.reshape(rows, k // 2), bits.astype(np.uint64)


def metadata(rng: np.random.Generator, bits: np.ndarray, size: int, selector: int) -> np.ndarray:
    """A word for each thread, arbitrary for those not named by the selector."""
    words = rng.integers(0, 2**32, 128, dtype=np.uint64)
    for thread in range(128):
        row, lane = thread // 32 * 16 + thread % 32 // 4, thread % 4
        if size == 1:  # 32 columns of one row
            nibbles = bits[row + lane % 2 * 8][lane // 2 * 8 :][:8]
        elif lane // 2 == selector:  # half a row, and half of the row eight below
            half = slice(lane % 2 * 4, lane % 2 * 4 + 4)
            nibbles = np.concatenate([bits[row][half], bits[row + 8][half]])
        else:
            continue
        words[thread] = sum(int(nibble) << 4 * i for i, nibble in enumerate(nibbles))
    return words.astype(np.uint32)


def fragments_of_a(kept: np.ndarray) -> np.ndarray:
    """Four registers of each thread."""
    words = np.ascontiguousarray(kept).view(np.uint32)  # [64][8]
    blocks = words.reshape(4, 2, 8, 2, 4)  # [warp][row / 8][row % 8][half of k][lane % 4]
    return np.ascontiguousarray(blocks.transpose(0, 2, 4, 3, 1).reshape(128, 4))


def fragments_of_d(d: np.ndarray) -> np.ndarray:
    """[64][n] as the n / 2 numbers of each thread."""
    n = d.shape[1]
    blocks = d.reshape(4, 2, 8, n // 8, 4, 2)  # [warp][row / 8][row % 8][block][lane % 4][pair]
    return np.ascontiguousarray(blocks.transpose(0, 2, 4, 3, 1, 5).reshape(128, n // 2))


def source_of(one: Product) -> str:
    count = one.n // 2 // (2 if one.d == "f16" else 1)
    d = ", ".join(f"%{i}" for i in range(count))
    sums = ", ".join(f'"+{"f" if one.d == "f32" else "r"}"(sum[{i}])' for i in range(count))
    a = ", ".join(f'"r"(a[threadIdx.x * 4 + {i}])' for i in range(4))
    a = a if one.registers else '"l"(of_a)'
    at = count + (4 if one.registers else 1)
    operand_a = ", ".join(f"%{i}" for i in range(count, at))
    operand_a = f"{{{operand_a}}}" if one.registers else operand_a
    constants = ""
    if one.d != "s32":
        constants = f", {one.sign_a}, {one.sign_b}"
    if one.bytes_of_a == 2:
        constants += "" if one.registers else f", {int(one.transposed_a)}"
        constants += f", {int(one.transposed_b)}"
    opcode = f"wgmma.mma_async.sp.sync.aligned.m64n{one.n}k{one.k}.{one.d}.{one.a}.{one.b}"
    opcode += ".satfinite" if one.satfinite else ""
    number = "float" if one.d == "f32" else "unsigned"
    return f"""
__global__ void multiply(const uint4* image, const unsigned* a, const unsigned* metadata,
                         {number}* d, unsigned long long of_a, unsigned long long of_b,
                         int adds) {{
  __shared__ alignas(1024) uint4 space[40960 / 16];
  for (int i = threadIdx.x; i < 40960 / 16; i += 128) space[i] = image[i];
  {number} sum[{count}];
  for (int i = 0; i < {count}; ++i) sum[i] = d[threadIdx.x * {count} + i];
  const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(space));
  of_a += base >> 4, of_b += base >> 4;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile(
      "{{\\n.reg .pred adds;\\nsetp.ne.s32 adds, %{at + 2}, 0;\\n"
      "{opcode} {{{d}}}, {operand_a}, %{at}, %{at + 1}, {one.selector}, adds{constants};\\n}}"
      : {sums} : {a}, "l"(of_b), "r"(metadata[threadIdx.x]), "r"(adds) : "memory");
  asm volatile("wgmma.commit_group.sync.aligned;\\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < {count}; ++i) d[threadIdx.x * {count} + i] = sum[i];
}}"""


def run(
    one: Product, kept: np.ndarray, b: np.ndarray, words: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """D as each thread's numbers; all arrays hold numbers of their types."""
    image = np.full(40960, 0xEE, np.uint8)
    of_a = place(kept, image, 0, one.mode_a, one.transposed_a, 32 * one.slices)
    of_b = place(b, image, 8192, one.mode_b, one.transposed_b, 64 * one.slices)
    number = np.float32 if one.d == "f32" else np.uint32
    d = kw.asarray(fragments_of_d(start).view(number))
    arguments = image.view(np.uint32), fragments_of_a(kept), words
    multiply = kw.kernel(source_of(one))
    multiply[1, 128](*map(kw.asarray, arguments), d, of_a, of_b, int(one.adds))
    return d.numpy().view(NUMBERS[one.d])


def check(one: Product, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = whole_numbers(rng, one.a, (64, one.k))
    b = whole_numbers(rng, one.b, (one.n, one.k))
    start = rng.integers(-16, 17, (64, one.n))
    if one.d == "s32":
        start = rng.integers(-(2**31), 2**31, (64, one.n))
    if one.satfinite:  # every product moves a sum further to its limit: where it is cut is the same
        a = np.abs(a) % 128
        falls = (np.arange(one.n) % 2 == 1) & (one.b == "s8")
        b = np.where(falls[:, None], -1, 1) * (np.abs(b) % 128)
        start = np.where(falls, -1, 1) * rng.integers(2**31 - 2**19, 2**31 - 1, (64, one.n))
    kept, bits = sparse(rng, a, one.bytes_of_a)
    expected = a.astype(np.int64) @ b.T.astype(np.int64) * one.sign_a * one.sign_b
    expected += start if one.adds else 0
    if one.satfinite:
        expected = np.clip(expected, -(2**31), 2**31 - 1)
    words = metadata(rng, bits, one.bytes_of_a, one.selector)
    numbers = NUMBERS[one.a], NUMBERS[one.b], NUMBERS[one.d]
    # An int64 goes to s32 as it wraps there.
    got = run(one, kept.astype(numbers[0]), b.astype(numbers[1]), words, start.astype(numbers[2]))
    np.testing.assert_array_equal(
        got, fragments_of_d(expected.astype(numbers[2])), err_msg=str(one), strict=True
    )


def products(d: str, a: str, b: str) -> list[Product]:
    """Forms of one combination of types: widths, selectors, sources of A, swizzles, signs."""
    size = np.dtype(NUMBERS[a]).itemsize
    integers = d == "s32"
    found = []
    for selector in (0,) if size == 1 else (0, 1):
        for registers in (False, True):
            common = {"selector": selector, "registers": registers}
            found += [
                Product(d, a, b, 8, mode_a=0, mode_b=0, **common),
                Product(d, a, b, 24, mode_a=2, mode_b=2, adds=False, **common),
                Product(d, a, b, 64, slices=1 - registers, **common),
                Product(d, a, b, 256, mode_a=3, **common),
            ]
            if integers:
                found.append(Product(d, a, b, 32, satfinite=True, **common))
            else:
                signs = {"sign_a": -1, "sign_b": 1 - 2 * selector}
                found.append(Product(d, a, b, 16, **signs, **common))
    return found


def transposes(a: str) -> list[Product]:
    """A or B with rows next to each other, in every swizzle with room for them."""
    return [
        Product(
            "f32",
            a,
            a,
            n,
            selector=mode % 2,
            mode_a=mode if of_a else 1,
            mode_b=mode if of_b else 1,
            transposed_a=of_a,
            transposed_b=of_b,
        )
        for mode, n in enumerate((40, 128, 64, 48))
        for of_a, of_b in ((True, False), (False, True), (True, True))
    ]


def check_infinities(d: str, a: str) -> None:
    """Elements without an index take no part, not even an infinity."""
    one = Product(d, a, a, 8, registers=True, mode_b=0)
    number = NUMBERS[a]
    width = 2 if one.bytes_of_a == 4 else 4
    b = np.ones((8, one.k), number)
    b.reshape(8, -1, width)[..., width // 2 :] = np.inf
    kept, start = np.ones((64, one.k // 2), number), np.ones((64, 8), NUMBERS[d])
    for word, expected in ((0x44444444, 1 + one.k // 2), (0xEEEEEEEE, np.inf)):
        got = run(one, kept, b, np.full(128, word, np.uint32), start)
        np.testing.assert_array_equal(got, np.full((128, 4), expected, NUMBERS[d]), str(one))
