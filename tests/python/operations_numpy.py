"""Cases of NumPy's functions that are made of the array library's own."""

from every_operation import HOST, Table, s

import kernwright as kw

ROWS = s(40, 33)
TURNED = s(40, 33, layout="turned")
VECTOR = s(300)

statistics = Table("statistics")
for name in ("median", "nanmedian", "ptp", "nanargmax", "nanargmin", "nancumsum", "nancumprod"):
    statistics.add(name, lambda x, f=name: getattr(kw, f)(x, axis=1), TURNED)
for name in ("quantile", "nanquantile", "percentile", "nanpercentile"):
    statistics.add(name, lambda x, f=name: getattr(kw, f)(x, 0.3, axis=0), ROWS)
    statistics.add(
        name, lambda x, f=name: getattr(kw, f)(x, [0.3, 0.5]), VECTOR, form="several", kind=HOST
    )
statistics.add("average", lambda x, w: kw.average(x, 1, w), ROWS, s(33, low=0))
statistics.add("cov", kw.cov, s(9, 40))
statistics.add("corrcoef", kw.corrcoef, s(9, 40))
statistics.add("isclose", kw.isclose, ROWS, TURNED)
for name in ("allclose", "array_equal", "array_equiv"):
    statistics.add(name, getattr(kw, name), ROWS, TURNED)
statistics.add("digitize", lambda x, b: kw.digitize(x, kw.cumsum(b)), VECTOR, s(9, low=0))
statistics.add("digitize", lambda x: kw.digitize(x, [0.0, 1.0]), VECTOR, form="host", kind=HOST)
statistics.add("histogram2d", kw.histogram2d, VECTOR, VECTOR, kind=HOST)
statistics.add("histogram_bin_edges", kw.histogram_bin_edges, VECTOR, kind=HOST)

TABLES = (statistics,)
