"""Optimisers over modules and nests: names, groups, tied and frozen parameters, states by name."""

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument, NameNotFound


class Tied(kw.nn.Module):
    def __init__(self):
        self.embed = kw.nn.Embedding(5, 3, seed=1)
        self.layers = [kw.nn.Linear(3, 3, seed=2), {"norm": kw.nn.LayerNorm(3)}]
        self.head = kw.nn.Linear(3, 5, False, seed=3)
        self.head.weight = self.embed.weight


def values(nest):
    """The host's numbers by name."""
    if isinstance(nest, kw.Array):
        return {"": nest.numpy()}
    items = nest.items() if isinstance(nest, dict) else enumerate(nest)
    return {
        f"{key}.{inner}".rstrip("."): x for key, each in items for inner, x in values(each).items()
    }


def ones_like(nest):
    if isinstance(nest, dict):
        return {name: ones_like(each) for name, each in nest.items()}
    if isinstance(nest, (list, tuple)):
        return [ones_like(each) for each in nest]
    return kw.ones_like(nest)


def nested():
    return {"a": [kw.ones(2), (kw.ones((2, 2)),)], "b": kw.ones(3)}


def test_a_nest_of_dicts_lists_and_tuples():
    params, grads = nested(), nested()
    optimizer = kw.optim.SGD(params, lr=0.25, momentum=0.5)
    optimizer.step(grads)
    optimizer.step({"b": grads["b"], "a.0": grads["a"][0], "a": {"1": [grads["a"][1][0]]}})
    assert set(values(params)) == {"a.0", "a.1.0", "b"}
    assert all((x == 1 - 0.25 - 0.375).all() for x in values(params).values())
    states = optimizer.state_dict()["momentum_buffer"]
    assert isinstance(states["a"], list) and set(values(states)) == set(values(params))


@pytest.mark.parametrize(
    ("grads", "words"),
    [
        ({"a": [1, [2]]}, ["missing: b"]),
        ({"a": [1, [2, 3]], "c": 1}, ["missing: b", "unexpected: a.1.1, c"]),
        ({"a": [1, [2]], "b": None}, ["missing: b"]),
        ([1, 2, 3], ["missing: a.0, a.1.0, b", "unexpected: 0, 1, 2"]),
        ({"a": [kw.ones(2), [kw.ones(4)]], "b": kw.ones(1)},
         ["grads[a.1.0] has shape (4,) in place of (2, 2)", "grads[b] has shape (1,) in place"]),
        ({"a": {0: 1, "0": 2}}, ["the name 'a.0' twice"]),
        ({"a": [kw.ones(2), [kw.ones((2, 2), "int32")]], "b": kw.ones(3, "complex64")},
         ["grads[a.1.0] is float16, bfloat16, float32 or float64, not int32",
          "grads[b] is float16, bfloat16, float32 or float64, not complex64"]),
    ],
)  # fmt: skip
def test_gradients_that_do_not_fit_are_all_named(grads, words):
    params = nested()
    optimizer = kw.optim.AdamW(params)
    with pytest.raises(InvalidArgument) as caught:
        optimizer.step(grads)
    assert all(word in str(caught.value) for word in words), caught.value
    assert optimizer.steps.item() == 0
    assert all((x == 1).all() for x in values(params).values())


def test_other_calls_name_the_arrays_of_a_nest():
    grads = {"a": [kw.ones(2), (kw.ones((2, 2), "int32"),)], "b": kw.ones(3)}
    for call in (
        lambda: kw.optim.clip_grad_norm(grads, 1.0),
        lambda: kw.optim.grad_norm(grads),
        lambda: kw.optim.Accumulator(nested()).add(grads),
        lambda: kw.optim.Muon(nested()).step(grads),
        lambda: kw.optim.SGD(nested()).step(grads, max_norm=1.0),
    ):
        with pytest.raises(InvalidArgument, match=r"grads\[a\.1\.0\] is .*int32"):
            call()
    with pytest.raises(InvalidArgument, match=r"of bfloat16, and params\[a\.0\] is float32"):
        kw.optim.AdamW(nested(), stochastic_rounding=True)


