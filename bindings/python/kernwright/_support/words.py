"""Numbers of things in words, and messages in a line."""

from __future__ import annotations

from collections.abc import Mapping


def counted(count: int, one: str, many: str = "") -> str:
    """ "1 kernel", "2 kernels"; `many` where it is not `one` with an s."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def time_text(milliseconds: float) -> str:
    """12.3 us, 0.5536 ms, 2.1 s"""
    if abs(milliseconds) < 0.1:
        return f"{milliseconds * 1000:.4g} us"
    seconds = milliseconds / 1000
    return f"{seconds:.4g} s" if abs(seconds) >= 1 else f"{milliseconds:.4g} ms"


def pairs_text(values: Mapping[str, object] | None) -> str:
    """block=64, tile=2"""
    return ", ".join(f"{name}={value}" for name, value in (values or {}).items())


def headline(message: str) -> str:
    """The first line of a message, with the next one where the first only announces it."""
    lines = [line.strip() for line in message.strip().splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].endswith(":"):
        return f"{lines[0]} {lines[1]}"
    return lines[0] if lines else ""


def printable(text: str) -> str:
    """The text without characters that could steer a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)
