"""What a model is: its extents and settings, from config.json of Hugging Face's layout."""

from __future__ import annotations

import dataclasses
import json
import os
import warnings
from collections.abc import Mapping
from typing import Any

from kernwright._core import _activations
from kernwright.llm._errors import ModelError

__all__ = ["Config"]

_MOST_LAYERS = 10_000
_ROPE_KEYS = ("rope_theta", "rope_type", "type", "partial_rotary_factor")


@dataclasses.dataclass(frozen=True)
class Config:
    """The extents that all models have; what one family has beyond them stands in `fields`.

    >>> from kernwright import llm
    >>> config = llm.Config.from_fields({
    ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 384, "hidden_size": 64,
    ...     "intermediate_size": 160, "num_hidden_layers": 3, "num_attention_heads": 4,
    ... })
    >>> config.head_dim, config.num_kv_heads, config.rope_theta
    (16, 4, 10000.0)
    """

    architecture: str
    """The name that `architectures` has: "LlamaForCausalLM"."""
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    max_length: int
    """Positions that the model was made for: `max_position_embeddings`."""
    norm_eps: float
    activation: str
    """A name of kw.nn.linear(): "silu", "gelu_tanh", ..."""
    rope_theta: float
    rope_scaling: Mapping[str, Any] | None
    """What kw.nn.rope_tables() takes as `scaling`, or None."""
    rope_dim: int
    """Elements of a head that are turned."""
    sliding_window: int | None
    tied: bool
    """Whether the table of tokens gives the logits, too: `tie_word_embeddings`."""
    bos: int | None
    eos: tuple[int, ...]
    """Tokens that end a text."""
    dtype: str
    """The dtype of the numbers in the files."""
    source: str
    """The file that the fields came from, for messages."""
    fields: Mapping[str, Any]

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Config:
        """Reads a config.json. Raises ModelError for one that cannot be read or used."""
        name = os.fsdecode(path)
        try:
            with open(name, encoding="utf-8") as file:
                fields = json.load(file)
        except OSError as error:
            raise ModelError(f"{name} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{name} is no JSON: {error}") from None
        return cls.from_fields(fields, source=name)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], *, source: str = "the config") -> Config:
        """The config of these fields, named as in config.json. Raises ModelError, which names the
        field and what was expected."""
        if not isinstance(fields, Mapping):
            raise ModelError(f"{source} holds a {type(fields).__name__}, and a config has fields")
        if isinstance(
            fields.get("text_config"), Mapping
        ):  # a model of texts inside of a larger one
            outer = {k: v for k, v in fields.items() if k != "text_config"}
            names = {k: v for k, v in outer.items() if k == "architectures" and v is not None}
            fields = {**outer, **fields["text_config"], **names}
        return _Reader(fields, source).config()

    def with_ends(self, values: Mapping[str, Any], source: str) -> Config:
        """With the tokens that end a text by `eos_token_id` of generation_config.json, too. Raises
        ModelError, which names its path, `source`."""
        found = _Reader({"eos_token_id": values.get("eos_token_id")}, source)
        more = found.tokens("eos_token_id", self.vocab_size)
        return dataclasses.replace(self, eos=tuple(dict.fromkeys([*self.eos, *more])))

    def number(self, name: str, default: float | None = None) -> float:
        """A number of the family's own. Raises ModelError where it is none."""
        return _Reader(self.fields, self.source).number(name, default)

    def count(self, name: str, default: int | None = None, *, least: int = 0) -> int:
        """A whole number of the family's own, `least` or more. Raises ModelError where it is
        none."""
        return _Reader(self.fields, self.source).count(name, default, least=least)

    def above_zero(self, name: str, default: float | None = None) -> float:
        """A number above 0 of the family's own. Raises ModelError where it is none."""
        found = self.number(name, default)
        if not found > 0:
            raise ModelError(f"{self.source}: {name} is above 0, got {found}")
        return found

    def flag(self, name: str, default: bool) -> bool:
        """A bool of the family's own. Raises ModelError where it is none."""
        return _Reader(self.fields, self.source).flag(name, default)

    def layer_kinds(self) -> list[str] | None:
        """`layer_types`: "sliding_attention" or "full_attention" of each layer; None without it."""
        kinds = self.fields.get("layer_types")
        if kinds is None:
            return None
        if not isinstance(kinds, list) or len(kinds) != self.num_layers:
            raise ModelError(f"{self.source}: layer_types has a kind for each of {self.num_layers}")
        for kind in kinds:
            if kind not in ("sliding_attention", "full_attention"):
                raise ModelError(
                    f"{self.source}: layer_types has {kind!r:.60}; known are sliding_attention and "
                    "full_attention"
                )
        return kinds

    def most_positions(self) -> int:
        """How many positions `max_length` of llm.load() may ask for: `max_length`, and of "dynamic"
        rotary positions so many times their factor."""
        scaling = self.rope_scaling or {}
        if scaling.get("rope_type") != "dynamic":
            return self.max_length
        factor = _Reader(scaling, self.source).number("factor")
        return int(min(max(factor, 1.0) * self.max_length, 2**31 - 1))

    def short_length(self) -> int:
        """Of "longrope": texts of up to so many tokens have the factors for short ones, longer ones
        those for long ones, from their first token on. 0 where all texts have the same."""
        scaling = self.rope_scaling or {}
        if scaling.get("rope_type") != "longrope":
            return 0
        original = _Reader(scaling, self.source).count("original_max_position_embeddings")
        return original if original < self.max_length else 0

    def windows(self) -> list[int | None]:
        """How many tokens each layer sees, None for all: `sliding_window` in the layers that
        `layer_types` calls sliding, in all without it."""
        kinds = self.layer_kinds() or ["sliding_attention"] * self.num_layers
        return [self.sliding_window if kind == "sliding_attention" else None for kind in kinds]


