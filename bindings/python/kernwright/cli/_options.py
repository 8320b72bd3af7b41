"""Options of the compiler that several commands take, as arguments."""

from __future__ import annotations

import argparse

from kernwright._jit.options import ProgramOptions


def add_compiler_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-D", "--define", action="append", default=[], metavar="NAME[=VALUE]", help="define a macro"
    )
    parser.add_argument(
        "-I", "--include", action="append", default=[], metavar="DIR", help="look for headers there"
    )
    parser.add_argument(
        "--std",
        default="c++17",
        help="c++11, c++14, c++17 (default), c++20, or c++23 where NVRTC knows it",
    )
    parser.add_argument(
        "--device-only",
        action="store_true",
        help="leave out what only the host uses: main(), its functions, its includes",
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="OPTION",
        help="give this to NVRTC as it is",
    )


def compiler_options(arguments: argparse.Namespace, arch: str | None = None) -> ProgramOptions:
    pairs = (text.partition("=") for text in arguments.define)
    return ProgramOptions(
        arch=arch,
        std=arguments.std,
        defines={name: value for name, _, value in pairs},
        include_dirs=arguments.include,
        extra=arguments.option,
        strip_host=arguments.device_only,
    )
