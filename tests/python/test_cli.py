"""The command line: results, exit codes, and what a wrong use says."""

import json
import os
import subprocess
import sys

import pytest


def kernwright(*arguments, cwd=None, **environment):
    return subprocess.run(
        [sys.executable, "-m", "kernwright", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder, kernwright("demo", cwd=folder)


def test_demo_runs_on_the_photograph_that_matplotlib_ships(demo):
    _, result = demo
    assert result.returncode == 0, result.stdout + result.stderr
    assert "grace_hopper.jpg" in result.stdout
    assert "all results agree" in result.stdout


def test_demo_shows_the_message_of_a_wrong_launch(demo):
    assert "parameter 1 (const float*)" in demo[1].stdout
    assert "float64" in demo[1].stdout


def test_demo_writes_a_picture_three_panels_wide(demo):
    from PIL import Image

    with Image.open(demo[0] / "kernwright-demo.png") as picture:
        assert picture.format == "PNG"
        assert picture.width == 3 * 512 and picture.height == 600


def test_demo_takes_a_photograph_of_odd_size(tmp_path):
    import numpy as np
    from PIL import Image

    pixels = np.random.default_rng(2).integers(0, 256, (37, 131, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "small.png")
    result = kernwright("demo", "small.png", "-o", "out.png", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert (tmp_path / "out.png").is_file()


def test_demo_with_a_missing_photograph_says_so(tmp_path):
    result = kernwright("demo", "nowhere.jpg", cwd=tmp_path)
    assert result.returncode == 2
    assert "there is no file 'nowhere.jpg'" in result.stderr
    assert "Traceback" not in result.stderr


def test_demo_with_a_file_that_is_no_image_says_so(tmp_path):
    (tmp_path / "notes.txt").write_text("not a picture\n")
    result = kernwright("demo", "notes.txt", cwd=tmp_path)
    assert result.returncode == 2
    assert "'notes.txt' is not an image" in result.stderr
    assert "Traceback" not in result.stderr


def test_doctor_runs_a_kernel():
    result = kernwright("doctor")
    assert result.returncode == 0, result.stdout + result.stderr
    for heading in ("driver", "device", "nvrtc", "headers", "cache", "packages", "kernel"):
        assert heading in result.stdout


def test_doctor_json_is_one_document():
    result = kernwright("doctor", "--json")
    report = json.loads(result.stdout)
    assert result.returncode == 0
    assert report["kernel"]["ran"] is True
    assert report["nvrtc"]["found"] is True
    assert report["nvrtc"]["candidates"][-1][2] == "loaded"
    assert "numpy" in report["packages"]
    assert report["cache"]["mode"] in ("disk", "memory", "off")
    assert report["cache"]["limit"] > 0


def test_doctor_says_where_kernels_are_kept(tmp_path):
    text = kernwright("doctor", KERNWRIGHT_CACHE_DIR=str(tmp_path / "mine")).stdout
    assert f"cache      on, {tmp_path / 'mine'}" in text
    text = kernwright("doctor", KERNWRIGHT_CACHE="memory").stdout
    assert "no disk: KERNWRIGHT_CACHE=memory" in text
    result = kernwright("doctor", "--json", KERNWRIGHT_CACHE="nonsense")
    assert "KERNWRIGHT_CACHE" in json.loads(result.stdout)["cache"]["error"]


def test_doctor_without_nvrtc_lists_the_places_and_fails(tmp_path):
    result = kernwright("doctor", KERNWRIGHT_NVRTC=str(tmp_path / "nothing.so"))
    assert result.returncode == 1
    assert str(tmp_path / "nothing.so") in result.stdout
    assert "DID NOT RUN" in result.stdout
    assert "pip install nvidia-cuda-nvrtc" in result.stdout


@pytest.mark.parametrize("arguments", [(), ("dance",), ("demo", "--nonsense"), ("doctor", "extra")])
def test_wrong_use_exits_with_2(arguments):
    result = kernwright(*arguments)
    assert result.returncode == 2
    assert "usage:" in result.stderr


@pytest.mark.parametrize("command", ["demo", "doctor"])
def test_every_command_has_help(command):
    result = kernwright(command, "--help")
    assert result.returncode == 0
    assert "usage:" in result.stdout
