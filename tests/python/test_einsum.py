"""kw.einsum against numpy.einsum."""

import numpy as np
import pytest

import kernwright as kw

RNG = np.random.default_rng(6)
EINSUMS = {
    "ij,jk->ik": [(3, 4), (4, 5)],
    "ij,jk": [(3, 4), (4, 5)],
    "ij->ji": [(3, 4)],
    "ii": [(4, 4)],
    "ii->i": [(4, 4)],
    "ijj->ij": [(2, 3, 3)],
    "i,i->": [(5,), (5,)],
    "i,j->ij": [(5,), (2,)],
    "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)],
    "...ij,...jk->...ik": [(2, 1, 3, 4), (6, 4, 5)],
    "ij,jk,kl->il": [(3, 4), (4, 5), (5, 2)],
    "abc,cd,bde->ae": [(2, 3, 4), (4, 5), (3, 5, 6)],
    "i,i,i->i": [(3,), (3,), (3,)],
    "ij,ij->": [(3, 4), (3, 4)],
    "ij,kj->ikj": [(3, 4), (2, 4)],
    "ba,b": [(3, 2), (3,)],
    "ab...->...": [(2, 3, 4, 5)],
    "a,ab,b->": [(3,), (3, 4), (4,)],
    "ij,jk->": [(2, 3), (1, 4)],
    "ii,i->i": [(1, 1), (3,)],
}


@pytest.mark.parametrize("subscripts", EINSUMS)
def test_einsum(subscripts):
    operands = [RNG.standard_normal(shape) for shape in EINSUMS[subscripts]]
    got = kw.einsum(subscripts, *map(kw.asarray, operands))
    np.testing.assert_allclose(got.numpy(), np.einsum(subscripts, *operands), rtol=1e-12)


def test_einsum_refuses():
    x = kw.ones((2, 3))
    for subscripts in ("ij,jk->ik", "i->i", "ij->iz", "ij->ii", "i1->i"):
        with pytest.raises((kw.InvalidArgument, kw.ArgumentError), match="einsum"):
            kw.einsum(subscripts, x)
    with pytest.raises(kw.InvalidArgument, match="Incompatible dimensions"):
        kw.einsum("ij,jk->ik", x, x)


LISTS = [
    ((2, 3), [0, 1], (3, 4), [1, 2], [0, 2]),
    ((2, 3), [0, 1], (3, 4), [1, 2]),
    ((2, 3), [51, 26]),
    ((2, 3), (7, 3)),
    ((4, 4), [5, 5]),
    ((6, 2, 3), [Ellipsis, 1, 2], (6, 3), [Ellipsis, 2], [Ellipsis, 1]),
    ((2, 3), [0, 1], []),
]


@pytest.mark.parametrize("arguments", LISTS, ids=str)
def test_axes_as_lists(arguments):
    def filled(part):
        is_shape = isinstance(part, tuple) and arguments.index(part) % 2 == 0
        return RNG.standard_normal(part) if is_shape else list(part)

    values = [filled(part) for part in arguments]
    got = kw.einsum(*(kw.asarray(v) if isinstance(v, np.ndarray) else v for v in values))
    np.testing.assert_allclose(got.numpy(), np.einsum(*values), rtol=1e-12)


@pytest.mark.parametrize(
    "optimize",
    [True, False, None, "greedy", "optimal", ("greedy", 1000), ["einsum_path", (1, 2), (0, 1)],
     ["einsum_path", (0, 1, 2)], ["einsum_path", (0, 2)]],
    ids=str,
)  # fmt: skip
def test_orders(optimize):
    values = [RNG.standard_normal(shape) for shape in ((3, 4), (4, 5), (5, 2))]
    got = kw.einsum("ij,jk,kl->il", *map(kw.asarray, values), optimize=optimize)
    np.testing.assert_allclose(got.numpy(), values[0] @ values[1] @ values[2], rtol=1e-12)


def test_five_operands_from_left_to_right():
    values = [RNG.standard_normal((3, 3)) for _ in range(5)]
    got = kw.einsum("ab,bc,cd,de,ef->af", *map(kw.asarray, values), optimize=False)
    np.testing.assert_allclose(got.numpy(), np.linalg.multi_dot(values), rtol=1e-12)


def test_out_and_dtype():
    values = [RNG.integers(-9, 9, shape) for shape in ((3, 4), (4, 5))]
    x, y = map(kw.asarray, values)
    out = kw.zeros((5, 6), "float64")[:, ::2]
    assert kw.einsum("ij,jk->ki", x, y, out=out) is out
    assert np.array_equal(out.numpy(), (values[0] @ values[1]).T)
    made = kw.einsum("ij,jk->ik", x, y, dtype="float32")
    assert made.dtype == np.float32 and np.array_equal(made.numpy(), values[0] @ values[1])
    with pytest.raises(kw.InvalidArgument, match=r"\(3, 5\)"):
        kw.einsum("ij,jk->ik", x, y, out=out)
    with pytest.raises(kw.ArgumentError, match="int8"):
        kw.einsum("ij->ij", kw.ones((3, 4)), out=kw.zeros((3, 4), "int8"))
    with pytest.raises(kw.ArgumentError, match=r"numpy\.ndarray"):
        kw.einsum("ij->ij", x, out=np.zeros((3, 4)))


def test_an_axis_named_twice_has_one_extent():
    for subscripts in ("ii", "ii->i", "iji->j"):
        shape = (3, 2, 1) if len(subscripts.partition("-")[0]) == 3 else (3, 1)
        for x in (kw.ones(shape), kw.ones(shape).T):
            with pytest.raises(kw.InvalidArgument, match="Incompatible dimensions"):
                kw.einsum(subscripts, x)


def test_wrong_lists_and_orders():
    x = kw.ones((2, 3))
    for wrong in ((x, [0, 52]), (x, [-1, 0])):
        with pytest.raises(kw.InvalidArgument, match="0 to 51"):
            kw.einsum(*wrong)
    for wrong in ((x,), (x, 5), (x, [0.5, 1]), (x, [0]), ()):
        with pytest.raises((TypeError, ValueError)):
            kw.einsum(*wrong)
    for optimize in ("best", 3, [(0, 1)], {}):
        with pytest.raises(kw.ArgumentError, match="optimize"):
            kw.einsum("ij,jk", x, x.T, optimize=optimize)
    for path in ((0, 2), (0, 0)):
        with pytest.raises(kw.InvalidArgument, match="2 operands"):
            kw.einsum("ij,jk", x, x.T, optimize=["einsum_path", path])
