"""Log-probabilities of the tokens of a prompt: a call of the model between steps of its engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import kernwright as kw
from kernwright.llm._recording import TokenLogprobs
from kernwright.serve.http.errors import ApiError
from kernwright.serve.served import Served

__all__ = ["prompt_logprobs"]

_MOST_BYTES = 2**30  # of the logits of a prompt


def prompt_logprobs(
    served: Served, tokens: Sequence[int], count: int
) -> list[TokenLogprobs | None]:
    """Of each token, with the `count` highest; None for the first, which nothing comes before.
    Raises ApiError for a prompt whose logits would be too large."""
    vocabulary = served.model.config.vocab_size
    most = _MOST_BYTES // (4 * vocabulary)
    if len(tokens) > most:
        raise ApiError(
            400, f"echo with logprobs takes {most} tokens of a prompt at most, got {len(tokens)}",
            param="prompt", code="out_of_range",
        )  # fmt: skip
    if len(tokens) == 1:
        return [None]
    return [None, *served.between_steps(lambda: _following(served, tokens, count))]


def _following(served: Served, tokens: Sequence[int], count: int) -> list[TokenLogprobs]:
    """Of each token but the first."""
    model = served.model
    chances = kw.nn.log_softmax(model.logits(tokens, adapter=served.adapter))[:-1]
    following = np.asarray(tokens[1:], np.int64).reshape(-1, 1)
    own = kw.take_along_axis(chances, kw.asarray(following), axis=1).numpy()[:, 0].tolist()
    tops: list[list[tuple[int, float]]] = [[] for _ in own]
    if count:
        best = kw.topk(chances, min(count, model.config.vocab_size))
        pairs = zip(best.indices.numpy().tolist(), best.values.numpy().tolist(), strict=True)
        tops = [list(zip(*each, strict=True)) for each in pairs]
    return [TokenLogprobs(*each) for each in zip(own, tops, strict=True)]
