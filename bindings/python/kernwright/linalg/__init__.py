"""kw.linalg: products and norms of matrices and vectors.

Functions that need a solver (inv, solve, svd, eigh ...) are not here: asking for one says so.
"""

from kernwright.linalg._products import *

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
