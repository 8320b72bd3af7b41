"""Instances of LSTM and GRU, for the compile gate."""

from __future__ import annotations

RECURRENT = {
    f"recurrent{way}.cu": [
        f"recurrence<{cell}{part}<{of}>, {rows}, {resident}>"
        for cell in ("Lstm", "Gru")
        for of, rows, resident in (
            ("Float16", 4, "true"),
            ("BFloat16", 1, "false"),
            ("Float32", 1, "true"),
            ("Float32", 4, "false"),
            ("Float64", 4, "true"),
        )
    ]
    for way, part in (("", ""), ("_backward", "Backward"))
}
