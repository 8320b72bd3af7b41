"""Where the simulated device's libcuda.so.1 is installed."""

from __future__ import annotations

import os

from kernwright import _core
from kernwright.errors import Error


def libcuda_path() -> str:
    """The folder of a ``libcuda.so.1`` that is the simulated device, for ``LD_LIBRARY_PATH``.

    A program that is started with the folder there finds simulated devices behind the CUDA driver's
    own functions. Raises Error where the package was built without the library.

    >>> import os
    >>> os.listdir(kw.libcuda_path())
    ['libcuda.so.1']
    """
    folder = os.path.join(os.path.dirname(os.path.abspath(_core.__file__)), "libcuda")
    if not os.path.isfile(os.path.join(folder, "libcuda.so.1")):
        raise Error(f"there is no libcuda.so.1 in {folder}: install kernwright's wheel anew")
    return folder
