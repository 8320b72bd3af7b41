"""Calls of a function of this library beside NumPy's function of that name."""

import numpy as np

import kernwright as kw


def to_device(value):
    """Host arrays on the device, in lists and tuples too."""
    if isinstance(value, np.ndarray):
        return kw.asarray(value)
    if isinstance(value, (list, tuple)):
        return type(value)(to_device(part) for part in value)
    return value


def to_host(value):
    """Arrays of the device as NumPy's."""
    if isinstance(value, kw.Array):
        return value.numpy()
    if isinstance(value, (list, tuple)):
        return [to_host(part) for part in value]
    return value


def views(values):
    """`values` on the device: as they are, reversed, with gaps, and with the axes turned."""
    yield kw.asarray(values)
    if values.ndim == 0:
        return
    yield kw.asarray(np.ascontiguousarray(values[::-1]))[::-1]
    wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
    wide[..., ::2] = values
    yield kw.asarray(wide)[..., ::2]
    if values.ndim > 1:
        yield kw.asarray(np.ascontiguousarray(values.T)).T


def compare(got, want, *, rtol=1e-12, typed=True):
    """Equal shapes and values, and dtypes where `typed` says so; results may be sequences."""
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            compare(one, other, rtol=rtol, typed=typed)
        return
    assert isinstance(got, kw.Array)
    found, want = got.numpy(), np.asarray(want)
    assert found.shape == want.shape
    assert not typed or found.dtype == want.dtype
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(found, want)
    else:
        scale = float(np.max(np.abs(want[np.isfinite(want)]), initial=0))
        np.testing.assert_allclose(found, want, rtol=rtol, atol=rtol * scale)


def same(name, *args, rtol=1e-12, typed=True, **kwargs):
    """kw.name() of device arrays gives what np.name() gives for host arrays."""
    want = getattr(np, name)(*args, **kwargs)
    moved = {key: to_device(value) for key, value in kwargs.items()}
    compare(getattr(kw, name)(*to_device(args), **moved), want, rtol=rtol, typed=typed)
