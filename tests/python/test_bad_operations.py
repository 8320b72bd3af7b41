"""Every operation with wrong arguments: errors of this package, never a crash."""

import inspect

import pytest
from every_operation import Foreign, bits, outputs, public_names
from test_every_operation import CASES

import kernwright as kw

FIRST = list({case.name: case for case in reversed(CASES)}.values())[::-1]
# Operations that return such an argument as it is, or NotImplemented.
PASS_ON = ("from_dlpack", "asarray", "Array.__rmatmul__")
EACH = pytest.mark.parametrize("case", FIRST, ids=[case.id for case in FIRST])


def other_dtype(spec):
    """Impossible operands of an operation: NaN among whole numbers, complex among real ones."""
    if spec.dtype in ("int32", "int64"):
        return kw.full(spec.shape, float("nan"), "float32")
    return kw.full(spec.shape, 1j, "complex64")


def wrong_arguments(case):
    """Lists of arguments, each with a wrong one, under its description."""
    arguments = case.arguments()
    for i, spec in enumerate(case.specs):
        longer = (*spec.shape[:-1], spec.shape[-1] + 1) if spec.shape else (3,)
        changes = {
            "longer": lambda longer=longer, spec=spec: kw.ones(longer, spec.dtype),
            "one axis more": lambda spec=spec: kw.ones((2, *spec.shape), spec.dtype),
            "never made": lambda: kw.Array.__new__(kw.Array),
        }
        if i or not case.name.startswith("Array."):  # the first one has the method
            changes["of the host"] = lambda spec=spec: spec.values(1)
            changes["text"], changes["nothing"] = lambda: "text", lambda: None
        if case.group not in ("elementwise", "operators", "reductions", "creation", "methods"):
            changes["dtype"] = lambda spec=spec: other_dtype(spec)
        for what, change in changes.items():
            yield f"{what} {i}", [*arguments[:i], change(), *arguments[i + 1 :]]
    if case.specs:
        yield "without elements", [kw.ones((0,) * len(spec.shape), spec.dtype)
                                   for spec in case.specs]  # fmt: skip
        yield "without rows", [kw.ones((0, *spec.shape[1:]) if spec.shape else (), spec.dtype)
                               for spec in case.specs]  # fmt: skip


def tried(case, what, call):
    """The error of a call, None without one; a fault on the device is no error to catch."""
    try:
        call()
        kw.synchronize()
    except kw.Error as error:
        assert not isinstance(error, (kw.DeviceFault, kw.DeviceLost)), (what, error)
        assert str(error)
        return error
    except TypeError as error:  # Python's own, where no operand takes the other
        assert case.group == "operators", (what, error)
        assert any(words in str(error) for words in ("operand", "not supported", "concatenate"))
        return error
    return None


@EACH
def test_arguments_that_do_not_fit(case):
    for what, arguments in wrong_arguments(case):
        error = tried(case, what, lambda arguments=arguments: case.call(*arguments))
        if "never made" in what and case.name not in PASS_ON:
            assert error is not None, what


@EACH
def test_nan_everywhere(case):
    arguments = [
        kw.full(spec.shape, float("nan"), spec.dtype) if spec.dtype.startswith(("f", "b", "c"))
        and spec.dtype != "bool" else array
        for spec, array in zip(case.specs, case.arguments(), strict=True)
    ]  # fmt: skip
    error = tried(case, "NaN", lambda: case.call(*arguments))
    assert (error is not None) == case.name.startswith(("histogram", "nanarg")), error


HOST_REFUSED = [
    case for case in FIRST if case.group in ("elementwise", "activations", "norms", "losses")
]


@pytest.mark.parametrize("case", HOST_REFUSED, ids=[case.id for case in HOST_REFUSED])
def test_arrays_of_the_host_are_refused_with_advice(case):
    host = [spec.values(1) for spec in case.specs]
    with pytest.raises(kw.ArgumentError, match=r"asarray\(\)"):
        case.call(*host)


TAKE_OTHERS = [case for case in FIRST if case.specs and not case.name.startswith("Array.")]


@pytest.mark.parametrize("case", TAKE_OTHERS, ids=[case.id for case in TAKE_OTHERS])
def test_arrays_of_other_libraries(case):
    """Misaligned, with gaps, through DLPack: the same result, or an error with the reason."""
    shifted = [
        spec._replace(layout="shifted" if i % 2 else "gaps") if spec.shape else spec
        for i, spec in enumerate(case.specs)
    ]
    placed = [Foreign(spec.place(spec.values(1 + i))) for i, spec in enumerate(shifted)]
    own = [spec.place(spec.values(1 + i)) for i, spec in enumerate(shifted)]
    results = []
    error = tried(case, "foreign", lambda: results.append(case.call(*placed)))
    if error is None:
        assert bits(outputs(results)) == bits(outputs([case.call(*own)]))
        assert bits([each.array for each in placed]) == bits(own)


def functions_with(parameter):
    for name in public_names():
        owner = kw
        for part in name.split("."):
            owner = getattr(owner, part)
        try:
            found = inspect.signature(owner).parameters
        except (TypeError, ValueError):
            continue
        if parameter in found and not name.startswith("Array."):
            yield name, owner


@pytest.mark.parametrize("axis", [99, -99, 10**30, "x", 1.5])
def test_axes_out_of_range(axis):
    cases = {case.name: case for case in FIRST}
    seen = 0
    for name, function in functions_with("axis"):
        case = cases[name]
        for arguments in (case.arguments(), case.arguments()[:1], [case.arguments()] * 1):
            error = tried(case, name, lambda a=arguments, f=function: f(*a, axis=axis))
            assert error is not None, name
        seen += 1
    for name in ("sum", "max", "argmax", "sort", "argsort", "cumsum", "all", "repeat", "take"):
        method = getattr(kw.ones((3, 4)), name)
        first = (1,) if name == "repeat" else (kw.zeros(2, "int64"),) if name == "take" else ()
        with pytest.raises(kw.Error):
            method(*first, axis=axis)
    assert seen > 40


BROADCAST = [case for case in FIRST if case.group == "elementwise" and len(case.specs) == 2]


@pytest.mark.parametrize("case", BROADCAST, ids=[case.id for case in BROADCAST])
def test_shapes_that_do_not_fit_are_both_told(case):
    x, y = kw.ones((3, 4), case.specs[0].dtype), kw.ones(5, case.specs[1].dtype)
    with pytest.raises(kw.InvalidArgument, match="Incompatible dimensions") as raised:
        case.call(x, y)
    assert "(3, 4)" in str(raised.value) and "(5,)" in str(raised.value)