def test_parameters_that_share_memory_are_refused():
    memory = kw.ones(12)
    halves = {"low": memory[:6], "high": [memory[6:]], "none": memory[3:3]}
    kw.optim.SGD(halves, lr=1.0).step(ones_like(halves))
    assert (memory.numpy() == 0).all()
    matrix = memory.reshape(3, 4)
    for params, names in (
        ({"low": memory[:7], "high": [memory[6:]]}, r"params\[low\] and params\[high\.0\] share"),
        ({"z": memory, "a": memory.view()}, r"params\[z\] and params\[a\] share memory"),
        ([kw.ones(3), matrix, memory[5:6]], r"params\[1\] and params\[2\] share memory"),
        ({"one": matrix, "other": {"x": matrix}}, r"params\[one\] and params\[other\.x\] are one"),
    ):
        for make in (kw.optim.AdamW, kw.optim.Accumulator):
            with pytest.raises(InvalidArgument, match=names):
                make(params)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda loop: kw.optim.AdamW(loop), "params"),
        (lambda loop: kw.optim.Accumulator({"x": loop}), r"params\['x'\]"),
        (lambda loop: kw.optim.SGD(kw.ones(2)).step(loop), "grads"),
        (lambda loop: kw.optim.grad_norm(loop), "grads"),
        (lambda loop: kw.train.FiniteCheck()(1, state=loop), "state"),
        (lambda loop: kw.train.Checkpoint("unused").save(state=loop), "state"),
        (lambda loop: kw.grad(lambda x: kw.ones(()))(loop), "argument 0"),
        (lambda loop: kw.vjp(lambda x: x, loop), "argument 0"),
        (lambda loop: kw.vjp(lambda x: loop, kw.ones(2)), "the nest"),
        (lambda loop: kw.stop_gradient(loop), "the nest"),
        (lambda loop: kw.captured(lambda x: x)(loop), r"the arguments\[0\]"),
        (lambda loop: kw.captured(lambda x: x)(x=loop), r"the arguments\[0\]\['x'\]"),
        (lambda loop: kw.custom_gradient(lambda x: (x, x), print)(loop), r"the nest\[0\]"),
    ],
)
def test_nests_that_contain_themselves(call, name):
    turns, more = [kw.ones(2)], {"w": kw.ones(2)}
    turns.append((turns,))
    more["more"] = [more]
    for loop in (turns, more):
        with pytest.raises(InvalidArgument, match=name + r"(\[\d\]|\['more'\])+ contains itself"):
            call(loop)


def test_a_list_of_arrays_that_contains_itself():
    loop = [kw.ones(2)]
    loop.append(loop)
    for call in (lambda: kw.asarray(loop), lambda: kw.zeros((2, 2)).__setitem__(..., loop)):
        with pytest.raises(InvalidArgument, match=r"the list\[1\] contains itself"):
            call()


def test_deep_nests():
    deep = [kw.ones(2)]
    for _ in range(50):
        deep = [deep]
    kw.optim.SGD(deep, lr=1.0).step(deep)
    for _ in range(5000):  # no cycle, and too deep for Python
        deep = [deep]
    with pytest.raises(RecursionError):
        kw.optim.SGD(deep)


def test_a_module_with_tied_parameters():
    model = Tied()
    before = values(model.parameters())
    optimizer = kw.optim.SGD(model, lr=0.5)
    optimizer.step(ones_like(model.parameters()))
    after = values(model.parameters())
    assert set(after) == set(before) and "head.weight" not in after
    for name in before:
        assert np.array_equal(after[name], before[name] - 0.5), name
    assert model.head.weight is model.embed.weight
    with pytest.raises(InvalidArgument, match=r"unexpected: head\.weight"):
        optimizer.step(ones_like(model.parameters()) | {"head": {"weight": kw.ones((5, 3))}})