_ACTIVATIONS = {
    "silu": "silu", "swish": "silu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    **{name: name for name, takers in _activations().items() if takers},
}  # fmt: skip
_GPT2_NAMES = {
    "n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads",
    "n_positions": "max_position_embeddings", "n_inner": "intermediate_size",
    "activation_function": "hidden_act", "layer_norm_epsilon": "rms_norm_eps",
    "layer_norm_eps": "rms_norm_eps", "norm_epsilon": "rms_norm_eps",
    "hidden_activation": "hidden_act",
}  # fmt: skip

_GLM = {"attention_bias": True, "partial_rotary_factor": 0.5, "rms_norm_eps": 1.5625e-07}
_GEMMA = {"hidden_act": "gelu_pytorch_tanh", "query_pre_attn_scalar": 256}
_GEMMA3 = _GEMMA | {"rope_theta": 1e6, "sliding_window": 4096}
# What a config.json may leave out: settings that transformers' class of the architecture has, where
# these are not Llama's. Files of SmolLM3 and StarCoder 2 say nothing of their tied heads.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "GPT2LMHeadModel": {
        "hidden_act": "gelu_new", "rms_norm_eps": 1e-5, "tie_word_embeddings": True,
    },
    "Gemma2ForCausalLM": _GEMMA | {
        "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "sliding_window": 4096,
    },
    "Gemma3ForCausalLM": _GEMMA3,
    "Gemma3ForConditionalGeneration": _GEMMA3 | {
        "vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
        "max_position_embeddings": 131072,
    },
    "Glm4ForCausalLM": _GLM,
    "GlmForCausalLM": _GLM,
    "GptOssForCausalLM": {"rms_norm_eps": 1e-5, "rope_theta": 150000.0, "sliding_window": 128},
    "MistralForCausalLM": {"sliding_window": 4096},
    "MixtralForCausalLM": {"rms_norm_eps": 1e-5, "rope_theta": 1e6},
    "Olmo2ForCausalLM": {"rms_norm_eps": 1e-5},
    "Phi3ForCausalLM": {"rms_norm_eps": 1e-5},
    "SmolLM3ForCausalLM": {"rope_theta": 2e6, "tie_word_embeddings": True},
    "Starcoder2ForCausalLM": {
        "hidden_act": "gelu_pytorch_tanh", "rms_norm_eps": 1e-5, "tie_word_embeddings": True,
    },
}  # fmt: skip
# transformers' classes of these attend to all tokens, whatever a config.json says.
_WITHOUT_WINDOW = (
    "GPT2LMHeadModel", "Glm4ForCausalLM", "GlmForCausalLM", "GraniteForCausalLM",
    "LlamaForCausalLM", "Olmo2ForCausalLM",
)  # fmt: skip
_GPT_OSS_SCALING = {
    "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
    "original_max_position_embeddings": 4096,
}  # fmt: skip


