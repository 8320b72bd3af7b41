"""Tensor maps and their copies on a GPU and on a simulated device of compute capability 9.0.

One program runs on both and prints a line for each random map: the bytes of the descriptor, or what
the driver said, and what a copy brought. The lines must be equal.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import kernwright as kw

DTYPES = ["uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"]
SIZES = [np.dtype(name).itemsize for name in DTYPES]
SWIZZLES = ["none", "32B", "64B", "128B"]
PROMOTIONS = ["none", "64B", "128B", "256B"]
FILLS = ["none", "nan_request_zero_fma"]

COPY = r"""
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
extern __shared__ __align__(1024) unsigned char tile[];  // ROOM bytes, then the barrier
__global__ void copy(const __grid_constant__ CUtensorMap map, unsigned char* out, int bytes,
                     int c0, int c1, int c2, int c3, unsigned short o1, unsigned short o2) {
    const unsigned to = (unsigned)__cvta_generic_to_shared(tile), bar = to + ROOM;
    for (int i = threadIdx.x; i < ROOM; i += blockDim.x) tile[i] = 0xcd;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                     "fence.mbarrier_init.release.cluster;" :: "r"(bar) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     :: "r"(bar), "r"(bytes) : "memory");
#if IM2COL
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx"
                     "::bytes [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};"
                     :: "r"(to), "l"(&map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3),
                        "h"(o1), "h"(o2) : "memory");
#else
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx"
                     "::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
                     :: "r"(to), "l"(&map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                     : "memory");
