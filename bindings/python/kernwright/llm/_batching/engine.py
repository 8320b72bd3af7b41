"""llm.Engine: one model for many users at once."""

from __future__ import annotations

import atexit
import functools
import os
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.llm._adapters.files import Adapter
from kernwright.llm._batching.delivery import Delivery
from kernwright.llm._batching.request import Progress, Request
from kernwright.llm._choice import Choice
from kernwright.llm._draft import Draft, chosen_draft
from kernwright.llm._draft_model import loaded_draft
from kernwright.llm._generate import tokens_of
from kernwright.llm._guide.words import sampling_of
from kernwright.llm._options import Generation, GenerationOptions
from kernwright.llm._size import MOST_ROWS, SAME_ROWS, EngineSize, host_bytes
from kernwright.llm._submission import Turn
from kernwright.schedule._blocks import require_scheduler

if TYPE_CHECKING:
    from kernwright.llm._model import Model

__all__ = ["Engine"]

Result = TypeVar("Result")
_MOST_SECONDS = 365 * 24 * 3600


class Engine:
    """Serves requests of many threads and event loops with one model, as one batch.

    One thread runs the steps of the batch, another turns tokens into text. Requests begin and end
    between steps, and long prompts are computed in parts.

    - max_rows: requests that run at a time, 256 (32 with `deterministic`); others wait.
    - max_tokens_per_step: tokens of a step, including those of prompts.
    - kv_memory: bytes for keys and values, a number or a text as "4GB". "auto" takes the need of
      max_rows full contexts, at most four fifths of the free memory. If this memory is full, the
      newest request of the lowest priority waits, and its tokens are computed again later.
    - prefix_cache: requests with an equal beginning share their pages.
    - host_cache: bytes of page-locked memory, a number or a text as "4GB", for copies of pages of
      the prefix cache. It is allocated at once; None allocates none.
    - queue_limit: requests that may wait; None sets no limit.
    - step_limit: the most seconds of a step. When a step takes longer, `healthy` is False, and all
      requests fail. A function of between_steps() counts as a step, with its compiling; compiling a
      model's step does not count. None sets no limit.
    - deterministic: see Model.generate(). It holds for all requests.
    - draft: "ngram", the path of a draft model, an llm.Draft, or "none"; by default the draft of
      llm.load(). It holds for all requests, and stats() has its acceptance. kv_memory includes the
      keys and values of a draft model.

    The engine has its own caches. While it runs, no other thread may call the model: use
    between_steps(). Any thread may submit requests. close(), or the end of a `with` block, ends the
    engine; so does the garbage collector. With a `scheduler`, by default the model's, each step is
    a guaranteed task. Raises OutOfMemory with the sizes that would fit.

    >>> from kernwright import llm
    >>> model = llm.load(random={
    ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    ...     "dtype": "float32", "max_position_embeddings": 64,
    ... })
    >>> with llm.Engine(model, max_rows=2) as engine:
    ...     requests = [engine.submit([token], max_tokens=3) for token in range(4)]
    ...     [len(request.result().tokens) for request in requests]
    [3, 3, 3, 3]
    """

    def __init__(
        self, model: Model, *, max_rows: int | None = None,
        max_tokens_per_step: int | None = None, kv_memory: int | str = "auto",
        prefix_cache: bool = True, queue_limit: int | None = None,
        step_limit: float | None = 300.0, deterministic: bool = False,
        draft: str | os.PathLike[str] | Draft | None = None, host_cache: int | str | None = None,
        scheduler: Any = None,
    ) -> None:  # fmt: skip
        rows = (SAME_ROWS if deterministic else MOST_ROWS) if max_rows is None else max_rows
        chosen = loaded_draft(chosen_draft(draft, model.draft, deterministic), model)
        size = EngineSize.of_memory(model, rows, kv_memory, chosen)
        self._model, self._deterministic = model, deterministic
        if queue_limit is not None:
            _require_whole("queue_limit", queue_limit, 1)
        if max_tokens_per_step is not None:
            _require_whole("max_tokens_per_step", max_tokens_per_step, 1)
        if step_limit is not None:
            _require_seconds("step_limit", step_limit)
        engine = size.engine(
            model, deterministic=deterministic, prefix_cache=prefix_cache,
            max_tokens_per_step=max_tokens_per_step, queue_limit=queue_limit,
            draft=chosen, host_cache=host_bytes(host_cache),
            scheduler=require_scheduler(scheduler),
        )  # fmt: skip
        self._delivery = Delivery(engine, queue_limit, step_limit)
        _open_engines.add(self)

    @property
    def model(self) -> Model:
        """The model that it runs."""
        return self._model

    @property
    def healthy(self) -> bool:
        """False once it was closed, or its thread has ended."""
        return self._delivery.is_open

    def submit(
        self, prompt: Any, *, priority: int = 0, user: str | None = None,
        timeout: float | None = None, cache_salt: str | None = None,
        **options: Unpack[GenerationOptions],
    ) -> Request:  # fmt: skip
        """Queues a request and returns at once. Any thread.

        `prompt` is a text or a list of tokens, `options` are those of Model.generate(); a text is
        turned into tokens here, so an event loop should leave long ones to a thread.

        - priority: requests of a higher one go first, and take rows and pages of lower ones.
        - user: within a priority, the next request is of the user with the fewest tokens computed
          lately. Requests without a name share one.
        - timeout: seconds after which the request ends, with "timeout" and the text so far.
        - cache_salt: only requests of the same salt share pages in the prefix cache: no other one
          learns from its speed whether a text was here.

        Raises ContextError, ModelError, ArgumentError and InvalidArgument as Model.generate() does,
        InvalidArgument, with what would fit, for a request that the caches could never hold,
        llm.QueueFull when `queue_limit` requests wait, and llm.EngineClosed after close() or when
        the engine's thread has ended.

        >>> from kernwright import llm
        >>> model = llm.load(random={
        ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
        ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        ...     "dtype": "float32", "max_position_embeddings": 64,
        ... })
        >>> with llm.Engine(model, max_rows=2) as engine:
        ...     engine.submit([1, 2], max_tokens=5).result().finish_reason
        'length'
        """
        generation = Generation.of(options)
        if generation.deterministic and not self._deterministic:
            raise InvalidArgument(
                "deterministic is an option of the whole engine: llm.Engine(model, "
                "deterministic=True)"
            )
        if generation.draft is not None:
            raise InvalidArgument(
                "draft is an option of the whole engine: llm.Engine(model, draft=...)"
            )
        _require_whole("priority", priority, -(2**31))
        if user is not None and not isinstance(user, str):
            raise ArgumentError(f"user is a str, got {user!r:.60}")
        if timeout is not None:
            _require_seconds("timeout", timeout)
        if cache_salt is not None and not isinstance(cache_salt, str):
            raise ArgumentError(f"cache_salt is a str, got {cache_salt!r:.60}")
        turn = Turn(priority, user or "", timeout, cache_salt or "")
        model = self._model
        tokens = tokens_of(model, prompt)
        limit = generation.limit(len(tokens), model.config.max_length)
        choices = [Choice(model, tokens, limit, generation, i) for i in range(generation.n)]
        progress = Progress(choices, len(tokens), generation.logprobs, model.sampled_tokens)
        sampling = sampling_of(model, generation, limit)
        number = self._delivery.submit(progress, tokens, sampling, turn)
        return Request(number, progress, self)

    def load_adapter(self, path: str | os.PathLike[str], name: str | None = None) -> Adapter:
        """Model.load_adapter() while the engine works: the files are read in this thread, and the
        adapter goes to its slot between two steps. Any thread. Model.unload_adapter() may be called
        as it is.

        Raises what Model.load_adapter() does, and llm.EngineClosed.

        >>> with llm.Engine(model, max_rows=2) as engine:  # model and folder of that example
        ...     adapter = engine.load_adapter(folder, "other")
        ...     engine.submit([1, 2], max_tokens=3, adapter="other").result().finish_reason
        'length'
        """
        adapters = self._model._adapters
        weights = adapters.read(path, name)
        return self.between_steps(lambda: adapters.put(weights)).result()

    def between_steps(self, function: Callable[[], Result]) -> Future[Result]:
        """Has the engine's thread call a function between two steps, when no other call of the
        model is under way: embeddings, logits of whole prompts. Any thread, returns at once.

        The current stream of the function is that of the steps, and the future gets the function's
        result once that stream has done its work: `.result()` in a thread,
        `await asyncio.wrap_future(future)` in an event loop. Functions run in the order of the
        calls, with a step between two of them where there are requests. All requests wait for a
        function, so large work should be cut into several. What it raises goes to the future alone.
        It must not wait for a request or another function of this engine.

        Raises ArgumentError for what is no function, llm.EngineClosed as submit() does; the future
        raises it where the engine ended before the function.

        >>> from kernwright import llm
        >>> model = llm.load(random={
        ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
        ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        ...     "dtype": "float32", "max_position_embeddings": 64,
        ... })
        >>> with llm.Engine(model, max_rows=2) as engine:
        ...     engine.between_steps(lambda: model.embed([1, 2, 3])).result().shape
        (32,)
        """
        if not callable(function):
            raise ArgumentError(f"between_steps() takes a function, got {function!r:.60}")
        return self._delivery.call(functools.partial(self._call, function))

    def _call(self, function: Callable[[], Result]) -> Result:
        """A method, so that the engine lives until its last function has ended."""
        return function()

    def _cancel(self, number: int, choice: int = -1, stopped: bool = False) -> None:
        self._delivery.cancel(number, choice, stopped)

    def stats(self) -> dict[str, Any]:
        """Numbers as they were after the last step. Any thread.

        running, waiting: requests; rows: texts that go on; started, finished, aborted, failed:
        requests that left the queue, where started = finished + aborted + failed + running
        (aborted: cancelled, or timed out); free_pages, used_pages, cached_pages: together all
        pages; steps, tokens, prompt_tokens, shared_tokens (of prompts, found in the prefix cache);
        host_pages (with a copy on the host), saved_pages (copied there so far), loaded_pages (and
        back); preemptions, recomputed_tokens; graphs recorded; plan_seconds, launch_seconds: of the
        host.
        """
        return self._delivery.stats()

    def close(self, timeout: float | None = None) -> None:
        """Takes no requests any more, and ends. Those in it get `timeout` seconds to end by
        themselves; what is left then ends as "cancelled". May be called again."""
        self._delivery.close(timeout)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        delivery = getattr(self, "_delivery", None)
        if delivery is not None:
            delivery.end()

    def __repr__(self) -> str:
        state = "healthy" if self.healthy else "closed"
        return f"<llm.Engine of {self._model!r}, {state}>"


def _require_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentError(f"{name} is an int, got {value!r:.60}")
    if not least <= value < 2**31:
        raise InvalidArgument(f"{name} is {least} at least and below 2^31, got {value}")


def _require_seconds(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentError(f"{name} is a number of seconds, got {value!r:.60}")
    if not 0 < value <= _MOST_SECONDS:
        raise InvalidArgument(
            f"{name} is above 0 and at most {_MOST_SECONDS} seconds, a year, got {value}"
        )


_open_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """No thread may be in a step while the interpreter ends."""
    for engine in list(_open_engines):
        engine.close()
