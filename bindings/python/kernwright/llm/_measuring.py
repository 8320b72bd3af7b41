"""How fast a model runs: steps of decoding, prompts, many texts at once."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from kernwright.llm._engine import TokenEngine, TokenStream
from kernwright.llm._sampling import Sampling

if TYPE_CHECKING:
    from kernwright.llm._model import Model

__all__ = ["decoding", "prompt", "throughput"]


def _prompts(model: Model, count: int, length: int) -> list[list[int]]:
    draws = np.random.default_rng(count * 65537 + length)
    made: list[list[int]] = draws.integers(0, model.config.vocab_size, (count, length)).tolist()
    return made


def _engine(model: Model, rows: int, length: int) -> TokenEngine:
    return model._generator.engine([length] * rows)


def decoding(model: Model, rows: int, context: int, steps: int = 64) -> dict[str, Any]:
    """A step of `rows` sequences that generate, with `context` tokens each before it.

    "step_ms" is the time between tokens as a caller sees it, "graph_ms" that of its graph alone,
    replayed back to back; "host_us" the host's work in a step; "nodes" the kernels of the graph.
    """
    engine = _engine(model, rows, context + 4 * steps)
    sampling = Sampling(max_tokens=4 * steps)
    streams = [engine.stream(each, sampling) for each in _prompts(model, rows, context - steps)]
    try:
        _advance(streams, steps // 2)
        before, begin = engine.stats(), time.perf_counter()
        _advance(streams, steps)
        seconds, after = time.perf_counter() - begin, engine.stats()
        host = sum(after[name] - before[name] for name in ("plan_seconds", "launch_seconds"))
        graph = engine._record(
            rows, rows, random=False, penalties=False, details=False, masks=False
        )
        bare = _replayed(graph, engine._loop.stream, steps)
    finally:
        for each in streams:
            each.close()
    return {
        "rows": rows, "context": context, "step_ms": 1e3 * seconds / steps, "graph_ms": 1e3 * bare,
        "tokens_per_second": rows * steps / seconds,
        "host_us": 1e6 * host / (after["steps"] - before["steps"]), "nodes": graph.node_count,
    }  # fmt: skip


def _advance(streams: list[TokenStream], steps: int) -> None:
    for _ in range(steps):
        for each in streams:
            next(each)


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
    """From the call to the first token behind a prompt of so many tokens, the median."""
    engine = _engine(model, 1, length + 1)
    times = []
    for each in _prompts(model, repeats + 2, length):
        begin = time.perf_counter()
        engine.run([each], Sampling(max_tokens=1))
        times.append(time.perf_counter() - begin)
    seconds = statistics.median(times[2:])
    return {"tokens": length, "ms": 1e3 * seconds, "tokens_per_second": length / seconds}


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
