"""Spaces against itertools.product and a filter; what is wrong with a space is said."""

import collections
import itertools
import json
import random

import numpy as np
import pytest

import kernwright as kw
from kernwright.tune import Config, Space


def listed(parameters, *conditions):
    """What a plain walk through the product keeps."""
    names = list(parameters)
    rows = (
        dict(zip(names, values, strict=True)) for values in itertools.product(*parameters.values())
    )
    return [row for row in rows if all(condition(row) for condition in conditions)]


def check(parameters, *texts):
    codes = [compile(text, "restriction", "eval") for text in texts]
    functions = [lambda row, code=code: eval(code, {}, dict(row)) for code in codes]
    expected = listed(parameters, *functions)
    if not expected:
        with pytest.raises(kw.InvalidArgument, match="no configuration is valid"):
            len(Space(parameters).require(*texts))
        return None
    space = Space(parameters).require(*texts)
    assert [dict(config) for config in space] == expected
    assert len(space) == space.size == len(expected)
    assert all(space.index(row) == i for i, row in enumerate(expected))
    return space


SMALL = {"a": [1, 2, 3, 4], "b": [8, 4, 2], "c": [0, 1], "d": [0.5, 1.5], "s": ["row", "col"]}


@pytest.mark.parametrize(
    "texts",
    [
        (),
        ("a * b <= 8",),
        ("a * b <= 8", "b % a == 0 and c == 1"),
        ("c == 0 or (a * b) % 3 == 0", "a >= b or s == 'row'"),
        ("a in (1, 4)", "s not in ['col']", "1 < a + b < 10 or c"),
        ("(a if c else b) * d >= 2",),
        ("b // a > 1 and d * a < 5 and not (c and s == 'col')",),
        ("min(a, b) == a", "max(a * 2, b) <= 6", "abs(a - b) > 0"),
        ("a * b * c * d >= 0", "c != 0 and a // c == 2"),
        ("True",),
        ("False",),
        ("a + b == 100",),
        ("a & 1 == 0 and a << c < 5",),
    ],
)
def test_a_space_is_the_filtered_product_in_its_order(texts):
    check(SMALL, *texts)


