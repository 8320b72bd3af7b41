"""einops on arrays, against einops on NumPy's."""

import subprocess
import sys

import numpy as np
import pytest

einops = pytest.importorskip("einops", reason="einops is not installed")
import kernwright as kw  # noqa: E402
import kernwright.einops  # noqa: E402

RNG = np.random.default_rng(4)
IMAGES = RNG.standard_normal((2, 4, 6, 3))


@pytest.mark.parametrize(
    ("function", "pattern", "arguments"),
    [
        ("rearrange", "b h w c -> b c h w", {}),
        ("rearrange", "b (h p) (w q) c -> b (h w) (p q c)", {"p": 2, "q": 3}),
        ("rearrange", "b ... -> b (...)", {}),
        ("rearrange", "b h w c -> h (b w) c", {}),
        ("reduce", "b (h p) (w q) c -> b h w c", {"reduction": "max", "p": 2, "q": 2}),
        ("reduce", "b h w c -> b () c", {"reduction": "mean"}),
        ("reduce", "b h w c -> ", {"reduction": "sum"}),
        ("repeat", "b h w c -> b (h k) w c", {"k": 3}),
        ("repeat", "b h w c -> b n h w c", {"n": 2}),
    ],
)
def test_patterns(function, pattern, arguments):
    expected = getattr(einops, function)(IMAGES, pattern, **arguments)
    found = getattr(einops, function)(kw.asarray(IMAGES), pattern, **arguments)
    assert isinstance(found, kw.Array)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def test_lists_packing_and_einsum():
    x, y = kw.asarray(IMAGES), kw.asarray(IMAGES[:, 0])
    stacked = einops.rearrange([x, x], "n b h w c -> b h w (c n)")
    assert np.array_equal(stacked.numpy(), np.repeat(IMAGES, 2, axis=-1))
    packed, shapes = einops.pack([x, y], "b * c")
    assert packed.shape == (2, 30, 3)
    back = einops.unpack(packed, shapes, "b * c")
    assert np.array_equal(back[0].numpy(), IMAGES) and np.array_equal(back[1].numpy(), IMAGES[:, 0])
    found = einops.einsum(x, y, "b h w c, b v c -> b h w v")
    expected = np.einsum("bhwc,bvc->bhwv", IMAGES, IMAGES[:, 0])
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    assert einops.parse_shape(x, "b h w _") == {"b": 2, "h": 4, "w": 6}
    assert np.array_equal(einops.asnumpy(x), IMAGES)


def test_what_einops_refuses():
    with pytest.raises(einops.EinopsError):
        einops.rearrange(kw.asarray(IMAGES), "b h w -> b (h w)")
    with pytest.raises(NotImplementedError, match="mean"):
        einops.reduce(kw.ones((2, 3), "int32"), "a b -> a", "mean")


def test_a_view_stays_one():
    x = kw.asarray(IMAGES)
    assert einops.rearrange(x, "b h w c -> c w h b").ptr == x.ptr


@pytest.mark.parametrize("first", ["einops, kernwright", "kernwright, kernwright.einops"])
def test_registering_in_a_new_process(first):
    code = f"import {first}, einops; x = kernwright.ones((2, 3)); "
    code += "assert einops.rearrange(x, 'a b -> (b a)').shape == (6,)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_array_api_of_einops():
    from einops.array_api import rearrange, reduce, repeat

    x = kw.asarray(IMAGES)
    assert rearrange(x, "b h w c -> b (h w c)").shape == (2, 72)
    assert reduce(x, "b h w c -> b c", "sum").shape == (2, 3)
    assert repeat(x, "b h w c -> b h w c k", k=2).shape == (2, 4, 6, 3, 2)
