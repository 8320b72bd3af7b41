"""The kernels of tune_session.py with their spaces, sizes and arguments. It imports only NumPy, so
that an interpreter with Kernel Tuner but without Kernwright can use it."""

from __future__ import annotations

import dataclasses
import pathlib
import random

import numpy as np

KERNELS = pathlib.Path(__file__).with_name("tune_kernels")
STANDARD = "c++17"  # of C++, for both tuners


@dataclasses.dataclass(frozen=True)
class Subject:
    """`divisors` and `block` are expressions over the parameters."""

    name: str
    parameters: dict
    restrictions: list
    problem: dict
    sizes: tuple  # names of `problem`, one a dimension of the grid
    divisors: tuple
    block: tuple
    shapes: list  # of the array arguments; the kernel writes the first
    repeats: str  # the larger cost of a session: "compile" or "measure"

    @property
    def grid(self):
        pairs = zip(self.sizes, self.divisors, strict=True)
        return tuple(f"-(-{size} // ({divisor}))" for size, divisor in pairs)

    @property
    def source(self):
        return (KERNELS / f"{self.name}.cu").read_text()

    def arguments(self):
        draw = np.random.default_rng(0)
        arrays = [draw.random(shape, np.float32) for shape in self.shapes]
        arrays[0][:] = 0
        return [*arrays, *(np.int32(value) for value in self.problem.values())]

    def configurations(self, count, seed=0):
        """This number of random valid ones, the same each time; all if there are fewer."""
        draw = random.Random(seed)
        names = list(self.parameters)
        conditions = [compile(text, text, "eval") for text in self.restrictions]
        found, tries = {}, 0
        while len(found) < count and tries < 200000:
            tries += 1
            config = {name: draw.choice(self.parameters[name]) for name in names}
            if all(eval(condition, {}, config) for condition in conditions):
                found.setdefault(tuple(config.values()), config)
        return list(found.values())


def convolution(width=4096, height=4096, window=15):
    return Subject(
        "convolution",
        {
            "block_size_x": list(range(16, 257, 16)), "block_size_y": [1, 2, 4, 8, 16],
            "tile_size_x": [1, 2, 3, 4], "tile_size_y": [1, 2, 3, 4], "read_only": [0, 1],
            "use_padding": [0, 1], "use_shmem": [0, 1], "filter_height": [window],
            "filter_width": [window],
        },
        [
            "use_padding == 0 or block_size_x % 32 != 0",
            "32 <= block_size_x * block_size_y <= 1024",
            "use_padding == 0 or use_shmem != 0",
            "use_shmem == 0 or (block_size_x * tile_size_x + filter_width) * "
            "(block_size_y * tile_size_y + filter_height - 1) < 12 * 1024",
        ],
        {"width": width, "height": height},
        ("width", "height"),
        ("block_size_x * tile_size_x", "block_size_y * tile_size_y"),
        ("block_size_x", "block_size_y"),
        [height * width, (height + window - 1) * (width + window - 1), window * window],
        "compile",
    )  # fmt: skip


def gemm(size=4096):
    return Subject(
        "gemm",
        {
            "MWG": [16, 32, 64, 128], "NWG": [16, 32, 64, 128], "KWG": [16, 32],
            "MDIMC": [8, 16, 32], "NDIMC": [8, 16, 32], "KWI": [2], "VWM": [1, 2, 4, 8],
            "VWN": [1, 2, 4, 8], "STRM": [0, 1], "STRN": [0, 1], "SA": [0, 1], "SB": [0, 1],
        },
        [
            "MWG % (MDIMC * VWM) == 0", "NWG % (NDIMC * VWN) == 0", "32 <= MDIMC * NDIMC <= 1024",
            "MWG // MDIMC * (NWG // NDIMC) <= 128",
        ],
        {"m": size, "n": size, "k": size},
        ("m", "n"),
        ("MWG", "NWG"),
        ("MDIMC", "NDIMC"),
        [size * size] * 3,
        "measure",
    )  # fmt: skip


def hotspot(width=8192, height=8192):
    return Subject(
        "hotspot",
        {
            "block_size_x": [16, 32, 64, 128, 256], "block_size_y": [1, 2, 4, 8, 16],
            "tile_size_x": [1, 2, 3, 4, 6], "tile_size_y": [1, 2, 3, 4, 6],
            "temporal_tiling_factor": [1, 2, 4, 8], "loop_unroll_factor_t": [1, 2, 4],
            "sh_power": [0, 1],
        },
        [
            "32 <= block_size_x * block_size_y <= 1024",
            "temporal_tiling_factor % loop_unroll_factor_t == 0",
            "(block_size_x * tile_size_x + temporal_tiling_factor * 2) * (block_size_y * "
            "tile_size_y + temporal_tiling_factor * 2) * (2 + sh_power) * 4 <= 49152",
        ],
        {"width": width, "height": height},
        ("width", "height"),
        ("block_size_x * tile_size_x", "block_size_y * tile_size_y"),
        ("block_size_x", "block_size_y"),
        [height * width] * 3,
        "measure",
    )  # fmt: skip


def subject(name, small=False):
    """`small`: sizes for the simulated device."""
    if not small:
        return {"convolution": convolution, "gemm": gemm, "hotspot": hotspot}[name]()
    if name == "convolution":
        return convolution(64, 32, 3)
    return gemm(128) if name == "gemm" else hotspot(64, 32)
