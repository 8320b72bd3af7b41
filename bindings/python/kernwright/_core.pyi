"""Types of the extension module; `kernwright` itself re-exports what is public."""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, SupportsIndex, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from kernwright._core_array import Array as Array
from kernwright._core_attention import _append_cache as _append_cache
from kernwright._core_attention import _append_qkv as _append_qkv
from kernwright._core_attention import _attention as _attention
from kernwright._core_attention import _attention_backward as _attention_backward
from kernwright._core_attention import _AttentionOptions as _AttentionOptions
from kernwright._core_attention import _float8_attention as _float8_attention
from kernwright._core_attention import _paged_attention as _paged_attention
from kernwright._core_engine import _count_valid_tokens as _count_valid_tokens
from kernwright._core_engine import _EngineLoop as _EngineLoop
from kernwright._core_formats import _dequantize_awq as _dequantize_awq
from kernwright._core_formats import _dequantize_codes as _dequantize_codes
from kernwright._core_formats import _dequantize_gguf as _dequantize_gguf
from kernwright._core_formats import _dequantize_gptq as _dequantize_gptq
from kernwright._core_formats import _dequantize_tiles as _dequantize_tiles
from kernwright._core_formats import _gguf_formats as _gguf_formats
from kernwright._core_formats import _pack_nibbles as _pack_nibbles
from kernwright._core_formats import _pack_weights as _pack_weights
from kernwright._core_formats import _packed_linear as _packed_linear
from kernwright._core_formats import _quantize_codes as _quantize_codes
from kernwright._core_formats import _quantize_gguf as _quantize_gguf
from kernwright._core_formats import _quantize_tiles as _quantize_tiles
from kernwright._core_formats import _unpack_nibbles as _unpack_nibbles
from kernwright._core_formats import _unpack_weights as _unpack_weights
from kernwright._core_judge import _DrawnCases as _DrawnCases
from kernwright._core_judge import _Judge as _Judge
from kernwright._core_kernels import _as_number as _as_number
from kernwright._core_kernels import _attention_tiles as _attention_tiles
from kernwright._core_kernels import _AttentionBackwardPlan as _AttentionBackwardPlan
from kernwright._core_kernels import _AttentionPlan as _AttentionPlan
from kernwright._core_kernels import _can_cast as _can_cast
from kernwright._core_kernels import _cholesky as _cholesky
from kernwright._core_kernels import _compile_only as _compile_only
from kernwright._core_kernels import _diagonal_view as _diagonal_view
from kernwright._core_kernels import _eigen as _eigen
from kernwright._core_kernels import _elementwise as _elementwise
from kernwright._core_kernels import _fma_tiles as _fma_tiles
from kernwright._core_kernels import _gemm as _gemm
from kernwright._core_kernels import _gemm_choice as _gemm_choice
from kernwright._core_kernels import _gemm_tiles as _gemm_tiles
from kernwright._core_kernels import _has_product as _has_product
from kernwright._core_kernels import _is_number as _is_number
from kernwright._core_kernels import _launch_choices as _launch_choices
from kernwright._core_kernels import _launch_table_path as _launch_table_path
from kernwright._core_kernels import _launched as _launched
from kernwright._core_kernels import _layer_operands as _layer_operands
from kernwright._core_kernels import _lu_factor as _lu_factor
from kernwright._core_kernels import _lu_solve as _lu_solve
from kernwright._core_kernels import _matmul as _matmul
from kernwright._core_kernels import _mma_tiles as _mma_tiles
from kernwright._core_kernels import _PinnedChoices as _PinnedChoices
from kernwright._core_kernels import _product as _product
from kernwright._core_kernels import _product_plan as _product_plan
from kernwright._core_kernels import _promote_types as _promote_types
from kernwright._core_kernels import _qr as _qr
from kernwright._core_kernels import _result_type as _result_type
from kernwright._core_kernels import _scaled_matmul as _scaled_matmul
from kernwright._core_kernels import _set_choices as _set_choices
from kernwright._core_kernels import _set_default_dtype as _set_default_dtype
from kernwright._core_kernels import _shape_class as _shape_class
from kernwright._core_kernels import _svd as _svd
from kernwright._core_kernels import _use_launch_table as _use_launch_table
from kernwright._core_kernels import _with_planned_rows as _with_planned_rows
from kernwright._core_kernels import _with_product as _with_product
from kernwright._core_memory import AsyncResource as AsyncResource
from kernwright._core_memory import CallbackResource as CallbackResource
from kernwright._core_memory import DeviceResource as DeviceResource
from kernwright._core_memory import Evictable as Evictable
from kernwright._core_memory import EvictionGroup as EvictionGroup
from kernwright._core_memory import FailingAdaptor as FailingAdaptor
from kernwright._core_memory import LimitingAdaptor as LimitingAdaptor
from kernwright._core_memory import ManagedResource as ManagedResource
from kernwright._core_memory import MemoryBlock as MemoryBlock
from kernwright._core_memory import MemoryResource as MemoryResource
from kernwright._core_memory import PinnedResource as PinnedResource
from kernwright._core_memory import PoolResource as PoolResource
from kernwright._core_memory import ResourceAdaptor as ResourceAdaptor
from kernwright._core_memory import TrackingAdaptor as TrackingAdaptor
from kernwright._core_memory import _log_warning as _log_warning
from kernwright._core_memory import _memory_resource as _memory_resource
from kernwright._core_memory import _memory_use as _memory_use
from kernwright._core_memory import _pinned_block as _pinned_block
from kernwright._core_memory import _pinned_resource as _pinned_resource
from kernwright._core_memory import _torch_allocator_functions as _torch_allocator_functions
from kernwright._core_memory import _tracking_reports as _tracking_reports
from kernwright._core_memory import _transfers as _transfers
from kernwright._core_memory import alloc as alloc
from kernwright._core_movement import _add_at as _add_at
from kernwright._core_movement import _concat as _concat
from kernwright._core_movement import _count_outside as _count_outside
from kernwright._core_movement import _diagonal as _diagonal
from kernwright._core_movement import _diagonal_matrix as _diagonal_matrix
from kernwright._core_movement import _gather as _gather
from kernwright._core_movement import _put_at as _put_at
from kernwright._core_movement import _put_where as _put_where
from kernwright._core_movement import _repeat_positions as _repeat_positions
from kernwright._core_movement import _scatter as _scatter
from kernwright._core_movement import _sequence as _sequence
from kernwright._core_movement import _split_positions as _split_positions
from kernwright._core_movement import _take_at as _take_at
from kernwright._core_movement import _triangle as _triangle
from kernwright._core_movement import _true_positions as _true_positions
from kernwright._core_movement import _whole_sequence as _whole_sequence
from kernwright._core_nn_pieces import _activate as _activate
from kernwright._core_nn_pieces import _activate_backward as _activate_backward
from kernwright._core_nn_pieces import _activations as _activations
from kernwright._core_nn_pieces import _alibi_bias as _alibi_bias
from kernwright._core_nn_pieces import _alibi_slopes as _alibi_slopes
from kernwright._core_nn_pieces import _bias_activate as _bias_activate
from kernwright._core_nn_pieces import _bias_activate_backward as _bias_activate_backward
from kernwright._core_nn_pieces import _convolve as _convolve
from kernwright._core_nn_pieces import _convolve_weight_gradient as _convolve_weight_gradient
from kernwright._core_nn_pieces import _cross_entropy as _cross_entropy
from kernwright._core_nn_pieces import _dropout as _dropout
from kernwright._core_nn_pieces import _embedding as _embedding
from kernwright._core_nn_pieces import _embedding_backward as _embedding_backward
from kernwright._core_nn_pieces import _gate as _gate
from kernwright._core_nn_pieces import _gate_backward as _gate_backward
from kernwright._core_nn_pieces import _grouped_choice as _grouped_choice
from kernwright._core_nn_pieces import _grouped_gradient as _grouped_gradient
from kernwright._core_nn_pieces import _grouped_product as _grouped_product
from kernwright._core_nn_pieces import _linear as _linear
from kernwright._core_nn_pieces import _linear_into as _linear_into
from kernwright._core_nn_pieces import _merge_qkv as _merge_qkv
from kernwright._core_nn_pieces import _permute as _permute
from kernwright._core_nn_pieces import _pointwise_loss as _pointwise_loss
from kernwright._core_nn_pieces import _pool_average as _pool_average
from kernwright._core_nn_pieces import _pool_backward as _pool_backward
from kernwright._core_nn_pieces import _pool_largest as _pool_largest
from kernwright._core_nn_pieces import _pope as _pope
from kernwright._core_nn_pieces import _pope_shifts as _pope_shifts
from kernwright._core_nn_pieces import _recurrent as _recurrent
from kernwright._core_nn_pieces import _recurrent_backward as _recurrent_backward
from kernwright._core_nn_pieces import _resample as _resample
from kernwright._core_nn_pieces import _rope as _rope
from kernwright._core_nn_pieces import _rope_attention_factor as _rope_attention_factor
from kernwright._core_nn_pieces import _rope_frequencies as _rope_frequencies
from kernwright._core_nn_pieces import _rope_tables as _rope_tables
from kernwright._core_nn_pieces import _route as _route
from kernwright._core_nn_pieces import _scale_tokens as _scale_tokens
from kernwright._core_nn_pieces import _skinny_product as _skinny_product
from kernwright._core_nn_pieces import _split_qkv as _split_qkv
from kernwright._core_nn_pieces import _unpermute as _unpermute
from kernwright._core_norms import _l2_norm as _l2_norm
from kernwright._core_norms import _l2_norm_backward as _l2_norm_backward
from kernwright._core_norms import _norm as _norm
from kernwright._core_norms import _norm_backward as _norm_backward
from kernwright._core_norms import _softmax as _softmax
from kernwright._core_norms import _softmax_backward as _softmax_backward
from kernwright._core_optim import _blend_tensors as _blend_tensors
from kernwright._core_optim import _dequantize_rows as _dequantize_rows
from kernwright._core_optim import _gradient_factor as _gradient_factor
from kernwright._core_optim import _gradient_norm as _gradient_norm
from kernwright._core_optim import _optimizer_step as _optimizer_step
from kernwright._core_optim import _optimizer_steps as _optimizer_steps
from kernwright._core_optim import _quantize_blocks as _quantize_blocks
from kernwright._core_optim import _quantize_rows as _quantize_rows
from kernwright._core_optim import _sample as _sample
from kernwright._core_optim import _scale_tensors as _scale_tensors
from kernwright._core_random import _advance_counter as _advance_counter
from kernwright._core_random import _random_bernoulli as _random_bernoulli
from kernwright._core_random import _random_choice as _random_choice
from kernwright._core_random import _random_exponential as _random_exponential
from kernwright._core_random import _random_gamma as _random_gamma
from kernwright._core_random import _random_integers as _random_integers
from kernwright._core_random import _random_multinomial as _random_multinomial
from kernwright._core_random import _random_normal as _random_normal
from kernwright._core_random import _random_parametric as _random_parametric
from kernwright._core_random import _random_permutation as _random_permutation
from kernwright._core_random import _random_uniform as _random_uniform
from kernwright._core_random import _rows_by_index as _rows_by_index
from kernwright._core_random import _take_counter as _take_counter
from kernwright._core_recording import _extent as _extent
from kernwright._core_recording import _forget as _forget
from kernwright._core_recording import _GradientRecording as _GradientRecording
from kernwright._core_recording import _is_recording as _is_recording
from kernwright._core_recording import _is_traced as _is_traced
from kernwright._core_recording import _next_order as _next_order
from kernwright._core_recording import _Node as _Node
from kernwright._core_recording import _note as _note
from kernwright._core_recording import _note_checked as _note_checked
from kernwright._core_recording import _note_joint as _note_joint
from kernwright._core_recording import _recordings as _recordings
from kernwright._core_recording import _set_handlers as _set_handlers
from kernwright._core_recording import _set_recording as _set_recording
from kernwright._core_recording import _set_recordings as _set_recordings
from kernwright._core_recording import _unrecorded as _unrecorded
from kernwright._core_schedule import ScheduledTask as ScheduledTask
from kernwright._core_schedule import Scheduler as Scheduler
from kernwright._core_schedule import _end_schedulers as _end_schedulers
from kernwright._core_schedule import _KeptArrays as _KeptArrays
from kernwright._core_schedule import _policy_names as _policy_names
from kernwright._core_tensor_map import TensorMap as TensorMap
from kernwright._core_texture import CudaArray as CudaArray
from kernwright._core_texture import Surface as Surface
from kernwright._core_texture import Texture as Texture
from kernwright._core_tune import TunedCall as TunedCall
from kernwright._core_tune import TuneExpression as TuneExpression
from kernwright._core_tune import TuneLane as TuneLane
from kernwright._core_tune import TuneSession as TuneSession
from kernwright._core_tune import TuneSpace as TuneSpace
from kernwright._core_tune import TuneStore as TuneStore
from kernwright._core_tune import TuneStoreFile as TuneStoreFile
from kernwright._core_tune import TuneStrategy as TuneStrategy
from kernwright._core_tune import _any_capture as _any_capture
from kernwright._core_tune import _exchange_captured_only as _exchange_captured_only
from kernwright._core_tune import _pareto_front as _pareto_front
from kernwright._core_tune import _Timer as _Timer
from kernwright._core_tune import _tune_bucket as _tune_bucket
from kernwright._core_tune import _tune_device_class as _tune_device_class
from kernwright._core_tune import _tune_forest as _tune_forest
from kernwright._core_tune import _tune_parameter_names as _tune_parameter_names
from kernwright._core_tune import _tune_rows as _tune_rows
from kernwright._core_tune import _tune_source_hash as _tune_source_hash
from kernwright._core_tune import _tune_space_hash as _tune_space_hash
from kernwright._core_tune import _tune_strategies as _tune_strategies
from kernwright._core_tune import _tune_text_hash as _tune_text_hash
from kernwright._core_tune import _tune_variable_names as _tune_variable_names
from kernwright._jit.background import CompileFuture
from kernwright._jit.kernels import KernelAttributes, Parameter
from kernwright._jit.options import ProgramOptions
from kernwright._jit.report import KernelReport
from kernwright._jit.slices import SlicedKernel, YieldingKernel
from kernwright._support.device import DeviceAttributes, MemoryInfo, PartitionRules
from kernwright.errors import Diagnostic
from kernwright.tune._online import Online
from kernwright.tune._space import Space
from kernwright.tune._tuned import Tuned

