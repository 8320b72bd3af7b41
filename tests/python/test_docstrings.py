"""Every public name has a docstring and a signature, and the examples are true."""

import ast
import doctest
import importlib
import inspect
import os
import pathlib
import subprocess
import sys
import types

import numpy as np
import pytest

import kernwright as kw
from kernwright import _core

PACKAGE = pathlib.Path(kw.__file__).parent
MODULES = ("bench", "cache", "checks", "fft", "linalg", "llm", "memory", "nn", "nn.quant", "optim")
MODULES += ("random", "schedule", "train", "tune", "tune.accuracy", "tune.file_utils")
MODULES += ("tune.observers",)
MODULES += ("tune.searchspace", "tune.strategies.common", "tune.strategies.wrapper", "tune.util")
SAXPY = """
__global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}"""
COUNT = "__global__ void count(const float* x, int step, int n) {}"
TAKE = "__global__ void take(const float* x, int n) {}"


def public_names():
    """Each public object by its dotted name: functions, classes, and their members."""
    found = {}
    for home in ("", *MODULES):
        module = importlib.import_module(f"kernwright.{home}" if home else "kernwright")
        for name in module.__all__:
            visit(f"{home}.{name}".lstrip("."), getattr(module, name), found)
    return found


def visit(path, value, found):
    if isinstance(value, types.ModuleType) and not callable(value):
        return
    found[path] = value
    if not inspect.isclass(value) or not value.__module__.startswith("kernwright"):
        return
    for name, member in vars(value).items():
        if not name.startswith("_") and is_documented(value, name, member):
            found[f"{path}.{name}"] = getattr(value, name)


def is_documented(cls, name, member):
    """Methods, properties and slots; not the plain values of attributes, nor fields of tuples."""
    if issubclass(cls, tuple) and name in getattr(cls, "_fields", ()):
        return False
    kinds = (property, staticmethod, classmethod, types.MemberDescriptorType)
    return callable(member) or isinstance(member, kinds)


NAMES = public_names()


def stubbed():
    """Classes and functions of the stubs, with the names of their parameters."""
    for stub in sorted(PACKAGE.glob("_core*.pyi")):
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                yield "", node
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                for member in node.body:
                    if isinstance(member, ast.FunctionDef):
                        yield node.name, member


def test_there_are_many():
    assert len(NAMES) > 700


def test_everything_public_has_a_docstring():
    values = (int, float, str, tuple)  # pi, inf, __version__
    missing = [
        name
        for name, value in NAMES.items()
        if value is not None and not isinstance(value, values)
        if not (inspect.getdoc(value) or "").strip() or value.__doc__ == type(value).__doc__
    ]
    assert missing == []


def test_docstrings_of_the_extension_are_sentences():
    """pybind11's own lines, "f(self: kernwright._core.Array) -> object", are none."""
    made = [n for n, value in NAMES.items() if "kernwright._core." in (value.__doc__ or "")]
    assert made == []


def test_everything_public_has_a_signature():
    missing = []
    for name, value in NAMES.items():
        if not callable(value) or (inspect.isclass(value) and issubclass(value, BaseException)):
            continue
        if inspect.isclass(value) and value.__module__ == "builtins":
            continue
        try:
            inspect.signature(value)
        except (TypeError, ValueError):
            missing.append(name)
    assert missing == []


def test_signatures_are_those_of_the_stubs():
    for scope, node in stubbed():
        if node.name.startswith("_") and node.name != "__init__":
            continue
        if any(ast.unparse(each).endswith(("property", "setter")) for each in node.decorator_list):
            continue
        owner = getattr(_core, scope) if scope else _core
        function = getattr(owner, node.name)
        names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
        got = [
            name
            for name, each in inspect.signature(function).parameters.items()
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]
        assert got == names, f"{scope}.{node.name}"


def test_bound_methods_have_no_self():
    x = kw.ones(3)
    assert str(inspect.signature(x.astype)) == "(dtype, *, copy=True)"
    assert list(inspect.signature(kw.kernel(SAXPY).launch).parameters) == ["config", "arguments"]
    assert str(inspect.signature(kw.Stream)) == "(priority=0, *, device=None)"
    assert "fast_math" in inspect.signature(kw.ProgramOptions).parameters


