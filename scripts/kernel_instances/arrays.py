"""Instances for the compile gate: losses, positions, sampling."""

REALS = ["Float16", "BFloat16", "Float32", "Float64", "Float8E4M3"]
ARRAYS = {
    "cross_entropy.cu": [
        *(
            f"cross_entropy<{type}, {id}, {n}, {threads}, {held}, {grad}, {smooth}, {weighted}>"
            for type, n in (("BFloat16", 8), ("Float32", 4), ("Float64", 1))
            for id, threads, held, grad, smooth, weighted in [
                ("Int64", 512, 12, "true", "false", "false"),
                ("Int64", 512, 8, "true", "true", "false"),
                ("Int32", 32, 4, "true", "false", "false"),
                ("Int64", 512, 4, "false", "false", "false"),
                ("Int64", 512, 12, "true", "true", "true"),
                ("Int32", 128, 4, "false", "false", "true"),
            ]
        ),
        *(
            f"streamed_entropy<{type}, {id}, {n}, {threads}, 3, {slots}, {smooth}, {weighted}>"
            for type, n in (("BFloat16", 8), ("Float16", 8), ("Float32", 4))
            for id, threads, slots, smooth, weighted in [
                ("Int64", 1024, 13, "false", "false"),
                ("Int32", 512, 2, "true", "true"),
            ]
        ),
        *("target_scale<Int32, Float32>", "target_scale<Int64, Float64>"),
        *("weighted_scale<Int32, Float32>", "weighted_scale<Int64, Float64>"),
        *("total<Float32>", "total<Float64>"),
    ],
    "rope_tables.cu": [
        *("rope_frequencies", "rope_tables", "alibi_slopes"),
        *(f"alibi_bias<{real}>" for real in REALS),
    ],
    "pope.cu": [
        name
        for real in REALS
        for name in (
            f"pope<{real}, Int64, false>",
            f"pope<{real}, Int32, true>",
            f"pope_shifts<{real}, Int64>",
            f"scale_tokens<{real}, Int64, 2>",
        )
    ],
    "nibbles.cu": [
        *(f"pack_nibbles<{width}>" for width in (1, 8)),
        *(f"unpack_nibbles<{s}, {width}>" for s in ("true", "false") for width in (1, 8)),
    ],
    "page_copies.cu": ["copy_pages"],
    "step_state.cu": [
        "apply_changes",
        "begin_step",
        "end_step",
        "apply_penalties",
        "apply_masks",
        "draft_ngram",
        "feed_draft",
        "end_catch_up",
    ],
    "sampling.cu": [
        f"{kernel}<{dtype}, {packed}>"
        for kernel in ("sample_rows", "find_group_maxima")
        for dtype in ("Float16", "BFloat16", "Float32")
        for packed in ("true", "false")
    ],
}