__version__: str

def _slice_blocks(
    blocks: int,
    launch_us: float,
    latency_us: float,
    multiprocessors: int,
    resident_blocks: int,
) -> int: ...

class _TypedFunction:
    def __init__(self, function: Callable[..., Any], /) -> None: ...
    def __call__(self, *arguments: Any, **options: Any) -> Any: ...

def _path(path: str | bytes | os.PathLike[str], what: str) -> str: ...
def _describe_bytes(bytes: int) -> str: ...
def _object_code(bytes: bytes) -> ObjectCode: ...

_Shape = SupportsIndex | Sequence[SupportsIndex]
_Extents = SupportsIndex | tuple[SupportsIndex, ...] | list[SupportsIndex]

class Device:
    """A GPU, or the simulated device.

    `which` is an index, a name ("cuda:1", "sim"), a UUID, a PCI bus id, a Device, or None for the
    current one. DeviceNotFound where there is none. `with device:` makes it the current device of
    the thread until the end of the block.

    >>> with kw.Device("sim") as device:
    ...     x = kw.zeros(4)
    >>> x.device == device
    True
    """

    def __init__(self, which: Device | int | str | None = None, /) -> None: ...
    @property
    def name(self) -> str:
        """The name by the driver, as "NVIDIA H100"."""
    @property
    def ordinal(self) -> int:
        """The index among the devices of its kind."""
    @property
    def is_simulated(self) -> bool:
        """Whether it is the simulated device, which runs on the CPU."""
    @property
    def uuid(self) -> str:
        """The UUID, as "GPU-..."."""
    @property
    def pci_bus_id(self) -> str:
        """The place on the bus, as "0000:65:00.0"."""
    @property
    def driver_version(self) -> int:
        """The CUDA version that the driver serves: 13000 for 13.0."""
    @property
    def compute_capability(self) -> tuple[int, int]:
        """Major and minor number: (9, 0)."""
    @property
    def attributes(self) -> DeviceAttributes:
        """The driver's attributes by name, as `attributes["warp_size"]` or
        `attributes.warp_size`."""
    def memory_info(self) -> MemoryInfo:
        """Free and total memory in bytes, by the driver."""
    def partitions(
        self,
        sizes: Sequence[int | None],
        *,
        memory: int | Sequence[int | None] | None = None,
        share: float | Sequence[float | None] | None = None,
        streams: int | Sequence[int | None] | None = None,
    ) -> list[Partition]:
        """Divides multiprocessors into partitions that never overlap, one for each size.

        A size is the least number of multiprocessors; the driver rounds it up. None, for one of
        them, means all that are left. `memory` (bytes), `share` (of time, up to 1) and `streams`
        (alive at a time) are limits: one for all partitions, or a list with one for each. Raises
        PartitionError where too few are free, before anything is made, and DriverError (801) on a
        driver without green contexts.

        >>> small, rest = kw.current_device().partitions([8, None])
        >>> small.asked, small.sms
        (8, 8)
        >>> set(small.smids()).isdisjoint(rest.smids())
        True
        """
    @property
    def partition_rules(self) -> PartitionRules:
        """The number of multiprocessors, how they can be divided, and how many are free."""
    @property
    def priority_range(self) -> tuple[int, int]:
        """The least and the greatest priority of streams: lower numbers are higher, as (0, -5)."""
    def can_access(self, peer: _DeviceLike) -> bool:
        """Whether kernels of this device may read and write the memory of `peer` directly."""
    def enable_peer_access(self, peer: _DeviceLike) -> bool:
        """Lets kernels of this device use the memory of `peer`; whether that is possible. Copies
        use it from then on."""
    def synchronize(self, timeout: float | None = None) -> None:
        """Waits until all work of the device is done; at most `timeout` seconds. Raises what the
        work met: DeviceFault, DeviceLost; Timeout when time is up; CaptureError while a stream of
        the device is captured."""
    @property
    def lost(self) -> bool:
        """Whether a sticky error was seen: all that is done on the device raises DeviceLost."""
    def reset(self) -> None:
        """Destroys the device's context with all that is in it, for every library in the process,
        and begins a new one: after a sticky error, if the driver allows it (else DeviceLost).

        What was made on the device before raises DeviceLost from then on. Page-locked memory
        (``kw.pinned``) is unmapped: its arrays must not be touched any more.
        """
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def _attribute(self, number: int) -> int: ...

