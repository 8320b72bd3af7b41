"""llm.Model: a model with its files' config, and what one asks of it."""

from __future__ import annotations

import dataclasses
import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

import kernwright as kw
from kernwright._core import Array, _count_valid_tokens
from kernwright.errors import ArgumentError
from kernwright.llm._adapters.adapters import Adapters
from kernwright.llm._adapters.files import Adapter
from kernwright.llm._answers import AnswerParser
from kernwright.llm._caches import CacheFormat
from kernwright.llm._choice import Completion, Piece
from kernwright.llm._config import Config
from kernwright.llm._draft import Draft, DraftWriter
from kernwright.llm._engine import BAD_LOGITS
from kernwright.llm._errors import ContextError, ModelError
from kernwright.llm._generate import (
    Generator,
    generate,
    prompts_of,
    stream,
    tokens_of,
    whole_numbers,
)
from kernwright.llm._options import Generation, GenerationOptions
from kernwright.llm._snapshot import Snapshot, restore_snapshot, take_snapshot
from kernwright.llm._step import WholeStep
from kernwright.llm._text.tokenizer import Tokenizer
from kernwright.llm._weights.memory import Memory
from kernwright.nn import Module

__all__ = ["Model"]


def cache_layers(module: Any, config: Config) -> list[tuple[int, int]]:
    """(kv_heads, head_dim) of what each layer of a module keeps of a token."""
    layers_of = getattr(module, "cache_layers", None)
    if layers_of is not None:
        return list(layers_of())
    return [(config.num_kv_heads, config.head_dim)] * config.num_layers


