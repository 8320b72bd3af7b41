"""The gradient of every operation beside differences, over all cases of the tables of operations.

A case with floats has gradients that agree with differences of its results along a random
direction, in float64 where the operation takes it; or it is named below, with the reason.
"""

import fnmatch

import numpy as np
import pytest
from every_operation import outputs
from test_every_operation import CASES

import kernwright as kw

# Operations that refuse to be differentiated, by their names; *_backward are beside them.
REFUSED = {
    "what computes a gradient has none itself": "nn.*_grad",
    "numbers of few bits": (
        "nn.quantize_rows nn.dequantize_rows nn.quantize_blocks nn.scaled_matmul nn.quant.*"
    ),
    "a text of its own": "scan",
    "no formula": "nextafter unique* linalg.eig linalg.eigvals nn.decode_attention "
    "nn.paged_attention",
    "they change their arguments": "nn.append_qkv",
}
# Gradients that have gradients: they are made of operations that do.
TWICE = (
    "nn.dropout_backward nn.kl_div_backward nn.nll_loss_backward nn.batch_norm_backward "
    "nn.interpolate_backward nn.conv*_backward"
)
# Operations with jumps, whose gradient is 0.
STEPS = (
    "ceil floor trunc rint round around fix sign floor_divide heaviside histogram histogram2d "
    "Array.round Array.__*floordiv__ histogram_bin_edges"
)
# Cases that are refused, or of which differences tell nothing; their operations have others.
UNCLEAR = {
    "outside of the domain": (
        "elementwise-atanh-2 elementwise-arccos elementwise-arcsin elementwise-arctanh "
        "norms-nn.log_softmax-mask"
    ),
    "overwrites what its gradient needs": "calculus-matmul-out operators-Array.__imatmul__",
    "is not unique": "products-linalg.svd",
    "neighbours change places": "sorting-sort-long sorting-topk-long sorting-topk-many",
    "is an optimiser's": "optimisers-*",
    "returns its edges": "sorting-histogram-edges",
    "another library's array is a constant": "methods-Array.__dlpack__",
    "computes with fewer bits": (
        "creation-asarray methods-Array.astype-2 layers-nn.Experts experts-nn.route "
        "experts-nn.unpermute experts-nn.grouped_linear experts-nn.grouped_linear-gate"
    ),
    "has an argument of few bits": "norms-nn.rms_norm-quantize norms-nn.layer_norm-all "
    "formats-nn.linear-*",
    "has an argument without a gradient": (
        "losses-nn.bce_with_logits experts-nn.route-groups positions-nn.rope* positions-nn.pope "
        "attention-nn.attention-tiles attention-nn.fused_matmul-tiles"
    ),
}


def named(text, name):
    return any(fnmatch.fnmatchcase(name, each) for each in text.split())


def reason(case, table):
    found = [why for why, text in table.items() if named(text, case.name)]
    return found[0] if found else None


def is_float(array):
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


class Moved:
    """A case as a function of its arrays of floats, which move along a direction."""

    def __init__(self, case, dtype):
        self.case, rng = case, np.random.default_rng(7)
        self.at, self.specs, self.hosts = [], list(case.specs), []
        for i, spec in enumerate(case.specs):
            if spec.dtype.startswith(("float", "bfloat")):
                if dtype is not None and not spec.dtype.startswith("float8"):
                    self.specs[i] = spec._replace(dtype=dtype)
                self.at.append(i)
        self.hosts = [self.specs[i].values(1 + i).astype("f8") for i in self.at]
        self.ways = [rng.uniform(-1, 1, host.shape) for host in self.hosts]
        self.rng = rng

    def arrays(self, step=0.0):
        made = []
        for i, host, way in zip(self.at, self.hosts, self.ways, strict=True):
            values = host + step * way
            made.append(self.specs[i].place(values.astype(kw.zeros(1, self.specs[i].dtype).dtype)))
        return made

    def call(self, *floats):
        arguments = [spec.place(spec.values(1 + i)) for i, spec in enumerate(self.specs)]
        for i, array in zip(self.at, floats, strict=True):
            arguments[i] = array
        return [each for each in outputs(self.case.call(*arguments)) if is_float(each)]


def moved(case):
    """In float64, or in the case's own dtypes; None where it has no floats to compare."""
    for dtype in ("float64", None):
        made = Moved(case, dtype)
        if not made.at:
            return None, 0.0
        try:
            if not made.call(*made.arrays()):
                return None, 0.0
            return made, 1e-6 if dtype else 1e-2
        except kw.Error:
            if dtype is None:
                raise
    raise AssertionError


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_gradient_of(case):
    made, eps = moved(case)
    if made is None:
        return
    refused = reason(case, REFUSED) is not None
    if case.name.endswith("_backward") and not named(TWICE, case.name):
        refused = True
    unclear = any(named(text, case.id) for text in UNCLEAR.values())
    arrays = made.arrays()
    try:
        try:
            results, back = kw.vjp(made.call, *arrays)
        except kw.InvalidArgument as error:
            assert "writes into an argument" in str(error), str(error)
            results, back = kw.vjp(lambda *xs: made.call(*(x.copy() for x in xs)), *arrays)
        weights = [made.rng.uniform(-1, 1, each.shape) for each in results]
        pairs = zip(weights, results, strict=True)
        found = back([kw.asarray(w, device=r.device).astype(r.dtype) for w, r in pairs])
    except kw.Error as error:
        assert refused or unclear, str(error)
        assert "has no gradient" in str(error) or "has overwritten" in str(error)
        return
    assert not refused, "named as refused, and it has a gradient"
    for array, gradient in zip(arrays, found, strict=True):
        assert (gradient.shape, gradient.dtype) == (array.shape, array.dtype)
    pairs = zip(found, made.ways, strict=True)
    slope = sum(float(np.sum(g.numpy().astype("f8") * way)) for g, way in pairs)
    if unclear:
        return
    if named(STEPS, case.name):
        assert slope == 0
        return

    def value(step):
        pairs = zip(made.call(*made.arrays(step)), weights, strict=True)
        return sum(float(np.sum(r.numpy().astype("f8") * w)) for r, w in pairs)

    difference = (value(eps) - value(-eps)) / (2 * eps)
    allowed = 1e-5 if eps < 1e-3 else 5e-2
    assert abs(slope - difference) <= allowed * (1 + abs(difference))


def test_reasons_name_cases_that_exist():
    names, ids = {case.name for case in CASES}, {case.id for case in CASES}
    for text in (*REFUSED.values(), STEPS):
        for each in text.split():
            assert fnmatch.filter(names, each), each
    for text in UNCLEAR.values():
        for each in text.split():
            assert fnmatch.filter(ids, each), each