_DeviceLike = Device | int | str | None

class Event:
    """A marker in a stream: order between streams, and device time.

    >>> start, end = kw.Event(), kw.Event()
    >>> start.record(); x = kw.zeros(1000) + 1; end.record()
    >>> end.synchronize()
    >>> end.elapsed_ms(start) >= 0
    True
    """

    def __init__(self, timing: bool = True, *, device: _DeviceLike = None) -> None: ...
    @property
    def handle(self) -> int:
        """The CUevent, as an integer."""
    @property
    def device(self) -> Device:
        """The device that it belongs to."""
    @property
    def timing(self) -> bool:
        """Whether it can measure time."""
    @property
    def done(self) -> bool:
        """Whether the work that it marks is done; True before the first record(). Raises
        CaptureError for an event of a capture."""
    def record(self, stream: Any = None, *, external: bool = False) -> None:
        """Marks the work queued on `stream` (default: the current one) so far. In a capture it
        marks a place in the graph; with `external` each launch of the graph records it."""
    def synchronize(self) -> None:
        """Blocks until the marked work is done. Raises DeviceFault or DeviceLost, and CaptureError
        for an event of a capture."""
    def elapsed_ms(self, start: Event) -> float:
        """Milliseconds between `start` and this event. Both must be made with timing and done:
        InvalidArgument or DriverError otherwise. The simulated device has no clock: there the
        float says "(simulated)" when it is printed, and is the time of this machine's CPU.

        >>> start, end = kw.Event(), kw.Event()
        >>> start.record(); saxpy[1, 256](2.0, x, y, n); end.record()
        >>> end.synchronize()
        >>> end.elapsed_ms(start) >= 0
        True
        """

