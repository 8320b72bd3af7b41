"""Kernel Tuner's module of this name: PythonKernel."""

from kernwright.tune._kernel_tuner.python_kernel import PythonKernel

__all__ = ["PythonKernel"]
