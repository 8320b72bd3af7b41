"""kw.nn.Module: names, nests, files, ties, copies; and what repr() shows."""

import abc
import copy
import pickle

import numpy as np
import pytest
from children import run_child

import kernwright as kw


class Block(kw.nn.Module):
    def __init__(self, dim, seed):
        self.norm = kw.nn.RMSNorm(dim)
        self.mlp = kw.nn.GatedMLP(dim, 2 * dim, seed=seed)

    def __call__(self, x):
        return x + self.mlp(self.norm(x))


class Network(kw.nn.Module):
    """An embedding whose table is the last layer's weight, too."""

    def __init__(self, layers=2, dim=8, tied=True):
        self.embed = kw.nn.Embedding(11, dim, seed=1)
        self.layers = [Block(dim, seed) for seed in range(layers)]
        self.extra = {"scale": kw.ones(3), "note": 5}
        self.head = kw.nn.Linear(dim, 11, bias=False, seed=3)
        if tied:
            self.head.weight = self.embed.weight
        self._cache = kw.zeros(4)
        self.dim = dim

    def __call__(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


NAMES = [
    "embed.weight",
    *(
        f"layers.{i}.{name}.weight"
        for i in (0, 1)
        for name in ("norm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
    ),
    "extra.scale",
]
IDS = np.array([[1, 2, 10], [0, 3, 1]])


def numbers(module):
    return {name: array.numpy() for name, array in module.named_parameters()}


def same(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def test_names_are_paths_and_tied_arrays_have_one():
    net = Network()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert [n for n, _ in Network(tied=False).named_parameters()] == [*NAMES, "head.weight"]


def test_nests_have_the_parts_of_names_as_keys():
    net = Network()
    nest = net.parameters()
    assert nest["layers"]["1"]["mlp"]["up_proj"]["weight"] is net.layers[1].mlp.up_proj.weight
    assert list(nest) == ["embed", "layers", "extra"]


def test_modules_are_named_once():
    shared = kw.nn.Linear(2, 2)
    net = kw.nn.Sequential(shared, kw.nn.silu, shared)
    assert [name for name, _ in net.named_modules()] == ["", "0"]
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias"]
    assert net(kw.ones((1, 2))).shape == (1, 2)


def test_a_module_that_contains_itself_is_refused():
    net = Network()
    net.layers[0].parent = net
    with pytest.raises(kw.InvalidArgument, match=r"layers\.0\.parent contains itself"):
        list(net.named_parameters())


def test_keys_with_dots_are_refused():
    net = Network()
    net.extra = {"a.b": kw.ones(1)}
    with pytest.raises(kw.InvalidArgument, match="keys without dots"):
        net.parameters()


@pytest.mark.parametrize("change", [copy.deepcopy, lambda n: pickle.loads(pickle.dumps(n)),
                                    lambda n: n.copy()])  # fmt: skip
def test_copies_are_whole_and_keep_ties(change):
    net = Network().eval()
    other = change(net)
    same(numbers(net), numbers(other))
    assert other.head.weight is other.embed.weight is not net.embed.weight
    assert not other.training and not other.layers[1].mlp.training
    np.testing.assert_array_equal(net(kw.asarray(IDS)).numpy(), other(kw.asarray(IDS)).numpy())
    before = net.embed.weight.numpy()
    other.embed.weight[...] = 0
    np.testing.assert_array_equal(net.embed.weight.numpy(), before)


def test_train_eval_freeze():
    net = Network()
    assert net.training and net.eval() is net and not net.layers[0].mlp.training
    assert net.train().layers[0].mlp.training
    with pytest.raises(kw.ArgumentError, match="mode is True or False"):
        net.train("yes")
    net.layers[0].freeze()
    assert list(net.trainable_parameters()["layers"]) == ["1"]
    assert list(net.parameters()["layers"]) == ["0", "1"]
    assert net.freeze().trainable_parameters() == {}
    assert net.unfreeze().trainable_parameters().keys() == net.parameters().keys()


def test_freeze_reaches_a_tied_array_under_any_of_its_names():
    net = kw.nn.Sequential(kw.nn.Embedding(3, 2), kw.nn.Linear(2, 3, bias=False))
    net[1].weight = net[0].weight
    net[1].freeze()
    assert net.trainable_parameters() == {}


def test_a_module_at_two_places_is_unfrozen_at_both():
    layer = kw.nn.Linear(2, 2, bias=False)
    net = kw.nn.Sequential(layer, layer).freeze()
    layer.unfreeze()
    assert list(net.trainable_parameters()) == ["0"]


def test_parameters_added_after_freeze_are_trainable():
    layer = kw.nn.Linear(2, 3).freeze()
    layer.extra = kw.ones(2)
    assert list(layer.trainable_parameters()) == ["extra"]


def test_astype_converts_floats_alone_and_keeps_ties():
    net = Network()
    net.steps = kw.zeros(1, "int64")
    assert net.astype("bfloat16") is net
    assert net.embed.weight.dtype == kw.bfloat16 and net.steps.dtype == kw.int64
    assert net.head.weight is net.embed.weight
    net.extra = (kw.ones(2),)
    with pytest.raises(kw.InvalidArgument, match="tuple of arrays cannot change"):
        net.astype("float32")
    assert net.embed.weight.dtype == kw.bfloat16


def test_astype_converts_bfloat16_and_refuses_whole_numbers():
    layer = kw.nn.Linear(2, 3, dtype="bfloat16").astype("float32")
    assert layer.weight.dtype == layer.bias.dtype == "float32"
    for dtype in ("int32", "bool", "complex64", None):
        with pytest.raises(kw.ArgumentError, match=f"floating-point dtype, not {dtype}"):
            layer.astype(dtype)


def test_to_another_device():
    ended = run_child(
        """
        import kernwright as kw

        net = kw.nn.Sequential(kw.nn.Embedding(4, 3), kw.nn.Linear(3, 4))
        net[1].weight = net[0].weight
        before = {name: array.numpy() for name, array in net.named_parameters()}
        assert net.to("sim:1") is net and net[1].weight is net[0].weight
        for name, array in net.named_parameters():
            print(name, array.device, (array.numpy() == before[name]).all())
        """,
        KERNWRIGHT_DEVICE="sim",
        KERNWRIGHT_SIM_DEVICES="2",
    )
    assert ended.code == 0, ended.err
    assert ended.out.splitlines() == ["0.weight sim:1 True", "1.bias sim:1 True"]


def test_apply_begins_below():
    seen = []
    last = kw.nn.Linear(2, 4)
    net = kw.nn.Sequential(kw.nn.Linear(2, 2), kw.nn.Sequential(kw.nn.Linear(2, 3)), last, last)
    net.more = {"a": [last, kw.nn.Linear(2, 5)]}
    assert net.apply(lambda m: seen.append(len(m.weight) if hasattr(m, "weight") else None)) is net
    assert seen == [2, 3, None, 4, 5, None]  # the order of torch, each module once


@pytest.mark.parametrize("tied", [True, False])
def test_saved_and_loaded(tmp_path, tied):
    net, other = Network(tied=tied), Network(tied=tied)
    other.apply(lambda m: [v.fill(9) for v in vars(m).values() if isinstance(v, kw.Array)])
    net.save(tmp_path / "net.safetensors", metadata={"step": "7"})
    kept = other.embed.weight
    assert other.load(tmp_path / "net.safetensors") == ([], [])
    same(numbers(net), numbers(other))
    assert other.embed.weight is kept
    with kw.SafeTensors(tmp_path / "net.safetensors") as file:
        assert file.metadata["step"] == "7"
        assert ("tied" in file.metadata) == tied
        assert set(file) == {name for name, _ in net.named_parameters()}


def test_a_file_may_hold_a_tied_array_under_any_of_its_names(tmp_path):
    net = Network()
    arrays = dict(net.named_parameters())
    table = arrays.pop("embed.weight")
    assert Network().load({**arrays, "head.weight": table}) == ([], [])
    assert Network().load({**arrays, "head.weight": table, "embed.weight": table}) == ([], [])
    with pytest.raises(kw.InvalidArgument, match=r"embed\.weight and head\.weight are one"):
        Network().load({**arrays, "head.weight": table + 1, "embed.weight": table})


def test_load_converts_dtypes(tmp_path):
    net = Network()
    halves = {n: a.astype("bfloat16") for n, a in net.named_parameters()}
    kw.save_safetensors(tmp_path / "half.safetensors", halves)
    other = Network()
    other.load(tmp_path / "half.safetensors")
    assert other.embed.weight.dtype == kw.float32
    np.testing.assert_array_equal(
        other.embed.weight.numpy(), halves["embed.weight"].astype("float32").numpy()
    )


def test_load_from_parts(tmp_path):
    import json

    net = Network()
    arrays = dict(net.named_parameters())
    places = {name: f"part-{i % 2}.safetensors" for i, name in enumerate(arrays)}
    for part in set(places.values()):
        chosen = {name: arrays[name] for name in arrays if places[name] == part}
        kw.save_safetensors(tmp_path / part, chosen)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    other = Network()
    other.embed.weight[...] = 0
    assert other.load(index) == ([], [])
    same(numbers(net), numbers(other))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_load_from_gguf(tmp_path, dtype):
    """Numbers come as they are; blocks come as the numbers that they stand for."""
    layer, path = kw.nn.Linear(64, 32, seed=1), tmp_path / "layer.gguf"
    blocks = kw.nn.quant.quantize(layer.weight, "q8_0")
    for weight, exact in [
        (layer.weight, layer.weight),
        (layer.weight.astype("float16"), layer.weight.astype("float16").astype("float32")),
        ((blocks, "q8_0"), kw.nn.quant.dequantize(blocks, "q8_0")),
    ]:
        kw.save_gguf(path, {"weight": weight, "bias": layer.bias})
        other = kw.nn.Linear(64, 32, seed=2, dtype=dtype)
        assert other.load(path) == ([], [])
        for one, wanted in ((other.weight, exact), (other.bias, layer.bias)):
            assert one.dtype.name == dtype
            assert (one.numpy() == wanted.astype(dtype).numpy()).all()
    kw.save_gguf(path, {"weight": layer.weight, "blk.0.weight": layer.bias})
    with pytest.raises(kw.InvalidArgument, match=r"missing: bias; unexpected: blk\.0\.weight"):
        other.load(path)


def test_load_takes_arrays_of_numpy():
    layer = kw.nn.Linear(2, 3)
    layer.load({"weight": np.arange(6.0).reshape(3, 2), "bias": np.zeros(3, np.float32)})
    np.testing.assert_array_equal(layer.weight.numpy(), np.arange(6.0).reshape(3, 2))


class Tensor:
    """Another library's parameter: it gives no values before detach()."""

    def __init__(self, values, requires_grad=True):
        self.values, self.requires_grad = values, requires_grad

    def detach(self):
        return Tensor(self.values, requires_grad=False)

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad or self.values is None:
            raise RuntimeError("it has no values here")
        return self.values


def test_load_takes_parameters_of_other_libraries():
    layer = kw.nn.Linear(1, 2)
    layer.load({"weight": Tensor(np.ones((2, 1), "f4")), "bias": Tensor(np.ones(2, "f4"))})
    assert layer.weight.numpy().tolist() == [[1], [1]]
    with pytest.raises(kw.ArgumentError, match="Tensor cannot be read: it has no values here"):
        layer.load({"weight": Tensor(None), "bias": np.ones(2)})


def test_one_error_lists_all_that_does_not_fit():
    layer = kw.nn.Linear(2, 3, seed=1)
    before = numbers(layer)
    with pytest.raises(kw.InvalidArgument) as error:
        layer.load({"weight": kw.ones((2, 3)), "weights": kw.ones(1), "other": kw.ones(1)})
    text = str(error.value)
    assert "do not fit Linear, which is unchanged" in text
    assert "wrong shapes: weight has (2, 3) in place of (3, 2)" in text
    assert "missing: bias" in text and "unexpected: other, weights" in text
    same(numbers(layer), before)
    found = layer.load({"weight": kw.ones((3, 2)), "other": kw.ones(1)}, strict=False)
    assert found.missing == ["bias"] and found.unexpected == ["other"]
    np.testing.assert_array_equal(layer.bias.numpy(), before["bias"])
    with pytest.raises(kw.InvalidArgument, match="wrong shapes"):
        layer.load({"weight": kw.ones(6)}, strict=False)


def test_what_load_refuses(tmp_path):
    layer = kw.nn.Linear(2, 3)
    with pytest.raises(kw.ArgumentError, match="a path or a mapping"):
        layer.load([kw.ones(1)])
    with pytest.raises(kw.StoreError):
        layer.load(tmp_path / "none.safetensors")
    (tmp_path / "torn.safetensors").write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00{}")
    with pytest.raises(kw.StoreError):
        layer.load(tmp_path / "torn.safetensors")


def test_names_of_one_parameter_that_differ_change_nothing():
    net = kw.nn.Sequential(kw.nn.Linear(2, 2, bias=False), *[kw.nn.Linear(2, 2, bias=False)] * 2)
    before = numbers(net)
    names = ("0.weight", "1.weight", "2.weight")
    arrays = {name: np.full((2, 2), np.nan, np.float32) for name in names}
    with pytest.raises(kw.InvalidArgument, match=r"1\.weight and 2\.weight are one parameter"):
        net.load(arrays | {"2.weight": np.ones((2, 2))})
    same(numbers(net), before)
    net.load(arrays)
    assert np.isnan(net[2].weight.numpy()).all()


def test_repr_shows_the_tree_and_counts_parameters():
    assert repr(Network(layers=3)) == (
        "Network(\n"
        "  (embed): Embedding(11, 8)\n"
        "  (layers): [\n"
        "    (0-2): 3 x Block(\n"
        "      (norm): RMSNorm((8,), eps=1e-06, affine=True)\n"
        "      (mlp): GatedMLP(\n"
        "        (gate_proj): Linear(in_features=8, out_features=16, bias=False)\n"
        "        (up_proj): Linear(in_features=8, out_features=16, bias=False)\n"
        "        (down_proj): Linear(in_features=16, out_features=8, bias=False)\n"
        "      )\n"
        "    )\n"
        "  ]\n"
        "  (head): Linear(in_features=8, out_features=11, bias=False)\n"
        ")  # 1,267 parameters"
    )


def test_repr_of_arrays_beside_modules():
    net = kw.nn.Sequential()
    net.parts = [kw.nn.RMSNorm(2), kw.ones(2), kw.ones(2), kw.ones((2, 3)), None]
    assert repr(net) == (
        "Sequential(\n"
        "  (parts): [\n"
        "    (0): RMSNorm((2,), eps=1e-06, affine=True)\n"
        "    (1-2): 2 x Array((2,), float32)\n"
        "    (3): Array((2, 3), float32)\n"
        "    (4): None\n"
        "  ]\n"
        ")  # 12 parameters"
    )


def test_a_module_without_a_call_says_so():
    class Empty(kw.nn.Module):
        pass

    with pytest.raises(NotImplementedError, match=r"Empty has no __call__\(\)"):
        Empty()(1)
    Empty.forward = lambda self, x: x
    with pytest.raises(NotImplementedError, match=r"give its forward\(\) that name"):
        Empty()(1)


def test_complex_numbers_are_no_reals(tmp_path):
    layer = kw.nn.Linear(2, 3, seed=1)
    before = numbers(layer)
    arrays = {"bias": kw.ones(3), "weight": kw.ones((3, 2), "complex64")}
    kw.save_safetensors(tmp_path / "complex.safetensors", arrays)
    for source in (arrays, tmp_path / "complex.safetensors"):
        with pytest.raises(kw.InvalidArgument, match="weight is complex64 in place of float32"):
            layer.load(source)
    same(numbers(layer), before)


def test_an_index_that_names_what_its_file_lacks(tmp_path):
    kw.save_safetensors(tmp_path / "a.safetensors", {"bias": kw.ones(3)})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"bias": "a.safetensors", "weight": "a.safetensors"}}')
    with pytest.raises(kw.StoreError, match=r"a\.safetensors has 'weight', which it has not"):
        kw.nn.Linear(2, 3).load(index)


def test_classes_beside_a_module_keep_their_attributes():
    class Mix:
        def __getattr__(self, name):
            if name == "extra":
                return 5
            raise AttributeError(name)

    class Mixed(kw.nn.Module, Mix):
        pass

    class Abstract(kw.nn.Module, abc.ABC):
        pass

    assert Mixed().extra == 5 and not hasattr(Mixed(), "other")
    assert not hasattr(Abstract(), "register")
