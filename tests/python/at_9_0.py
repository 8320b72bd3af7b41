"""Test files that a simulated device of 9.0 repeats, and a pytest plugin that selects those tests.

`KERNWRIGHT_SIM_CAPABILITY=9.0 pytest -p at_9_0 FILE...` runs them in parallel, each with its own
limit, as scripts/run_tests.py does. Else one test of each file runs all of its tests in a child.
"""

from pathlib import Path

# Words in the names of the repeated tests; all tests of a file without words.
REPEATED = {
    "cluster_addresses": (),
    "decode_attention": (),
    "experts": ("layer",),
    "float8_attention": (),
    "fused_matmul": ("wgmma", "layouts", "checks"),
    "gemm": (),
    "gemm_edges": (),
    "gemm_gathering": (),
    "grouped": (),
    "grouped_scaled": (),
    "hopper_attention": (),
    "hopper_backward": (),
    "hopper_decode": (),
    "mma_gemm": ("float8",),
    "ragged_products": (),
    "scaled_matmul": (),
}
# Set where the tests of 9.0 are a suite of their own.
APART = "KERNWRIGHT_TEST_9_0_APART"


def files():
    """Their paths below the repository, sorted."""
    return [f"tests/python/test_{name}.py" for name in sorted(REPEATED)]


def words_of(path):
    return REPEATED[Path(path).stem.removeprefix("test_")]


def pytest_collection_modifyitems(config, items):
    def is_repeated(item):
        words = words_of(item.path)
        return not words or any(word in item.name for word in words)

    others = [item for item in items if not is_repeated(item)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if is_repeated(item)]
