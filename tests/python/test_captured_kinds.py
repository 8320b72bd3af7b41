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


def test_another_place_between_packs_is_another_kind_of_call():
    f = kw.captured(lambda x: x + 1)
    base = kw.arange(40.0)
    for first in (0, 4, 8) + (1, 5, 9):
        assert f(base[first : first + 8]).tolist() == list(range(first + 1, first + 9))
    assert len(f.graphs) == 2


@pytest.mark.parametrize(("step", "stride"), [(-1, -4), (4, 16), (5, 4)])
def test_the_graph_reads_views_in_their_layout_without_wide_gaps(step, stride):
    strides, kept = [], []
    f = kw.captured(lambda x: (strides.append(x.strides), x + 1)[1])
    for n in range(3):
        kept.append(kw.full(40, float(n))[::step])
        assert f(kept[-1]).tolist() == [n + 1] * len(kept[-1])
    assert strides[2] == (stride,) and strides[0] == kept[0].strides
