"""kw.linalg: products and norms of matrices and vectors.

Functions that need a solver (inv, solve, svd, eigh ...) are not here: asking for one says so.
"""

from kernwright._support.typed import publish
from kernwright.linalg import _norms, _products
from kernwright.linalg._norms import *
from kernwright.linalg._products import *

__all__ = [*_norms.__all__, *_products.__all__]

publish(globals(), __all__)
del publish

_SOLVERS = (
    *("cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matrix_rank", "pinv", "qr"),
    *("slogdet", "solve", "svd", "svdvals"),
)


def __getattr__(name: str) -> object:
    if name in _SOLVERS:
        raise AttributeError(
            f"kw.linalg.{name} is not there: it needs a solver, and kernwright has none; copy the "
            "array to the host with .numpy() and use numpy.linalg, or pass it to CuPy or torch"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
