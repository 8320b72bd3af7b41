"""Calls of a session that no configuration can take: told at once, before the first trial."""

import warnings

import numpy as np
import pytest
import tune_sessions
from tune_sessions import SCALE, N, X, arguments, expected, session, statuses

import kernwright as kw
from kernwright.tune import Session, Space
from kernwright.tune._sessions.signature import declared_parameters

ADD = """
__global__ void vector_add(float* c, const float* a, const float* b, int n) {
  int i = blockIdx.x * block_size_x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
"""
WEIGHT = "__constant__ float weight[4];" + SCALE.replace("a * x", "weight[0] * x")


def tuned_by_kernel_tuner_s_function(source=ADD, name="vector_add", count=4, **more):
    args = [np.zeros_like(X), X, X, np.int32(N)][:count]
    space = {"block_size_x": [32, 64, 128]}
    return kw.tune.tune_kernel(name, source, N, args, space, quiet=True, **more)[0]


@pytest.mark.parametrize("source", [ADD, lambda config: ADD])
def test_a_missing_argument(source):
    said = r"takes 4 arguments \(c, a, b, n\), the session has 3"
    with pytest.raises(kw.ArgumentError, match=said):
        tuned_by_kernel_tuner_s_function(source, count=3)
    assert len(tuned_by_kernel_tuner_s_function(source)) == 3


def test_a_wrong_count_is_told_when_the_session_is_made():
    with pytest.raises(kw.ArgumentError, match=r"takes 4 arguments \(x, y, a, n\), .* has 5"):
        session(args=(*arguments(), 1))
    with pytest.raises(kw.ArgumentError, match=r"takes 1 argument \(x\), the session has 0"):
        Session("__global__ void f(float* x) {}", Space(B=[1]), (), grid="B", block=1)


def test_arguments_of_a_wrong_kind_end_a_session_whose_text_is_made_by_a_callable():
    with pytest.raises(kw.ArgumentError, match="float64"):
        session(lambda config: SCALE, args=(X, X.astype(np.float64), 2.0, N), verify=None).run()
    # What a callable gives for some configurations alone is a failure of theirs.
    more = SCALE.replace("int n", "int n, int m")
    made = session(lambda config: more if config["VEC"] == 2 else SCALE, verify=None)
    made.run()
    assert {s for (_, vec), s in statuses(made).items() if vec == 1} == {"correct"}
    assert {s for (_, vec), s in statuses(made).items() if vec == 2} == {"runtime"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (SCALE, ["x", "y", "a", "n"]),
        ("#if VEC > 1\n#define T float4\n#endif\n__global__ void k(T* x, int n) {}", ["x", "n"]),
        ("__global__ void k(void) {}", []),
        ("__global__ void k() {}", []),
        ("__global__ void k(Pair<float, 4> p, int const n = 3) {}", ["p", "n"]),
        ("__global__ void k(float* x /* , int n */) {} // k(int", ["x"]),
        ("namespace s { template <int N> __global__ void k(float* x) {} }", ["x"]),
        ("#define ARGS float* x, int n\n__global__ void k(ARGS) {}", None),
        ("#define REST , int n\n__global__ void k(float* x REST) {}", None),
        ("__global__ void k(float* x\n#if VEC\n, int n\n#endif\n) {}", None),
        ("#if VEC\n__global__ void k(int n) {}\n#else\n__global__ void k() {}\n#endif", None),
        ("template <class... T> __global__ void k(T... values) {}", None),
        ("__global__ void k(float (*f)(int)) {}", None),
        ("__global__ void k(float*, int n) {}", None),
        ("KERNEL(k)(float* x) {}", None),
    ],
)
def test_parameters_are_told_from_the_text(text, names):
    name = "scale" if text is SCALE else "s::k<3>" if "namespace" in text else "k"
    assert declared_parameters(text, name, {}, {}) == names


def test_macros_out_of_sight_may_stand_for_parameters():
    text = '#include "own.h"\n__global__ void k(COMMON int n) {}'
    assert declared_parameters(text, "k", {}, {}) == ["n"]
    assert declared_parameters(text, "k", {}, {}, is_open=True) is None
    text = text.replace("COMMON", "T* x,")
    assert declared_parameters(text, "k", {}, {}, is_open=True) == ["x", "n"]
    more = SCALE.replace("int n)", "int n MORE)")
    tuned = session(
        more, Space(BLOCK=[32], VEC=[1], MORE=["", ", int m"]), verify=None, problem={"n": N}
    )
    tuned.run()
    assert sorted(trial.status for trial in tuned.trials) == ["correct", "runtime"]


def test_a_kernel_that_the_text_does_not_have():
    with pytest.raises(kw.NameNotFound, match="no kernel scales; there is: scale"):
        session(kw.kernel(SCALE, "scales"))
    with pytest.raises(kw.NameNotFound, match="no kernel add; there is: vector_add"):
        tuned_by_kernel_tuner_s_function(name="add")


def test_variables_that_the_text_does_not_have():
    weight = np.full(4, 2, np.float32)
    with pytest.raises(kw.NameNotFound, match=r"'weights' to fill .* it has weight"):
        session(WEIGHT, constants={"weights": weight})
    with pytest.raises(kw.NameNotFound, match="it has none"):
        session(constants={"n": weight})
    with pytest.raises(kw.NameNotFound, match="it has none"):
        tuned_by_kernel_tuner_s_function(cmem_args={"weight": weight})