class Partition:
    """A set of multiprocessors that no other living partition of the device has.

    ``device.partitions()`` makes them. Kernels on its streams run there and nowhere else, and a
    graph runs where it was captured; other streams still run on the whole device. Memory, modules
    and events are shared with the device, as are caches, memory bandwidth and copies. Its streams
    and graphs keep it: the multiprocessors are free again when all of them are gone and their
    work is done. Two objects of one partition are equal.

    >>> part, = kw.current_device().partitions([16])
    >>> with part.stream():
    ...     y = kw.ones(1000) + 1
    >>> float(y.numpy().sum())
    2000.0
    """

    @property
    def sms(self) -> int:
        """The multiprocessors that it was given: at least as many as were asked for."""
    @property
    def asked(self) -> int | None:
        """The size that was asked for; None: all that were left."""
    @property
    def memory(self) -> int | None:
        """Bytes that its work may hold, for the scheduler; None: no limit."""
    @property
    def share(self) -> float:
        """The share of time that its work may run, for the scheduler."""
    @property
    def streams(self) -> int | None:
        """The number of its streams that may be alive at a time; None: no limit."""
    @property
    def live_streams(self) -> int:
        """The number of its streams that are alive."""
    @property
    def id(self) -> int:
        """A number that no other partition of the process has."""
    @property
    def device(self) -> Device:
        """The device that it is a part of."""
    def stream(self, priority: int | str = 0) -> Stream:
        """A new stream in it, with a priority as Stream() takes it. Raises PartitionError above
        the limit of streams.

        >>> part, = kw.current_device().partitions([8])
        >>> stream = part.stream("high")
        >>> stream.partition == part
        True
        """
    def smids(self) -> tuple[int, ...]:
        """The numbers of its multiprocessors (%smid), in ascending order, as a kernel saw them. Any
        may be missing while other work keeps them busy. Waits for the kernel.

        >>> part, = kw.current_device().partitions([8])
        >>> len(part.smids()) <= part.sms
        True
        """
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class Stream:
    """A queue of work on one device.

    A priority is "high", "medium" or "low" (the default), or a number of the device's
    ``priority_range``; lower numbers are higher priorities. Other numbers raise InvalidArgument. A
    higher priority begins first where work waits for multiprocessors; it stops no running block.

    `with stream:` makes it the current stream of the thread until the end of the block. Wherever a
    stream is expected, a raw handle and a stream of torch, CuPy or another library will do.

    >>> stream = kw.Stream()
    >>> with stream:
    ...     x = kw.zeros(4) + 1
    >>> stream.synchronize()
    """

    def __init__(self, priority: int | str = 0, *, device: _DeviceLike = None) -> None: ...
    @staticmethod
    def legacy(device: _DeviceLike = None) -> Stream:
        """The device's legacy default stream (handle 0)."""
    @staticmethod
    def per_thread(device: _DeviceLike = None) -> Stream:
        """The default stream of the calling thread."""
    @staticmethod
    def borrow(stream: Any, device: _DeviceLike = None) -> Stream:
        """Another library's stream as a Stream; the other library goes on owning it."""
    @property
    def handle(self) -> int:
        """The CUstream, as an integer; 0 for the legacy stream."""
    @property
    def device(self) -> Device:
        """The device that it belongs to."""
    @property
    def priority(self) -> int:
        """The priority that the device gave it, within its own range."""
    @property
    def partition(self) -> Partition | None:
        """The partition in which its kernels run; None: on the whole device."""
    @property
    def multiprocessors(self) -> int:
        """The number of multiprocessors for its kernels: the partition's, or the device's."""
    @property
    def done(self) -> bool:
        """Whether all work queued so far is done. Raises CaptureError while the stream is
        captured."""
    @property
    def is_capturing(self) -> bool:
        """Whether work is recorded into a graph instead of run."""
    def record(self, event: Event | None = None, *, external: bool = False) -> Event:
        """Marks the work queued so far by `event`, or by a new event, and returns it. `external`
        as for Event.record(). Raises InvalidArgument for an event of another device.

        >>> event = kw.Stream().record()
        >>> event.synchronize()
        >>> event.done
        True
        """
    def wait(self, event: Any) -> None:
        """Later work of this stream waits for `event`, or for the work that another stream has so
        far; the host does not wait.

        >>> first, second = kw.Stream(), kw.Stream()
        >>> with first:
        ...     a = kw.ones(8)
        >>> second.wait(first)
        >>> with second:
        ...     b = a + 1
        >>> float(b.numpy().sum())
        16.0
        """
    def synchronize(self, timeout: float | None = None) -> None:
        """Blocks until the work is done, for at most `timeout` seconds. Raises DeviceFault,
        DeviceLost or Timeout, and CaptureError while the stream is captured."""
    def __cuda_stream__(self) -> tuple[int, int]: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class GraphNode:
    """A kernel of a graph, for Graph.update(). It stays usable until a capture gives the graph
    another structure.

    >>> graph = kw.Graph()
    >>> with graph.capture():
    ...     saxpy[2, 128](2.0, x, y, n)
    >>> node = graph.nodes[0]
    >>> node.name, node.grid, node.block
    ('saxpy', (2, 1, 1), (128, 1, 1))
    """

    @property
    def index(self) -> int:
        """Its place among the graph's kernels, in the order of their launches."""
    @property
    def name(self) -> str:
        """The kernel's name; empty where another library did not tell it."""
    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks along x, y and z."""
    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of a block along x, y and z."""
    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes."""
    @property
    def signature(self) -> str | None:
        """The kernel's signature; None for a kernel of another library."""

class GraphPool:
    """Memory that several graphs use in turn: kw.Graph(pool=pool).

    Memory that a capture frees, and results that nobody holds any more, serve the later captures of
    the pool. So graphs of many batch sizes need about the memory of the largest, if that one is
    captured first. Their launches run one after another; a launch on another stream waits for the
    one before. What a launch leaves in memory of its capture is valid until the next launch of any
    graph of the pool: copy what you keep. An array that is held, by you or by a graph that reads
    it, is not given to a later capture; graphs that were captured before it was made may write
    there. The memory goes back when the pool and its graphs are gone.

    Memory of PoolResource, the default, is shared. One capture at a time: CaptureError.

    >>> pool = kw.GraphPool()
    >>> graphs = {}
    >>> for size in (1024, 512, 256):
    ...     x = kw.zeros(size)
    ...     graphs[size] = graph = kw.Graph(pool=pool)
    ...     with graph.capture():
    ...         x += (x + 1).sum()  # the memory of x + 1 is that of the other sizes, too
    >>> graphs[256].launch()
    >>> float(x[0])
    256.0
    """

    def __init__(self, *, device: _DeviceLike = None) -> None: ...
    @property
    def device(self) -> Device:
        """The device that its memory is on."""

class _CaptureScope:
    def __enter__(self) -> Stream: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

class Graph:
    """Work recorded once from a stream, and launched often.

    A graph keeps alive what it uses: kernels, arrays, memory allocated during the capture. With a
    `pool`, that memory is shared with the other graphs of the pool (see GraphPool). InvalidArgument
    for a pool of another device.

    >>> x = kw.zeros(4)
    >>> graph = kw.Graph()
    >>> with graph.capture():
    ...     x += 1
    >>> graph.launch(); graph.launch()
    >>> x.numpy().tolist()
    [2.0, 2.0, 2.0, 2.0]
    """

    def __init__(self, *, device: _DeviceLike = None, pool: GraphPool | None = None) -> None: ...
    @property
    def device(self) -> Device:
        """The device that it runs on."""
    @property
    def pool(self) -> GraphPool | None:
        """Whose memory it shares; None when it has its own."""
    @property
    def is_capturing(self) -> bool:
        """Whether a capture is going on."""
    @property
    def node_count(self) -> int:
        """Nodes of all kinds: kernels, copies, memory; 0 before the first capture."""
    @property
    def nodes(self) -> list[GraphNode]:
        """The kernels, in the order of their launches."""
    def capture(self, stream: Any = None) -> _CaptureScope:
        """A context manager: work that its block queues on `stream` is recorded, not run. Without
        a stream it takes the current one, or makes one of its own. What raises in the block
        discards the recording. CaptureError for what cannot be recorded, as a copy to the host."""
    def launch(self, stream: Any = None) -> None:
        """Queues the whole graph on `stream` (default: the current one). Raises Error before a
        capture, CaptureError into one, and where it must wait for a graph of the same pool on a
        stream that is being captured."""
    def update(self, node: GraphNode | SupportsIndex, *arguments: Any) -> None:
        """Gives a kernel other arguments, from the next launch on. `node` is one of nodes or its
        index; arguments are checked as for a launch: ArgumentError. InvalidArgument for a node of
        another graph.

        >>> graph = kw.Graph()
        >>> with graph.capture():
        ...     saxpy[1, 256](2.0, x, y, n)
        >>> graph.update(0, 10.0, x, y, n)
        >>> graph.launch()
        >>> float(y[0])
        11.0
        """
    def reset(self) -> None:
        """Drops the recording. Objects that it kept alive are released when its launches are
        done."""

