"""The functions of a chat, optional, forced or hidden: `tool_choice`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kernwright.errors import InvalidArgument
from kernwright.llm._guide.calls import call_grammar
from kernwright.serve.http.errors import ApiError
from kernwright.serve.served import Served

__all__ = ["ToolChoice", "choice_of"]


class ToolChoice(NamedTuple):
    """The calls of an answer by its body."""

    mode: str
    """"auto", "none" or "required"."""
    name: str | None = None
    """The function to call, of mode "required"."""

    def told(self, tools: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
        """The tools for the prompt."""
        return None if self.mode == "none" else tools

    def options(
        self, served: Served, tools: Sequence[dict[str, Any]], prompt: str, several: bool
    ) -> dict[str, Any]:
        """The options of a generation with a forced call, behind a prompt. Raises ApiError."""
        tokenizer, format = served.tokenizer, served.chat_format
        if format is None or tokenizer.chat_template is None:
            raise ApiError(
                400, f"tool_choice: answers of {served.name} are plain text, a call cannot be "
                "forced", param="tool_choice", code="unsupported_value",
            )  # fmt: skip
        functions = [tool["function"] for tool in tools]
        if self.name is not None:
            functions = [each for each in functions if each["name"] == self.name]
        try:
            grammar = call_grammar(
                format, functions, template=tokenizer.chat_template.text, prompt=prompt,
                special=tokenizer.special_tokens, several=several and self.name is None,
            )  # fmt: skip
        except InvalidArgument as error:
            raise ApiError(400, f"tools: {error}", param="tools", code="invalid_value") from None
        return {"grammar": grammar}


def choice_of(choice: Any, tools: Sequence[dict[str, Any]] | None) -> ToolChoice:
    """That of a body with these tools. Raises ApiError."""
    if choice is None or choice == "auto":
        return ToolChoice("auto")
    if choice == "none":
        return ToolChoice("none")
    name = None
    if choice != "required":
        name = _name(choice)
    if not tools:
        raise _wrong(f"{choice!r:.80} needs tools", "invalid_value")
    names = [tool["function"]["name"] for tool in tools]
    if name is not None and name not in names:
        raise _wrong(f"{name!r:.80} is none of the tools {', '.join(names):.200}", "invalid_value")
    return ToolChoice("required", name)


def _name(choice: Any) -> str:
    function = choice.get("function") if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or choice.get("type") != "function":
        raise _wrong(
            'is "auto", "none", "required" or {"type": "function", "function": {"name": ...}}, '
            f"got {choice!r:.80}", "unsupported_value",
        )  # fmt: skip
    return name


def _wrong(what: str, code: str) -> ApiError:
    return ApiError(400, f"tool_choice {what}", param="tool_choice", code=code)
