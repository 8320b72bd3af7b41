"""Types of the extension module that are about scheduling; `kernwright.schedule` has them."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol, SupportsFloat, SupportsIndex, final

from typing_extensions import Self

from kernwright._core import Device, Partition
from kernwright.memory import EvictionGroup
from kernwright.schedule._kept import Kept

_DeviceLike = Device | int | str | None

class _Policy(Protocol):
    def choose(self, candidates: Sequence[Any], load: Any) -> Any: ...

@final
class ScheduledTask:
    """A piece of work of a scheduler, as `submit()` returns it. Its states are "pending", "queued",
    "admitted", "running", then "done", "failed", "cancelled" or "refused". Thread-safe.

    >>> with kw.schedule.Scheduler() as scheduler:
    ...     task = scheduler.submit(kw.zeros, 4, qos="best_effort")
    ...     task.result(timeout=10).shape
    (4,)
    """

    @property
    def id(self) -> int:
        """Counts the submissions of the scheduler, from 1."""
    @property
    def name(self) -> str:
        """The name given to `submit()`; "" without one."""
    @property
    def model(self) -> str:
        """The model given to `submit()`; "" without one."""
    @property
    def qos(self) -> str:
        """The class of service: "guaranteed", "burstable" or "best_effort"."""
    @property
    def state(self) -> str:
        """The state at this moment."""
    @property
    def stats(self) -> dict[str, Any]:
        """Seconds in the queue and busy on the device ("queued", "device"), the numbers of launches
        and of waits before them ("launches", "preemptions"), the bytes reserved ("bytes"), and the
        most bytes of its arrays at once ("peak"), counted for tasks with memory=."""
    @property
    def history(self) -> list[tuple[str, float, str]]:
        """Each state with its time, in seconds on the scheduler's clock, and the reason."""
    def done(self) -> bool:
        """Whether the task is over, well or not."""
    def cancelled(self) -> bool:
        """Whether it was cancelled."""
    def result(self, timeout: SupportsFloat | None = None) -> Any:
        """Waits for the end of the work on the device, and returns what the call returned.

        Raises the exception of the call; `Refused` with the reason; CancelledError of
        concurrent.futures; Timeout after `timeout` seconds; InvalidArgument in the work of a task
        that the awaited one has to wait for. Tasks in front of it run in the class of a waiting
        task, if that is more urgent.
        """
    def exception(self, timeout: SupportsFloat | None = None) -> BaseException | None:
        """Waits as `result()` does, and returns the exception instead of raising it."""
    def cancel(self) -> bool:
        """Cancels a waiting task at once, a running one at its next launch, or when its work
        returns. False when all its work is on the device already, or done; after True the task
        never ends well."""
    def add_done_callback(self, callback: Callable[[ScheduledTask], object]) -> None:
        """Calls `callback(task)` at the end, on any thread; at once when it is over already."""
    def __await__(self) -> Generator[Any, None, Any]:
        """`await task` in asyncio: the result, without blocking the event loop."""

