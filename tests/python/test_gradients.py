"""Gradients as users take them: nests, modules, second order, writes, constants, mistakes."""

import gc
import threading

import numpy as np
import pytest

import kernwright as kw
from kernwright._grad.recording import recordings


def f8(*shape, seed=0):
    return kw.asarray(np.random.default_rng(seed).uniform(-1, 1, shape))


def test_the_value_and_the_gradient():
    x = kw.asarray([1.0, 2.0, 3.0])
    value, gradient = kw.value_and_grad(lambda x: (x * x).sum())(x)
    assert value.item() == 14
    assert gradient.numpy().tolist() == [2, 4, 6]
    assert kw.grad(lambda a, b: (a * b).sum(), wrt=1)(x, kw.ones(3)).numpy().tolist() == [1, 2, 3]


def test_a_nest_has_a_gradient_of_its_nest():
    point = {"w": kw.asarray([1.0, 2.0]), "rest": [kw.asarray(3.0), (kw.asarray([4.0]),)]}

    def loss(p, scale):
        return (p["w"] ** 2).sum() * p["rest"][0] + scale * p["rest"][1][0].sum()

    gradient, of_scale = kw.grad(loss, wrt=(0, 1))(point, kw.asarray(5.0))
    assert gradient["w"].numpy().tolist() == [6, 12]
    assert gradient["rest"][0].item() == 5 and isinstance(gradient["rest"][1], tuple)
    assert gradient["rest"][1][0].numpy().tolist() == [5] and of_scale.item() == 4


def test_a_module_has_a_gradient_as_its_parameters():
    net = kw.nn.Sequential(kw.nn.Linear(3, 4, seed=1), kw.nn.silu, kw.nn.Linear(4, 1, seed=2))
    x = kw.asarray(np.ones((5, 3), np.float32))

    def loss(net, x):
        return (net(x) ** 2).mean()

    gradient = kw.grad(loss)(net, x)
    assert gradient.keys() == net.parameters().keys()
    weight = net[0].weight
    before, moved = weight.numpy(), []
    for step in (0.01, -0.01):
        values = before.copy()
        values[2, 1] += step
        weight[...] = kw.asarray(values)
        moved.append(loss(net, x).item())
    assert gradient["0"]["weight"].numpy()[2, 1] == pytest.approx(
        (moved[0] - moved[1]) / 0.02, rel=1e-2
    )


def test_frozen_parameters_have_none_and_tied_ones_have_one():
    class Tied(kw.nn.Module):
        def __init__(self):
            self.table = kw.nn.Embedding(5, 3, seed=1)
            self.head = kw.nn.Linear(3, 5, bias=False, seed=2)
            self.head.weight = self.table.weight

        def __call__(self, ids):
            return self.head(self.table(ids))

    net = Tied()
    ids = kw.asarray(np.array([1, 2], np.int32))
    gradient = kw.grad(lambda net: net(ids).sum())(net)
    assert list(gradient) == ["table"]
    table = net.table.weight.numpy()
    expected = np.tile(table[[1, 2]].sum(0), (5, 1))
    expected[[1, 2]] += table.sum(0)
    np.testing.assert_allclose(gradient["table"]["weight"].numpy(), expected, rtol=1e-5)
    pair = kw.nn.Sequential(kw.nn.Linear(2, 2).freeze(), kw.nn.Linear(2, 2))
    assert list(kw.grad(lambda p: p(kw.ones((1, 2))).sum())(pair)) == ["1"]


def test_one_array_for_two_arguments_has_two_gradients():
    x = kw.asarray([2.0])
    a, b = kw.grad(lambda a, b: (a * a * b).sum(), wrt=(0, 1))(x, x)
    assert a.numpy().tolist() == [8] and b.numpy().tolist() == [4]


def test_what_the_loss_does_not_depend_on_has_zeros():
    b = kw.grad(lambda a, b: a.sum(), wrt=1)(kw.ones(2), kw.ones((3, 1), "float16"))
    assert b.shape == (3, 1) and b.dtype.name == "float16" and not b.numpy().any()
    assert kw.grad(lambda x: kw.ones(()))(kw.ones(2)).numpy().tolist() == [0, 0]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 20])