#endif
    }
    __syncthreads();
    asm volatile("{\n.reg .pred done;\nAGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
                 "@!done bra AGAIN;\n}" :: "r"(bar) : "memory");
    for (int i = threadIdx.x; i < ROOM; i += blockDim.x) out[i] = tile[i];
}
"""
ROOM = 32768


def words(random, floating):
    """Arguments for both kinds of map."""
    return {
        "swizzle": SWIZZLES[random.integers(4)],
        "l2_promotion": PROMOTIONS[random.integers(4)],
        "oob_fill": FILLS[random.integers(2)] if floating else "none",
    }


def random_map(random, is_im2col):
    """A descriptor in hexadecimal, or the name of the driver's error. Nothing when a rule is broken
    before the driver is asked."""
    which = random.integers(len(DTYPES))
    rank = int(random.integers(3 if is_im2col else 1, 6))
    shape = random.integers(1, 5000, rank).tolist()
    strides = (32 * random.integers(1, 1 << 30, rank)).tolist()
    strides[-1] = SIZES[which]
    row = 16 // SIZES[which] * int(random.integers(1, 9))
    steps = [*random.integers(1, 9, rank - 1).tolist(), 1]
    options = words(random, which >= 6)
    channels, box = row, [*random.integers(1, 257, rank - 1).tolist(), row]
    if rank >= 3 and random.integers(4) == 0:
        slice_bytes = int(16 << random.integers(2))
        options["interleave"] = f"{slice_bytes}B"
        channels = slice_bytes // SIZES[which]
        strides[-1] = slice_bytes
        shape, strides, steps = [*shape, channels], [*strides, SIZES[which]], [*steps, 1]
        box = [box[0], 1, *box[2:], channels]
    pointer = kw.Pointer(32 * int(random.integers(1, 1 << 41)), DTYPES[which])
    common = dict(shape=shape, strides=strides, element_strides=steps, **options)
    limit = {3: 32768, 4: 128, 5: 16}.get(rank, 1)
    lower, upper = random.integers(-limit, limit, (2, max(rank - 2, 0))).tolist()
    pixels = int(random.integers(1, 1025))
    try:
        if is_im2col:
            made = kw.TensorMap.im2col(pointer, lower, upper, channels, pixels, **common)
            return bytes(made).hex()
        return bytes(kw.TensorMap(pointer, box, **common)).hex()
    except kw.InvalidArgument:
        return None
    except kw.DriverError as error:
        return error.name


def bytes_of(kernel, used, coordinates, offsets):
    """Shared memory after one copy."""
    out = kw.empty(ROOM, "uint8")
    kernel[1, 128, None, ROOM + 16](used, out, used.box_bytes, *coordinates, *offsets)
    return out.numpy().tobytes().hex()


def corners(random, extents):
    """Corners of a bounding box with a pixel at least."""
    lower = random.integers(-3, 2, 2).tolist()
    upper = random.integers(-1, 4, 2).tolist()
    for axis, extent in enumerate(extents):
        upper[axis] = max(upper[axis], lower[axis] - (extent - 1))
    return lower, upper


def pixel_of(at, extent, lower, upper, step):
    """A pixel of the bounding box, where an im2col copy has to begin."""
    return lower + step * (abs(at) % ((extent + upper - lower - 1) // step + 1))


def random_copy(random, kernels, is_im2col):
    """A copy of a random map without an interleave."""
    which = random.integers(len(DTYPES))
    swizzle = int(random.integers(4))
    row = (16 << swizzle if swizzle else 16 * int(random.integers(1, 9))) // SIZES[which]
    shape = [*random.integers(1, 8, 3).tolist(), 16 // SIZES[which] * int(random.integers(1, 16))]
    values = random.integers(0, 256, np.prod(shape) * SIZES[which], np.uint8)
    x = kw.asarray(values).numpy().view(DTYPES[which]).reshape(shape)
    x = kw.asarray(x)
    options = {**words(random, which >= 6), "swizzle": SWIZZLES[swizzle]}
    steps = [1, *random.integers(1, 4, 2).tolist(), 1]
    c, w, h, n = (int(v) for v in random.integers(-3, 8, 4))
    c *= 16 // SIZES[which]  # an address that is no multiple of 16 is an illegal instruction
    offsets = [0, 0]
    if is_im2col:
        lower, upper = corners(random, shape[1:3])
        pixels = int(random.integers(1, 65))
        used = kw.TensorMap.im2col(x, lower, upper, row, pixels, element_strides=steps, **options)
        h = pixel_of(h, shape[1], lower[0], upper[0], steps[1])
        w = pixel_of(w, shape[2], lower[1], upper[1], steps[2])
        n = abs(n) % shape[0]
        offsets = random.integers(0, 5, 2).tolist()
    else:
        box = [*random.integers(1, 5, 3).tolist(), row]
        used = kw.TensorMap(x, box, element_strides=steps, **options)
    return bytes_of(kernels[is_im2col], used, (c, w, h, n), offsets)


def random_slices(random, kernels, is_im2col):
    """A copy of a random map with an interleave: of axes N, C/8, H, W, 8."""
    which = random.integers(len(DTYPES))
    is_wide = random.integers(2)
    channels = (16 << is_wide) // SIZES[which]
    shape = [*random.integers(1, 8, 3).tolist(), int(random.integers(1, 16)), channels]
    values = random.integers(0, 256, np.prod(shape) * SIZES[which], np.uint8)
    x = kw.asarray(values.view(DTYPES[which]).reshape(shape))[:, ::2]
    options = {
        **words(random, which >= 6),
        "interleave": ["16B", "32B"][is_wide],
        "swizzle": "32B" if is_wide else SWIZZLES[random.integers(4)],
    }
    steps = [*random.integers(1, 4, 4).tolist(), 1]
    n, c, h, w = (int(v) for v in random.integers(-3, 8, 4))
    offsets = [0, 0]
    if is_im2col:
        lower, upper = corners(random, shape[2:4])
        pixels = int(random.integers(1, 65))
        used = kw.TensorMap.im2col(
            x, lower, upper, channels, pixels, element_strides=steps, **options
        )
        h = pixel_of(h, shape[2], lower[0], upper[0], steps[2])
        w = pixel_of(w, shape[3], lower[1], upper[1], steps[3])
        n = abs(n) % shape[0]
        offsets = random.integers(0, 5, 2).tolist()
    else:
        width = 16 // SIZES[which] * int(random.integers(1, 3))
        box = [int(random.integers(1, 5)), 1, int(random.integers(1, 5)), width, channels]
        used = kw.TensorMap(x, box, element_strides=steps, **options)
    return bytes_of(kernels[is_im2col], used, (w, h, c, n), offsets)


def program():
    random = np.random.default_rng(2026)
    kernels = [kw.kernel(COPY, defines={"IM2COL": flag, "ROOM": ROOM}) for flag in (0, 1)]
    for kind in ("tiled", "im2col"):
        for number in range(400):
            print(f"map {kind} {number}: {random_map(random, kind == 'im2col')}")
        for number in range(60):
            print(f"copy {kind} {number}: {random_copy(random, kernels, kind == 'im2col')}")
            print(f"slices {kind} {number}: {random_slices(random, kernels, kind == 'im2col')}")


def lines_of(device):
    environment = {**os.environ, "KERNWRIGHT_DEVICE": device, "KERNWRIGHT_SIM_CAPABILITY": "9.0"}
    run = subprocess.run(
        [sys.executable, __file__], env=environment, capture_output=True, text=True, timeout=500
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


@pytest.fixture(scope="module")
def both():
    if kw.Device("cuda").compute_capability < (9, 0):
        pytest.skip("tensor maps need a GPU of compute capability 9.0")
    return list(zip(lines_of("cuda"), lines_of("sim"), strict=True))


@pytest.mark.parametrize("what", ["map", "copy", "slices"])
@pytest.mark.parametrize("kind", ["tiled", "im2col"])
def test_both_devices_print_the_same(both, what, kind):
    pairs = [pair for pair in both if pair[0].startswith(f"{what} {kind}")]
    assert sum(not gpu.endswith("None") for gpu, _ in pairs) > 50
    different = [f"GPU {gpu[:300]}\nsim {sim[:300]}" for gpu, sim in pairs if gpu != sim]
    assert not different, f"{len(different)} of {len(pairs)} differ:\n" + "\n".join(different[:5])


if __name__ == "__main__":
    program()
