"""Expressions mean what Python means by them."""

import math
import pickle
import random
import re
import warnings

import pytest

import kernwright as kw
from kernwright.tune import Expression

LIMIT = 2**63


class Checked(int):
    """An int of 64 bits: what does not fit raises."""


def _checked(name):
    plain = getattr(int, name)

    def method(self, *others):
        left, *right = (others[0], self) if name == "__rlshift__" else (self, *others)
        if "lshift" in name and left != 0 and right[0] > 64:
            raise OverflowError("64 bits")  # it would fill the memory
        result = plain(self, *others)
        if type(result) is int:
            if not -LIMIT <= result < LIMIT:
                raise OverflowError("64 bits")
            return Checked(result)
        return result

    return method


for _name in (
    "add",
    "sub",
    "mul",
    "floordiv",
    "mod",
    "pow",
    "lshift",
    "rshift",
    "and",
    "or",
    "xor",
):
    setattr(Checked, f"__{_name}__", _checked(f"__{_name}__"))
    setattr(Checked, f"__r{_name}__", _checked(f"__r{_name}__"))
for _name in ("neg", "abs", "invert", "pos"):
    setattr(Checked, f"__{_name}__", _checked(f"__{_name}__"))


def to_checked(value):
    result = int(value)
    if not -LIMIT <= result < LIMIT:
        raise OverflowError("64 bits")
    return Checked(result)


FUNCTIONS = {"min": min, "max": max, "abs": abs, "int": to_checked, "float": float, "bool": bool,
             "I": Checked}  # fmt: skip


