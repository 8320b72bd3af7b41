"""Kernwright runs CUDA kernels that are written as strings."""

import os
from collections.abc import Sequence
from typing import Any, SupportsIndex

import ml_dtypes
import numpy as np

from kernwright import bench as bench
from kernwright import cache as cache
from kernwright import errors as errors
from kernwright import fft as fft
from kernwright import linalg as linalg
from kernwright import llm as llm
from kernwright import memory as memory
from kernwright import nn as nn
from kernwright import optim as optim
from kernwright import random as random
from kernwright import schedule as schedule
from kernwright import train as train
from kernwright import tune as tune
from kernwright._array.aliases import *
from kernwright._array.composed.applying import *
from kernwright._array.composed.binning import *
from kernwright._array.composed.bits import *
from kernwright._array.composed.closeness import *
from kernwright._array.composed.convolution import *
from kernwright._array.composed.differences import *
from kernwright._array.composed.float_parts import *
from kernwright._array.composed.joining import *
from kernwright._array.composed.making import *
from kernwright._array.composed.nan_functions import *
from kernwright._array.composed.ordering import *
from kernwright._array.composed.padding import *
from kernwright._array.composed.polynomials import *
from kernwright._array.composed.positions import *
from kernwright._array.composed.products import *
from kernwright._array.composed.quantiles import *
from kernwright._array.composed.sequences import geomspace as geomspace
from kernwright._array.composed.sequences import logspace as logspace
from kernwright._array.composed.sets import *
from kernwright._array.composed.statistics import *
from kernwright._array.composed.turning import *
from kernwright._array.counting import *
from kernwright._array.data_types import *
from kernwright._array.einsum import *
from kernwright._array.elementwise import *
from kernwright._array.functions import *
from kernwright._array.indexing import *
from kernwright._array.inspection import *
from kernwright._array.linear import *
from kernwright._array.logic import *
from kernwright._array.manipulation import *
from kernwright._array.matrices import *
from kernwright._array.promotion import *
from kernwright._array.reductions import *
from kernwright._array.scans import *
from kernwright._array.sorting import *
from kernwright._array.special import *
from kernwright._core import Array as Array
from kernwright._core import BoundKernel as BoundKernel
from kernwright._core import CudaArray as CudaArray
from kernwright._core import Device as Device
from kernwright._core import Event as Event
from kernwright._core import Graph as Graph
from kernwright._core import GraphNode as GraphNode
from kernwright._core import GraphPool as GraphPool
from kernwright._core import In as In
from kernwright._core import InOut as InOut
from kernwright._core import Kernel as Kernel
from kernwright._core import LaunchConfig as LaunchConfig
from kernwright._core import ObjectCode as ObjectCode
from kernwright._core import Out as Out
from kernwright._core import Partition as Partition
from kernwright._core import Pointer as Pointer
from kernwright._core import Stream as Stream
from kernwright._core import Surface as Surface
from kernwright._core import TensorMap as TensorMap
from kernwright._core import Texture as Texture
from kernwright._core import Transfer as Transfer
from kernwright._core import TransferEngine as TransferEngine
from kernwright._core import __version__ as __version__
from kernwright._core import checked as checked
from kernwright._core import current_device as current_device
from kernwright._core import current_stream as current_stream
from kernwright._core import devices as devices
from kernwright._core import empty as empty
from kernwright._core import pinned as pinned
from kernwright._core import slices as slices
from kernwright._core import strided as strided
from kernwright._core import synchronize as synchronize
from kernwright._files.gguf import *
from kernwright._files.gguf_writing import *
from kernwright._files.npy import *
from kernwright._files.npz import *
from kernwright._files.safetensors import *
from kernwright._fuse.elementwise import elementwise as elementwise
from kernwright._fuse.fused import fuse as fuse
from kernwright._fuse.reduction import reduction as reduction
from kernwright._fuse.scan import scan as scan
from kernwright._grad.captured import captured as captured
from kernwright._grad.gradcheck import gradcheck as gradcheck
from kernwright._grad.transforms import checkpoint as checkpoint
from kernwright._grad.transforms import custom_gradient as custom_gradient
from kernwright._grad.transforms import grad as grad
from kernwright._grad.transforms import stop_gradient as stop_gradient
from kernwright._grad.transforms import value_and_grad as value_and_grad
from kernwright._grad.transforms import vjp as vjp
from kernwright._jit.kernels import Module as Module
from kernwright._jit.kernels import Program as Program
from kernwright._jit.kernels import warmup as warmup
from kernwright._jit.lint import lint as lint
from kernwright._jit.options import ProgramOptions as ProgramOptions
from kernwright._jit.pack import pack as pack
from kernwright._jit.pack import use_pack as use_pack
from kernwright._jit.slices import slice_blocks as slice_blocks
from kernwright._judging.inputs import Inputs as Inputs
from kernwright._judging.judge import Judge as Judge
from kernwright._judging.judge import judge as judge
from kernwright._judging.task import Task as Task
from kernwright._judging.verdict import Verdict as Verdict
from kernwright._measure.profile import annotate as annotate
from kernwright._measure.profile import profile as profile
from kernwright._measure.timing import time as time
from kernwright._measure.timing import time_kernel as time_kernel
from kernwright._sim.line_profile import line_profile as line_profile
from kernwright._sim.trace import trace as trace
from kernwright._support.libcuda import libcuda_path as libcuda_path
from kernwright.checks import checks as checks
from kernwright.errors import ArgumentError as ArgumentError
from kernwright.errors import ArgumentRangeError as ArgumentRangeError
from kernwright.errors import AxisError as AxisError
from kernwright.errors import CaptureError as CaptureError
from kernwright.errors import CompileError as CompileError
from kernwright.errors import DeviceFault as DeviceFault
from kernwright.errors import DeviceLost as DeviceLost
from kernwright.errors import DeviceNotFound as DeviceNotFound
from kernwright.errors import DivisionByZero as DivisionByZero
from kernwright.errors import DriverError as DriverError
from kernwright.errors import DriverNotFound as DriverNotFound
from kernwright.errors import Error as Error
from kernwright.errors import InvalidArgument as InvalidArgument
from kernwright.errors import LaunchConfigError as LaunchConfigError
from kernwright.errors import NameNotFound as NameNotFound
from kernwright.errors import NotSliceable as NotSliceable
from kernwright.errors import NvrtcNotFound as NvrtcNotFound
from kernwright.errors import OutOfBounds as OutOfBounds
from kernwright.errors import OutOfMemory as OutOfMemory
from kernwright.errors import PartitionError as PartitionError
from kernwright.errors import PerformanceWarning as PerformanceWarning
from kernwright.errors import StoreError as StoreError
from kernwright.errors import Timeout as Timeout
from kernwright.errors import UnsupportedInstruction as UnsupportedInstruction

