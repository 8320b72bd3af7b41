"""Instances of LSTM and GRU, for the compile gate."""

from __future__ import annotations

RECURRENT = {
    f"recurrent{way}.cu": [
        f"recurrence<{cell}{part}<{dtype}>, {rows}, {spread}>"
        for cell in ("Lstm", "Gru")
        for dtype, rows, spread in (
            ("Float16", 4, "kInCluster"),
            ("BFloat16", 1, "kStepByStep"),
            ("BFloat16", 4, "kInGrid"),
            ("Float32", 1, "kInCluster"),
            ("Float32", 4, "kStepByStep"),
            ("Float64", 4, "kInCluster"),
            ("Float64", 1, "kInGrid"),
        )
    ]
    for way, part in (("", ""), ("_backward", "Backward"))
}
