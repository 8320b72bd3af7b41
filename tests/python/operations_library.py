"""Cases of indexing, movement, reductions, scans, sorting, products, transforms, random numbers
and fused kernels."""

import functools
import math

from every_operation import HOST, KERNELS, VIEW, Table, s

import kernwright as kw

ROWS = s(40, 33)
TURNED = s(40, 33, layout="turned")
INDICES = s(20, dtype="int64", low=0, high=30)
LONG = s(2, 70000)

indexing = Table("indexing")
indexing.add("take", lambda x, i: kw.take(x, i, axis=1), ROWS, INDICES)
indexing.add("take", kw.take, TURNED, s(5, 7, dtype="int32", low=-9, high=99))
indexing.add(
    "take", lambda x, i: kw.take(x, i, axis=0, mode="raise"), ROWS, INDICES, form="raise", kind=HOST
)
indexing.add("take_along_axis", kw.take_along_axis, ROWS, s(40, 5, dtype="int64", low=0, high=30))
indexing.add(
    "put_along_axis",
    lambda x, i, v: kw.put_along_axis(x, i, v, 1),
    ROWS,
    s(40, 9, dtype="int64", low=0, high=30),
    s(40, 9),
)
indexing.add(
    "gather", lambda x, i: kw.gather(x, 0, i), TURNED, s(5, 33, dtype="int32", low=0, high=40)
)
for add in (None, "add"):
    indexing.add(
        "scatter",
        lambda x, i, v, add=add: kw.scatter(x, 0, i, v, reduce=add),
        ROWS,
        s(5, 33, dtype="int64", low=0, high=40),
        s(5, 33),
    )
    indexing.add(
        "put", lambda x, i, v, add=add: kw.put(x, i, v, 0, reduce=add), ROWS, INDICES, s(20, 33)
    )

movement = Table("movement")
movement.add("broadcast_arrays", lambda x, y: kw.broadcast_arrays(x, y), ROWS, s(33), kind=VIEW)
movement.add("broadcast_to", lambda x: kw.broadcast_to(x, (3, 40, 33)), ROWS, kind=VIEW)
movement.add("concat", lambda x, y: kw.concat([x, y], axis=1), ROWS, s(40, 7, dtype="float16"))
movement.add("concat", lambda x, y: kw.concat([x, y]), ROWS, TURNED)
movement.add("cat", lambda x, y: kw.cat([x, y], 1), ROWS, s(40, 7, dtype="float16"))
movement.add("stack", lambda x, y: kw.stack([x, y], axis=1), ROWS, TURNED)
movement.add("expand_dims", lambda x: kw.expand_dims(x, axis=1), ROWS, kind=VIEW)
movement.add("flip", lambda x: kw.flip(x, axis=0), ROWS, kind=VIEW)
movement.add("matrix_transpose", kw.matrix_transpose, ROWS, kind=VIEW)
movement.add("moveaxis", lambda x: kw.moveaxis(x, 0, 2), s(3, 5, 7), kind=VIEW)
movement.add("permute_dims", lambda x: kw.permute_dims(x, (2, 0, 1)), s(3, 5, 7), kind=VIEW)
movement.add("permute_dims", lambda x: kw.permute_dims(x, (2, 0, 1)).copy(), s(9, 40, 33))
movement.add("reshape", lambda x: kw.reshape(x, (-1,)), ROWS, kind=VIEW)
movement.add("reshape", lambda x: kw.reshape(x, (-1,)), TURNED)
movement.add("squeeze", lambda x: kw.squeeze(x, axis=0), s(1, 9), kind=VIEW)
movement.add("swapaxes", lambda x: kw.swapaxes(x, 0, 1), ROWS, kind=VIEW)
movement.add("split", lambda x: kw.split(x, 4), ROWS, kind=VIEW)
movement.add("unstack", lambda x: kw.unstack(x), s(4, 9), kind=VIEW)
movement.add("roll", lambda x: kw.roll(x, (3, -2), axis=(0, 1)), ROWS)
for name in ("repeat", "repeat_interleave"):
    call = getattr(kw, name)
    counts = s(40, dtype="int64", low=0, high=4)
    movement.add(name, lambda x, f=call: f(x, 3, axis=0), ROWS)
    movement.add(name, lambda x, n, f=call: f(x, n, axis=0), ROWS, counts, form="sizes", kind=HOST)
movement.add("tile", lambda x: kw.tile(x, (2, 3)), ROWS)
movement.add("pad", lambda x: kw.pad(x, ((1, 2), (3, 0)), constant_values=1.5), ROWS)
for mode in ("edge", "reflect", "wrap"):
    movement.add("pad", lambda x, mode=mode: kw.pad(x, 3, mode), ROWS, form=mode)

