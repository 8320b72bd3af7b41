"""Arrays that are used up to 20 times, by every operation with a gradient: the gradient is the sum
of those of all uses."""

import numpy as np
import pytest
from test_every_gradient import CASES, REFUSED, TWICE, UNCLEAR, moved, named, reason

import kernwright as kw

# Their results are others in each call.
DRAWN = "nn.dropout nn.Dropout nn.gumbel_softmax nn.sample random.*"


def chosen():
    """The first case of each name with a gradient that differences tell."""
    found = {}
    for case in CASES:
        refused = reason(case, REFUSED) or named(DRAWN, case.name)
        refused = refused or (case.name.endswith("_backward") and not named(TWICE, case.name))
        if not refused and not any(named(text, case.id) for text in UNCLEAR.values()):
            found.setdefault(case.name, case)
    return list(found.values())


CHOSEN = chosen()


@pytest.mark.parametrize("number", range(len(CHOSEN)), ids=[case.id for case in CHOSEN])
def test_uses_are_added(number):
    case = CHOSEN[number]
    made, eps = moved(case)
    if made is None:
        return
    count = 1 + number % 20
    arrays, rng = made.arrays(), np.random.default_rng(number)

    def used(*xs):
        """Weights tell the uses apart; copies, because a call may write into its arguments."""
        calls = [made.call(*(x.copy() for x in xs)) for _ in range(count)]
        return [
            sum((part * (i + 1) for i, part in enumerate(parts[1:], 1)), parts[0])
            for parts in zip(*calls, strict=True)
        ]

    results, back = kw.vjp(lambda *xs: made.call(*(x.copy() for x in xs)), *arrays)
    weights = [
        kw.asarray(rng.uniform(-1, 1, each.shape), device=each.device).astype(each.dtype)
        for each in results
    ]
    expected = [each.numpy().astype("f8") for each in back(weights)]
    found = kw.vjp(used, *arrays)[1](weights)
    for array, one, many in zip(arrays, expected, found, strict=True):
        assert (many.shape, many.dtype) == (array.shape, array.dtype)
        limit = 1e-10 if eps < 1e-3 else 1e-5 if array.itemsize > 2 else 3e-2
        total = one * (count * (count + 1) / 2)
        scale = np.abs(total).max(initial=0) + (1 if limit < 1e-9 else 1e-3)
        assert np.abs(many.numpy().astype("f8") - total).max(initial=0) <= limit * scale


def test_many_operations_are_looked_at():
    assert len(CHOSEN) > 350
