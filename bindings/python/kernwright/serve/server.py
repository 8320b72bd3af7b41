"""The common parts of all endpoints: models, bounds, and threads for long work."""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kernwright.llm._guide.compiler import compiler_of, guide_of
from kernwright.llm._guide.form import form_of
from kernwright.llm._guide.trial import require_cheap
from kernwright.serve.calls import Call
from kernwright.serve.http.errors import ApiError, about
from kernwright.serve.http.keys import Keys
from kernwright.serve.http.limits import Limits
from kernwright.serve.http.streaming import while_connected
from kernwright.serve.metrics import Metrics
from kernwright.serve.model_slot import ModelSlot
from kernwright.serve.served import AdapterCard, Served
from kernwright.serve.texts.sampling import Defaults

__all__ = ["Server"]

_LARGE = 64 * 2**10  # bytes of a body; smaller ones do not wait behind it
_WORKERS = 4
Result = TypeVar("Result")


@dataclasses.dataclass
class Server:
    """The models by their names; requests without a name get the first."""

    models: dict[str, ModelSlot]
    adapters: dict[str, AdapterCard] = dataclasses.field(default_factory=dict)
    """By names of their own."""
    adapter_folder: str | None = None
    """Clients may load adapters from it. None: they may load none."""
    limits: Limits = dataclasses.field(default_factory=Limits)
    defaults: Defaults = dataclasses.field(default_factory=Defaults)
    keys: Keys = dataclasses.field(default_factory=lambda: Keys({}))
    ignore_unknown: bool = False
    """Whether unknown fields of bodies are ignored. Else they are refused."""
    idle_seconds: float | None = None
    """After which a model without requests is unloaded; None: never."""
    draining: bool = False
    """Whether it takes no new requests, because it will end."""
    tasks: set[asyncio.Task[Any]] = dataclasses.field(default_factory=set)
    """Of the calls that run now, those of bodies."""

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.models)
        self._small, self._large, self._compiles = (
            concurrent.futures.ThreadPoolExecutor(_WORKERS, f"kernwright-{name}")
            for name in ("requests", "large-requests", "compiles")
        )
        self._turns: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()
        # One thread: a load finds the memory of the models before it given back.
        self._loads = concurrent.futures.ThreadPoolExecutor(1, "kernwright-models")

    @property
    def running(self) -> int:
        """How many calls run now."""
        return len(self.tasks)

    @property
    def is_loading(self) -> bool:
        """Whether a model is being loaded."""
        return any(each.state == "loading" for each in self.models.values())

    @property
    def healthy(self) -> bool:
        """Whether all engines run."""
        return all(each.healthy for each in self.models.values())

    async def use(self, name: str | None, call: Call, receive: Any) -> Served:
        """The model of a request, kept until the call ends. Waits while it is loaded. Raises
        ApiError, and ClientGone where the client leaves meanwhile."""
        card = self.adapters.get(name or "")
        slot = self.slot(name if card is None else card.parent)
        while (served := slot.acquire()) is None:
            loaded = slot.wait(self._loads, self.limits.load_seconds)
            await while_connected(receive, loaded, lambda reason: None, self.limits.seconds)
        call.at_end.callback(slot.release)
        if card is None:
            return served
        return dataclasses.replace(served, name=card.name, adapter=card.name)

    def unload_idle(self) -> None:
        """Has idle models unloaded."""
        if self.idle_seconds is not None:
            for each in self.models.values():
                each.unload_if_idle(self._loads, self.idle_seconds)

    def slot(self, name: str | None) -> ModelSlot:
        """The place of a request's model. Raises ApiError."""
        if name is None or name == "":
            return next(iter(self.models.values()))
        found = self.models.get(name)
        if found is None:
            names = ", ".join([*self.models, *self.adapters])
            raise ApiError(
                404, f"the model {name!r:.100} is not here; there is {names}",
                param="model", code="model_not_found",
            )  # fmt: skip
        return found

    async def in_thread(self, size: int, work: Callable[[], Result]) -> Result:
        """The result of work on a body of so many bytes, done beside the event loop."""
        pool = self._large if size > _LARGE else self._small
        return await asyncio.get_running_loop().run_in_executor(pool, work)

    async def in_turn(self, call: Call, work: Callable[[], Result]) -> Result:
        """As in_thread(), for work with a compile. Each client has one at a time, and other work
        has other threads."""
        turn = self._turns.setdefault(call.user or call.client.rpartition(":")[0], asyncio.Lock())
        await turn.acquire()
        future = asyncio.get_running_loop().run_in_executor(self._compiles, work)
        future.add_done_callback(lambda _: turn.release())
        return await asyncio.shield(future)

    def submit(
        self, served: Served, call: Call, tokens: Sequence[int], options: dict[str, Any],
        form_field: str = "",
    ) -> Any:  # fmt: skip
        """A request in the engine's queue, in which keys have even shares. Raises as
        llm.Engine.submit(), and ApiError, with `form_field`, for a wrong form or one of too much
        work."""
        with about(form_field):
            form, model = form_of(options), served.model
            if form is not None:
                if model.tokenizer is not None:
                    compiler = compiler_of(model.tokenizer, model.config.vocab_size, model.eos)
                    require_cheap(compiler, form)
                guide_of(model, form)
        if served.adapter is not None:
            options = {**options, "adapter": served.adapter}
        return served.engine.submit(list(tokens), user=call.user, **options)

    def close(self) -> None:
        """Ends the engines and the threads."""
        for each in self.models.values():
            each.close()
        for pool in (self._small, self._large, self._compiles, self._loads):
            pool.shutdown(wait=False, cancel_futures=True)
