"""What the config of a LoRA adapter tells of its modules: ranks, scales, names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kernwright.llm._errors import ModelError
from kernwright.llm._fields import Fields

__all__ = ["CONFIG", "TENSORS", "AdapterSettings"]

CONFIG, TENSORS = "adapter_config.json", "adapter_model.safetensors"
# Fields of variants of LoRA. An adapter that has one computes something else.
_UNSUPPORTED = (
    "use_dora", "use_qalora", "use_bdlora", "lora_bias", "modules_to_save", "layer_replication",
    "trainable_token_indices", "target_parameters", "alora_invocation_tokens", "arrow_config",
    "megatron_config",
)  # fmt: skip


class AdapterSettings:
    """adapter_config.json."""

    def __init__(self, fields: Fields) -> None:
        self._fields, values = fields, fields.values
        kind = fields.get("peft_type", str, "LORA")
        if kind != "LORA":
            raise fields.wrong("peft_type", f'is "LORA", got {kind!r:.40}')
        for name in _UNSUPPORTED:
            if values.get(name):
                raise fields.wrong(name, f"is not supported, got {values[name]!r:.60}")
        if fields.get("bias", str, "none") != "none":
            raise fields.wrong("bias", f'is "none", got {values["bias"]!r:.40}')
        self._rank = self._whole("r", fields.need("r", int))
        self._alpha = self._real("lora_alpha", fields.need("lora_alpha", float))
        self._root = fields.get("use_rslora", bool, False)
        self._ranks = fields.get("rank_pattern", dict, {})
        self._alphas = fields.get("alpha_pattern", dict, {})
        targets = values.get("target_modules")
        if not isinstance(targets, (str, list)):
            raise fields.wrong(
                "target_modules", f"is a list of names or a pattern, got {targets!r:.60}"
            )
        self._targets: str | list[str] = (
            targets if isinstance(targets, str) else fields.texts("target_modules")
        )

    def _whole(self, name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
            raise self._fields.wrong(name, f"has ranks from 1 to 2^31 - 1, got {_shown(value)}")
        return value

    def _real(self, name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._fields.wrong(name, f"has numbers, got {value!r:.40}")
        if not abs(value) < 2.0**127:
            raise self._fields.wrong(name, f"is a finite number, got {_shown(value)}")
        return float(value)

    def rank_and_scale(self, target: str) -> tuple[int, float]:
        """Of a module: its own where a pattern names it."""
        rank = self._whole("rank_pattern", _of_pattern(self._ranks, target, self._rank))
        alpha = self._real("alpha_pattern", _of_pattern(self._alphas, target, self._alpha))
        return rank, alpha / (math.sqrt(rank) if self._root else rank)

    def require_targets(self, modules: Sequence[str]) -> None:
        """Raises ModelError unless target_modules and the file have the same modules."""
        targets = self._targets
        if not modules:
            raise self._fields.wrong("target_modules", f"has no tensors in {TENSORS}")
        if targets == "all-linear":
            return
        if isinstance(targets, str):
            try:
                chosen = {each for each in modules if re.fullmatch(targets, each)}
            except re.error as error:
                raise self._fields.wrong(
                    "target_modules", f"is no pattern: {error}: {targets!r:.60}"
                ) from None
        else:
            found = {t: {m for m in modules if m == t or m.endswith(f".{t}")} for t in targets}
            missing = [target for target, some in found.items() if not some]
            if missing:
                raise self._fields.wrong(
                    "target_modules", f"names {', '.join(missing)}, and {TENSORS} has no such"
                )
            chosen = set().union(*found.values())
        if other := sorted(set(modules) - chosen):
            raise self._fields.wrong(
                "target_modules", f"does not name {other[0]}, which {TENSORS} has"
            )


def _shown(value: float) -> str:
    """A number in a message; of huge ones not all digits."""
    if isinstance(value, int) and abs(value) >= 2**63:
        return f"a number of {value.bit_length()} bits"
    return f"{value!r:.40}"


def _of_pattern(patterns: Mapping[str, Any], target: str, usual: Any) -> Any:
    """The value of the first pattern that ends a module's name, as PEFT reads them."""
    for pattern, value in patterns.items():
        try:
            if re.match(rf"(.*\.)?({pattern})$", target):
                return value
        except re.error as error:
            raise ModelError(f"{CONFIG}: {pattern!r:.60} is no pattern: {error}") from None
    return usual