def random_restriction(chooser, names):
    a, b, c = chooser.sample(names, 3)
    number = chooser.randrange(1, 60)
    return chooser.choice(
        [
            f"{a} * {b} <= {number}", f"{a} % {b} == 0", f"{a} + {b} + {c} != {number}",
            f"{a} <= {b} or {c} > 2", f"{a} * {b} >= {c} and {a} != {b}",
            f"not ({a} == {b} == {c})",
            f"{a} // {b} < {number}", f"({a} + {b}) * {c} % 5 < 4", f"{a} in (1, 2, {b}, {c})",
            f"-(-{a} // {b}) * {c} <= {number}", f"{a} / {b} > 0.3 and {c} * {a} <= 2 * {number}",
        ]
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_random_spaces_are_the_filtered_product(seed):
    chooser = random.Random(seed)
    names = [f"p{i}" for i in range(chooser.randrange(3, 6))]
    parameters = {n: chooser.sample(range(1, 12), chooser.randrange(1, 7)) for n in names}
    texts = [random_restriction(chooser, names) for _ in range(chooser.randrange(0, 5))]
    space = check(parameters, *texts)
    if space is None:
        return
    rows = [dict(config) for config in space]
    for config in chooser.sample(rows, min(3, len(rows))):
        differing = [sum(config[n] != row[n] for n in names) for row in rows]
        near = [row for row, count in zip(rows, differing, strict=True) if count == 1]
        assert [dict(c) for c in space.neighbours(config)] == near
        assert [dict(c) for c in space.neighbours(config, "adjacent")] == adjacent(
            rows, config, parameters
        )


def adjacent(rows, config, parameters):
    """By definition: a step leads to the next value that occurs, in the parameter's order."""
    order = {}
    for name, values in parameters.items():
        occurring = {row[name] for row in rows}
        order[name] = [value for value in values if value in occurring]
    near = []
    for row in rows:
        distances = [abs(order[n].index(row[n]) - order[n].index(config[n])) for n in config]
        if max(distances) == 1:
            near.append(row)
    return near


def test_contains_index_slices_and_negative_indices():
    space = Space(a=[1, 2, 3], b=[1, 2]).require("a != b")
    assert list(space) == [space[i] for i in range(4)] == space[:]
    assert space[-1] == {"a": 3, "b": 2} == Config(a=3, b=2)
    assert space[1:3] == [space[1], space[2]]
    assert {"a": 1, "b": 2} in space
    for other in ({"a": 1, "b": 1}, {"a": 9, "b": 1}, {"a": 1}, {"a": 1, "b": 2, "c": 0}, 3, None):
        assert other not in space
    assert {"a": 1.0, "b": np.int64(2)} in space
    with pytest.raises(IndexError):
        space[4]
    with pytest.raises(kw.ArgumentError):
        space["a"]
    with pytest.raises(kw.InvalidArgument, match="does not have"):
        space.index({"a": 1, "b": 1})
    with pytest.raises(kw.NameNotFound, match="no 'b'"):
        space.index({"a": 1})


def test_a_configuration_is_an_immutable_mapping():
    config = Space(b=[1], a=["x"])[0]
    assert list(config) == ["b", "a"] and dict(config) == {"b": 1, "a": "x"}
    assert config == {"a": "x", "b": 1} and hash(config) == hash(Config(a="x", b=True))
    assert repr(config) == "Config(b=1, a='x')"
    assert {config: 1}[Config(a="x", b=1)] == 1
    with pytest.raises(kw.NameNotFound, match="there is: b, a"):
        config["c"]
    with pytest.raises(TypeError):
        config["a"] = 1


def test_values_keep_their_types():
    space = Space(a=np.array([1, 2], np.int32), b=(True, False), c=[0.5, np.float64(2)], d=range(2))
    first = space[0]
    assert [type(value) for value in first.values()] == [int, bool, float, int]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Space(), kw.InvalidArgument, "wants parameters"),
        (lambda: Space(a=[]), kw.InvalidArgument, "a has no values"),
        (lambda: Space(a=[1, True]), kw.InvalidArgument, "True twice"),
        (lambda: Space(a=["x", "x"]), kw.InvalidArgument, "'x' twice"),
        (lambda: Space(a=[float("nan")]), kw.InvalidArgument, "NaN"),
        (lambda: Space(a=[2**63]), kw.InvalidArgument, "64 bits"),
        (lambda: Space(a=3), kw.ArgumentError, r"write \[3\]"),
        (lambda: Space(a="abc"), kw.ArgumentError, "got str"),
        (lambda: Space(a={1, 2}), kw.ArgumentError, "got set"),
        (lambda: Space(a=[None]), kw.ArgumentError, "NoneType"),
        (lambda: Space(a=[(1, 2)]), kw.ArgumentError, "tuple"),
        (lambda: Space({"a b": [1]}), kw.InvalidArgument, "valid for a C macro"),
        (lambda: Space({"min": [1]}), kw.InvalidArgument, "expressions use the word"),
        (lambda: Space({3: [1]}), kw.ArgumentError, "name is a str"),
        (lambda: Space({"a": [1]}, a=[2]), kw.InvalidArgument, "two parameters"),
        (lambda: Space(a=[1]).require("b > 1"), kw.NameNotFound, "names no parameter"),
        (lambda: Space(a=[1]).require("a >"), kw.InvalidArgument, "column 4"),
        (lambda: Space(a=[1]).require(5), kw.ArgumentError, "got int"),
        (lambda: Space(a=[1]).require((len, "ab")), kw.ArgumentError, "callable, names"),
        (lambda: Space(a=[1]).require((abs, ["b"])), kw.NameNotFound, "'b'"),
        (lambda: Space(a=[1]).require(lambda b, c: True), kw.NameNotFound, "'b'"),
        (lambda: len(Space(block=[1]).require("block > blck")), kw.NameNotFound, "mean block"),
        (lambda: len(Space(a=[1]).require(lambda a, n: True)), kw.NameNotFound, "'n'"),
        (lambda: Space(a=[1]).with_problem(a=3), kw.InvalidArgument, "names both a parameter and"),
        (lambda: Space(a=[1]).sample(2), kw.InvalidArgument, "the space has 1"),
        (
            lambda: Space(ab=[1]).neighbours({"ba": 1}),
            kw.NameNotFound,
            "unknown 'ba' and has no 'ab'",
        ),
        (lambda: Space(a=[1]).sample(-1), kw.InvalidArgument, "-1"),
        (lambda: Space(a=[1]).sample(1.5), kw.ArgumentError, "float"),
        (lambda: Space(a=[1]).sample(1, "x"), kw.ArgumentError, "seed"),
        (lambda: Space(a=[1]).neighbours({"a": 1}, "far"), kw.InvalidArgument, "far"),
        (lambda: Space(a=[1]).neighbours({"a": 2}), kw.InvalidArgument, "does not list"),
        (lambda: Space(a=[1]).require_device(), kw.ArgumentError, "threads="),
        (lambda: Space(a=[1]).require_device(threads=1.5), kw.ArgumentError, "float"),
        (lambda: Space.from_configurations([]), kw.InvalidArgument, "at least one"),
        (lambda: Space.from_configurations([{"a": 1}, {"b": 1}]), kw.InvalidArgument, "same"),
    ],
)
def test_bad_input_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    "use", [len, list, lambda s: s.sample(1), lambda s: s[0], lambda s: s.size]
)
def test_contradictions_name_what_removes_most(use):
    space = Space(a=[1, 2, 3], b=[1, 2]).require("b < 2", "a > 3", "a + b > 1")
    with pytest.raises(kw.InvalidArgument, match='of 6 combinations, "a > 3" removes 6, "b < 2"'):
        use(space)


