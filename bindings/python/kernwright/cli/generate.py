"""kernwright generate: what a language model writes behind a prompt."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from kernwright.cli._models import (
    add_draft_arguments,
    add_graph_argument,
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
    parser.add_argument(
        "--batch-size", type=int, default=1, metavar="N",
        help="texts of the prompt that are written at a time, and shown when all have ended "
        "(default: 1, shown as it comes)",
    )  # fmt: skip
    add_draft_arguments(parser)
    add_graph_argument(parser)
    refuse_arguments(parser, batch_size=False)
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
    if arguments.batch_size != 1:
        return _several(model, prompt, options | {"n": arguments.batch_size})
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


def _several(model: Any, prompt: str | list[int], options: dict[str, Any]) -> int:
    """Several texts of a prompt, one behind the other."""
    made = model.generate(prompt, **options)
    for number, each in enumerate(made, 1):
        text = each.text if model.tokenizer is not None else " ".join(map(str, each.tokens))
        print(f"[{number}] {text}")
    count, seconds = sum(len(each.tokens) for each in made), made[0].seconds
    reasons = ", ".join(sorted({each.finish_reason for each in made}))
    print(
        f"{count} tokens of {len(made)} texts in {seconds:.2f} s ({reasons}): "
        f"{count / seconds:.1f} tokens/s",
        file=sys.stderr,
    )
    return 0