def test_frozen_parameters_are_skipped_before_and_after():
    model = Tied()
    model.embed.freeze()
    before = values(model.parameters())
    optimizer = kw.optim.AdamW(model, lr=0.5, weight_decay=0.5)
    assert "embed" not in optimizer.state_dict()["exp_avg"]
    optimizer.step(ones_like(model.parameters()))
    model.layers[0].freeze()
    middle = values(model.parameters())
    optimizer.step(ones_like(model.trainable_parameters()))
    after = values(model.parameters())
    changed = {name for name in before if not np.array_equal(before[name], middle[name])}
    assert changed == set(before) - {"embed.weight"}
    changed = {name for name in before if not np.array_equal(after[name], middle[name])}
    assert changed == {"layers.1.norm.weight", "layers.1.norm.bias"}
    model.embed.unfreeze()
    with pytest.raises(InvalidArgument, match=r"embed\.weight was frozen"):
        optimizer.step(ones_like(model.parameters()))


def test_modules_in_a_nest():
    encoder, decoder = kw.nn.Linear(2, 3, seed=1), kw.nn.Linear(3, 2, seed=2)
    nest = {"encoder": encoder, "both": [decoder, kw.ones(2)]}
    encoder.freeze()
    optimizer = kw.optim.SGD(nest, lr=0.5)
    before = values(encoder.parameters()), decoder.bias.numpy()
    optimizer.step({"both": [ones_like(decoder.parameters()), kw.ones(2)]})
    optimizer.step({
        "encoder": ones_like(encoder.parameters()),
        "both": [ones_like(decoder.parameters()), kw.ones(2)],
    })  # fmt: skip
    assert all(np.array_equal(x, before[0][name]) for name, x in
               values(encoder.parameters()).items())  # fmt: skip
    assert np.array_equal(decoder.bias.numpy(), before[1] - 1.0)
    decoder.freeze()
    optimizer.step({"both": {"1": kw.ones(2)}})
    assert nest["both"][1].numpy().tolist() == [-0.5, -0.5]
    nest["both"][1] = kw.ones(2)
    with pytest.raises(InvalidArgument, match=r"both\.1 is another array"):
        optimizer.step({"both": {"1": kw.ones(2)}})


def test_whole_numbers_of_a_module_are_no_parameters():
    model = kw.nn.Linear(2, 2, seed=1)
    model.counts = kw.zeros(3, "int64")
    optimizer = kw.optim.SGD(model, lr=0.5)
    before = model.bias.numpy()
    for grads in (ones_like(model.parameters()), {"weight": kw.ones((2, 2)), "bias": kw.ones(2)}):
        optimizer.step(grads)
    assert np.array_equal(model.bias.numpy(), before - 1.0) and not model.counts.numpy().any()
    for bad in (kw.ones((2, 3)).T, kw.broadcast_to(kw.ones(1), (3,))):
        with pytest.raises(InvalidArgument, match=r"params\[0\] is written in place"):
            kw.optim.AdamW(bad)


def test_a_state_stays_with_its_name_when_another_is_frozen():
    model = Tied()
    optimizer = kw.optim.AdamW(model)
    optimizer.step(ones_like(model.parameters()))
    model.layers[0].freeze()
    other = kw.optim.AdamW(model)
    with pytest.raises(InvalidArgument, match=r"unexpected: exp_avg\[layers\.0\.weight\]"):
        other.load_state_dict(optimizer.state_dict())
    assert other.steps.item() == 0


def test_a_module_with_other_arrays_is_refused():
    model = kw.nn.Linear(2, 3)
    optimizer = kw.optim.AdamW(model)
    model.astype("bfloat16")
    with pytest.raises(InvalidArgument, match=r"weight is another array .* astype\(\), to\(\)"):
        optimizer.step(ones_like(model.parameters()))


def test_copies_with_their_module():
    """A copy steps the copy of its module, and sees changes of that one."""
    import copy
    import pickle

    model = Tied()
    optimizer = kw.optim.AdamW(model, lr=kw.optim.constant(0.1))
    optimizer.step(ones_like(model.parameters()))
    for other, stepper in (
        copy.deepcopy((model, optimizer)), pickle.loads(pickle.dumps((model, optimizer)))
    ):  # fmt: skip
        stepper.step(ones_like(other.parameters()))
        assert (stepper.steps.item(), optimizer.steps.item()) == (2, 1)
        assert not np.array_equal(other.embed.weight.numpy(), model.embed.weight.numpy())
        other.astype("bfloat16")
        with pytest.raises(InvalidArgument, match="is another array"):
            stepper.step(ones_like(other.parameters()))


