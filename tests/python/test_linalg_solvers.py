"""Solvers and decompositions against NumPy in float64, and by what must hold for them."""

import numpy as np
import pytest

import kernwright as kw

TYPES = ["float32", "float64", "complex64", "complex128"]
RNG = np.random.default_rng


def matrices(shape, name, seed=0):
    rng = RNG(seed)
    x = rng.standard_normal(shape)
    if name.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(name)


def adjoint(x):
    return x.conj().swapaxes(-1, -2)


def definite(shape, name):
    x = matrices(shape, name)
    return x @ adjoint(x) + np.eye(shape[-1], dtype=name)


def wide(x):
    return np.asarray(x).astype(np.complex128 if np.asarray(x).dtype.kind == "c" else np.float64)


def close(got, expected, steps=1.0):
    """Norm-wise, in epsilons of the type; the dtype and the shape are looked at too."""
    got = got.numpy() if isinstance(got, kw.Array) else got
    expected = np.asarray(expected)
    assert got.shape == expected.shape
    size = max(np.linalg.norm(wide(expected)), 1e-300)
    error = np.linalg.norm(wide(got) - wide(expected)) / size
    assert error <= 30 * steps * np.finfo(got.dtype).eps, error


def unitary(x):
    x = x.numpy() if isinstance(x, kw.Array) else x
    one = np.broadcast_to(np.eye(x.shape[-1]), (*x.shape[:-2], x.shape[-1], x.shape[-1]))
    error = np.abs(adjoint(wide(x)) @ wide(x) - one).max(initial=0)
    assert error <= 20 * max(x.shape[-2], 4) ** 0.5 * np.finfo(x.dtype).eps, error


SQUARE = [(1, 1), (2, 2), (3, 5, 5), (2, 1, 33, 33), (80, 80)]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_equations(name, shape):
    host = matrices(shape, name) + 3 * np.eye(shape[-1], dtype=name)
    x, exact = kw.asarray(host), wide(host)
    b = matrices((*shape[:-1], 3), name, 1)
    for got, expected in (
        (kw.linalg.solve(x, kw.asarray(b)), np.linalg.solve(exact, wide(b))),
        (kw.linalg.inv(x), np.linalg.inv(exact)),
    ):
        assert got.dtype == host.dtype
        close(got, expected, np.linalg.cond(exact).max())
    if shape[-1] < 80:  # it would be too large for float32
        close(kw.linalg.det(x), np.linalg.det(exact), shape[-1])
    sign, size = kw.linalg.slogdet(x)
    expected = np.linalg.slogdet(exact)
    assert sign.dtype == host.dtype and size.dtype == host.real.dtype
    close(sign, expected[0], shape[-1])
    close(size, expected[1], shape[-1])
    positive = definite(shape, name)
    for upper in (False, True):
        factor = kw.linalg.cholesky(kw.asarray(positive), upper=upper).numpy()
        low = adjoint(factor) if upper else factor
        assert (np.triu(low, 1) == 0).all()
        close(low @ adjoint(low), wide(positive))


def test_only_one_triangle_is_read_by_cholesky():
    x = definite((4, 4), "complex128")
    for upper in (False, True):
        damaged = np.where(np.tri(4, k=-1).T if not upper else np.tri(4, k=-1), np.nan, x)
        expected = np.linalg.cholesky(x)
        expected = adjoint(expected) if upper else expected
        close(kw.linalg.cholesky(kw.asarray(damaged), upper=upper), expected)


def test_right_sides_are_broadcast():
    a, b = matrices((3, 1, 4, 4), "float64"), matrices((5, 4, 2), "float64", 1)
    close(kw.linalg.solve(kw.asarray(a), kw.asarray(b)), np.linalg.solve(a, b), 50)
    vector = b[0, :, 0]
    expected = np.linalg.solve(a, vector[:, None])[..., 0]
    close(kw.linalg.solve(kw.asarray(a), kw.asarray(vector)), expected, 50)
    got = kw.linalg.solve(kw.asarray(a[0, 0].astype("float32")), kw.asarray(vector))
    assert got.dtype == np.float64
    many = matrices((4, 70), "float64", 2)
    close(
        kw.linalg.solve(kw.asarray(a[0, 0]), kw.asarray(many)), np.linalg.solve(a[0, 0], many), 50
    )
    whole = kw.linalg.solve(kw.asarray([[2, 0], [0, 4]]), kw.asarray([1, 1]))
    assert whole.dtype == np.float64 and whole.numpy().tolist() == [0.5, 0.25]