def test_an_array_that_is_used_often(count):
    for dtype in ("float32", "bfloat16"):
        x = kw.asarray([1.0]).astype(dtype)
        gradient = kw.grad(lambda x: sum([x * (i + 1) for i in range(count)], x * 0).sum())(x)
        assert gradient.dtype == x.dtype
        assert float(gradient.numpy()[0]) == count * (count + 1) / 2


def test_many_small_16_bit_gradients_are_summed_in_float32():
    x = kw.asarray([1.0]).astype("bfloat16")
    gradient = kw.grad(lambda x: kw.stack([x * 256.0] + [x] * 64).sum(dtype="float32"))(x)
    assert float(gradient.numpy()[0]) == 320  # 256 + 1 is 256 in bfloat16


def test_second_and_third_derivatives():
    x = kw.asarray([0.5, 2.0], dtype="float64")
    f = lambda x: kw.exp(x).sum()  # noqa: E731
    for _ in range(3):
        g = f
        f = lambda x, g=g: kw.grad(g)(x).sum()  # noqa: E731
    np.testing.assert_allclose(f(x).item(), np.exp(x.numpy()).sum(), rtol=1e-12)
    with pytest.raises(kw.ArgumentError, match="gradient of a norm has no gradient"):
        kw.grad(lambda x: kw.grad(lambda x: kw.nn.rms_norm(x).sum())(x).sum())(kw.ones(4))


def test_vjp_may_be_asked_again():
    y, back = kw.vjp(lambda a, b: {"p": a * b, "s": a.sum()}, f8(3), f8(3, seed=1))
    one = back({"p": kw.ones(3, "float64"), "s": None})
    two = back({"p": kw.ones(3, "float64"), "s": kw.ones((), "float64")})
    np.testing.assert_allclose(two[0].numpy() - one[0].numpy(), 1)
    with pytest.raises(kw.InvalidArgument, match=r"shape \(2,\)"):
        back({"p": kw.ones(2), "s": None})
    with pytest.raises(kw.InvalidArgument, match="nest"):
        back({"p": kw.ones(3)})
    assert set(y) == {"p", "s"}


def test_assignments_to_parts_of_new_arrays():
    def loss(x):
        y = kw.zeros(6, "float64")
        y[1:3] = x[:2] * 2
        y[0:2] += x[1:]
        y[kw.asarray([3, 3, 4])] = kw.stack([x[0], x[1], x[2]])
        y[y > 10] = 0
        y *= 3
        return (y * y).sum()

    assert kw.gradcheck(loss, f8(3))


def test_a_write_through_a_view_is_refused_or_right():
    def through(x):
        y = x * 1
        part = y[:2]
        y[0] = 5.0
        return (part * x[:2]).sum()

    y = kw.ones(3, "float64")
    with pytest.raises(kw.InvalidArgument, match=r"reads memory that x\[\.\.\.\]"):
        kw.grad(through)(y)

    def chain(x):
        y = x * 1
        y.reshape(3, 1)[1:][...] = 0
        return y.sum()

    with pytest.raises(kw.InvalidArgument, match=__file__.rpartition("/")[2]):
        kw.grad(chain)(y)


def test_overwriting_what_a_gradient_needs_is_refused_with_both_lines():
    def square(x):
        y = x + 1
        z = y * y
        y[...] = 0
        return z.sum()

    with pytest.raises(kw.InvalidArgument, match=r"multiply needs values.*test_gradients\.py:\d+"):
        kw.grad(square)(kw.ones(2))
    x, w = kw.ones(2), kw.ones(2)
    _, back = kw.vjp(lambda x: x * w, x)
    assert back(kw.ones(2))[0].numpy().tolist() == [1, 1]
    kw.optim.sgd(w, kw.ones(2), lr=1.0)
    with pytest.raises(kw.InvalidArgument, match="optimiser"):
        back(kw.ones(2))
    with pytest.raises(kw.InvalidArgument, match="writes into an argument"):
        kw.grad(lambda x: x.fill(0) or x.sum())(x)


def test_numbers_read_on_the_host_change_no_gradient():
    def loss(x):
        y = x + kw.ones((2, 3))
        assert y.tolist() and y.numpy().size == 6
        return (y * float(y[0, 0].item())).sum()

    assert kw.grad(loss)(kw.ones(3)).numpy().tolist() == [4, 4, 4]


