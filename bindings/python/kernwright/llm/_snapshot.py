"""Keys and values of a conversation, on the host and in files."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import kernwright as kw
from kernwright._core import Array
from kernwright.llm._caches import on_host
from kernwright.llm._errors import ModelError, naming_damage
from kernwright.llm._size import PAGE

if TYPE_CHECKING:
    from kernwright.llm._generate import Generator
    from kernwright.llm._model import Model

__all__ = ["Snapshot"]

_FORMAT = "kernwright.llm.Snapshot 1"
_TOKENS = "tokens"  # their name in files; arrays of layers begin with "layers."
_UNCOMPARED = ("source", "bos", "eos", "fields")  # of configs


class Snapshot:
    """Keys and values of the full pages of a conversation, which Model.snapshot() makes and
    Model.restore() takes. They are in page-locked memory of the host.

    >>> from kernwright import llm
    >>> model = llm.load(random={
    ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    ...     "dtype": "float32",
    ... })
    >>> model.snapshot(list(range(40))).save("chat.safetensors")
    >>> snapshot = llm.Snapshot.load("chat.safetensors")
    >>> model.restore(snapshot)
    >>> len(snapshot.tokens), snapshot.nbytes  # 32 tokens of 2 heads of 16 floats, two arrays
    (32, 8192)
    """

    tokens: list[int]
    """The conversation, without the tokens behind its last full page."""

    def __init__(
        self, tokens: Sequence[int], arrays: Mapping[str, Array], identity: Mapping[str, Any]
    ) -> None:
        self.tokens = list(tokens)
        self._arrays, self._identity = dict(arrays), dict(identity)

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values, and of their scales.

        >>> llm.Snapshot.load("chat.safetensors").nbytes
        8192
        """
        return sum(each.nbytes for each in self._arrays.values())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a safetensors file, which replaces `path` only when it is whole: "tokens",
        "layers.0.keys" (pages, 16, kv_heads, head_dim), "layers.0.values", ... Raises StoreError.

        >>> model.snapshot(list(range(20))).save("short.safetensors")
        >>> kw.load_safetensors("short.safetensors")["layers.0.keys"].shape
        (1, 16, 2, 16)
        """
        tokens = kw.asarray(np.asarray(self.tokens, np.int32))
        metadata = {"format": _FORMAT, "model": json.dumps(self._identity, sort_keys=True)}
        kw.save_safetensors(path, {_TOKENS: tokens, **self._arrays}, metadata=metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: Any = None) -> Snapshot:
        """Reads a file of save(). `device` as for kw.empty(). Raises ModelError for a file that
        holds no snapshot, one that is a StoreError, too, where it cannot be read or is damaged.

        >>> len(llm.Snapshot.load("short.safetensors").tokens)
        16
        """
        with naming_damage(), on_host(device), kw.SafeTensors(path, device=device) as file:
            form = file.metadata.get("format")
            if form != _FORMAT or _TOKENS not in file:
                raise ModelError(
                    f"{os.fsdecode(path)} is no snapshot: its format is {form!r:.60}, and that of "
                    f"one is {_FORMAT!r}"
                )
            identity = _identity(file.metadata.get("model", ""), os.fsdecode(path))
            arrays = {name: file[name] for name in file if name != _TOKENS}
            tokens = file[_TOKENS].numpy().ravel().tolist()
        return cls(tokens, arrays, identity)

    def __repr__(self) -> str:
        return f"<llm.Snapshot of {len(self.tokens)} tokens, {self.nbytes:,} bytes>"


def _identity(text: str, path: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ModelError(f"{path} does not tell of which model it is a snapshot: {text!r:.60}")
    return found


def take_snapshot(
    model: Model, generator: Generator, tokens: Sequence[int], adapter: str | None
) -> Snapshot:
    """See Model.snapshot()."""
    identity = identity_of(model, adapter)
    count = len(tokens) // PAGE * PAGE
    if count == 0:
        raise ModelError(
            f"a snapshot holds full pages of {PAGE} tokens, and the conversation has {len(tokens)}"
        )
    context = model.config.max_length
    engine = generator.engine([min(len(tokens) + 1, context)], draft=model.draft)
    known = list(tokens[: context - 1])  # the engine generates a token behind them
    kept = known[: len(known) // PAGE * PAGE]
    if len(kept) <= model.config.short_length() < len(known):
        known = kept  # these alone are a short text
    return Snapshot(kept, engine.read_pages(known, adapter), identity)


def restore_snapshot(
    model: Model, generator: Generator, snapshot: Snapshot, max_tokens: int, adapter: str | None
) -> None:
    """See Model.restore()."""
    _require_same(identity_of(model, adapter), snapshot._identity)
    tokens = model.checked_tokens(snapshot.tokens)
    if len(tokens) % PAGE:
        raise ModelError(f"a snapshot has full pages of {PAGE} tokens, got {len(tokens)} tokens")
    length = min(len(tokens) + max_tokens, model.config.max_length)
    engine = generator.engine([length], draft=model.draft)
    engine.write_pages(tokens, snapshot._arrays, adapter)


def identity_of(model: Model, adapter: str | None = None) -> dict[str, Any]:
    """What two models have in common when one can use the keys and values of the other: all but
    the numbers in their weights, and in those of an adapter. Raises ModelError for an unknown
    adapter."""
    config = model.config
    found = {
        each.name: getattr(config, each.name)
        for each in dataclasses.fields(config) if each.name not in _UNCOMPARED
    }  # fmt: skip
    found |= {
        f"fields.{name}": each for name, each in config.fields.items() if not name.startswith("_")
    }
    found["dtype of the caches"] = model.cache_format.dtype
    found["layers of the caches"] = model.cache_layers()
    if adapter is not None:
        model._adapters.place(adapter)
        loaded = model.adapters[adapter]
        found["adapter"] = {"rank": loaded.rank, "targets": loaded.targets}
    return dict(json.loads(json.dumps(found, default=_plain)))


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


def _require_same(model: Mapping[str, Any], snapshot: Mapping[str, Any]) -> None:
    for name in [*model, *snapshot]:
        ours, theirs = model.get(name), snapshot.get(name)
        if ours != theirs:
            raise ModelError(
                f"the snapshot is of another model: its {name} is {theirs!r:.60}, and that of "
                f"this model {ours!r:.60}"
            )