def test_a_module_in_new_lists_is_looked_at_again():
    model = Tied()
    optimizer = kw.optim.SGD(model, lr=0.5)
    model.layers = list(model.layers)
    before = model.layers[0].bias.numpy()
    optimizer.step(ones_like(model.parameters()))
    assert np.array_equal(model.layers[0].bias.numpy(), before - 0.5)
    model.layers = [kw.nn.Linear(3, 3, seed=5), model.layers[1]]
    with pytest.raises(InvalidArgument, match=r"layers\.0\.weight is another array"):
        optimizer.step(ones_like(model.parameters()))
    del model.layers[1]
    with pytest.raises(InvalidArgument):
        optimizer.step(ones_like(model.parameters()))


def test_groups_by_name():
    model = Tied()
    before = values(model.parameters())
    optimizer = kw.optim.SGD(
        model, lr=0.5, weight_decay=0.5,
        groups=[{"match": r"norm|bias", "weight_decay": 0.0},
                {"match": lambda name, array: array.ndim == 2 and "embed" in name, "lr": 0.25}],
    )  # fmt: skip
    assert [sorted(group.names) for group in optimizer.groups] == [
        ["layers.0.bias", "layers.1.norm.bias", "layers.1.norm.weight"],
        ["embed.weight"], ["layers.0.weight"],
    ]  # fmt: skip
    optimizer.step(ones_like(model.parameters()))
    after = values(model.parameters())
    expected = {
        name: x - 0.5 if "norm" in name or "bias" in name
        else x - 0.25 * (1 + 0.5 * x) if name == "embed.weight" else x - 0.5 * (1 + 0.5 * x)
        for name, x in before.items()
    }  # fmt: skip
    for name in before:
        np.testing.assert_allclose(after[name], expected[name], rtol=1e-6, atol=1e-6)


def test_what_is_set_goes_to_groups_without_their_own():
    params = {"a": kw.ones(1), "b": kw.ones(1)}
    optimizer = kw.optim.SGD(params, lr=0.5, groups=[{"match": "a", "lr": 0.25}])
    optimizer.lr = 0.125
    optimizer.step({"a": kw.ones(1), "b": kw.ones(1)})
    assert (params["a"].item(), params["b"].item()) == (0.75, 0.875)
    assert optimizer.lr == 0.125
    optimizer.groups[0].set(lr=0.0)
    optimizer.weight_decay = 1.0
    optimizer.step({"a": kw.ones(1), "b": kw.ones(1)})
    assert (params["a"].item(), params["b"].item()) == (0.75, 0.875 - 0.125 * 1.875)
    assert optimizer.rate.item() == 0.125  # of the first group that has no rate of its own
    optimizer.lr = 0.5
    assert [group.rate.item() for group in optimizer.groups] == [0.0, 0.5]
    optimizer.groups[1].set(weight_decay=0.25)
    optimizer.weight_decay = 0.5
    assert [group.options["weight_decay"] for group in optimizer.groups] == [0.5, 0.25]
    for name, value, words in (("lr", -1.0, "lr is not negative"),
                               ("momentum", 0.9, "momentum of 0 has no state")):  # fmt: skip
        with pytest.raises(InvalidArgument, match=words):
            setattr(optimizer, name, value)
    with pytest.raises(ArgumentError, match="did you mean 'weight_decay'"):
        optimizer.groups[0].set(wieght_decay=0.1)


@pytest.mark.parametrize(
    ("groups", "error", "words"),
    [
        ([{"match": "c"}], InvalidArgument, "matches no parameter by 'c'.*are: a, b"),
        ([{"match": "."}, {"match": "a"}], InvalidArgument, "have taken all that it matches.*: a"),
        ([{"weight_decay": 0.0}], ArgumentError, 'has no "match"'),
        ([{"match": "a", "wd": 0.0}], ArgumentError, "has no 'wd'"),
        ([{"match": "a", "momentum": 0.5}], ArgumentError, "has no 'momentum'"),
        ([{"match": "("}], InvalidArgument, "is no pattern"),
        ([{"match": 3}], ArgumentError, "match is a pattern or a function"),
        ({"match": "a"}, ArgumentError, "groups are a list of dicts"),
        ([{"match": "a", "lr": -1.0}], InvalidArgument, "lr is not negative"),
    ],
)
def test_wrong_groups(groups, error, words):
    with pytest.raises(error, match=words):
        kw.optim.AdamW({"a": kw.ones(1), "b": kw.ones(1)}, groups=groups)


