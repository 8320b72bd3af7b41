"""Instances of the kernels that sort, for the compile gate."""

BITS = ("UInt8", "UInt16", "UInt32", "UInt64")
FLOATS = ("false", "true")
# Threads, items of a thread, whether indices are moved too, whether counts have 64 bits.
MOVES = ("384, 20, false, false", "256, 8, true, false", "512, 12, true, true")
# The type of a mask's elements, and the elements of a pack.
MASKS = (("UInt8", 16), ("UInt16", 8), ("UInt32", 4), ("UInt64", 2), ("Complex128", 1))
ORDERING = {
    "compaction.cu": [
        *(f"count_set<{mask}, {pack}>" for mask, pack in MASKS),
        *(f"write_set<{mask}, {pack}, {unit}>"
          for (mask, pack), unit in zip(MASKS, (*BITS, "Complex128"), strict=True)),
        *(f"gather_rows<{unit}>" for unit in (*BITS, "Complex128")),
    ],
    "histogram.cu": [
        *(f"find_extremes<{dtype}>" for dtype in BITS),
        *(f"count_bins<{dtype}, ValueBins>" for dtype in ("Bool", "Int8", "UInt64")),
        *(f"{kernel}<{dtype}, EdgeBins>"
          for dtype in ("Int32", "BFloat16", "Float64") for kernel in ("count_bins", "write_bins")),
        *(f"sum_weights<{dtype}>" for dtype in ("Int64", "Float32", "Float64")),
        *(f"scale_to_density<{dtype}>" for dtype in ("Int64", "Float64")),
    ],
    "radix_sort.cu": [
        *(
            f"count_digits<{dtype}, {floats}, {wide}>"
            for dtype in BITS
            for floats in FLOATS
            for wide in ("false", "true")
        ),
        *(f"move_digits<{dtype}, {floats}, {move}>"
          for dtype in BITS for floats in FLOATS for move in MOVES),
    ],
    "row_sort.cu": [
        *(f"sort_short_rows<{dtype}>" for dtype in BITS),
        *(f"sort_long_rows<{dtype}, {items}>" for dtype in BITS for items in (8, 16)),
    ],
    "topk.cu": [
        *(f"topk_tiles<{dtype}>" for dtype in BITS),
        *(f"topk_segments<{dtype}, {pack}, {each // pack}>"
          for dtype, each, packs in zip(BITS, (8, 8, 8, 2), (8, 8, 4, 2), strict=True)
          for pack in (1, packs)),
    ],
    "search.cu": [
        *(f"search_sorted<{dtype}, {right}>" for dtype in BITS for right in ("false", "true")),
        *(f"find_members<{dtype}>" for dtype in BITS),
    ],
    "unique.cu": [
        *(f"{part}_groups<{dtype}>" for part in ("count", "write")
          for dtype in (*BITS, "Pair<UInt32>", "Pair<UInt64>")),
        "measure_groups",
    ],
}  # fmt: skip
