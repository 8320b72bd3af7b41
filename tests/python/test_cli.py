"""The command line: results, exit codes, and messages for wrong use."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from children import kernwright, run_child

import kernwright as kw


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A run with nothing given: its folder, its temporary folder and its output."""
    folder, temporary = tmp_path_factory.mktemp("demo"), tmp_path_factory.mktemp("temporary")
    return folder, temporary, kernwright("demo", cwd=folder, TMPDIR=str(temporary))


def test_demo_runs_on_the_photograph_that_matplotlib_ships(demo):
    _, _, result = demo
    assert result.returncode == 0, result.stdout + result.stderr
    assert "grace_hopper.jpg" in result.stdout
    assert "all results agree" in result.stdout


def test_demo_shows_the_message_of_a_wrong_launch(demo):
    assert "parameter 1 (const float*)" in demo[2].stdout
    assert "float64" in demo[2].stdout


def test_demo_leaves_a_picture_among_the_temporary_files_alone(demo):
    folder, temporary, result = demo
    assert list(folder.iterdir()) == []
    (picture,) = temporary.glob("kernwright-demo-*")
    assert f"picture     {picture}\n" in result.stdout


def test_a_demo_that_fails_leaves_no_picture(tmp_path):
    result = kernwright("demo", "nowhere.jpg", cwd=tmp_path, TMPDIR=str(tmp_path))
    assert result.returncode == 2 and list(tmp_path.iterdir()) == []


def test_make_demo_writes_into_the_build_folder_alone():
    root = pathlib.Path(__file__).resolve().parents[2]
    makefile = (root / "Makefile").read_text()
    (build,) = re.findall(r"^BUILD +\?= (.*)$", makefile, re.MULTILINE)
    (output,) = re.findall(r"kernwright demo --output (\S+)$", makefile, re.MULTILINE)
    assert output.replace("$(BUILD)", build) == "build/release/demo.png"
    assert "/build*/" in (root / ".gitignore").read_text().splitlines()


def test_demo_writes_three_panels_below_their_captions(demo):
    import numpy as np
    from PIL import Image

    (path,) = demo[1].glob("kernwright-demo-*")
    with Image.open(path) as picture:
        assert picture.format == "PNG" and picture.width == 3 * 512
        about, pixels = picture.info["Description"], np.asarray(picture)
    captions = [text.split(": ", 1) for text in about.split("; ")]
    names = ["photograph", "blur_rows, blur_columns", "sobel"]
    assert [name for name, _ in captions] == names
    assert all(word in about for word in ("512 x 600 pixels", "radius 6", "edges"))
    top = len(pixels) - 600
    inked = []
    for panel in np.split(pixels[:top], 3, axis=1):
        columns = np.flatnonzero((panel < 128).any(axis=0))
        assert columns.size > 40 and columns[0] > 0 and columns[-1] < 511  # whole words fit
        inked.append(panel.tobytes())
    assert len(set(inked)) == 3
    photograph = np.asarray(Image.open(default_photograph()).convert("L"))
    assert np.array_equal(pixels[top:, :512], photograph)


def default_photograph():
    from kernwright.cli.demo import default_photo

    return default_photo()


def answers(result):
    """The sources of the kernels at first, and again."""
    assert result.returncode == 0, result.stdout + result.stderr
    return re.findall(r"^(?:first|again) .* answered by (.*)$", result.stdout, re.MULTILINE)


def test_demo_says_which_cache_answered(tmp_path):
    import numpy as np
    from PIL import Image

    Image.fromarray(np.eye(64, dtype=np.uint8) * 200).save(tmp_path / "small.png")
    cache = {"KERNWRIGHT_CACHE_DIR": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}

    def run(*before, **environment):
        code = ";".join([*before, "from kernwright.cli import main", "main(['demo', 'small.png'])"])
        return answers(
            subprocess.run(
                [sys.executable, "-c", code],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=300,
                env={**os.environ, **cache, **environment},
            )
        )

    compiled = "NVRTC, which compiled them"
    assert run() == [compiled, "the memory cache"]
    assert run() == ["the disk cache", "the memory cache"]
    assert run(KERNWRIGHT_CACHE="memory") == [compiled, "the memory cache"]
    assert run(KERNWRIGHT_CACHE="off") == [compiled, compiled]
    pack = (
        "import kernwright as kw, pathlib, kernwright.cli as cli",
        "text = pathlib.Path(cli.__file__).with_name('demo.cu')",
        "module = kw.module(text, defines={'RADIUS': 6, 'TILE': 128})",
        "device = kw.current_device()",
        "own = 'sm_{}{}'.format(*device.compute_capability)",
        "kw.pack('demo.kwpack', [module], archs=['sim' if device.is_simulated else own])",
        "kw.use_pack('demo.kwpack')",
    )
    assert run(*pack)[0] == "a pack"


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


def test_doctor_tells_how_a_device_can_be_shared():
    device, rules = kw.current_device(), kw.current_device().partition_rules
    text = kernwright("doctor").stdout
    least, greatest = device.priority_range
    assert f"priorities of streams from {least} (lowest) to {greatest} (highest)" in text
    if rules.supported:
        assert f"partitions of at least {rules.minimum} multiprocessors" in text
        assert f"in multiples of {rules.alignment}" in text
    else:
        assert "no partitions" in text


def test_doctor_says_where_kernels_are_kept(tmp_path):
    text = kernwright("doctor", KERNWRIGHT_CACHE_DIR=str(tmp_path / "mine")).stdout
    assert f"cache      on, {tmp_path / 'mine'}" in text and "not kept on the disk" not in text
    (tmp_path / "file").write_text("no folder")
    text = kernwright("doctor", KERNWRIGHT_CACHE_DIR=str(tmp_path / "file")).stdout
    assert "; they are not kept on the disk" in text
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


WITHOUT = """
import sys
for name in ("matplotlib", "PIL", "scipy"):
    sys.modules[name] = None
from kernwright.cli import main
sys.exit(main({words!r}))
"""


def test_demo_needs_no_other_package(tmp_path):
    """As after `pip install kernwright` alone: it draws its own scene."""
    result = run_child(WITHOUT.format(words=["demo", "-o", str(tmp_path / "out.png")]), timeout=300)
    assert result.code == 0, result.out + result.err
    assert "scene       drawn by this program, 512 x 600 pixels" in result.out
    assert "all results agree with NumPy" in result.out
    assert "on the simulated device (a CPU)" in result.out or "on the device," in result.out
    head = (tmp_path / "out.png").read_bytes()
    assert head.startswith(b"\x89PNG") and b"edges of the blurred image" in head


def test_demo_of_an_image_without_pillow_says_what_to_install(tmp_path):
    (tmp_path / "mine.png").write_bytes(b"")
    result = run_child(WITHOUT.format(words=["demo", str(tmp_path / "mine.png")]))
    assert result.code == 2 and "pip install 'kernwright[demo]'" in result.err
    assert "Traceback" not in result.err


def test_doctor_lists_no_places_where_nothing_is():
    result = kernwright("doctor")
    assert result.returncode == 0, result.stderr
    assert ": not found" not in result.stdout


def test_bench_of_an_unknown_operation_says_so_in_a_line():
    result = kernwright("bench", "--only", "nothing")
    assert result.returncode == 2 and result.stdout == ""
    assert "no operation has 'nothing' in its name" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1 and len(result.stderr) < 400
