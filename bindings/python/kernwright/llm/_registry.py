"""Which class makes a model of which architecture."""

from __future__ import annotations

import importlib
from typing import Any

from kernwright.errors import ArgumentError
from kernwright.llm._errors import ModelError

__all__ = ["known_architectures", "register"]

# The names that config.json has: the file of models/ and the class there.
_BUILT_IN = {
    "DeepseekV2ForCausalLM": "deepseek.DeepseekV2",
    "GPT2LMHeadModel": "gpt2.GPT2",
    "Gemma2ForCausalLM": "gemma.Gemma2",
    "Gemma3ForCausalLM": "gemma.Gemma3",
    "Gemma3ForConditionalGeneration": "gemma.Gemma3Texts",
    "Glm4ForCausalLM": "glm.Glm4",
    "GlmForCausalLM": "glm.Glm",
    "GptOssForCausalLM": "gpt_oss.GptOss",
    "GraniteForCausalLM": "granite.Granite",
    "LlamaForCausalLM": "llama.Llama",
    "MiMoForCausalLM": "mimo.MiMo",
    "MistralForCausalLM": "llama.Llama",
    "MixtralForCausalLM": "mixtral.Mixtral",
    "Olmo2ForCausalLM": "olmo.Olmo2",
    "Phi3ForCausalLM": "phi.Phi3",
    "Qwen2ForCausalLM": "qwen.Qwen2",
    "Qwen2MoeForCausalLM": "qwen.Qwen2Moe",
    "Qwen3ForCausalLM": "qwen.Qwen3",
    "Qwen3MoeForCausalLM": "qwen.Qwen3Moe",
    "SmolLM3ForCausalLM": "smollm.SmolLM3",
    "Starcoder2ForCausalLM": "starcoder.Starcoder2",
}
_registered: dict[str, type] = {}


def register(architecture: str, model: type) -> None:
    """Makes llm.load() take `model` for files whose config names this architecture.

    `model` is a subclass of kw.nn.Module: `model(config)` makes one with parameters that
    llm.Unread stands for, and a call with an llm.Step returns logits; its `names` tell which
    tensor of a file fills which parameter. A class registered later takes the place of an earlier
    one. Raises ArgumentError.

    >>> from kernwright import llm
    >>> class Mine(llm.models.Llama):
    ...     pass
    >>> llm.register("MineForCausalLM", Mine)
    """
    from kernwright.nn import Module

    if not isinstance(architecture, str) or not architecture:
        raise ArgumentError(f"an architecture is a name, got {architecture!r:.60}")
    if not isinstance(model, type) or not issubclass(model, Module):
        raise ArgumentError(f"a model is a class of kw.nn.Module, got {model!r:.60}")
    _registered[architecture] = model


def class_of(architecture: str, source: str) -> Any:
    """The class for an architecture. Raises ModelError, which lists what is known."""
    if architecture in _registered:
        return _registered[architecture]
    if architecture not in _BUILT_IN:
        raise ModelError(
            f"{source}: the architecture {architecture!r:.80} is unknown; known are "
            f"{', '.join(known_architectures())}; llm.register() adds others"
        )
    file, name = _BUILT_IN[architecture].split(".")
    return getattr(importlib.import_module(f"kernwright.llm.models.{file}"), name)


def is_built_in(model: Any) -> bool:
    """Whether all that a model is made of comes from this package, nothing from its user."""
    from kernwright.nn import Module

    return isinstance(model, Module) and all(
        type(part).__module__.startswith("kernwright.")
        and all(_is_own(value) for value in vars(part).values())
        for _, part in model.named_modules()
    )


def _is_own(value: Any) -> bool:
    """False for a function of the user."""
    home = getattr(value, "__module__", None) or "kernwright."
    return not callable(value) or home.startswith("kernwright.")


def known_architectures() -> list[str]:
    """All names that llm.load() takes, sorted.

    >>> from kernwright import llm
    >>> "LlamaForCausalLM" in llm.known_architectures()
    True
    """
    return sorted({*_BUILT_IN, *_registered})