reductions = Table("reductions")
for name in ("sum", "prod", "mean", "var", "std", "max", "min", "argmax", "argmin", "all", "any",
             "count_nonzero", "logsumexp", "nansum", "nanprod", "nanmean", "nanmax", "nanmin",
             "nanvar", "nanstd"):  # fmt: skip
    call = getattr(kw, name)
    # Short rows, columns, and rows shared by several blocks; the rest below.
    reductions.add(name, lambda x, f=call: f(x, axis=1), ROWS)
    reductions.add(name, lambda x, f=call: f(x, axis=0), s(99, 65, high=1))
    reductions.add(name, call, s(70000))
for name in ("sum", "max", "argmax", "var", "any", "logsumexp"):
    call = getattr(kw, name)
    reductions.add(name, lambda x, f=call: f(x, axis=1), s(40, 33, dtype="float64"))
    reductions.add(name, lambda x, f=call: f(x, axis=-1), s(2, 9000, dtype="float16"))
    reductions.add(name, lambda x, f=call: f(x, axis=1, keepdims=True), s(5, 400, layout="gaps"))
for name in ("sum", "max", "all"):
    whole = s(3, 999, dtype="int32", low=0, high=9)
    reductions.add(name, lambda x, n=name: getattr(kw, n)(x, axis=1), whole, form="int")
reductions.add("linalg.vector_norm", lambda x: kw.linalg.vector_norm(x, axis=1), ROWS)
reductions.add("linalg.vector_norm", lambda x: kw.linalg.vector_norm(x, ord=math.inf), TURNED)
reductions.add("linalg.matrix_norm", lambda x: kw.linalg.matrix_norm(x), s(2, 20, 30))
reductions.add("linalg.matrix_norm", lambda x: kw.linalg.matrix_norm(x, ord=1), s(2, 20, 30))
reductions.add("linalg.trace", kw.linalg.trace, s(3, 20, 30))
reductions.add("cumsum", kw.cumsum, ROWS)
reductions.add("cumprod", lambda x: kw.cumprod(x, axis=1), ROWS)
for name in ("cumulative_max", "cumulative_min", "cumulative_prod", "cumulative_sum"):
    call = getattr(kw, name)
    reductions.add(name, lambda x, f=call: f(x, axis=1), ROWS)
    reductions.add(name, lambda x, f=call: f(x, axis=0), s(99, 65, dtype="float16"))
    reductions.add(name, lambda x, f=call: f(x, axis=1), LONG)
reductions.add("diff", lambda x: kw.diff(x, n=2), ROWS)

sorting = Table("sorting")
for name in ("sort", "argsort"):
    call = getattr(kw, name)
    sorting.add(name, call, s(9, 300), form="short")
    sorting.add(name, lambda x, f=call: f(x, axis=0, descending=True), s(30, 9, dtype="uint8"))
    sorting.add(name, call, s(2, 3000, dtype="int64", low=-9, high=999), form="block")
    sorting.add(name, call, s(20000), form="long")
sorting.add("topk", lambda x: kw.topk(x, 5), s(9, 300))
sorting.add("topk", lambda x: kw.topk(x, 50, largest=False), s(2, 20000), form="long")
sorting.add("topk", lambda x: kw.topk(x, 1100), s(2, 3000, dtype="float16"), form="many")
RISING = lambda x: kw.cumulative_sum(kw.abs(x))  # noqa: E731
sorting.add("searchsorted", lambda x, y: kw.searchsorted(RISING(x), y), s(200), s(7, 9, high=99))
sorting.add("searchsorted", lambda x: kw.searchsorted(RISING(x), 3.0), s(200), form="number")
sorting.add("isin", kw.isin, s(40, 9, dtype="int32", high=9), s(50, dtype="int32", high=9))
sorting.add("isin", lambda x: kw.isin(x, 1), s(300, dtype="int32", high=9), form="number")
for name in ("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"):
    sorting.add(name, getattr(kw, name), s(300, dtype="int32", low=0, high=9), kind=HOST)
for name in ("nonzero", "argwhere", "flatnonzero"):
    sorting.add(name, getattr(kw, name), s(40, 33, dtype="int8", low=0, high=3), kind=HOST)
sorting.add("bincount", kw.bincount, s(300, dtype="int32", low=0, high=9), kind=HOST)
sorting.add("histogram", kw.histogram, s(300), kind=HOST)
sorting.add("histogram", lambda x, e: kw.histogram(x, RISING(e)), s(3000), s(9), form="edges")

