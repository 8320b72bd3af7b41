"""Cases of NumPy's functions that are made of the array library's own."""

from every_operation import CHECKED, HOST, KERNELS, VIEW, Table, s

import kernwright as kw

ROWS = s(40, 33)
TURNED = s(40, 33, layout="turned")
VECTOR = s(300)

statistics = Table("statistics")
for name in ("median", "nanmedian", "ptp", "nanargmax", "nanargmin", "nancumsum", "nancumprod"):
    kind = CHECKED if name.startswith("nanarg") else KERNELS
    statistics.add(name, lambda x, f=name: getattr(kw, f)(x, axis=1), TURNED, kind=kind)
for name in ("quantile", "nanquantile", "percentile", "nanpercentile"):
    statistics.add(name, lambda x, f=name: getattr(kw, f)(x, 0.3, axis=0), ROWS)
    statistics.add(
        name, lambda x, f=name: getattr(kw, f)(x, [0.3, 0.5]), VECTOR, form="several", kind=HOST
    )
statistics.add(
    "quantile",
    lambda x, w: kw.quantile(x, 0.3, 1, method="inverted_cdf", weights=w),
    ROWS,
    s(40, 33, low=0),
    form="weights",
)
statistics.add("average", lambda x, w: kw.average(x, 1, w), ROWS, s(33, low=0), kind=CHECKED)
statistics.add("cov", kw.cov, s(9, 40))
statistics.add("corrcoef", kw.corrcoef, s(9, 40))
statistics.add("isclose", kw.isclose, ROWS, TURNED)
for name in ("allclose", "array_equal", "array_equiv"):
    statistics.add(name, getattr(kw, name), ROWS, TURNED)
RISING_BINS = lambda x, b: kw.digitize(x, kw.cumsum(b))  # noqa: E731
statistics.add("digitize", RISING_BINS, VECTOR, s(9, low=0), kind=CHECKED)
statistics.add("digitize", lambda x: kw.digitize(x, [0.0, 1.0]), VECTOR, form="host", kind=HOST)
statistics.add("histogram2d", kw.histogram2d, VECTOR, VECTOR, kind=HOST)
statistics.add("histogram_bin_edges", kw.histogram_bin_edges, VECTOR, kind=HOST)

for name in ("sum", "any", "mean", "var", "nanstd"):
    call = lambda x, y, f=name: getattr(kw, f)(x, axis=1, where=y > 0)  # noqa: E731
    statistics.add(name, call, ROWS, ROWS, form="where")
statistics.add("max", lambda x, y: kw.max(x, where=y > 0, initial=-9), ROWS, ROWS, form="where")

choosing = Table("choosing")
WHOLE = s(300, dtype="int32", low=0, high=9)
choosing.add("partition", lambda x: kw.partition(x, 3), ROWS)
choosing.add("argpartition", lambda x: kw.argpartition(x, 3), ROWS)
choosing.add("lexsort", lambda x, y: kw.lexsort([x, y]), WHOLE, VECTOR)
choosing.add(
    "select", lambda x, y: kw.select([kw.greater(x, 0), kw.greater(y, 1)], [x, y]), ROWS, TURNED
)
choosing.add("piecewise", lambda x: kw.piecewise(x, [kw.greater(x, 0)], [kw.negative, 1]), ROWS)
choosing.add("choose", lambda i, x: kw.choose(i, [x, x, x]), WHOLE, VECTOR)
for name in ("compress", "extract"):
    choosing.add(name, lambda x, f=name: getattr(kw, f)(kw.greater(x, 0), x), VECTOR, kind=HOST)
for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
    choosing.add(name, getattr(kw, name), WHOLE, WHOLE, kind=HOST)
choosing.add(
    "unique", lambda x: kw.unique(x, axis=0), s(30, 3, dtype="int8", high=3), form="rows", kind=HOST
)
choosing.add("unique", lambda x: kw.unique(x, equal_nan=True), VECTOR, form="nan", kind=HOST)
for name in ("tril_indices", "triu_indices"):
    choosing.add(name, lambda f=name: getattr(kw, f)(20, 1, 33))
    choosing.add(f"{name}_from", getattr(kw, f"{name}_from"), ROWS)
choosing.add("diag_indices", lambda: kw.diag_indices(20))
choosing.add("diag_indices_from", kw.diag_indices_from, s(20, 20))
choosing.add("indices", lambda: kw.indices((20, 33)))
choosing.add("unravel_index", lambda i: kw.unravel_index(i, (4, 5)), WHOLE)
choosing.add(
    "ravel_multi_index", lambda i: kw.ravel_multi_index((i, i), (4, 5), mode="clip"), WHOLE
)
choosing.add("ravel_multi_index", lambda i: kw.ravel_multi_index((i, i), (9, 9)), WHOLE,
             form="raise", kind=HOST)  # fmt: skip