def test_momentum_of_groups():
    params = {"a": kw.zeros(1), "b": kw.zeros(1)}
    optimizer = kw.optim.SGD(params, lr=1.0, groups=[{"match": "b", "momentum": 0.5}])
    for _ in range(2):
        optimizer.step({"a": kw.ones(1), "b": kw.ones(1)})
    assert (params["a"].item(), params["b"].item()) == (-2.0, -2.5)
    assert list(optimizer.state_dict()["momentum_buffer"]) == ["b"]


def test_nesterov_of_a_group_set_later():
    params = {"a": kw.zeros(1), "b": kw.zeros(1)}
    optimizer = kw.optim.SGD(params, lr=1.0, momentum=0.5, groups=[{"match": "b"}])
    optimizer.groups[0].set(nesterov=True)
    optimizer.step({"a": kw.ones(1), "b": kw.ones(1)})
    assert (params["a"].item(), params["b"].item()) == (-1.0, -1.5)
    with pytest.raises(InvalidArgument, match="no dampening"):
        optimizer.dampening = 0.5  # which the group with nesterov refuses
    assert optimizer.groups[1].options["dampening"] == optimizer.dampening == 0.0


def test_equal_arrays_of_two_groups_are_rounded_by_other_numbers():
    params = {"a": kw.ones(4000, "bfloat16"), "b": kw.ones(4000, "bfloat16")}
    optimizer = kw.optim.SGD(params, lr=1e-3, stochastic_rounding=True, groups=[{"match": "a"}])
    optimizer.step({"a": kw.ones(4000), "b": kw.ones(4000)})
    bits = [each.numpy().view(np.uint16) for each in params.values()]
    assert 0.05 < (bits[0] != bits[1]).mean() < 0.6


def test_settings_are_plain_numbers():
    optimizer = kw.optim.AdamW(kw.ones(1), lr=np.float32(0.5), betas=[np.float64(0.5), 0.25])
    settings = optimizer.settings()[0]
    assert (type(settings["lr"]), settings["betas"]) == (float, [0.5, 0.25])
    rate = kw.full(1, 0.25)
    on_device = kw.optim.AdamW(kw.ones(1), lr=rate)
    on_device.load_settings(optimizer.settings())
    assert rate.item() == 0.5 and on_device.lr is rate


def test_states_are_loaded_by_name():
    names = ["b", "a"]
    one = {name: kw.ones(2) for name in names}
    two = {name: kw.ones(2) for name in reversed(names)}
    old, new = kw.optim.AdamW(one), kw.optim.AdamW(two)
    grads = {"a": kw.full(2, 3.0), "b": kw.full(2, -1.0)}
    old.step(grads)
    new.load_state_dict(old.state_dict())
    for name in names:
        two[name][...] = one[name]
        assert np.array_equal(new.states["exp_avg"][name].numpy(),
                              old.states["exp_avg"][name].numpy())  # fmt: skip
    old.step(grads)
    new.step(grads)
    assert values(one).keys() == values(two).keys()
    assert all(np.array_equal(one[name].numpy(), two[name].numpy()) for name in names)


def test_states_that_do_not_fit_are_all_named():
    optimizer = kw.optim.SGD({"a": kw.ones(2), "b": kw.ones(3)}, momentum=0.9)
    good = optimizer.state_dict()
    wrong = {"momentum_buffer": {"b": kw.ones(2), "c": kw.ones(1)}, "steps": good["steps"]}
    with pytest.raises(InvalidArgument) as caught:
        optimizer.load_state_dict(wrong)
    for word in ("missing: momentum_buffer[a]", "unexpected: momentum_buffer[c]",
                 "momentum_buffer[b] has shape (2,) in place of (3,)"):  # fmt: skip
        assert word in str(caught.value)
    with pytest.raises(NameNotFound, match="exp_avg"):
        optimizer.load_state_dict({"exp_avg": {}, "steps": good["steps"]})
    narrow = {
        "momentum_buffer": {n: x.astype("bfloat16") for n, x in good["momentum_buffer"].items()},
        "steps": good["steps"],
    }
    with pytest.raises(InvalidArgument, match=r"momentum_buffer\[a\] is bfloat16 in place of"):
        optimizer.load_state_dict(narrow)
    optimizer.load_state_dict(narrow, cast=True)


