"""Adapters of served models, loaded and unloaded while the server runs."""

from __future__ import annotations

import os
import time
from typing import Any

from kernwright import llm
from kernwright.errors import StoreError
from kernwright.llm._adapters.files import FILES
from kernwright.serve.http.errors import ApiError
from kernwright.serve.protocol import LoadAdapterBody, UnloadAdapterBody
from kernwright.serve.served import AdapterCard, Served
from kernwright.serve.server import Server

__all__ = ["load_adapter", "model_card", "unload_adapter"]

_LONGEST_NAME = 256  # characters


def model_card(server: Server, name: str) -> dict[str, Any]:
    """What /v1/models tells of a model, or of an adapter. Raises ApiError for an unknown name."""
    adapter = server.adapters.get(name)
    slot = server.slot(name if adapter is None else adapter.parent)
    card = {
        "id": slot.name, "object": "model", "created": slot.created, "owned_by": "kernwright",
        "max_model_len": slot.context, "status": slot.state,
    }  # fmt: skip
    if adapter is None:
        return card
    own = {"id": name, "created": adapter.created, "parent": slot.name, "root": adapter.path}
    return {**card, **own}


def load_adapter(server: Server, served: Served, body: LoadAdapterBody) -> dict[str, Any]:
    """POST /v1/load_lora_adapter. Raises ApiError for names in use and wrong files."""
    name = body.lora_name
    if served.adapter is not None:
        raise ApiError(400, f"model is one of {', '.join(server.models)}, got {body.model!r:.100}",
                       param="model", code="invalid_value")  # fmt: skip
    path = _within(server.adapter_folder or "", body.lora_path)
    card = AdapterCard(name, served.name, path, int(time.time()))
    # One of two calls at a time gets the name.
    is_free = 0 < len(name) <= _LONGEST_NAME and name.isprintable() and name not in server.models
    if not is_free or server.adapters.setdefault(name, card) is not card:
        raise ApiError(
            400, f"lora_name is a new name of up to {_LONGEST_NAME} printable characters, got "
            f"{name!r:.100}", param="lora_name", code="invalid_value",
        )  # fmt: skip
    try:
        if name in served.model.adapters:  # unloaded here while the model was being loaded
            served.model.unload_adapter(name)
        loaded = served.engine.load_adapter(path, name)
    except BaseException as error:
        server.adapters.pop(name, None)
        if isinstance(error, (llm.ModelError, StoreError)):
            raise ApiError(400, str(error), param="lora_path", code="invalid_adapter") from error
        raise
    if server.adapters.get(name) is not card:  # unloaded meanwhile
        if served.model.adapters.get(name) is loaded:
            served.model.unload_adapter(name)
        raise ApiError(404, f"{name} was unloaded while it was loaded", param="lora_name",
                       code="adapter_not_found")  # fmt: skip
    return model_card(server, name)


def unload_adapter(server: Server, body: UnloadAdapterBody) -> dict[str, Any]:
    """POST /v1/unload_lora_adapter, in the event loop. Requests that run end with the adapter.
    Raises ApiError for an unknown name."""
    name = body.lora_name
    card = server.adapters.get(name)
    if card is None or body.model not in (None, card.parent):
        there = ", ".join(server.adapters) or "none"
        raise ApiError(
            404, f"the adapter {name!r:.100} is not here; there are {there}", param="lora_name",
            code="adapter_not_found",
        )  # fmt: skip
    del server.adapters[name]
    slot = server.slot(card.parent)
    served = slot.acquire()
    if served is not None:
        if name in served.model.adapters:
            served.model.unload_adapter(name)
        slot.release()
    return {"id": name, "object": "model", "deleted": True}


def _within(folder: str, path: str) -> str:
    """A path, which may be relative to the folder. Raises ApiError where it, or a file of the
    adapter, is outside of it."""
    root = os.path.realpath(folder)
    try:
        found = os.path.realpath(os.path.join(root, path))
        files = [os.path.realpath(os.path.join(found, name)) for name in FILES]
    except (OSError, ValueError):
        found, files = os.sep, []
    if os.path.commonpath([root, found, *files]) != root or found == root:
        raise ApiError(400, "lora_path is a folder within that of --allow-adapters, got "
                       f"{path!r:.200}", param="lora_path", code="invalid_value")  # fmt: skip
    return found
