"""Chat templates: how the messages of a conversation become a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.llm._chat.builtin import TEMPLATES, fitting
from kernwright.llm._chat.memory import TooMuchWork
from kernwright.llm._chat.messages import plain, plain_messages, plain_tools
from kernwright.llm._chat.sandbox import counting, make_environment, render_tracked
from kernwright.llm._errors import ModelError
from kernwright.llm._fields import import_extra

if TYPE_CHECKING:
    from kernwright.llm._text.source import Source

__all__ = ["ChatTemplate"]

_MARK = "KERNWRIGHT CONTINUES HERE "


class ChatTemplate:
    """A template of jinja2: it writes messages as a model expects them.

    `template` is its text, one of `ChatTemplate.names()`, or a dictionary of texts by name:
    "tool_use" is taken where there are tools, "default" else. `variables` are seen by
    the template in each text: bos_token, eos_token, ... Templates run as in transformers: in a
    sandbox, with `trim_blocks`, `lstrip_blocks`, loop controls, `tojson`, `strftime_now`,
    `raise_exception` and `{% generation %}`. Steps and memory of a text are bounded.
    Needs ``pip install 'kernwright[llm]'``. Raises ModelError for a text with wrong syntax.

    >>> from kernwright import llm
    >>> text = "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}"
    >>> template = llm.ChatTemplate(text)
    >>> template.render([{"role": "user", "content": "Hi"}])
    '[user] Hi'
    """

    def __init__(
        self,
        template: str | Mapping[str, str],
        *,
        file: str = "the chat template",
        **variables: Any,
    ) -> None:
        if isinstance(template, str):
            template = {"default": TEMPLATES.get(template, template)}
        if not isinstance(template, Mapping) or not all(
            isinstance(each, str) for pair in template.items() for each in pair
        ):
            raise ArgumentError(f"a template is a text or texts by name, got {template!r:.80}")
        if not template:
            raise InvalidArgument("there are no templates")
        self._texts = dict(template)
        self._file = file
        self.variables = plain(variables)
        for name in self._texts:
            self._compiled(name)

    @staticmethod
    def names() -> list[str]:
        """The names of the built-in templates.

        >>> from kernwright import llm
        >>> llm.ChatTemplate.names()
        ['chatml', 'gemma', 'llama2', 'llama3', 'mistral']
        """
        return sorted(TEMPLATES)

    @cached_property
    def text(self) -> str:
        """The template for messages without tools."""
        return self._texts.get("default", next(iter(self._texts.values())))

    def __repr__(self) -> str:
        return f"llm.ChatTemplate({self.text!r:.60}, file={self._file!r})"

    def render(
        self,
        messages: Iterable[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        documents: Sequence[Mapping[str, Any]] | None = None,
        name: str | None = None,
        **variables: Any,
    ) -> str:
        """The text of a conversation.

        `messages` are dictionaries with "role" and "content", and further fields of the template
        ("tool_calls", "reasoning_content", ...); None is left out. `tools` are JSON schemas.
        `add_generation_prompt` ends the text where the assistant begins;
        `continue_final_message` ends it within the last message, for the model to go on.
        `name` chooses one of several templates. Further variables go to the template.
        Raises InvalidArgument where the template refuses the messages, ModelError where it fails.

        >>> from kernwright import llm
        >>> hello = [{"role": "user", "content": "Hi"}]
        >>> llm.ChatTemplate("chatml").render(hello, add_generation_prompt=True)
        '<|im_start|>user\\nHi<|im_end|>\\n<|im_start|>assistant\\n'
        """
        made = plain_messages(messages)
        if continue_final_message:
            if add_generation_prompt:
                raise InvalidArgument(
                    "add_generation_prompt begins a message and continue_final_message goes on "
                    "with one: pass one of them"
                )
            self._mark_last(made)
        seen = self._variables(made, tools, documents, add_generation_prompt, variables)
        template = self._compiled(self._choose(name, tools))
        text: str = self._run(lambda: template.render(**seen))
        return self._cut(text, made[-1]["content"]) if continue_final_message else text

    def generation_ranges(
        self,
        messages: Iterable[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        name: str | None = None,
        **variables: Any,
    ) -> tuple[str, list[tuple[int, int]]]:
        """The text of a conversation, and the ranges of the words of the assistant: between
        `{% generation %}` and `{% endgeneration %}` of the template.

        >>> from kernwright import llm
        >>> text = "A: {% generation %}{{ messages[0].content }}{% endgeneration %}"
        >>> template = llm.ChatTemplate(text)
        >>> template.generation_ranges([{"role": "assistant", "content": "Hi"}])
        ('A: Hi', [(3, 5)])
        """
        made = plain_messages(messages)
        seen = self._variables(made, tools, None, False, variables)
        template = self._compiled(self._choose(name, tools))
        found: tuple[str, list[tuple[int, int]]] = self._run(lambda: render_tracked(template, seen))
        return found

    def _variables(
        self,
        messages: list[dict[str, Any]],
        tools: Any,
        documents: Any,
        add_generation_prompt: bool,
        variables: dict[str, Any],
    ) -> dict[str, Any]:
        return {
            **self.variables,
            **plain(variables),
            "messages": messages,
            "tools": plain_tools(tools),
            "documents": None if documents is None else [plain(each) for each in documents],
            "add_generation_prompt": bool(add_generation_prompt),
        }

    def _choose(self, name: str | None, tools: Any) -> str:
        if name is None:
            name = "tool_use" if tools is not None and "tool_use" in self._texts else "default"
            if name not in self._texts and len(self._texts) == 1:
                name = next(iter(self._texts))
        if name not in self._texts:
            raise InvalidArgument(
                f"{self._file} has no template {name!r}; pass name= with one of "
                + ", ".join(sorted(self._texts))
            )
        return name

    def _compiled(self, name: str) -> Any:
        jinja2 = import_extra("jinja2", "llm.ChatTemplate")
        where = self._file if name == "default" else f"{self._file}, template {name!r}"
        try:
            return _compile(self._texts[name])
        except jinja2.TemplateSyntaxError as error:
            raise ModelError(f"{where}: line {error.lineno}: {error.message}") from None
        except (RecursionError, MemoryError, SyntaxError, ValueError, OverflowError) as error:
            raise ModelError(f"{where} cannot be compiled: {error}") from None

    def _run(self, render: Any) -> Any:
        jinja2 = import_extra("jinja2", "llm.ChatTemplate")
        try:
            with counting():
                return render()
        except TooMuchWork as error:
            raise ModelError(f"{self._file} is stopped: {error}") from None
        except jinja2.exceptions.SecurityError as error:
            raise ModelError(f"{self._file} does what the sandbox forbids: {error}") from None
        except jinja2.TemplateRuntimeError as error:  # with undefined names
            raise ModelError(f"{self._file} fails: {error}") from None
        except jinja2.TemplateError as error:
            raise InvalidArgument(f"{self._file} refuses the messages: {error}") from None
        except Exception as error:
            raise ModelError(f"{self._file} fails: {type(error).__name__}: {error}") from None

    def _mark_last(self, messages: list[dict[str, Any]]) -> None:
        content = messages[-1].get("content")
        if isinstance(content, list):  # of parts: the last text is gone on with
            for part in reversed(content):
                if isinstance(part, dict) and isinstance(part.get("text"), str):
                    part["text"] += _MARK
                    return
        if not isinstance(content, str):
            raise InvalidArgument("continue_final_message: the last message has no text to go on")
        messages[-1]["content"] = content + _MARK

    def _cut(self, text: str, content: Any) -> str:
        at = text.rfind(_MARK.strip())
        if at < 0:
            raise InvalidArgument(
                f"continue_final_message: {self._file} does not write the last message, "
                f"{content!r:.80}"
            )
        whole = text[at : at + len(_MARK)] == _MARK
        return text[:at] if whole else text[:at].rstrip()


@lru_cache(maxsize=64)
def _compile(text: str) -> Any:
    with counting():  # constants are computed now
        return _environment().from_string(text)


@lru_cache(maxsize=1)
def _environment() -> Any:
    return make_environment()


def template_of(
    source: Source, special: Mapping[str, int], chosen: str | None
) -> ChatTemplate | None:
    """The template of a tokenizer: the chosen one, its files' own, or a built-in one for its
    special tokens."""
    texts: Any = chosen or source.templates or fitting(special)
    if not texts:
        return None
    variables = {role: source.named[role] for role in source.named}
    return ChatTemplate(texts, file=f"the chat template of {source.file}", **variables)