_Shape = SupportsIndex | Sequence[SupportsIndex]
_DeviceLike = Device | int | str | None

int8 = np.int8
int16 = np.int16
int32 = np.int32
int64 = np.int64
uint8 = np.uint8
uint16 = np.uint16
uint32 = np.uint32
uint64 = np.uint64
float16 = np.float16
bfloat16 = ml_dtypes.bfloat16
float32 = np.float32
float64 = np.float64
float8_e4m3fn = ml_dtypes.float8_e4m3fn
float8_e5m2 = ml_dtypes.float8_e5m2
complex64 = np.complex64
complex128 = np.complex128

def kernel(
    source: str | os.PathLike[str] | bytes | ObjectCode,
    name: str | None = None,
    *,
    options: ProgramOptions | None = None,
    arch: str | None = None,
    std: str = "c++17",
    defines: dict[str, str | float | bool | None] = ...,
    headers: dict[str, str] = ...,
    include_dirs: Sequence[str | os.PathLike[str]] = ...,
    fast_math: bool = False,
    max_registers: int | None = None,
    lineinfo: bool = False,
    device_debug: bool = False,
    strip_host: bool = False,
    minimal: bool | str = "auto",
    pch: bool | str = "auto",
    opt_level: int | None = None,
    timeout: float | None = None,
    extra: Sequence[str] = ...,
) -> Kernel: ...
def module(
    source: str | os.PathLike[str] | bytes | ObjectCode,
    *,
    options: ProgramOptions | None = None,
    arch: str | None = None,
    std: str = "c++17",
    defines: dict[str, str | float | bool | None] = ...,
    headers: dict[str, str] = ...,
    include_dirs: Sequence[str | os.PathLike[str]] = ...,
    fast_math: bool = False,
    max_registers: int | None = None,
    lineinfo: bool = False,
    device_debug: bool = False,
    strip_host: bool = False,
    minimal: bool | str = "auto",
    pch: bool | str = "auto",
    opt_level: int | None = None,
    timeout: float | None = None,
    extra: Sequence[str] = ...,
) -> Module: ...
def zeros(shape: _Shape, dtype: Any = None, *, device: _DeviceLike = None) -> Array: ...
def ones(shape: _Shape, dtype: Any = None, *, device: _DeviceLike = None) -> Array: ...
def full(
    shape: _Shape, fill_value: Any, dtype: Any = None, *, device: _DeviceLike = None
) -> Array: ...
def empty_like(
    x: Any, dtype: Any = None, *, shape: _Shape | None = None, device: _DeviceLike = None
) -> Array: ...
def zeros_like(
    x: Any, dtype: Any = None, *, shape: _Shape | None = None, device: _DeviceLike = None
) -> Array: ...
def ones_like(
    x: Any, dtype: Any = None, *, shape: _Shape | None = None, device: _DeviceLike = None
) -> Array: ...
def full_like(
    x: Any,
    fill_value: Any,
    dtype: Any = None,
    *,
    shape: _Shape | None = None,
    device: _DeviceLike = None,
) -> Array: ...
def arange(
    start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: _DeviceLike = None
) -> Array: ...
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: _DeviceLike = None,
) -> Any: ...
def asarray(
    obj: Any, dtype: Any = None, *, device: _DeviceLike = None, copy: bool | None = None
) -> Array: ...
def from_dlpack(x: Any, *, device: _DeviceLike = None, copy: bool | None = None) -> Array: ...
