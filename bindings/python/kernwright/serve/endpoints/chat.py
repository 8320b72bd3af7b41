"""POST /v1/chat/completions."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from kernwright.serve.calls import Call
from kernwright.serve.http.errors import ApiError, about
from kernwright.serve.http.streaming import event
from kernwright.serve.protocol import ChatBody
from kernwright.serve.served import Served
from kernwright.serve.server import Server
from kernwright.serve.texts.answers import Answer, Prompt
from kernwright.serve.texts.forms import AskedForm, form_of_body
from kernwright.serve.texts.messages import chat_tokens, messages_of, tools_of
from kernwright.serve.texts.prompt_logprobs import prompt_details
from kernwright.serve.texts.sampling import (
    about_options,
    endings_of,
    last_tokens,
    options_of,
    require_int,
    turn_of,
)
from kernwright.serve.texts.texts import Texts
from kernwright.serve.texts.tool_choice import choice_of
from kernwright.serve.texts.usage import StreamUsage, usage

__all__ = ["Chat"]


class Chat:
    """The answers to one body. It is made by a worker thread: it tokenises and submits."""

    ends_with_done = True
    failure = None

    def __init__(
        self, server: Server, served: Served, body: ChatBody, call: Call,
        places: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        """`places`: of the messages in a body of another interface."""
        _refuse_what_is_not_there(body)
        limits = server.limits
        options = options_of(body, limits, server.defaults)
        if body.top_logprobs is not None:
            require_int("top_logprobs", body.top_logprobs, 0, limits.logprobs)
            if not body.logprobs:
                raise ApiError(400, "top_logprobs needs logprobs: true", param="top_logprobs")
        if body.logprobs:
            options["logprobs"] = body.top_logprobs or 0
        endings = endings_of(body, options, served.model.config.vocab_size)
        tools = tools_of(body.tools, limits)
        choice = choice_of(body.tool_choice, tools)
        tools = choice.told(tools)
        messages = messages_of(body.messages, limits, places)
        field = "max_tokens" if body.max_completion_tokens is None else "max_completion_tokens"
        most: int | None = getattr(body, field)
        if most is not None:
            require_int(field, most, 1, 2**31)
        last = last_tokens(body.truncate_prompt_tokens, served.context, most or 1)
        with about("messages"):
            tokens = chat_tokens(served, messages, tools, body, body.reasoning_effort, last)
            options["max_tokens"] = served.room_after(tokens) if most is None else most
        self.id, self.created = f"chatcmpl-{call.id}", int(time.time())
        self._name, self._logprobs = served.name, bool(body.logprobs)
        self._usage = StreamUsage(body.stream_options)
        count = options.get("n", 1)
        several = body.parallel_tool_calls is not False
        form, is_forced = form_of_body(body), choice.mode == "required"
        prompt = Prompt(
            served, tokens, tools, endings, several_calls=several,
            has_form=form is not None or is_forced, is_plain=form is not None and not is_forced,
            shows_reasoning=body.include_reasoning is not False,
            names_tokens=not body.return_tokens_as_token_ids,
        )  # fmt: skip
        if is_forced:  # all of the answer is calls: it has no content of a form
            form = AskedForm("tools", choice.options(served, tools or [], prompt.end, several))
        options |= turn_of(body, limits) | ({} if form is None else form.options)
        self._is_named = choice.name is not None
        self._prompt_details = prompt_details(served, tokens, body, limits)
        self._returns_tokens = bool(body.return_token_ids)
        self._answers = [Answer(prompt) for _ in range(count)]
        with about_options(field):
            request = server.submit(served, call, tokens, options, form.field if form else "")
        self.texts = Texts(call, [request], count)
        self._call = call
        call.generating(served.name, self.texts.prompt_tokens)

    def pieces(self) -> AsyncIterator[tuple[int, Answer, dict[str, Any] | None]]:
        """For each token the number of an answer, the answer, and what the token adds."""
        return self.texts.pushed(self._answers)

    async def whole(self) -> dict[str, Any]:
        """The body of the answer."""
        async for _ in self.pieces():
            pass
        choices = [
            {
                "index": i, "message": answer.message(), "finish_reason": self._reason(answer),
                "stop_reason": answer.stop_reason,
                "logprobs": {"content": answer.logprobs, "refusal": None}
                if self._logprobs else None,
                **({"token_ids": answer.tokens} if self._returns_tokens else {}),
            }
            for i, answer in enumerate(self._answers)
        ]  # fmt: skip
        return {
            **self._head("chat.completion"), "choices": choices, "usage": usage(self._call),
            **self._prompt_details,
        }  # fmt: skip

    async def events(self) -> AsyncIterator[bytes]:
        """An event for each token that shows text, calls or an end; then the usage, if asked."""
        head = self._head("chat.completion.chunk")
        more = self._prompt_details  # in the first event alone
        async for number, answer, delta in self.pieces():
            if delta is not None:
                choice: dict[str, Any] = {
                    "index": number, "delta": delta, "finish_reason": self._reason(answer),
                    "logprobs": None,
                }  # fmt: skip
                if self._logprobs:
                    choice["logprobs"] = {"content": answer.new_logprobs(), "refusal": None}
                if answer.finish_reason is not None:
                    choice["stop_reason"] = answer.stop_reason
                if self._returns_tokens:
                    choice["token_ids"] = answer.new_tokens()
                yield event({**head, "choices": [choice], **self._usage.within(self._call), **more})
                more = {}
        if self._usage.last:
            yield event({**head, "choices": [], "usage": usage(self._call)})

    def _reason(self, answer: Answer) -> str | None:
        """As OpenAI has it: a call of the function that tool_choice names ends with "stop"."""
        found = answer.finish_reason
        return "stop" if self._is_named and found == "tool_calls" else found

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self._name}


def _refuse_what_is_not_there(body: ChatBody) -> None:
    for name in ("functions", "function_call", "audio"):
        if getattr(body, name) is not None:
            hint = "audio is not supported" if name == "audio" else "use tools and tool_choice"
            raise ApiError(400, f"{name} is not supported: {hint}", param=name,
                           code="unsupported_field")  # fmt: skip
    if body.modalities is not None and body.modalities != ["text"]:
        raise ApiError(400, f'modalities is ["text"], got {body.modalities!r:.60}',
                       param="modalities", code="unsupported_value")  # fmt: skip
    if body.continue_final_message and body.add_generation_prompt:
        raise ApiError(
            400, "continue_final_message goes on with a message and add_generation_prompt begins "
            "one: give one of them", param="continue_final_message",
        )  # fmt: skip
