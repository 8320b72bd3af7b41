"""Test files that a simulated device of 9.0 repeats, and a pytest plugin that selects those tests.

`KERNWRIGHT_SIM_CAPABILITY=9.0 pytest -p at_9_0 FILE...` runs them in parallel, each with its own
limit, as scripts/run_tests.py does. Else one test of each file runs all of its tests in a child.
"""

import re
from pathlib import Path

# These files repeat only the tests whose names have one of the words.
WORDS = {
    "conv": ("wgmma",),
    "conv_backward": ("wgmma",),
    "experts": ("layer",),
    "fused_matmul": ("wgmma", "layouts", "checks"),
    "mma_gemm": ("float8",),
}
# Repeated with test_hopper_decode.py.
OTHERS = ("decode_attention",)
CALL = re.compile(r"^    run_at_9_0\(__file__", re.MULTILINE)
# Set where the tests of 9.0 are a suite of their own.
APART = "KERNWRIGHT_TEST_9_0_APART"


def files():
    """Paths below the repository of the files whose tests ask for it, sorted."""
    folder = Path(__file__).parent
    found = {path.name for path in folder.glob("test_*.py") if CALL.search(path.read_text())}
    found |= {f"test_{name}.py" for name in OTHERS}
    return [f"tests/python/{name}" for name in sorted(found)]


def words_of(path):
    return WORDS.get(Path(path).stem.removeprefix("test_"), ())


def pytest_collection_modifyitems(config, items):
    def is_repeated(item):
        words = words_of(item.path)
        return not words or any(word in item.name for word in words)

    others = [item for item in items if not is_repeated(item)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if is_repeated(item)]
