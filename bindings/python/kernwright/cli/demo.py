"""kernwright demo: a picture through four string kernels, each compared with NumPy."""

from __future__ import annotations

import argparse
import collections
import os
import pathlib
import tempfile
import time
from typing import Any

import numpy as np

from kernwright.cli import UsageError
from kernwright.cli._demo_picture import Panel, write_picture
from kernwright.cli._demo_scene import scene
from kernwright.cli._files import complete_files, existing, writable

RADIUS = 6
TILE = 128
KERNELS = ("blur_rows", "blur_columns", "sobel", "histogram")
INSTALL = "pip install 'kernwright[demo]'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    photo = parser.add_argument(
        "photo",
        nargs="?",
        help="an image, read by Pillow (default: the photograph that matplotlib ships, or a drawn "
        "scene where matplotlib or Pillow is not installed)",
    )
    output = parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the picture to write, a PNG (default: a new file in the folder of temporary files)",
    )
    complete_files(photo)
    complete_files(output)


def default_photo() -> pathlib.Path | None:
    """The photograph of matplotlib; None where matplotlib or Pillow is not installed."""
    try:
        import matplotlib
        import PIL.Image  # noqa: F401
    except ImportError:
        return None
    path = pathlib.Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg"
    return path if path.is_file() else None


def load_grey(path: pathlib.Path) -> np.ndarray:
    """The image as float32 luminance in 0..255, of shape (height, width)."""
    existing(str(path))
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise UsageError(
            f"{str(path)!r} is read by Pillow, which is not installed: {INSTALL}, or leave out the "
            "image"
        ) from error
    try:
        with Image.open(path) as image:
            return np.asarray(image.convert("L"), dtype=np.float32)
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise UsageError(f"{str(path)!r} is not an image that Pillow can read: {error}") from error


def load_input(given: str | None) -> tuple[str, str, np.ndarray]:
    """What the input is, its name, and its grey levels."""
    path = pathlib.Path(given) if given else default_photo()
    if path is None:
        return "scene", "drawn by this program", scene()
    return "photograph", path.name, load_grey(path)


def gaussian_weights() -> np.ndarray:
    x = np.arange(-RADIUS, RADIUS + 1)
    weights: np.ndarray = np.exp(-0.5 * (x / (RADIUS / 3)) ** 2)
    weights /= weights.sum()
    return weights