def special_members():
    """Special methods in the stubs, if Python lets their text be changed."""
    found = {}
    for scope, node in stubbed():
        if scope and node.name.startswith("__") and ast.get_docstring(node):
            member = vars(getattr(_core, scope)).get(node.name)
            if not isinstance(member, types.WrapperDescriptorType):
                found[f"{scope}.{node.name}"] = getattr(getattr(_core, scope), node.name)
                assert inspect.getdoc(found[f"{scope}.{node.name}"]).endswith(
                    ast.get_docstring(node)
                )
    return found


def test_special_methods_are_described():
    assert {"Array.__getitem__", "Array.__setitem__"} <= special_members().keys()


NAMES.update(special_members())
EXAMPLES = [name for name, value in NAMES.items() if ">>>" in (value.__doc__ or "")]

# Examples that go on where the one of another name ends.
GOES_ON = {
    "Judge": "Task",
    "judge": "Task",
    "Verdict": "Task",
    "bench.compare": "bench.run",
    "checks.Finding": "checks.checks",
    "checks.Other": "checks.checks",
    "checks.Report": "checks.checks",
    "llm.Engine.load_adapter": "llm.Model.load_adapter",
    "llm.Model.chat": "llm.Tokenizer",
    "llm.Model.chat_tokens": "llm.Model.chat",
    "llm.Model.unload_adapter": "llm.Model.load_adapter",
    "llm.Snapshot.nbytes": "llm.Snapshot",
    "llm.Snapshot.save": "llm.Snapshot",
    "llm.Snapshot.load": "llm.Snapshot.save",
    "llm.StopCheck": "llm.Tokenizer",
    "llm.StopCheck.finish": "llm.Tokenizer",
    "llm.TextStream": "llm.Tokenizer",
    **{name: "llm.Tokenizer" for name in EXAMPLES if name.startswith("llm.Tokenizer.")},
    "tune.Best": "tune.Session",
    "tune.Choice": "tune.Tuned",
    "tune.Match": "tune.Store",
    "tune.OnlineTrial": "tune.Online",
    "tune.Store": "tune.Session",
    "tune.Table": "tune.Session",
    "tune.Trial": "tune.Session",
    "tune.Tuned": "tune.Session",
    "tune.write_report": "tune.Session",
}
# Examples that run in a process of their own, with its environment.
NEW_CACHE = {"KERNWRIGHT_CACHE_DIR": "cache"}
IN_A_PROCESS = {
    "TensorMap": {"KERNWRIGHT_SIM_CAPABILITY": "9.0"},
    **{f"cache.{name}": NEW_CACHE for name in kw.cache.__all__},
    "tune.library": {},  # these two change the choices of the process
    "tune.products": {},
}
NOT_RUN = {"memory.torch_allocator"}  # needs torch and a GPU
# Public classes without an example.
NO_EXAMPLE = {
    "Gguf": "reads a file that this package does not write",
    "tune.Cluster": "starts Ray",
}


class Results(doctest.OutputChecker):
    """A line without a result only has to run."""

    def check_output(self, want, got, optionflags):
        return not want or super().check_output(want, got, optionflags)


def run_example(name, space=None):
    """Runs the examples of a name and returns their variables."""
    if name in GOES_ON:
        space = run_example(GOES_ON[name], space)
    if space is None:
        space = {"kw": kw, "np": np, "n": 256, "x": kw.ones(512), "y": kw.ones(512)}
        space["saxpy"], space["address"] = kw.kernel(SAXPY), space["x"].ptr
    kernel = {"Pointer": TAKE, "strided": COUNT}.get(name)
    space["kernel"] = kw.kernel(kernel or "__global__ void k(float* x, float* y, int n) {}")
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(NAMES[name]), space, name, "", 0)
    runner = doctest.DocTestRunner(Results(), optionflags=doctest.NORMALIZE_WHITESPACE)
    found = []
    runner.run(test, out=found.append, clear_globs=False)
    assert not runner.failures, "".join(found)
    return test.globs


