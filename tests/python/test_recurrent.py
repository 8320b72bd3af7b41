"""kw.nn.lstm() and gru() against a loop over the steps in NumPy, in float64."""

import numpy as np
import pytest
from hopper import hopper_alone, run_at_9_0, simulated_elsewhere
from recurrent_model import CLUSTER, GATES, PLANS, Drawn, cell_step

import kernwright as kw
from kernwright import _core
from kernwright.nn._recurrent import _networks

TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 3e-6, "float64": 1e-12}
CELLS = pytest.mark.parametrize("cell", ["lstm", "gru"])


def wide(array):
    return array.astype("float64").numpy()


def close(made, expected, dtype="float32"):
    assert made.shape == expected.shape
    np.testing.assert_allclose(wide(made), expected, rtol=0, atol=TOLERANCE[dtype])


def check(drawn, masks=None, **options):
    """Compares output and last states; gives the output."""
    made = drawn.function(*drawn.arguments, **drawn.options, **options)
    states = made[1] if drawn.cell == "lstm" else (made[1],)
    output, *last = drawn.expected(masks)
    close(made[0], output, drawn.dtype)
    for one, other in zip(states, last, strict=False):
        close(one, other, drawn.dtype)
    return made[0].numpy()


@CELLS
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_dtypes(cell, dtype):
    check(Drawn(cell, 6, 2, 5, 16, dtype=dtype))


@CELLS
@pytest.mark.parametrize(
    ("length", "batch", "inputs", "hidden"),
    [(1, 1, 7, 33), (9, 1, 3, 33), (5, 6, 1, 33), (4, 3, 2, 1)],
)
def test_odd_sizes(cell, length, batch, inputs, hidden):
    check(Drawn(cell, length, batch, inputs, hidden))


@CELLS
@pytest.mark.parametrize("bias", [True, False])
def test_layers_in_two_directions(cell, bias):
    check(Drawn(cell, 5, 2, 4, 6, layers=2, directions=2, bias=bias))


@CELLS
def test_batch_first_and_without_a_batch(cell):
    drawn = Drawn(cell, 5, 3, 4, 6, directions=2)
    x, hx, weights = drawn.arguments
    expected, *_ = drawn.expected()
    options = {**drawn.options, "batch_first": True}
    turned = kw.asarray(np.ascontiguousarray(wide(x).transpose(1, 0, 2))).astype("float32")
    made = drawn.function(turned, hx, weights, **options)[0]
    close(made, expected.transpose(1, 0, 2))
    one = Drawn(cell, 5, 1, 4, 6, directions=2)
    x, hx, weights = one.arguments
    states = hx[:, 0] if cell == "gru" else tuple(each[:, 0] for each in hx)
    expected = one.expected()
    for first in (False, True):
        output, last = one.function(x[:, 0], states, weights, bidirectional=True, batch_first=first)
        close(output, expected[0][:, 0])
        close(last if cell == "gru" else last[1], expected[1 if cell == "gru" else 2][:, 0])


@CELLS
def test_states_of_zeros(cell):
    drawn = Drawn(cell, 4, 2, 3, 5)
    drawn.h_0[...] = drawn.c_0[...] = 0
    x, _, weights = drawn.arguments
    close(drawn.function(x, None, weights)[0], drawn.expected()[0])


@CELLS
@pytest.mark.parametrize("view", ["turned", "reversed", "repeated"])
def test_views(cell, view):
    drawn = Drawn(cell, 4, 2, 3, 5)
    x, hx, weights = drawn.arguments
    if view == "turned":
        x = kw.asarray(np.ascontiguousarray(drawn.x.T.astype("f"))).T
        weights = [kw.asarray(np.ascontiguousarray(w.T.astype("f"))).T for w in drawn.weights]
    elif view == "reversed":
        x = kw.asarray(drawn.x[::-1].astype("f").copy())[::-1]
        hx = hx[:, ::-1][:, ::-1] if cell == "gru" else tuple(h[:, ::-1][:, ::-1] for h in hx)
    else:
        drawn.x[...], drawn.h_0[...] = drawn.x[:1], drawn.h_0[:, :1]
        x = kw.broadcast_to(x[:1], x.shape)
        h = kw.broadcast_to(kw.asarray(drawn.h_0[:, :1].astype("f")), drawn.h_0.shape)
        hx = h if cell == "gru" else (h, hx[1])
    close(drawn.function(x, hx, weights)[0], drawn.expected()[0])


