"""POST /v1/embeddings."""

from __future__ import annotations

import base64
import functools
from typing import Any

import numpy as np

from kernwright.serve.calls import Call
from kernwright.serve.http.errors import ApiError, about
from kernwright.serve.protocol import EmbeddingBody
from kernwright.serve.served import Served
from kernwright.serve.server import Server
from kernwright.serve.texts.prompts import prompts_of
from kernwright.serve.texts.sampling import last_tokens

__all__ = ["embeddings"]

_FORMATS = ("float", "base64")


def embeddings(server: Server, served: Served, body: EmbeddingBody, call: Call) -> dict[str, Any]:
    """The mean of the last hidden states of each input: see llm.Model.embed()."""
    form = body.encoding_format or "float"
    if form not in _FORMATS:
        raise ApiError(400, f"encoding_format is one of {', '.join(_FORMATS)}, got {form!r:.40}",
                       param="encoding_format", code="unsupported_value")  # fmt: skip
    size = served.model.config.hidden_size
    if body.dimensions not in (None, size):
        raise ApiError(400, f"dimensions is {size}, that of the model, got {body.dimensions}",
                       param="dimensions", code="unsupported_value")  # fmt: skip
    found = prompts_of(body.input, "input", server.limits.prompts, served.context)
    last = last_tokens(body.truncate_prompt_tokens, served.context)
    with about("input"):
        tokens = [served.prompt_tokens(each, last=last) for each in found]
    data = []
    for i, each in enumerate(tokens):  # one by one: memory is that of the longest
        vector = served.between_steps(functools.partial(_embedding, served, each))
        data.append({"object": "embedding", "index": i, "embedding": _written(vector, form)})
    count = sum(map(len, tokens))
    call.model, call.prompt_tokens, call.reason = served.name, count, "stop"
    return {
        "object": "list", "data": data, "model": served.name,
        "usage": {"prompt_tokens": count, "total_tokens": count},
    }  # fmt: skip


def _embedding(served: Served, tokens: list[int]) -> np.ndarray[Any, Any]:
    return served.model.embed(tokens, adapter=served.adapter).numpy().astype("<f4")


def _written(vector: np.ndarray[Any, Any], form: str) -> Any:
    if form == "base64":
        return base64.b64encode(vector.tobytes()).decode()
    return vector.tolist()
