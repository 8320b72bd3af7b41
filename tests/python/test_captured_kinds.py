"""Which calls of a captured function have a graph in common, and which functions have none."""

import pytest

import kernwright as kw


class Scaled(kw.nn.Module):
    def __init__(self):
        self.layers = [kw.nn.Linear(2, 2, seed=1)]
        self.settings = {"by": 2.0, "more": [1, (3, "x")]}

    def __call__(self, x):
        by, (_, (factor, _)) = self.settings["by"], self.settings["more"]
        return self.layers[0](x) * (by * factor)


def test_numbers_in_dicts_and_lists_of_a_module():
    net, x = Scaled(), kw.ones((1, 2))
    f = kw.captured(lambda net, x: net(x))
    for settings in ({"by": 2.0}, {"by": 3.0}, {"more": [1, (5, "x")]}, {"by": 2.0}):
        net.settings |= settings
        for _ in range(4):
            assert f(net, x).numpy().tolist() == net(x).numpy().tolist()
    assert len(f.graphs) == 4
    net.settings |= {"more": [1, (3, "x")]}  # as at first
    assert f(net, x).numpy().tolist() == net(x).numpy().tolist() and len(f.graphs) == 4


def test_functions_that_are_not_done_when_they_return():
    def parts(x):
        yield x * 2

    async def later(x):
        return x

    async def both(x):
        yield x

    for f in (parts, later, both):
        with pytest.raises(kw.ArgumentError, match=rf"{f.__name__}\(\) is async or has a yield"):
            kw.captured(f)