products = Table("products")
for name in ("matmul", "linalg.matmul"):
    call = kw.matmul if name == "matmul" else kw.linalg.matmul
    products.add(name, call, s(40, 33), s(33, 50))
products.add("matmul", kw.matmul, s(3, 1, 20, 30, dtype="float16"), s(5, 30, 9, dtype="float16"))
products.add("matmul", kw.matmul, s(30, 20, layout="turned"), s(20))
products.add("matmul", kw.matmul, s(20, 9, dtype="complex64"), s(9, 5, dtype="complex64"))
products.add("matmul", kw.matmul, s(20, 9, dtype="int32"), s(9, 5, dtype="int32"))
products.add("einsum", lambda x, y: kw.einsum("bij,bkj->bik", x, y), s(3, 9, 20), s(3, 7, 20))
products.add("einsum", lambda x: kw.einsum("ij->ji", x), s(9, 20), form="view", kind=VIEW)
products.add("linalg.cross", kw.linalg.cross, s(40, 3), s(3))
products.add("linalg.diagonal", kw.linalg.diagonal, s(3, 9, 8), kind=VIEW)
products.add("linalg.matrix_power", lambda x: kw.linalg.matrix_power(x, 5), s(9, 9))
products.add("linalg.matrix_transpose", kw.linalg.matrix_transpose, ROWS, kind=VIEW)


def definite(x):
    """A positive definite matrix."""
    square = kw.matmul(x, kw.matrix_transpose(x))
    return square + 8 * kw.eye(square.shape[-1], dtype=square.dtype)


SQUARE, TALL = s(3, 9, 9), s(2, 12, 7, dtype="float64")
for name in ("det", "inv", "slogdet", "matrix_rank", "cond", "eigvals", "svdvals"):
    products.add(f"linalg.{name}", getattr(kw.linalg, name), SQUARE)
for name in ("cholesky", "eigh", "eigvalsh"):
    call = getattr(kw.linalg, name)
    products.add(f"linalg.{name}", lambda x, call=call: call(definite(x)), SQUARE)
for name in ("qr", "svd", "pinv"):
    products.add(f"linalg.{name}", getattr(kw.linalg, name), TALL)
products.add("linalg.eig", kw.linalg.eig, s(7, 7, dtype="complex64"))
products.add("linalg.solve", kw.linalg.solve, SQUARE, s(3, 9, 4))
products.add("linalg.lstsq", kw.linalg.lstsq, s(12, 7), s(12, 3))
products.add("matmul", kw.matmul, *2 * [s(128, 128, dtype="bfloat16")], form="tiles")
products.add("matmul", kw.matmul, *2 * [s(2, 130, 130, dtype="float16")], form="batch tiles")
products.add("matmul", kw.matmul, *2 * [s(2, 66, 66, dtype="float64")], form="wide")
products.add("matmul", kw.matmul, s(2, 256), s(256, 128, layout="turned"), form="few rows")
products.add("linalg.outer", kw.linalg.outer, s(30), s(40))
for name in ("tensordot", "linalg.tensordot"):
    call = kw.tensordot if name == "tensordot" else kw.linalg.tensordot
    products.add(name, lambda x, y, f=call: f(x, y, axes=1), s(4, 5, 20), s(20, 9))
for name in ("vecdot", "linalg.vecdot"):
    call = kw.vecdot if name == "vecdot" else kw.linalg.vecdot
    products.add(name, call, ROWS, s(33))

COMPLEX = s(3, 24, dtype="complex64")
for name in ("fft", "ifft", "fftn", "ifftn", "hfft", "irfft", "irfftn", "fft2", "ifft2", "irfft2"):
    products.add(f"fft.{name}", getattr(kw.fft, name), COMPLEX)
for name in ("rfft", "rfftn", "ihfft", "rfft2"):
    products.add(f"fft.{name}", getattr(kw.fft, name), s(3, 24, dtype="float64"))
products.add("fft.fft", lambda x: kw.fft.fft(x, axis=0), s(521, 2), form="chirp")
products.add("fft.fftshift", kw.fft.fftshift, ROWS)
products.add("fft.ifftshift", kw.fft.ifftshift, ROWS)
products.add("fft.fftfreq", lambda: kw.fft.fftfreq(30), kind=HOST)
products.add("fft.rfftfreq", lambda: kw.fft.rfftfreq(30), kind=HOST)

