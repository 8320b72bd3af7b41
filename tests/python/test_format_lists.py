"""Lists of formats and activations in Python name what the kernels have."""

import pathlib
import re

import numpy as np
import pytest
import test_activations
import weight_formats

import kernwright as kw
from kernwright._files import gguf
from kernwright.llm import _layouts
from kernwright.nn import _activations
from kernwright.nn.quant import _formats

DOCS = pathlib.Path(__file__).parents[2] / "docs"


def listed(message):
    """The names at the end of a message."""
    return re.findall(r"\w+", re.split(r":|; there are", message)[-1])


@pytest.fixture(scope="module")
def blocks():
    """Numbers and bytes of a block of each GGUF format that the kernels have."""
    with pytest.raises(kw.InvalidArgument, match="there is no GGUF format") as refused:
        kw._core._quantize_gguf(kw.ones(256), "nothing")
    found = {}
    for name in listed(str(refused.value)):
        size = kw._core._quantize_gguf(kw.ones(256), name).size
        try:
            found[name] = (32, kw._core._quantize_gguf(kw.ones(32), name).size)
        except kw.InvalidArgument:
            found[name] = (256, size)
        assert size == 256 // found[name][0] * found[name][1]
    assert len(found) >= 12
    return found


def test_quantisation_knows_the_formats_of_the_kernels(blocks):
    assert blocks == _formats._GGUF
    assert blocks.keys() <= kw.nn.quant.formats().keys()


def test_files_know_the_formats_of_the_kernels(blocks):
    in_files = {name: (values, size) for name, values, size in gguf._TYPES.values()}
    assert {name: in_files[name] for name in blocks} == blocks


def test_written_files_have_the_formats_of_the_kernels(blocks):
    written = {name: values for name, (_, values) in _layouts.FILE_TYPES.items()}
    assert written == {name: values for name, (values, _) in blocks.items()}


def test_packed_weights_have_every_format_but_those_of_words(blocks):
    with pytest.raises(kw.InvalidArgument, match="there are no packed weights of") as refused:
        packed = kw.nn.quant.PackedWeight("nothing", (16, 256), (kw.ones(1),) * 8)
        kw.nn.linear(kw.ones((1, 256), dtype="bfloat16"), packed)
    words = {"gptq", "gptq_v2", "awq"}
    assert {*listed(str(refused.value))} == kw.nn.quant.formats().keys() - words | {"int4"}


def test_formats_have_a_reference_in_numpy_and_a_line_in_the_docs(blocks):
    reference = {name: (row.values, row.bytes) for name, row in weight_formats.GGUF.items()}
    assert reference == blocks
    page = (DOCS / "quantisation.md").read_text()
    assert not [name for name in blocks if f"`{name}`" not in page]


ACTIVATIONS = kw._core._activations()
FUNCTIONS = ACTIVATIONS.keys() - {"gelu_tanh"}  # which gelu() has by an argument


def test_activations_of_the_kernels_are_functions_with_gradients():
    wanted = FUNCTIONS | {f"{name}_backward" for name in FUNCTIONS}
    assert not wanted - {*_activations.__all__}, "nn/_activations.py lacks functions"


def test_activations_have_a_reference_in_numpy_and_a_line_in_the_docs():
    public = {name for name in _activations.__all__ if not name.endswith("_backward")}
    assert test_activations.FUNCTIONS.keys() == public
    page = (DOCS / "nn_pieces.md").read_text()
    assert not [name for name in public if not re.search(rf"`{name}[`(]", page)]


def test_type_checkers_know_the_activations_of_products():
    assert {*_activations.Activation.__args__} == {name for name, n in ACTIVATIONS.items() if n}


@pytest.mark.parametrize("name", _activations.Activation.__args__)
def test_layers_take_the_activations_of_products(name):
    x, weight = (np.random.default_rng(n).normal(size=(n, 5)) for n in (3, 4))
    got = kw.nn.linear(kw.asarray(x), kw.asarray(weight), activation=name).numpy()
    form = test_activations.gelu_tanh if name == "gelu_tanh" else test_activations.FUNCTIONS[name]
    np.testing.assert_allclose(got, form(x @ weight.T), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["softplus", "hardtanh", "nothing", 3, ["silu"]])
def test_products_refuse_other_activations(name):
    x = kw.ones((2, 4))
    for call in (
        lambda: kw.nn.linear(x, x, gate=name),
        lambda: kw.nn.MLP(4, 4, activation=name),
        lambda: kw.nn.grouped_linear(x, x.reshape((1, 2, 4)), counts=x, gate=name),
    ):
        with pytest.raises(kw.ArgumentError, match=r", but \w+ is one of .*gelu_tanh"):
            call()