@pytest.mark.parametrize("name", [n for n in EXAMPLES if n not in {*IN_A_PROCESS, *NOT_RUN}])
def test_examples_are_true(name, sim, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_example(name)


@pytest.mark.parametrize("name", IN_A_PROCESS)
def test_examples_in_a_process_are_true(name, tmp_path):
    here = str(pathlib.Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {here!r}); import test_docstrings as tests; "
    code += f"tests.run_example({name!r})"
    environment = os.environ | {"KERNWRIGHT_DEVICE": "sim"} | IN_A_PROCESS[name]
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)


def test_every_public_class_has_an_example():
    missing = []
    for name, value in NAMES.items():
        ours = inspect.isclass(value) and value.__module__.startswith("kernwright")
        # Errors are shown by docs/errors.md, whose code is tested as well.
        if ours and not issubclass(value, BaseException) and name not in EXAMPLES:
            missing.append(name)
    assert sorted(missing) == sorted(NO_EXAMPLE)


def is_function(name, value):
    """Functions of a namespace, and methods of arrays; those of other classes are shown there."""
    owner = name.rpartition(".")[0]
    shown = owner in ("", "Array", *MODULES)
    return shown and callable(value) and not inspect.isclass(value)


def test_every_public_function_has_an_example():
    functions = {name for name, value in NAMES.items() if is_function(name, value)}
    assert len(functions) > 400
    assert sorted(functions - set(EXAMPLES)) == []


def torch_names():
    """Public definitions of kernwright.torch and their methods; torch need not be installed."""
    for path in sorted((PACKAGE / "torch").glob("_[a-z]*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        public = [ast.literal_eval(each.value) for each in tree.body if is_all(each)]
        nodes = {node.name: node for node in tree.body if hasattr(node, "name")}
        for name in (name for names in public for name in names):
            yield name, nodes[name]
            for each in nodes[name].body if isinstance(nodes[name], ast.ClassDef) else ():
                if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
                    yield f"{name}.{each.name}", each


def is_all(node):
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def test_names_of_torch_have_docstrings_and_examples():
    """test_torch_ops.py runs the examples."""
    names = dict(torch_names())
    assert len(names) > 45
    docs = {name: ast.get_docstring(node) or "" for name, node in names.items()}
    assert [name for name, doc in docs.items() if not doc.strip()] == []
    assert [name for name, doc in docs.items() if "." not in name and ">>>" not in doc] == []


def test_a_wrong_example_is_noticed(sim, monkeypatch):
    wrong = types.SimpleNamespace(__doc__=">>> n + 1\n256")
    monkeypatch.setitem(NAMES, "wrong", wrong)
    with pytest.raises(AssertionError, match="257"):
        run_example("wrong")


def test_there_are_examples():
    assert len(EXAMPLES) > 500


def test_kernels_show_their_parameters():
    saxpy = kw.kernel(SAXPY)
    expected = "<Kernel saxpy(float a, const float* x, float* y, int n)>"
    assert repr(saxpy) == expected  # not compiled
    saxpy.compile()
    assert repr(saxpy) == expected
    generic = kw.kernel("template <typename T> __global__ void f(T* x) {}", name="f<float>")
    assert repr(generic) == "<Kernel f<float>(T* x)>"
    generic.compile()
    assert repr(generic) == "<Kernel f<float>(float* x)>"


@pytest.mark.parametrize("name", ["tuned", "online"])
def test_what_tuning_adds_to_kernels_takes_what_its_class_takes(name):
    method = inspect.signature(getattr(kw.Kernel, name)).parameters
    made = inspect.signature(getattr(kw.tune, name.capitalize())).parameters
    assert list(method)[1:] == list(made)[1:]  # self is the kernel
    for each in list(made)[1:]:
        assert method[each].kind == made[each].kind
        assert method[each].default in (made[each].default, ...)