def test_checkpoint_computes_again_and_finds_what_it_closes_over():
    layer, calls = kw.nn.Linear(3, 3, seed=1), []

    def block(x):
        calls.append(1)
        return kw.sin(layer(x))

    x = kw.ones((2, 3))
    plain = kw.grad(lambda layer, x: kw.sin(layer(x)).sum(), wrt=(0, 1))(layer, x)
    again = kw.grad(lambda layer, x: kw.checkpoint(block)(x).sum(), wrt=(0, 1))(layer, x)
    assert len(calls) == 2
    np.testing.assert_array_equal(plain[1].numpy(), again[1].numpy())
    np.testing.assert_array_equal(plain[0]["weight"].numpy(), again[0]["weight"].numpy())


def test_checkpoint_draws_the_same_numbers_again():
    layer = kw.nn.Dropout(0.5, seed=3)
    own = kw.random.Generator(1, on_device=True)

    def noisy(x):
        return layer(x) * kw.random.uniform(x.shape) + x * own.normal(x.shape)

    seen = []

    def loss(x):
        y = kw.checkpoint(noisy)(x)
        seen.append(y)
        return y.sum()

    gradient = kw.grad(loss)(kw.ones(200))
    np.testing.assert_allclose(gradient.numpy(), seen[0].numpy(), rtol=1e-6)


def test_checkpoint_in_a_loop():
    layers = [kw.nn.Linear(2, 2, seed=i) for i in range(3)]

    def run(wrapped):
        def loss(x):
            for layer in layers:
                x = wrapped(lambda z: kw.sin(layer(z)))(x)  # noqa: B023 (on purpose)
            return x.sum()

        return kw.grad(loss)(kw.ones((1, 2))).numpy()

    np.testing.assert_array_equal(run(kw.checkpoint), run(lambda f: f))


def test_checkpoint_moves_no_generator_on():
    def loss(x, wrapped):
        return wrapped(lambda x: x * kw.random.normal(x.shape))(x).sum()

    after = []
    for wrapped in (kw.checkpoint, lambda f: f):
        kw.random.seed(3)
        layer = kw.nn.Dropout(0.5, seed=1)
        kw.grad(loss)(kw.ones(8), lambda f, w=wrapped, layer=layer: w(lambda x: layer(f(x))))
        after.append((kw.random.normal(2).numpy().tolist(), layer(kw.ones(16)).numpy().tolist()))
    assert after[0] == after[1]


def test_many_writes_in_place_are_kept_as_few():
    def loss(x):
        y = x * 1
        for i in range(600):
            y += x
            y[i % 3] = x[0]
        (recording,) = recordings()
        assert len(recording.writes) == 1  # each operation looks at all of them
        return y.sum()

    # The last rounds leave 3 x[0], x[0] + x[1] and x[0].
    assert kw.grad(loss)(kw.ones(3)).numpy().tolist() == [5, 1, 0]


def test_writes_through_views_of_an_argument_are_refused():
    def through(x):
        view = x[:1]
        view += 1
        return view.sum()

    x = kw.asarray([1.0, 2.0])
    with pytest.raises(kw.InvalidArgument, match="writes into an argument"):
        kw.grad(through)(x)
    assert x.numpy().tolist() == [1, 2]


def test_custom_gradient_refuses_what_it_closes_over():
    w = kw.asarray([2.0])

    def loss(w):
        return kw.custom_gradient(lambda x: (x * w, x), lambda x, g: g)(kw.ones(1)).sum()

    with pytest.raises(kw.ArgumentError, match="none of its arguments by position"):
        kw.grad(loss)(w)


def test_checkpoint_keeps_less():
    def chain(x):
        for _ in range(20):
            x = kw.sin(x)
        return x

    def peak(f):
        gc.collect()
        kept = []
        _, back = kw.vjp(lambda x: f(f(x)), kw.ones(100_000))
        kept.append(kw.memory.stats()["used"])
        del back
        return kept[0]

    assert peak(kw.checkpoint(chain)) + 30 * 400_000 < peak(chain)