@pytest.mark.parametrize(
    ("declared", "name"),
    [
        ("__constant__ float weight[4];", "weight"),
        ("namespace own { __device__ float weight[4]; }", "own::weight"),
        ("template <class T> __constant__ T weight[4];", "weight<float>"),
        ("#define HOLD(name) __constant__ float name[4];\nHOLD(weight)", "weight"),
        ("#if VEC > 0\n__constant__ float weight[4];\n#endif", "weight"),
    ],
)
def test_variables_are_found_however_they_are_declared(declared, name):
    text = declared + "\n" + SCALE.replace("a * x", f"{name}[0] * x")
    tuned = session(text, constants={name: np.full(4, 2, np.float32)}, budget={"evaluations": 2})
    assert tuned.run() is not None


def test_variables_of_a_file_may_be_anywhere(tmp_path):
    (tmp_path / "held.h").write_text("__constant__ float weight[4];\n")
    (tmp_path / "scale.cu").write_text('#include "held.h"\n' + WEIGHT.split(";", 1)[1])
    weight = np.full(4, 2, np.float32)
    tuned = session(tmp_path / "scale.cu", constants={"weight": weight})
    assert tuned.run() is not None


@pytest.mark.parametrize("name", ["n", "scale"])
def test_a_parameter_with_a_name_of_the_kernel_s_own(name):
    with pytest.raises(kw.InvalidArgument, match=f"parameter {name} has the name of"):
        session(of=Space({"BLOCK": [32], "VEC": [1], name: [1, 2]}))


def test_a_text_in_place_of_a_parameter_s_name_is_the_caller_s_business():
    tuned = session(of=Space(BLOCK=[32], VEC=[1], a=["a_", "b_"]), verify=expected)
    assert tuned.run() is not None


@pytest.mark.parametrize(
    ("progress", "said"),
    [(True, 'is "live".* got True'), ("lve", "is \"live\".* got 'lve'"), (5, "observes nothing")],
)
def test_progress_that_is_none(progress, said):
    with pytest.raises(kw.ArgumentError, match=said):
        session().run(progress=progress)


def test_a_source_that_is_the_path_of_no_file(tmp_path):
    with pytest.raises(kw.InvalidArgument, match=r"kernel_source: there is no file 'none\.cu'"):
        tuned_by_kernel_tuner_s_function("none.cu")
    path = tmp_path / "add.cu"
    path.write_text(ADD)
    assert len(tuned_by_kernel_tuner_s_function(str(path))) == 3


def online(of, **more):
    launch = {"grid": 1, "block": "BLOCK", **more}
    return kw.kernel(SCALE).online(of, **launch)


@pytest.mark.parametrize("make", [lambda of, **more: session(of=of, **more), online])
def test_unused_parameters_are_told_where_the_call_stands(make):
    of = Space(BLOCK=[32], VEC=[1], LEFT=[1, 2])
    with pytest.warns(RuntimeWarning, match="does not use LEFT") as caught:
        make(of)
    assert {warning.filename for warning in caught} <= {__file__, tune_sessions.__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(of, cluster="LEFT", **({} if make is online else {"verify": None}))


def test_online_tuning_refuses_names_of_the_kernel_s_own():
    with pytest.raises(kw.InvalidArgument, match="parameter n has the name of a parameter"):
        online(Space(BLOCK=[32], VEC=[1], n=[1, 2]))


def test_extents_of_parameters_are_no_names():
    text = "__global__ void f(float x[TILE], V<W<T>, VEC> n, float y[TILE][4]) {}"
    assert declared_parameters(text, "f", {}, {}) == ["x", "n", "y"]
    assert declared_parameters(text.replace(" n,", ","), "f", {}, {}) is None


@pytest.mark.parametrize(
    "declared", ["#define C __constant__\nC float w[4];", "#define T w\n__constant__ float T[4];"]
)
def test_constants_that_macros_declare_are_there(declared):
    text = declared + SCALE.replace("a * x", "w[0] * x")
    tuned = session(text, constants={"w": np.full(4, 2, np.float32)}, verify=None)
    assert tuned.run() is not None and set(statuses(tuned).values()) == {"correct"}


def test_a_callable_with_several_texts_is_not_refused_by_some():
    def text(config):
        return SCALE if config["BLOCK"] != 37 else "__constant__ float w[4];" + SCALE

    def other(config):
        return text(config) + f"// {config['BLOCK']}"

    of = Space(BLOCK=list(range(1, 65)), VEC=[1])
    session(other, of=of, constants={"w": np.ones(4, np.float32)}, verify=None)


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        (-1, r"cluster: -1; a cluster has at least 1 block along each axis"),
        (0, r"cluster: 0; a cluster has at least 1 block"),
        ((2, -3), r"cluster: -3; a cluster has at least 1 block"),
        ("VEC - 9", r"cluster: 'VEC - 9' gives -\d; a cluster has at least 1 block"),
        (lambda values: 0, r"cluster: 0; a cluster has at least 1 block"),
        (True, r"cluster is a number, an expression, .* got bool: cluster=True"),
        (1.5, r"cluster is a number, an expression, .* got float: cluster=1.5"),
        ((1, 1, 1, 1), r"cluster has 4 extents"),
        ("banana", r"banana"),
    ],
)
def test_a_wrong_cluster_is_told_when_the_session_is_made(cluster, words):
    with pytest.raises((kw.InvalidArgument, kw.ArgumentError, kw.NameNotFound), match=words):
        session(cluster=cluster)
