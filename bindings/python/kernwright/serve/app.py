"""The ASGI application: routes to endpoints."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route, Router

from kernwright.serve.adapters import load_adapter, model_card, unload_adapter
from kernwright.serve.endpoints.anthropic import AnthropicMessage, count_tokens
from kernwright.serve.endpoints.chat import Chat
from kernwright.serve.endpoints.completions import Completions
from kernwright.serve.endpoints.embeddings import embeddings
from kernwright.serve.endpoints.responses import Responses
from kernwright.serve.endpoints.tokens import detokenize, tokenize
from kernwright.serve.http.body import read_body
from kernwright.serve.http.errors import ApiError
from kernwright.serve.http.guard import Guard
from kernwright.serve.http.streaming import EventStream, while_connected
from kernwright.serve.openapi import description
from kernwright.serve.protocol import (
    ChatBody,
    CompletionBody,
    CountTokensBody,
    DetokenizeBody,
    EmbeddingBody,
    LoadAdapterBody,
    MessagesBody,
    ResponsesBody,
    TokenizeBody,
    UnloadAdapterBody,
    decoded,
    has_form,
    is_light,
)
from kernwright.serve.server import Server

__all__ = ["make_app"]

Handler = Callable[[Request], Awaitable[Any]]
_UNLOAD = "/v1/unload_lora_adapter"
# Bytes of bodies that the event loop decodes, and of those whose requests it makes: less work than
# to wake a thread and to be woken by it.
_SHORT, _LIGHT = 32 * 2**10, 2**10


def _json(body: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status, media_type="application/json")


class _Endpoints:
    """The handlers of a server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def generating(self, kind: type[Any], make: Any) -> Handler:
        """A handler for bodies of a kind; make(server, served, body, call) queues the requests."""
        server = self._server

        async def handle(request: Request) -> Any:
            call = request.scope["kernwright.call"]
            content = await read_body(request.scope, request.receive, server.limits)
            body = await self._decoded(content, kind)
            served = await server.use(body.model, call, request.receive)
            prepare = functools.partial(make, server, served, body, call)
            if has_form(body):
                made = await server.in_turn(call, prepare)
            elif len(content) <= _LIGHT and served.adapter is None and is_light(body):
                made = prepare()
            else:
                made = await server.in_thread(len(content), prepare)
            limits = server.limits
            given = getattr(body, "timeout", None)
            seconds = limits.seconds if given is None else given
            if body.stream:
                return EventStream(
                    made.events(), made.texts.cancel, seconds=seconds,
                    write_seconds=limits.write_seconds, ended=lambda: not made.texts.open,
                    done=made.ends_with_done, failure=made.failure,
                )  # fmt: skip
            return _json(
                await while_connected(request.receive, made.whole(), made.texts.cancel, seconds)
            )

        return handle

    def computing(self, kind: type[Any], work: Callable[..., Any], with_call: bool) -> Handler:
        """A handler of work in a thread: work(server, served, body) gives the answer's body."""
        server = self._server

        async def handle(request: Request) -> Response:
            call = request.scope["kernwright.call"]
            content = await read_body(request.scope, request.receive, server.limits)
            body = await self._decoded(content, kind)
            served = await server.use(body.model, call, request.receive)
            rest = (call,) if with_call else ()
            found = await server.in_thread(
                len(content), lambda: msgspec.json.encode(work(server, served, body, *rest))
            )
            return Response(found, media_type="application/json")

        return handle

    async def _decoded(self, content: bytes, kind: type[Any]) -> Any:
        ignores = self._server.ignore_unknown
        if len(content) <= _SHORT:
            return decoded(content, kind, ignore_unknown=ignores)
        return await self._server.in_thread(
            len(content), lambda: decoded(content, kind, ignore_unknown=ignores)
        )

    async def unload(self, request: Request) -> Response:
        """POST /v1/unload_lora_adapter. It needs no model to be loaded."""
        content = await read_body(request.scope, request.receive, self._server.limits)
        body = await self._decoded(content, UnloadAdapterBody)
        return _json(unload_adapter(self._server, body))

    async def models(self, request: Request) -> Response:
        """GET /v1/models."""
        names = [*self._server.models, *self._server.adapters]
        cards = [model_card(self._server, name) for name in names]
        return _json({"object": "list", "data": cards})

    async def model(self, request: Request) -> Response:
        """GET /v1/models/NAME."""
        name = request.path_params["name"]
        if not name:  # no name is the first model in bodies alone
            await _missing(request.scope, None, None)
        return _json(model_card(self._server, name))

    async def live(self, request: Request) -> Response:
        """GET /health/live: whether the engines run."""
        healthy = self._server.healthy
        if not healthy:
            request.scope["kernwright.call"].reason = "engine_stopped"
        return _json({"status": "ok" if healthy else "the engine has stopped"},
                     200 if healthy else 500)  # fmt: skip

    async def ready(self, request: Request) -> Response:
        """GET /health/ready: whether it takes requests."""
        if self._server.draining:
            request.scope["kernwright.call"].reason = "draining"
            return _json({"status": "draining"}, 503)
        return await self.live(request)

    async def metrics(self, request: Request) -> Response:
        """GET /metrics."""
        text = self._server.metrics.text()
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    def telling(self, text: Callable[[], bytes]) -> Handler:
        """A handler that answers with a JSON text."""

        async def handle(request: Request) -> Response:
            return Response(text(), media_type="application/json")

        return handle

    async def page(self, request: Request) -> Response:
        """GET /: a page for chats."""
        return HTMLResponse(_page())


