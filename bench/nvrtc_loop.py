"""NVRTC alone in a bare loop through ctypes: the cost for a C++ program."""

from __future__ import annotations

import atexit
import ctypes
import pathlib
import re
import shutil
import tempfile

from kernwright import _core


def library() -> ctypes.CDLL:
    """The NVRTC that kernwright uses, with its builtins opened first."""
    path = pathlib.Path(str(_core.nvrtc_status()["path"]))
    for builtins in path.parent.glob("libnvrtc-builtins.so.*"):
        ctypes.CDLL(str(builtins))
    return ctypes.CDLL(str(path))


def include_options() -> list[bytes]:
    """The folders of CUDA's headers that kernwright uses."""
    status = str(_core.headers_status())
    return [b"-I" + folder.strip().encode() for folder in re.findall(r"/[^,]+", status)]


class NvrtcLoop:
    """Compiles to a cubin with one set of options; `pch` makes and uses precompiled headers."""

    def __init__(self, arch: str, options: tuple[str, ...] = (), pch: bool = False) -> None:
        self.nvrtc = library()
        base = (f"--gpu-architecture={arch}", "--std=c++17", "--no-cache", *options)
        self.options = [option.encode() for option in base] + include_options()
        if pch:
            self.nvrtc.nvrtcSetPCHHeapSize(ctypes.c_size_t(4 << 30))
            folder = tempfile.mkdtemp()
            atexit.register(shutil.rmtree, folder, True)
            self.options += [b"--pch", b"--pch-dir=" + folder.encode()]

    def __call__(self, text: str) -> bytes:
        program = ctypes.c_void_p()
        self._check(
            self.nvrtc.nvrtcCreateProgram(
                ctypes.byref(program), text.encode(), b"k.cu", 0, None, None
            )
        )
        options = (ctypes.c_char_p * len(self.options))(*self.options)
        try:
            self._check(self.nvrtc.nvrtcCompileProgram(program, len(options), options))
            size = ctypes.c_size_t()
            self._check(self.nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)))
            cubin = ctypes.create_string_buffer(size.value)
            self._check(self.nvrtc.nvrtcGetCUBIN(program, cubin))
        finally:
            self.nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        return cubin.raw

    @staticmethod
    def _check(result: int) -> None:
        if result != 0:
            raise RuntimeError(f"NVRTC answered {result}")
