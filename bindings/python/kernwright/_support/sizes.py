"""Sizes of memory as people write them."""

from __future__ import annotations

import re

__all__ = ["size_in_bytes"]

_SIZE = re.compile(r"\s*([0-9]+(?:[.][0-9]+)?)\s*([KMGT]?)(iB|i|B|)\s*", re.IGNORECASE)


def size_in_bytes(text: str) -> int | None:
    """The bytes of "4000000000", "4GB" (powers of 1000), "4GiB" or "4G" (of 1024), in either case;
    None for another text.

    >>> from kernwright._support.sizes import size_in_bytes
    >>> size_in_bytes("16M"), size_in_bytes("1.5 GiB"), size_in_bytes("4gb"), size_in_bytes("much")
    (16777216, 1610612736, 4000000000, None)
    """
    found = _SIZE.fullmatch(text)
    if found is None or (found[3].lower().startswith("i") and not found[2]):
        return None
    base = 1000 if found[3].lower() == "b" else 1024
    return int(float(found[1]) * base ** " KMGT".index(found[2].upper() or " "))