def test_a_contradiction_in_a_huge_space_is_found_without_a_walk():
    space = Space({f"p{i}": range(64) for i in range(12)}).require("p0 > 63", "p3 + p4 < 200")
    with pytest.raises(kw.InvalidArgument, match=r'drawn at random .* "p0 > 63" removes 20000'):
        len(space)


def test_a_failing_restriction_names_itself_and_the_values():
    with pytest.raises(kw.InvalidArgument, match=r"division by zero in \"a % b == 0\".*a=1, b=0"):
        len(Space(a=[1, 2], b=[0, 1], c=range(5)).require("a % b == 0"))
    with pytest.raises(kw.InvalidArgument, match=r"ZeroDivisionError.* for a=1, b=0") as error:
        len(Space(a=[1, 2], b=[0, 1], c=range(5)).require(lambda a, b: a % b == 0))
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_what_another_restriction_excludes_is_no_failure():
    for texts in (("b > 0", "a % b == 0"), ("a % b == 0", "b > 0"), ("b and a % b == 0",)):
        assert len(Space(a=[1, 2], b=[0, 1, 2]).require(*texts)) == 3
    assert len(Space(a=[1, 2], b=[0, 1, 2]).require(lambda a, b: a % b == 0, "b > 0")) == 3
    space = Space(a=[1, 2], b=[0, 1, 2]).require("a % b == 0", "c == b", "b > 0")
    assert len(space.with_problem(c=1)) == 2


def test_an_interrupt_in_a_restriction_gets_out():
    def stop(a):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        len(Space(a=[1, 2]).require(stop))


@pytest.mark.parametrize(
    "restriction",
    [
        lambda a, b: a > b,
        lambda b, a: a > b,
        lambda p: p["a"] > p["b"],
        lambda **p: p["a"] > p["b"],
        lambda a, b, *, c=1: a > b,
        (lambda x, y: x > y, ["a", "b"]),
        lambda a, b: np.bool_(a > b),
        lambda a, b, n: a > b and n == 7,
        lambda p: p["a"] > p["b"] and p["n"] == 7,
    ],
)
def test_callables_get_what_they_name(restriction):
    parameters = {"a": [1, 2, 3], "b": [1, 2, 3], "c": [1, 2]}
    space = Space(parameters).require(restriction, "a < 3 or c == 1").with_problem(n=7)
    expected = listed(parameters, lambda r: r["a"] > r["b"], lambda r: r["a"] < 3 or r["c"] == 1)
    assert [dict(config) for config in space] == expected


def test_a_callable_of_few_parameters_is_not_called_for_every_combination():
    calls = []

    def restriction(a, b):
        calls.append((a, b))
        return a <= b

    space = Space(x=range(50), a=range(10), y=range(50), b=range(10)).require(restriction)
    assert len(space) == 55 * 2500
    assert len(calls) == 100


def test_problem_values_are_seen_by_copies_alone():
    space = Space(tile=[1, 2, 3, 4]).require("n % tile == 0")
    with pytest.raises(kw.NameNotFound, match="there is no parameter or problem value n"):
        len(space)
    twelve, ten = space.with_problem(n=12), space.with_problem({"n": 10})
    assert (len(twelve), len(ten)) == (4, 2)
    assert dict(twelve.with_problem(m=1).problem) == {"n": 12, "m": 1}
    assert dict(space.problem) == {}


@pytest.mark.parametrize("name", ["restrictions", "restriction", "constraints", "require"])
def test_restrictions_are_no_parameter(name):
    with pytest.raises(kw.InvalidArgument, match=rf"Space\({name}=.*require\("):
        Space(a=[1, 2], **{name: ["a > 1"]})
    assert len(Space({"a": [1, 2], name: [3, 4]})) == 4