@CELLS
def test_every_plan_gives_the_same_bits(cell, monkeypatch):
    """Where rows of weights are whole packs, all add in the same order."""
    drawn = Drawn(cell, 6, 5, 3, 36)
    made = []
    for plan in PLANS:
        force(monkeypatch, *plan)
        made.append(check(drawn))
    for each in made[1:]:
        np.testing.assert_array_equal(made[0], each)


def force(monkeypatch, *plan):
    """Lets recurrences take this way, and blocks that share the hidden units."""
    plain = _core._recurrent
    monkeypatch.setattr(_networks, "_recurrent", lambda *given: plain(*given[:-1], plan))


@CELLS
@hopper_alone
@pytest.mark.parametrize("plan", [(CLUSTER, 2), (CLUSTER, 8)])
def test_clusters(cell, plan, monkeypatch):
    force(monkeypatch, *plan)
    check(Drawn(cell, 6, 5, 3, 33, directions=2))
    check(Drawn(cell, 5, 1, 3, 8))


@CELLS
@hopper_alone
def test_clusters_under_all_checks(cell, sim, monkeypatch):
    if kw.current_device().compute_capability != (9, 0):
        pytest.skip("the simulated device is an older one")
    force(monkeypatch, CLUSTER, 8)
    with kw.checks("memory", "init", "race", "sync") as report:
        check(Drawn(cell, 4, 5, 3, 33))
        check(Drawn(cell, 5, 1, 3, 8))
    report.raise_if_any()


@simulated_elsewhere
def test_this_file_at_9_0():
    run_at_9_0(__file__, "-k", "clusters or odd_sizes or directions")


@CELLS
def test_many_rows_and_units(cell):
    """Several blocks of rows and units, the last ones smaller."""
    check(Drawn(cell, 4, 1030, 2, 9))
    check(Drawn(cell, 2, 3, 2, 260))


@CELLS
def test_dropout_between_layers(cell):
    drawn = Drawn(cell, 4, 3, 2, 6, layers=3, directions=2)
    ones = kw.ones((4, 3, 12))
    place = {"seed": 5, "counter": kw.full(1, 2, "uint64")}
    masks = [wide(kw.nn.dropout(ones, 0.5, offset=7 + i, **place)) for i in range(2)]
    assert (masks[0] != masks[1]).any()
    check(drawn, masks, dropout=0.5, offset=7, **place)
    check(drawn, dropout=0.0)
    check(drawn, [np.zeros((4, 3, 12))] * 2, dropout=1.0, seed=1)


@CELLS
def test_empty_sequences_and_batches(cell):
    drawn = Drawn(cell, 3, 2, 4, 5, layers=2)
    x, hx, weights = drawn.arguments
    output, last = drawn.function(x[:0], hx, weights, num_layers=2)
    assert output.shape == (0, 2, 5)
    close(last if cell == "gru" else last[1], drawn.h_0 if cell == "gru" else drawn.c_0)
    output, last = drawn.function(x[:0], None, weights, num_layers=2)
    assert not wide(last if cell == "gru" else last[0]).any()
    states = hx[:, :0] if cell == "gru" else tuple(each[:, :0] for each in hx)
    output, last = drawn.function(x[:, :0], states, weights, num_layers=2)
    assert output.shape == (3, 0, 5)
    assert (last if cell == "gru" else last[0]).shape == (2, 0, 5)


@CELLS
def test_cells(cell):
    drawn = Drawn(cell, 1, 3, 4, 5)
    _, _, weights = drawn.arguments
    function = getattr(kw.nn, f"{cell}_cell")
    x, h, c = drawn.on_device(drawn.x[0]), *map(drawn.on_device, (drawn.h_0[0], drawn.c_0[0]))
    state = h if cell == "gru" else (h, c)
    expected = cell_step(cell, drawn.x[0], drawn.h_0[0], drawn.c_0[0], *drawn.weights)
    made = function(x, state, *weights)
    for one, other in zip((made,) if cell == "gru" else made, expected, strict=False):
        close(one, other)
    one = function(x[0], h[0] if cell == "gru" else (h[0], c[0]), *weights)
    close(one if cell == "gru" else one[0], expected[0][0])
    zeros = np.zeros(GATES[cell] * 5)
    plain = function(x, None, *weights[:2])
    expected = cell_step(cell, drawn.x[0], 0 * drawn.h_0[0], 0 * drawn.c_0[0], *drawn.weights[:2],
                         zeros, zeros)  # fmt: skip
    close(plain if cell == "gru" else plain[0], expected[0])


