"""kw.linalg: products and norms, systems of equations, decompositions and eigenvalues."""

from kernwright._support.typed import publish
from kernwright.linalg import _decompose, _norms, _products, _ranks, _solve
from kernwright.linalg._decompose import *
from kernwright.linalg._norms import *
from kernwright.linalg._products import *
from kernwright.linalg._ranks import *
from kernwright.linalg._solve import *

__all__ = [
    *_decompose.__all__,
    *_norms.__all__,
    *_products.__all__,
    *_ranks.__all__,
    *_solve.__all__,
]

publish(globals(), __all__)
del publish
