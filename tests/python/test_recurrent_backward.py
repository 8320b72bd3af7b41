"""The gradients of lstm() and gru(): against finite differences of the loop in NumPy."""

import numpy as np
import pytest
from hopper import hopper_alone, run_at_9_0, simulated_elsewhere
from recurrent_model import CLUSTER, PLANS, Drawn

import kernwright as kw
from kernwright import _core
from kernwright.nn._recurrent import _gradients

CELLS = pytest.mark.parametrize("cell", ["lstm", "gru"])
STEP = 1e-20


def wide(array):
    return array.astype("float64").numpy()


def drawn_gradients(drawn, seed=3):
    """Gradients of output, h_n and c_n on the host, and as lstm_backward() takes them."""
    rng = np.random.default_rng(seed)
    host = [wide(drawn.on_device(rng.normal(size=each.shape))) for each in drawn.expected()]
    made = [drawn.on_device(each) for each in host]
    return host, (made[0], made[1] if drawn.cell == "gru" else (made[1], made[2]))


def slopes(drawn, grads, masks=None, samples=12, seed=5):
    """For x, h_0, c_0 and each of the weights: some places, and the slopes there. The loss is the
    sum of the results times `grads`; a complex step has no error of rounding."""
    rng = np.random.default_rng(seed)
    used = 2 if drawn.cell == "gru" else 3
    for array in (drawn.x, drawn.h_0, drawn.c_0, *drawn.weights):
        flat = rng.choice(array.size, min(samples, array.size), replace=False)
        places = [np.unravel_index(each, array.shape) for each in flat]
        found = []
        for place in places:
            other = Drawn.__new__(Drawn)
            other.__dict__.update(drawn.__dict__)
            for name in ("x", "h_0", "c_0"):
                value = getattr(drawn, name).astype(complex)
                if getattr(drawn, name) is array:
                    value[place] += STEP * 1j
                setattr(other, name, value)
            other.weights = [w.astype(complex) for w in drawn.weights]
            for given, w in zip(drawn.weights, other.weights, strict=True):
                if given is array:
                    w[place] += STEP * 1j
            results = other.expected(masks)[:used]
            loss = sum((r * g).sum() for r, g in zip(results, grads, strict=False))
            found.append(loss.imag / STEP)
        yield places, np.array(found)


def check(drawn, tolerance=1e-4, masks=None, **options):
    """Compares each gradient with slopes; gives all of them."""
    grads, given = drawn_gradients(drawn)
    made = drawn.backward(given, *drawn.arguments, **drawn.options, **options)
    states = (made.hx, None) if drawn.cell == "gru" else made.hx
    arrays = [made.x, *states, *made.weights]
    for array, (places, expected) in zip(arrays, slopes(drawn, grads, masks), strict=True):
        if array is None:
            continue
        found = np.array([wide(array)[place] for place in places])
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)
    return [each.numpy() for each in arrays if each is not None]


@CELLS
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float64", 1e-11), ("float32", 1e-5), ("bfloat16", 5e-2)]
)
def test_dtypes(cell, dtype, tolerance):
    check(Drawn(cell, 5, 2, 3, 8, dtype=dtype), tolerance)


@CELLS
@pytest.mark.parametrize(
    ("length", "batch", "inputs", "hidden"),
    [(1, 1, 7, 33), (6, 1, 3, 33), (3, 5, 1, 7), (4, 3, 2, 1)],
)
def test_odd_sizes(cell, length, batch, inputs, hidden):
    check(Drawn(cell, length, batch, inputs, hidden), 1e-5)


@CELLS
@pytest.mark.parametrize("bias", [True, False])
def test_layers_in_two_directions(cell, bias):
    check(Drawn(cell, 4, 2, 3, 5, layers=2, directions=2, bias=bias), 1e-5)


@CELLS
def test_dropout_between_layers(cell):
    drawn = Drawn(cell, 4, 3, 2, 6, layers=2)
    mask = wide(kw.nn.dropout(kw.ones((4, 3, 6)), 0.4, seed=5, offset=2))
    check(drawn, 1e-5, [mask], dropout=0.4, seed=5, offset=2)


@CELLS
def test_a_reserve_gives_the_same_bits(cell):
    drawn = Drawn(cell, 4, 2, 3, 5, layers=2, directions=2)
    _, given = drawn_gradients(drawn)
    reserve = drawn.function(*drawn.arguments, **drawn.options, reserve=True)[2]
    one = check(drawn)
    two = check(drawn, reserve=reserve)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(kw.ArgumentError, match="reserve is what"):
        drawn.backward(given, *drawn.arguments, **drawn.options, reserve=reserve[:1])