@functools.cache
def _page() -> str:
    return pathlib.Path(__file__).with_name("page.html").read_text(encoding="utf-8")


def _route(path: str, method: str, handler: Handler) -> Route:
    """Other methods are refused. Logs and metrics get the path of the route, of which there are
    few."""

    async def handle(request: Request) -> Any:
        request.scope["kernwright.route"] = path
        if request.method != method and (request.method, method) != ("HEAD", "GET"):
            raise ApiError(405, f"{path} takes {method}, got {request.method}",
                           code="method_not_allowed", allow=method)  # fmt: skip
        return await handler(request)

    route = Route(path, handle)
    route.methods = None  # all: the answer to those that the router refuses is no JSON
    return route


async def _missing(scope: Any, receive: Any, send: Any) -> None:
    raise ApiError(404, f"there is no {scope['path']:.100}", code="not_found")


def make_app(server: Server, *, cors: Sequence[str] = ()) -> Any:
    """The application of a server. `cors`: origins whose pages may use it, ["*"] for all."""
    ends = _Endpoints(server)
    makers: dict[str, tuple[type[Any], Any]] = {
        "/v1/chat/completions": (ChatBody, Chat), "/v1/completions": (CompletionBody, Completions),
        "/v1/responses": (ResponsesBody, Responses),
        "/v1/messages": (MessagesBody, AnthropicMessage),
    }  # fmt: skip
    works: dict[str, tuple[type[Any], Any, bool]] = {
        "/v1/messages/count_tokens": (CountTokensBody, count_tokens, False),
        "/v1/embeddings": (EmbeddingBody, embeddings, True),
        "/tokenize": (TokenizeBody, tokenize, False),
        "/detokenize": (DetokenizeBody, detokenize, False),
    }
    changes = server.adapter_folder is not None
    if changes:
        works["/v1/load_lora_adapter"] = LoadAdapterBody, load_adapter, False
    bodies = {path: kind for path, (kind, *_) in (makers | works).items()}
    if changes:
        bodies[_UNLOAD] = UnloadAdapterBody

    def described() -> bytes:
        return msgspec.json.encode(description(server, bodies, gets))

    told = described if changes else functools.cache(described)
    gets: dict[str, Handler] = {
        "/v1/models": ends.models, "/v1/models/{name:path}": ends.model,
        "/health": ends.live, "/health/live": ends.live, "/health/ready": ends.ready,
        "/metrics": ends.metrics, "/openapi.json": ends.telling(told), "/": ends.page,
    }  # fmt: skip
    routes = [_route(path, "POST", ends.generating(*each)) for path, each in makers.items()]
    routes += [_route(path, "POST", ends.computing(*each)) for path, each in works.items()]
    routes += [_route(path, "GET", each) for path, each in gets.items()]
    if changes:
        routes.append(_route(_UNLOAD, "POST", ends.unload))
    app: Any = Guard(Router(routes, redirect_slashes=False, default=_missing), server)
    if not cors:
        return app
    return CORSMiddleware(
        app, allow_origins=list(cors), allow_methods=["GET", "POST"], allow_headers=["*"],
        expose_headers=["X-Request-Id", "Retry-After"],
    )  # fmt: skip
