"""Linear algebra: norms of vectors."""

from kernwright._support.typed import publish
from kernwright.linalg import _norms
from kernwright.linalg._norms import *  # noqa: F403

__all__ = [*_norms.__all__]

publish(globals(), __all__)
