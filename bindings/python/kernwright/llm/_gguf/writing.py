"""A model in a folder of Hugging Face's layout, as the arrays of a GGUF file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kernwright as kw
from kernwright._core import Array
from kernwright.llm._config import Config
from kernwright.llm._errors import ModelError
from kernwright.llm._fill import Filling, takes_format
from kernwright.llm._gguf.config import config_of
from kernwright.llm._gguf.metadata import differing_setting, kind_of, metadata_of, rope_factors
from kernwright.llm._gguf.names import file_names
from kernwright.llm._registry import class_of

__all__ = ["FileArrays"]

Progress = Callable[[int, int, str], object]
# Parts whose rows are heads: they turn.
_HEADS = {"q": "num_heads", "k": "num_kv_heads"}


class FileArrays:
    """The arrays and the metadata of a GGUF file, made layer by layer of a filling in numbers.

    Rows of queries and keys are ordered as the family's files have them. Vectors, and what chooses
    experts, are float32; weights of linear layers come to `format`, but the product that makes
    logits. Raises ModelError for a model that the metadata cannot tell.
    """

    def __init__(self, config: Config, filling: Filling, format: str) -> None:
        self._config, self._filling, self._format = config, filling, format
        self._kind, pairs = kind_of(config)
        interleaved = bool(getattr(type(filling.module), "interleaved", False))
        self._reorders = pairs and not interleaved
        self.metadata = metadata_of(config)
        self._factors = rope_factors(config)
        self._names = {path: self._names_of(path) for path in filling.first.values()}
        self._require_same_network()

    def _names_of(self, path: str) -> dict[str, str]:
        if path.endswith("attention.kv_up.weight"):  # of DeepSeek-V2: apart, and by heads
            base = file_names(self._config.architecture, path)[""]
            return {half: base.replace("kv_b", f"{half}_b") for half in ("k", "v")}
        found = file_names(self._config.architecture, path)
        if (
            path.endswith("attention.q_up.weight")
            and self._config.fields.get("q_lora_rank") is None
        ):
            found = {"": found[""].replace("attn_q_b", "attn_q")}
        if not found:
            raise ModelError(
                f"{self._config.source}: {path} has no name in .gguf files of {self._kind}"
            )
        return found

    def _require_same_network(self) -> None:
        """Raises ModelError with the setting that a reader of the file would not find."""
        head = _Head(self.metadata, self._factors, self._names, self._filling)
        theirs = config_of(head, self._config.source)  # type: ignore[arg-type]
        kind = class_of(theirs.architecture, theirs.source)
        ours = class_of(self._config.architecture, self._config.source)(self._config)
        found = differing_setting(ours, kind(theirs))
        if found is not None:
            raise ModelError(
                f"{self._config.source}: a .gguf file of {self._kind} cannot tell a setting of "
                f"this model (its own, then what the file would mean): {found}"
            )

    def made(self, progress: Progress | None) -> dict[str, Any]:
        """All arrays, or pairs of blocks and format, by their names."""
        filling, total, done = self._filling, len(self._names), 0
        arrays: dict[str, Any] = {
            name: kw.asarray(x, device=filling.device) for name, x in self._factors.items()
        }
        for layer in (None, *range(len(filling.layers))):
            filling.fill(layer)
            for path in filling.paths(layer):
                if progress is not None:
                    progress(done, total, path)
                arrays |= self._of_parameter(path)
                filling.put(path, filling.slots[path].unread)  # lets go of the numbers
                done += 1
        if progress is not None:
            progress(total, total, "")
        return arrays

    def _of_parameter(self, path: str) -> dict[str, Any]:
        slot = self._filling.slots[path]
        names = self._names[path]
        if path.endswith("attention.kv_up.weight"):
            return dict(zip(names.values(), self._latent(slot.value), strict=True))
        made = {}
        for part, name in names.items():
            numbers = slot.value
            if part:
                rows = slot.holder.rows_of(part)
                numbers = numbers[..., rows] if _is_bias(path) else numbers[..., rows, :]
            if part in _HEADS and self._reorders:
                numbers = _neighbours(numbers, getattr(self._config, _HEADS[part]))
            made[name] = self._stored(path, name, numbers)
        return made

    def _stored(self, path: str, name: str, numbers: Array) -> Any:
        is_row = numbers.ndim == 2 and numbers.shape[0] == 1
        if is_row:  # the converter leaves axes of 1 out
            numbers = numbers.reshape((-1,))
        if numbers.ndim == 1 or _is_bias(path) or "ffn_gate_inp" in name:
            return numbers.astype("float32")
        if takes_format(path, self._filling.slots[path]):
            return kw.nn.quant.quantize(numbers, self._format), self._format
        return numbers

    def _latent(self, both: Array) -> tuple[Array, Array]:
        """The way to the keys, transposed, and that to the values, by heads."""
        heads, plain = self._config.num_heads, self._config.count("qk_nope_head_dim")
        by_heads = both.reshape((heads, plain + self._config.count("v_head_dim"), both.shape[1]))
        return by_heads[:, :plain].mT.copy(), by_heads[:, plain:].copy()


class _Head:
    """What config_of() asks of a file, before there is one."""

    def __init__(
        self, metadata: dict[str, Any], factors: dict[str, Any], names: dict[str, dict[str, str]],
        filling: Filling,
    ) -> None:  # fmt: skip
        self.metadata, self._factors = metadata, factors
        self._shapes = {
            name: filling.slots[path].unread.shape
            for path, parts in names.items()
            for name in parts.values()
        }

    def __contains__(self, name: str) -> bool:
        return name in self._shapes or name in self._factors

    def __getitem__(self, name: str) -> Array:
        return kw.asarray(self._factors[name])

    def shape(self, name: str) -> tuple[int, ...]:
        return self._shapes[name]


def _is_bias(path: str) -> bool:
    return path.endswith("bias")


def _neighbours(rows: Array, heads: int) -> Array:
    """Elements half a head apart become neighbours."""
    half = rows.shape[0] // heads // 2
    parts = rows.reshape((heads, 2, half, -1))
    return parts.transpose((0, 2, 1, 3)).reshape(rows.shape)
