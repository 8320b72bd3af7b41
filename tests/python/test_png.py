"""PNG files made with zlib, read again by Pillow."""

import io

import numpy as np
import pytest

from kernwright._support import png
from kernwright.cli._demo_letters import ADVANCE, HEIGHT, text_mask
from kernwright.cli._demo_scene import scene

Image = pytest.importorskip("PIL.Image")


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (7, 4, 3), (600, 513)])
def test_pixels_and_texts_come_back(shape):
    pixels = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    with Image.open(io.BytesIO(png.encode(pixels, {"Description": "a: b; c"}))) as picture:
        assert picture.format == "PNG" and picture.info["Description"] == "a: b; c"
        assert np.array_equal(np.asarray(picture), pixels)


def test_views_are_written_as_they_look():
    pixels = np.arange(24, dtype=np.uint8).reshape(4, 6)[::-1, ::2]
    with Image.open(io.BytesIO(png.encode(pixels))) as picture:
        assert np.array_equal(np.asarray(picture), pixels)


def test_letters_differ_and_fill_their_cells():
    shapes = [text_mask(chr(code)).tobytes() for code in range(32, 127)]
    assert len(set(shapes)) == 95
    mask = text_mask("ab\u00e9")
    assert mask.shape == (HEIGHT, 3 * ADVANCE)
    assert np.array_equal(mask[:, 2 * ADVANCE :], text_mask("?"))


def test_the_scene_has_all_tones():
    grey = scene()
    assert grey.shape == (600, 512) and grey.dtype == np.float32
    assert grey.min() >= 0 and grey.max() <= 255 and np.array_equal(grey, np.rint(grey))
    assert grey.std() > 40 and len(np.unique(grey)) > 150