def _defaults(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the architecture that `fields` lack."""
    names = fields.get("architectures")
    name = names[0] if isinstance(names, list) and names and isinstance(names[0], str) else ""
    found = {k: v for k, v in _DEFAULTS.get(name, {}).items() if k not in fields}
    rules = ("rope_parameters", "rope_scaling", "rope_theta")
    if name == "GptOssForCausalLM" and not any(rule in fields for rule in rules):
        found["rope_scaling"] = _GPT_OSS_SCALING
    return found


def _shown(value: Any) -> str:
    """A value in a message; digits of huge numbers are not all made."""
    if isinstance(value, int) and abs(value) >= 2**63:
        return f"a number of {value.bit_length()} bits"
    return f"{value!r:.60}"


class _Reader:
    """Fields by name, checked."""

    def __init__(self, fields: Mapping[str, Any], source: str) -> None:
        self.source = source
        self.fields = dict(fields)
        for old, name in _GPT2_NAMES.items():
            if self.fields.get(old) is not None and self.fields.get(name) is None:
                self.fields[name] = self.fields[old]
        self.fields |= _defaults(self.fields)

    def config(self) -> Config:
        heads = self.count("num_attention_heads")
        hidden = self.count("hidden_size")
        if self.fields.get("head_dim") is None and hidden % heads != 0:
            raise self.wrong(f"hidden_size {hidden} is no multiple of {heads} heads")
        head_dim = self.count("head_dim", hidden // heads)
        kv_heads = self.count("num_key_value_heads", heads)
        if heads % kv_heads != 0:
            raise self.wrong(f"{heads} heads cannot share {kv_heads} key-value heads")
        theta, scaling, part = self.rope()
        positions = self.count("max_position_embeddings", 2048)
        if scaling is not None and scaling["rope_type"] == "dynamic":
            # Up to here nothing is scaled, whatever length a sequence has.
            original = "original_max_position_embeddings"
            positions = min(positions, _Reader(scaling, self.source).count(original))
        rope_dim = int(head_dim * part)
        if rope_dim % 2 != 0 or not 0 < part <= 1:
            raise self.wrong(f"partial_rotary_factor {part} makes no even part of {head_dim}")
        vocabulary = self.count("vocab_size")
        return Config(
            architecture=self.architecture(), vocab_size=vocabulary,
            hidden_size=hidden, intermediate_size=self.count("intermediate_size", 4 * hidden),
            num_layers=self.count("num_hidden_layers", most=_MOST_LAYERS), num_heads=heads,
            num_kv_heads=kv_heads, head_dim=head_dim, max_length=positions,
            norm_eps=self.norm_eps(), activation=self.activation(),
            rope_theta=theta, rope_scaling=scaling, rope_dim=rope_dim,
            sliding_window=self.window(), tied=self.flag("tie_word_embeddings", False),
            bos=next(iter(self.tokens("bos_token_id", vocabulary)), None),
            eos=self.tokens("eos_token_id", vocabulary),
            dtype=self.dtype(), source=self.source, fields=self.fields,
        )  # fmt: skip

    def wrong(self, what: str) -> ModelError:
        return ModelError(f"{self.source}: {what}")

    def count(
        self, name: str, default: int | None = None, *, least: int = 1, most: int = 2**31 - 1
    ) -> int:
        value = self.given(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            bound = (
                f"at most {most}" if type(value) is int and value > most else f"at least {least}"
            )
            raise self.wrong(f"{name} is a whole number of {bound}, got {_shown(value)}")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        value = self.given(name, default)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not abs(value) < 2.0**127:
            raise self.wrong(f"{name} is a number, got {_shown(value)}")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        value = self.given(name, default)
        if not isinstance(value, bool):
            raise self.wrong(f"{name} is true or false, got {value!r:.60}")
        return value

    def given(self, name: str, default: Any) -> Any:
        value = self.fields.get(name)
        value = default if value is None else value
        if value is None:
            raise self.wrong(f"the field {name} is missing")
        return value

    def architecture(self) -> str:
        names = self.fields.get("architectures")
        if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
            raise self.wrong(f"architectures has one name, got {names!r:.80}")
        return names[0]

    def activation(self) -> str:
        name = self.given("hidden_act", "silu")
        if not isinstance(name, str) or name not in _ACTIVATIONS:
            known = ", ".join(_ACTIVATIONS)
            raise self.wrong(f"hidden_act {name!r:.60} is unknown; known are {known}")
        return _ACTIVATIONS[name]

    def norm_eps(self) -> float:
        value = self.number("rms_norm_eps", 1e-6)
        if value < 0:
            raise self.wrong(f"rms_norm_eps is 0 or above, got {value}")
        return value

    def window(self) -> int | None:
        if self.architecture() in _WITHOUT_WINDOW:
            return None
        if self.fields.get("use_sliding_window") is False:
            return None
        return None if self.fields.get("sliding_window") is None else self.count("sliding_window")

    def rope(self) -> tuple[float, Mapping[str, Any] | None, float]:
        """The base, the scaling and the part of a head that is turned: of `rope_parameters`, or of
        `rope_scaling` and the fields beside it as older files have them."""
        given = self.fields.get("rope_parameters") or self.fields.get("rope_scaling") or {}
        if not isinstance(given, Mapping):
            raise self.wrong(f"rope_parameters has fields, got {given!r:.60}")
        if isinstance(given.get("full_attention"), Mapping):  # one for each kind of layer
            given = given["full_attention"]
        inner = _Reader({**self.fields, **given}, self.source)
        theta = inner.number("rope_theta", 10000.0)
        part = inner.number("partial_rotary_factor", 1.0)
        kind = given.get("rope_type", given.get("type", "default"))
        if kind == "su" or (kind == "yarn" and self.architecture() == "Phi3ForCausalLM"):
            kind = "longrope"  # as older files of Phi-3 call it
        if kind in ("default", None):
            return theta, None, part
        if not isinstance(kind, str):
            raise self.wrong(f"rope_type is a name, got {kind!r:.60}")
        scaling = {k: v for k, v in given.items() if k not in _ROPE_KEYS}
        scaling["rope_type"] = kind
        positions = inner.count("max_position_embeddings", 2048)
        if self.fields.get("original_max_position_embeddings") is not None:
            scaling.setdefault(
                "original_max_position_embeddings", self.count("original_max_position_embeddings")
            )
        scaling.setdefault("original_max_position_embeddings", positions)
        if kind == "longrope":
            scaling.setdefault("max_position_embeddings", positions)
        return theta, scaling, part

    def tokens(self, name: str, vocabulary: int) -> tuple[int, ...]:
        """Numbers of tokens. Those that no token has are left out with a warning."""
        value = self.fields.get(name)
        listed = value if isinstance(value, list) else [] if value is None else [value]
        for each in listed:
            if isinstance(each, bool) or not isinstance(each, int) or each < 0:
                raise self.wrong(f"{name} is the number of a token or a list, got {value!r:.60}")
        beyond = [each for each in listed if each >= vocabulary]
        if beyond:
            warnings.warn(
                f"{self.source}: {name} has {beyond!r:.60}, which no token has: ids are below "
                f"{vocabulary}, and the rest of {name} counts",
                RuntimeWarning, stacklevel=2,
            )  # fmt: skip
        return tuple(each for each in listed if each < vocabulary)

    def dtype(self) -> str:
        name = self.fields.get("dtype") or self.fields.get("torch_dtype") or "bfloat16"
        if name not in ("float32", "float16", "bfloat16"):
            raise self.wrong(f"dtype {name!r:.60} is none of float32, float16, bfloat16")
        return str(name)
