"""Instances of optimizer.cu."""

NORM_ORDERS = ["kLargest", "kMagnitudes", "kSquares", "kPowers"]

OPTIMIZERS = [
    *(
        f"optimizer_step<{rule}, {types}, {width}>"
        for rule in (
            *("AdamW<false>", "AdamW<true>", "Adam<false>", "Adam<true>"),
            *("Momentum", "Plain", "Lion", "Decoupled"),
        )
        for types, width in (
            ("Float32, Float32, Float32, false, false", 4),
            ("Float64, Float64, Float64, false, false", 2),
            ("BFloat16, BFloat16, Float32, true, false", 4),
            ("BFloat16, BFloat16, Float32, false, true", 1),
        )
    ),
    *(
        f"chunk_norms<{dtype}, {order}, 4>"
        for dtype in ("Float16", "BFloat16", "Float32")
        for order in NORM_ORDERS
    ),
    *(f"chunk_norms<Float64, {order}, 2>" for order in NORM_ORDERS),
    *(f"finish_norm<{order}>" for order in NORM_ORDERS),
    *(f"scale_tensors<{dtype}, 4>" for dtype in ("Float16", "BFloat16", "Float32")),
    *(f"blend_tensors<Float32, {dtype}, 4>" for dtype in ("Float16", "BFloat16", "Float32")),
    "optimizer_step<Average, Float32, BFloat16, Float32, false, false, 4>",
    "optimizer_step<Direction, Float32, BFloat16, Float32, false, false, 4>",
]
