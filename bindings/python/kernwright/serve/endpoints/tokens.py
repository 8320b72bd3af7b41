"""POST /tokenize and /detokenize."""

from __future__ import annotations

from typing import Any

from kernwright.serve.http.errors import ApiError, about
from kernwright.serve.protocol import DetokenizeBody, TokenizeBody
from kernwright.serve.served import Served
from kernwright.serve.server import Server
from kernwright.serve.texts.messages import chat_tokens, messages_of, tools_of

__all__ = ["detokenize", "tokenize"]

_MOST = 2**20  # tokens of a text: the interpreter stands still while a list of them is made


def tokenize(server: Server, served: Served, body: TokenizeBody) -> dict[str, Any]:
    """The tokens of a prompt, or of messages as a chat has them."""
    if (body.prompt is None) == (body.messages is None):
        raise ApiError(400, "give a prompt or messages", param="prompt")
    if body.messages is not None:
        messages = messages_of(body.messages, server.limits)
        tools = tools_of(body.tools, server.limits)
        with about("messages"):
            tokens = chat_tokens(served, messages, tools, body)
    else:
        with about("prompt"):
            tokens = served.tokenizer.encode(
                body.prompt or "", add_special_tokens=body.add_special_tokens is not False,
                token_limit=max(served.context, _MOST),
            )  # fmt: skip
    made: dict[str, Any] = {
        "count": len(tokens), "max_model_len": served.context, "tokens": tokens,
    }  # fmt: skip
    if body.return_token_strs:
        made["token_strs"] = [served.tokenizer.token(each) for each in tokens]
    return made


def detokenize(server: Server, served: Served, body: DetokenizeBody) -> dict[str, Any]:
    """The text of tokens, special ones with it."""
    with about("tokens"):
        return {"prompt": served.tokenizer.decode(body.tokens, skip_special_tokens=False)}
