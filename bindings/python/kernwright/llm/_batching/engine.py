"""llm.Engine: one model for many users at once."""

from __future__ import annotations

import atexit
import weakref
from typing import TYPE_CHECKING, Any, Unpack

from kernwright.errors import InvalidArgument
from kernwright.llm._batching.delivery import Delivery
from kernwright.llm._batching.request import Progress, Request
from kernwright.llm._choice import Choice
from kernwright.llm._generate import tokens_of
from kernwright.llm._options import Generation, GenerationOptions
from kernwright.llm._size import MOST_ROWS, SAME_ROWS, EngineSize

if TYPE_CHECKING:
    from kernwright.llm._model import Model

__all__ = ["Engine"]


class Engine:
    """Serves requests of many threads and event loops with one model, as one batch.

    A thread of its own runs the steps: rows come and go between steps, and a long prompt is
    computed in parts beside the texts that go on. Another one turns tokens into text.

    - max_rows: texts that go on at a time, 256 (32 with `deterministic`); others wait.
    - max_tokens_per_step: tokens of a step, those of prompts with them.
    - kv_memory: bytes for keys and values; "auto" takes what max_rows full contexts need, but at
      most four fifths of the memory free now.
    - prefix_cache: texts that begin as earlier ones share their pages.
    - deterministic: see Model.generate(). It holds for all requests.

    The engine has caches of its own, beside those of Model.generate(). While it works no other
    thread may call the model. close(), or the end of a `with` block, ends it; an engine that nobody
    refers to ends, too. Raises OutOfMemory, which tells what would fit.

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
        prefix_cache: bool = True, deterministic: bool = False,
    ) -> None:  # fmt: skip
        rows = (SAME_ROWS if deterministic else MOST_ROWS) if max_rows is None else max_rows
        size = EngineSize.of_memory(model, rows, kv_memory)
        self._model, self._deterministic = model, deterministic
        self._delivery = Delivery(
            size.engine(
                model, deterministic=deterministic, prefix_cache=prefix_cache,
                max_tokens_per_step=max_tokens_per_step,
            )
        )  # fmt: skip
        _open_engines.add(self)

    @property
    def model(self) -> Model:
        """The model that it runs."""
        return self._model

    @property
    def healthy(self) -> bool:
        """False once it was closed, or its thread has ended."""
        return self._delivery.is_open

    def submit(self, prompt: Any, **options: Unpack[GenerationOptions]) -> Request:
        """Queues a request and returns at once. Any thread.

        `prompt` is a text or a list of tokens, `options` are those of Model.generate(); a text is
        turned into tokens here, so an event loop should leave long ones to a thread. Raises
        ContextError, ModelError, ArgumentError and InvalidArgument as Model.generate() does,
        InvalidArgument, with what would fit, for a request that the caches could never hold, and
        llm.EngineClosed after close() or when the engine's thread has ended.

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
        model = self._model
        tokens = tokens_of(model, prompt)
        limit = generation.limit(len(tokens), model.config.max_length)
        choices = [Choice(model, tokens, limit, generation, i) for i in range(generation.n)]
        progress = Progress(choices, len(tokens), generation.logprobs, model.config.vocab_size)
        sampling = generation.sampling(limit, model.eos)
        number = self._delivery.submit(progress, tokens, sampling)
        return Request(number, progress, self)

    def _cancel(self, number: int) -> None:
        self._delivery.cancel(number)

    def stats(self) -> dict[str, Any]:
        """Numbers as they were after the last step. Any thread.

        running, waiting: requests; rows: texts that go on; started, finished, aborted, failed:
        requests that left the queue, where started = finished + aborted + failed + running;
        free_pages, used_pages, cached_pages: together all pages; steps, tokens, prompt_tokens,
        shared_tokens (of prompts, found in the prefix cache); graphs recorded; plan_seconds,
        launch_seconds: of the host.
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


_open_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """No thread may be in a step while the interpreter ends."""
    for engine in list(_open_engines):
        engine.close()
