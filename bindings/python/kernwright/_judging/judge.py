"""judge() and Judge: a verdict about a kernel nobody has read."""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

from kernwright import _core
from kernwright._jit.source import locate
from kernwright._judging.task import Functions, Task
from kernwright._judging.verdict import Verdict, verdict_of
from kernwright.errors import ArgumentError, InvalidArgument

_MOST_SEED = (1 << 64) - 1


def judge(
    source: str | os.PathLike[str],
    task: Task,
    *,
    baseline: str | os.PathLike[str] | None = None,
    checks: str | Sequence[str] = "all",
    timeout: float = 10.0,
    seed: int | None = None,
) -> Verdict:
    """Compiles, checks, compares and times a kernel nobody has read.

    `source` and `baseline` are CUDA C++ texts or paths. The kernel runs in worker processes: on the
    simulated device with its `checks` ("all", or some of "memory", "init", "race", "sync"), then on
    the GPU if there is one. `timeout` is in seconds, for each of compiling, checking and timing.
    Without a `seed` one is drawn, since a text written for a known one could contain the results;
    the verdict tells it, and the same seed gives the same judgement again.

    Every fault of the text is in the verdict. Warns (UserWarning) of a task that judges little:
    kernels that write zeros, one number or nothing would be accepted. Raises InvalidArgument for a
    task that cannot judge. Such a task has raising functions, values of another shape or beyond the
    argument's type, a NaN without allow=["nan"], an invalid signature or invalid options, an
    impossible launch, or a refused baseline. Thread-safe; for many at a time see Judge.

    With text and task of the example of kw.Task:

    >>> kw.judge(text, task).status
    'accepted'
    >>> kw.judge(text.replace("2 *", "3 *"), task).status
    'wrong'
    """
    return _shared().judge(
        source, task, baseline=baseline, checks=checks, timeout=timeout, seed=seed
    )


class Judge:
    """Judges for many: `workers` judgements at a time, each with a simulated device of its own; a
    GPU is used by one at a time. `device` as KERNWRIGHT_DEVICE ("sim", "cuda:1"). Thread-safe.

    A context manager: its end waits for the submitted judgements, and ends the processes.

    With text and task of the example of kw.Task:

    >>> with kw.Judge(workers=2) as judge:
    ...     futures = [judge.submit(each, task) for each in (text, text.replace("2 *", "3 *"))]
    ...     [future.result().status for future in futures]
    ['accepted', 'wrong']
    """

    def __init__(self, workers: int | None = None, *, device: str | None = None) -> None:
        count = _default_workers() if workers is None else workers
        if isinstance(count, bool) or not isinstance(count, int):
            raise ArgumentError(f"workers= is an int, got {count!r}")
        if not 0 < count <= 1024:
            raise InvalidArgument(f"a judge has 1 to 1024 workers, not {count}")
        self._judge: _core._Judge | None = _core._Judge(count, device or "")
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="kernwright-judge")
        self._workers = count

    @property
    def workers(self) -> int:
        """How many processes judge at the same time."""
        return self._workers

    @property
    def losses(self) -> int:
        """Worker processes lost so far through kernels."""
        return self._open().losses

    def judge(
        self,
        source: str | os.PathLike[str],
        task: Task,
        *,
        baseline: str | os.PathLike[str] | None = None,
        checks: str | Sequence[str] = "all",
        timeout: float = 10.0,
        seed: int | None = None,
    ) -> Verdict:
        """As kernwright.judge(), by one of this object's workers; waits for a free one."""
        own = self._open()
        text = own.judge(
            _text(source, "source"),
            _functions(task),
            task.options,
            None if baseline is None else _text(baseline, "baseline"),
            _check_words(checks),
            _seconds(timeout),
            _seed(seed),
        )
        verdict = verdict_of(text)
        for warning in verdict.warnings:
            if warning.startswith("the task"):
                warnings.warn(warning, UserWarning, stacklevel=3)
        return verdict

    def profile(
        self,
        source: str | os.PathLike[str],
        task: Task,
        *,
        case: int = 0,
        timeout: float = 10.0,
        seed: int = 0,
    ) -> list[dict[str, Any]]:
        """The cost of each line in a launch of that case on the simulated device: a dict of counts
        for each line, the one with the most instructions first. InvalidArgument for a text
        with the status "compile" or "cheating" in judge()."""
        functions = _functions(task)
        if isinstance(case, bool) or not isinstance(case, int):
            raise ArgumentError(f"case= is an int, got {case!r}")
        if not 0 <= case < task.cases:
            raise InvalidArgument(f"case= is between 0 and {task.cases - 1}, got {case}")
        text = self._open().profile(
            *(_text(source, "source"), functions, task.options),
            *(case, _seconds(timeout), _seed(seed)),
        )
        lines = [
            {"file": line["file"], "line": line["line"], **line["counts"]}
            for line in json.loads(text)["lines"]
        ]
        return sorted(lines, key=lambda line: -int(line["instructions"]))

    def submit(self, source: str | os.PathLike[str], task: Task, **options: Any) -> Future[Verdict]:
        """judge() in a thread: a future with the verdict."""
        self._open()
        return self._pool.submit(self.judge, source, task, **options)

    def close(self) -> None:
        """Waits for what was submitted, and ends the processes. A second call does nothing."""
        self._pool.shutdown(wait=True)
        self._judge = None

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> _core._Judge:
        if self._judge is None:
            raise InvalidArgument("this judge was closed: make another one")
        return self._judge


def _default_workers() -> int:
    return max(1, min(16, len(os.sched_getaffinity(0))))


def _functions(task: Any) -> Functions:
    if not isinstance(task, Task):
        raise ArgumentError(f"a task is a kw.Task, got {type(task).__name__}")
    return Functions(task)


def _text(source: Any, name: str) -> tuple[str, str]:
    if not isinstance(source, (str, os.PathLike)):
        raise ArgumentError(
            f"{name}= is CUDA C++ as a str, or a path object, got {type(source).__name__}"
        )
    if isinstance(source, str):
        text = source.encode("utf-8", "replace").decode()  # a lone surrogate is no text
        return text, "kernel.cu" if name == "source" else "baseline.cu"
    located = locate(source)
    return located.text, os.path.basename(located.name)


def _check_words(checks: Any) -> list[str]:
    words = [checks] if isinstance(checks, str) else list(checks)
    for word in words:
        if not isinstance(word, str):
            raise ArgumentError(f"checks= is a word or a list of words, got {checks!r}")
    return words


def _seconds(timeout: Any) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise ArgumentError(f"timeout= is a number of seconds, got {timeout!r}")
    if not 0.001 <= timeout <= 1e6:
        raise InvalidArgument(f"timeout= is between 0.001 and 10**6 seconds, got {timeout}")
    return float(timeout)


def drawn_seed() -> int:
    """One that no author of a text can know."""
    return int.from_bytes(os.urandom(4), "little") >> 1


def _seed(seed: Any) -> int:
    if seed is None:
        return drawn_seed()
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise ArgumentError(f"seed= is an int or None, got {seed!r}")
    number: int = seed.__index__()
    if not 0 <= number <= _MOST_SEED:
        raise InvalidArgument(f"seed= is between 0 and 2**64 - 1, got {number}")
    return number


_lock = threading.Lock()
_judge: tuple[int, Judge] | None = None


def _shared() -> Judge:
    """The one of judge(); a forked child makes its own, since workers serve one process."""
    global _judge
    with _lock:
        if _judge is None or _judge[0] != os.getpid():
            _judge = (os.getpid(), Judge(1))
        return _judge[1]
