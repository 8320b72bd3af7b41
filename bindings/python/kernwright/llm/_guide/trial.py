"""Compiles of strangers' forms in processes of their own first, where time and memory are bounded.

A thread within llguidance cannot be ended: it would keep a processor and its slot.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

from kernwright.errors import InvalidArgument
from kernwright.llm._guide.compiler import Compiler
from kernwright.llm._guide.form import Form

__all__ = ["require_cheap"]

_SECONDS = 5  # of a processor: a busy machine refuses no form that an idle one takes
_LONGEST = 60.0  # seconds of the clock, whatever the process does
_BYTES = 4 << 30  # of the address space of the process
# The time goes into the rules of a grammar, not into the vocabulary: bytes are enough.
_PROGRAM = f"""
import resource, sys
seconds = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, ({_BYTES}, {_BYTES}))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
import llguidance
grammar = sys.stdin.buffer.read().decode()
matcher = llguidance.LLMatcher(llguidance.LLTokenizer("byte"), grammar, log_level=0)
matcher.compute_bitmask()
"""
_TOKEN = re.compile(r"<\[\d+\]>")  # a special token of the real vocabulary


def require_cheap(compiler: Compiler, form: Form) -> None:
    """Raises InvalidArgument for a form whose compile takes too long or too much memory. Forms that
    the compiler has compiled already, and wrong ones, pass at once."""
    if compiler.has(form):
        return
    try:
        grammar = compiler.grammar(form)
    except ValueError:
        return  # compile() tells why
    try:
        ended = subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(_SECONDS)],
            input=_TOKEN.sub("/x/", grammar).encode(), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, timeout=_LONGEST, check=False,
            env={**os.environ, "PYTHONSAFEPATH": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise _too_long(form) from None
    if ended.returncode == -signal.SIGXCPU:
        raise _too_long(form)
    if ended.returncode < 0:
        raise InvalidArgument(
            f"{form.kind} takes more than {_BYTES:,} bytes to compile: make it simpler"
        )


def _too_long(form: Form) -> InvalidArgument:
    return InvalidArgument(
        f"{form.kind} takes longer than {_SECONDS} s to compile: make it simpler"
    )
