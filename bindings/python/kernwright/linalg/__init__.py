"""Linear algebra: norms of vectors."""

from kernwright._support.typed import publish
from kernwright.linalg._norms import vector_norm

__all__ = ["vector_norm"]

publish(globals(), __all__)
