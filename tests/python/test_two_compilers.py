"""Two NVRTCs of different versions share one cache folder: each finds its own code and no other's.

The second one is that of a toolkit, or named in KERNWRIGHT_TEST_NVRTCS (paths with ":" between).
"""

import glob
import json
import os
import pathlib
import subprocess
import sys

import pytest

COMPILE = """
import json, sys
import numpy as np
import kernwright as kw
k = kw.kernel("__global__ void twice(int* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }")
x = kw.asarray(np.arange(8, dtype=np.int32))
k[1, 8](x, 8)
assert (x.numpy() == 2 * np.arange(8)).all()
done = kw.cache.info()["process"]
entries = kw.cache.info()["entries"]
print(json.dumps([done["compiles"], done["disk_hits"], done["rejected"], entries]))
"""


def candidates():
    named = os.environ.get("KERNWRIGHT_TEST_NVRTCS", "").split(":")
    try:
        import nvidia

        named += [f"{folder}/*/lib/libnvrtc.so.1?" for folder in nvidia.__path__]
    except ImportError:
        pass
    named += ["/usr/local/cuda*/lib64/libnvrtc.so.1?"]
    found = {}  # by the builtins beside it, which name the version
    for pattern in filter(None, named):
        for path in glob.glob(pattern):
            beside = pathlib.Path(path).resolve().parent
            for builtins in beside.glob("libnvrtc-builtins.so.*.*"):
                found.setdefault(".".join(builtins.name.split(".")[2:4]), path)
    return found


def test_each_finds_its_own(tmp_path):
    compilers = candidates()
    if len(compilers) < 2:
        pytest.skip(f"needs NVRTCs of two versions, there is {sorted(compilers)}")
    results = []
    for _ in range(2):
        for path in compilers.values():
            env = {
                **os.environ,
                "KERNWRIGHT_NVRTC": path,
                "KERNWRIGHT_CACHE_DIR": str(tmp_path),
                "KERNWRIGHT_CACHE": "disk",
            }
            child = subprocess.run(
                [sys.executable, "-c", COMPILE], capture_output=True, text=True, env=env
            )
            assert child.returncode == 0, child.stderr
            results.append(json.loads(child.stdout.splitlines()[-1]))
    count = len(compilers)
    assert results[:count] == [[1, 0, 0, number + 1] for number in range(count)]
    # The second time each finds its own, by the library that it would load.
    assert results[count:] == [[0, 1, 0, count]] * count