def test_rows_are_exchanged():
    x = np.array([[0.0, 1, 0], [0, 0, 2], [4, 0, 0]])
    assert kw.linalg.det(kw.asarray(x)).item() == 8
    assert kw.linalg.slogdet(kw.asarray(x[[1, 0, 2]])).sign.item() == -1
    np.testing.assert_array_equal(kw.linalg.inv(kw.asarray(x)).numpy(), np.linalg.inv(x))
    tiny = np.array([[1e-20, 1], [1, 1]])
    close(kw.linalg.solve(kw.asarray(tiny), kw.asarray([1.0, 2.0])), [1, 1])


def test_singular_matrices():
    x = kw.asarray(np.stack([np.eye(3), np.diag([1.0, 0, 2]), np.zeros((3, 3)), np.eye(3)]))
    assert kw.linalg.det(x).numpy().tolist() == [1, 0, 0, 1]
    sign, size = kw.linalg.slogdet(x)
    assert sign.numpy().tolist() == [1, 0, 0, 1]
    assert size.numpy().tolist() == [0, -np.inf, -np.inf, 0]
    inverse = kw.linalg.inv(x).numpy()
    np.testing.assert_array_equal(inverse[[0, 3]], np.stack([np.eye(3)] * 2))
    assert not np.isfinite(inverse[1]).all() and not np.isfinite(inverse[2]).any()
    message = r"inv\(\): matrix \(1,\) of \(4,\) is singular.*\[1, 1\] \(2 of 4\)"
    with pytest.raises(kw.InvalidArgument, match=message):
        kw.linalg.inv(x, check=True)
    with pytest.raises(kw.InvalidArgument, match=r"solve\(\): the matrix is singular"):
        kw.linalg.solve(x[2], kw.ones(3, "float64"), check=True)
    with pytest.raises(kw.InvalidArgument, match=r"matrix \(1,\) .*positive definite"):
        kw.linalg.cholesky(x, check=True)
    factor = kw.linalg.cholesky(x).numpy()
    assert np.isnan(factor[1][np.tri(3, dtype=bool)]).all() and np.isfinite(factor[3]).all()
    close(kw.linalg.inv(x[:1], check=True), np.eye(3)[None])