random = Table("random")
DRAWS = {
    "uniform": (((300,), "float16"), {}), "normal": (((301,), "float64"), {}),
    "exponential": (((300,),), {}), "gamma": ((0.7, (300,)), {}),
    "bernoulli": ((0.3, (300,)), {}), "integers": ((-3, 99, (300,), "int32"), {}),
    "permutation": ((300,), {}), "choice": ((30, (9,)), {"replace": False}),
}  # fmt: skip
for name, (args, options) in DRAWS.items():
    free = getattr(kw.random, name)
    random.add(f"random.{name}", lambda f=free, a=args, o=options: f(*a, seed=7, **o))
    random.add(
        f"random.Generator.{name}",
        lambda n=name, a=args, o=options: getattr(kw.random.Generator(7), n)(*a, **o),
    )
REAL_DRAWS = {
    "laplace": (), "logistic": (), "gumbel": (), "cauchy": (), "lognormal": (), "rayleigh": (),
    "truncated_normal": (), "weibull": (1.5,), "pareto": (3.0,), "standard_t": (4.0,),
    "chisquare": (3.0,), "beta": (0.5, 2.0), "triangular": (0.0, 1.0, 4.0),
}  # fmt: skip
WHOLE_DRAWS = {"poisson": (20.0,), "binomial": (90, 0.3), "geometric": (0.2,)}
WHOLE_DRAWS |= {"negative_binomial": (3.0, 0.4), "zipf": (2.5,)}
VECTOR_DRAWS = {
    "multinomial": (50, [0.2, 0.8]), "dirichlet": ([0.5, 2.0],), "categorical": ([0.0, 1.0],),
    "multivariate_normal": ([0.0, 1.0], [[2.0, 1.0], [1.0, 2.0]]),
}  # fmt: skip
for name, args in (REAL_DRAWS | WHOLE_DRAWS | VECTOR_DRAWS).items():
    kind = HOST if name in VECTOR_DRAWS else KERNELS
    random.add(
        f"random.{name}",
        lambda n=name, a=args: getattr(kw.random, n)(*a, shape=(300,), seed=7),
        kind=kind,
    )
    random.add(
        f"random.Generator.{name}",
        lambda n=name, a=args: getattr(kw.random.Generator(7), n)(*a, shape=(300,)),
        kind=kind,
    )
random.add("random.poisson", lambda p: kw.random.poisson(p, seed=7), s(30, low=1), form="arrays")
random.add(
    "random.multinomial", lambda p: kw.random.multinomial(9, p, seed=7), s(4, 5, low=0), form="rows"
)
random.add("random.categorical", lambda x: kw.random.categorical(x, seed=7), s(4, 5), form="rows")
random.add("random.permutation", lambda x: kw.random.permutation(x, seed=3), ROWS, form="rows")
random.add("random.permutation", lambda: kw.random.permutation(5000, seed=3), form="long")
random.add("random.choice", lambda x: kw.random.choice(x, (9,), seed=3), ROWS, form="rows")
random.add(
    "random.choice", lambda p: kw.random.choice(30, (9,), p=p, seed=3), s(30, low=0), form="weights"
)
random.add(
    "random.choice", lambda: kw.random.choice(2, 9, p=[0.5, 0.5], seed=3), form="host", kind=HOST
)
random.add("random.shuffle", lambda x: kw.random.shuffle(x, seed=3), ROWS)
random.add("random.Generator.shuffle", lambda x: kw.random.Generator(3).shuffle(x), ROWS)
random.add(
    "random.Generator", lambda: kw.random.Generator(3, on_device=True).normal((50,)), form="counter"
)

fused = Table("fused")


@functools.cache
def made(name):
    """Kernels of expressions."""
    if name == "fuse":
        return kw.fuse("x / sqrt(sum(x * x, -1, keepdims=True))")
    if name == "elementwise":
        return kw.elementwise("z = a * x + y")
    if name == "reduction":
        return kw.reduction("sum(x * y)")
    return kw.scan("a + b")


fused.add("fuse", lambda x: made("fuse")(x=x), ROWS)
fused.add("fuse", lambda x: made("fuse")(x=x), s(3, 3000, dtype="float16"), form="long")
fused.add("elementwise", lambda x, y: made("elementwise")(x=x, y=y, a=2.0), s(4099), s(4099))
fused.add("elementwise", lambda x, y: made("elementwise")(x=x, y=y, a=2.0), TURNED, s(33))
fused.add("reduction", lambda x, y: made("reduction")(x=x, y=y, axis=-1), ROWS, ROWS)
fused.add("reduction", lambda x, y: made("reduction")(x=x, y=y), TURNED, ROWS, form="all")
fused.add("scan", lambda x: made("scan")(x), s(3, 5000))

TABLES = (indexing, movement, reductions, sorting, products, random, fused)
