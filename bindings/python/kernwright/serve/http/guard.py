"""Around all endpoints: keys, bounds of calls at a time, errors, the log."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from kernwright.serve.calls import Call
from kernwright.serve.http.errors import TYPES, ApiError, as_api_error
from kernwright.serve.http.log import log, log_call
from kernwright.serve.http.streaming import ClientGone
from kernwright.serve.server import Server

__all__ = ["OPEN", "Guard", "json_answer"]

OPEN = ("/", "/health", "/health/live", "/health/ready")


async def json_answer(
    send: Any, status: int, body: Any, headers: dict[str, str] | None = None
) -> None:
    """Sends an answer of JSON; bytes are JSON already."""
    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    pairs = [(b"content-type", b"application/json"),
             (b"content-length", str(len(content)).encode())]  # fmt: skip
    pairs += [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": content})


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: Any, server: Server) -> None:
        self._app, self._server = app, server

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        call = Call.of(scope)
        call.metrics = self._server.metrics
        scope["kernwright.call"] = call

        async def send_on(message: Any) -> None:
            if message["type"] == "http.response.start":
                call.status = message["status"]
                ids = [(b"x-request-id", call.id.encode())]
                if _is_anthropic(call):
                    ids.append((b"request-id", call.id.encode()))
                message["headers"] = [*message.get("headers", ()), *ids]
            await send(message)

        task: Any = asyncio.current_task()
        try:
            if scope["path"] not in OPEN:
                call.user = self._server.keys.user(scope["headers"])
            if scope["method"] == "POST":
                self._require_place()
                self._server.tasks.add(task)
            await self._app(scope, receive, send_on)
        except ClientGone:
            call.status = call.status or 499
            call.reason = call.reason or "disconnected"
        except Exception as error:
            await self._fail(call, error, send_on)
        except asyncio.CancelledError:  # at the end of the server
            ended = ApiError(503, "the server has ended", code="server_ended", retry_after=5)
            await self._fail(call, ended, send_on)
        finally:
            call.at_end.close()
            self._server.tasks.discard(task)
            route = scope.get("kernwright.route", "other")
            self._server.metrics.answered(call, route)
            log_call(call)

    def _require_place(self) -> None:
        server = self._server
        if server.draining:
            raise ApiError(503, "the server ends, and takes no requests", code="draining",
                           retry_after=5)  # fmt: skip
        if not server.healthy:
            raise ApiError(500, "the engine has stopped", code="engine_stopped")
        if server.running >= server.limits.concurrent:
            raise ApiError(
                429, f"{server.running} requests run, and {server.limits.concurrent} may: try "
                "again", code="too_many_requests", retry_after=1,
            )  # fmt: skip

    async def _fail(self, call: Call, error: Exception, send: Any) -> None:
        answer = as_api_error(error)
        if answer.status >= 500 and not isinstance(error, ApiError):
            log.error("request %s failed", call.id, exc_info=error)
        told = TYPES[400] if answer.status == 400 else "error"
        call.reason = call.reason or answer.code or told
        if call.status == 0:
            body = answer.body()
            if _is_anthropic(call):
                body |= {"type": "error", "request_id": call.id}
            await json_answer(send, answer.status, body, answer.headers())
        elif answer.status < 500 or isinstance(error, ApiError):
            log.error("request %s failed after its first bytes: %s", call.id, answer.message)


def _is_anthropic(call: Call) -> bool:
    """Whether its client reads Anthropic's form of errors and ids."""
    return call.path.startswith("/v1/messages")
