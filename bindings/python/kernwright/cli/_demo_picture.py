"""The picture of kernwright demo: images side by side, each below its caption."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import TYPE_CHECKING

import numpy as np

from kernwright.cli import UsageError

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont, ImageFont

_NARROWEST = 240
"""Columns are at least that wide, so that captions of small images can be read."""
_INK, _PAPER = 20, 255


@dataclasses.dataclass(frozen=True)
class Panel:
    """An image (grey levels 0..255) with the name of what made it, and what it shows."""

    name: str
    shows: str
    image: np.ndarray


def _font(size: int) -> FreeTypeFont | ImageFont:
    """Pillow's own font; in its one size where it has no other."""
    from PIL import ImageFont

    try:
        return ImageFont.load_default(size)
    except (TypeError, ImportError, OSError):
        return ImageFont.load_default()


def _wrapped(text: str, font: FreeTypeFont | ImageFont, width: int) -> list[str]:
    """Lines of whole words that fit the width, as far as a word does."""
    lines: list[str] = []
    for word in text.split():
        if lines and font.getbbox(f"{lines[-1]} {word}")[2] <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def write_picture(path: pathlib.Path, panels: list[Panel]) -> None:
    """Writes a PNG. Its description has the captions, too."""
    from PIL import Image, ImageDraw
    from PIL.PngImagePlugin import PngInfo

    widths = [max(panel.image.shape[1], _NARROWEST) for panel in panels]
    size = max(13, min(widths) // 26)
    margin, font = size // 2, _font(size)
    captions = [
        [line for text in (panel.name, panel.shows) for line in _wrapped(text, font, room)]
        for panel, room in zip(panels, (width - 2 * margin for width in widths), strict=True)
    ]
    step = round(1.3 * size)
    top = max(map(len, captions)) * step + 2 * margin
    height = top + max(panel.image.shape[0] for panel in panels)
    picture = Image.new("L", (sum(widths), height), _PAPER)
    draw = ImageDraw.Draw(picture)
    left = 0
    for panel, width, lines in zip(panels, widths, captions, strict=True):
        for row, line in enumerate(lines):
            draw.text((left + margin, margin + row * step), line, fill=_INK, font=font)
        pixels = np.clip(panel.image, 0, 255).astype(np.uint8)
        picture.paste(Image.fromarray(pixels), (left, top))
        left += width
    about = PngInfo()
    about.add_text("Description", "; ".join(f"{panel.name}: {panel.shows}" for panel in panels))
    try:
        picture.save(path, format="PNG", pnginfo=about)
    except OSError as error:
        raise UsageError(f"cannot write {str(path)!r}: {error}") from error