RECTANGLES = [(1, 1), (1, 4), (4, 1), (2, 3, 5), (2, 6, 3), (33, 33), (40, 17), (17, 70)]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", RECTANGLES)
def test_orthogonal_decompositions(name, shape):
    host = matrices(shape, name)
    x, exact, (m, n) = kw.asarray(host), wide(host), shape[-2:]
    k = min(m, n)
    for mode, rows in (("reduced", k), ("complete", m)):
        q, r = kw.linalg.qr(x, mode=mode)
        assert q.shape == (*shape[:-1], rows) and r.shape == (*shape[:-2], rows, n)
        assert (np.tril(r.numpy(), -1) == 0).all()
        unitary(q)
        product = wide(q.numpy()) @ wide(r.numpy())
        assert np.linalg.norm(product - exact) <= 9 * np.finfo(name).eps * np.linalg.norm(exact)
    expected = np.linalg.svd(exact, compute_uv=False)
    close(kw.linalg.svdvals(x), expected)
    for full in (False, True):
        u, s, vh = (each.numpy() for each in kw.linalg.svd(x, full_matrices=full))
        assert u.shape == (*shape[:-2], m, m if full else k) and s.dtype == host.real.dtype
        assert vh.shape == (*shape[:-2], n if full else k, n) and u.dtype == vh.dtype == name
        assert (s[..., 1:] <= s[..., :-1]).all()
        unitary(u)
        unitary(adjoint(vh))
        close(s, expected)
        product = (wide(u[..., :k]) * s[..., None, :]) @ wide(vh[..., :k, :])
        error = np.linalg.norm(product - exact) / np.linalg.norm(exact)
        assert error <= (10 + m + n) * np.finfo(name).eps, error


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_eigenvalues(name, shape):
    host, n, eps = matrices(shape, name), shape[-1], np.finfo(name).eps
    even = host + adjoint(host)
    values, vectors = (each.numpy() for each in kw.linalg.eigh(kw.asarray(even)))
    assert values.dtype == host.real.dtype and vectors.dtype == name
    assert (values[..., 1:] >= values[..., :-1]).all()
    close(values, np.linalg.eigvalsh(wide(even)))
    close(kw.linalg.eigvalsh(kw.asarray(even)), values)
    unitary(vectors)
    rest = wide(even) @ wide(vectors) - wide(vectors) * values[..., None, :]
    assert np.linalg.norm(rest) <= (20 + n) * eps * np.linalg.norm(even)

    values, vectors = (each.numpy() for each in kw.linalg.eig(kw.asarray(host)))
    assert values.dtype == vectors.dtype == np.result_type(host.dtype, np.complex64)
    rest = wide(host) @ wide(vectors) - wide(vectors) * values[..., None, :]
    assert np.linalg.norm(rest) <= (20 + n) * eps * np.linalg.norm(host)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, rtol=20 * eps)
    total = np.trace(wide(host), axis1=-2, axis2=-1)
    assert np.abs(values.sum(-1) - total).max() <= 100 * eps * np.linalg.norm(host)
    alone = kw.linalg.eigvals(kw.asarray(host)).numpy()
    distance = np.abs(alone[..., :, None] - values[..., None, :]).min(-1).max()
    assert distance <= 1e5 * eps * np.abs(values).max()
    if not name.startswith("complex"):  # exact conjugates, the upper one first
        for one, columns in zip(values.reshape(-1, n), vectors.reshape(-1, n, n), strict=True):
            upper = np.flatnonzero(one.imag > 0)
            np.testing.assert_array_equal(one[upper + 1], one[upper].conj())
            np.testing.assert_array_equal(columns[:, upper + 1], columns[:, upper].conj())
            assert (columns[:, one.imag == 0].imag == 0).all()


SPECIAL = {
    "zero": np.zeros((6, 6)),
    "identity": np.eye(6),
    "ones": np.ones((6, 6)),
    "shift": np.roll(np.eye(6), 1, 0),
    "jordan": np.eye(6) * 2 + np.eye(6, k=1),
    "nilpotent": np.eye(6, k=1),
    "triangle": np.triu(np.arange(36.0).reshape(6, 6)),
    "rank two": np.outer(np.arange(6.0), np.ones(6)) + np.outer(np.ones(6), np.arange(6.0) ** 2),
    "graded": np.diag(10.0 ** -np.arange(0, 60, 10)) @ matrices((6, 6), "float64"),
    "huge": 1e300 * matrices((6, 6), "float64"),
    "tiny": 1e-300 * matrices((6, 6), "float64"),
    "pair": np.kron(np.eye(3), [[1.0, 5], [-5, 1]]),
}


@pytest.mark.parametrize("kind", SPECIAL)
def test_special_matrices(kind):
    host = SPECIAL[kind]
    x, size = kw.asarray(host), np.abs(host).max() or 1.0
    scaled = host / size
    eps = np.finfo("float64").eps
    u, s, vh = (each.numpy() for each in kw.linalg.svd(x))
    unitary(u)
    unitary(vh)
    assert np.abs((u * (s / size)) @ vh - scaled).max() <= 50 * eps
    assert np.abs(s / size - np.linalg.svd(scaled)[1]).max() <= 100 * eps
    q, r = (each.numpy() for each in kw.linalg.qr(x))
    unitary(q)
    assert np.abs(q @ (r / size) - scaled).max() <= 50 * eps
    even = scaled + scaled.T
    values, vectors = (each.numpy() for each in kw.linalg.eigh(kw.asarray(even * (size / 4))))
    unitary(vectors)
    values = values / (size / 4)
    assert np.abs(even @ vectors - vectors * values).max() <= 100 * eps
    assert np.abs(values - np.linalg.eigvalsh(even)).max() <= 100 * eps
    values, vectors = (each.numpy() for each in kw.linalg.eig(x))
    assert np.abs(scaled @ vectors - vectors * (values / size)).max() <= 100 * eps
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1, rtol=1e-14)