def test_a_kernel_of_the_user_gets_a_gradient():
    twice = kw.kernel("""__global__ void twice(const float* x, float* y, int n) {
        int i = threadIdx.x;
        if (i < n) y[i] = 2 * x[i] * x[i];
    }""")

    def forward(x):
        y = kw.empty_like(x)
        twice[1, 32](x, y, x.size)
        return y, x

    f = kw.custom_gradient(forward, lambda x, g: g * 4 * x)
    assert kw.grad(lambda x: f(x).sum())(kw.asarray([1.0, 3.0])).numpy().tolist() == [4, 12]
    with pytest.raises(kw.ArgumentError, match=r"twice has no gradient.*custom_gradient"):
        kw.grad(lambda x: forward(x)[0].sum())(kw.ones(2))
    wrong = kw.custom_gradient(lambda x: (x * 1, None), lambda saved, g: kw.ones(7))
    with pytest.raises(kw.InvalidArgument, match=r"\(7,\).*\(2,\)"):
        kw.grad(lambda x: wrong(x).sum())(kw.ones(2))


def test_complex_numbers_as_torch_has_them():
    z = kw.asarray(np.array([1 + 2j, -3 + 0.5j]))
    gradient = kw.grad(lambda z: (kw.abs(z) ** 2).sum())(z)
    np.testing.assert_allclose(gradient.numpy(), 2 * z.numpy())
    assert kw.gradcheck(lambda z: kw.exp(z * 1j) / (z + 3), z)
    assert kw.gradcheck(lambda x: kw.abs(kw.fft.rfft(x)) ** 2, f8(6))
    hermitian = lambda a: kw.linalg.eigh(a + a.mT).eigenvalues  # noqa: E731
    assert kw.gradcheck(hermitian, f8(3, 3))


def test_an_empty_array_and_one_without_axes():
    assert kw.grad(lambda x: (x * 2).sum())(kw.zeros((0, 3))).shape == (0, 3)
    assert kw.grad(lambda x: x * x)(kw.asarray(3.0)).item() == 6


def test_mistakes_say_what_to_do():
    x = kw.ones(3)
    for f, args, options, message in (
        (lambda x: x * 2, (x,), {}, r"shape \(3,\).*sum\(\)"),
        (lambda x: 3.0, (x,), {}, "float 3.0"),
        (lambda x: x.sum(), (kw.asarray([1, 2]),), {}, "int64.*astype"),
        (lambda x: x.sum(), (2.0,), {}, "argument 0 is float 2.0.*asarray"),
        (lambda x: x.sum(), (x,), {"wrt": 3}, "argument 3"),
        (lambda x: x.sum(), (x,), {"wrt": (0, 0)}, "each once"),
        (lambda x, y: x.sum(), (x, x), {"wrt": (0, -2)}, "each once"),
        (lambda x: x.sum(), (x,), {"wrt": "x"}, "number"),
        (lambda x: x.sum(), (x,), {"has_aux": True}, "loss, anything"),
        (lambda x: kw.argmax(x), (x,), {}, "int64"),
    ):
        with pytest.raises(kw.Error, match=message):
            kw.value_and_grad(f, **options)(*args)
    with pytest.raises(kw.ArgumentError, match="function"):
        kw.grad(3)
    with pytest.raises(kw.InvalidArgument, match="differences give"):
        bad = kw.custom_gradient(lambda x: (x * x, x), lambda x, g: g * x)
        kw.gradcheck(lambda x: bad(x).sum(), f8(2))


def test_a_failing_function_leaves_no_recording():
    def fails(x):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        kw.grad(fails)(kw.ones(2))
    x = kw.ones(2)
    x += 1  # nothing watches it any more
    assert x.numpy().tolist() == [2, 2]


def test_threads_record_apart():
    found = {}

    def work(i):
        for _ in range(20):
            found[i] = kw.grad(lambda x: (x * x * i).sum())(kw.ones(2)).numpy().tolist()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == {i: [2 * i, 2 * i] for i in range(4)}


def test_nothing_is_kept_with_the_garbage_collector_off():
    layer = kw.nn.Linear(8, 8, seed=1)
    x = kw.ones((4, 8))

    def loss(layer, x):
        y = kw.nn.silu(layer(x))
        y += x
        return kw.grad(lambda y: (y * y).sum())(y).sum() + y.mean()

    step = kw.value_and_grad(loss)
    step(layer, x)
    gc.collect()
    gc.disable()
    try:
        before = kw.memory.stats()["used"]
        for _ in range(300):
            step(layer, x)
        assert kw.memory.stats()["used"] == before
        assert gc.collect() < 50
    finally:
        gc.enable()


