"""Benchmarks of kernels: functions that prepare one case for each point of their axes.

>>> import kernwright as kw
>>> @kw.bench.benchmark(n=[2**20, 2**24], dtype=["float32", "float64"])
... def scale(n, dtype):
...     x = kw.ones(n, dtype=dtype)
...     k = kw.kernel("template <typename T> __global__ void scale(T* x, T a, int n) { ... }",
...                   f"scale<{dtype}>")
...     return kw.bench.Case(lambda: k[-(-n // 256), 256](x, 2, n), bytes=2 * x.nbytes)

`kernwright bench FILE` runs those of a file; `kernwright bench` measures the operations of this
package beside other libraries.
"""

from kernwright._support.typed import publish
from kernwright.bench._benchmark import Benchmark, Case, Skip, benchmark
from kernwright.bench._compare import compare
from kernwright.bench._run import run

__all__ = ["Benchmark", "Case", "Skip", "benchmark", "compare", "run"]

publish(globals(), ("benchmark", "compare", "run", "Benchmark", "Case"))