def test_settings_survive_json():
    import json

    schedule = kw.optim.cosine(0.5, 10, warmup=2)
    make = lambda lr: kw.optim.AdamW(  # noqa: E731
        {"a": kw.ones(1), "norm": kw.ones(1)}, lr=lr, groups=[{"match": "norm", "eps": 1e-3}]
    )
    old, new = make(schedule), make(0.25)
    new.load_settings(json.loads(json.dumps(old.settings())))
    assert new.settings() == old.settings()
    assert new.groups[0].schedule == schedule
    other = kw.optim.AdamW({"a": kw.ones(1), "norm": kw.ones(1)})
    with pytest.raises(InvalidArgument, match="of other groups"):
        other.load_settings(old.settings())


def test_settings_that_are_loaded_are_those_of_the_optimiser():
    def make(lr):
        params = {"a": kw.ones(1), "b": kw.ones(1)}
        return kw.optim.SGD(params, lr=lr, groups=[{"match": "a", "weight_decay": 0.25}])

    old, new = make(0.5), make(0.25)
    old.groups[0].set(lr=0.125)
    new.load_settings(old.settings())
    assert new.lr == old.lr == 0.5 and "lr=0.5" in repr(new)
    for each in (old, new):
        each.lr /= 2
        assert [group.options["lr"] for group in each.groups] == [0.125, 0.25]
    assert new.settings() == old.settings()


def test_masters_of_a_module():
    model = kw.nn.Linear(3, 4, seed=1).astype("bfloat16")
    optimizer = kw.optim.AdamW(model, lr=1e-3, master_weights=True)
    optimizer.step(ones_like(model.parameters()))
    for name, master in optimizer.masters.items():
        narrow = master.numpy().astype(ml_dtypes.bfloat16)
        assert np.array_equal(narrow, model.parameters()[name].numpy())
    with pytest.raises(InvalidArgument, match="master weights are float32"):
        kw.optim.AdamW(kw.ones(2, "float64"), master_weights=True)


def test_an_average_over_steps():
    rng = np.random.default_rng(1)
    hosts = {"a": rng.standard_normal(9), "b": rng.standard_normal((2, 3))}
    params = {name: kw.asarray(x.astype(np.float32)) for name, x in hosts.items()}
    average = kw.optim.EMA(params, decay=0.9)
    exact = {name: x.numpy().astype(np.float64) for name, x in params.items()}
    for _ in range(3):
        for name, each in params.items():
            each += 1.0
            exact[name] = 0.9 * exact[name] + 0.1 * each.numpy()
        average.update()
    for name in params:
        np.testing.assert_allclose(average.values[name].numpy(), exact[name], rtol=1e-6, atol=1e-6)
    with average.applied():
        assert np.array_equal(params["a"].numpy(), average.values["a"].numpy())
    np.testing.assert_allclose(params["a"].numpy(), hosts["a"] + 3, rtol=1e-6)
    other = kw.optim.EMA(params)
    other.load_state_dict(average.state_dict())
    assert np.array_equal(other.values["b"].numpy(), average.values["b"].numpy())
    with pytest.raises(InvalidArgument, match="decay lies between 0 and 1"):
        kw.optim.EMA(params, decay=1.0)
    with pytest.raises(RuntimeError, match="stop"), average.applied():
        raise RuntimeError("stop")
    np.testing.assert_allclose(params["a"].numpy(), hosts["a"] + 3, rtol=1e-6)


def test_clipping_takes_nests():
    grads = {"a": [kw.full(1, 3.0)], "b": kw.full(1, 4.0)}
    assert kw.optim.grad_norm(grads).item() == 5
    assert kw.optim.clip_grad_norm(grads, 2.5).item() == 5
    np.testing.assert_allclose(grads["a"][0].numpy(), 1.5, rtol=1e-6)
