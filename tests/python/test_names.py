"""Names that do not exist: the AttributeError says what does."""

import importlib
import pickle
import re

import pytest

import kernwright as kw
from kernwright._support import other_names
from kernwright._support.names import missing


def said(owner, name):
    with pytest.raises(AttributeError) as raised:
        getattr(owner, name)
    assert f"has no attribute {name!r}" in str(raised.value)
    return str(raised.value).split("attribute")[1].replace(repr(name), "")


@pytest.mark.parametrize(
    ("owner", "name", "right"),
    [
        (kw, "tensor", "kw.asarray"),
        (kw, "asnumpy", "x.numpy()"),
        (kw, "RawKernel", "kw.kernel"),
        (kw, "load", "kw.load_npy"),
        (kw, "shape", "x.shape"),
        (kw, "in1d", "kw.isin"),
        (kw, "loadtxt", "kw.asarray(np.loadtxt(...))"),
        (kw.nn, "scaled_dot_product_attention", "kw.nn.attention"),
        (kw.ones(2), "tobytes", "x.numpy().tobytes()"),
        (kw, "softmax", "kw.nn.softmax"),
        (kw, "svd", "kw.linalg.svd"),
        (kw, "sotr", "did you mean 'sort'?"),
        (kw, "arry", "did you mean 'array'?"),
        (kw, "Ones_like", "did you mean 'ones_like'?"),
        (kw.linalg, "norm", "kw.linalg.vector_norm"),
        (kw.linalg, "sovle", "did you mean 'solve'?"),
        (kw.random, "default_rng", "kw.random.Generator"),
        (kw.nn, "sofmax", "did you mean 'softmax'?"),
        (kw.optim, "adam_w", "did you mean 'AdamW'?"),
        (kw.tune, "Sesion", "did you mean 'Session'?"),
        (kw.cache, "infos", "did you mean 'info'?"),
        (kw.ones(2), "get", "x.numpy()"),
        (kw.ones(2), "data_ptr", "x.ptr"),
        (kw.ones(2), "softplus_", ""),
        (kw.ones(2), "shpae", "did you mean 'shape'?"),
        (kw.ones(2), "topk", "kw.topk(x, ...)"),
        (kw.linalg, "nrom", "kw.linalg.vector_norm"),
        (kw.linalg, "qrr", "did you mean 'qr'?"),
        (kw.linalg, "inverse", "kw.linalg.inv"),
        (kw.linalg, "kron", "use kw.kron"),
        (kw.random, "unifrom", "did you mean 'uniform'?"),
        (kw.random, "randnn", "kw.random.normal"),
        (kw.random, "softmax", "use kw.nn.softmax"),
        (kw.random, "power", "kw.random.beta"),
        (kw.fft, "ftt", "did you mean 'fft'?"),
        (kw.fft, "rfttn", "did you mean 'rfftn'?"),
        (kw.fft, "svd", "use kw.linalg.svd"),
        (kw.nn, "ReLU", "kw.nn.relu"),
        (kw.nn, "CrossEntropyLoss", "kw.nn.cross_entropy"),
        (kw.nn, "BatchNorm2d", "kw.nn.batch_norm"),
        (kw.nn, "ModuleLst", "did you mean 'ModuleList'? Use a list"),
        (kw.nn, "pad", "use kw.pad"),
        (kw.optim, "clip_grad_norm_", "kw.optim.clip_grad_norm"),
        (kw, "clamp", "kw.clip"),
        (kw.ones(2), "detach", "kw.stop_gradient(x)"),
        (kw.ones(2), "detahc", "kw.stop_gradient(x)"),
        (kw.ones(2), "nunpy", "did you mean 'numpy'?"),
        (kw.ones(2), "to_numpy", "x.numpy()"),
        (kw.ones(2), "cpu_", "x.numpy()"),
        (kw.ones(2), "softmax", "kw.nn.softmax(x)"),
        (kw.ones(2), "svd", "kw.linalg.svd(x)"),
        (kw.ones(2), "maximum", "kw.maximum(x, ...)"),
        (kw.ones(2), "exp_", "kw.exp(x)"),
        (kw.ones(2), "grad", "kw.grad(f)(x)"),
        (kw.nn.Sequential(), "state_dict", "dict(module.named_parameters())"),
        (kw.nn.Sequential(), "load_state_dict", "module.load(mapping)"),
        (kw.nn.Sequential(), "requires_grad_", "module.freeze()"),
    ],
)
def test_a_hint(owner, name, right):
    assert right in said(owner, name)


@pytest.mark.parametrize("owner", [kw, kw.fft, kw.ones(2)])
def test_no_hint_where_nothing_is_near(owner):
    # The last one is near to resize, which means something else.
    for name in ("qqqqqqqq", "__qqqq__", "q", "gridsize"):
        assert said(owner, name).strip() == ""


def test_protocols_are_asked_for_without_a_cost_or_a_word():
    x = kw.ones(2)
    assert not hasattr(x, "__array_ufunc__x__") and getattr(x, "nothing_there", 7) == 7
    assert pickle.loads(pickle.dumps(x)).shape == (2,)


def test_python_suggests_names_of_modules_and_properties_keep_their_errors():
    class Net(kw.nn.Module):
        @property
        def width(self):
            return self.absent

    net = Net()
    with pytest.raises(AttributeError) as raised:
        net.parametres()
    assert raised.value.name == "parametres" and raised.value.obj is net
    with pytest.raises(AttributeError, match="'absent'"):
        net.width
    assert not hasattr(net, "__array__") and pickle.loads(pickle.dumps(kw.nn.Dropout(0.5))).p == 0.5


def test_every_hint_leads_to_a_name_that_exists():
    namespaces = [(kw, other_names.NAMESPACE), (kw.ones((2, 2)), other_names.METHODS)]
    namespaces.append((kw.nn.Module(), other_names.OF_MODULES))
    for module, table in other_names.MODULES.items():
        namespaces.append((importlib.import_module(module), table))
    for _, table in namespaces:
        for text in table.values():
            for path in re.findall(r"\bkw((?:\.\w+)+)", text):
                value = kw
                for part in path.split(".")[1:]:
                    value = getattr(value, part)
            for name in re.findall(r"\bx\.(\w+)", text):
                assert hasattr(kw.ones((2, 2)), name), text
            for name in re.findall(r"\bmodule\.(\w+)", text):
                assert name == "name" or hasattr(kw.nn.Module(), name), text


def test_no_hint_is_hidden_by_a_name_that_exists():
    assert not [name for name in other_names.METHODS if hasattr(kw.ones((2, 2)), name)]
    assert not [name for name in other_names.OF_MODULES if hasattr(kw.nn.Module(), name)]
    for module, table in other_names.MODULES.items():
        there = importlib.import_module(module)
        assert not [name for name in table if hasattr(there, name)], module


def test_python_adds_no_suggestion_of_its_own():
    error = missing("kernwright", "sotr", ["sort"])
    assert error.name == "sotr" and error.obj is None


def test_all_names_are_found_as_before():
    for name in kw.__all__:
        assert getattr(kw, name) is not None or name == "newaxis"
    with pytest.raises(ImportError):
        exec("from kernwright import nothing_of_this_name")
