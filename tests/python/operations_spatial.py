"""Cases of the convolutions, pools, interpolations and shuffles of kw.nn over axes of space."""

from every_operation import Table, s

import kernwright as kw

EXTENTS = {1: (9,), 2: (9, 7), 3: (5, 6, 7)}

pools = Table("pools")
for axes, extents in EXTENTS.items():
    X = s(2, 3, *extents, dtype="float16" if axes == 2 else "float32", layout="gaps")
    SHAPE = (2, 3, *extents)
    HALVED = tuple(extent // 2 for extent in extents)
    SMALL = s(2, 3, *HALVED)
    PLACES = s(2, 3, *HALVED, dtype="int64", low=0, high=1)
    for kind in ("max", "avg"):
        pool = getattr(kw.nn, f"{kind}_pool{axes}d")
        adaptive = getattr(kw.nn, f"adaptive_{kind}_pool{axes}d")
        pools.add(f"nn.{kind}_pool{axes}d", lambda x, f=pool: f(x, 3, 2, 1), X)
        pools.add(f"nn.adaptive_{kind}_pool{axes}d", lambda x, f=adaptive: f(x, 3), X)
    largest, average = (getattr(kw.nn, f"{k}_pool{axes}d_backward") for k in ("max", "avg"))
    adaptive = [getattr(kw.nn, f"adaptive_{k}_pool{axes}d_backward") for k in ("max", "avg")]
    pools.add(
        f"nn.max_pool{axes}d_backward",
        lambda g, i, f=largest, n=SHAPE: f(g, i, n, 2),
        SMALL,
        PLACES,
    )
    pools.add(f"nn.avg_pool{axes}d_backward", lambda g, f=average, n=SHAPE: f(g, n, 2), SMALL)
    pools.add(
        f"nn.adaptive_max_pool{axes}d_backward",
        lambda g, i, f=adaptive[0], n=SHAPE: f(g, i, n),
        *(SMALL, PLACES),
    )
    pools.add(
        f"nn.adaptive_avg_pool{axes}d_backward", lambda g, f=adaptive[1], n=SHAPE: f(g, n), SMALL
    )

pixels = Table("pixels")
IMAGES, LINES = s(2, 4, 9, 7), s(2, 3, 9, dtype="float16", layout="gaps")
pixels.add("nn.pixel_shuffle", lambda x: kw.nn.pixel_shuffle(x, 2), IMAGES)
pixels.add("nn.pixel_unshuffle", lambda x: kw.nn.pixel_unshuffle(x, 2), s(2, 1, 8, 6))
for mode, spec, size in (
    ("nearest", LINES, 20),
    ("linear", LINES, 5),
    ("bilinear", IMAGES, (12, 5)),
    ("bicubic", IMAGES, (5, 12)),
):
    pixels.add(
        "nn.interpolate", lambda x, n=size, m=mode: kw.nn.interpolate(x, n, mode=m), spec, form=mode
    )
for mode, spec, shape, size in (
    ("nearest", s(2, 3, 20), (2, 3, 9), 20),
    ("bicubic", s(2, 4, 5, 12), (2, 4, 9, 7), (5, 12)),
):
    pixels.add(
        "nn.interpolate_backward",
        lambda g, n=shape, z=size, m=mode: kw.nn.interpolate_backward(g, n, z, mode=m),
        *(spec,),
        form=mode,
    )

convolutions = Table("convolutions")
f1, f2, f3 = kw.nn.conv1d_backward, kw.nn.conv2d_backward, kw.nn.conv_transpose1d_backward
WAVES = s(2, 16, 19, layout="gaps")
convolutions.add("nn.conv1d", lambda x, w, b: kw.nn.conv1d(x, w, b, 2, 1), WAVES, s(8, 16, 3), s(8))
convolutions.add(
    "nn.conv1d",
    lambda x, w: kw.nn.conv1d(x, w, padding="same", dilation=2, groups=16),
    *(s(2, 16, 19, dtype="bfloat16"), s(16, 1, 3, dtype="bfloat16")),
    form="depthwise",
)
convolutions.add(
    "nn.conv1d",
    kw.nn.conv1d,
    s(2, 40, 8, dtype="float16"),
    s(8, 40, 1, dtype="float16"),
    form="1x1",
)
convolutions.add(
    "nn.conv2d",
    lambda x, w: kw.nn.conv2d(x, w, None, (1, 2), 1, (2, 1)),
    *(s(2, 16, 9, 7, dtype="float16"), s(8, 16, 3, 3, dtype="float16")),
)
convolutions.add(
    "nn.conv_transpose1d",
    lambda x, w, b: kw.nn.conv_transpose1d(x, w, b, 4, 2),
    *(WAVES, s(16, 6, 8), s(6)),
)
for name, gradient, x, weight, call in (
    ("conv1d", (2, 8, 10), (2, 16, 19), (8, 16, 3), lambda g, x, w: f1(g, x, w, 2, 1)),
    ("conv2d", (2, 8, 7, 5), (2, 16, 9, 7), (8, 16, 3, 3), f2),
    ("conv_transpose1d", (2, 6, 76), (2, 16, 19), (16, 6, 8), lambda g, x, w: f3(g, x, w, 4, 2)),
):
    specs = (s(*shape, dtype="float16") for shape in (gradient, x, weight))
    convolutions.add(f"nn.{name}_backward", call, *specs)

TABLES = (pools, pixels, convolutions)
