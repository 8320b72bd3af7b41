"""Pictures as PNG files, with zlib alone."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

import numpy as np

_COLOUR_TYPES = {2: 0, 3: 2}  # dimensions of the pixels: grey, red-green-blue


def encode(pixels: np.ndarray, texts: Mapping[str, str] | None = None) -> bytes:
    """A PNG of uint8 pixels (height, width), or (height, width, 3). `texts` are Latin-1 text by
    keyword, "Description" for example."""
    height, width = pixels.shape[:2]
    rows = np.ascontiguousarray(pixels, np.uint8).reshape(height, -1)
    filtered = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)  # filter 0: none
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[pixels.ndim], 0, 0, 0)
    chunks = [(b"IHDR", header)]
    for keyword, text in (texts or {}).items():
        chunks.append((b"tEXt", f"{keyword}\0{text}".encode("latin-1", "replace")))
    chunks += [(b"IDAT", zlib.compress(filtered.tobytes(), 6)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)
