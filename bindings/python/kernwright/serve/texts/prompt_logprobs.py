"""Log-probabilities of a prompt: a call of the model between steps of its engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import kernwright as kw
from kernwright.serve.http.errors import ApiError
from kernwright.serve.http.limits import Limits
from kernwright.serve.protocol import SamplingFields
from kernwright.serve.served import Served
from kernwright.serve.texts.logprobs import finite
from kernwright.serve.texts.sampling import require_int

__all__ = ["prompt_details", "prompt_logprobs"]

_MOST_BYTES = 2**30  # of the logits of a prompt


class PromptLogprobs(NamedTuple):
    """Of one token: its log-probability, the highest ones as (token, log-probability), and its
    rank, 1 for the likeliest."""

    logprob: float
    top: list[tuple[int, float]]
    rank: int


def prompt_logprobs(
    served: Served, tokens: Sequence[int], count: int, field: str = "logprobs"
) -> list[PromptLogprobs | None]:
    """Of each token, with the `count` highest; None for the first.
    Raises ApiError, with the name of the field, for too long a prompt."""
    vocabulary = served.model.config.vocab_size
    most = _MOST_BYTES // (4 * vocabulary)
    if len(tokens) > most:
        raise ApiError(
            400, f"{field} of a prompt takes {most} tokens at most, got {len(tokens)}",
            param=field, code="out_of_range",
        )  # fmt: skip
    if len(tokens) == 1:
        return [None]
    return [None, *served.between_steps(lambda: _following(served, tokens, count))]


def _following(served: Served, tokens: Sequence[int], count: int) -> list[PromptLogprobs]:
    """Of each token but the first."""
    model = served.model
    chances = kw.nn.log_softmax(model.logits(tokens, adapter=served.adapter))[:-1]
    following = np.asarray(tokens[1:], np.int64).reshape(-1, 1)
    own = kw.take_along_axis(chances, kw.asarray(following), axis=1)
    ranks = ((chances > own).sum(axis=1) + 1).numpy().tolist()
    values = own.numpy()[:, 0].tolist()
    tops: list[list[tuple[int, float]]] = [[] for _ in values]
    if count:
        best = kw.topk(chances, min(count, model.config.vocab_size))
        pairs = zip(best.indices.numpy().tolist(), best.values.numpy().tolist(), strict=True)
        tops = [list(zip(*each, strict=True)) for each in pairs]
    return [PromptLogprobs(*each) for each in zip(values, tops, ranks, strict=True)]


def prompt_details(
    served: Served, tokens: Sequence[int], body: SamplingFields, limits: Limits
) -> dict[str, Any]:
    """The fields of an answer for return_token_ids and prompt_logprobs. Raises ApiError."""
    made: dict[str, Any] = {}
    if body.return_token_ids:
        made["prompt_token_ids"] = list(tokens)
    if body.prompt_logprobs is not None:
        count = require_int("prompt_logprobs", body.prompt_logprobs, 0, limits.logprobs)
        if body.stream:
            raise ApiError(
                400, "prompt_logprobs cannot be streamed: leave stream or prompt_logprobs out",
                param="prompt_logprobs", code="unsupported_value",
            )  # fmt: skip
        found = prompt_logprobs(served, tokens, count, "prompt_logprobs")
        made["prompt_logprobs"] = told_logprobs(served, tokens, found)
    return made


def told_logprobs(
    served: Served, tokens: Sequence[int], found: Sequence[PromptLogprobs | None]
) -> list[dict[str, Any] | None]:
    """As clients of vLLM read them: an object by token ids for each token."""
    made: list[dict[str, Any] | None] = []
    for token, each in zip(tokens, found, strict=True):
        if each is None:
            made.append(None)
            continue
        entries = {id: (value, rank + 1) for rank, (id, value) in enumerate(each.top)}
        entries.setdefault(token, (each.logprob, each.rank))
        made.append({
            str(id): {
                "logprob": finite(value), "rank": rank, "decoded_token": served.token_text(id)[0],
            }
            for id, (value, rank) in entries.items()
        })  # fmt: skip
    return made
