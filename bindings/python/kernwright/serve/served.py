"""A model that is served: its engine, and prompts for it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from kernwright import llm
from kernwright.errors import InvalidArgument
from kernwright.serve.http.errors import ApiError

__all__ = ["AdapterCard", "Served"]

Result = TypeVar("Result")


class AdapterCard(NamedTuple):
    """An adapter by the name that requests give: of which model, and from which folder."""

    name: str
    parent: str
    path: str
    created: int


@dataclasses.dataclass
class Served:
    """A model by the name that requests give, and the engine that runs it."""

    name: str
    model: llm.Model
    engine: Any
    chat_format: str | None = None
    """The format of llm.MessageParser; None where answers are plain text."""
    adapter: str | None = None
    """What calls of the model name."""

    @property
    def context(self) -> int:
        """Tokens of a prompt and its answer together."""
        return int(self.model.config.max_length)

    @property
    def tokenizer(self) -> llm.Tokenizer:
        """Raises ApiError for a model without one."""
        found = self.model.tokenizer
        if found is None:
            raise ApiError(
                400, f"{self.name} has no tokenizer: give prompts as tokens", param="prompt",
                code="no_tokenizer",
            )  # fmt: skip
        return found

    def between_steps(self, function: Callable[[], Result]) -> Result:
        """What a function that calls the model returns. The engine calls it between two steps."""
        return self.engine.between_steps(function).result()

    def prompt_tokens(
        self, prompt: str | Sequence[int], add_special_tokens: bool = True,
        last: int | None = None,
    ) -> list[int]:  # fmt: skip
        """The tokens of a prompt, a text or tokens, which fit into the context. With `last` only so
        many of the last ones count."""
        if isinstance(prompt, str):
            limit = self.context if last is None else None
            prompt = self.tokenizer.encode(
                prompt, add_special_tokens=add_special_tokens, token_limit=limit
            )
        return self.model.checked_tokens(prompt if last is None else prompt[-last:])

    def chat_tokens(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None,
        *, add_generation_prompt: bool = True, continue_final_message: bool = False,
        variables: Mapping[str, Any] | None = None, last: int | None = None,
    ) -> list[int]:  # fmt: skip
        """The tokens of a conversation, which fit into the context. With `last` only so many of the
        last ones count."""
        own = {} if not continue_final_message else {"continue_final_message": True}
        with self._files_hidden():
            tokens = self.tokenizer.encode_chat(
                messages, tools, add_generation_prompt=add_generation_prompt,
                token_limit=self.context if last is None else None, **own, **(variables or {}),
            )  # fmt: skip
        return self.model.checked_tokens(tokens if last is None else tokens[-last:])

    @contextlib.contextmanager
    def _files_hidden(self) -> Iterator[None]:
        """Errors of the chat template name the model: clients need not know where its files lie."""
        file = self.tokenizer._file
        try:
            yield
        except (InvalidArgument, llm.ModelError) as error:
            if file not in str(error):
                raise
            raise type(error)(str(error).replace(file, self.name)) from None

    def room_after(self, prompt: Sequence[int]) -> int:
        """How many tokens may follow a prompt. Raises ApiError where there is room for none."""
        left = self.context - len(prompt)
        if left < 1:
            raise ApiError(
                400, f"the prompt has {len(prompt)} tokens, and the context of {self.context} "
                "leaves no place for a new one", code="context_length_exceeded",
            )  # fmt: skip
        return left

    def token_text(self, token: int) -> tuple[str, list[int]]:
        """A token as a text of its own, and its bytes."""
        found = self.model.tokenizer
        if found is None:
            return str(token), []
        data = found.bytes(token)
        return data.decode("utf-8", "replace"), list(data)
