"""Captured functions give the bits of eager ones, whatever comes between the calls."""

import numpy as np
import pytest

import kernwright as kw


def bits(array):
    return array.numpy().tobytes()


def network(seed):
    return kw.nn.Sequential(
        kw.nn.Linear(4, 16, seed=seed), kw.nn.Dropout(0.3, seed=2), kw.nn.silu,
        kw.nn.Linear(16, 1, seed=seed + 1),
    )  # fmt: skip


def training(net):
    """A whole step: forward, backward, clipping, the optimiser."""
    optimizer = kw.optim.AdamW(net, lr=kw.optim.cosine(1e-2, 100, warmup=5))
    gradient = kw.value_and_grad(lambda net, x, t: kw.nn.mse_loss(net(x), t))

    def step(x, target):
        loss, grads = gradient(net, x, target)
        optimizer.step(grads)
        return loss

    return step


def test_a_training_step_gives_the_bits_of_the_eager_one():
    one, other = network(1), network(1)
    eager, captured = training(one), kw.captured(training(other))
    rng = np.random.default_rng(0)
    for _ in range(100):
        x = kw.asarray(rng.normal(size=(8, 4)).astype(np.float32))
        target = kw.asarray(rng.normal(size=(8, 1)).astype(np.float32))
        assert bits(eager(x, target)) == bits(captured(x, target))
    for (_, a), (_, b) in zip(one.named_parameters(), other.named_parameters(), strict=True):
        assert bits(a) == bits(b)
    assert len(captured.graphs) == 1


def test_numbers_may_change():
    f = kw.captured(lambda x, a, n: x * a + n)
    for dtype in ("float32", "bfloat16", "float64"):
        x = kw.asarray([1.0, 2.0]).astype(dtype)
        for a, n in ((0.5, 1), (0.5, 1), (0.1, 2), (0.1, -3), (7.25, 100)):
            made, expected = f(x, a, n), x * a + n
            assert made.dtype == expected.dtype and bits(made) == bits(expected)
    assert len(f.graphs) == 3


@pytest.mark.parametrize(
    ("name", "f", "number"),
    [
        ("less", lambda x, n: x < n, -1), ("add", lambda x, n: x + n, 256),
        ("subtract", lambda x, n: x + n, -1), ("more", lambda x, n: x >= n, 300),
        ("full", lambda x, n: kw.full((2,), n, dtype="int8"), 300),
        ("where", lambda x, n: kw.where(x > 1, x, n), 300),
        ("clip", lambda x, n: kw.clip(x, 0, n), 300),
        ("narrow", lambda x, n: x.astype("int8") * n, 200),
        ("wide", lambda x, n: x.astype("int32") + n, 2**40),
        ("power", lambda x, n: x.astype("int32") ** n, -1),
    ],
)  # fmt: skip
def test_integers_of_another_range_are_told_apart(name, f, number):
    """They do as without a graph: an error, or the same result."""
    captured, x = kw.captured(f), kw.asarray([1, 2, 3], dtype="uint8")
    for _ in range(3):
        assert bits(captured(x, 2)) == bits(f(x, 2))

    def done(call):
        try:
            return bits(call(x, number))
        except (kw.errors.Error, OverflowError, ValueError) as error:
            return type(error).__name__, str(error)

    expected = done(f)
    assert [done(captured) for _ in range(4)] == [expected] * 4
    assert len(captured.graphs) == (1 if isinstance(expected, tuple) else 2)


def test_shapes_and_structures_have_graphs_of_their_own():
    f = kw.captured(lambda p, flag: p["a"] * 2 if flag else p["a"] + p["b"][0])
    for _ in range(4):
        for size in (1, 3):
            for flag in (True, False):
                p = {"a": kw.ones(size), "b": (kw.ones(size),)}
                assert f(p, flag).numpy().tolist() == [2.0] * size
    assert len(f.graphs) == 4
    many = kw.captured(lambda x: x + 1)
    for _ in range(3):
        for size in range(40):
            many(kw.ones(size))
    assert len(many.graphs) <= 32