class _Annotation:
    def __init__(self, name: str) -> None: ...
    def end(self) -> None: ...

class _Recording:
    def end(self) -> list[tuple[Any, ...]]: ...

class Transfer:
    """A copy on its way; `result()` waits and gives the array that was filled.

    >>> transfer = kw.TransferEngine().upload(np.arange(4.0))
    >>> transfer.wait(timeout=60)
    >>> transfer.done, transfer.result().shape
    (True, (4,))
    """

    @property
    def done(self) -> bool:
        """Whether the copy is done."""
    def wait(self, timeout: float | None = None) -> None:
        """Blocks until the copy is done, for at most `timeout` seconds: Timeout. Raises what the
        copy met."""
    def wait_on(self, stream: Any = None) -> None:
        """Later work of `stream` (default: the current one) waits for the copy; the host does
        not."""
    def result(self, timeout: float | None = None) -> Any:
        """Waits as wait() and returns the array that was filled."""

class TransferEngine:
    """Copies between host and device on streams of their own, one for each direction.

    Both directions and kernels of other streams overlap. NumPy arrays of kw.pinned() are copied
    directly, others through `chunks` page-locked pieces of `chunk_bytes` bytes that a thread fills
    and empties. A copy runs after the work of the stream `after` (default: the current one).

    Copies of one direction are of a class, `qos`: "urgent", "normal" or "best_effort". Those of
    one class keep their order. Best-effort copies go in pieces of `chunk_bytes`, two of them in
    flight, and between pieces a copy gives way to all copies of a higher class that can run.

    >>> engine = kw.TransferEngine()
    >>> x = engine.upload(np.ones(1000, np.float32)).result()
    >>> float(engine.download(x).result().sum())
    1000.0
    """

    def __init__(
        self,
        *,
        device: _DeviceLike = None,
        chunk_bytes: int = ...,
        chunks: int = 4,
        priority: int = 0,
    ) -> None: ...
    @property
    def device(self) -> Device:
        """The device that it copies from and to."""
    @property
    def upload_stream(self) -> Stream:
        """The stream of copies to the device."""
    @property
    def download_stream(self) -> Stream:
        """The stream of copies to the host."""
    def upload(
        self,
        values: npt.NDArray[Any],
        out: Array | None = None,
        *,
        after: Any = None,
        qos: str | None = None,
    ) -> Transfer:
        """Begins a copy of `values` to the device, into `out` (contiguous, same dtype and shape)
        or a new array. `values` must not change before it is done. InvalidArgument for another
        class."""
    def download(
        self,
        array: Array,
        out: npt.NDArray[Any] | None = None,
        *,
        after: Any = None,
        qos: str | None = None,
    ) -> Transfer:
        """Begins a copy of `array` to the host, into `out` (C order, same dtype and shape) or a
        new NumPy array."""

@final
class BoundKernel:
    """A kernel with its launch configuration: call it to launch, as often as you like.

    >>> launch = saxpy[1, 256]
    >>> launch(2.0, x, y, n); launch(0.5, x, y, n)
    >>> float(y[0])
    3.5
    """

    def __call__(self, *arguments: Any) -> None:
        """Launches. Asynchronous. Raises ArgumentError and ArgumentRangeError for arguments that do
        not fit the signature, LaunchConfigError for a grid or block outside the limits; nothing was
        launched then."""

