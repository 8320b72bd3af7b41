"""The picture of kernwright demo: images side by side, each below its caption."""

from __future__ import annotations

import dataclasses
import pathlib

import numpy as np

from kernwright._support import png
from kernwright.cli._demo_letters import ADVANCE, HEIGHT, text_mask

_NARROWEST = 240
"""Columns are at least that wide, so that captions of small images can be read."""
_INK, _PAPER = 20, 255
_MARGIN = 10
_STEP = HEIGHT + 6


@dataclasses.dataclass(frozen=True)
class Panel:
    """An image (grey levels 0..255) with the name of what made it, and what it shows."""

    name: str
    shows: str
    image: np.ndarray


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of whole words that fit the width, as far as a word does."""
    lines: list[str] = []
    for word in text.split():
        if lines and ADVANCE * len(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def write_picture(path: pathlib.Path, panels: list[Panel]) -> None:
    """Writes a PNG. Its description has the captions, too."""
    widths = [max(panel.image.shape[1], _NARROWEST) for panel in panels]
    captions = [
        [line for text in (panel.name, panel.shows) for line in _wrapped(text, width - 2 * _MARGIN)]
        for panel, width in zip(panels, widths, strict=True)
    ]
    top = max(map(len, captions)) * _STEP + 2 * _MARGIN
    height = top + max(panel.image.shape[0] for panel in panels)
    picture = np.full((height, sum(widths)), _PAPER, np.uint8)
    left = 0
    for panel, width, lines in zip(panels, widths, captions, strict=True):
        for row, line in enumerate(lines):
            mask = text_mask(line)[:, : width - _MARGIN]
            y = _MARGIN + row * _STEP
            picture[y : y + HEIGHT, left + _MARGIN : left + _MARGIN + mask.shape[1]][mask] = _INK
        pixels = np.clip(panel.image, 0, 255).astype(np.uint8)
        picture[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
        left += width
    about = "; ".join(f"{panel.name}: {panel.shows}" for panel in panels)
    path.write_bytes(png.encode(picture, {"Description": about}))