def test_restrictions_added_later_count():
    space = Space(a=range(10))
    assert len(space) == 10
    assert len(space.require("a < 5")) == 5
    assert len(space.require(["a > 1", lambda a: a != 3])) == 2
    assert space.restrictions[:2] == ("a < 5", "a > 1")
    assert "3 restrictions" in repr(space) or "restrictions" in repr(space)
    assert "require a < 5" in str(space)


def test_limits_of_the_device():
    device = kw.current_device()
    most = device.attributes["max_threads_per_block"]
    static = device.attributes["max_shared_memory_per_block"]
    opted = device.attributes["max_shared_memory_per_block_optin"] or static
    space = Space(x=[1, 32, most, most * 2], y=[0, 1, 2]).require_device(threads="x * y")
    expected = [(x, y) for x in (1, 32, most, most * 2) for y in (0, 1, 2) if 1 <= x * y <= most]
    assert [tuple(config.values()) for config in space] == expected
    assert len(Space(s=[1, static, opted, opted + 1]).require_device(shared_bytes="s")) == 3
    assert len(Space(s=[1, static, static + 1]).require_device(static_shared_bytes="s")) == 2
    assert len(Space(r=[16, 255, 256]).require_device(registers="r")) == 2
    registers = device.attributes["max_registers_per_block"]
    both = Space(r=[16, 255], x=[32, most]).require_device(threads="x", registers="r")
    assert len(both) == sum(r * x <= registers for r in (16, 255) for x in (32, most))
    assert len(both.for_device(device)) == len(both)
    with pytest.raises(kw.InvalidArgument, match=r"threads of .*x \+ 5000"):
        len(Space(x=[32]).require_device(threads="x + 5000"))


def test_samples_are_different_valid_and_fair():
    space = Space(a=range(6), b=range(6)).require("a <= b")
    counts = collections.Counter()
    for seed in range(3000):
        sample = space.sample(5, seed)
        assert len(set(sample)) == 5
        counts.update(sample)
    assert len(counts) == 21
    expected = 3000 * 5 / 21
    chi = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi < 50  # 20 degrees of freedom: 1 in 5000
    assert space.sample(7, 3) == space.sample(7, 3) != space.sample(7, 4)
    assert space.sample(0) == []
    assert set(space.sample(21)) == set(space)


def test_large_spaces_are_counted_without_a_list():
    free = Space({f"p{i}": range(1, 33) for i in range(12)})
    assert len(free) == 32**12
    assert free.index(free[10**17]) == 10**17
    products = Space({f"p{i}": range(1, 33) for i in range(10)})
    products.require("*".join(products.parameters) + " <= 1024")
    assert len(products) == count_products(10, 1024)
    for config in products.sample(100, 1):
        assert np.prod(list(config.values())) <= 1024
    nested = Space({f"p{i}": range(1, 33) for i in range(12)})
    nested.require(*(f"p{i} * p{11 - i} <= 64" for i in range(6)))
    pairs = sum(a * b <= 64 for a in range(1, 33) for b in range(1, 33))
    assert len(nested) == pairs**6
    with pytest.raises(kw.InvalidArgument, match=r"2\*\*63"):
        len(Space({f"p{i}": range(64) for i in range(11)}))


