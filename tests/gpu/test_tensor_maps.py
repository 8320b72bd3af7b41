"""Tiled tensor maps on a GPU and on a simulated device of compute capability 9.0.

One program runs on both and prints a line for each random map: the bytes of the descriptor, or what
the driver said. The lines must be equal. im2col maps are left out, as drivers refuse some of them
for reasons that are not known; copies run in test_wgmma.py and in example 08.
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


def words(random, floating):
    return {
        "swizzle": SWIZZLES[random.integers(4)],
        "l2_promotion": PROMOTIONS[random.integers(4)],
        "oob_fill": FILLS[random.integers(2)] if floating else "none",
    }


def random_map(random):
    """A descriptor in hexadecimal, or the name of the driver's error. Nothing when a rule is broken
    before the driver is asked."""
    which = random.integers(len(DTYPES))
    rank = int(random.integers(1, 6))
    shape = random.integers(1, 5000, rank).tolist()
    strides = (32 * random.integers(1, 1 << 30, rank)).tolist()
    strides[-1] = SIZES[which]
    row = 16 // SIZES[which] * int(random.integers(1, 9))
    steps = [*random.integers(1, 9, rank - 1).tolist(), 1]
    options = words(random, which >= 6)
    if rank >= 3 and random.integers(4) == 0:
        options["interleave"] = ["16B", "32B"][random.integers(2)]
    pointer = kw.Pointer(32 * int(random.integers(1, 1 << 41)), DTYPES[which])
    common = dict(shape=shape, strides=strides, element_strides=steps, **options)
    box = [*random.integers(1, 257, rank - 1).tolist(), row]
    try:
        return bytes(kw.TensorMap(pointer, box, **common)).hex()
    except kw.InvalidArgument:
        return None
    except kw.DriverError as error:
        return error.name


def program():
    random = np.random.default_rng(2026)
    for number in range(400):
        print(f"{number}: {random_map(random)}")


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


def test_both_devices_print_the_same(both):
    assert sum(not gpu.endswith("None") for gpu, _ in both) > 50
    different = [f"GPU {gpu[:300]}\nsim {sim[:300]}" for gpu, sim in both if gpu != sim]
    assert not different, f"{len(different)} of {len(both)} differ:\n" + "\n".join(different[:5])


if __name__ == "__main__":
    program()