@CELLS
def test_parts_of_the_gradient(cell):
    """None is zero, an array alone is that of the output; batch first, and without a batch."""
    drawn = Drawn(cell, 4, 2, 3, 5)
    (of_output, *others), given = drawn_gradients(drawn)
    zeros = [np.zeros_like(each) for each in others]
    x, hx, weights = drawn.arguments
    alone = drawn.backward(given[0], x, hx, weights)
    expected = next(iter(slopes(drawn, [of_output, *zeros])))
    found = [wide(alone.x)[place] for place in expected[0]]
    np.testing.assert_allclose(found, expected[1], atol=1e-5)
    last = drawn.backward((None, given[1]), x, hx, weights)
    places, values = next(iter(slopes(drawn, [np.zeros_like(of_output), *others])))
    np.testing.assert_allclose([wide(last.x)[place] for place in places], values, atol=1e-5)
    turned = [kw.asarray(wide(each).transpose(1, 0, 2).astype("f")) for each in (given[0], x)]
    made = drawn.backward(turned[0], turned[1], hx, weights, batch_first=True)
    np.testing.assert_allclose(wide(made.x).transpose(1, 0, 2), wide(alone.x), atol=1e-6)
    for one, other in zip(made.weights, alone.weights, strict=True):
        np.testing.assert_allclose(wide(one), wide(other), atol=1e-5)
    states = hx[:, 1] if cell == "gru" else tuple(each[:, 1] for each in hx)
    single = drawn.backward(given[0][:, 1], x[:, 1], states, weights)
    np.testing.assert_allclose(wide(single.x), wide(alone.x)[:, 1], atol=1e-6)
    assert (single.hx if cell == "gru" else single.hx[1]).shape == (1, 5)


@CELLS
def test_nothing_at_all(cell):
    drawn = Drawn(cell, 3, 2, 4, 5)
    x, hx, weights = drawn.arguments
    _, given = drawn_gradients(drawn)
    made = drawn.backward((None, given[1]), x[:0], hx, weights)
    assert made.x.shape == (0, 2, 4) and not any(wide(each).any() for each in made.weights)
    first = (made.hx, given[1]) if cell == "gru" else (made.hx[1], given[1][1])
    np.testing.assert_array_equal(wide(first[0]), wide(first[1]))
    none = drawn.backward(None, x[:, :0], None, weights)
    assert none.x.shape == (3, 0, 4) and not any(wide(each).any() for each in none.weights)


def force(monkeypatch, *plan):
    plain = _core._recurrent_backward
    monkeypatch.setattr(_gradients, "_recurrent_backward", lambda *given: plain(*given[:-1], plan))


@CELLS
@pytest.mark.parametrize("plan", PLANS)
def test_every_plan(cell, plan, monkeypatch):
    force(monkeypatch, *plan)
    drawn = Drawn(cell, 4, 5, 3, 36)
    for one, other in zip(check(drawn, 1e-5), check(drawn, 1e-5), strict=True):
        np.testing.assert_array_equal(one, other)


@CELLS
@hopper_alone
@pytest.mark.parametrize("plan", [(CLUSTER, 2), (CLUSTER, 8)])
def test_clusters(cell, plan, monkeypatch):
    force(monkeypatch, *plan)
    check(Drawn(cell, 4, 5, 3, 33, directions=2), 1e-5)
    check(Drawn(cell, 5, 1, 3, 8), 1e-5)


@CELLS
@hopper_alone
def test_clusters_under_all_checks(cell, sim, monkeypatch):
    if kw.current_device().compute_capability != (9, 0):
        pytest.skip("the simulated device is an older one")
    force(monkeypatch, CLUSTER, 8)
    with kw.checks("memory", "init", "race", "sync") as report:
        check(Drawn(cell, 4, 5, 3, 33), 1e-5)
        check(Drawn(cell, 5, 1, 3, 8), 1e-5)
    report.raise_if_any()


@simulated_elsewhere
def test_this_file_at_9_0():
    run_at_9_0(__file__, "-k", "clusters or odd_sizes")


@CELLS
def test_no_finding_in_any_kernel(cell, sim, monkeypatch):
    with kw.checks("memory", "init", "race", "sync") as report:
        for plan in PLANS:
            force(monkeypatch, *plan)
            check(Drawn(cell, 3, 5, 3, 9))
    report.raise_if_any()


@CELLS
def test_replay_in_a_graph(cell):
    drawn = Drawn(cell, 4, 2, 3, 8)
    grads, given = drawn_gradients(drawn)
    arguments = drawn.arguments
    drawn.backward(given, *arguments)
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        made = drawn.backward(given, *arguments)
    drawn.x = -drawn.x[::-1]
    arguments[0][...] = drawn.on_device(drawn.x)
    kw.synchronize()
    graph.launch(stream)
    stream.synchronize()
    places, expected = next(iter(slopes(drawn, grads)))
    np.testing.assert_allclose([wide(made.x)[place] for place in places], expected, atol=1e-5)


@CELLS
def test_wrong_gradients(cell):
    drawn = Drawn(cell, 3, 2, 4, 5)
    _, given = drawn_gradients(drawn)
    with pytest.raises(kw.InvalidArgument, match=r"gradient of the output.*\(3, 2, 5\).*\(2, 2, 5"):
        drawn.backward(given[0][1:], *drawn.arguments)
    with pytest.raises(kw.InvalidArgument, match="float64"):
        drawn.backward(given[0].astype("float64"), *drawn.arguments)
    with pytest.raises(kw.ArgumentError, match="or a pair"):
        drawn.backward((*given, 1), *drawn.arguments)
    wrong = given[1][:, :1] if cell == "gru" else (given[1][0][:, :1], None)
    with pytest.raises(kw.InvalidArgument, match=r"gradient of h_n.*\(1, 2, 5\).*\(1, 1, 5\)"):
        drawn.backward((None, wrong), *drawn.arguments)