class Kernel:
    """A kernel by name, compiled and loaded on a device when first needed there. kw.kernel() makes
    one.

    `kernel[grid, block](*arguments)` launches; `kernel[grid, block, stream, shared_bytes]` is
    reusable. grid counts blocks, block threads: an int or up to three. Arguments are checked
    against the signature before anything is sent: ArgumentError, ArgumentRangeError;
    LaunchConfigError for grid, block and shared memory outside the limits.

    >>> triple = kw.kernel("__global__ void triple(float* x) { x[threadIdx.x] *= 3; }")
    >>> v = kw.ones(64)
    >>> triple[1, 64](v)
    >>> float(v.numpy().sum())
    192.0
    """

    @property
    def name(self) -> str:
        """The name, as "scale" or "scale<float, 4>"."""
    @property
    def signature(self) -> str:
        """The parameters as compiled. Compiles the kernel if necessary: CompileError.

        >>> saxpy.signature
        'saxpy(float a, const float* x, float* y, int n)'
        """
    @property
    def parameters(self) -> list[Parameter]:
        """The parameters: name, type, kind, dtype, lanes, size and offset in bytes, const. Compiles
        the kernel if necessary: CompileError.

        >>> [(each.name, each.type) for each in saxpy.parameters][:2]
        [('a', 'float'), ('x', 'const float*')]
        """
    @property
    def attributes(self) -> KernelAttributes:
        """registers (a thread), shared_bytes (static, a block), local_bytes (a thread),
        constant_bytes, max_threads_per_block."""
    @property
    def ptx(self) -> str:
        """The PTX for the current device, compiled for it if the kernel runs from a cubin."""
    @property
    def cubin(self) -> bytes:
        """The object code for the current device."""
    @property
    def sass(self) -> str:
        """The machine code, disassembled. Without nvdisasm or cuobjdump it raises ImportError with
        the package to install."""
    @property
    def log(self) -> str:
        """What the compiler said; empty when it said nothing."""
    def compile(self, device: _DeviceLike = None, timeout: float | None = None) -> Kernel:
        """Compiles and loads now, for `device` (default: the current one), and returns the kernel.
        Raises CompileError with diagnostics, NvrtcNotFound where there is no compiler, and Timeout
        after `timeout` seconds.

        >>> try:
        ...     kw.kernel("__global__ void wrong(float* x) { x = y; }").compile()
        ... except kw.CompileError as error:
        ...     print(error.diagnostics[0].message)
        identifier "y" is undefined
        """
    def compile_async(self, device: _DeviceLike = None) -> CompileFuture:
        """The same in the background: a future whose result is the kernel. Its result() raises
        what compile() would.

        >>> future = saxpy.compile_async()
        >>> future.result(timeout=60) is saxpy
        True
        """
    def report(self, device: _DeviceLike = None, phases: bool = True) -> KernelReport:
        """The times of the steps to a ready kernel, the cache that had it, registers, spills,
        occupancy."""
    def _facts(self, device: _DeviceLike) -> dict[str, Any]: ...
    def _profile(self, device: _DeviceLike) -> dict[str, Any] | None: ...
    def _compile(
        self, device: _DeviceLike, timeout: float | None, stop: _Stop | None
    ) -> Kernel: ...
    def occupancy(self, block: int, shared_bytes: int = 0) -> int:
        """Blocks of `block` threads and `shared_bytes` dynamic shared memory that one
        multiprocessor holds at once. Raises LaunchConfigError outside the device's limits.

        >>> saxpy.occupancy(1024) <= saxpy.occupancy(256)
        True
        """
    def suggest_block(self, shared_bytes: int = 0) -> int:
        """The threads of a block with the highest occupancy, given dynamic shared memory in
        bytes."""
    def tuned(
        self,
        store: Any = None,
        *,
        space: Any = None,
        problem: Mapping[str, Any] | None = None,
        grid: Any = None,
        block: Any = None,
        shared_bytes: Any = None,
        cluster: Any = None,
        default: Mapping[str, Any] | None = None,
        near: bool | str | Iterable[str] = False,
        policy: str = "",
        objective: str = "time",
    ) -> Tuned:
        """Launches as a store of tuning results says for the problem at hand. Arguments as for
        kw.tune.Tuned."""
    def online(
        self,
        space: Space,
        overhead: float = 0.02,
        guard: float = 1.1,
        *,
        grid: Any,
        block: Any,
        shared_bytes: Any = 0,
        cluster: Any = None,
        problem: Mapping[str, Any] | None = None,
        default: Mapping[str, Any] | None = None,
        store: Any = None,
        rtol: float = 1e-5,
        atol: float = 1e-8,
        patience: int = 50,
        shadow_bytes: int = 268435456,
        strategy: str = "portfolio",
        seed: int = 0,
        meter: Callable[[Device], Any] = ...,
        scheduler: Any = None,
    ) -> Online:
        """Tunes while it serves, within a share of the served time. Arguments as for
        kw.tune.Online."""
    def slice(self, max_blocks: int) -> SlicedKernel:
        """The kernel with launches in runs of at most `max_blocks` blocks: launches of streams with
        a higher priority get in between. The results are the same.

        >>> saxpy.slice(2)[4, 64](2.0, x, y, n)
        """
    def yielding(self, words: Array) -> YieldingKernel:
        """The kernel with blocks that ask two uint32 `words` on the device whether to stop, and for
        their number. The next launch continues a stopped one.

        >>> words = kw.zeros(2, "uint32")
        >>> saxpy.yielding(words)[4, 64](2.0, x, y, n)
        """
    def max_cluster(self, block: int, shared_bytes: int = 0) -> int:
        """Blocks of the largest cluster of blocks of `block` threads that can run; 0 on devices
        without clusters."""
    def active_clusters(self, config: LaunchConfig) -> int:
        """Clusters of `config` that the device runs at once. LaunchConfigError on devices without
        clusters."""
    def __getitem__(
        self,
        configuration: tuple[_Extents, _Extents]
        | tuple[_Extents, _Extents, Any]
        | tuple[_Extents, _Extents, Any, SupportsIndex],
        /,
    ) -> BoundKernel:
        """The kernel with grid and block, then perhaps a stream and bytes of dynamic shared memory.
        Raises LaunchConfigError for what is no grid or block.

        >>> saxpy[2, 128, kw.Stream()](2.0, x, y, n)
        """
    def launch(self, config: LaunchConfig, /, *arguments: Any) -> None:
        """Launches with a kw.LaunchConfig. It has settings that brackets lack: clusters,
        cooperative launches, priority, programmatic dependence. Asynchronous. Raises as a launch in
        brackets.

        >>> saxpy.launch(kw.LaunchConfig(grid=2, block=128), 2.0, x, y, n)
        """
    def forall(
        self, n: _Extents, stream: Any = None, shared_bytes: SupportsIndex = 0
    ) -> BoundKernel:
        """The kernel with one thread for each of `n` elements: the block is chosen by occupancy,
        and the grid covers n. For 0 elements the launch does nothing.

        `n` may be a tuple of two or three extents in the order of a shape: `forall((h, w))` has w
        threads along x, and h along y. The last block of an axis may have threads beyond the
        extent, so the kernel compares both indices. Raises LaunchConfigError for extents below 0
        and for grids beyond the limits of CUDA (65,535 blocks along y and z).

        >>> saxpy.forall(n)(2.0, x, y, n)
        >>> ramp = kw.kernel('''__global__ void ramp(float* out, int h, int w) {
        ...     int column = blockIdx.x * blockDim.x + threadIdx.x;
        ...     int row = blockIdx.y * blockDim.y + threadIdx.y;
        ...     if (row < h && column < w) out[row * w + column] = row + column;
        ... }''')
        >>> image = kw.empty((3, 5))
        >>> ramp.forall(image.shape)(image, 3, 5)
        >>> float(image[2, 4])
        6.0
        """
    @property
    def _program(self) -> _Program | None: ...
    @property
    def _code(self) -> ObjectCode | None: ...

class checked:
    """Whether launches check their array arguments: for the whole process from now on, and as a
    context manager until the end of the block.

    Without checks a wrong dtype, device, layout or alignment of an array or a kw.Pointer reaches
    the kernel as it is; the number of arguments, their kinds and the range of numbers are always
    checked.

    >>> with kw.checked(False):
    ...     saxpy[1, 256](2.0, x, y, n)
    """

    def __init__(self, enabled: bool) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exception: object) -> None: ...

class slices:
    """Cuts the launches of a `with` block, on its thread, into runs of at most `max_blocks` blocks:
    launches of kernels and of all operations. The results are the same, in all bits.

    Launches of fewer blocks stay whole. So do launches without a way to cut them (`refused` counts
    them, `reason` tells of the last one); with `strict` they raise NotSliceable. `launches` counts
    all, `queued` their slices. `words` is the address of the words of Kernel.yielding().
    Raises InvalidArgument for 0 blocks. An object serves one block.

    >>> with kw.slices(2) as cut:
    ...     z = kw.exp(x) + y
    >>> cut.launches > 0
    True
    """

    def __init__(self, max_blocks: int, *, strict: bool = False, words: int = 0) -> None: ...
    def __enter__(self) -> slices: ...
    def __exit__(self, *exception: object) -> None: ...
    @property
    def launches(self) -> int:
        """Launches of kernels so far, whole or cut."""
    @property
    def queued(self) -> int:
        """Launches queued in their place."""
    @property
    def refused(self) -> int:
        """Launches left whole for a reason."""
    @property
    def reason(self) -> str:
        """The reason of the last one; empty without one."""

