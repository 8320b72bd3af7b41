"""Kernels cut into slices, and kernels with blocks to be stopped."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from kernwright import _core
from kernwright.errors import ArgumentError, InvalidArgument

if TYPE_CHECKING:
    from kernwright import Array, Kernel, LaunchConfig

MOST_BLOCKS = 2**31 - 1


class CutKernel:
    """The common part of SlicedKernel and YieldingKernel: the brackets of a kernel, whose launches
    are cut as kw.slices(most, **options) does."""

    def __init__(self, kernel: Kernel, most: int, **options: Any) -> None:
        self.kernel, self._most, self._options = kernel, most, options

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.kernel.name

    @property
    def signature(self) -> str:
        """The parameters of the kernel and of its launches."""
        return self.kernel.signature

    def __getitem__(self, configuration: Any) -> BoundCut:
        return BoundCut(self, self.kernel[configuration])

    def launch(self, config: LaunchConfig, /, *arguments: Any) -> None:
        """Launches with a kw.LaunchConfig, as Kernel.launch()."""
        with self._scope():
            self.kernel.launch(config, *arguments)

    def _scope(self) -> _core.slices:
        return _core.slices(self._most, strict=True, **self._options)


class BoundCut:
    """A grid and a block bound once, called many times."""

    def __init__(self, cut: CutKernel, bound: Any) -> None:
        self.cut = cut
        self.bound = bound

    def __call__(self, *arguments: Any) -> None:
        with self.cut._scope():
            self.bound(*arguments)

    def __repr__(self) -> str:
        return f"{self.cut!r}: {self.bound!r}"


class SlicedKernel(CutKernel):
    """A kernel with launches in runs of at most `max_blocks` blocks, one after the other on the
    launch's stream. Kernel.slice() makes it.

    The result equals one whole launch in all bits; blocks read the `blockIdx` and `gridDim` of the
    whole grid. Between two slices the device runs launches of other streams with a higher priority.
    Launches raise the errors of the kernel, and NotSliceable with the reason. Thread-safe.

    >>> fill = kw.kernel("__global__ void fill(int* x) { x[blockIdx.x] = gridDim.x; }")
    >>> x = kw.zeros(10, "int32")
    >>> fill.slice(4)[10, 1](x)                # blocks 0 to 3, 4 to 7, 8 and 9
    >>> int(x.numpy().sum())
    100
    """

    def __init__(self, kernel: Kernel, max_blocks: int) -> None:
        try:
            self.max_blocks = operator.index(max_blocks)
        except TypeError:
            kind = type(max_blocks).__name__
            raise ArgumentError(f"slice(max_blocks): a number of blocks, got a {kind}") from None
        if not 1 <= self.max_blocks <= MOST_BLOCKS:
            raise InvalidArgument(f"slice(max_blocks): 1 to {MOST_BLOCKS} blocks, got {max_blocks}")
        super().__init__(kernel, self.max_blocks)

    def __repr__(self) -> str:
        return f"<{self.kernel.name} in slices of {self.max_blocks} blocks>"


class YieldingKernel(CutKernel):
    """A kernel with blocks that ask before they begin whether to stop. Kernel.yielding() makes it.

    `words` are two numbers of uint32 on the device, zeros before the first launch: the order to
    stop, and the next block of the grid. Blocks take the grid's blocks in order. Once words[0] is
    not 0, each new block ends at once; the running ones complete. The same launch again, with
    words[0] = 0, runs the blocks left, and nothing when all blocks have run. Then the result equals
    one whole launch in all bits. Set words[1] = 0 for the next work.

    Launches raise the errors of the kernel, and NotSliceable with the reason. One work at a time
    may use the words.

    >>> fill = kw.kernel("__global__ void fill(int* x) { x[blockIdx.x] = gridDim.x; }")
    >>> x, words = kw.zeros(10, "int32"), kw.asarray(np.array([1, 0], "uint32"))
    >>> fill.yielding(words)[10, 1](x)         # told to stop: no block runs
    >>> words[0] = 0
    >>> fill.yielding(words)[10, 1](x)
    >>> int(x.numpy().sum()), words.numpy().tolist()[0]
    (100, 0)
    """

    def __init__(self, kernel: Kernel, words: Array) -> None:
        if not isinstance(words, _core.Array):
            kind = type(words).__name__
            raise ArgumentError(f"yielding(words): an array of 2 uint32 numbers, got a {kind}")
        if words.dtype != "uint32" or math.prod(words.shape) < 2 or words.ndim != 1:
            raise InvalidArgument(
                f"yielding(words): an array of 2 uint32 numbers, got {words.dtype} {words.shape}"
            )
        if words.strides[0] != 4:
            raise InvalidArgument("yielding(words): the numbers must lie together")
        self.words = words
        super().__init__(kernel, MOST_BLOCKS, words=words.ptr)

    def __repr__(self) -> str:
        return f"<{self.kernel.name}, yielding>"


def slice_blocks(
    blocks: int,
    launch_us: float,
    latency_us: float,
    *,
    device: Any = None,
    resident_blocks: int = 1,
) -> int:
    """The blocks of a slice of about `latency_us`, for a grid of `blocks` blocks with a measured
    time of `launch_us` microseconds.

    All blocks count as equal: there are ceil(1.3 * launch_us / latency_us) slices, of whole rounds
    over the multiprocessors of `device` (default: the current one) with `resident_blocks` on each
    (Kernel.occupancy() tells). The answer is `blocks`, for a launch left whole, where one slice is
    enough or a slice would leave multiprocessors idle. Raises InvalidArgument for numbers not above
    0.

    >>> kw.slice_blocks(4, 1000.0, 50.0)       # fewer blocks than multiprocessors
    4
    """
    chosen = _core.current_device() if device is None else device
    if not isinstance(chosen, _core.Device):
        chosen = _core.Device(chosen)
    count = chosen.attributes["multiprocessor_count"]
    return _core._slice_blocks(blocks, launch_us, latency_us, count, resident_blocks)
