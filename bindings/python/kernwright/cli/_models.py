"""Arguments that commands with a language model share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from kernwright.cli import UsageError


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, its tokenizer, and how it is loaded."""
    parser.add_argument(
        "model",
        nargs="?",
        metavar="MODEL",
        help="a folder of Hugging Face's layout, or a .gguf file",
    )
    parser.add_argument(
        "--random", metavar="CONFIG",
        help="a config.json: a model of that shape with random weights, in place of MODEL",
    )  # fmt: skip
    parser.add_argument("--tokenizer", metavar="PATH", help="a tokenizer of other files")
    parser.add_argument(
        "--dtype", choices=("float32", "float16", "bfloat16"),
        help="of weights and of what is computed (default: that of the config)",
    )  # fmt: skip
    parser.add_argument(
        "--quantize", metavar="FORMAT",
        help="fp8, int8, q8_0, q4_k, nf4, ... (default: weights stay as the files have them)",
    )  # fmt: skip
    parser.add_argument(
        "--kv-dtype", choices=("float32", "float16", "bfloat16", "float8_e4m3fn", "int8"),
        help="of cached keys and values (default: the dtype of the weights)",
    )  # fmt: skip
    parser.add_argument(
        "--memory", default="auto", choices=("auto", "device", "stream", "experts"),
        help="where weights are: stream and experts keep layers or experts in the host's memory "
        "(default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--budget", metavar="SIZE", help="of weights on the device, as 4GB (default: what is free)"
    )
    parser.add_argument("--max-seq-len", type=int, metavar="N",
                        help="bounds the context (default: that of the config)")  # fmt: skip
    add_device_argument(parser)


class _Refused(argparse.Action):
    """A flag of other programs, which makes no sense here: says why. Exit code 2."""

    def __init__(self, option_strings: list[str], dest: str, why: str) -> None:
        super().__init__(option_strings, dest, nargs="?", help=argparse.SUPPRESS)
        self._why = why

    def __call__(self, parser: argparse.ArgumentParser, *rest: Any) -> None:
        parser.error(f"{rest[2]}: {self._why}")


def refuse_arguments(parser: argparse.ArgumentParser, batch_size: bool = True) -> None:
    """Flags that programs of this kind have, and this one has no use for."""
    if batch_size:
        parser.add_argument(
            "--batch-size", action=_Refused,
            why="there is one text at a time here, and a step is as large as it needs; "
            "kernwright generate writes several, kernwright bench llm measures batches",
        )  # fmt: skip
    parser.add_argument(
        "--cuda-graph", action=_Refused,
        why="a step is one recorded graph without it, and with --no-graph it is none",
    )  # fmt: skip
    parser.add_argument(
        "--speculative", "--draft-model", action=_Refused,
        why="--draft PATH guesses tokens with a smaller model, --draft ngram from the text so far",
    )  # fmt: skip


def add_graph_argument(parser: Any) -> None:
    """Whether steps are replayed."""
    parser.add_argument(
        "--no-graph", dest="graphs", action="store_false",
        help="each step calls the model, in place of a replay of what it recorded: slower, to find "
        "faults (default: steps are graphs)",
    )  # fmt: skip


def add_device_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", default="auto", choices=("auto", "cuda", "sim"),
        help="cuda raises without a GPU; auto takes one where there is one, and says so "
        "(default: %(default)s)",
    )  # fmt: skip


def add_draft_arguments(parser: Any) -> None:
    """How tokens are guessed."""
    parser.add_argument(
        "--draft", metavar="ngram|jacobi|mtp|PATH", help="guesses tokens from the text so far, "
        "with the model's own layer of multi-token prediction, a smaller model of the same "
        "vocabulary or an EAGLE-3 head, and checks several in a step, where that pays "
        "(default: none)",
    )  # fmt: skip
    parser.add_argument("--draft-tokens", type=int, metavar="N", help="of a step, at most "
                        "(default: 4 of a model or a head, 1 of mtp, else 7)")  # fmt: skip


