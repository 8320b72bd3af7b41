"""Numbers for Prometheus, by vLLM's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

if TYPE_CHECKING:
    from kernwright.serve.calls import Call
    from kernwright.serve.model_slot import ModelSlot

__all__ = ["Metrics"]

_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5,
            10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0)  # fmt: skip
_BETWEEN = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75,
            1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0)  # fmt: skip
_TOKENS = tuple(float(m * 10**e) for e in range(6) for m in (1, 2, 5))
_LABEL = ["model_name"]


class Metrics:
    """Counters and histograms of calls, and gauges of the engines."""

    def __init__(self, models: Mapping[str, ModelSlot]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Engines(models))

        def counter(name: str, text: str, labels: list[str] = _LABEL) -> Counter:
            return Counter(f"vllm:{name}", text, labels, registry=self._registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"vllm:{name}", text, _LABEL, buckets=buckets, registry=self._registry)

        self._prompt = counter("prompt_tokens", "Tokens of prompts")
        self._generated = counter("generation_tokens", "Tokens generated")
        self._success = counter(
            "request_success", "Texts that ended, by reason", [*_LABEL, "finished_reason"]
        )
        self._first = histogram(
            "time_to_first_token_seconds", "From the request to its first token", _SECONDS
        )
        self._between = histogram(
            "inter_token_latency_seconds", "Between two tokens of a text", _BETWEEN
        )
        self._whole = histogram("e2e_request_latency_seconds", "Of whole requests", _SECONDS)
        self._prompt_sizes = histogram("request_prompt_tokens", "Tokens of a prompt", _TOKENS)
        self._text_sizes = histogram(
            "request_generation_tokens", "Tokens generated for a request", _TOKENS
        )
        self._answers = Counter(
            "kernwright:http_requests", "Answers by path and status", ["path", "status"],
            registry=self._registry,
        )  # fmt: skip
        self._of_tokens: dict[str | None, tuple[Counter, Histogram, Histogram]] = {}
        for name in models:  # so that rates begin at 0
            self._numbers_of(name)
            for each in (self._prompt, self._whole):
                each.labels(name)
            for reason in ("stop", "length", "tool_calls", "abort", "error"):
                self._success.labels(name, reason)

    def _numbers_of(self, model: str | None) -> tuple[Counter, Histogram, Histogram]:
        """Of a model: tokens, seconds between two, seconds until the first. To find them by their
        label for each token would take longer than to count it."""
        found = self._of_tokens.get(model)
        if found is None:
            found = (self._generated.labels(model), self._between.labels(model),
                     self._first.labels(model))  # fmt: skip
            self._of_tokens[model] = found
        return found

    def queued(self, call: Call) -> None:
        """The prompts of a call are in the queue."""
        self._prompt.labels(call.model).inc(call.prompt_tokens)
        self._prompt_sizes.labels(call.model).observe(call.prompt_tokens)

    def token(self, call: Call, since_last: float | None) -> None:
        """A token has come; None for the first of a text."""
        generated, between, first = self._numbers_of(call.model)
        generated.inc()
        if since_last is not None:
            between.observe(since_last)
        elif call.completion_tokens == 1 and call.first is not None:
            first.observe(call.first)

    def ended(self, model: str, texts: int, reason: str) -> None:
        """So many texts have ended."""
        known = ("stop", "length", "tool_calls", "error")
        self._success.labels(model, reason if reason in known else "abort").inc(texts)

    def answered(self, call: Call, path: str) -> None:
        """A call has ended; `path` is that of its route."""
        self._answers.labels(path, str(call.status)).inc()
        if call.model is not None:
            self._whole.labels(call.model).observe(call.seconds())
            self._text_sizes.labels(call.model).observe(call.completion_tokens)

    def text(self) -> bytes:
        """In the format of Prometheus."""
        return generate_latest(self._registry)


class _Engines:
    """Numbers of the engines, read when asked for."""

    def __init__(self, models: Mapping[str, ModelSlot]) -> None:
        self._models = models

    def describe(self) -> list[Any]:
        return []

    def collect(self) -> Iterator[Any]:
        stats = {
            name: {**slot.stats(), "loaded": slot.state == "loaded", "loads": slot.loads}
            for name, slot in self._models.items()
        }

        def gauge(name: str, text: str, value: Any) -> GaugeMetricFamily:
            made = GaugeMetricFamily(name, text, labels=_LABEL)
            for model, found in stats.items():
                made.add_metric([model], value(found))
            return made

        def counter(name: str, text: str, key: str) -> CounterMetricFamily:
            made = CounterMetricFamily(name, text, labels=_LABEL)
            for model, found in stats.items():
                made.add_metric([model], found[key])
            return made

        def used(found: Mapping[str, Any]) -> float:
            pages = found["used_pages"] + found["free_pages"] + found["cached_pages"]
            return float(found["used_pages"] / max(pages, 1))

        yield gauge("vllm:num_requests_running", "In the batch", lambda f: f["running"])
        yield gauge("vllm:num_requests_waiting", "In the queue", lambda f: f["waiting"])
        yield gauge("vllm:kv_cache_usage_perc", "Pages in use, 1 is all", used)
        yield counter("vllm:prefix_cache_hits", "Tokens found in the prefix cache", "shared_tokens")
        yield counter("vllm:prefix_cache_queries", "Tokens looked for there", "prompt_tokens")
        yield gauge("kernwright:host_cache_pages", "Copies on the host", lambda f: f["host_pages"])
        yield counter("kernwright:host_cache_saved_pages", "Copied to the host", "saved_pages")
        yield counter("kernwright:host_cache_loaded_pages", "Copied back", "loaded_pages")
        yield counter("vllm:num_preemptions", "Texts computed again", "preemptions")
        for name, text, key in (
            ("drafts", "Texts of steps with guesses", "drafts"),
            ("draft_tokens", "Tokens guessed", "drafted_tokens"),
            ("accepted_tokens", "Of these, the right ones", "accepted_tokens"),
        ):
            yield counter(f"vllm:spec_decode_num_{name}", text, key)
        yield gauge("kernwright:model_loaded", "1 while it is loaded", lambda f: f["loaded"])
        yield counter("kernwright:model_loads", "How often it was loaded", "loads")
        yield counter("kernwright:engine_steps", "Steps of the engine", "steps")
        for name in ("started", "finished", "aborted", "failed"):
            yield counter(f"kernwright:engine_requests_{name}", f"Requests {name}", name)
