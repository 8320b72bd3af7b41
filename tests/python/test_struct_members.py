"""Members of members of structs, against layouts that the text tells by the rules of C."""

import ctypes
import random
import uuid

import numpy as np
import pytest

import kernwright as kw

TEXT = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
struct V { float x, y, z; };
struct P { V pos; int id; };
struct Mesh { P corners[2]; V grid[2][3]; short n; };
namespace ns {
template <class T, int N> struct Arr { T v[N]; struct Inner { T a; char c; } inner; };
}
class Hidden { float a, b; public: int open; };
class Closed { float a; int b; };
union U { int i; float f; };
struct Bits { int a : 3; int b : 5; float f; };
struct Base { int base; };
struct Mid : Base { V v; };
struct Derived : Mid { double own; };
struct Empty {};
struct alignas(32) Wide { char c; alignas(16) V v; };
struct Node { Node* next; P p; Node* others[2]; };
struct Anon {
  struct { float x, y; } in;
  union { int i; double d; };
  struct { short s1, s2; };
};
struct Numbers {
  float3 f3; float4 f4; half h; __half2 h2; __nv_bfloat16 bf; void* p; int (*fn)(int);
  enum E : short { A } e; enum class F { B } g; bool ok; char name[8];
  const int k; volatile float vol;
  unsigned long long big; const V cv; Empty empty;
};
struct Untold { U u; Closed closed[2]; Bits bits; __int128 wide; V v; };
struct Virtual { virtual __device__ void f() {} int a; V v; };
struct Over : V { int x; };
extern "C" {
__global__ void p(P a, const P* b, float* o) { o[0] = a.pos.y + b[1].pos.z + a.id; }
__global__ void mesh(Mesh a) {}
__global__ void arr(ns::Arr<double, 2> a, const ns::Arr<char, 3>* b) {}
__global__ void hidden(Hidden a, Closed b) {}
__global__ void un(U a, float* o) { *o = a.f; }
__global__ void bits(Bits a) {}
__global__ void derived(Derived a) {}
__global__ void empty(Empty a) {}
__global__ void wide(Wide a) {}
__global__ void node(Node* a) {}
__global__ void anon(Anon a) {}
__global__ void numbers(const Numbers* a) {}
__global__ void untold(Untold a, const Untold* b) {}
__global__ void virt(Virtual* a) {}
__global__ void over(Over a) {}
__global__ void nothing(struct Nowhere* a, float** b, void* c, __int128 d, P** e) {}
}
__device__ P var[3];
__constant__ U uvar;
"""
V = [("x", "f4"), ("y", "f4"), ("z", "f4")]
P = [("pos", V), ("id", "i4")]


def at(itemsize, *members):
    """A dtype of (name, format, offset)."""
    names, formats, offsets = zip(*members, strict=True)
    return np.dtype(
        {
            "names": names,
            "formats": [np.dtype(form) for form in formats],
            "offsets": offsets,
            "itemsize": itemsize,
        }
    )


def arr(number, size, n):
    inner = at(2 * size, ("a", number, 0), ("c", "i1", size))
    return at((n + 2) * size, ("v", (number, n), 0), ("inner", inner, n * size))


LAYOUTS = {
    "p": (P, ()),
    "mesh": (
        at(108, ("corners", (P, 2), 0), ("grid", (V, (2, 3)), 32), ("n", "i2", 104)),
        ("bytes 106:108",),
    ),
    "arr": (arr("f8", 8, 2), ("bytes 9:16 of inner",)),
    "hidden": (at(12, ("open", "i4", 8)), ("bytes 0:8",)),
    "un": (at(4, ("i", "i4", 0), ("f", "f4", 0)), ("bytes 0:4",)),
    "bits": (at(8, ("f", "f4", 4)), ("bytes 0:4",)),
    "derived": (at(24, ("base", "i4", 0), ("v", V, 4), ("own", "f8", 16)), ()),
    "empty": (None, ("bytes 0:1",)),
    "wide": (at(32, ("c", "i1", 0), ("v", V, 16)), ("bytes 1:16", "bytes 28:32")),
    "node": (
        at(40, ("next", "u8", 0), ("p", P, 8), ("others", ("u8", 2), 24)),
        (),
    ),
    "anon": (
        at(
            24,
            ("in", V[:2], 0),
            ("i", "i4", 8),
            ("d", "f8", 8),
            ("s1", "i2", 16),
            ("s2", "i2", 18),
        ),
        ("bytes 8:16", "bytes 20:24"),
    ),
    "virt": (at(24, ("a", "i4", 8), ("v", V, 12)), ("bytes 0:8",)),
    "over": (at(16, ("y", "f4", 4), ("z", "f4", 8), ("x", "i4", 12)), ("bytes 0:4",)),
    "untold": (
        at(
            64,
            ("u", at(4, ("i", "i4", 0), ("f", "f4", 0)), 0),
            ("closed", ("V8", 2), 4),
            ("bits", at(8, ("f", "f4", 4)), 20),
            ("wide", "V16", 32),
            ("v", V, 48),
        ),
        ("bytes 28:32", "bytes 60:64", "u", "closed", "bytes 0:4 of bits", "wide"),
    ),
}


@pytest.fixture(scope="module")
def module():
    return kw.module(TEXT, extra=["--device-int128"])


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_dtype_has_members_of_members(module, name):
    dtype, opaque = LAYOUTS[name]
    found = module[name].parameters[0]
    assert found.dtype == (dtype if dtype is None else np.dtype(dtype))
    assert found.opaque == opaque
    if name == "arr":
        assert module[name].parameters[1].dtype == arr("i1", 1, 3)


def test_numbers_of_all_kinds_are_members(module):
    found = module["numbers"].parameters[0].dtype
    kinds = {
        "f3": ("f4", 3),
        "f4": ("f4", 4),
        "h": "f2",
        "h2": ("f2", 2),
        "p": "u8",
        "fn": "u8",
        "e": "i2",
        "g": "i4",
        "ok": "?",
        "name": ("i1", 8),
        "k": "i4",
        "vol": "f4",
        "big": "u8",
        "cv": V,
    }
    for name, kind in kinds.items():
        assert found[name] == np.dtype(kind), name
    assert str(found["bf"]) == "bfloat16" and "empty" not in found.names
    offsets = [found.fields[name][1] for name in ("f3", "f4", "h", "h2", "bf", "p", "fn", "e", "g")]
    assert offsets == [0, 16, 32, 36, 40, 48, 56, 64, 68]


def test_nothing_is_opaque_that_has_no_layout(module):
    assert [p.opaque for p in module["nothing"].parameters] == [()] * 5
    assert module["nothing"].parameters[4].dtype is None
    assert module["p"].parameters[2].opaque == ()


WRONG = [
    ([("pos", "i4", 3), ("id", "i4")], r"pos\.x at offset 0 is float32 in the kernel, int32 in"),
    ([("pos", [("x", "f4"), ("y", "i4"), ("z", "f4")]), ("id", "i4")], r"pos\.y at offset 4 is fl"),
    ([("pos", [("x", "f4"), ("z", "f4"), ("y", "f4")]), ("id", "i4")], r"pos\.z is at offset 8 in"),
    (
        [("pos", "f4", 4)],
        r"id at offset 12 is int32 in the kernel, float32 in the value \(pos\[3\]",
    ),
    ([("id", "i4"), ("pos", "f4", 3)], "id is at offset 12 in the kernel, at offset 0 in the val"),
    ([("pos", "f8"), ("z", "f4"), ("id", "i4")], r"pos\.x at offset 0 is float32.*float64"),
    ([("a", "f4"), ("b", "f4"), ("c", "i2", 2), ("id", "i4")], r"pos\.z at offset 8 .* int16"),
    ([("a", "V4"), ("b", "f4", 2), ("c", ">i4")], r"id at offset 12 is int32 in the kernel, >i4"),
    ([("a", "f4"), ("b", [("c", [("d", "f4"), ("e", "u4")])]), ("id", "i4")], r"uint32.*b\.c\.e"),
]
RIGHT = [
    P,
    [("pos", "f4", 3), ("id", "i4")],
    [("pos", "f4", (3, 1)), ("id", "i4")],
    [("pos", "V12"), ("id", "i4")],
    [("pos", "S12"), ("id", "V4")],
    [("xy", "c8"), ("z", "f4"), ("id", "i4")],
    [("a", "f4"), ("b", [("c", [("d", "f4"), ("e", "f4")])]), ("id", "i4")],
    [("whole", P)],
]


@pytest.mark.parametrize("fields, words", WRONG, ids=str)
def test_other_members_of_members_are_refused(module, fields, words):
    dtype, out = np.dtype(fields), kw.zeros(1)
    right = np.zeros(2, P)
    for _ in range(2):
        with pytest.raises(kw.ArgumentError, match=r"parameter 1 \(P\).*" + words):
            module["p"][1, 1](np.zeros((), dtype), kw.In(right), out)
        with pytest.raises(kw.ArgumentError, match=r"parameter 2 \(const P\*\).*" + words):
            module["p"][1, 1](right[0], kw.In(np.zeros(2, dtype)), out)


@pytest.mark.parametrize("fields", RIGHT, ids=str)
def test_the_same_members_in_other_groups_are_taken(module, fields):
    values = np.zeros(2, P)
    values["pos"]["y"], values["pos"]["z"], values["id"] = 2, 3, 4
    given, out = values.view(fields), kw.zeros(1)
    for _ in range(2):
        out[...] = 0
        module["p"][1, 1](given[0], kw.In(given), out)
        assert out.item() == 9


def test_ctypes_structures_are_compared_at_all_levels(module):
    class Point(ctypes.Structure):
        _fields_ = [(name, ctypes.c_float) for name in "xyz"]

    class Whole(ctypes.Structure):
        _fields_ = (("pos", ctypes.c_int * 3), ("id", ctypes.c_int))

    class Right(ctypes.Structure):
        _fields_ = (("pos", Point), ("id", ctypes.c_int))

    out, values = kw.zeros(1), np.zeros(2, P)
    module["p"][1, 1](Right((1, 2, 3), 4), kw.In(values), out)
    assert out.item() == 6
    with pytest.raises(kw.ArgumentError, match=r"pos\.x at offset 0 is float32"):
        module["p"][1, 1](Whole((1, 2, 3), 4), kw.In(values), out)


def test_unions_are_bytes_but_their_names_are_not_mistaken(module):
    out = kw.zeros(1)
    for value in (np.float32(2), np.array((2,), [("f", "f4")]), np.float32(2).tobytes()):
        out[...] = 0
        module["un"][1, 1](value, out)
        assert out.item() == 2
    module["un"][1, 1](np.int32(1), out)
    with pytest.raises(kw.ArgumentError, match="f at offset 0 is float32 in the kernel, int32"):
        module["un"][1, 1](np.array((2,), [("f", "i4")]), out)
    with pytest.raises(kw.ArgumentError, match="4 bytes"):
        module["un"][1, 1](np.float64(2), out)


def untold(*, u="f4", closed=("i4", (2, 2)), bits="i4", wide="u8", v=V):
    return at(
        64,
        ("u", u, 0),
        ("closed", closed, 4),
        ("bits", at(8, ("any", bits, 0), ("f", "f4", 4)), 20),
        ("wide", (wide, 2), 32),
        ("v", v, 48),
    )


def test_of_what_is_opaque_sizes_are_compared(module):
    kernel = module["untold"]
    for dtype in (untold(), untold(u="i2,i2", closed=("f8", 2), bits="V4", wide="f8")):
        kernel[1, 1](np.zeros((), dtype), kw.In(np.zeros(3, dtype)))
    for wrong, words in (
        (untold(closed=("f4", 3)), "closed at offset 4 has 16 opaque bytes in the kernel, 12 in"),
        (untold(wide="u4"), "wide at offset 32 has 16 opaque bytes in the kernel, 8 in the val"),
        (untold(v="f4,f4,i4"), r"v\.z at offset 56 is float32 in the kernel, int32"),
        (untold(closed=("f4", 5)), "closed at offset 4 has 16 opaque bytes in the kernel, 20 in"),
    ):
        with pytest.raises(kw.ArgumentError, match=r"parameter 1 \(Untold\).*" + words):
            kernel[1, 1](np.zeros((), wrong), kw.In(np.zeros(3, untold())))
        with pytest.raises(kw.ArgumentError, match=r"parameter 2 \(const Untold\*\).*" + words):
            kernel[1, 1](np.zeros((), untold()), kw.In(np.zeros(3, wrong)))


def test_variables_have_members_of_members(module):
    var, other = module.symbol("var"), module.symbol("uvar")
    assert var.dtype == np.dtype(P) and var.shape == (3,) and var.opaque == ()
    assert other.opaque == ("bytes 0:4",)
    values = np.zeros(3, P)
    values["pos"]["z"] = [1, 2, 3]
    var[...] = values
    assert var.numpy()["pos"]["z"].tolist() == [1, 2, 3]
    with pytest.raises(kw.ArgumentError, match=r"pos\.x at offset 0 is float32 in the kernel"):
        var[...] = np.zeros(3, [("pos", "i4", 3), ("id", "i4")])
    assert var.numpy()["pos"]["z"].tolist() == [1, 2, 3]


def test_a_dtype_for_a_variable_is_compared(module):
    flat = [("pos", "f4", 3), ("id", "i4")]
    assert module.symbol("var", dtype=flat).numpy()["pos"].shape == (3, 3)
    assert module.symbol("var", dtype=[("all", flat, 3)]).shape == (1,)
    assert module.symbol("var", dtype=np.dtype("V16")).shape == (3,)
    assert module.symbol("var", dtype="float32").shape == (12,)
    for wrong in ([("pos", "i4", 3), ("id", "i4")], [("all", [("pos", "f4", 4)], 3)]):
        with pytest.raises(kw.ArgumentError, match=r"var has another layout.* in the kernel"):
            module.symbol("var", dtype=wrong)
    with pytest.raises(kw.ArgumentError, match="items have 8 bytes, the struct has 16"):
        module.symbol("var", dtype=[("a", "f4"), ("b", "f4")])


NUMBERS = {
    "char": "i1",
    "short": "i2",
    "int": "i4",
    "long long": "i8",
    "float": "f4",
    "double": "f8",
}


def random_struct(rng, depth):
    """Texts of structs, the last one's name, and NumPy's own layout of it."""
    text, members, fields = "", "", []
    for i in range(rng.randint(1, 4)):
        name, extents = f"m{depth}_{i}", tuple(rng.choice(((), (), (2,), (2, 3))))
        if depth and rng.random() < 0.5:
            inner, kind, form = random_struct(rng, depth - 1)
            text += inner
        else:
            kind = rng.choice(list(NUMBERS))
            form = NUMBERS[kind]
        members += f"  {kind} {name}{''.join(f'[{n}]' for n in extents)};\n"
        fields.append((name, form, extents))
    struct = f"S{rng.getrandbits(60):x}"
    return f"{text}struct {struct} {{\n{members}}};\n", struct, np.dtype(fields, align=True)


def changed(rng, dtype):
    """The dtype with one number of another type."""
    names = list(dtype.names)
    k = rng.randrange(len(names))
    formats = []
    for i, name in enumerate(names):
        base, shape = dtype[name].subdtype or (dtype[name], ())
        if i == k:
            others = {"i1": "V1", "i2": "f2", "i4": "f4", "i8": "f8", "f4": "i4", "f8": "c8"}
            base = changed(rng, base) if base.names else np.dtype(others[base.str[1:]])
        formats.append(np.dtype((base, shape)))
    offsets = [dtype.fields[name][1] for name in names]
    return at(dtype.itemsize, *zip(names, formats, offsets, strict=True))


def is_all_bytes(dtype, other):
    """Whether they differ in nothing but bytes for a char."""
    if dtype.names is None:
        base, given = dtype.base, other.base
        return base == given or given.kind == "V" if not base.names else is_all_bytes(base, given)
    return all(is_all_bytes(dtype[name], other[name]) for name in dtype.names)


def test_random_structs_have_the_layout_that_numpy_gives_them():
    rng = random.Random(7)
    structs = [random_struct(rng, 2) for _ in range(12)]
    text = f"// {uuid.uuid4()}: in no cache\n" + "".join(struct[0] for struct in structs)
    for i, (_, name, _) in enumerate(structs):
        text += f"__global__ void k{i}({name} a, const {name}* b) {{}}\n"
    made = kw.module(text)
    assert made["k0"].report().attempts == 1
    for i, (_, _, dtype) in enumerate(structs):
        kernel = made[f"k{i}"]
        for parameter in kernel.parameters:
            assert parameter.dtype == dtype
        value = np.zeros((), dtype)
        kernel[1, 1](value, kw.In(np.zeros(2, dtype)))
        for _ in range(4):
            wrong = changed(rng, dtype)
            if is_all_bytes(dtype, wrong):
                kernel[1, 1](np.zeros((), wrong), kw.In(np.zeros(2, wrong)))
                continue
            for arguments in ((np.zeros((), wrong), value), (value, np.zeros((), wrong))):
                with pytest.raises(kw.ArgumentError, match="in the kernel"):
                    kernel[1, 1](arguments[0], kw.In(np.atleast_1d(arguments[1])))


def test_long_arrays_of_structs_are_compared_as_a_whole():
    made = kw.kernel("""
    struct Q { short a; float b; }; struct T { int n; Q q[5000]; };
    __global__ void k(const T* t, float* o) { *o = t->q[4999].b; }
    """)
    dtype = np.dtype([("n", "i4"), ("q", np.dtype([("a", "i2"), ("b", "f4")], align=True), 5000)])
    values, out = np.zeros(1, dtype), kw.zeros(1)
    values["q"]["b"][0, 4999] = 5
    made[1, 1](kw.In(values), out)
    assert made.parameters[0].dtype == dtype and out.item() == 5
    wrong = np.dtype([("n", "i4"), ("q", np.dtype([("a", "i2"), ("b", "i4")], align=True), 5000)])
    with pytest.raises(kw.ArgumentError, match=r"q\[0\]\.b at offset 8 is float32"):
        made[1, 1](kw.In(np.zeros(1, wrong)), out)
    with pytest.raises(kw.ArgumentError, match="more members than can be compared"):
        made[1, 1](kw.In(np.zeros(1, [("n", "i4"), ("q", "f4", 10000)])), out)


def test_members_of_eight_and_sixteen_bits_of_a_float_are_no_bytes():
    made = kw.kernel("""
    #include <cuda_bf16.h>
    struct B { __nv_bfloat16 h[2]; };
    __global__ void k(B b, float* o) { *o = __bfloat162float(b.h[1]); }
    """)
    value, out = np.zeros((), made.parameters[0].dtype), kw.zeros(1)
    value["h"][1] = 3
    made[1, 1](value, out)
    assert out.item() == 3
    made[1, 1](np.zeros((), [("h", "V2", 2)]), out)
    for wrong in ("i2", "f2"):
        with pytest.raises(kw.ArgumentError, match=r"h\[0\] at offset 0 is bfloat16 in the kernel"):
            made[1, 1](np.zeros((), [("h", wrong, 2)]), out)


def test_a_type_of_the_text_alone_has_its_members_too():
    made = kw.module("""
    struct { struct { float x; int y; } in[2]; } __device__ nameless;
    namespace { struct Q { struct R { short a; int b; } r; }; }
    class S {
      struct Inner { int i; float f; };
     public:
      struct Outer { Inner inner; char c; };
    };
    __global__ void k(Q q, S::Outer s, float* o) { *o = nameless.in[1].x + q.r.b + s.inner.f; }
    """)
    inner = np.dtype([("x", "f4"), ("y", "i4")])
    assert made.symbol("nameless").dtype == np.dtype([("in", inner, 2)])
    q, s, _ = made["k"].parameters
    assert q.dtype == at(8, ("r", at(8, ("a", "i2", 0), ("b", "i4", 4)), 0))
    assert s.dtype == at(12, ("inner", [("i", "i4"), ("f", "f4")], 0), ("c", "i1", 8))