def count_products(count, most):
    """Tuples of `count` numbers of 1 ... 32 whose product is at most `most`."""
    ways = {1: 1}
    for _ in range(count):
        following = collections.Counter()
        for product, number in ways.items():
            for value in range(1, min(32, most // product) + 1):
                following[product * value] += number
        ways = following
    return sum(ways.values())


def hotspot(tiles):
    return Space(
        block_x=[1, 2, 4, 8, 16, *range(32, 1025, 32)], block_y=[2**i for i in range(6)],
        tile_x=range(1, tiles), tile_y=range(1, tiles), steps=range(1, 11), unroll=range(1, 11),
        power=[0, 1], fixed=[4096],
    ).require(
        "block_x * block_y >= 32", "steps % unroll == 0", "block_x * block_y <= 1024",
        "(block_x * tile_x + steps * 2) * (block_y * tile_y + steps * 2) * (2 + power) * 4"
        " <= 49152",
    )  # fmt: skip


def test_a_stencil_of_many_combinations():
    space = hotspot(23)
    assert space.combinations == 37 * 6 * 22 * 22 * 10 * 10 * 2
    shape = [(x, y, s, p) for x in space.parameters["block_x"] for y in space.parameters["block_y"]
             if 32 <= x * y <= 1024 for s in range(1, 11) for p in (0, 1)]  # fmt: skip
    tile = np.arange(1, 23)
    divisors = {s: sum(s % u == 0 for u in range(1, 11)) for s in range(1, 11)}
    expected = sum(
        divisors[s]
        * int((np.outer(x * tile + 2 * s, y * tile + 2 * s) * (2 + p) * 4 <= 49152).sum())
        for x, y, s, p in shape
    )
    assert len(space) == expected


def test_listed_configurations():
    rows = [{"a": 2, "s": "x"}, {"a": 1, "s": "y"}, {"a": 2, "s": "x"}]
    space = Space.from_configurations(rows)
    assert [dict(config) for config in space] == [{"a": 1, "s": "y"}, {"a": 2, "s": "x"}]
    assert {"a": 1, "s": "x"} not in space


T1 = {
    "General": {"BenchmarkName": "stencil"},
    "ConfigurationSpace": {
        "TuningParameters": [
            {"Name": "x", "Type": "int", "Values": "[1, 2] + list(range(32, 129, 32))"},
            {"Name": "y", "Type": "int", "Values": "[2**i for i in range(0, 4)]"},
            {"Name": "z", "Type": "int", "Values": "[i for i in range(1, 10+1) if i % 3 == 0]"},
            {"Name": "mode", "Type": "string", "Values": "['row', 'col']"},
        ],
        "Conditions": [{"Expression": "x * y <= 128", "Parameters": ["x", "y"]}],
    },
}


def test_t1_files_are_read_and_written(tmp_path):
    path = tmp_path / "space.json"
    path.write_text(json.dumps(T1))
    space = Space.from_t1(path)
    parameters = {
        "x": [1, 2, 32, 64, 96, 128], "y": [1, 2, 4, 8], "z": [3, 6, 9], "mode": ["row", "col"],
    }  # fmt: skip
    assert {k: list(v) for k, v in space.parameters.items()} == parameters
    assert [dict(c) for c in space] == listed(parameters, lambda r: r["x"] * r["y"] <= 128)
    again = tmp_path / "again.json"
    space.to_t1(again, "stencil")
    assert list(Space.from_t1(str(again))) == list(space)
    with pytest.raises(kw.InvalidArgument, match="functions"):
        space.require(lambda x: True).to_t1(again)


@pytest.mark.parametrize(
    "values",
    [
        "__import__('os').getcwd()", "[open('/etc/passwd')]", "[x for x in ().__class__.__mro__]",
        "3", "[", "range(10**9)", "[i for i in range(10**6) for j in range(10**6)]", "[10**30]",
        "[2**(2**40)]", "[1] * 10**9", "[1 << 10**9]", "['a' * 10**9]", "[lambda: 1]", "list(3)",
        "[i.real for i in range(3)]", "[" * 2000, "sorted([1, 'a'])", "[1 // 0]", "[f(1)]", "",
        "[*range(3)]", "[i for i, j in [(1, 2)]]", "range('a')", "[(1)(2)]", "[i := 3]",
    ],
)  # fmt: skip
def test_values_that_are_no_lists_are_refused(tmp_path, values):
    path = tmp_path / "space.json"
    rows = [{"Name": "x", "Type": "int", "Values": values}]
    path.write_text(json.dumps({"ConfigurationSpace": {"TuningParameters": rows}}))
    with pytest.raises(kw.InvalidArgument, match=r"space\.json: x: "):
        Space.from_t1(path)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"ConfigurationSpace": {}}', "\0", "3",
     '{"ConfigurationSpace": {"TuningParameters": "x"}}',
     '{"ConfigurationSpace": {"TuningParameters": [{"Name": "x"}]}}',
     '{"ConfigurationSpace": {"TuningParameters": [], "Conditions": ["x < 3"]}}'],
)  # fmt: skip
def test_files_that_are_no_t1_are_refused(tmp_path, text):
    path = tmp_path / "space.json"
    path.write_text(text)
    with pytest.raises(kw.InvalidArgument, match=r"space\.json") as caught:
        Space.from_t1(path)
    assert "Error" not in str(caught.value)
    for path in (tmp_path / "missing.json", tmp_path):
        with pytest.raises(kw.StoreError, match="cannot be read") as caught:
            Space.from_t1(path)
        assert caught.value.errno and str(path) in str(caught.value)
    with pytest.raises(kw.StoreError, match="cannot be written"):
        Space(x=[1]).to_t1(tmp_path / "no" / "space.json")


def test_importing_the_package_does_not_import_tuning():
    import subprocess
    import sys

    code = (
        "import kernwright, sys; print('kernwright.tune' in sys.modules, 'tune' in dir(kernwright))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False True"