def by_python(text, values):
    """What Python's eval makes of it; None where it raises."""
    names = {k: Checked(v) if type(v) is int else v for k, v in values.items()}
    literals = re.sub(r"(?<![\w.])(\d+)(?![\w.])", r"I(\1)", text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = eval(literals, {"__builtins__": {}, **FUNCTIONS}, names)
    except (ArithmeticError, TypeError, ValueError):
        return None
    return int(result) if isinstance(result, Checked) else result


def by_us(text, values):
    try:
        return Expression(text)(values)
    except kw.InvalidArgument:
        return None


def same(a, b):
    return type(a) is type(b) and repr(a) == repr(b)


class Maker:
    """Random expressions; numbers and strings stay apart."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self, depth):
        pick = self.random.random()
        if depth == 0 or pick < 0.2:
            return self.random.choice(
                ["a", "b", "c", "x", "y", "flag", "0", "1", "2", "7", "64", "1.5", "0.1", "True"]
            )
        inner = depth - 1
        if pick < 0.6:
            symbol = self.random.choice(["+", "-", "*", "/", "//", "%", "%", "//"])
            return f"({self.number(inner)} {symbol} {self.number(inner)})"
        if pick < 0.65:
            return f"{self.number(inner)} {self.random.choice('+-*')} {self.number(inner)}"
        if pick < 0.7:
            return f"({self.number(inner)})**{self.random.choice(['0', '2', '3', '-1', '40'])}"
        if pick < 0.75:
            symbol = self.random.choice(["&", "|", "^", "<<", ">>"])
            return f"(a {symbol} int({self.number(inner)}))"
        if pick < 0.85:
            function = self.random.choice(["min", "max"])
            return f"{function}({self.number(inner)}, {self.number(inner)}, b)"
        if pick < 0.92:
            prefix = self.random.choice(["-", "+", "abs", "int", "float", "~int", "--", "bool"])
            return f"{prefix}({self.number(inner)})"
        return f"({self.number(inner)} if {self.truth(inner)} else {self.number(inner)})"

    def truth(self, depth):
        pick = self.random.random()
        if depth == 0 or pick < 0.4:
            symbol = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
            first = f"{self.number(max(depth - 1, 0))} {symbol} {self.number(max(depth - 1, 0))}"
            return f"{first} <= {self.number(0)}" if pick < 0.1 else first
        inner = depth - 1
        if pick < 0.6:
            return f"({self.truth(inner)}) and ({self.truth(inner)})"
        if pick < 0.75:
            return f"({self.truth(inner)}) or {self.truth(inner)}"
        if pick < 0.82:
            return f"not {self.truth(inner)}"
        if pick < 0.9:
            word = self.random.choice(["in", "not in"])
            return f"{self.number(inner)} {word} ({self.number(inner)}, 3, a)"
        return self.random.choice(
            ["s == 'row'", "s in ('row', 'col')", "s not in ['a']", "s < 't'", "'o' in s", "s"]
        )


def random_values(chooser):
    return {
        "a": chooser.choice([-7, -1, 0, 1, 3, 32, 1024, 2**40]),
        "b": chooser.choice([-3, 0, 2, 5, 16, 2**62]),
        "c": chooser.randrange(-50, 50),
        "x": chooser.choice([-2.5, -0.0, 0.25, 3.0, 1e300, 1e-300]),
        "y": chooser.uniform(-10, 10),
        "flag": chooser.choice([True, False]),
        "s": chooser.choice(["row", "col", ""]),
    }


@pytest.mark.parametrize("seed", range(20))
def test_random_expressions_agree_with_python(seed):
    maker = Maker(seed)
    results = 0
    for _ in range(400):
        text = maker.number(4) if maker.random.random() < 0.5 else maker.truth(4)
        values = random_values(maker.random)
        expected, got = by_python(text, values), by_us(text, values)
        assert same(expected, got), (text, values, expected, got)
        results += expected is not None
    assert results > 200


FIXED = [
    "-(-n // 256)", "2**10", "-2**2", "2**-1", "2**3**2", "7 // 2", "-7 // 2", "7 // -2",
    "-7 % 3",
    "7 % -3", "7.5 % -2", "-7.5 // 2", "1 / 3", "1_000 + 0x1F + 0b101 + 0o17", "1 < 2 < 3",
    "3 > 2 > 2", "1 < 2 == 2", "not 1 == 2", "not not n", "n and 'yes' or 'no'", "0 or ''",
    "'a' if n else 'b'", "1 if 0 else 2 if 0 else 3", "True + True", "True == 1", "1 == 1.0",
    "1 in (1.0, 2)", "2 in [1, 2,]", "3 in {1, 2}", "3 not in ()", "min((4, 2, 3))", "max([n])",
    "min(1, True)", "max(1.0, 1)", "\"it's\" == 'it\\'s'",
    "9007199254740993 == 9007199254740992.0", "9007199254740993 / 1", "1e3", ".5 + 5.", "+n",
    "9223372036854775807", "-9223372036854775807 - 1", "9223372036854775807 / 3", "5 & 6 | 1 ^ 8",
    "1 << 62", "-1 << 63", "-5 >> 1", "~5", "int(-2.7)", "int(True)", "float(3)", "abs(-3)",
    "abs(-2.5)", "bool('')", "n > 5000 and 10 // 0 == 1 or 4", "( 1 +\n 2 )", "((((1))))",
    "0.0 == -0.0",
    "1e308 * 10", "-n ** 2", "n if n > 1 else 10 // 0", "000", "00 + 1", "1E+2",
]  # fmt: skip


@pytest.mark.parametrize("text", FIXED)
def test_expressions_agree_with_python(text):
    for n in (4, 1000):
        expected = eval(text, {"n": n})
        assert same(Expression(text)(n=n), expected)


@pytest.mark.parametrize(
    "text",
    [
        "n / 0", "n // 0", "n % 0", "0 ** -1", "1.0 // 0", "n < 's'", "'a' + 1", "-'a'",
        "(-8) ** 0.5", "1 << -1", "1.5 & 1", "~1.5", "int(1e300)",
        "int(1e400 if 0 else 1e308*10)",
        "9223372036854775807 + 1", "-9223372036854775807 - 2", "2**63", "4611686018427387904 * 2",
        "1 << 63", "abs(-9223372036854775807 - 1)", "-(-9223372036854775807 - 1)",
        "(-9223372036854775807 - 1) // -1", "10.0 ** 400", "n in n", "min(1, 'a')",
    ],
)  # fmt: skip
def test_what_has_no_value_raises(text):
    try:
        expression = Expression(text)
    except kw.InvalidArgument:
        return
    with pytest.raises(kw.InvalidArgument, match="column"):
        expression(n=3)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("", 1), ("   ", 4), ("a +", 4), ("(a", 3), ("a)", 2), ("a b", 3), ("a = 1", 3),
        ("a && b", 3),
        ("!a", 1), ("a ? 1 : 2", 3), ("a.b", 2), ("a[0]", 2), ("f(a)", 1),
        ("__import__('os')", 1),
        ("lambda: 1", 7), ("a if b", 7), ("1 if 2 else", 12), ("'abc", 1), ("'\\x41'", 2),
        ("1x", 1),
        ("0x", 1), ("012", 1), ("1__0", 1), ("1e", 1), ("99999999999999999999", 1), ("(1, 2)", 1),
        ("(1, 2) == 3", 1), ("a in b in", 10), ("min()", 1), ("min(3)", 1), ("abs(1, 2)", 1),
        ("and", 1), ("a not b", 7), ("a <> b", 4), ("a := 1", 3), ("a; b", 2), ("a\0", 2),
        ("\u00e9", 1),
        ("[1] + [2]", 1), ("1 'a'", 3), ("'a' 'b'", 5), ("min", 4), ("*a", 1), ("a **", 5),
        ("1j", 1),
    ],
)  # fmt: skip
def test_what_is_no_expression_is_refused_with_its_column(text, column):
    with pytest.raises(kw.InvalidArgument, match=rf"\(column {column}\)"):
        Expression(text)


@pytest.mark.parametrize("text", ["(" * 5000, "-" * 5000 + "1", "not " * 3000 + "1",
    "1" + "+1" * 5000,
                                  "2**" * 3000 + "1", "1 if 1 else " * 1000 + "1",
                                  "1" * 20000])  # fmt: skip
def test_deep_and_long_texts_are_refused(text):
    with pytest.raises(kw.InvalidArgument, match=r"levels|longer|64 bits"):
        Expression(text)


def test_names_are_listed_once_and_missing_ones_are_named():
    expression = Expression("block * tile <= block + n")
    assert expression.names == ("block", "tile", "n")
    with pytest.raises(kw.NameNotFound, match=r"value tile .column 9.; did you mean tiles"):
        expression(block=1, tiles=2, m=3)
    assert expression({"block": 1, "tile": 2, "other": object()}, n=4) is True


def test_numpy_scalars_are_values_and_other_objects_are_not():
    import numpy as np

    assert Expression("a // b")(a=np.int32(7), b=np.uint8(2)) == 3
    assert math.isclose(Expression("a * 2")(a=np.float32(0.5)), 1.0)
    for wrong in (None, [1], 1j, b"x"):
        with pytest.raises(kw.ArgumentError):
            Expression("a")(a=wrong)
    with pytest.raises(kw.InvalidArgument, match="64 bits"):
        Expression("a")(a=2**63)


def test_an_expression_pickles():
    expression = pickle.loads(pickle.dumps(Expression("-(-n // 4)")))
    assert expression(n=9) == 3
    with pytest.raises(kw.ArgumentError):
        Expression(3)
