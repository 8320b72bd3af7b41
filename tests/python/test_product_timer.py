"""Times of a product's plans: single launches, and graphs over copies of the operands."""

import numpy as np
import pytest

import kernwright as kw
from kernwright import _core
from kernwright._measure import product_timer
from kernwright._measure.product_timer import ProductTimer
from kernwright.tune._product_operands import operands

SHAPE = (24, 40, 64)
PLAN = ["fma", 64, 64, 8, 4, 8, 4, 2]


@pytest.fixture
def device():
    return kw.current_device()


@pytest.fixture
def few_copies(monkeypatch):
    """Every product is short; an L2 of 0 bytes asks for the least number of copies."""
    monkeypatch.setattr(product_timer, "_is_short", lambda device, milliseconds: True)
    monkeypatch.setattr(product_timer, "_TIMES_L2", 0)
    monkeypatch.setattr(product_timer, "_LAUNCHES", 4)


def counted(product):
    """The same, and the results of all its calls."""
    results = []

    def run():
        results.append(product.run())
        return results[-1]

    return product._replace(run=run), results


def test_long_products_are_launched_alone(device, monkeypatch):
    monkeypatch.setattr(product_timer, "_is_short", lambda device, milliseconds: False)
    asked = []
    timer = ProductTimer(operands("float32", SHAPE, False, device), 0.01, asked.append)
    assert asked == []
    assert timer.rule > 0
    assert timer.milliseconds(PLAN) > 0


def test_without_copies_there_are_single_launches(device, few_copies):
    assert ProductTimer(operands("float32", SHAPE, False, device), 0.01).milliseconds([]) > 0


def test_short_products_go_through_copies_of_the_operands(device, few_copies):
    made = []

    def copy(number):
        product, results = counted(operands("float32", SHAPE, False, device, number))
        made.append((number, product, results))
        return product

    timer = ProductTimer(operands("float32", SHAPE, False, device), 0.01, copy)
    ((number, product, results),) = made
    assert number == 1
    before = len(results)
    assert timer.milliseconds(PLAN) > 0
    assert len(results) - before == 2  # of four launches, two have the copy's operands
    expected = product.a.numpy().astype(np.float64) @ product.b.numpy().astype(np.float64)
    for result in results[before:]:
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_graphs_are_made_with_the_plan(device, few_copies, monkeypatch):
    def copy(number):
        return operands("float32", SHAPE, False, device, number)

    timer = ProductTimer(copy(0), 0.01, copy)
    plans, with_product = [], _core._with_product
    monkeypatch.setattr(
        _core, "_with_product", lambda plan, work: (plans.append(plan), with_product(plan, work))[1]
    )
    timer.milliseconds(PLAN)
    timer.milliseconds([])
    assert plans == [PLAN, []]


def test_operands_of_other_numbers_differ(device):
    for kind in ("float16", "tf32", "int8", "float8_e4m3fn"):
        first, again, other = (operands(kind, SHAPE, True, device, n) for n in (0, 0, 1))
        same = [x.view("uint8").numpy() for x in (first.a, again.a, other.a)]
        np.testing.assert_array_equal(same[0], same[1])
        assert (same[0] != same[2]).any()
    assert _core._product(*first.key)[:2] == _core._product(*other.key)[:2]