@pytest.mark.parametrize(("name", "n"), [("float32", 3), ("float32", 5), ("float64", 6)])
def test_many_matrices(name, n):
    """Of zeros and ones, whose eigenvalues are often 0, multiple or defective; of graded rows."""
    rng = RNG(n)
    if name == "float32":
        host = rng.integers(0, 2, (500, n, n)).astype(name)
    else:
        host = rng.standard_normal((200, n, n)) * 10.0 ** rng.integers(-8, 8, (200, n, 1))
    x, eps = kw.asarray(host), np.finfo(name).eps
    size = np.maximum(np.linalg.norm(wide(host), axis=(1, 2)), 1)
    values, vectors = (wide(each.numpy()) for each in kw.linalg.eig(x))
    rest = wide(host) @ vectors - vectors * values[:, None, :]
    assert (np.linalg.norm(rest, axis=(1, 2)) <= 40 * eps * size).all()
    even = host + adjoint(host)
    values, vectors = (wide(each.numpy()) for each in kw.linalg.eigh(kw.asarray(even)))
    rest = wide(even) @ vectors - vectors * values[:, None, :]
    assert (np.linalg.norm(rest, axis=(1, 2)) <= 40 * eps * size).all()
    u, s, vh = (wide(each.numpy()) for each in kw.linalg.svd(x))
    rest = (u * s[:, None, :]) @ vh - host
    assert (np.linalg.norm(rest, axis=(1, 2)) <= 40 * eps * size).all()


def test_values_that_are_not_finite():
    host = matrices((3, 4, 4), "float64")
    host[1, 2, 2], host[2, 1, 3] = np.nan, np.inf
    x = kw.asarray(host)
    good = kw.asarray(host[:1])
    svd, eigh, eig = kw.linalg.svd(x), kw.linalg.eigh(kw.matrix_transpose(x)), kw.linalg.eig(x)
    for got in (svd.S, svd.Vh, eigh.eigenvalues, eigh.eigenvectors, *eig):
        assert np.isnan(got.numpy()[1:]).all()
        assert np.isfinite(got.numpy()[0]).all()
    np.testing.assert_array_equal(svd.U.numpy()[0], kw.linalg.svd(good).U.numpy()[0])
    assert np.isnan(kw.linalg.det(x).numpy()[1])
    assert np.isnan(kw.linalg.inv(x).numpy()[1]).any()