class Chain:
    """The kernels of demo.cu, launched one after the other with their times kept."""

    def __init__(self) -> None:
        import kernwright as kw

        self.kw = kw
        started = time.perf_counter()
        source = pathlib.Path(__file__).with_name("demo.cu")
        self.module = kw.module(source, defines={"RADIUS": RADIUS, "TILE": TILE})
        self.module.symbol("weights")[...] = gaussian_weights().astype(np.float32)
        self.ready_ms = (time.perf_counter() - started) * 1e3
        self.times: dict[str, float] = {}

    def answered(self) -> str:
        """Which layers of the cache had the kernels, as their reports say."""
        names = {
            "memory": "the memory cache",
            "disk": "the disk cache",
            "pack": "a pack",
            "compiled": "NVRTC, which compiled them",
        }
        reports = [self.module[name].report(phases=False) for name in KERNELS]
        layers = collections.Counter(report.answered for report in reports)
        if len(layers) == 1:
            return names.get(*layers, *layers)
        return ", ".join(f"{names.get(layer, layer)} ({n})" for layer, n in layers.items())

    def launch(self, name: str, grid: Any, block: Any, *arguments: Any) -> None:
        kernel = self.module[name]
        start, end = self.kw.Event(), self.kw.Event()
        start.record()
        kernel[grid, block](*arguments)
        end.record()
        end.synchronize()
        self.times[name] = float(end.elapsed_ms(start))

    def run(self, image: np.ndarray) -> dict[str, np.ndarray]:
        kw, (height, width) = self.kw, image.shape
        grey = kw.asarray(image)
        rows, blurred, edges = kw.empty_like(grey), kw.empty_like(grey), kw.empty_like(grey)
        counts = kw.zeros(256, dtype=np.int32)
        self.launch("blur_rows", (-(-width // TILE), height), TILE, grey, rows, width)
        grid = (-(-width // 32), -(-height // 8))
        self.launch("blur_columns", grid, (32, 8), rows, blurred, width, height)
        self.launch("sobel", grid, (32, 8), blurred, edges, width, height)
        levels = kw.asarray(image.astype(np.uint8))
        self.launch("histogram", 32, 256, levels, counts, levels.size)
        return {
            "blur": blurred.numpy(),
            "sobel": edges.numpy(),
            "histogram": counts.numpy(),
        }


def shifted(image: np.ndarray, offset: int, axis: int) -> np.ndarray:
    """The neighbours at that offset; those outside of the image are its border."""
    places = np.clip(np.arange(image.shape[axis]) + offset, 0, image.shape[axis] - 1)
    return image.take(places, axis=axis)


def correlated(image: np.ndarray, weights: Any, axis: int) -> np.ndarray:
    reach = len(weights) // 2
    total = np.zeros_like(image)
    for k, weight in enumerate(weights):
        total += weight * shifted(image, k - reach, axis)
    return total


def references(image: np.ndarray, blurred: np.ndarray) -> dict[str, np.ndarray]:
    """The same by NumPy in float64; the edges start from the device's own blur."""
    weights = gaussian_weights()
    wide = blurred.astype(np.float64)
    gradient = [
        correlated(correlated(wide, (-1, 0, 1), axis), (1, 2, 1), 1 - axis) for axis in (0, 1)
    ]
    return {
        "blur": correlated(correlated(image.astype(np.float64), weights, 1), weights, 0),
        "sobel": np.hypot(*gradient),
        "histogram": np.bincount(image.astype(np.uint8).ravel(), minlength=256),
    }


def panels(kind: str, image: np.ndarray, results: dict[str, np.ndarray]) -> list[Panel]:
    edges = results["sobel"]
    return [
        Panel(kind, f"the input, {image.shape[1]} x {image.shape[0]} pixels", image),
        Panel(
            "blur_rows, blur_columns",
            f"Gaussian blur of the input, radius {RADIUS}",
            results["blur"],
        ),
        Panel(
            "sobel",
            "edges of the blurred image: length of the gradient",
            edges * (255 / max(float(edges.max()), 1.0)),
        ),
    ]


def output_path(given: str | None) -> pathlib.Path:
    """The file named, else a new one in the folder of temporary files."""
    if given is not None:
        return pathlib.Path(writable(given))
    try:
        file, path = tempfile.mkstemp(prefix="kernwright-demo-", suffix=".png")
    except OSError as error:
        raise UsageError(
            f"no temporary file for the picture: {error}; name one by --output"
        ) from error
    os.close(file)
    return pathlib.Path(path)


def show_wrong_launch(chain: Chain) -> None:
    """The message for a wrong argument: nothing was sent, and the message says which one it is."""
    kw = chain.kw
    wrong = kw.zeros((4, 4), dtype=np.float64)
    print("a wrong launch, on purpose: blur_rows[1, 128](float64 array, ...)")
    try:
        chain.module["blur_rows"][1, TILE](wrong, wrong, 4)
    except kw.ArgumentError as error:
        print(f"  {type(error).__name__}: {error}")
    else:
        raise kw.Error("a float64 array was accepted as const float*")


def run(arguments: argparse.Namespace) -> int:
    if arguments.output is not None:
        writable(arguments.output)
    kind, name, image = load_input(arguments.photo)
    import kernwright as kw

    device = kw.current_device()
    print(f"{kind:<11} {name}, {image.shape[1]} x {image.shape[0]} pixels")
    capability = ".".join(map(str, device.compute_capability))
    print(f"device      {device.name}, compute capability {capability}")
    chain = Chain()
    for label, made in (("first", chain), ("again", Chain())):
        print(
            f"{label:<11} {len(KERNELS)} kernels of demo.cu ready in {made.ready_ms:.1f} ms, "
            f"answered by {made.answered()}"
        )
    results = chain.run(image)
    expected = references(image, results["blur"])
    worst = 0.0
    clock = "simulated device (a CPU)" if device.is_simulated else "device"
    for step, launches in (("blur", ("blur_rows", "blur_columns")), ("sobel", ("sobel",)),
                           ("histogram", ("histogram",))):  # fmt: skip
        difference = float(np.abs(results[step] - expected[step]).max())
        scale = max(float(np.abs(expected[step]).max()), 1.0)
        worst = max(worst, difference / scale)
        spent = sum(chain.times[launch] for launch in launches)
        print(f"{step:<11} {spent:8.3f} ms on the {clock}, largest difference {difference:.2g}")
    output = output_path(arguments.output)
    try:
        write_picture(output, panels(kind, image, results))
    except OSError as error:
        if arguments.output is None:
            output.unlink(missing_ok=True)
        raise UsageError(f"the picture cannot be written: {error}") from error
    print(f"picture     {output}")
    show_wrong_launch(chain)
    if not worst < 1e-5:
        print(f"FAILED: a result differs from its reference by {worst:.2g} of its range")
        return 1
    print("all results agree with NumPy")
    return 0
