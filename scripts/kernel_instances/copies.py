"""Instances of the kernels that copy without a change of type, for the compile gate."""

from __future__ import annotations

from kernel_instances.tables import tiles

INDICES = ["unsigned int", "unsigned long long"]
UNITS = ["unsigned char", "unsigned short", "unsigned int", "unsigned long long", "Unit16"]
# By the unit: the size of a tile, and the most units of a pack.
TRANSPOSE_TILES = [
    tuple(map(int, tile.split(", ")))
    for tile in tiles("copy/tiled_transpose.cpp", "kTransposeTiles")
]
COPIES = {
    "copy.cu": [
        f"strided_copy<{unit}, {index}, {units}>"
        for unit in UNITS
        for index, units in zip(INDICES, (4, 8), strict=True)
    ],
    "copy_lines.cu": [f"copy_lines<{unit}, 4>" for unit in UNITS[:4]],
    "tiled_transpose.cu": [
        f"tiled_transpose<{unit}, {tile}, {pack}>"
        for unit, (tile, most) in zip(UNITS, TRANSPOSE_TILES, strict=True)
        for pack in (8, 4, 2, 1)
        if pack <= most
    ],
}