def test_any_strides():
    host = matrices((4, 10, 6), "complex64")
    x = kw.asarray(host)
    views = {
        "transposed": (kw.matrix_transpose(x), host.swapaxes(1, 2)),
        "steps": (x[::2, ::3, ::-1], host[::2, ::3, ::-1]),
        "moved": (kw.moveaxis(x, 0, -1), np.moveaxis(host, 0, -1)),
    }
    stretched = (2, 5, 5)
    views["stretched"] = (
        kw.broadcast_to(x[0, :5, :1], stretched),
        np.broadcast_to(host[0, :5, :1], stretched),
    )
    for view, expected in views.values():
        close(kw.linalg.svdvals(view), np.linalg.svd(wide(expected))[1])
        q, r = kw.linalg.qr(view)
        close(q @ r, expected)
    square, expected = x[:, 1:7][..., ::-1], host[:, 1:7][..., ::-1]
    close(kw.linalg.inv(square), np.linalg.inv(wide(expected)), 100)
    close(kw.linalg.det(square), np.linalg.det(wide(expected)), 100)


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0), (0, 0)])
def test_empty_squares(shape):
    x, tail = kw.zeros(shape, "float32"), shape[:-1]
    assert kw.linalg.inv(x).shape == kw.linalg.cholesky(x).shape == shape
    assert kw.linalg.solve(x, kw.zeros((*tail, 4), "float32")).shape == (*tail, 4)
    np.testing.assert_array_equal(kw.linalg.det(x).numpy(), np.ones(shape[:-2]))
    assert kw.linalg.slogdet(x).logabsdet.numpy().tolist() == np.zeros(shape[:-2]).tolist()
    for made in (kw.linalg.eigh(x), kw.linalg.eig(x)):
        assert made.eigenvalues.shape == tail and made.eigenvectors.shape == shape
    assert kw.linalg.eigvals(x).shape == kw.linalg.eigvalsh(x).shape == tail


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (3, 0), (0, 0)])
def test_empty_rectangles(shape):
    x, host = kw.zeros(shape, "complex64"), np.zeros(shape, "complex64")
    for full in (False, True):
        for got, expected in zip(
            kw.linalg.svd(x, full_matrices=full),
            np.linalg.svd(host, full_matrices=full),
            strict=True,
        ):
            np.testing.assert_array_equal(got.numpy(), expected)
    for mode in ("reduced", "complete"):
        for got, expected in zip(kw.linalg.qr(x, mode=mode), np.linalg.qr(host, mode), strict=True):
            np.testing.assert_array_equal(got.numpy(), expected)
    np.testing.assert_array_equal(kw.linalg.pinv(x).numpy(), np.linalg.pinv(host))
    ranks = kw.linalg.matrix_rank(x)
    assert ranks.dtype == np.int64 and ranks.shape == shape[:-2] and not ranks.numpy().any()


def test_what_singular_values_tell():
    host = matrices((2, 7, 3), "float64") @ matrices((2, 3, 5), "float64", 1)
    x = kw.asarray(host)
    assert kw.linalg.matrix_rank(x).numpy().tolist() == [3, 3]
    assert kw.linalg.matrix_rank(x, rtol=0.99).numpy().tolist() == [1, 1]
    assert kw.linalg.matrix_rank(x, rtol=kw.asarray([0.99, 1e-9])).numpy().tolist() == [1, 3]
    close(kw.linalg.pinv(x), np.linalg.pinv(host, rcond=1e-12), 200)
    b = matrices((2, 7, 2), "float64", 2)
    got = kw.linalg.lstsq(x, kw.asarray(b))
    for i in range(2):
        solution, _, rank, values = np.linalg.lstsq(host[i], b[i], rcond=1e-12)
        close(got.x[i], solution, 200)
        assert got.rank.numpy()[i] == rank
        np.testing.assert_allclose(got.singular_values.numpy()[i], values, atol=1e-13)
        np.testing.assert_allclose(
            got.residuals.numpy()[i], (np.abs(host[i] @ solution - b[i]) ** 2).sum(0)
        )
    one = kw.linalg.lstsq(x[0], kw.asarray(b[0, :, 0]))
    assert one.x.shape == (5,) and one.residuals.shape == ()
    square = matrices((3, 4, 4), "complex128")
    for ord in (None, 2, -2, 1, np.inf, "fro"):
        expected = [np.linalg.cond(each, ord) for each in square]
        close(kw.linalg.cond(kw.asarray(square), ord=ord), expected, 100)
    for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        expected = np.linalg.norm(square, ord, axis=(-2, -1), keepdims=True)
        close(kw.linalg.matrix_norm(kw.asarray(square), ord=ord, keepdims=True), expected)
        assert kw.linalg.matrix_norm(kw.asarray(square), ord=ord).shape == (3,)
    close(kw.linalg.matrix_power(kw.asarray(square), -3), np.linalg.matrix_power(square, -3), 2000)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: kw.linalg.inv(x[0]), "two dimensions"),
        (lambda x: kw.linalg.inv(x[:2]), r"Incompatible dimensions.*square.*\(2, 3\)"),
        (lambda x: kw.linalg.eig(x[:, :1]), "square"),
        (lambda x: kw.linalg.solve(x, kw.ones(4)), r"\(3, 3\) and right sides \(4,\)"),
        (lambda x: kw.linalg.solve(x, kw.ones(())), "Incompatible dimensions"),
        (lambda x: kw.linalg.solve(kw.ones((2, 3, 3)), kw.ones((4, 3, 1))), "be broadcast"),
        (lambda x: kw.linalg.lstsq(x, kw.ones((2, 1))), "Incompatible dimensions"),
        (lambda x: kw.linalg.qr(x, mode="raw"), "reduced"),
        (lambda x: kw.linalg.qr(x.astype("float16")), "float16.*astype"),
        (lambda x: kw.linalg.svd(np.ones((2, 2))), "asarray"),
        (lambda x: kw.linalg.matrix_norm(x, ord=3), "matrix norm 3"),
        (lambda x: kw.linalg.cond(kw.ones((0, 2))), "without elements"),
        (lambda x: kw.linalg.cond(x[:2], ord=1), "square"),
    ],
)
def test_wrong_input(call, message):
    with pytest.raises(kw.Error, match=message):
        call(kw.ones((3, 3), "float32"))


