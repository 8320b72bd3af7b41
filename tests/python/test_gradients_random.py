"""Random expression graphs: values and gradients beside torch's, which are recorded, and beside
differences."""

import pathlib
import zlib

import expression_graphs
import numpy as np
import pytest

import kernwright as kw

RECORDED = pathlib.Path(__file__).parents[1] / "data" / "expression_graphs.npz"
SEEDS = 60


def recorded():
    """Of each seed: the mark of its graph, the value, the gradients of all inputs as one array."""
    with np.load(RECORDED) as file:
        numbers, marks = file["numbers"], file["marks"]
    found, at = [], 0
    for seed, mark in enumerate(marks):
        count = sum(each.size for each in expression_graphs.expression(seed).inputs)
        found.append((mark, numbers[at], numbers[at + 1 : at + 1 + count]))
        at += 1 + count
    assert at == len(numbers) and len(marks) == SEEDS
    return found


FOUND = recorded()


def loss(graph):
    return lambda *inputs: expression_graphs.value(graph, inputs)


def slope_by_differences(f, inputs, ways, eps=1e-6):
    ends = [
        f(*(kw.asarray(x + step * way) for x, way in zip(inputs, ways, strict=True))).item()
        for step in (eps, -eps)
    ]
    return (ends[0] - ends[1]) / (2 * eps)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_graph_has_the_value_and_the_gradients_of_torch(seed):
    graph, (mark, expected, gradients) = expression_graphs.expression(seed), FOUND[seed]
    assert zlib.crc32(repr(graph.steps).encode()) == mark, "another graph than the recorded one"
    arrays = [kw.asarray(each) for each in graph.inputs]
    numbers = tuple(range(len(arrays)))
    value, found = kw.value_and_grad(loss(graph), wrt=numbers)(*arrays)
    np.testing.assert_allclose(value.item(), expected, rtol=1e-12)
    assert [each.shape for each in found] == [each.shape for each in graph.inputs]
    flat = np.concatenate([each.numpy().reshape(-1) for each in found])
    np.testing.assert_allclose(flat, gradients, rtol=1e-9, atol=1e-12)
    rng = np.random.default_rng(seed)
    ways = [rng.uniform(-1, 1, each.shape) for each in graph.inputs]
    slope = sum(float((g.numpy() * way).sum()) for g, way in zip(found, ways, strict=True))
    difference = slope_by_differences(loss(graph), graph.inputs, ways)
    assert abs(slope - difference) <= 1e-6 * (1 + abs(difference))


def test_graphs_are_large_and_use_values_again():
    graphs = [expression_graphs.expression(seed) for seed in range(SEEDS)]
    lengths = [len(graph.steps) for graph in graphs]
    assert min(lengths) >= 5 and max(lengths) == 40
    uses = [
        max(sum(step.operands.count(i) for step in graph.steps) for i in range(40))
        for graph in graphs
    ]
    assert sum(count >= 4 for count in uses) > SEEDS // 3
    names = {step.name for graph in graphs for step in graph.steps}
    tables = (expression_graphs.UNARY, expression_graphs.BINARY, expression_graphs.REDUCTIONS)
    assert not (set().union(*tables, expression_graphs.ALONG, expression_graphs.STEPS) - names)


# Their gradients are kernels, which have none themselves.
ONCE = {"log_softmax", "sigmoid", "silu", "softmax", "softplus"}


@pytest.mark.parametrize("seed", range(24))
def test_second_derivatives_of_a_graph(seed):
    graph, rng = expression_graphs.expression(seed), np.random.default_rng(seed)
    numbers = tuple(range(len(graph.inputs)))
    ways = [[rng.uniform(-1, 1, each.shape) for each in graph.inputs] for _ in range(2)]

    def along(*inputs):  # the slope of the value in the first direction
        found = kw.grad(loss(graph), wrt=numbers)(*inputs)
        parts = [(g * kw.asarray(way)).sum() for g, way in zip(found, ways[0], strict=True)]
        return kw.stack(parts).sum()

    arrays = [kw.asarray(each) for each in graph.inputs]
    if ONCE & {step.name for step in graph.steps}:
        with pytest.raises(kw.ArgumentError, match=r"gradient of .* has no gradient"):
            kw.grad(along, wrt=numbers)(*arrays)
        return
    found = kw.grad(along, wrt=numbers)(*arrays)
    slope = sum(float((g.numpy() * way).sum()) for g, way in zip(found, ways[1], strict=True))
    difference = slope_by_differences(along, graph.inputs, ways[1], eps=1e-5)
    assert abs(slope - difference) <= 1e-5 * (1 + abs(difference))
