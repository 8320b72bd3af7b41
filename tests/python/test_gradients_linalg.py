"""Gradients of determinants where matrices have no inverse."""

import numpy as np
import pytest

import kernwright as kw


def product(rows, rank, seed=0, columns=None):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, columns or rows))


def turned(rows, rank, seed=0):
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=(4, rows, rank))
    return (parts[0] + 1j * parts[1]) @ (parts[2] + 1j * parts[3]).T


SINGULAR = {
    "rank 3 of 4": product(4, 3), "rank 2 of 4": product(4, 2), "rank 1 of 4": product(4, 1),
    "zeros": np.zeros((3, 3)), "two zeros": np.zeros((2, 2)), "one zero": np.zeros((1, 1)),
    "first pivot 0": np.array([[0.0, 1, 2], [0, 3, 4], [0, 5, 6]]),
    "last pivot 0": np.array([[1.0, 2, 3], [2, 4, 6], [1, 1, 1]]),
    "complex": turned(2, 1), "small numbers": 1e-3 * product(3, 2),
    "many": np.stack([np.eye(3), np.zeros((3, 3)), product(3, 2)]),
}  # fmt: skip
REGULAR = {
    "full": product(3, 3), "eye": np.eye(3), "exchanged": np.eye(3)[[1, 2, 0]],
    "complex": turned(2, 2), "empty": np.zeros((0, 0)),
}  # fmt: skip


def cofactors(a):
    """By minors: the gradient of the determinant."""
    found = np.zeros_like(a)
    for i in range(len(a)):
        for j in range(len(a)):
            minor = np.delete(np.delete(a, i, 0), j, 1)
            found[i, j] = (-1) ** (i + j) * (np.linalg.det(minor) if minor.size else 1)
    return found


@pytest.mark.parametrize("name", SINGULAR)
def test_the_gradient_of_det_at_a_singular_matrix_is_the_adjugate(name):
    a = SINGULAR[name]
    matrices = a.reshape(-1, *a.shape[-2:])
    _, back = kw.vjp(kw.linalg.det, kw.asarray(a))
    found = back(kw.ones(a.shape[:-2], a.dtype))[0].numpy()
    expected = np.stack([cofactors(each) for each in matrices]).reshape(a.shape)
    # kw's gradients of complex numbers are conjugates, as torch's.
    np.testing.assert_allclose(found, np.conj(expected), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", SINGULAR)
def test_det_at_a_singular_matrix_in_single_precision(name):
    a = SINGULAR[name]
    narrow = kw.asarray(a).astype("complex64" if np.iscomplexobj(a) else "float32")
    found = kw.vjp(kw.linalg.det, narrow)[1](kw.ones(a.shape[:-2], narrow.dtype))[0]
    matrices = narrow.numpy().astype(a.dtype).reshape(-1, *a.shape[-2:])
    expected = np.stack([cofactors(each) for each in matrices]).reshape(a.shape)
    scale = np.abs(a).max() ** (a.shape[-1] - 1)
    np.testing.assert_allclose(
        found.numpy(), np.conj(expected), rtol=1e-4, atol=1e-5 * scale + 1e-15
    )


@pytest.mark.parametrize("a", [*SINGULAR.values(), *REGULAR.values()])
def test_the_second_derivative_of_det(a):
    x = kw.asarray(a)
    weights = np.random.default_rng(3).normal(size=(2, *a.shape))
    cotangent = kw.ones(a.shape[:-2], a.dtype) * (1 + 1j if np.iscomplexobj(a) else 1)
    weights = [kw.asarray(each.astype(a.dtype)) for each in weights]

    def along(x):  # a direction
        found = kw.vjp(kw.linalg.det, x)[1](cotangent)[0]
        return (kw.real(found) * kw.real(weights[0]) + kw.imag(found) * kw.real(weights[1])).sum()

    assert kw.gradcheck(along, x)


def test_a_third_derivative_of_det_is_refused():
    f = kw.linalg.det
    for _ in range(2):
        f = lambda x, f=f: kw.grad(f)(x).sum()  # noqa: E731
    x = kw.asarray(product(3, 3))
    f(x)
    with pytest.raises(kw.ArgumentError, match=r"second derivative of linalg.det\(\) has no grad"):
        kw.grad(f)(x)


def test_det_in_a_captured_step():
    step = kw.captured(kw.grad(lambda x: kw.linalg.det(x)))
    for name in ("rank 3 of 4", "rank 2 of 4", "rank 1 of 4", "rank 3 of 4"):
        found = step(kw.asarray(SINGULAR[name])).numpy()
        np.testing.assert_allclose(found, cofactors(SINGULAR[name]), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", REGULAR)
def test_the_gradients_of_slogdet(name):
    x = kw.asarray(REGULAR[name])
    assert kw.gradcheck(lambda x: kw.linalg.slogdet(x).logabsdet, x)
    assert kw.gradcheck(lambda x: kw.linalg.slogdet(x).sign, x)
    both = lambda x: kw.prod(kw.stack([*kw.linalg.slogdet(x)]))  # noqa: E731
    assert kw.gradcheck(both, x)


def test_slogdet_at_a_singular_matrix_is_as_documented():
    x = kw.asarray(SINGULAR["first pivot 0"])
    sign, size = kw.linalg.slogdet(x)
    assert (sign.item(), size.item()) == (0, -np.inf)
    found = kw.grad(lambda x: kw.linalg.slogdet(x).logabsdet)(x).numpy()
    assert not np.isfinite(found).all()


def test_powers_below_zero():
    a = kw.asarray([[2.0, 1.0], [-0.5, 3.0]], dtype="float64")
    assert kw.gradcheck(lambda a: kw.linalg.matrix_power(a, -2), a)
