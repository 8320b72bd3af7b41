"""Programs of the CUDA driver, run on the simulated device's libcuda.so.1."""

import os
import subprocess
import sys

import kernwright as kw


def run(code, **environment):
    """Runs Python code with the simulated device's library in front of any driver's."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("KERNWRIGHT_SIM")}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**variables, "LD_LIBRARY_PATH": kw.libcuda_path(), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


# The beginning of a program: the library, a call that must succeed, and two kernels.
BEGIN = r"""
import ctypes, sys
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
cu = ctypes.CDLL("libcuda.so.1")

def check(name, *arguments):
    result = getattr(cu, name)(*arguments)
    assert result == 0, (name, result)

def code(name, *arguments):
    return getattr(cu, name)(*arguments)

PTX = b'''.version 7.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 scale = 3;
.visible .entry triple(.param .u64 x, .param .u32 n) {
  .reg .pred %out;
  .reg .b32 %i, %n, %v, %b, %d, %s;
  .reg .b64 %x;
  ld.param.u64 %x, [x];
  ld.param.u32 %n, [n];
  mov.u32 %i, %ctaid.x;
  mov.u32 %d, %ntid.x;
  mov.u32 %b, %tid.x;
  mad.lo.u32 %i, %i, %d, %b;
  setp.ge.u32 %out, %i, %n;
  @%out exit;
  mad.wide.u32 %x, %i, 4, %x;
  ld.global.u32 %v, [%x];
  ld.global.u32 %s, [scale];
  mul.lo.u32 %v, %v, %s;
  st.global.u32 [%x], %v;
  ret;
}
.visible .entry nothing() { ret; }
'''
check("cuInit", 0)
context = c_void_p()
check("cuCtxCreate_v2", byref(context), 0, 0)
N = 1000

def upload():
    "An array 0, 1, 2, ... on the device, and the arguments of triple."
    address = c_uint64()
    check("cuMemAlloc_v2", byref(address), c_size_t(4 * N))
    check("cuMemcpyHtoD_v2", address, (c_uint * N)(*range(N)), c_size_t(4 * N))
    number = c_uint(N)
    pointers = (c_void_p * 2)(*(ctypes.cast(byref(v), c_void_p) for v in (address, number)))
    return address, pointers, number

def expect(address, factor):
    values = (c_uint * N)()
    check("cuMemcpyDtoH_v2", values, address, c_size_t(4 * N))
    assert list(values) == [factor * i % 2**32 for i in range(N)], list(values)[:5]

def launch(function, pointers, name="cuLaunchKernel", stream=None):
    shape = [c_uint(v) for v in (8, 1, 1, 128, 1, 1, 0)]
    return code(name, function, *shape, stream, pointers, None)
"""


def passes(body, **environment):
    """Runs a program with this beginning and its assertions; returns its stderr."""
    result = run(BEGIN + body + "\nprint('passed')\n", **environment)
    said = result.stdout + result.stderr
    assert result.returncode == 0 and result.stdout.endswith("passed\n"), said
    return result.stderr
