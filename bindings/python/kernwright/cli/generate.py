"""kernwright generate: what a language model writes behind a prompt."""

from __future__ import annotations

import argparse
import sys
import time

from kernwright.cli._models import (
    add_draft_arguments,
    add_model_arguments,
    add_sampling_arguments,
    draft_of,
    loaded,
    refuse_arguments,
    sampling_of,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("prompt", nargs="?", help="the text to go on with; - reads it from stdin")
    parser.add_argument(
        "--tokens", metavar="IDS", help="token ids with commas between them, in place of a prompt: "
        "with --random, which has no tokenizer, and with files that have none",
    )  # fmt: skip
    parser.add_argument(
        "--ignore-eos", action="store_true",
        help="texts go on behind tokens that end them (default: they stop there)",
    )  # fmt: skip
    add_draft_arguments(parser)
    refuse_arguments(parser)
    add_sampling_arguments(parser, 256)


def run(arguments: argparse.Namespace) -> int:
    from kernwright.cli import UsageError

    if arguments.random is not None and arguments.prompt is None and arguments.model is not None:
        arguments.model, arguments.prompt = None, arguments.model  # the only text is the prompt
    if (arguments.prompt is None) == (arguments.tokens is None):
        raise UsageError("give a prompt, or --tokens")
    prompt: str | list[int] = sys.stdin.read() if arguments.prompt == "-" else arguments.prompt
    if arguments.tokens is not None:
        try:
            prompt = [int(each) for each in arguments.tokens.split(",")]
        except ValueError:
            raise UsageError(f"--tokens are numbers, got {arguments.tokens!r:.60}") from None
    model = loaded(arguments)
    options = sampling_of(arguments) | {"ignore_eos": arguments.ignore_eos}
    options["draft"] = draft_of(arguments)
    begin = time.perf_counter()
    first, count, reason = 0.0, 0, ""
    for piece in model.stream(prompt, **options):
        if piece.token is not None:
            count += 1
            first = first or time.perf_counter() - begin
            shown = piece.text if model.tokenizer is not None else f"{piece.token} "
            print(shown, end="", flush=True)
        reason = piece.finish_reason or reason
    seconds = time.perf_counter() - begin
    rate = (count - 1) / (seconds - first) if count > 1 else 0.0
    print(flush=True)
    print(
        f"{count} tokens in {seconds:.2f} s ({reason}); the first after {1e3 * first:.0f} ms, then "
        f"{rate:.1f} tokens/s",
        file=sys.stderr,
    )
    return 0
