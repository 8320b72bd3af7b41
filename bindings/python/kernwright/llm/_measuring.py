"""How fast a model runs: steps of decoding, prompts, texts, many of them at once."""

from __future__ import annotations

import copy
import dataclasses
import time
from typing import TYPE_CHECKING, Any

import numpy as np

import kernwright as kw
from kernwright._core import Array
from kernwright.llm._draft import Draft
from kernwright.llm._draft_model import loaded_draft
from kernwright.llm._engine import TokenEngine, TokenStream
from kernwright.llm._heads import Head
from kernwright.llm._sampling import Sampling
from kernwright.llm._size import SAME_ROWS
from kernwright.llm.models._layers import Parts
from kernwright.nn import Module
from kernwright.nn._packed_weight import PackedWeight
from kernwright.nn._scaled_weight import ScaledWeight

if TYPE_CHECKING:
    from kernwright.llm._model import Model

__all__ = ["decoding", "drafting", "generation", "prompt", "size", "throughput"]

_REPEATED = 1  # a token


def _prompts(model: Model, count: int, length: int) -> list[list[int]]:
    draws = np.random.default_rng(count * 65537 + length)
    made: list[list[int]] = draws.integers(0, model.config.vocab_size, (count, length)).tolist()
    return made


def _engine(model: Model, rows: int, length: int, deterministic: bool = False) -> TokenEngine:
    return model._generator.engine([length] * rows, deterministic)


def size(model: Model) -> tuple[int, int]:
    """How many numbers the weights of a model stand for, and their bytes."""
    found: dict[int, tuple[int, int]] = {}

    def note(weight: Any) -> None:
        if isinstance(weight, Array):
            found[id(weight)] = weight.size, weight.nbytes
        elif isinstance(weight, ScaledWeight):
            found[id(weight)] = weight.codes.size, weight.codes.nbytes + weight.scale.nbytes
        elif isinstance(weight, PackedWeight):
            found[id(weight)] = weight.shape[0] * weight.shape[1], weight.nbytes
        elif isinstance(weight, Parts):
            for each in weight.weights.values():
                note(each)

    for _, module in model.module.named_modules():
        for name, value in vars(module).items():
            if not name.startswith("_"):
                note(value)
    return sum(each[0] for each in found.values()), sum(each[1] for each in found.values())


def _quartiles(seconds: list[float]) -> dict[str, float]:
    """The median and the quartiles of times, in ms."""
    low, median, high = np.percentile(seconds, [25, 50, 75]) * 1e3
    return {"ms": float(median), "ms_low": float(low), "ms_high": float(high)}


