"""Texts to token ids and back."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import kernwright.llm._chat.template as _template
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.llm._errors import ContextError, ModelError
from kernwright.llm._fields import Fields, import_extra
from kernwright.llm._text.files import read_source, surrounding_tokens
from kernwright.llm._text.pieces import PieceTable, piece_table, tokens_of
from kernwright.llm._text.source import Source, post_processor
from kernwright.llm._text.stream import TextStream

__all__ = ["Tokenizer"]

_LONG_TEXT = 4096  # characters


class Tokenizer:
    """Token ids of texts, and texts of token ids.

    `path` is a model's folder, its tokenizer.json, a GGUF file (or an open kw.Gguf), a .model file
    of SentencePiece, a .tiktoken vocabulary or a tekken.json. The files beside it are read, too:
    tokenizer_config.json, special_tokens_map.json, generation_config.json, config.json,
    chat_template.jinja. `pre` names the rules for cutting texts, where a file has none or unknown
    ones; `special_tokens` has ids by text for .tiktoken files; `chat_template` is one of
    `ChatTemplate.names()`, or a template. Needs ``pip install 'kernwright[llm]'``.

    Raises ModelError with the file and the field for a file of no use.

    >>> import base64
    >>> from kernwright import llm
    >>> with open("bytes.tiktoken", "wb") as file:  # each byte is a token
    ...     for byte in range(256):
    ...         _ = file.write(base64.b64encode(bytes([byte])) + b" %d\\n" % byte)
    >>> marks = {"<s>": 256, "<|im_start|>": 257, "<|im_end|>": 258}
    >>> tokenizer = llm.Tokenizer("bytes.tiktoken", pre="cl100k", special_tokens=marks)
    >>> tokenizer.encode("Hi<|im_end|>")
    [72, 105, 258]
    >>> tokenizer.decode([72, 105, 258])
    'Hi'
    """

    bos: int | None
    """The token at the beginning of a text, if there is one."""
    eos: tuple[int, ...]
    """The tokens at the end of a text: of config, generation_config and tokenizer together."""
    pad: int | None
    """The token for filling up a batch."""
    special_tokens: dict[str, int]
    """Ids of the special tokens, by their text."""
    chat_template: _template.ChatTemplate | None
    """How messages become a text; None where no file has a template and none is known to fit."""

    def __init__(
        self,
        path: Any,
        *,
        pre: str | None = None,
        special_tokens: Mapping[str, int] | None = None,
        chat_template: str | None = None,
    ) -> None:
        from kernwright.llm._text.patterns import PRE_TOKENIZERS

        if pre is not None and pre not in PRE_TOKENIZERS:
            known = ", ".join(sorted(PRE_TOKENIZERS))
            raise InvalidArgument(f"pre is {pre!r:.60}, which is unknown; known are {known}")
        self._library = import_extra("tokenizers", "llm.Tokenizer")
        source = read_source(path, pre, special_tokens)
        self._file = source.file
        self._tokens = tokens_of(Fields(source.file, source.spec))
        wanted = {token for token in source.named.values() if token}
        ids = {token: id for id, token in enumerate(self._tokens) if token in wanted}
        self._spec, self._text = source.spec, source.text
        self._around = surrounding_tokens(source, ids)
        self._made = self._make(parse_special=True)
        self._clean_up = source.clean_up
        self._set_roles(source, ids)
        self.compilers: dict[Any, Any] = {}  # of forms of texts, by compiler_of()
        self.chat_template = _template.template_of(source, self.special_tokens, chat_template)

    def _set_roles(self, source: Source, ids: Mapping[str, int]) -> None:
        def role(name: str) -> int | None:
            return ids.get(source.named.get(name, ""))

        self.bos, self.pad = role("bos_token"), role("pad_token")
        eos = role("eos_token")
        ends = [*([] if eos is None else [eos]), *source.eos]
        beyond = [id for id in ends if id >= len(self._tokens)]
        if beyond:
            warnings.warn(
                f"{source.file} has {len(self._tokens)} tokens, and eos_token_id has "
                f"{beyond!r:.60}, which end no text",
                RuntimeWarning, stacklevel=3,
            )  # fmt: skip
        self.eos = tuple(dict.fromkeys(id for id in ends if id not in beyond))
        self.special_tokens = {
            each["content"]: each["id"]
            for each in source.spec.get("added_tokens") or ()
            if each.get("special")
        }
        self._adds_bos = self.bos is not None and self._encode("", True, True)[:1] == [self.bos]

    @contextmanager
    def _library_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # the library's panics derive from BaseException alone
            raise ModelError(f"{self._file} {what}: {error}") from None

    def _make(self, parse_special: bool) -> Any:
        with self._library_errors("cannot be used as a tokenizer"):
            made = self._library.Tokenizer.from_str(self._text or json.dumps(self._spec))
            if self._around is not None:
                made.post_processor = post_processor(*self._around)
        made.no_truncation()
        made.no_padding()
        made.encode_special_tokens = not parse_special
        for each in self._spec.get("added_tokens") or ():
            id = made.token_to_id(each["content"])
            if id != each["id"]:
                raise ModelError(
                    f"{self._file}: the added token {each['content']!r:.60} has the id "
                    f"{each['id']}, and its place in the vocabulary gives {id}"
                )
        return made

    @cached_property
    def _without_special(self) -> Any:
        return self._make(parse_special=False)

    @cached_property
    def _table(self) -> PieceTable:
        return piece_table(self._file, self._spec, self._clean_up)

    def __len__(self) -> int:
        """How many ids there are: the largest is one less."""
        return len(self._tokens)

    def __repr__(self) -> str:
        return f"llm.Tokenizer({self._file!r}, {len(self)} tokens)"

    def encode(
        self, text: str, *, add_special_tokens: bool = True, parse_special: bool = True,
        token_limit: int | None = None,
    ) -> list[int]:  # fmt: skip
        """The token ids of a text.

        With `add_special_tokens`, BOS (and EOS) are added as the model wants it; a text with
        BOS at its beginning gets no second one. `parse_special=False` takes special tokens
        within the text as plain text, as for the words of users. Other threads of Python run
        while a long text is tokenised.
        Raises InvalidArgument for lone surrogates, ContextError for more tokens than `token_limit`.

        >>> tokenizer.encode("<s>"), tokenizer.encode("<s>", parse_special=False)
        ([256], [60, 115, 62])
        """
        if not isinstance(text, str):
            raise ArgumentError(f"a text is a str, got {text!r:.80}")
        try:
            ids = self._encode(text, add_special_tokens, parse_special, token_limit)
        except UnicodeEncodeError as error:
            raise InvalidArgument(
                f"the text has a lone surrogate at {error.start}, which is no character"
            ) from None
        if add_special_tokens:
            self._drop_second_bos(ids)
        return ids

    def _encode(
        self, text: str, add_special_tokens: bool, parse_special: bool, limit: int | None = None
    ) -> list[int]:
        text.encode()
        made = self._made if parse_special else self._without_special
        with self._library_errors("cannot tokenise this text"):
            if len(text) < _LONG_TEXT:
                found = made.encode(text, add_special_tokens=add_special_tokens)
            else:  # batches alone let other threads run
                found = made.encode_batch_fast([text], add_special_tokens=add_special_tokens)[0]
        if limit is not None and len(found) > limit:
            raise ContextError(f"the text has {len(found)} tokens, and the limit is {limit}")
        return list(found.ids)

    def _drop_second_bos(self, ids: list[int]) -> None:
        while self._adds_bos and ids[:2] == [self.bos, self.bos]:
            del ids[0]

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        add_generation_prompt: bool = True,
        token_limit: int | None = None,
        **variables: Any,
    ) -> list[int]:
        """The token ids of a conversation, by the chat template: a prompt for the next answer.

        Arguments are those of `ChatTemplate.render()`. BOS comes once, whether the template writes
        it or not. Raises ModelError where the tokenizer has no template, ContextError for more
        tokens than `token_limit`.

        >>> ids = tokenizer.encode_chat([{"role": "user", "content": "Hi"}])
        >>> tokenizer.decode(ids, skip_special_tokens=False)
        '<|im_start|>user\\nHi<|im_end|>\\n<|im_start|>assistant\\n'
        """
        if self.chat_template is None:
            raise ModelError(
                f"{self._file} has no chat template: pass chat_template= to llm.Tokenizer, a "
                f"template or one of {', '.join(_template.ChatTemplate.names())}"
            )
        text = self.chat_template.render(
            messages, tools, add_generation_prompt=add_generation_prompt, **variables
        )
        ids = self.encode(text, add_special_tokens=False, token_limit=token_limit)
        if self._adds_bos and self.bos is not None:
            ids.insert(0, self.bos)
            self._drop_second_bos(ids)
        return ids

    def decode(self, tokens: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """The text of token ids; bytes of no UTF-8 are U+FFFD.

        Raises InvalidArgument for ids outside of the vocabulary.

        >>> tokenizer.decode([226, 130, 172]), tokenizer.decode([226, 65])
        ('\u20ac', '\ufffdA')
        """
        return TextStream(self._table, (), skip_special_tokens).whole(tokens)

    def stream(
        self, prompt: Sequence[int] = (), *, skip_special_tokens: bool = True,
        verbatim: bool = False,
    ) -> TextStream:  # fmt: skip
        """A stream: it turns the tokens after a prompt into text, one by one.

        A character with its first bytes in the prompt, and its last ones after it, belongs to the
        stream. `verbatim`: the bytes of the tokens alone, as grammars see them; no space is dropped
        where a text begins, and nothing is cleaned up.

        >>> stream = tokenizer.stream([72, 226])
        >>> [stream.push(130), stream.push(172)]
        ['', '\u20ac']
        """
        if verbatim:
            return TextStream(self._table.verbatim(), (), skip_special_tokens)
        return TextStream(self._table, prompt, skip_special_tokens)

    def token(self, id: int) -> str:
        """A token as its vocabulary writes it. Raises InvalidArgument.

        >>> tokenizer.token(72), tokenizer.token(256)
        ('H', '<s>')
        """
        if not 0 <= id < len(self._tokens):
            raise InvalidArgument(
                f"the token id {id} is outside of the vocabulary of {len(self._tokens)} tokens"
            )
        return self._tokens[id]

    def id(self, token: str) -> int | None:
        """The id of a token as its vocabulary writes it; None where there is none.

        >>> tokenizer.id("<|im_end|>")
        258
        """
        found: int | None = self._made.token_to_id(token)
        return found

    def bytes(self, id: int) -> bytes:
        """The bytes of a token within a text. Raises InvalidArgument.

        >>> tokenizer.bytes(226)
        b'\\xe2'
        """
        self.token(id)
        return self._table.pieces[id]
