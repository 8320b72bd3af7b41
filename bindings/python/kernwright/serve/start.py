"""A server from the arguments of the command line."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from kernwright import llm
from kernwright.errors import InvalidArgument
from kernwright.llm._parse.formats import FORMATS
from kernwright.llm._size import PAGE, SHARE
from kernwright.serve.app import make_app
from kernwright.serve.http.keys import Keys
from kernwright.serve.http.limits import Limits
from kernwright.serve.http.log import begin_log, log
from kernwright.serve.lifecycle import Address, run_server
from kernwright.serve.served import Served
from kernwright.serve.server import Server
from kernwright.serve.texts.sampling import Defaults

__all__ = ["start"]

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMG]?)", re.IGNORECASE)
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def start(
    arguments: argparse.Namespace, load: Callable[..., llm.Model], sampling: Mapping[str, Any],
    out: TextIO,
) -> int:  # fmt: skip
    """Checks all arguments, loads the models, and serves until a signal. The exit code.

    load() gives the model of the arguments, load(path) another one.
    """
    limits = _limits(arguments)
    keys = Keys.of(arguments.api_key, arguments.api_key_file)
    defaults = _defaults(sampling)
    paths = _names(arguments)
    address = Address(
        arguments.host, arguments.port, certificate=arguments.tls_certificate,
        key=arguments.tls_key,
    )  # fmt: skip
    kv_memory = arguments.kv_memory
    kv_memory = kv_memory if kv_memory == "auto" else _bytes("--kv-memory", kv_memory)
    loaded = {name: load() if path is None else load(path) for name, path in paths.items()}
    models = _served(arguments, loaded, kv_memory)
    if arguments.check:
        print("\n\n".join(map(_plan, models.values())), file=out)
        for each in models.values():
            each.engine.close()
        return 0
    server = Server(
        models, limits=limits, defaults=defaults, keys=keys,
        ignore_unknown=arguments.unknown_fields == "ignore",
    )  # fmt: skip
    begin_log(arguments.log_format, arguments.log_level)
    app = make_app(server, cors=arguments.cors)
    names = ", ".join(models)
    log.info("%s is served at %s%s", names, address.url, "" if keys else ", without keys")
    return run_server(app, server, address)


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


def _served(
    arguments: argparse.Namespace, models: Mapping[str, llm.Model], kv_memory: int | str
) -> dict[str, Served]:
    """The models with their engines. Without a number, each gets an even share of the memory."""
    if kv_memory == "auto" and len(models) > 1:
        device = next(iter(models.values())).device
        kv_memory = int(device.memory_info().free * SHARE / len(models))
    made = {}
    for name, model in models.items():
        engine = llm.Engine(
            model, max_rows=arguments.max_rows,
            max_tokens_per_step=arguments.max_tokens_per_step, kv_memory=kv_memory,
            prefix_cache=not arguments.no_prefix_cache, deterministic=arguments.deterministic,
            queue_limit=arguments.queue_limit, step_limit=arguments.step_limit,
        )  # fmt: skip
        made[name] = Served(name, model, engine, _format(arguments.chat_format, model))
    return made


def _limits(arguments: argparse.Namespace) -> Limits:
    for name in ("timeout", "read_timeout", "write_timeout", "drain_timeout"):
        value = getattr(arguments, name)
        if not 0 <= value < float("inf"):
            raise InvalidArgument(f"--{name.replace('_', '-')} is 0 s or more, got {value}")
    for name in ("max_requests", "max_choices"):
        value = getattr(arguments, name)
        if value < 1:
            raise InvalidArgument(f"--{name.replace('_', '-')} is 1 at least, got {value}")
    return Limits(
        body=_bytes("--max-body", arguments.max_body), concurrent=arguments.max_requests,
        choices=arguments.max_choices, seconds=arguments.timeout,
        read_seconds=arguments.read_timeout, write_seconds=arguments.write_timeout,
        drain_seconds=arguments.drain_timeout,
    )  # fmt: skip


def _bytes(name: str, text: str) -> int:
    found = _SIZE.fullmatch(text)
    if found is None:
        raise InvalidArgument(f"{name} is a number of bytes, as 16M or 8G, got {text!r:.40}")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def _defaults(sampling: Mapping[str, Any]) -> Defaults:
    """Wrong values are found now, not by the first request."""
    from kernwright.llm._options import Generation

    Generation.of(dict(sampling))  # type: ignore[arg-type]
    others = {k: v for k, v in sampling.items() if k not in ("temperature", "top_p")}
    usual = Defaults()
    return Defaults(
        sampling.get("temperature", usual.temperature), sampling.get("top_p", usual.top_p), others
    )


def _format(name: str, model: llm.Model) -> str | None:
    """The format of llm.MessageParser. Raises InvalidArgument."""
    if name not in ("auto", "none", *FORMATS):
        raise InvalidArgument(
            f"--chat-format is auto, none, {', '.join(sorted(FORMATS))}; got {name!r:.40}"
        )
    template = None if model.tokenizer is None else model.tokenizer.chat_template
    if name == "none" or template is None:
        return None
    return llm.MessageParser.format_of(template.text) if name == "auto" else name


def _plan(served: Served) -> str:
    """What the memory of the device holds."""
    model, stats = served.model, served.engine.stats()
    device = model.device
    weights = sum(int(each.nbytes) for each in dict(model.module.named_parameters()).values())
    pages = stats["free_pages"] + stats["used_pages"] + stats["cached_pages"]
    memory = device.memory_info()
    return "\n".join(
        [
            f"model    {served.name}: {model.config.architecture} on {device.name}",
            f"weights  {weights / 2**30:.3f} GiB",
            f"context  {served.context} tokens",
            f"caches   {pages} pages, {pages * PAGE} tokens, "
            f"{pages * PAGE / served.context:.1f} texts of the whole context",
            f"free     {memory.free / 2**30:.3f} of {memory.total / 2**30:.3f} GiB",
            f"chat     {served.chat_format or 'plain text'}",
        ]
    )