class LaunchConfig:
    """Grid, block and further settings of a launch, for Kernel.launch().

    `grid` counts blocks (of clusters, too), `block` threads, `cluster` the blocks of a cluster: an
    int or up to three. `shared_bytes` is dynamic shared memory of a block. A `cooperative` launch
    may synchronise its whole grid. With `programmatic_dependent` the kernel may begin before the
    one ahead of it in the stream has ended: it must itself wait (griddepcontrol.wait) before it
    reads the results of that one. Limits are checked at the launch: LaunchConfigError.

    >>> config = kw.LaunchConfig(grid=(4, 2), block=256, shared_bytes=1024)
    >>> kernel.launch(config, x, y, n)
    """

    def __init__(
        self,
        grid: _Extents,
        block: _Extents,
        stream: Any = None,
        shared_bytes: SupportsIndex = 0,
        cluster: _Extents | None = None,
        cooperative: bool = False,
        priority: int = 0,
        programmatic_dependent: bool = False,
        programmatic_event: Event | None = None,
        programmatic_event_at_start: bool = False,
        launch_completion_event: Event | None = None,
    ) -> None: ...
    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks along x, y and z."""
    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of a block along x, y and z."""
    @property
    def stream(self) -> Any:
        """The stream as it was given; None for the current one at the launch."""
    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes."""
    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """Blocks of a cluster along x, y and z; None without clusters."""
    @property
    def cooperative(self) -> bool:
        """Whether the grid may synchronise; all blocks must then fit on the device at once."""
    @property
    def priority(self) -> int:
        """The launch's own priority; lower numbers are higher. 0: the stream's."""
    @property
    def programmatic_dependent(self) -> bool:
        """Whether the kernel may begin before the one ahead of it in the stream has ended.

        It must then wait itself before it reads the earlier kernel's results or writes to memory
        in use there: griddepcontrol.wait, which CUDA C++ calls cudaGridDependencySynchronize()."""
    @property
    def programmatic_event(self) -> Event | None:
        """The event that is recorded when all blocks have called
        griddepcontrol.launch_dependents."""
    @property
    def programmatic_event_at_start(self) -> bool:
        """Whether that event is recorded already when all blocks have begun."""
    @property
    def launch_completion_event(self) -> Event | None:
        """The event that is recorded when all blocks have begun."""

class HostArgument:
    @property
    def array(self) -> npt.NDArray[Any]:
        """The NumPy array."""

class In(HostArgument):
    """A NumPy array that is copied to the device before a launch.

    What the kernel writes to it is lost: nothing is copied back.

    >>> saxpy[1, 256](2.0, kw.In(np.ones(256, np.float32)), y, n)
    """

    def __init__(self, array: npt.NDArray[Any]) -> None: ...

class Out(HostArgument):
    """A NumPy array that receives the kernel's output; the launch returns when it is there.

    All of it is copied back. Elements that the kernel did not write hold anything. The check `init`
    of the simulated device finds such bytes. Two arguments that are copied back must not overlap:
    ArgumentError.

    >>> ones = kw.kernel("__global__ void ones(float* out) { out[threadIdx.x] = 1; }")
    >>> values = np.empty(4, np.float32)
    >>> ones[1, 4](kw.Out(values))
    >>> values.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    def __init__(self, array: npt.NDArray[Any]) -> None: ...

class InOut(HostArgument):
    """A NumPy array that is copied to the device before a launch and back after it.

    Two arguments that are copied back must not overlap: ArgumentError.

    >>> values = np.zeros(256, np.float32)
    >>> saxpy[1, 256](2.0, x, kw.InOut(values), n)
    >>> float(values[0])
    2.0
    """

    def __init__(self, array: npt.NDArray[Any]) -> None: ...

class Pointer:
    """A raw device address as an argument. With a dtype the pointee is checked. The alignment is
    checked for a parameter that points to vectors. kw.checked(False) leaves both out.

    >>> kernel[1, 256](kw.Pointer(address, "float32"), n)
    """

    def __init__(self, address: SupportsIndex, dtype: Any = None) -> None: ...
    @property
    def address(self) -> int:
        """The address, as an integer."""
    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The type of the elements there; None where it is not known."""

class strided:
    """An array argument that need not be contiguous: the kernel gets the address of element 0.

    >>> kernel[1, 256](kw.strided(x[::2]), 2, n)
    """

    def __init__(self, array: Any) -> None: ...
    @property
    def array(self) -> Any:
        """The array as it was given."""

class ObjectCode:
    """What a compile made: code, names, signatures and the compiler's log. A value, which can be
    pickled and saved.

    Program.compile(), load(), from_ptx() and from_cubin() make one.

    >>> code = kw.Program("__global__ void f(int* x) { *x = 1; }").compile("ptx")
    >>> code.kind, list(code.kernels)
    ('ptx', ['f'])
    """

    @property
    def code(self) -> bytes:
        """The PTX or cubin as bytes."""
    @property
    def kind(self) -> str:
        """ "ptx" or "cubin"."""
    @property
    def arch(self) -> str:
        """What it was compiled for: "sm_90a", "compute_80"."""
    @property
    def log(self) -> str:
        """What the compiler said."""
    @property
    def diagnostics(self) -> list[Diagnostic]:
        """The warnings: severity, message, file, line, column."""
    @property
    def nvrtc_version(self) -> str:
        """The compiler's version, as "13.0"; empty for PTX and cubins that others made."""
    @property
    def compile_ms(self) -> float:
        """Milliseconds of the compile; 0 for PTX and cubins from elsewhere."""
    @property
    def kernels(self) -> dict[str, Kernel]:
        """The kernels by name."""
    @property
    def lowered_names(self) -> dict[str, str]:
        """The names in the object code, by the names that were asked for."""
    def kernel(self, name: str) -> Kernel:
        """A kernel by name. NameNotFound lists what is there."""
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it into a file, whole or not at all."""
    @staticmethod
    def load(path: str | os.PathLike[str]) -> ObjectCode:
        """What save() wrote. Raises Error for a damaged file."""
    @staticmethod
    def from_ptx(ptx: str | bytes | os.PathLike[str]) -> ObjectCode:
        """Of PTX: text, or a file's path. Names and signatures are read from it."""
    @staticmethod
    def from_cubin(cubin: bytes | str | os.PathLike[str]) -> ObjectCode:
        """Of a cubin: bytes, or a file's path."""
    @staticmethod
    def _of_image(image: bytes) -> ObjectCode: ...

class _Stop:
    def stop(self) -> None: ...
    @property
    def is_stopped(self) -> bool: ...

class _Program:
    def __init__(
        self,
        text: str,
        name: str,
        first_line: int,
        directory: str,
        options: ProgramOptions | None,
    ) -> None: ...
    @property
    def text(self) -> str: ...
    @property
    def source_name(self) -> str: ...
    @property
    def first_line(self) -> int: ...
    @property
    def directory(self) -> str: ...
    @property
    def options(self) -> ProgramOptions | None: ...
    @property
    def declared(self) -> list[str]: ...
    @property
    def code(self) -> ObjectCode | None: ...
    @staticmethod
    def of_code(code: ObjectCode, name: str) -> _Program: ...
    def names(self) -> list[str]: ...
    def symbol_type(
        self, name: str, device: _DeviceLike = None
    ) -> tuple[Any, tuple[int, ...], int]: ...
    def compile(
        self,
        kind: str,
        names: list[str],
        timeout: float | None = None,
        stop: _Stop | None = None,
    ) -> ObjectCode: ...
    def load(self, device: _DeviceLike, timeout: float | None, stop: _Stop | None) -> None: ...
    def kernel(self, name: str) -> Kernel: ...
    def symbol(
        self,
        name: str,
        dtype: Any,
        shape: tuple[int, ...] | None,
        device: _DeviceLike = None,
        offset: int = 0,
        strides: tuple[int, ...] | None = None,
    ) -> Array: ...

def devices() -> list[Device]:
    """All devices: the GPUs, or the simulated device where there are none.

    >>> len(kw.devices()) >= 1
    True
    """