@CELLS
def test_wrong_calls(cell):
    drawn = Drawn(cell, 3, 2, 4, 5)
    x, hx, weights = drawn.arguments
    function, gates = drawn.function, GATES[cell]
    wrong = rf"last axis of x has 3 numbers.*{cell}\(\).*\({5 * gates}, 4\) takes input_size=4"
    with pytest.raises(kw.InvalidArgument, match=wrong):
        function(x[..., :3], hx, weights)
    with pytest.raises(kw.InvalidArgument, match="input_size=4"):
        getattr(kw.nn, f"{cell.upper()}Cell")(4, 5)(x[0, :, :3])
    with pytest.raises(kw.InvalidArgument, match=r"x is float16 on .* are float32 on"):
        function(x.astype("float16"), hx, weights)
    with pytest.raises(kw.InvalidArgument, match=rf"weight_ih_l1.*\({5 * gates}, 5\)"):
        function(x, None, [*weights, *weights], num_layers=2)
    with pytest.raises(kw.InvalidArgument, match=rf"weight_hh_l0.*\({5 * gates}, 5\)"):
        function(x, hx, [weights[0], weights[1][1:], *weights[2:]])
    with pytest.raises(kw.InvalidArgument, match=rf"bias_hh_l0.*\({5 * gates},\)"):
        function(x, hx, [*weights[:3], weights[3][1:]])
    with pytest.raises(kw.InvalidArgument, match="proj_size"):
        function(x, hx, [*weights, weights[1]])
    with pytest.raises(kw.InvalidArgument, match=r"4 layers and directions.*got 4"):
        function(x, hx, weights, num_layers=2, bidirectional=True)
    with pytest.raises(kw.InvalidArgument, match="num_layers is 1 or more, got 0"):
        function(x, hx, weights, num_layers=0)
    with pytest.raises(kw.InvalidArgument, match="float64"):
        function(x, hx, [weights[0].astype("float64"), *weights[1:]])
    with pytest.raises(kw.InvalidArgument, match="int64"):
        function(kw.ones((3, 2, 4), "int64"), hx, weights)
    with pytest.raises(kw.InvalidArgument, match=r"\(length, batch, inputs\).*\(4,\)"):
        function(x[0, 0], hx, weights)
    with pytest.raises(kw.InvalidArgument, match=r"h_0.*\(1, 2, 5\).*\(1, 1, 5\)"):
        function(x, hx[:, :1] if cell == "gru" else (hx[0][:, :1], hx[1]), weights)
    with pytest.raises(kw.InvalidArgument, match="dropout is a chance from 0 to 1, got 2"):
        function(x, hx, weights, dropout=2)
    with pytest.raises(kw.ArgumentError, match="asarray"):
        function(drawn.x, hx, weights)
    if cell == "lstm":
        with pytest.raises(kw.ArgumentError, match=r"states of lstm\(\) are \(h_0, c_0\)"):
            function(x, hx[0], weights)
    with pytest.raises(kw.ArgumentError, match="neither"):
        getattr(kw.nn, f"{cell}_cell")(x[0], None, *weights[:3])


@CELLS
def test_dropout_without_a_seed(cell):
    drawn = Drawn(cell, 3, 2, 4, 5, layers=2)
    with pytest.raises(kw.ArgumentError, match="takes a seed"):
        drawn.function(*drawn.arguments, num_layers=2, dropout=0.5)


@CELLS
def test_no_finding_in_any_kernel(cell, sim, monkeypatch):
    with kw.checks("memory", "init", "race", "sync") as report:
        for plan in PLANS:
            force(monkeypatch, *plan)
            check(Drawn(cell, 3, 5, 3, 9))
            check(Drawn(cell, 3, 1, 3, 8))
    report.raise_if_any()


@CELLS
def test_replay_in_a_graph(cell):
    drawn = Drawn(cell, 5, 2, 3, 8)
    x, hx, weights = drawn.arguments
    drawn.function(x, hx, weights)
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        output = drawn.function(x, hx, weights)[0]
    assert graph.node_count <= 4
    drawn.x = -drawn.x[::-1]
    x[...] = drawn.on_device(drawn.x)
    kw.synchronize()
    graph.launch(stream)
    stream.synchronize()
    close(output, drawn.expected()[0])