def draft_of(arguments: argparse.Namespace) -> Any:
    """The llm.Draft that was asked for, or None. Raises UsageError."""
    from kernwright.llm._draft import draft_of as option_of

    if arguments.draft is None:
        if arguments.draft_tokens is not None:
            raise UsageError("--draft-tokens is for --draft: give that one, too")
        return None
    return option_of(arguments.draft, arguments.draft_tokens)


def add_sampling_arguments(parser: Any, max_tokens: int | None, usual: str = "") -> None:
    """How texts go on. `usual` tells the number of tokens where `max_tokens` does not."""
    parser.add_argument(
        "--max-tokens", type=int, default=max_tokens, metavar="N",
        help=f"of a text, at most (default: {usual or max_tokens})",
    )  # fmt: skip
    for name, meaning in (
        ("temperature", "0 takes the highest logit (default: 0)"),
        ("top-p", "of the most likely tokens with so much probability together (default: 1, all)"),
        ("min-p", "of tokens with this part of the highest probability (default: 0, all)"),
        ("repetition-penalty", "divides logits of all tokens so far (default: 1, none)"),
        ("presence-penalty", "subtracted for tokens of the text made so far (default: 0)"),
        ("frequency-penalty", "subtracted as often as each was made (default: 0)"),
    ):
        parser.add_argument(f"--{name}", type=float, default=None, metavar="X", help=meaning)
    parser.add_argument(
        "--top-k", type=int, default=None, metavar="N",
        help="of so many most likely tokens (default: 0, all)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=None, metavar="N",
        help="equal seeds give equal texts (default: another one each time)",
    )  # fmt: skip
    parser.add_argument(
        "--stop", action="append", default=None, metavar="TEXT",
        help="ends a text; repeatable (default: none)",
    )  # fmt: skip


def sampling_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of generate() that were given."""
    names = ("max_tokens", "temperature", "top_p", "min_p", "repetition_penalty", "top_k", "seed",
             "presence_penalty", "frequency_penalty", "stop")  # fmt: skip
    given = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in given.items() if value is not None}


def load_options(arguments: argparse.Namespace, path: str | None = None) -> dict[str, Any]:
    """What llm.load() takes beside a device for the model of the arguments, or that of another
    path. Raises UsageError."""
    if path is None and (arguments.model is None) == (arguments.random is None):
        raise UsageError("give a MODEL, or --random CONFIG")
    return {
        "path": path or arguments.model, "random": None if path else arguments.random,
        "dtype": arguments.dtype, "quantize": arguments.quantize, "memory": arguments.memory,
        "budget": arguments.budget, "max_length": arguments.max_seq_len,
        "kv_dtype": arguments.kv_dtype, **_adapter_limits(arguments),
    }  # fmt: skip


def loaded(arguments: argparse.Namespace, path: str | None = None, device: Any = None) -> Any:
    """The llm.Model of the arguments, or that of another path. Raises UsageError."""
    from kernwright import llm

    options = load_options(arguments, path)
    device = chosen_device(arguments) if device is None else device
    with device:
        model = llm.load(**options, device=device, graphs=getattr(arguments, "graphs", True))
    if arguments.tokenizer is not None and path is None:
        model.tokenizer = llm.Tokenizer(arguments.tokenizer)
    return model


def _adapter_limits(arguments: argparse.Namespace) -> dict[str, Any]:
    """Of commands that take adapters."""
    names = ("max_adapters", "max_adapter_rank")
    return {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}


def _tell(text: str) -> None:
    print(f"kernwright: {text}", file=sys.stderr)


def chosen_device(
    arguments: argparse.Namespace, tell: Callable[[str], object] = _tell
) -> Any:  # fmt: skip
    """The current device, which is asked to be of that kind; tells which it is if any will do.
    Raises UsageError."""
    import kernwright as kw

    device, name = kw.current_device(), arguments.device
    if name == "cuda" and device.is_simulated:
        raise kw.DeviceNotFound("--device cuda: there is no GPU here; auto and sim simulate one")
    if name == "sim" and not device.is_simulated:
        raise UsageError("--device sim: set KERNWRIGHT_DEVICE=sim, which chooses before the start")
    if name == "auto":
        tell(f"on {device.name}")
    return device
