"""Models of the command line, with their engines."""

from __future__ import annotations

import argparse
import weakref
from collections.abc import Callable, Mapping

from kernwright import llm
from kernwright.errors import Error, InvalidArgument, StoreError
from kernwright.llm._load import Plan
from kernwright.llm._parse.formats import FORMATS
from kernwright.llm._size import PAGE, SHARE
from kernwright.llm._weights.available import available_bytes
from kernwright.serve.http.log import log
from kernwright.serve.served import AdapterCard, Served

__all__ = ["Loader", "warm_up"]

_SHORT = PAGE - 2  # tokens: with the new ones they fill no page, which would be kept
_LONG = 2048  # as many as a step computes at a time


class Loader:
    """Loads models by their names, one at a time.

    Where no bytes of keys and values are given, models share evenly the memory beside all weights.
    Where the weights do not fit together, a model takes all free memory.
    """

    def __init__(
        self, arguments: argparse.Namespace, plans: Mapping[str, Plan], kv_memory: int | str,
        load: Callable[[str], llm.Model], adapters: dict[str, AdapterCard] | None = None,
    ) -> None:  # fmt: skip
        self._arguments, self._plans, self._kv_memory = arguments, plans, kv_memory
        self._load, self._adapters = load, {} if adapters is None else adapters
        self._loaded: set[str] = set()  # names of models that were loaded once
        self._engines: weakref.WeakValueDictionary[str, llm.Engine] = weakref.WeakValueDictionary()

    def load(self, name: str) -> Served:
        """A model with its adapters, and its engine. Raises what llm.load(), load_adapter() and
        llm.Engine() raise."""
        arguments, model = self._arguments, self._load(name)
        for card in list(self._adapters.values()):
            if card.parent == name:
                self._load_adapter(model, card)
        self._loaded.add(name)
        engine = llm.Engine(
            model, max_rows=arguments.max_rows,
            max_tokens_per_step=arguments.max_tokens_per_step, kv_memory=self._share(name, model),
            prefix_cache=not arguments.no_prefix_cache, deterministic=arguments.deterministic,
            queue_limit=arguments.queue_limit, step_limit=arguments.step_limit,
            draft=self._draft(name), host_cache=arguments.host_cache,
        )  # fmt: skip
        self._engines[name] = engine
        if not arguments.no_warm_up:
            warm_up(engine, name)
        return Served(name, model, engine, _chat_format(arguments.chat_format, model))

    def _draft(self, name: str) -> llm.Draft | None:
        """A draft model is for the first model alone: others have vocabularies of their own."""
        draft: llm.Draft | None = self._arguments.draft
        is_first = name == next(iter(self._plans), name)
        return draft if draft is None or not draft.has_model or is_first else None

    def _load_adapter(self, model: llm.Model, card: AdapterCard) -> None:
        """Of a model that requests wait for, an adapter whose files are gone is left out."""
        try:
            model.load_adapter(card.path, card.name)
        except (llm.ModelError, StoreError) as error:
            if card.parent not in self._loaded and not self._arguments.lazy:
                raise
            log.error("%s is no longer served: %s", card.name, error)
            self._adapters.pop(card.name, None)

    def _share(self, name: str, model: llm.Model) -> int | str:
        if self._kv_memory != "auto":
            return self._kv_memory
        others = [
            plan.device_bytes
            for other, plan in self._plans.items()
            if other != name and not self._runs(other)
        ]
        draft = self._plans[name].draft  # its weights are loaded with the engine
        left = available_bytes(model.device) - sum(others)
        left -= 0 if draft is None else draft.device_bytes
        return int(SHARE * left / (1 + len(others))) if others and left > 0 else "auto"

    def _runs(self, name: str) -> bool:
        engine = self._engines.get(name)
        return engine is not None and engine.healthy


def warm_up(engine: llm.Engine, name: str) -> None:
    """Compiles and records what first requests of a model need, so that they take no longer than
    later ones: a short prompt, and on a GPU a long one and greedy tokens. What fails is logged."""
    model = engine.model
    asked: list[tuple[int, float]] = [(_SHORT, 1.0)]
    if not model.device.is_simulated:
        stats = engine.stats()
        long = min(model.config.max_length // 2, stats["free_pages"] * PAGE // 2, _LONG)
        asked += [(_SHORT, 0.0), (max(long, 1), 1.0)]
    for length, temperature in asked:
        try:
            engine.submit(
                [0] * length, max_tokens=2, temperature=temperature, ignore_eos=True
            ).result()
        except Error as error:
            log.warning("the warm-up of %s failed: %s", name, error)
            return


def require_chat_format(name: str) -> None:
    """Raises InvalidArgument for an unknown one."""
    if name not in ("auto", "none", *FORMATS):
        raise InvalidArgument(
            f"--chat-format is auto, none, {', '.join(sorted(FORMATS))}; got {name!r:.40}"
        )


def _chat_format(name: str, model: llm.Model) -> str | None:
    """The format of llm.MessageParser."""
    template = None if model.tokenizer is None else model.tokenizer.chat_template
    if name == "none" or template is None:
        return None
    return llm.MessageParser.format_of(template.text) if name == "auto" else name