def synchronize(timeout: float | None = None) -> None:
    """Waits until all work of the current device is done, in every stream; at most `timeout`
    seconds. Raises what the work met: DeviceFault, DeviceLost; Timeout when time is up, and
    CaptureError while a stream of the device is captured into a graph. Any thread may call it.

    >>> event = kw.Event()
    >>> y = kw.ones(3) + 1
    >>> event.record()
    >>> kw.synchronize()
    >>> event.done
    True
    """

def current_device() -> Device:
    """The device of the innermost `with device:` or `with stream:` of the thread, else the default
    one: KERNWRIGHT_DEVICE says which.

    >>> with kw.Device("sim") as device:
    ...     kw.current_device() == device
    True
    """

def current_stream(device: _DeviceLike = None) -> Stream:
    """The stream of the innermost `with stream:` of the thread, else the legacy default stream of
    `device`.

    >>> with kw.Stream() as stream:
    ...     kw.current_stream() == stream
    True
    """

def cuda_unavailable_reason() -> str: ...
def empty(shape: _Shape, dtype: Any = None, *, device: _DeviceLike = None) -> Array:
    """A new array whose elements are not set. The default dtype is that of
    get_default_dtype(). Raises
    OutOfMemory; InvalidArgument for negative extents.

    >>> kw.empty((2, 3), "float16").nbytes
    12
    """

def pinned(shape: _Shape, dtype: Any = None, *, device: _DeviceLike = None) -> npt.NDArray[Any]:
    """A NumPy array in page-locked host memory, not set: copies from and to it need no detour.
    Raises OutOfMemory.

    >>> host = kw.pinned((2, 3))
    >>> host[...] = 1
    """

def _set_worker_command(command: list[str]) -> None: ...
def driver_status() -> dict[str, Any]: ...
def nvrtc_status() -> dict[str, Any]: ...
def headers_status() -> dict[str, Any]: ...
def environment_table() -> list[Mapping[str, str]]: ...
def _attribute_numbers() -> dict[str, int]: ...
def _read_files(arrays: list[Array], places: list[tuple[int, str, int]]) -> None: ...
def _copy_pinned(array: Array, values: npt.NDArray[Any]) -> None: ...
def _write_file(file: int, name: str, array: Array) -> None: ...
def _adopt(value: Any, device: _DeviceLike = None) -> Array | None: ...
def _call_on_tensors(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    make: Callable[[tuple[int, ...], str], Any],
    device: _DeviceLike,
    stream: int,
) -> Any: ...
def _from_numpy(values: npt.NDArray[Any], device: _DeviceLike = None) -> Array: ...
def _dtype(dtype: Any) -> np.dtype[Any]: ...
def _is_basic_index(key: Any) -> bool: ...
def _reduce(
    name: str,
    x: Any,
    axis: Any,
    keepdims: bool,
    dtype: Any = None,
    parameter: float = 0.0,
    out: Array | None = None,
) -> Array: ...
def _scan(
    name: str,
    x: Any,
    axis: Any,
    dtype: Any = None,
    initial: bool = False,
    out: Array | None = None,
) -> Array: ...
def _sort(x: Any, axis: int, descending: bool) -> Array: ...
def _argsort(x: Any, axis: int, descending: bool) -> Array: ...
def _topk(x: Any, k: int, axis: int, largest: bool) -> tuple[Array, Array]: ...
def _flatnonzero(x: Any) -> Array: ...
def _nonzero(x: Any, by_element: bool) -> Array: ...
def _compress(x: Any, mask: Any) -> Array: ...
def _unique(x: Any, indices: bool, inverse: bool, counts: bool) -> tuple[Any, Any, Any, Any]: ...
def _searchsorted(x1: Any, x2: Any, right: bool, sorter: Any) -> Array: ...
def _isin(x1: Any, x2: Any, invert: bool) -> Array: ...
def _extremes(x: Any) -> npt.NDArray[Any]: ...
def _bincount(x: Any, bins: int, weights: Any) -> Array: ...
def _histogram(x: Any, edges: Any, scale: float, weights: Any, density: bool) -> Array: ...
def _cache_info() -> dict[str, Any]: ...
def _cache_list() -> list[dict[str, Any]]: ...
def _cache_verify(repair: bool) -> dict[str, Any]: ...
def _cache_clear() -> dict[str, int]: ...
def _cache_trim(limit: int) -> dict[str, int]: ...
def _pack_write(
    path: str,
    programs: list[tuple[_Program, list[str]]],
    records: list[str],
    archs: list[str],
    compiled: Callable[[int], None],
    rows: bytes,
) -> list[dict[str, Any]]: ...
def _pack_rows() -> list[tuple[str, bytes]]: ...
def _pack_read(path: str) -> list[dict[str, Any]]: ...
def _pack_use(path: str) -> None: ...
def _pack_drop(path: str) -> None: ...
def _packs_used() -> list[str]: ...

class _CheckScope:
    def __init__(self, words: list[str], limit: int) -> None: ...
    def enter(self) -> None: ...
    def leave(self) -> None: ...
    def json(self) -> str: ...
    def text(self) -> str: ...
    def texts(self) -> list[tuple[str | None, str | None]]: ...
    def total(self) -> int: ...

def _readable_name(lowered: str) -> str: ...
def _log_to(function: Callable[[str, str, float, int], None]) -> None: ...
def _close_log() -> None: ...
def _set_log_level(name: str) -> None: ...
def _log_level() -> str: ...
def _write_log_line(level: str, text: str) -> None: ...

class _Schedule:
    def __init__(self, seed: int | None) -> None: ...
    def enter(self) -> None: ...
    def leave(self) -> None: ...

class _LineProfile:
    def __init__(self, kernels: list[Kernel]) -> None: ...
    def enter(self) -> None: ...
    def leave(self) -> None: ...
    def json(self) -> str: ...
    def text(self, known: list[tuple[str, str, int]]) -> str: ...

def _line_table(
    rows: Sequence[tuple[int, ...]], total: tuple[int, ...]
) -> tuple[list[tuple[str, str]], str, list[list[str]], list[float], list[str]]: ...
def _line_cost(counts: tuple[int, ...]) -> int: ...
def _line_advice(counts: tuple[int, ...]) -> str: ...
def _shown_text(file: str, first_line: int) -> str | None: ...

class _Trace:
    def __init__(
        self,
        kernel: Kernel,
        block: tuple[int, int, int],
        thread: tuple[int, int, int],
        launch: int,
        skip: int,
        limit: int,
    ) -> None: ...
    def enter(self) -> None: ...
    def leave(self) -> None: ...
    def json(self, name: str, first_line: int) -> str: ...
    def text(
        self, name: str, text: str, first_line: int, headers: list[tuple[str, str, int]]
    ) -> str: ...

def _lines_in_file(path: str, text: str) -> list[int]: ...
def _read_source_file(path: str) -> bytes: ...
def _file_head(path: str, count: int) -> bytes: ...
def _use_recent(kernels: OrderedDict[Any, Kernel], limit: int, hints: tuple[str, ...]) -> None: ...
def _plain_kernel(source: object, name: object) -> Kernel | None: ...
def _plain_hits() -> int: ...
def _lint(program: _Program) -> list[Diagnostic]: ...