def everything(x):
    linalg, even = kw.linalg, x + kw.matrix_transpose(x)
    results = [linalg.inv(x), linalg.det(x), linalg.cholesky(x @ kw.matrix_transpose(x))]
    results += [*linalg.qr(x, mode="complete"), *linalg.svd(x), linalg.svdvals(x)]
    return [*results, *linalg.eigh(even), linalg.eigvalsh(even), *linalg.eig(x), linalg.eigvals(x)]


def test_under_all_checks(sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        for shape, name in (((2, 5, 5), "float32"), ((1, 75, 75), "float64")):
            everything(kw.asarray(matrices(shape, name)))
        for name in ("complex64", "complex128"):
            x = kw.asarray(matrices((2, 11, 11), name))
            kw.linalg.eig(x), kw.linalg.eigh(x), kw.linalg.svd(x[:, :5]), kw.linalg.inv(x)
            kw.linalg.cholesky(kw.asarray(definite((9, 9), name)))
        sim.synchronize()
    report.raise_if_any()


def test_results_are_the_same_each_time_and_in_a_graph():
    host = matrices((3, 12, 12), "float32")
    x = kw.asarray(host)
    expected = [each.numpy() for each in everything(x)]
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream):
        captured = everything(x)
    x[...] = kw.zeros_like(x)
    graph.launch(stream)
    stream.synchronize()
    assert not captured[0].numpy()[np.isfinite(captured[0].numpy())].any()
    x[...] = kw.asarray(host)
    graph.launch(stream)
    stream.synchronize()
    for got, same in zip(captured, expected, strict=True):
        np.testing.assert_array_equal(got.numpy(), same)


def test_large_matrices():
    host = matrices((260, 260), "float64")
    x = kw.asarray(host)
    b = host @ np.ones(260)
    close(kw.linalg.solve(x, kw.asarray(b)), np.ones(260), np.linalg.cond(host))
    values, vectors = (each.numpy() for each in kw.linalg.eigh(kw.asarray(host + host.T)))
    close(values, np.linalg.eigvalsh(host + host.T))
    unitary(vectors)
    close(kw.linalg.svdvals(x), np.linalg.svd(host)[1], 4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32", "complex64"])
def test_frobenius_norm_of_squares_beyond_the_type(dtype):
    x = kw.asarray(np.full((2, 30, 30), 300.0)).astype(dtype)
    for keepdims in (False, True):
        norm = kw.linalg.matrix_norm(x[:, ::-1], keepdims=keepdims)
        assert norm.shape == ((2, 1, 1) if keepdims else (2,))
        np.testing.assert_allclose(norm.numpy().astype(np.float64), 9000, rtol=4e-3)
    assert kw.linalg.matrix_norm(x[:, :0]).numpy().tolist() == [0, 0]
