"""A request as the loop of an engine takes it: how it goes on, when, and whose pages it shares."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any, NamedTuple

from kernwright.llm._adapters.adapters import AdapterPlace
from kernwright.llm._sampling import NUMBERS, Sampling

__all__ = ["Turn", "loop_options"]


class Turn(NamedTuple):
    """When a request gets its turn: higher priorities first, then users by their shares. It ends
    after `timeout` seconds. It shares pages of the prefix cache with requests of its salt alone."""

    priority: int = 0
    user: str = ""
    timeout: float | None = None
    cache_salt: str = ""


def loop_options(sampling: Sampling, turn: Turn, place: AdapterPlace) -> dict[str, Any]:
    """The options of a request for the loop, all but its mask. A request without a seed gets a
    random one."""
    seed = secrets.randbits(64) if sampling.seed is None else sampling.seed
    options: dict[str, Any] = {
        **{name: getattr(sampling, name)
           for name in ("max_tokens", "min_tokens", "choices", "top_k")},
        "stop_tokens": list(sampling.stop_tokens), "seed": seed,
        "sampling": {name: getattr(sampling, name) for name in NUMBERS},
        "details": sampling.logprobs is not None,
        "logit_bias": dict(sampling.logit_bias), "bad_tokens": list(sampling.bad_tokens),
        "adapter": place.slot, "salt": _salted(place.number, turn.cache_salt),
        "priority": turn.priority, "user": turn.user, "timeout": turn.timeout,
    }  # fmt: skip
    if sampling.allowed_tokens is not None:
        options["allowed_tokens"] = list(sampling.allowed_tokens)
    return options


_salt_key = secrets.token_bytes(16)  # nobody outside knows two texts of the same salt


def _salted(adapter: int, text: str) -> int:
    """The salt of pages in the prefix cache: of an adapter's number, and a text."""
    if not text:
        return adapter
    data = f"{adapter}:{text}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, key=_salt_key).digest(), "little")