def test_random_numbers_go_on():
    def draw(generator):
        return kw.random.normal(4), generator.integers(0, 100, 3), kw.random.uniform(2)

    def run(f):
        kw.random.seed(5)
        generator, found = kw.random.Generator(3), []
        for i in range(7):
            found.append([bits(each) for each in f(generator)])
            if i == 4:
                kw.random.uniform(9)  # somebody else draws in between
        return found, generator.offset, kw.random.default_generator().offset

    assert run(draw) == run(kw.captured(draw))


def test_seeds_set_after_the_capture_count():
    generator, layer = kw.random.Generator(3), kw.nn.Dropout(0.5, seed=3)

    def draw(x):
        return kw.random.normal(4), generator.uniform(3), layer(x)

    captured, x = kw.captured(draw), kw.ones(40)
    kw.random.seed(5)
    for _ in range(4):
        captured(x)
    masks, place = layer._masks.state(), generator.state()
    for seed in (5, 6, 6):  # the same, another one, the graph of that
        found = []
        for f in (draw, captured):
            kw.random.seed(seed)
            generator.restore(place | {"seed": seed})
            layer._masks.restore(masks | {"seed": seed})
            found.append([[bits(each) for each in f(x)] for _ in range(3)])
        assert found[0] == found[1]
    assert kw.random.default_generator().offset == 12


def test_numbers_drawn_under_checkpoint():
    gradient = kw.value_and_grad(kw.checkpoint(lambda x: kw.sum(x * kw.random.normal(3))))
    found = []
    for f in (gradient, kw.captured(gradient)):
        kw.random.seed(2)
        found.append([[bits(each) for each in f(kw.ones(3))] for _ in range(5)])
    assert found[0] == found[1] and len({one for one, _ in found[0]}) == 5


@pytest.mark.parametrize("has_steps", [False, True])
@pytest.mark.parametrize("has_counter", [False, True])
def test_tokens_drawn_without_a_seed(has_steps, has_counter):
    logits = kw.asarray(np.zeros((6, 40), np.float32))
    steps = kw.asarray(np.arange(6, dtype="i4")) if has_steps else 1
    found = []
    for wrap in (lambda f: f, kw.captured):
        counter = kw.zeros(1, "uint64") if has_counter else None
        options = {"step": steps, "counter": counter}
        draw = wrap(lambda logits, options=options: kw.nn.sample(logits, **options))
        kw.random.seed(8)
        found.append([bits(draw(logits)) for _ in range(6)])
        assert counter is None or counter.item() == 6
    assert found[0] == found[1] and len(set(found[0])) == 6


def test_arguments_that_the_function_writes_into():
    def move(state, by):
        state["x"] += by
        return state["x"].sum()

    f, x, other = kw.captured(move), kw.zeros(3), kw.ones(3)
    for i in range(6):
        assert f({"x": x}, kw.ones(3)).item() == 3 * (i + 1)
    f({"x": other}, kw.ones(3))
    assert x.numpy().tolist() == [6, 6, 6] and other.numpy().tolist() == [2, 2, 2]