class Model(DraftWriter):
    """A language model; llm.load() makes one.

    `config` has its extents, `module` is the network, a kw.nn.Module that is called with an
    llm.Step, `memory` tells where the weights are, `folder` is that of its files, None without one,
    `draft` the llm.Draft of calls without one,
    `tokenizer_error` why the tokenizer of its files was of no use, "" without such, `scheduler` the
    kw.schedule.Scheduler of its steps, `graphs` whether they are replayed. Not for several threads.

    >>> from kernwright import llm
    >>> model = llm.load(random={
    ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    ...     "dtype": "float32",
    ... })
    >>> model.config.num_layers, model.module.head.weight.shape, model.tokenizer
    (1, (64, 32), None)
    """

    def __init__(
        self, config: Config, module: Module, *, memory: Memory, tokenizer_path: str | None = None,
        cache_dtype: Any = None, cache_scales: Mapping[int, tuple[Array, Array]] | None = None,
        max_adapters: int = 8, max_adapter_rank: int = 256,
    ) -> None:  # fmt: skip
        self.config, self.module, self.memory = config, module, memory
        first = next(iter(dict(module.named_parameters()).values()))
        self.device = first.device
        self._dtype = first.dtype.name
        self.cache_format = CacheFormat(cache_dtype or first.dtype.name, cache_scales or {})
        self.draft: Draft | None = None
        self.folder: str | None = None
        self.scheduler: Any = None
        self.graphs = True
        self._tokenizer_path = tokenizer_path
        self._tokenizer: Tokenizer | None = None
        self.tokenizer_error = ""
        self._adapters = Adapters(
            module, config, most=max_adapters, most_rank=max_adapter_rank, device=self.device
        )
        self._generator = Generator(self)

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The llm.Tokenizer of the files, read when first asked for; None where they have none, or
        where theirs is of no use: a warning then says why, once, token ids still work, and calls
        with texts raise ModelError. May be set."""
        if self._tokenizer is None and self._tokenizer_path is not None:
            try:
                self._tokenizer = Tokenizer(self._tokenizer_path)
            except (ImportError, ModelError) as error:
                warnings.warn(
                    f"{error}; token ids work without a tokenizer, and texts stay empty",
                    RuntimeWarning, stacklevel=2,
                )  # fmt: skip
                self._tokenizer_path, self.tokenizer_error = None, str(error)
        return self._tokenizer

    @tokenizer.setter
    def tokenizer(self, tokenizer: Tokenizer | None) -> None:
        self._tokenizer, self._tokenizer_path, self.tokenizer_error = tokenizer, None, ""

    def require_tokenizer(self, purpose: str) -> Tokenizer:
        """The tokenizer. Raises ModelError, which tells why there is none.

        >>> from kernwright import llm
        >>> model = llm.load(random={
        ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
        ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        ...     "dtype": "float32",
        ... })
        >>> model.require_tokenizer("a chat")
        Traceback (most recent call last):
        ...
        kernwright.llm._errors.ModelError: a chat needs a tokenizer, and the model's files have none
        """
        found = self.tokenizer
        if found is None:
            why = self.tokenizer_error or "the model's files have none"
            raise ModelError(f"{purpose} needs a tokenizer, and {why}")
        return found

    @property
    def eos(self) -> tuple[int, ...]:
        """The tokens that end a text: those of the config, of generation_config.json and of the
        tokenizer."""
        more = () if self.tokenizer is None else self.tokenizer.eos
        return tuple(dict.fromkeys([*self.config.eos, *more]))

    @property
    def sampled_tokens(self) -> int:
        """Texts are made of the ids below this one. Where the logits have more rows than the
        tokenizer has tokens, the others are padding and never sampled."""
        try:
            tokens = 0 if self.tokenizer is None else len(self.tokenizer)
        except TypeError:  # one without a length
            tokens = 0
        size = self.config.vocab_size
        return min(size, max(tokens, 1 + max(self.config.eos, default=0))) if tokens else size

    def cache_layers(self) -> list[tuple[int, int]]:
        """(kv_heads, head_dim) of what each layer keeps of a token."""
        return cache_layers(self.module, self.config)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters in nested dicts, as Module.parameters() gives them."""
        return self.module.parameters()

    @property
    def adapters(self) -> dict[str, Adapter]:
        """The LoRA adapters that are loaded, by their names."""
        return self._adapters.loaded

    def load_adapter(self, path: str | os.PathLike[str], name: str | None = None) -> Adapter:
        """Loads a LoRA adapter: a folder as PEFT writes it, with adapter_config.json and
        adapter_model.safetensors. generate() and others then take its name as `adapter=`.

        `name` is that of the folder where none is given. The model's weights may have any format,
        also of few bits. Texts of many adapters, and of none, run as one batch: a step has two more
        products for each layer that an adapter changes, and none where no text has one. The
        device keeps `max_adapters` slots of the highest rank so far (llm.load() sets both limits).
        While an llm.Engine runs the model, use its load_adapter().

        Raises ModelError, which names file, field or tensor, for modules that the model does not
        have and for experts, embeddings and norms, wrong shapes and ranks, variants as DoRA, biases
        and modules_to_save; for a name in use, and when all slots are taken; StoreError for damaged
        files, OutOfMemory; Error while an llm.Engine runs the model.

        >>> import json, pathlib
        >>> from kernwright import llm
        >>> model = llm.load(random={
        ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
        ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        ...     "dtype": "float32", "max_position_embeddings": 64,
        ... })
        >>> folder, settings = pathlib.Path("sql"), {"r": 2, "lora_alpha": 4}
        >>> folder.mkdir()
        >>> (folder / "adapter_config.json").write_text(
        ...     json.dumps(settings | {"target_modules": ["q_proj"]}))
        >>> name = "base_model.model.model.layers.0.self_attn.q_proj"
        >>> kw.save_safetensors(folder / "adapter_model.safetensors", {
        ...     f"{name}.lora_A.weight": kw.ones((2, 32)),
        ...     f"{name}.lora_B.weight": kw.ones((32, 2)),
        ... })
        >>> model.load_adapter(folder).targets
        ('q_proj',)
        >>> len(model.generate([1, 2, 3], adapter="sql", max_tokens=4).tokens)
        4
        """
        return self._adapters.put(self._adapters.read(path, name))

    def unload_adapter(self, name: str) -> None:
        """Unloads an adapter at once for new requests. Those that have it end with it, and its slot
        is free for another one then. Any thread. Raises ModelError for an unknown name.

        >>> model.unload_adapter("sql")
        >>> model.adapters
        {}
        """
        self._adapters.drop(name)

    def logits(self, tokens: Sequence[int], *, adapter: str | None = None) -> Array:
        """The logits behind each token of a sequence: (tokens, vocabulary), float32.

        `adapter` is the name of one that is loaded. Raises ModelError for tokens outside of the
        vocabulary, unknown adapters, and float16 weights that give logits which are not finite;
        ContextError for more than the model has positions for.

        >>> from kernwright import llm
        >>> model = llm.load(random={
        ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
        ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        ...     "dtype": "float32",
        ... })
        >>> model.logits([1, 2, 3]).dtype.name
        'float32'
        """
        step = WholeStep([self.checked_tokens(tokens)], select="all", device=self.device)
        with self._adapters.whole(step, adapter):
            made = self.module(step).astype("float32")
        return self._finite(made[:, : self.config.vocab_size], "logits")

    def _finite(self, made: Array, what: str) -> Array:
        """The array. Of float16, which overflows at 65504, raises ModelError where it has other
        numbers than finite ones."""
        if self._dtype == "float16" and not bool(kw.isfinite(made).all()):
            raise ModelError(
                f"the {what} are not finite: with weights of float16 the numbers between layers of "
                f"{self.config.architecture} pass 65504, the largest one; load it with "
                'dtype="bfloat16" or dtype="float32"'
            )
        return made

    def generate(self, prompts: Any, **options: Unpack[GenerationOptions]) -> Any:
        """What follows a prompt: an llm.Completion, or a list of them.

        `prompts` is a text, a list of tokens, or a list of these, which then run as one batch; with
        `n` above 1 there are so many texts, in a list, for each prompt.

        - max_tokens: of each text; by default 256, or the rest of the context.
        - temperature: 0, the default, takes the highest logit. top_k, top_p, min_p: see
          kw.nn.sample(). seed: 0 to 2^64 - 1; equal seeds give equal texts. By default each call
          draws a seed.
        - repetition_penalty divides logits above 0 of all tokens so far, and multiplies the rest;
          presence_penalty and frequency_penalty are subtracted for tokens of the text made so far.
        - logprobs: the number of further log-probabilities for each token, at most 20.
        - stop: a string or up to 16; each ends a text and is not part of it. stop_tokens: up to
          4096 tokens beside the model's `eos`. ignore_eos: a text continues after `eos`.
          min_tokens: no end before so many tokens.
        - logit_bias: -100 to 100 by token, for up to 300. bad_tokens, bad_words: never sampled;
          allowed_tokens: only these are sampled.
        - schema, regex, grammar, choices: the form of each text, one of them: a JSON schema, a
          regular expression, a grammar of Lark's syntax, a list of texts. Needs a tokenizer, and
          llguidance of ``pip install 'kernwright[llm]'``.
        - adapter: the name of an adapter of load_adapter().
        - deterministic: the same bits for every batch; steps cost more.
        - draft: "ngram", "mtp", the path of a draft model, or an llm.Draft; "none" for no drafts.
          Without it the draft of llm.load().

        Raises ContextError with both lengths if prompt and max_tokens exceed the context,
        ModelError for tokens outside of the vocabulary and for logits that are not finite,
        ArgumentError and InvalidArgument for invalid options, and InvalidArgument with the reason
        for a form that is wrong, unknown or costs too much.

        >>> from kernwright import llm
        >>> model = llm.load(random={
        ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
        ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        ...     "dtype": "float32",
        ... })
        >>> made = model.generate([1, 2, 3], max_tokens=4)
        >>> len(made.tokens), made.finish_reason
        (4, 'length')
        """
        return generate(self, self._generator, prompts, Generation.of(options))

    def stream(self, prompt: Any, **options: Unpack[GenerationOptions]) -> Iterator[Piece]:
        """The pieces of a text as they come, as llm.Piece; options are those of generate().

        Joined, the pieces are the text that generate() gives. Closing the iterator ends the text;
        so does Ctrl-C, and the next call works.

        >>> from kernwright import llm
        >>> model = llm.load(random={
        ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
        ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        ...     "dtype": "float32",
        ... })
        >>> [piece.finish_reason for piece in model.stream([1], max_tokens=3)]
        [None, None, 'length']
        """
        return stream(self, self._generator, prompt, Generation.of(options))

    def chat(
        self, messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None, *,
        variables: Mapping[str, Any] | None = None, **options: Unpack[GenerationOptions],
    ) -> Any:  # fmt: skip
        """The answer to a conversation, an llm.Completion (a list of them with `n` above 1): what
        follows its text by the chat template of the model.

        `messages`, `tools` and `variables` are those of llm.ChatTemplate.render(), the options
        those of generate(). The result's `message` is the answer taken apart, content, reasoning
        and tool calls, to be put behind `messages`. The beginning that a conversation shares with
        the last one is read from the caches while they hold it. Raises ModelError for a model
        without tokenizer or template.

        >>> from kernwright import llm
        >>> model = llm.load(random={
        ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 259, "hidden_size": 32,
        ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        ...     "dtype": "float32",
        ... })
        >>> model.tokenizer = tokenizer  # of the example of llm.Tokenizer
        >>> model.chat([{"role": "user", "content": "Hi"}], max_tokens=4).message["role"]
        'assistant'
        """
        prompt = self.chat_tokens(messages, tools, variables)
        chosen = Generation.of(options)
        made = generate(self, self._generator, prompt, chosen)

        def read(one: Completion) -> Completion:
            parser = AnswerParser(self, prompt, chosen, tools)
            for token in one.tokens:
                parser.push(token)
            parser.finish()
            return dataclasses.replace(one, message=parser.message)

        return read(made) if chosen.n == 1 else [read(each) for each in made]

    def chat_tokens(
        self, messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> list[int]:  # fmt: skip
        """The prompt of a conversation, as chat() makes it. Raises ModelError.

        >>> model.tokenizer.decode(model.chat_tokens([{"role": "user", "content": "Hi"}]))
        'user\\nHi\\nassistant\\n'
        """
        tokenizer = self.require_tokenizer("a chat")
        return tokenizer.encode_chat(messages, tools, **(variables or {}))

    def embed(self, prompts: Any, *, adapter: str | None = None) -> Array:
        """The mean of the last hidden states of each prompt's tokens: (prompts, hidden), float32;
        (hidden,) for one prompt. `adapter` is the name of one that is loaded.

        >>> from kernwright import llm
        >>> model = llm.load(random={
        ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
        ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        ...     "dtype": "float32",
        ... })
        >>> model.embed([[1, 2, 3], [4]]).shape
        (2, 32)
        """
        if not hasattr(self.module, "hidden"):
            raise ModelError(f"{type(self.module).__name__} has no hidden(step) to embed with")
        lists, alone = prompts_of(self, prompts)
        step = WholeStep(lists, select="all", device=self.device)
        with self._adapters.whole(step, adapter):
            x = self.module.hidden(step)
        x, made, begin = self._finite(x.astype("float32"), "embeddings"), [], 0
        for each in lists:
            made.append(kw.mean(x[begin : begin + len(each)], axis=0))
            begin += len(each)
        return made[0] if alone else kw.stack(made, axis=0)

    def snapshot(self, conversation: Any, *, adapter: str | None = None) -> Snapshot:
        """Keys and values of a text or tokens, as an llm.Snapshot in the host's memory: of the
        first full pages of 16 tokens. What the caches of generate() and chat() do not hold is
        computed first. With `adapter` they are those that a loaded adapter gives.

        Raises ModelError for less than a page and for an unknown adapter, ContextError, and
        OutOfMemory for the host's memory too.

        >>> from kernwright import llm
        >>> model = llm.load(random={
        ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
        ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        ...     "dtype": "float32",
        ... })
        >>> model.snapshot([1] * 20)
        <llm.Snapshot of 16 tokens, 4,096 bytes>
        """
        return take_snapshot(self, self._generator, tokens_of(self, conversation), adapter)

    def restore(
        self, snapshot: Snapshot, *, max_tokens: int = 1024, adapter: str | None = None
    ) -> None:
        """Brings a snapshot back into the caches of generate() and chat(): a prompt that begins
        with its tokens goes on without their being computed again. Also in another process.

        The caches get place for `max_tokens` more, as far as the context goes; a call that needs
        more, or asks for `deterministic`, makes new ones without the snapshot. Returns once all is
        copied. `adapter` names the loaded adapter that the snapshot was made with. Raises
        ModelError for an unknown adapter, and for a snapshot of another model, by its config, its
        `max_length`, the dtype and layers of its caches, or the rank and targets of the adapter
        (weights are not compared: give it the same ones), OutOfMemory.

        >>> from kernwright import llm
        >>> model = llm.load(random={
        ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
        ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        ...     "dtype": "float32",
        ... })
        >>> model.restore(model.snapshot(list(range(20))))
        """
        if not isinstance(snapshot, Snapshot):
            raise ArgumentError(f"restore() takes an llm.Snapshot, got {snapshot!r:.60}")
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
            raise ArgumentError(f"max_tokens is an int above 0, got {max_tokens!r:.60}")
        restore_snapshot(self, self._generator, snapshot, max_tokens, adapter)

    def perplexity(self, text: Any, *, adapter: str | None = None) -> float:
        """exp of the mean of -log p(token | those before) over all tokens but the first, of a text
        or tokens; what is longer than the context is cut into pieces of that length. `adapter` is
        the name of one that is loaded.

        >>> from kernwright import llm
        >>> model = llm.load(random={
        ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
        ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        ...     "dtype": "float32",
        ... })
        >>> 50 < model.perplexity([1, 2, 3, 4]) < 80  # of 64 tokens with about the same chances
        True
        """
        tokens = text
        if isinstance(text, str):
            tokens = self.require_tokenizer("the perplexity of a text").encode(text)
        length, total, count = self.config.max_length, 0.0, 0
        for begin in range(0, max(len(tokens) - 1, 1), max(length - 1, 1)):
            piece = list(tokens[begin : begin + length])
            if len(piece) < 2:
                raise ModelError("perplexity() takes two tokens at least")
            targets = kw.asarray(np.asarray(piece[1:], np.int64))
            losses = kw.nn.cross_entropy(
                self.logits(piece, adapter=adapter)[:-1], targets, reduction="sum"
            )
            total, count = total + float(losses), count + len(piece) - 1
        if not math.isfinite(total):
            raise ModelError(BAD_LOGITS)
        return math.exp(total / count)

    def checked_tokens(self, tokens: Sequence[int]) -> list[int]:
        """The tokens as ints. Raises ModelError, ContextError, ArgumentError.

        >>> from kernwright import llm
        >>> model = llm.load(random={
        ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
        ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        ...     "dtype": "float32",
        ... })
        >>> model.checked_tokens(np.array([1, 2]))
        [1, 2]
        """
        vocabulary = self.config.vocab_size
        is_valid = isinstance(tokens, list) and (
            _count_valid_tokens(tokens, vocabulary) == len(tokens)
        )
        numbers = list(tokens) if is_valid else whole_numbers(tokens)
        if not numbers:
            raise ModelError("a prompt has one token at least, got none")
        if not is_valid and (min(numbers) < 0 or max(numbers) >= vocabulary):
            outside = next(each for each in numbers if not 0 <= each < vocabulary)
            raise ModelError(f"the token {outside} is outside of the vocabulary of {vocabulary}")
        if len(numbers) > self.config.max_length:
            raise ContextError(
                f"the prompt has {len(numbers)} tokens, and the context holds "
                f"{self.config.max_length}"
            )
        return numbers

    def __repr__(self) -> str:
        return f"<llm.Model {self.config.architecture}, {self.module!r}>"
