"""Arguments and results of functions with gradients: classes of dicts, constants, refusals."""

import collections

import pytest

import kernwright as kw


def test_a_dict_of_a_class_stays_one():
    given = collections.OrderedDict(b=kw.ones(2), a=kw.asarray([1.0, 3.0]))

    def loss(p):
        assert type(p) is collections.OrderedDict
        return (p["a"] * p["b"]).sum()

    made = kw.grad(loss)(given)
    assert type(made) is collections.OrderedDict and list(made) == ["b", "a"]
    assert made["b"].numpy().tolist() == [1, 3] and given["b"].numpy().tolist() == [1, 1]


def test_a_custom_gradient_takes_constants_by_name():
    scaled = kw.custom_gradient(lambda x, by: (x * by, by), lambda by, g: g * by)
    assert kw.grad(lambda x: scaled(x, by=3).sum())(kw.ones(2)).numpy().tolist() == [3, 3]
    with pytest.raises(kw.ArgumentError, match="none of its arguments by position"):
        kw.grad(lambda x: scaled(kw.ones(2), by=x).sum())(kw.ones(2))


def test_values_of_the_host_are_no_gradients():
    host = kw.custom_gradient(lambda x: (x * x, None), lambda _, g: g.numpy())
    with pytest.raises(kw.InvalidArgument, match="ndarray with 0 arrays of a device"):
        kw.grad(lambda x: host(x).sum())(kw.ones(2))


def test_a_module_is_no_constant():
    net = kw.nn.Linear(1, 1)
    with pytest.raises(kw.ArgumentError, match="got a module, Linear: freeze"):
        kw.stop_gradient(net)
    with pytest.raises(kw.ArgumentError, match=r"Linear at \['net'\]: freeze"):
        kw.stop_gradient({"net": net, "x": kw.ones(2)})
