"""Sources are plain ASCII and speak of the project alone."""

import re

BINARY = {".png", ".jpg", ".ptx.gz", ".gz", ".bin", ".npz", ".safetensors", ".zst", ".xz"}
# Words for unfinished things, and absolute paths of one machine.
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
MACHINE_PATH = re.compile(r"(?<![\w.])/(work|root|home/\w+)/")


def texts(root, tracked):
    for path in tracked:
        if path.suffix not in BINARY:
            yield path, (root / path).read_bytes()


def test_everything_is_ascii(root, tracked):
    problems = [
        f"{path}:{number}"
        for path, data in texts(root, tracked)
        for number, line in enumerate(data.split(b"\n"), 1)
        if any(byte > 126 or byte < 9 for byte in line)
    ]
    assert not problems, "\n".join(problems[:50])


def test_nothing_is_left_unfinished(root, tracked):
    problems = [
        f"{path}: {match[0]}"
        for path, data in texts(root, tracked)
        if path.parts[:2] != ("tests", "lint")
        for match in UNFINISHED.finditer(data.decode("ascii", "replace"))
    ]
    assert not problems, "\n".join(problems)


def test_no_path_of_one_machine(root, tracked):
    problems = [
        f"{path}: {match[0]}"
        for path, data in texts(root, tracked)
        if path.parts[:2] != ("tests", "lint")
        for match in MACHINE_PATH.finditer(data.decode("ascii", "replace"))
    ]
    assert not problems, "\n".join(problems)


# NVRTC before 13.1 refuses a text with functions of the host, which is then compiled once more.
HOST_FUNCTION = re.compile(
    r"^\s*(?:(?:static|inline) )*constexpr [A-Za-z_][\w:<>, ]* [a-z_]\w*\(.*\) *(?:const )?\{",
    re.MULTILINE,
)


def test_functions_of_device_texts_are_for_the_device(root, tracked):
    problems = [
        f"{path}: {match[0].strip()}"
        for path, data in texts(root, tracked)
        if path.parts[0] == "kernels_src" and path.suffix in (".cu", ".cuh")
        for match in HOST_FUNCTION.finditer(data.decode("ascii", "replace"))
    ]
    assert not problems, "write __device__ before:\n" + "\n".join(problems)