def test_views_and_results_as_arguments():
    f = kw.captured(lambda x: x * 2)
    x = kw.arange(6, dtype="float32").reshape(2, 3)
    for _ in range(3):
        f(x.T)
    assert f(x.T).numpy().tolist() == (x.numpy().T * 2).tolist()
    y = kw.ones((3, 2))
    for _ in range(5):
        y = f(y)
    assert (y.numpy() == 32).all()


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1, 1:], lambda x: x[0].mT, lambda x: x[0, :, :36:2], lambda x: x[0, ::-1],
        lambda x: x[0, :1, :7], lambda x: kw.broadcast_to(x[0, 0], (5, 37)),
        lambda x: x[0, 2:2], lambda x: x[:, 0, 0], lambda x: kw.permute_dims(x, (2, 0, 1))[1:],
    ],
)  # fmt: skip
def test_sums_over_views_have_the_same_bits(view):
    """Kernels choose the order of a sum by strides and alignment."""
    data = np.random.default_rng(3).standard_normal((7, 2, 9, 37)).astype("float32")

    def step(x):
        return kw.mean(x * x), kw.sum(x, axis=-1), x @ x.mT if x.ndim > 1 else x

    plain, f = [], kw.captured(step)
    for i, each in enumerate(data):
        whole = kw.zeros(each.size + 64, "float32")
        x = whole[i % 4 + i // 4 * 4 :][: each.size].reshape(each.shape)
        x[...] = kw.asarray(each)
        plain += [[bits(y) for y in step(view(x))] for _ in range(4)]
        for wanted in plain[-4:]:
            assert [bits(y) for y in f(view(x))] == wanted
    # Where an array was the same in each call before, and in a graph that copies.
    x, f = kw.asarray(data), kw.captured(step)
    for each in [*x, *x]:
        assert [bits(y) for y in f(view(each))] == [bits(y) for y in step(view(each))]


def test_views_that_leave_out_most_take_little_memory():
    f, wide = kw.captured(lambda x: x + 1), kw.zeros((4, 64, 1 << 16), "uint8")
    f(wide[0, :, 0])
    f(wide[1, :, 0])
    before = kw.memory.stats()["used"]
    assert (f(wide[2, :, 0]).numpy() == 1).all()
    assert kw.memory.stats()["used"] - before < 1 << 16


def test_writes_into_views_that_are_no_packs_apart():
    def fill(x):
        x += 1
        return x.sum()

    f, x = kw.captured(fill), kw.zeros((6, 5))
    for i in range(6):
        f(x[i, 1:])
    for i in range(6):
        f(x[i, 1:][::-1])
    assert (x.numpy() == [0, 2, 2, 2, 2]).all()


def test_a_module_with_other_parameters_is_another_call():
    layer = kw.nn.Linear(2, 2, bias=False, seed=1)
    f = kw.captured(lambda layer, x: layer(x))
    x = kw.ones((1, 2))
    for _ in range(4):
        f(layer, x)
    layer.weight[...] = 1.0
    assert f(layer, x).numpy().tolist() == [[2, 2]]
    layer.weight = kw.ones((2, 2)) * 3
    assert f(layer, x).numpy().tolist() == [[6, 6]]


def branch(x):
    return x if x.sum() == 2 else -x


def branch_below(x):
    y = x * 2
    return branch(y - 1)


@pytest.mark.parametrize(
    ("call", "f", "line"),
    [
        ("__bool__", branch, 1), ("__bool__", branch_below, -3),
        ("__bool__", lambda x: x if kw.allclose(x, x) else -x, 0),
        ("__float__", lambda x: x * float(x[0]), 0), ("__int__", lambda x: x[int(x[0]) :], 0),
        ("numpy", lambda x: x * float(x.numpy()[0]), 0), ("item", lambda x: x * x[0].item(), 0),
        ("tolist", lambda x: x * x.tolist()[0], 0), ("__repr__", lambda x: x[len(repr(x)) :], 0),
        ("asarray", lambda x: x + kw.asarray(np.ones(2)), 0),
        ("synchronize", lambda x: kw.synchronize(), 0), ("__getitem__", lambda x: x[x > 0], 0),
        ("nonzero", lambda x: kw.nonzero(x), 0),
        ("__bool__", kw.grad(lambda x: x.sum() if x[0] > 0 else x[1]), 0),
    ],
)  # fmt: skip
def test_the_line_that_cannot_be_recorded_is_named(call, f, line):
    g = kw.captured(f)
    g(kw.ones(2)), g(kw.ones(2))
    code = getattr(f, "__wrapped__", f).__code__
    place = f"at {__file__}:{code.co_firstlineno + line} "
    with pytest.raises(kw.CaptureError) as refused:
        g(kw.ones(2))
    assert place in str(refused.value) and call in str(refused.value)
    assert any(entry.frame.code.raw is code for entry in refused.traceback)
    assert g.graphs == []


def test_a_function_of_the_library_names_the_line_of_its_call():
    g = kw.captured(kw.unique_values)
    g(kw.ones(2)), g(kw.ones(2))
    with pytest.raises(kw.CaptureError, match=r"copies from the host at .*test_captured.py:\d+ "):
        g(kw.ones(2))


def test_captured_takes_functions():
    with pytest.raises(kw.ArgumentError, match="function"):
        kw.captured(3)


def test_inside_of_gradients_it_runs_as_it_is():
    f = kw.captured(lambda x: (x * x).sum())
    for _ in range(4):
        f(kw.ones(2))
    assert kw.grad(f)(kw.asarray([3.0, 4.0])).numpy().tolist() == [6, 8]


@pytest.mark.parametrize("name", ["maximum", "times"])
def test_writes_that_change_nothing_at_first(name):
    def running(best, x):
        best[...] = kw.maximum(best, x)

    def times(best, x):
        best *= x

    f = kw.captured(running if name == "maximum" else times)
    eager = running if name == "maximum" else times
    one, other = kw.ones(2), kw.ones(2)
    for value in (1.0, 1.0, 3.0, 2.0, 5.0):
        f(one, kw.full(2, value))
        eager(other, kw.full(2, value))
        assert bits(one) == bits(other)
    news = [kw.ones(2) for _ in range(5)]  # another array in each call
    g = kw.captured(eager)
    for array in news:
        g(array, kw.full(2, 4.0))
    assert [float(array[0]) for array in news] == [4.0] * 5


def test_parameters_replaced_again_and_again():
    layer = kw.nn.Linear(2, 2, bias=False, seed=1)
    f, x = kw.captured(lambda layer, x: layer(x)), kw.ones((1, 2))
    for i in range(60):
        layer.weight = kw.full((2, 2), float(i))
        assert float(f(layer, x)[0, 0]) == 2 * i


def test_a_result_that_comes_back_and_is_written():
    def f(a):
        a += 1
        return a * 2

    found = []
    for g in (f, kw.captured(f)):
        a, values = kw.ones(1), []
        for _ in range(6):
            a = g(a)
            values.append(float(a[0]))
        found.append(values)
    assert found[0] == found[1]


def test_arguments_that_share_memory():
    def f(a, b):
        a += 1
        return a * b

    g = kw.captured(f)
    for _ in range(4):
        q = kw.asarray([0.0, 1.0, 2.0, 3.0])
        assert g(q, q).numpy().tolist() == [1, 4, 9, 16]
        q = kw.asarray([0.0, 1.0, 2.0, 3.0])
        assert g(q[1:], q[:-1]).numpy().tolist() == [0, 6, 12]
        assert g(kw.ones(4), kw.ones(4)).numpy().tolist() == [2, 2, 2, 2]
    w = kw.zeros(2)

    def closed(a):
        a += 1
        return w * 1

    h = kw.captured(closed)
    assert [float(h(w)[0]) for _ in range(5)] == [1, 2, 3, 4, 5]
    layer = kw.nn.Linear(1, 1, bias=False, seed=1)
    layer.weight[...] = 1

    def moved(layer, w, x):
        w += 1
        return layer(x)

    h = kw.captured(moved)
    assert [h(layer, layer.weight, kw.ones((1, 1))).item() for _ in range(5)] == [2, 3, 4, 5, 6]


def test_arithmetic_of_numbers_alone():
    functions = [
        lambda a, n: a / n + n / 3, lambda a, n: a * (1 - n), lambda a, n: a * (2 * n) - n**2,
        lambda a, n: kw.full((2,), n / 2) + a, lambda a, n: (-n) * a + abs(n),
    ]  # fmt: skip
    for f in functions:
        g = kw.captured(f)
        for dtype in ("float32", "bfloat16"):
            a = kw.asarray([1.0, 3.0]).astype(dtype)
            for n in (0.25, 0.5, 3, 0.75, 7, 5, 11):
                made, expected = g(a, n), f(a, n)
                assert (made.dtype, bits(made)) == (expected.dtype, bits(expected)), (f, n)
    h = kw.captured(lambda a, n: a * n)
    for n in (np.float64(3), np.float32(2), np.int64(4), 2**70, True):
        for _ in range(4):
            assert h(kw.ones(2), n).dtype == (kw.ones(2) * n).dtype
    zero = kw.captured(lambda a, n: a / n)
    found = [float(zero(kw.ones(1), n)[0]) for n in (1.0, 1.0, 0.0, -0.0)]
    assert found == [1, 1, np.inf, -np.inf]


def test_what_modules_hold_besides_parameters():
    layer = kw.nn.Dropout(0.5, seed=1)
    f, x = kw.captured(lambda layer, x: layer(x)), kw.ones(64)
    for _ in range(4):
        assert (f(layer, x).numpy() == 0).any()
    layer.p = 0.0
    assert (f(layer, x).numpy() == 1).all()
    layer.p = 0.5
    layer.eval()
    assert (f(layer, x).numpy() == 1).all()


def test_a_method():
    class Model:
        factor = 2.0

        @kw.captured
        def step(self, x):
            return x * self.factor

    model, other = Model(), Model()
    other.factor = 3.0
    for _ in range(4):
        assert model.step(kw.ones(1)).item() == 2 and other.step(kw.ones(1)).item() == 3


def test_a_number_that_python_needs_is_explained():
    f = kw.captured(lambda x, n: x[:n])
    f(kw.ones(3), 2), f(kw.ones(3), 2)
    with pytest.raises(kw.CaptureError, match=r"<lambda>\(\) cannot be recorded.*partial"):
        f(kw.ones(3), 2)


def test_arrays_side_by_side_share_no_memory():
    f = kw.captured(lambda x, y: x - y)
    whole = kw.arange(64, dtype="float32")
    for _ in range(3):
        assert f(whole[:32], whole[32:]).numpy().tolist() == [-32] * 32
    assert len(f.graphs) == 1


def test_ints_beyond_a_limit_are_another_kind():
    f = kw.captured(lambda x, n: x + n)
    x, limits = kw.zeros(1, "int64"), [2**bits for bits in (7, 8, 15, 16, 31, 32)]
    numbers = [each for limit in limits for each in (limit - 1, -limit)] + [2**40, -(2**40)]
    for number in numbers:
        for _ in range(3):
            assert f(x, number).item() == number
    assert len(f.graphs) == len(numbers)


def test_the_kinds_used_last_keep_their_graphs():
    f = kw.captured(lambda x: x + 1)
    x = kw.zeros(40)
    for _ in range(3):
        f(x[:1])
    first = f.graphs
    for count in range(2, 33):
        f(x[:count])
    f(x[:1])
    for _ in range(3):
        f(x[:33])
    assert len(f.graphs) == 2 and f.graphs[0] is first[0]  # the second kind went
    for count in range(34, 41):
        f(x[:count])
    assert f.graphs[0] is first[0]


def test_what_is_frozen_is_another_kind():
    def total(model):
        layers = model.trainable_parameters().values()
        return sum(kw.sum(layer["weight"]) for layer in layers)

    model = kw.nn.Sequential(kw.nn.Linear(2, 3, bias=False), kw.nn.Linear(3, 1, bias=False))
    model[0].weight[...], model[1].weight[...] = 1, 10
    f = kw.captured(total)
    for _ in range(3):
        assert f(model).item() == 36
    model[0].freeze()
    for _ in range(3):
        assert f(model).item() == 30
