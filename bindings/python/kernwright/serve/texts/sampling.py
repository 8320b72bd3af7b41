"""Fields of a body to the options of a generation, each within its bounds."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

from kernwright.llm._guide.words import require_words
from kernwright.serve.http.errors import ApiError, about
from kernwright.serve.http.limits import Limits
from kernwright.serve.protocol import SamplingFields
from kernwright.serve.texts.endings import Endings

__all__ = [
    "REALS",
    "Defaults",
    "about_options",
    "endings_of",
    "last_tokens",
    "options_of",
    "require_int",
    "turn_of",
]

_MOST_SEED = 2**63
_MOST_BIASES = 300
# name: least, most, and whether the least itself is allowed
REALS: dict[str, tuple[float, float, bool]] = {
    "temperature": (0.0, 2.0, True),
    "top_p": (0.0, 1.0, False),
    "min_p": (0.0, 1.0, True),
    "presence_penalty": (-2.0, 2.0, True),
    "frequency_penalty": (-2.0, 2.0, True),
    "repetition_penalty": (0.0, 100.0, False),
}


@dataclasses.dataclass(frozen=True)
class Defaults:
    """What requests that say nothing get: OpenAI's values, or those of the command line."""

    temperature: float = 1.0
    top_p: float = 1.0
    others: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Further options of Model.generate()."""


def options_of(body: SamplingFields, limits: Limits, defaults: Defaults) -> dict[str, Any]:
    """The options of llm.Engine.submit(), without max_tokens and logprobs. Raises ApiError."""
    made = {"temperature": defaults.temperature, "top_p": defaults.top_p, **defaults.others}
    for name, (least, most, closed) in REALS.items():
        value = getattr(body, name)
        if value is not None:
            inside = least <= value <= most if closed else least < value <= most
            if not inside or not math.isfinite(value):
                bounds = f"from {least:g}" if closed else f"above {least:g},"
                raise _out_of_range(name, f"is {bounds} to {most:g}", value)
            made[name] = value
    if body.top_k is not None:
        require_int("top_k", body.top_k, -1, 2**31 - 1)
        made["top_k"] = max(body.top_k, 0)  # other servers write -1 for none
    if body.min_tokens is not None:
        made["min_tokens"] = require_int("min_tokens", body.min_tokens, 0, 2**31 - 1)
    if body.seed is not None:
        seed = require_int("seed", body.seed, -_MOST_SEED, 2 * _MOST_SEED - 1)
        made["seed"] = seed % (2 * _MOST_SEED)  # other servers take negative ones
    if body.n is not None:
        made["n"] = require_int("n", body.n, 1, limits.choices)
    if body.ignore_eos is not None:
        made["ignore_eos"] = body.ignore_eos
    if body.stop_token_ids:
        ids = body.stop_token_ids
        if len(ids) > 64:
            raise _out_of_range("stop_token_ids", "are 64 at most", len(ids))
        made["stop_tokens"] = ids
    stop = _stop_strings(body.stop, limits)
    if stop:
        made["stop"] = stop
    if body.logit_bias:
        made["logit_bias"] = _biases(body.logit_bias)
    if body.allowed_token_ids is not None:
        made["allowed_tokens"] = _allowed(body.allowed_token_ids)
    if body.bad_words:
        with about("bad_words"):
            require_words(body.bad_words)
        made["bad_words"] = body.bad_words
    return made


def turn_of(body: SamplingFields, limits: Limits) -> dict[str, Any]:
    """The options of llm.Engine.submit() beside those of the generation. Raises ApiError."""
    made: dict[str, Any] = {}
    if body.timeout is not None and not 0 < body.timeout <= limits.seconds:
        raise _out_of_range("timeout", f"is above 0 and at most {limits.seconds:g} s", body.timeout)
    if body.priority:
        if not limits.priorities:
            raise ApiError(
                400, "priority is 0: this server was started without --allow-priorities",
                param="priority", code="unsupported_value",
            )  # fmt: skip
        # The engine takes higher ones first, clients of vLLM send lower ones for that.
        made["priority"] = -require_int("priority", body.priority, 1 - 2**31, 2**31 - 1)
    if body.cache_salt is not None:
        if not 1 <= len(body.cache_salt) <= limits.salt_length:
            raise _out_of_range(
                "cache_salt", f"has 1 to {limits.salt_length} characters", len(body.cache_salt)
            )
        made["cache_salt"] = body.cache_salt
    return made


@contextlib.contextmanager
def about_options(most: str) -> Iterator[None]:
    """What llm.Engine.submit() refuses names the field of the body, `most` for max_tokens."""
    names = {
        "min_tokens": "min_tokens", "the prompt has": most, "logit_bias": "logit_bias",
        "allowed_tokens": "allowed_token_ids", "no token is left": "allowed_token_ids",
        "bad_words": "bad_words",
    }  # fmt: skip
    with contextlib.ExitStack() as stack:
        for word, field in names.items():
            stack.enter_context(about(field, word))
        yield


def endings_of(body: SamplingFields, options: dict[str, Any], vocabulary: int) -> Endings:
    """How the texts end. Stop strings leave the options, for Ending finds them.
    Raises ApiError for tokens outside of the vocabulary."""
    for each in options.get("stop_tokens", ()):
        require_int("stop_token_ids", each, 0, vocabulary - 1)
    return Endings(
        options.pop("stop", ()), frozenset(options.get("stop_tokens", ())),
        options.get("min_tokens", 0), bool(body.include_stop_str_in_output),
        body.skip_special_tokens is False,
    )  # fmt: skip


def last_tokens(given: int | None, context: int, room: int = 0) -> int | None:
    """How many of the last tokens of a prompt count, by truncate_prompt_tokens; None: all, or the
    prompt is refused. -1 leaves `room` for new ones. Raises ApiError."""
    if given is None or 1 <= given <= context:
        return given
    if given == -1:
        return max(context - room, 1)
    raise ApiError(
        400, f"truncate_prompt_tokens is from 1 to {context}, or -1 for the context, got {given}",
        param="truncate_prompt_tokens", code="invalid_value",
    )  # fmt: skip


def _allowed(ids: list[int]) -> list[int]:
    if not ids:
        raise _out_of_range("allowed_token_ids", "has one token at least", 0)
    for each in ids:
        require_int("allowed_token_ids", each, 0, 2**31 - 1)
    return ids


def _biases(given: Mapping[str, float]) -> dict[int, float]:
    """Numbers by token, whose keys are texts in JSON."""
    made = {}
    for name, value in given.items():
        if not name.isascii() or not name.isdigit() or len(name) > 9:
            raise _out_of_range("logit_bias", "has numbers of tokens as keys", name)
        if not -100 <= value <= 100:
            raise _out_of_range("logit_bias", "has values from -100 to 100", value)
        made[int(name)] = value
    if len(made) > _MOST_BIASES:
        raise _out_of_range("logit_bias", f"has {_MOST_BIASES} tokens at most", len(made))
    return made


def _stop_strings(stop: str | list[str] | None, limits: Limits) -> list[str]:
    listed = [stop] if isinstance(stop, str) else list(stop or ())
    if len(listed) > limits.stop:
        raise _out_of_range("stop", f"has {limits.stop} strings at most", len(listed))
    for each in listed:
        if len(each) > limits.stop_length:
            raise _out_of_range(
                "stop", f"has strings of {limits.stop_length} characters at most", len(each)
            )
    return [each for each in listed if each]  # some clients send "" for none


def require_int(name: str, value: int, least: int, most: int) -> int:
    """The value, within its bounds. Raises ApiError."""
    if not least <= value <= most:
        raise _out_of_range(name, f"is from {least} to {most}", value)
    return value


def _out_of_range(name: str, rule: str, value: object) -> ApiError:
    return ApiError(400, f"{name} {rule}, got {value!s:.40}", param=name, code="out_of_range")
