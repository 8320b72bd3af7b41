"""kernwright serve: a language model for many users, by OpenAI's interface."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from kernwright.cli import UsageError
from kernwright.cli._models import (
    add_draft_arguments,
    add_model_arguments,
    add_sampling_arguments,
    chosen_device,
    draft_of,
    load_options,
    loaded,
    sampling_of,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("--name", help="what requests call the model; else its file's name")
    parser.add_argument("--also", action="append", default=[], metavar="NAME=PATH",
                        help="a further model, repeatable")  # fmt: skip
    parser.add_argument(
        "--chat-format", metavar="FORMAT", default="auto",
        help="of reasoning and calls in answers: hermes, llama3, mistral, harmony, deepseek, or "
        "none; auto tells by the chat template",
    )  # fmt: skip
    parser.add_argument("--lazy", action="store_true",
                        help="load each model when a request asks for it")  # fmt: skip
    parser.add_argument(
        "--idle-unload", type=float, metavar="S",
        help="seconds without a request after which a model is unloaded; the next one loads it",
    )  # fmt: skip
    _add_address(parser)
    _add_engine(parser)
    _add_adapters(parser)
    _add_limits(parser)
    parser.add_argument("--log-format", choices=("text", "json"), default="text")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"),
                        default="info")  # fmt: skip
    parser.add_argument(
        "--check", action="store_true",
        help="print what the models would take of the memory, and end: 0 if they fit, else 1; "
        "no weights are loaded, and nothing is served",
    )  # fmt: skip
    defaults = parser.add_argument_group("for requests that say nothing")
    add_sampling_arguments(defaults, None)


def _add_address(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("address and keys")
    group.add_argument("--host", default="127.0.0.1")
    group.add_argument("--port", type=int, default=8000, help="0 takes a free one")
    group.add_argument("--api-key", action="append", default=[], metavar="KEY",
                       help="repeatable; without any, everybody may use the server")  # fmt: skip
    group.add_argument("--api-key-file", action="append", default=[], metavar="FILE",
                       help="keys, one on a line, or name:key")  # fmt: skip
    group.add_argument("--tls-certificate", metavar="FILE", help="PEM, with its chain")
    group.add_argument("--tls-key", metavar="FILE")
    group.add_argument("--cors", action="append", default=[], metavar="ORIGIN",
                       help="pages of this origin may use the server; * for all")  # fmt: skip


def _add_engine(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("engine")
    group.add_argument("--max-rows", type=int, metavar="N", help="texts that go on at a time")
    group.add_argument("--max-tokens-per-step", type=int, metavar="N")
    group.add_argument("--kv-memory", metavar="BYTES", default="auto",
                       help="for keys and values: bytes, as 8GiB, or auto")  # fmt: skip
    group.add_argument("--queue-limit", type=int, metavar="N",
                       help="requests that may wait; more are refused with 429")  # fmt: skip
    group.add_argument("--step-limit", type=float, default=300, metavar="S",
                       help="seconds after which a step counts as hung")  # fmt: skip
    group.add_argument("--no-prefix-cache", action="store_true")
    group.add_argument("--no-warm-up", action="store_true",
                       help="take requests at once: the first ones wait for kernels to be compiled "
                       "and steps to be recorded")  # fmt: skip
    group.add_argument("--host-cache", metavar="BYTES",
                       help="of the host's memory, of each model: keeps pages of the prefix cache "
                       "that leave the device")  # fmt: skip
    group.add_argument("--deterministic", action="store_true",
                       help="equal bits whatever else runs")  # fmt: skip
    add_draft_arguments(group)


def _add_adapters(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("LoRA adapters of the model")
    group.add_argument("--lora-modules", action="extend", nargs="+", default=[],
                       metavar="NAME=PATH", help="folders that PEFT wrote")  # fmt: skip
    group.add_argument("--allow-adapters", metavar="FOLDER",
                       help="lets clients load and unload adapters of this folder")  # fmt: skip
    group.add_argument("--max-adapters", type=int, default=8, metavar="N",
                       help="loaded at a time")  # fmt: skip
    group.add_argument("--max-adapter-rank", type=int, default=256, metavar="N")


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("limits")
    group.add_argument("--max-body", metavar="BYTES", default="16MiB")
    group.add_argument("--max-requests", type=int, default=1024, metavar="N",
                       help="at a time; more are refused with 429")  # fmt: skip
    group.add_argument("--max-choices", type=int, default=16, metavar="N", help="n and best_of")
    for name, seconds, text in (
        ("timeout", 3600, "of a request"),
        ("load-timeout", 600, "for a request to wait while its model is loaded"),
        ("read-timeout", 60, "for a client to send"),
        ("write-timeout", 60, "for a client to take what was sent"),
        ("drain-timeout", 60, "for running requests after SIGTERM"),
    ):  # fmt: skip
        group.add_argument(f"--{name}", type=float, default=seconds, metavar="S",
                           help=f"seconds {text}")  # fmt: skip
    group.add_argument("--allow-priorities", action="store_true",
                       help="let requests have a priority: lower ones go first, and take rows "
                       "of others")  # fmt: skip
    group.add_argument(
        "--unknown-fields", choices=("refuse", "ignore"), default="refuse",
        help="of bodies: refused with their name, or ignored",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    try:
        from kernwright.serve.http.log import log, log_lines
        from kernwright.serve.start import start
    except ImportError as error:
        raise UsageError(
            f"the server needs the package {error.name} ({error}): "
            "pip install 'kernwright[llm,serve]'"
        ) from error

    from kernwright.llm._load import plan, planned_draft

    arguments.draft = draft_of(arguments)
    with log_lines(arguments.log_format, arguments.log_level):
        device = chosen_device(arguments, log.info)

        def planned(path: str | None) -> Any:
            with device:
                options = load_options(arguments, path)
                made = plan(**options, device=device)
                if path is None and arguments.draft is not None and arguments.draft.has_model:
                    draft = planned_draft(arguments.draft, made, options.get("path"))
                    made = made._replace(draft=draft)
                return made

        def load(path: str | None) -> Any:
            return loaded(arguments, path, device)

        return start(arguments, planned, load, sampling_of(arguments), sys.stdout)