choosing.add("ix_", kw.ix_, WHOLE, WHOLE, kind=VIEW)

joining = Table("joining")
for name in ("hstack", "vstack", "dstack", "column_stack"):
    joining.add(name, lambda x, y, f=name: getattr(kw, f)([x, y]), ROWS, TURNED)
joining.add("block", lambda x, y: kw.block([[x, y], [y, x]]), ROWS, TURNED)
joining.add("append", kw.append, ROWS, VECTOR)
joining.add("append", lambda x: kw.append(x, [1, 2]), VECTOR, form="host", kind=HOST)
joining.add("delete", lambda x: kw.delete(x, 3, axis=1), ROWS)
joining.add("delete", lambda x: kw.delete(x, [3, 5]), VECTOR, form="host", kind=HOST)
joining.add("insert", lambda x: kw.insert(x, 3, 1.0), VECTOR, kind=HOST)
joining.add("resize", lambda x: kw.resize(x, (9, 99)), VECTOR)
joining.add("trim_zeros", kw.trim_zeros, VECTOR, kind=HOST)
for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    joining.add(name, getattr(kw, name), VECTOR, kind=VIEW)
for name in ("transpose", "ravel", "rot90", "fliplr", "flipud", "diagonal"):
    joining.add(name, getattr(kw, name), ROWS, kind=VIEW)
joining.add("rollaxis", lambda x: kw.rollaxis(x, 1), ROWS, kind=VIEW)
joining.add("array_split", lambda x: kw.array_split(x, 3), ROWS, kind=VIEW)
joining.add("hsplit", lambda x: kw.hsplit(x, 3), ROWS, kind=VIEW)
joining.add("vsplit", lambda x: kw.vsplit(x, 4), ROWS, kind=VIEW)
joining.add("dsplit", lambda x: kw.dsplit(x, 2), s(2, 3, 4), kind=VIEW)
joining.add("array", lambda x: kw.array(x, ndmin=3), ROWS)
joining.add("copy", kw.copy, TURNED)
joining.add("ascontiguousarray", kw.ascontiguousarray, TURNED)
joining.add("identity", lambda: kw.identity(20))
joining.add("tri", lambda: kw.tri(20, 33, 1))
joining.add("vander", kw.vander, VECTOR)
joining.add("diagflat", kw.diagflat, s(5, 7))
joining.add("trace", kw.trace, ROWS, form="diagonal")
joining.add("logspace", lambda: kw.logspace(0, 2, 300))
joining.add("geomspace", lambda: kw.geomspace(1, 8, 300))

calculus = Table("calculus")
RISING = lambda x: kw.cumulative_sum(kw.abs(x))  # noqa: E731
for name in ("dot", "outer", "inner", "vdot", "kron"):
    calculus.add(name, getattr(kw, name), s(30), s(30))
calculus.add("cross", kw.cross, s(40, 3), s(40, 3))
calculus.add("convolve", kw.convolve, VECTOR, s(9))
calculus.add("correlate", kw.correlate, VECTOR, s(9, layout="reversed"))
calculus.add("gradient", kw.gradient, ROWS)
calculus.add("trapezoid", kw.trapezoid, ROWS)
calculus.add("ediff1d", kw.ediff1d, ROWS)
calculus.add("unwrap", kw.unwrap, ROWS)
calculus.add("interp", lambda x, p, f: kw.interp(x, RISING(p), f), VECTOR, s(40), s(40))
calculus.add("polyval", kw.polyval, s(5), VECTOR)
calculus.add("polyval", lambda x: kw.polyval([1, 2], x), VECTOR, form="host", kind=HOST)
calculus.add("polyfit", lambda x, y: kw.polyfit(x, y, 2), s(30), s(30))
calculus.add("matmul", lambda x, y: kw.matmul(x, y, out=y), s(9, 9), s(9, 9), form="out")
calculus.add("apply_along_axis", lambda x: kw.apply_along_axis(kw.sum, 1, x), s(3, 30))
calculus.add("vectorize", lambda x: kw.vectorize(lambda v: v * v)(x), VECTOR)
calculus.add("packbits", lambda x: kw.packbits(x, 1), s(40, 33, dtype="int8"))
calculus.add("unpackbits", kw.unpackbits, s(30, dtype="uint8", low=0, high=200))

TABLES = (statistics, choosing, joining, calculus)
