"""Instances of attention kernels with many queries for the compile gate, by source text."""

from __future__ import annotations

from kernel_instances.tables import tiles

# Type; elements of a head, elements of a value, keys, stages of keys, stages of values, warpgroups,
# query slots, what calls have at times (`Uses`); options of the scores.
HOPPER = [
    ("BFloat16", "128, 128, 128, 2, 3, 2, 2, 0", "kPlain"),
    ("BFloat16", "128, 128, 128, 2, 2, 2, 3, 0", "kPlain"),
    ("Float16", "128, 128, 160, 2, 2, 2, 2, 0", "kPlain"),
    ("Float16", "128, 128, 176, 2, 2, 2, 1, 0", "kPlain"),
    ("BFloat16", "128, 128, 128, 2, 3, 1, 3, 1", "kPlain"),
    ("BFloat16", "64, 64, 128, 3, 4, 3, 3, 0", "kPlain"),
    ("Float16", "64, 64, 128, 2, 3, 2, 3, 8", "kPlain"),
    ("Float16", "64, 64, 96, 3, 4, 3, 3, 2", "kCapped"),
    ("Float16", "96, 96, 128, 2, 3, 1, 3, 4", "kCapped"),
    ("BFloat16", "192, 192, 96, 2, 2, 2, 1, 0", "kPlain"),
    ("Float16", "192, 128, 128, 2, 2, 2, 1, 0", "kCapped"),
    ("BFloat16", "256, 256, 80, 2, 2, 2, 1, 0", "kPlain"),
    ("Float16", "256, 256, 64, 2, 3, 1, 2, 15", "kCapped"),
    ("Float16", "64, 64, 96, 3, 4, 3, 1, 162", "kBiased"),
    ("BFloat16", "128, 128, 128, 2, 3, 2, 1, 276", "kBiased"),
    ("Float16", "96, 128, 128, 2, 3, 1, 1, 384", "kBiased"),
    ("BFloat16", "128, 128, 128, 2, 2, 2, 3, 66", "kPlain"),
]
# Each tile of the planner is here, too: its keys, stages of keys and warpgroups.
_LISTED = [tile.split(", ") for _, tile, _ in HOPPER]
HOPPER += [
    ("BFloat16", f"64, 64, {keys}, {stages}, {stages}, {groups}, 1, 0", "kPlain")
    for keys, stages, groups in (
        tile.split(", ") for tile in tiles("attention/hopper_attention.cpp", "kHopperTiles")
    )
    if [keys, stages, groups] not in [[tile[2], tile[3], tile[5]] for tile in _LISTED]
]
# Types of queries, keys and values, whether accumulators are kept; a tile as above; options of the
# scores.
FLOAT8 = [
    ("Float8E4M3, Float8E4M3, Float8E4M3, true", "128, 128, 192, 2, 2, 2, 2, 0", "kPlain"),
    ("Float8E4M3, Float8E4M3, Float8E4M3, false", "128, 128, 192, 2, 2, 2, 2, 0", "kPlain"),
    ("Float8E4M3, Float8E5M2, Float8E5M2, true", "128, 128, 160, 2, 2, 2, 2, 2", "kCapped"),
    ("Float8E5M2, Float8E4M3, Float8E4M3, false", "64, 64, 128, 2, 3, 2, 3, 0", "kPlain"),
    ("Float8E4M3, Float8E4M3, Float8E4M3, true", "64, 96, 192, 2, 3, 1, 2, 1", "kPlain"),
    ("Float8E5M2, Float8E5M2, Float8E4M3, false", "192, 192, 128, 2, 2, 2, 1, 0", "kPlain"),
    ("Float8E4M3, Float8E4M3, Float8E4M3, true", "256, 256, 96, 2, 2, 2, 1, 4", "kPlain"),
]
# Type; elements of a head, elements of a value, queries, whether lengths differ; options of the
# scores.
HOPPER_BACKWARD = [
    ("BFloat16", "128, 128, 64, false", "kPlain"),
    ("Float16", "128, 128, 64, true", "kCapped"),
    ("BFloat16", "64, 64, 128, false", "kPlain"),
    ("Float16", "64, 64, 128, true", "kCapped"),
    ("Float16", "96, 96, 64, false", "kPlain"),
    ("BFloat16", "128, 64, 64, true", "kPlain"),
    ("BFloat16", "128, 128, 64, false", "kBiased"),
    ("Float16", "64, 64, 128, true", "kBiased"),
]
# Of heads above 128: type; elements of a head, elements of a value, whether lengths differ, stages
# of queries, slots of accumulators; options of the scores.
WIDE_BACKWARD = [
    ("BFloat16", "256, 256, false, 2, 2", "kPlain"),
    ("BFloat16", "256, 256, true, 2, 2", "kCapped"),
    ("Float16", "192, 192, false, 2, 4", "kPlain"),
    ("Float16", "192, 128, true, 3, 4", "kPlain"),
    ("Float16", "64, 256, true, 3, 4", "kCapped"),
]
ATTENTION = {
    "attention.cu": [
        *(
            f"attention<{dtype}, {cache}, {dim}, {value}, {tiles}, {tokens}, {packs}, {extras}>"
            for dtype, cache, dim, value, tiles, tokens, packs, extras in (
                ("Float16", "Float16", 64, 64, 2, 64, "true", 0),
                ("BFloat16", "BFloat16", 128, 128, 2, 64, "true", 0),
                ("BFloat16", "BFloat16", 96, 96, 1, 64, "false", 1),
                ("Float16", "Float16", 64, 64, 1, 64, "true", 2),
                ("BFloat16", "BFloat16", 192, 128, 1, 32, "true", 0),
                ("BFloat16", "BFloat16", 256, 256, 1, 32, "true", 1),
                ("BFloat16", "Float8E4M3", 128, 128, 2, 64, "true", 0),
                ("Float16", "Int8", 64, 64, 1, 64, "false", 1),
            )
        ),
        "attention<BFloat16, Int8, 128, 128, 2, 64, true, 0, true>",
    ],
    "hopper_attention.cu": [
        f"hopper_attention<{dtype}, Tile<{tile}>, {extras}>" for dtype, tile, extras in HOPPER
    ],
    "float8_attention.cu": [
        *(
            f"float8_attention<Form<{dtype}>, ByteTile<{tile}>, {extras}>"
            for dtype, tile, extras in FLOAT8
        ),
        *(f"turn_values<{keys}, {dim}>" for keys, dim in ((192, 128), (128, 64), (96, 256))),
    ],
    "hopper_backward.cu": [
        *(
            f"hopper_backward<{dtype}, Tile<{tile}>, {extras}>"
            for dtype, tile, extras in HOPPER_BACKWARD
        ),
        *(f"finish_queries<{dtype}, Tile<{tile}>>" for dtype, tile, _ in HOPPER_BACKWARD),
        *("sum_rows<BFloat16, 8>", "sum_rows<Float16, 16>"),
    ],
    "wide_backward.cu": [
        *(
            f"wide_backward<{dtype}, WideTile<{tile}>, {extras}>"
            for dtype, tile, extras in WIDE_BACKWARD
        ),
        *(f"finish_queries<{dtype}, WideTile<{tile}>>" for dtype, tile, _ in WIDE_BACKWARD),
        "sum_rows<BFloat16, 32>",
    ],
}
