"""A server from the arguments of the command line."""

from __future__ import annotations

import argparse
import functools
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from kernwright import llm
from kernwright._support.sizes import size_in_bytes
from kernwright.errors import InvalidArgument
from kernwright.llm._load import Plan
from kernwright.serve.app import make_app
from kernwright.serve.check import checked
from kernwright.serve.http.keys import Keys
from kernwright.serve.http.limits import Limits
from kernwright.serve.http.log import log
from kernwright.serve.lifecycle import Address, run_server
from kernwright.serve.loader import Loader, require_chat_format
from kernwright.serve.model_slot import ModelSlot
from kernwright.serve.served import AdapterCard
from kernwright.serve.server import Server
from kernwright.serve.texts.sampling import Defaults

__all__ = ["start"]


def start(
    arguments: argparse.Namespace, plan: Callable[[str | None], Plan],
    load: Callable[[str | None], llm.Model], sampling: Mapping[str, Any], out: TextIO,
) -> int:  # fmt: skip
    """Checks all arguments, loads the models, and serves until a signal. The exit code.

    plan() and load() take the path of a model, None for that of MODEL or --random.
    """
    limits = _limits(arguments)
    keys = Keys.of(arguments.api_key, arguments.api_key_file)
    defaults = _defaults(sampling)
    require_chat_format(arguments.chat_format)
    kv_memory = arguments.kv_memory
    kv_memory = kv_memory if kv_memory == "auto" else _bytes("--kv-memory", kv_memory)
    if arguments.host_cache is not None:
        _bytes("--host-cache", arguments.host_cache)
    paths = _names(arguments)
    adapters = _adapters(arguments, paths)
    plans = {name: plan(path) for name, path in paths.items()}
    if arguments.check:
        text, fits = checked(arguments, plans, kv_memory, adapters)
        print(text, file=out)
        return 0 if fits else 1
    address = Address(
        arguments.host, arguments.port, certificate=arguments.tls_certificate,
        key=arguments.tls_key,
    )  # fmt: skip
    loader = Loader(arguments, plans, kv_memory, lambda name: load(paths[name]), adapters)
    server = Server(
        _slots(loader, plans, arguments.lazy), adapters=adapters,
        adapter_folder=arguments.allow_adapters, limits=limits, defaults=defaults, keys=keys,
        ignore_unknown=arguments.unknown_fields == "ignore", idle_seconds=arguments.idle_unload,
    )  # fmt: skip
    app = make_app(server, cors=arguments.cors)
    names = ", ".join([*plans, *adapters])
    address.listen()
    log.info("%s is served at %s%s", names, address.url, "" if keys else ", without keys")
    code = run_server(app, server, address)
    if server.is_loading:  # the interpreter would wait for that thread, and it takes no signal
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _slots(loader: Loader, plans: Mapping[str, Plan], lazy: bool) -> dict[str, ModelSlot]:
    """Of all models; they are loaded now, or with `lazy` by their requests."""
    made = {}
    for name, plan in plans.items():
        load = functools.partial(loader.load, name)
        if lazy:
            made[name] = ModelSlot(name, load, plan.config.max_length)
        else:
            made[name] = ModelSlot.filled(load(), load)
    return made


def _names(arguments: argparse.Namespace) -> dict[str, str | None]:
    """Paths of models by their names; None for that of MODEL or --random. Raises
    InvalidArgument."""
    path = arguments.model or arguments.random or "model"
    usual = os.path.basename(os.path.abspath(path)).removesuffix(".gguf")
    made: dict[str, str | None] = {arguments.name or usual: None}
    for text in arguments.also:
        name, _, path = text.partition("=")
        if not name or not path or name in made:
            raise InvalidArgument(f"--also is NAME=PATH with a name of its own, got {text!r:.80}")
        made[name] = path
    return made


def _adapters(
    arguments: argparse.Namespace, models: Mapping[str, str | None]
) -> dict[str, AdapterCard]:
    """Adapters of the first model by their names. Raises InvalidArgument."""
    made: dict[str, AdapterCard] = {}
    for text in arguments.lora_modules:
        name, _, path = text.partition("=")
        if not name or not path or name in made or name in models:
            raise InvalidArgument(
                f"--lora-modules is NAME=PATH with a name of its own, got {text!r:.80}"
            )
        made[name] = AdapterCard(name, next(iter(models)), path, int(time.time()))
    folder = arguments.allow_adapters
    if folder is not None and not os.path.isdir(folder):
        raise InvalidArgument(f"--allow-adapters is a folder, got {folder!r:.80}")
    return made


def _limits(arguments: argparse.Namespace) -> Limits:
    names = ("timeout", "load_timeout", "read_timeout", "write_timeout", "drain_timeout")
    for name in (*names, "idle_unload"):
        value, option = getattr(arguments, name), f"--{name.replace('_', '-')}"
        if value is not None and not 0 <= value < float("inf"):
            raise InvalidArgument(f"{option} is 0 s or more, got {value}")
        if value == 0 and name in ("timeout", "read_timeout", "write_timeout"):
            raise InvalidArgument(f"{option} is above 0 s: no request ends in 0 s")
    for name in ("max_requests", "max_choices"):
        value = getattr(arguments, name)
        if value < 1:
            raise InvalidArgument(f"--{name.replace('_', '-')} is 1 at least, got {value}")
    return Limits(
        body=_bytes("--max-body", arguments.max_body), concurrent=arguments.max_requests,
        choices=arguments.max_choices, seconds=arguments.timeout,
        read_seconds=arguments.read_timeout, write_seconds=arguments.write_timeout,
        drain_seconds=arguments.drain_timeout, load_seconds=arguments.load_timeout,
        priorities=arguments.allow_priorities,
    )  # fmt: skip


def _bytes(name: str, text: str) -> int:
    found = size_in_bytes(text)
    if found is None:
        raise InvalidArgument(f"{name} is a number of bytes, as 16M or 8GB, got {text!r:.40}")
    return found


def _defaults(sampling: Mapping[str, Any]) -> Defaults:
    """Wrong values are found now, not by the first request."""
    from kernwright.llm._options import Generation

    Generation.of(dict(sampling))  # type: ignore[arg-type]
    others = {k: v for k, v in sampling.items() if k not in ("temperature", "top_p")}
    usual = Defaults()
    return Defaults(
        sampling.get("temperature", usual.temperature), sampling.get("top_p", usual.top_p), others
    )