class Scheduler:
    """Runs tasks on one device, on streams of its own with a priority for each class.

    Tasks reserve from `memory` bytes and from `share` of the device's time. Without `memory` they
    reserve from the free bytes of the device, together with all other schedulers of it; the bytes
    of a scheduler with `memory` are set apart there until it is closed. With a partition as
    `device` tasks run inside of it, and its limits of memory and share are those of the scheduler,
    unless smaller ones are given. `policy` is a name of `policies()` or an object
    with `choose(candidates, load)`, which returns a Candidate, its index or None. With
    `background=False` tasks run in `step()`, `drain()` and waits only, in an order that depends on
    nothing else. `most_running` limits the tasks of a class that run at once ({"best_effort": 2}).
    With `yields=True` long products of best-effort tasks stop for more urgent work and go on behind
    it; else they are cut into slices.

    As a context manager it is closed at the end. Thread-safe.

    >>> scheduler = kw.schedule.Scheduler(memory=2**30, background=False)
    >>> low = scheduler.submit(kw.ones, 2, qos="best_effort", name="low")
    >>> high = scheduler.submit(kw.ones, 2, name="high")
    >>> scheduler.step(), low.state, high.state
    (True, 'queued', 'done')
    >>> scheduler.explain(low)
    '"low" (task 1) (best_effort) is queued: it is next'
    """

    def __init__(
        self,
        device: _DeviceLike | Partition = None,
        memory: SupportsIndex | None = None,
        policy: str | _Policy = "default",
        *,
        share: SupportsFloat = 1.0,
        background: bool = True,
        most_running: Mapping[str, int] | None = None,
        yields: bool = False,
    ) -> None: ...
    @property
    def device(self) -> Device:
        """The device that is shared."""
    @property
    def policy(self) -> str:
        """The name of the policy, or of its class."""
    @property
    def closed(self) -> bool:
        """Whether it takes no more tasks."""
    @property
    def sms(self) -> int:
        """The multiprocessors of the device that its tasks run on."""
    def partition(
        self,
        sms: int,
        memory: SupportsIndex | None = None,
        policy: str | _Policy = "default",
        *,
        share: SupportsFloat = 1.0,
    ) -> Scheduler:
        """A scheduler of a new partition with at least `sms` multiprocessors: its tasks run there
        and nowhere else, and no other partition has them. Tasks of this scheduler still run
        everywhere.

        `memory` bytes are reserved here until it is gone; by default the partition's part of all.
        Its tasks reserve at most `share` of the device's time.
        Raises `kw.errors.PartitionError` where too few multiprocessors are left, InvalidArgument
        where too little memory is, DriverError (801) where the driver has no green contexts.

        >>> scheduler = kw.schedule.Scheduler(memory=2**30)
        >>> with scheduler.partition(8, memory=2**20) as small:
        ...     small.submit(kw.ones, 2).result().numpy().tolist()
        [1.0, 1.0]
        """
    def submit(
        self,
        work: Any,
        *arguments: Any,
        qos: str = "guaranteed",
        memory: Any = None,
        share: Any = None,
        priority: int = 0,
        deadline: SupportsFloat | None = None,
        name: str | None = None,
        model: str | None = None,
        after: Any = None,
    ) -> ScheduledTask:
        """A task that calls `work(*arguments)` with a stream of its class as the current one, or
        launches a kw.Graph. `kernel[grid, block]` with its arguments is such a call, too. The work
        goes behind what is queued on the caller's current stream.

        `memory` (bytes) and `share` (of the device's time, at most 1) are a number or (request,
        limit). Requests are reserved from admission to the end; a task that does not fit waits in
        the queue; one that can never fit is refused. `priority` orders tasks of a class, the higher
        first. `deadline` is seconds from now. Tasks of one `model` have one account of device time.
        `after` is a task or several, whose work this one goes behind.

        A guaranteed or burstable task that may begin at once runs in this thread, so a bound kernel
        is launched when this returns. Raises InvalidArgument for shares above 1, limits below
        requests and a closed scheduler; CaptureError while the current stream is captured.

        >>> double = kw.kernel("__global__ void twice(float* x) { x[threadIdx.x] *= 2; }")
        >>> x = kw.ones(4)
        >>> task = kw.schedule.Scheduler().submit(double[1, 4], x, share=(0.5, 1.0))
        >>> task.result(), x.numpy().tolist()
        (None, [2.0, 2.0, 2.0, 2.0])
        """
    def task(
        self,
        *,
        qos: str = "guaranteed",
        memory: Any = None,
        share: Any = None,
        priority: int = 0,
        deadline: SupportsFloat | None = None,
        name: str | None = None,
        model: str | None = None,
    ) -> AbstractContextManager[ScheduledTask]:
        """A `with` block whose launches, arrays and copies are one task, on a stream of the task.
        The block begins when its requests are free, behind the work of the current stream; later
        work of the stream goes behind the block.

        Options are those of submit(). The block is no part of the queue: it waits for free memory
        and shares, and while the policy holds its class back. An exception out of the block
        fails the task. Raises Refused, and InvalidArgument where no running task could give enough
        back.

        >>> scheduler = kw.schedule.Scheduler(memory=2**30)
        >>> with scheduler.task(qos="best_effort", name="step") as task:
        ...     x = kw.ones(4) + 1
        >>> task.result(), x.numpy().tolist()
        (None, [2.0, 2.0, 2.0, 2.0])
        """
    def _launches(self, **options: Any) -> AbstractContextManager[None]: ...
    def keep(self, *objects: Any, model: str, qos: str = "best_effort") -> Kept:
        """Takes the content of arrays for the tasks of `model`: while such a task runs, the same
        array objects have it on the device; between tasks it may move to the host, all of it at
        once, when an allocation of others finds no memory. It comes back bit for bit, with the next
        task or in `with kept:`; meanwhile a use of such an array raises InvalidArgument.

        `objects` are arrays, modules, optimisers, and dicts and lists of these. `qos` is the
        class of a kw.memory.EvictionGroup. The work must change the arrays in place: new arrays in
        their places are ordinary ones. Raises InvalidArgument for a model with kept arrays, and for
        an array whose memory another object has, too.

        >>> x = kw.ones(4)
        >>> with kw.schedule.Scheduler(memory=2**30) as scheduler:
        ...     kept = scheduler.keep(x, model="sum")
        ...     kept.evict(), float(scheduler.submit(kw.sum, x, model="sum").result().numpy())
        (16, 4.0)
        """
    def step(self) -> bool:
        """Runs the next task in this thread; False when none may begin now."""
    def drain(self) -> None:
        """Waits until all tasks are over and their callbacks have returned; in a callback it waits
        for the tasks alone. Raises InvalidArgument in the work of a task.
        """
    def explain(self, task: ScheduledTask) -> str:
        """Why the task is in its state: what is short for it, and who holds that."""
    def stats(self) -> dict[str, Any]:
        """The state in numbers.

        "classes" has numbers of tasks by state and seconds of device time, by class; "tenants" the
        accounts with the share asked for, and the parts "used" of the last second and "used_10ms"
        of the last 10 ms. "memory" and "share" have the total and the reserved amount, "seconds" is
        the clock.
        """
    def tasks(self) -> list[dict[str, Any]]:
        """The latest tasks: 512 of those over, in the order of their ends, then the others.

        Each has "id", "name", "model", "qos", "state", "history" and "stats" as the task, and the
        text of `explain()` as "explained".
        """
    def panel(self) -> Any:
        """A panel of rich to print: classes, accounts of device time, memory, the queue.

        >>> scheduler = kw.schedule.Scheduler(memory=2**30)
        >>> scheduler.submit(kw.ones, 3).result().shape
        (3,)
        >>> type(scheduler.panel()).__name__
        'Panel'
        """
    def trace(self) -> dict[str, Any]:
        """The latest tasks as lanes, in the format of Chrome's and Perfetto's viewers."""
    def save(self, path: Any) -> None:
        """Writes a page of HTML for a name that ends in .html, else the trace as JSON."""
    def close(self) -> None:
        """Cancels waiting tasks, and waits for running ones. Later submissions raise
        InvalidArgument."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def _keep(self, model: str, kept: _KeptArrays | None) -> None: ...
    def _reap(self) -> None: ...

@final
class _KeptArrays:
    def __init__(self, arrays: list[Any], group: EvictionGroup) -> None: ...
    def enter(self) -> None: ...
    def leave(self) -> None: ...
    def evict(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def group(self) -> EvictionGroup: ...

@final
class _BlockTask:
    def __enter__(self) -> ScheduledTask: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

@final
class _BlockLaunches:
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...

def _end_schedulers() -> None: ...
def _policy_names() -> list[str]: ...
