"""What a session tunes: checked as a whole, and known by its key."""

import numpy as np
import pytest

from kernwright import _core, tune
from kernwright.errors import Error, InvalidArgument
from kernwright.tune._launch_rule import LaunchRule
from kernwright.tune._sessions.subject import Subject

TEXT = "__global__ void scale(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= F; }"
ARGS = (np.ones(8, np.float32), 8)


def subject(text=TEXT, args=ARGS, **more):
    space = tune.Space(F=[2, 3], BLOCK=[32, 64])
    given = {"cluster": None, "problem": None, "constants": None, "default": None, **more}
    return Subject(text, space, args, LaunchRule("1", "BLOCK", 0), **given)


def test_the_first_configuration_stands_for_all_or_the_default_does():
    first = subject()
    assert first.name == "scale"
    assert first.default_index is None and first.reference_index == 0
    chosen = subject(default={"F": 3, "BLOCK": 64})
    assert chosen.default_index == chosen.reference_index == chosen.space.index(chosen.default)
    assert chosen.settings(None)["default"] == chosen.default_index


def test_the_planner_gives_the_launch_of_each_configuration():
    made = subject()
    plan = made.planner()
    blocks = {plan(index)[3][0] for index in range(len(made.space))}
    assert blocks == {32, 64}


def test_the_key_is_that_of_the_text_and_the_space():
    def key(**more):
        return subject(**more).key(_core.current_device(), "cold", "time")

    assert key() == key()
    assert key(text=TEXT.replace("*=", "+="))["source"] != key()["source"]


def test_what_no_configuration_can_run_is_refused():
    with pytest.raises(Error, match="takes 2 arguments"):
        subject(args=ARGS[:1])
    with pytest.raises(Error, match="nowhere"):
        subject(constants={"nowhere": np.ones(1)})


def test_a_verifier_is_made_where_something_is_to_be_compared():
    made = subject()
    assert made.verifier(None, None, None, None) is None
    assert made.verifier("default", None, None, None).wants_default


@pytest.mark.parametrize(
    ("declared", "most"),
    [
        ("__constant__ float c[4];", 16),
        ("__device__ __constant__ float c[2][F];", 24),
        ("#define N 3\nstatic __constant__ unsigned char c[(N + 1) * 2];", 8),
        ("constexpr int N = 4u;\n__constant__ double c[N / F];", 16),
        ("namespace a { __constant__ float4 c; }", 16),
        ("__device__ unsigned long long c;", 8),
        ("#define N 2\n#define M N * 2\n__constant__ int c[M]; // int c[9];", 16),
        ("#ifndef F\n#define F 100\n#endif\n__constant__ float c[F];", 12),
    ],
)
def test_contents_that_no_configuration_has_room_for_are_refused(declared, most):
    text = f"{declared}\n{TEXT}"
    name = "a::c" if "namespace" in declared else "c"
    subject(text, constants={name: np.zeros(most, np.uint8)})
    with pytest.raises(InvalidArgument, match=f"{most + 1} bytes.* has {most} at most"):
        subject(text, constants={name: np.zeros(most + 1, np.uint8)})


@pytest.mark.parametrize(
    "declared",
    [
        "struct S { int a[50]; };\n__constant__ S c;",
        "#if F == 2\n__constant__ int c[3];\n#else\n__constant__ int c[30];\n#endif",
        "#if F == 2\n#define N 3\n#else\n#define N 30\n#endif\n__constant__ int c[N];",
        "#define ROOM(n) n * 30\n__constant__ int c[ROOM(F)];",
        "__constant__ int c[sizeof(int) * 10];",
        '#define N "\\d\\1"\n__constant__ int c[N];',
        "\n".join(f"#define N{i} (N{i + 1} + N{i + 1} + N{i + 1})" for i in range(40))
        + "\n#define N40 1\n__constant__ char c[N0];",
        "#define N M\n#define M N\n__constant__ char c[N];",
        "__constant__ int c[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};",
        "__constant__ int a[2], c[20];",
        '#include "elsewhere.h"\n__constant__ int c[N];',
    ],
)
def test_what_the_text_does_not_tell_is_left_to_the_trials(declared):
    subject(f"{declared}\n{TEXT}", constants={"c": np.zeros(50, np.uint8)})
