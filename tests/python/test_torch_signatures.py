"""Attention of kernwright.torch takes the options of kernwright.nn's; read without torch."""

import ast
import inspect
from pathlib import Path

import pytest

import kernwright as kw

FOLDER = Path(kw.__file__).parent / "torch"
EMPTY = inspect.Parameter.empty


def parameters(module, name):
    """Names of a function's parameters with their defaults, by the text of its module."""
    body = ast.parse((FOLDER / f"{module}.py").read_text()).body
    arguments = next(each for each in body if getattr(each, "name", "") == name).args
    assert not (arguments.posonlyargs or arguments.vararg or arguments.kwarg)
    missing = [EMPTY] * (len(arguments.args) - len(arguments.defaults))
    defaults = [*missing, *arguments.defaults, *arguments.kw_defaults]
    names = [each.arg for each in (*arguments.args, *arguments.kwonlyargs)]
    return {
        name: ast.literal_eval(default) if isinstance(default, ast.AST) else EMPTY
        for name, default in zip(names, defaults, strict=True)
    }


# `left_out`: the parameters of kw.nn's function that kernwright.torch does not take.
@pytest.mark.parametrize(
    ("name", "run", "left_out"),
    [
        ("decode_attention", "_run_decode", {"check", "out"}),
        ("append_qkv", "_run_append", {"check", "token_rows"}),
    ],
)
def test_caches_take_the_options_of_nn(name, run, left_out):
    whole = inspect.signature(getattr(kw.nn, name)).parameters
    assert left_out <= set(whole)
    want = {each: whole[each].default for each in whole if each not in left_out}
    assert parameters("_cache", name) == want and list(parameters("_cache", name)) == list(want)
    # The operator's schema is made from these, tensors first.
    assert set(parameters("_cache", run)) == set(want)


def test_attention_takes_the_positional_arguments_of_nn():
    whole = inspect.signature(kw.nn.attention).parameters.values()
    want = {each.name: each.default for each in whole if each.kind != each.KEYWORD_ONLY}
    assert parameters("_attention", "scaled_dot_product_attention") == want