def test_cross_entropy_in_place_of_the_logits():
    x = kw.asarray(np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32))
    ids = kw.asarray(np.array([1, 4, 0, -100, 2, 2], np.int32))
    for reduction in ("mean", "sum", "none"):
        for factor in (1.0, 3.0):

            def loss(x, inplace, reduction=reduction, factor=factor):
                made = kw.nn.cross_entropy(x * 2, ids, reduction=reduction, inplace=inplace)
                made = made.sum() if reduction == "none" else made
                return made if factor == 1 else made * factor

            plain, over = (kw.value_and_grad(loss)(x, inplace) for inplace in (False, True))
            assert plain[0].item() == over[0].item()
            np.testing.assert_allclose(plain[1].numpy(), over[1].numpy(), rtol=1e-6, atol=1e-7)

    def again(x):
        logits = x * 2
        return kw.nn.cross_entropy(logits, ids, inplace=True) + logits.sum()

    with pytest.raises(kw.InvalidArgument, match=r"cross_entropy\(inplace=True\)"):
        kw.grad(again)(x)
    before = x.numpy()
    kw.nn.cross_entropy(x, ids, inplace=True)  # no gradient is recorded: nothing is written
    assert (x.numpy() == before).all()


def test_heads_are_views_inside_of_a_recording():
    x = kw.asarray(np.random.default_rng(0).normal(size=(2, 5, 32)).astype(np.float32))
    for first in (False, True):

        def loss(x, first=first):
            q, k, v = kw.nn.split_qkv(x, 4, 2, heads_first=first)
            return (q.sum() * k + v * v).sum()

        plain = kw.nn.split_qkv(x, 4, 2, heads_first=first)
        views, _ = kw.vjp(lambda x, f=first: kw.nn.split_qkv(x, 4, 2, heads_first=f), x)
        for a, b in zip(plain, views, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
        assert kw.gradcheck(loss, x.astype("float64"))


def test_fused_functions_have_fused_gradients():
    gelu = kw.fuse(lambda x: 0.5 * x * (1 + kw.tanh(0.79788456 * (x + 0.044715 * x**3))))
    assert kw.gradcheck(lambda x: gelu(x), f8(2, 5))
    norm = kw.fuse("x / sqrt(sum(x * x, -1, keepdims=True))")
    assert kw.gradcheck(lambda x: norm(x=x), f8(2, 3))
    shifted = kw.fuse(lambda x, w: (x[1:] - x[:-1]) * w)  # views: operation by operation
    assert kw.gradcheck(shifted, f8(5), f8(1))
    two = kw.fuse(lambda x, w: (kw.nn.softmax(x) * w, x.max(axis=0)))
    assert kw.gradcheck(lambda x, w: two(x, w)[0].sum() + two(x, w)[1].sum(), f8(3, 4), f8(4))
    twice = lambda x: kw.grad(lambda x: gelu(x).sum())(x)  # noqa: E731
    assert kw.gradcheck(twice, f8(3))
    x = f8(1000)
    kw.grad(lambda x: gelu(x).sum())(x)
    with kw.profile() as found:
        kw.grad(lambda x: gelu(x).sum())(x)
    names = [each.name for each in found.activities]
    assert sum("lambda" in name for name in names) == 2, names


@pytest.mark.parametrize("first", [False, True])
def test_neighbours_in_memory_are_no_overwritten_values(first):
    whole = kw.arange(8, dtype="float32")
    written, read = (whole[4:], whole[:4]) if first else (whole[:4], whole[4:])

    def loss(x):
        made = (read * x).sum()
        written[...] = x * 2
        return made + (read * x).sum() + written.sum()

    expected = 2 * read.numpy() + 2
    assert kw.grad(loss)(kw.ones(4)).numpy().tolist() == expected.tolist()


def test_powers_in_place_keep_what_their_gradient_needs():
    def loss(x):
        y = x * 1
        y **= 3
        return y.sum()

    assert kw.grad(loss)(kw.asarray([2.0, 3.0])).numpy().tolist() == [12, 27]
