"""Lists of formats and activations in Python name what the kernels have."""

import re

import pytest

import kernwright as kw
from kernwright._files import gguf
from kernwright.llm import _layouts
from kernwright.nn import _experts, _linear
from kernwright.nn.quant import _formats


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


@pytest.mark.parametrize("names", [_linear._ACTIVATIONS, _experts._ACTIVATIONS])
def test_activations_of_products_are_those_of_the_kernels(names):
    with pytest.raises(kw.ArgumentError, match="is no activation") as refused:
        kw.nn.bias_activation(kw.ones((2, 3)), kw.ones(3), "nothing")
    assert {*names} <= {*listed(str(refused.value))}