def decoding(
    model: Model, rows: int, context: int, steps: int = 64, deterministic: bool = False
) -> dict[str, Any]:
    """A step of `rows` sequences that generate, with `context` tokens each before it.

    "step_ms" is the mean time between tokens as a caller sees it, "ms" the median, between the
    quartiles "ms_low" and "ms_high"; "graph_ms" the time of its graph alone, replayed back to back;
    "host_us" the host's work in a step; "nodes" the kernels of the graph.
    """
    engine = _engine(model, rows, context + 4 * steps, deterministic)
    padded = SAME_ROWS if deterministic and not engine.any_rows else rows
    sampling = Sampling(max_tokens=4 * steps)
    streams = [engine.stream(each, sampling) for each in _prompts(model, rows, context - steps)]
    try:
        _advance(streams, steps // 2)
        before = engine.stats()
        times = _advance(streams, steps)
        seconds, after = sum(times), engine.stats()
        host = sum(after[name] - before[name] for name in ("plan_seconds", "launch_seconds"))
        graph = engine._record(
            padded, padded, random=False, penalties=False, details=False, masks=False
        )
        bare = _replayed(graph, engine._loop.stream, steps)
    finally:
        for each in streams:
            each.close()
    return {
        "rows": rows, "context": context, "step_ms": 1e3 * seconds / steps, **_quartiles(times),
        "graph_ms": 1e3 * bare, "tokens_per_second": rows * steps / seconds,
        "host_us": 1e6 * host / (after["steps"] - before["steps"]), "nodes": graph.node_count,
    }  # fmt: skip


def _advance(streams: list[TokenStream], steps: int) -> list[float]:
    """Seconds of each step."""
    times = [time.perf_counter()]
    for _ in range(steps):
        for each in streams:
            next(each)
        times.append(time.perf_counter())
    return [float(each) for each in np.diff(times)]


def _replayed(graph: Any, stream: Any, count: int) -> float:
    """Seconds of a launch of a graph, of `count` back to back."""
    graph.launch(stream)
    stream.synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        graph.launch(stream)
    stream.synchronize()
    return (time.perf_counter() - begin) / count


def prompt(model: Model, length: int, repeats: int = 5) -> dict[str, Any]:
    """From the call to the first token behind a prompt of so many tokens: the median, "ms", between
    the quartiles "ms_low" and "ms_high"."""
    engine = _engine(model, 1, length + 1)
    times = []
    for each in _prompts(model, repeats + 2, length):
        begin = time.perf_counter()
        engine.run([each], Sampling(max_tokens=1))
        times.append(time.perf_counter() - begin)
    found = _quartiles(times[2:])
    return {"tokens": length, **found, "tokens_per_second": 1e3 * length / found["ms"]}


def generation(model: Model, new: int, repeats: int = 5) -> dict[str, Any]:
    """`new` tokens behind the first one of a text: the median time of a token, "ms", between the
    quartiles "ms_low" and "ms_high"."""
    engine = _engine(model, 1, new + 2)
    times = []
    for each in _prompts(model, repeats + 1, 1):
        stream = engine.stream(each, Sampling(max_tokens=new + 1))
        next(stream)
        times.append(sum(_advance([stream], new)) / new)
    found = _quartiles(times[1:])  # the first one has recorded the graph
    return {"tokens": new, **found, "tokens_per_second": 1e3 / found["ms"]}


class _Repeating(Module):
    """A model with a bias that makes all tokens one."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __call__(self, step: Any) -> Array:
        logits = self.module(step)
        bias = 100 * (kw.arange(logits.shape[1], dtype="int32") == _REPEATED).astype(logits.dtype)
        return logits + bias  # type: ignore[no-any-return]

    def hidden(self, step: Any) -> Array:
        """That of the model."""
        return self.module.hidden(step)  # type: ignore[no-any-return]

    def cache_layers(self) -> list[tuple[int, int]]:
        """Those of the model."""
        return list(self.module.cache_layers())


class _RepeatingHead:
    """A head whose highest logit is always the same."""

    def __init__(self, module: Any, highest: int) -> None:
        self._module, self._highest = module, highest

    def logits(self, states: Array) -> Array:
        """Those of the head, with a bias."""
        logits = self._module.logits(states)
        bias = 100 * (kw.arange(logits.shape[1], dtype="int32") == self._highest)
        return logits + bias.astype(logits.dtype)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _repeated_token(draft: Draft) -> int:
    """A token of the head of a draft."""
    tokens = draft.model.tokens if isinstance(draft.model, Head) else None
    return _REPEATED if tokens is None else int(tokens[0].item())


def _repeating(draft: Draft) -> Draft:
    """With a draft model, or a head, of only the repeated token."""
    model: Any = draft.model
    if isinstance(model, Head):
        made: Any = copy.copy(model)
        made.module = _RepeatingHead(model.module, _REPEATED if model.tokens is None else 0)
        return dataclasses.replace(draft, model=made)
    module = _Repeating(model.module)
    made = type(model)(
        model.config, module, memory=model.memory, cache_dtype=model.cache_format.dtype
    )
    return dataclasses.replace(draft, model=made)


def drafting(model: Model, draft: Draft, new: int, repeats: int = 5) -> dict[str, Any]:
    """`new` tokens of a text that repeats itself, with drafts and without: the median time of a
    token with them, "ms", between the quartiles "ms_low" and "ms_high", and "plain_ms" without;
    "drafted" and "accepted" tokens of a text; "times" faster. A bias makes all tokens one, those
    of a draft model or a head, too: drafts can save no more. "text_ms", "text_plain_ms",
    "text_drafted" and "text_accepted" tell the same of a text that is drawn without a bias, and
    "text_cost" by which part drafts make it slower. Of a draft model or a head "times_at" has how
    many times faster a text is at an acceptance of a draft, computed from the time of its steps.
    """
    loaded = loaded_draft(draft, model)
    assert loaded is not None

    def pair(bias: dict[int, float], temperature: float, chosen: Draft) -> tuple[Any, Any, Any]:
        """The times of a token without drafts and with them, measured in turn, and a text. Each
        turn begins with a call that makes an engine and records its graphs."""
        times: dict[bool, list[float]] = {False: [], True: []}
        for drafts in (False, True) * 2:
            for call in range(repeats + 1):
                begin = time.perf_counter()
                made = model.generate(
                    _prompts(model, 1, 32)[0], max_tokens=new, ignore_eos=True, logit_bias=bias,
                    temperature=temperature, seed=1, draft=chosen if drafts else "none",
                )  # fmt: skip
                if call > 0:
                    times[drafts].append((time.perf_counter() - begin) / new)
        return _quartiles(times[False]), _quartiles(times[True]), made

    plain, found, made = pair({}, 1.0, loaded)
    text = {
        "text_ms": found["ms"], "text_plain_ms": plain["ms"], "text_drafted": made.drafted,
        "text_accepted": made.accepted, "text_cost": found["ms"] / plain["ms"] - 1,
    }  # fmt: skip
    bias, right = {_repeated_token(loaded): 100.0}, loaded
    if loaded.model is not None:
        right = _repeating(loaded)
    plain, found, made = pair(bias, 0.0, right)
    times = plain["ms"] / found["ms"]
    if loaded.model is not None and loaded.tokens:
        whole = new / max(new - made.accepted, 1)  # tokens of a step here
        text["times_at"] = {
            f"{rate:g}": times / whole * (1 - rate ** (loaded.tokens + 1)) / (1 - rate)
            for rate in (0.5, 0.7, 0.9)
        }
    return {
        "tokens": new, **found, "plain_ms": plain["ms"], "drafted": made.drafted, "times": times,
        "accepted": made.accepted, "tokens_per_second": 1e3 / found["ms"], **text,
    }  # fmt: skip


def throughput(model: Model, count: int, length: int, new: int) -> dict[str, Any]:
    """`count` prompts of `length` tokens, `new` tokens behind each, as one call of generate(); a
    call of the same kind before it has recorded the graphs."""
    model.generate(_prompts(model, count, length), max_tokens=new, ignore_eos=True)
    prompts = _prompts(model, count + 1, length)[:count]
    begin = time.perf_counter()
    made = model.generate(prompts, max_tokens=new, ignore_eos=True)
    seconds = time.perf_counter() - begin
    tokens = sum(len(each.tokens) for each in made)
    return {
        "prompts": count, "prompt_tokens": length, "new_tokens": new, "seconds": seconds,
        "tokens_per_second": tokens / seconds,
    }  # fmt: skip
