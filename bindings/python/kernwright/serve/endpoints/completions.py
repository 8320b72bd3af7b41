"""POST /v1/completions."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from kernwright import llm
from kernwright.serve.calls import Call
from kernwright.serve.http.errors import ApiError, about
from kernwright.serve.http.streaming import event
from kernwright.serve.protocol import CompletionBody
from kernwright.serve.served import Served
from kernwright.serve.server import Server
from kernwright.serve.texts.endings import Ending, Endings
from kernwright.serve.texts.forms import form_of_body
from kernwright.serve.texts.logprobs import CompletionLogprobs
from kernwright.serve.texts.prompt_logprobs import prompt_details, prompt_logprobs
from kernwright.serve.texts.prompts import prompts_of
from kernwright.serve.texts.sampling import (
    about_options,
    endings_of,
    last_tokens,
    options_of,
    require_int,
    turn_of,
)
from kernwright.serve.texts.texts import Texts
from kernwright.serve.texts.usage import StreamUsage, usage

__all__ = ["Completions"]

_USUAL_TOKENS = 16  # of a completion that says nothing, as OpenAI has it


class _Text:
    """One completion, as its tokens come."""

    def __init__(
        self, served: Served, prompt: Sequence[int], endings: Endings, has_form: bool,
        logprobs: CompletionLogprobs | None,
    ) -> None:  # fmt: skip
        self.text = ""
        self.tokens: list[int] = []
        self._told = 0
        self._ending = Ending(endings)
        self._stream = None
        if endings.needs_tokens:
            self._stream = served.tokenizer.stream(
                prompt, verbatim=has_form, skip_special_tokens=not endings.special
            )
        self.finish_reason: str | None = None
        self.logprobs = logprobs
        self.sum, self.count = 0.0, 0

    def push(self, piece: llm.Piece) -> str:
        """The text of a piece."""
        ends = piece.finish_reason == "stop" and not piece.text
        if piece.logprobs is not None and piece.token is not None:
            self.sum, self.count = self.sum + piece.logprobs.logprob, self.count + 1
            if self.logprobs is not None and not ends:
                self.logprobs.add(piece.token, piece.logprobs, len(self.text))
        self.finish_reason = piece.finish_reason
        shown = self._shown(piece)
        self.text += shown
        return shown

    def _shown(self, piece: llm.Piece) -> str:
        """The text of a piece up to a stop string; sets finish_reason."""
        ending, text = self._ending, piece.text
        if piece.token is not None:
            self.tokens.append(piece.token)
            ending.tokens += 1
            is_shown = ending.shows(piece.token, piece.finish_reason == "stop")
            if self._stream is not None:
                text = self._stream.push(piece.token) if is_shown else ""
        if piece.finish_reason is not None and self._stream is not None:
            text += self._stream.finish()
        shown = ending.push(text)
        if ending.string is not None:
            self.finish_reason = "stop"
        elif piece.finish_reason is not None:
            shown += ending.finish()
        return shown

    @property
    def stop_reason(self) -> str | int | None:
        """The stop string or the token of stop_token_ids at its end."""
        return self._ending.reason

    def new_tokens(self) -> list[int]:
        """The tokens since the last time."""
        begin, self._told = self._told, len(self.tokens)
        return self.tokens[begin:]

    @property
    def score(self) -> float:
        """The mean log-probability: what best_of chooses by."""
        return self.sum / max(self.count, 1)


class Completions:
    """The texts for one body. It is made by a worker thread: it tokenises and submits."""

    ends_with_done = True
    failure = None

    def __init__(self, server: Server, served: Served, body: CompletionBody, call: Call) -> None:
        limits = server.limits
        if body.suffix:
            raise ApiError(400, "suffix is not supported: no model here fills a gap",
                           param="suffix", code="unsupported_field")  # fmt: skip
        options = options_of(body, limits, server.defaults)
        if body.logprobs is not None:
            options["logprobs"] = require_int("logprobs", body.logprobs, 0, limits.logprobs)
        self._shown = options.get("n", 1)
        if body.best_of is not None:
            self._best_of(body, options, limits.choices)
        self._choices = options.get("n", 1)
        most = _USUAL_TOKENS if body.max_tokens is None else body.max_tokens
        require_int("max_tokens", most, 0 if body.echo else 1, 2**31)
        endings = endings_of(body, options, served.model.config.vocab_size)
        if endings.strings and served.model.tokenizer is None:
            raise ApiError(
                400, f"stop: {served.name} has no tokenizer, and its texts no strings: "
                "stop_token_ids takes tokens", param="stop", code="no_tokenizer",
            )  # fmt: skip
        form = form_of_body(body)
        options |= turn_of(body, limits) | ({} if form is None else form.options)
        found = prompts_of(body.prompt, "prompt", limits.prompts, served.context)
        special = body.add_special_tokens is not False
        last = last_tokens(body.truncate_prompt_tokens, served.context, most)
        with about("prompt"):
            prompts = [served.prompt_tokens(each, special, last) for each in found]
        as_ids = bool(body.return_tokens_as_token_ids)
        self.id, self.created = f"cmpl-{call.id}", int(time.time())
        self._name, self._call = served.name, call
        self._usage = StreamUsage(body.stream_options)
        self._texts = [
            _Text(
                served, tokens, endings, form is not None,
                None if body.logprobs is None else CompletionLogprobs(served, as_ids),
            )
            for tokens in prompts for _ in range(self._choices)
        ]  # fmt: skip
        self._returns_tokens = bool(body.return_token_ids)
        self._details = [prompt_details(served, tokens, body, limits) for tokens in prompts]
        if body.echo:
            if last is not None:
                found = list(prompts)
            self._echo(served, found, prompts, body.logprobs)
        options["max_tokens"] = most
        requests = []
        if most:
            try:
                for tokens in prompts:
                    with about_options("max_tokens"):
                        field = form.field if form else ""
                        requests.append(server.submit(served, call, tokens, options, field))
            except Exception:
                for each in requests:
                    each.cancel()
                raise
        self.texts = Texts(call, requests, self._choices)
        call.generating(served.name, sum(map(len, prompts)))

    def _best_of(self, body: CompletionBody, options: dict[str, Any], most: int) -> None:
        count = require_int("best_of", body.best_of or 0, 1, most)
        if count < self._shown:
            raise ApiError(400, f"best_of is n at least, got {count} and n={self._shown}",
                           param="best_of", code="out_of_range")  # fmt: skip
        if body.stream and count > self._shown:
            raise ApiError(400, f"best_of={count} with n={self._shown} cannot be streamed",
                           param="best_of")  # fmt: skip
        options["n"] = count
        if count > self._shown:
            options.setdefault("logprobs", 0)

    def _echo(
        self, served: Served, found: Sequence[str | list[int]], prompts: Sequence[list[int]],
        logprobs: int | None,
    ) -> None:  # fmt: skip
        """Puts each prompt before its texts."""
        for i, (given, tokens) in enumerate(zip(found, prompts, strict=True)):
            details = None
            if logprobs is not None:
                details = prompt_logprobs(served, tokens, logprobs)
            for text in self._texts[i * self._choices : (i + 1) * self._choices]:
                text.text = given if isinstance(given, str) else _decoded(served, tokens)
                if details is not None and text.logprobs is not None:
                    for token, each, at in zip(
                        tokens, details, _offsets(served, tokens), strict=True
                    ):
                        text.logprobs.add(token, each, at)

    async def whole(self) -> dict[str, Any]:
        """The body of the answer."""
        async for _ in self.texts.pushed(self._texts):
            pass
        chosen: list[tuple[_Text, dict[str, Any]]] = []
        for number, details in enumerate(self._details):
            begin = number * self._choices
            group = self._texts[begin : begin + self._choices]
            if self._shown < self._choices:
                group = sorted(group, key=lambda text: -text.score)[: self._shown]
            chosen += [(text, details) for text in group]
        choices = [
            {
                "index": i, "text": text.text,
                "logprobs": None if text.logprobs is None else text.logprobs.taken(),
                "finish_reason": text.finish_reason or "length", "stop_reason": text.stop_reason,
                **({"token_ids": text.tokens} if self._returns_tokens else {}), **details,
            }
            for i, (text, details) in enumerate(chosen)
        ]  # fmt: skip
        return {**self._head(), "choices": choices, "usage": usage(self._call)}

    async def events(self) -> AsyncIterator[bytes]:
        """An event for each token that shows text or an end; an echoed prompt comes first."""
        self._untold = set(range(len(self._texts)))  # without details of their prompts so far
        for number, text in enumerate(self._texts):
            ends = None if self.texts.open else "length"
            if text.text or ends:
                yield self._event(number, text, text.text, ends)
        async for number, text, shown in self.texts.pushed(self._texts):
            if shown or text.finish_reason is not None:
                yield self._event(number, text, shown, text.finish_reason)
        if self._usage.last:
            yield event({**self._head(), "choices": [], "usage": usage(self._call)})

    def _event(self, number: int, text: _Text, shown: str, ends: str | None) -> bytes:
        choice: dict[str, Any] = {
            "index": number, "text": shown,
            "logprobs": None if text.logprobs is None else text.logprobs.taken(),
            "finish_reason": ends,
        }  # fmt: skip
        if ends is not None:
            choice["stop_reason"] = text.stop_reason
        if self._returns_tokens:
            choice["token_ids"] = text.new_tokens()
            if number in self._untold:
                self._untold.discard(number)
                choice |= self._details[number // self._choices]
        return event({**self._head(), "choices": [choice], **self._usage.within(self._call)})

    def _head(self) -> dict[str, Any]:
        return {
            "id": self.id, "object": "text_completion", "created": self.created,
            "model": self._name,
        }  # fmt: skip


def _decoded(served: Served, tokens: Sequence[int]) -> str:
    return "" if served.model.tokenizer is None else served.model.tokenizer.decode(tokens)


def _offsets(served: Served, tokens: Sequence[int]) -> list[int]:
    """Where the text of each token of a prompt begins."""
    if served.model.tokenizer is None:
        return [0 for _ in tokens]
    stream, made, at = served.model.tokenizer.stream(), [], 0
    for token in tokens:
        made.append(at)
        at += len(stream.push(token))
    return made
