"""kernwright.torch against torch's own functions in float64; on CPU by the simulated device."""

import doctest
import importlib
import pkgutil

import pytest

import kernwright as kw

torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
kt = pytest.importorskip("kernwright.torch")
from torch_tensors import DEVICE, DTYPES, close, ids, rand, rms, turned  # noqa: E402

F = torch.nn.functional
ops = torch.ops.kernwright
COS, SIN = (t.to(DEVICE) for t in kt.rope_tables(5, 8))
TARGET = ids(11, 6)
TARGET[2] = -100
IDS = torch.tensor([[1, 4, 1], [0, 2, 6]], device=DEVICE)

# What differentiates: ours, torch's of the same tensors, their shapes.
PAIRS = {
    "softmax": (kt.softmax, lambda x: F.softmax(x, -1), [(3, 17)]),
    "softmax_dim": (lambda x: kt.softmax(x, 0, scale=0.5), lambda x: F.softmax(x / 2, 0), [(5, 4)]),
    "log_softmax": (kt.log_softmax, lambda x: F.log_softmax(x, -1), [(2, 3, 9)]),
    "rms_norm": (
        lambda x, w: kt.rms_norm(x, 24, w, 1e-5),
        lambda x, w: rms(x, w, 1e-5),
        [(2, 3, 24), (24,)],
    ),
    "rms_norm_residual": (
        lambda x, r, w: kt.rms_norm(x, (24,), w, 1e-5, residual=r),
        lambda x, r, w: (rms(x + r, w, 1e-5), x + r),
        [(5, 24), (5, 24), (24,)],
    ),
    "layer_norm": (
        lambda x, w, b: kt.layer_norm(x, (4, 5), w, b),
        lambda x, w, b: F.layer_norm(x, (4, 5), w, b),
        [(3, 4, 5), (4, 5), (4, 5)],
    ),
    "layer_norm_bare": (
        lambda x: kt.layer_norm(x, (4, 5)),
        lambda x: F.layer_norm(x, (4, 5)),
        [(3, 4, 5)],
    ),
    "layer_norm_bias": (
        lambda x, b: kt.layer_norm(x, 5, None, b),
        lambda x, b: F.layer_norm(x, (5,), None, b),
        [(3, 5), (5,)],
    ),
    "group_norm": (
        lambda x, w, b: kt.group_norm(x, 2, w, b),
        lambda x, w, b: F.group_norm(x, 2, w, b),
        [(2, 4, 3, 3), (4,), (4,)],
    ),
    "silu": (kt.silu, F.silu, [(7, 5)]),
    "gelu": (kt.gelu, F.gelu, [(33,)]),
    "gelu_tanh": (lambda x: kt.gelu(x, "tanh"), lambda x: F.gelu(x, approximate="tanh"), [(3, 3)]),
    "mish": (kt.mish, F.mish, [(9,)]),
    "quick_gelu": (kt.quick_gelu, lambda x: x * torch.sigmoid(1.702 * x), [(9,)]),
    "relu2": (kt.relu2, lambda x: F.relu(x).square(), [(9,)]),
    "swiglu": (kt.swiglu, lambda g, u: F.silu(g) * u, [(3, 6), (3, 6)]),
    "swiglu_packed": (
        kt.swiglu,
        lambda x: F.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1],
        [(2, 3, 12)],
    ),
    "geglu": (kt.geglu, lambda g, u: F.gelu(g, approximate="tanh") * u, [(4, 5), (4, 5)]),
    "reglu": (kt.reglu, lambda g, u: F.relu(g) * u, [(8,), (8,)]),
    "glu": (lambda x: kt.glu(*reversed(x.chunk(2, -1))), F.glu, [(3, 10)]),
    "bias_activation": (
        lambda x, b: kt.bias_activation(x, b, "silu"),
        lambda x, b: F.silu(x + b),
        [(6, 8), (8,)],
    ),
    "rope": (
        lambda q: kt.rope(q, None, COS, SIN),
        lambda q: turned(q, COS, SIN),
        [(2, 5, 3, 8)],
    ),
    "rope_pair": (
        lambda q, k: kt.rope(q, k, COS, SIN),
        lambda q, k: (turned(q, COS, SIN), turned(k, COS, SIN)),
        [(2, 5, 4, 8), (2, 5, 2, 8)],
    ),
    "embedding": (
        lambda w: kt.embedding(IDS, w, padding_idx=-1),
        lambda w: F.embedding(IDS, w, padding_idx=-1),
        [(7, 3)],
    ),
    "cross_entropy": (
        lambda x: kt.cross_entropy(x, TARGET, label_smoothing=0.1),
        lambda x: F.cross_entropy(x, TARGET, label_smoothing=0.1),
        [(6, 11)],
    ),
    "cross_entropy_none": (
        lambda x: kt.cross_entropy(x, TARGET.view(2, 3), reduction="none"),
        lambda x: F.cross_entropy(x, TARGET.view(2, 3), reduction="none"),
        [(2, 11, 3)],
    ),
}


def made(shapes, dtype):
    return [rand(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]


def flat(values):
    return list(values) if isinstance(values, tuple) else [values]


def gradients(results, tensors):
    """Of results with weights that differ, so that nothing cancels."""
    total = sum((r.double() * torch.arange(r.numel(), device=r.device).view(r.shape).cos()).sum()
                for r in results)  # fmt: skip
    return torch.autograd.grad(total, tensors)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", PAIRS)
def test_values_and_gradients_are_torchs(name, dtype):
    ours, theirs, shapes = PAIRS[name]
    tensors = made(shapes, dtype)
    wide = [t.detach().double().requires_grad_() for t in tensors]
    results, expected = flat(ours(*tensors)), flat(theirs(*wide))
    loss = name.startswith("cross_entropy") and dtype != torch.float64
    for got, want in zip(results, expected, strict=True):
        assert got.dtype == (torch.float32 if loss else dtype) and got.device.type == DEVICE
        close(got, want, dtype)
    for got, want, t in zip(gradients(results, tensors), gradients(expected, wide), tensors,
                            strict=True):  # fmt: skip
        assert got.dtype == t.dtype
        close(got, want, dtype, 3)


@pytest.mark.parametrize("name", ["softmax", "rms_norm_residual", "layer_norm", "swiglu",
                                  "bias_activation", "rope_pair", "cross_entropy"])  # fmt: skip
def test_gradcheck(name):
    ours, _, shapes = PAIRS[name]
    tensors = made([shape[-2:] if name == "rms_norm" else shape for shape in shapes], torch.float64)
    assert torch.autograd.gradcheck(ours, tensors, fast_mode=True)


def op_calls():
    x, w, b = rand(4, 6, dtype=torch.float32), rand(6, dtype=torch.float32), rand(6, seed=1).float()
    b = b.detach().requires_grad_()
    up, packed = rand(4, 6, dtype=torch.float32, seed=2), rand(4, 12, dtype=torch.float32)
    q, k = rand(5, 2, 8, dtype=torch.float32), rand(5, 1, 8, dtype=torch.float32)
    dy = rand(4, 6, dtype=torch.float32, grad=False)
    turn = (COS, SIN, None, 0, False, False, False)
    rows = torch.tensor([1, 0, 5, 2], device=DEVICE)
    above = torch.tensor(2.0, device=DEVICE)
    return {
        "softmax": (x, 1, False, torch.float32, 1.0, None),
        "softmax_backward": (dy, dy, 0, True, 1.0),
        "norm": (x, w, b, "layer", 1e-5, None),
        "add_norm": (x, up, w, None, "rms", 1e-5),
        "norm_backward": (dy, x.detach(), w.detach(), "layer", 1e-5, True, None),
        "activation": (x, "silu", 1.0, 1.0),
        "activation_backward": (dy, dy, "gelu", 1.0, 1.0),
        "gate": (x, up, "silu"),
        "gate_backward": (dy, dy, dy, "silu"),
        "packed_gate": (packed, "relu"),
        "packed_gate_backward": (dy, packed.detach(), "gelu"),
        "bias_activation": (x, b, "gelu", 1.0, 1.0),
        "bias_activation_backward": (dy, dy, w.detach(), "gelu", 1.0, 1.0),
        "rope": (q, *turn),
        "rope_pair": (q, k, *turn),
        "embedding": (rows, x, None, 2.0),
        "embedding_backward": (dy, rows, 7, None, 1.0),
        "cross_entropy": (x, rows, None, "mean", 0.0, 0.0, -100),
        "cross_entropy_backward": (above, dy, rows, None, "sum", 0.0, 1e-3, -100),
    }


@pytest.mark.parametrize("name", op_calls())
def test_opcheck(name):
    torch.library.opcheck(getattr(ops, name).default, op_calls()[name])


def test_compile_functions_of_any_size():
    @torch.compile(backend="aot_eager", fullgraph=True, dynamic=True)
    def step(q, k, gate, bias, cos, sin, x, target):
        q, k = kt.rope(q, k, cos, sin)
        y, total = kt.rms_norm(gate, gate.shape[-1], None, 1e-5, residual=gate)
        y = kt.bias_activation(kt.swiglu(y, total), bias)
        loss = kt.cross_entropy(x, target, one_pass=True)
        return loss + q.sum() + k.square().sum() + y.sum()

    for tokens in (5, 4):
        q, k = rand(tokens, 2, 8), rand(tokens, 1, 8)
        gate, bias, x = rand(tokens, 6), rand(6), rand(tokens, 11, seed=3)
        step(q, k, gate, bias, COS[:tokens], SIN[:tokens], x, ids(11, tokens)).backward()
        for t in (q, k, gate, bias, x):
            assert t.grad is not None and t.grad.shape == t.shape


def views():
    yield rand(6, 10)[:, ::2]
    yield rand(10, 6).T
    yield rand(1, 5).expand(6, 5)
    yield rand(6, 6)[:, 1:]
    yield rand(0, 5)


@pytest.mark.parametrize("x", list(views()), ids=lambda x: f"{tuple(x.shape)}{x.stride()}")
def test_any_strides(x):
    x = x.detach().requires_grad_()
    weight = torch.ones(x.shape[-1], dtype=x.dtype, device=DEVICE)
    for ours, theirs in (
        (lambda x: kt.softmax(x, 1), lambda x: F.softmax(x, 1)),
        (lambda x: kt.rms_norm(x, x.shape[1], weight, 1e-5), lambda x: rms(x, weight, 1e-5)),
        (lambda x: kt.swiglu(x, x), lambda x: F.silu(x) * x),
    ):
        got, want = ours(x), theirs(x)
        close(got, want, torch.float64)
        assert got.is_contiguous()
        # The gradient of a sum is one number with strides of 0.
        mine, his = (torch.autograd.grad(y.square().sum() + y.sum(), x)[0] for y in (got, want))
        close(mine, his, torch.float64, 100)


def test_masks():
    x, keep = rand(2, 3, 7), torch.tensor([True] * 4 + [False] * 3, device=DEVICE)
    want = F.softmax(x.masked_fill(~keep, -torch.inf), -1)
    got = kt.softmax(x, mask=keep)
    close(got, want, torch.float64)
    for mine, his in zip(gradients([got], [x]), gradients([want], [x]), strict=True):
        close(mine, his, torch.float64, 10)
    with pytest.raises(kw.InvalidArgument, match=r"pass input \* scale \+ mask as the input, or"):
        kt.softmax(x, mask=rand(7))
    half = kt.softmax(x.detach().half(), dtype=torch.float32)
    assert half.dtype == torch.float32


def test_autocast_mixes_dtypes():
    x, weight = rand(4, 8, dtype=torch.bfloat16), rand(8, dtype=torch.float32)
    bias = rand(8, dtype=torch.float32, seed=1)
    with torch.autocast(DEVICE, torch.bfloat16):
        y = kt.layer_norm(x, 8, weight, bias)
        assert y.dtype == torch.bfloat16
        y, total = kt.rms_norm(x, 8, weight, 1e-5, residual=rand(4, 8, dtype=torch.float32))
        assert y.dtype == total.dtype == torch.float32
        loss = kt.cross_entropy(F.linear(x, rand(5, 8, dtype=torch.float32)), ids(5, 4))
        assert loss.dtype == torch.float32
    (loss + y.sum()).backward()
    assert weight.grad.dtype == torch.float32 and x.grad.dtype == torch.bfloat16


def test_one_pass_cross_entropy():
    for reduction, factor in (("mean", 1.0), ("sum", 3.0)):
        x, wide = rand(6, 11, dtype=torch.float32), rand(6, 11)
        loss = kt.cross_entropy(x, TARGET, reduction=reduction, one_pass=True)
        want = F.cross_entropy(wide, TARGET, reduction=reduction)
        close(loss, want, torch.float32)
        (loss * factor).backward(retain_graph=True)
        (want * factor).backward()
        close(x.grad, wide.grad, torch.float32, 3)
        with pytest.raises(RuntimeError, match="one_pass"):
            loss.backward()
    with torch.no_grad():
        close(kt.cross_entropy(x, TARGET, one_pass=True, reduction="sum"), loss, torch.float32)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: kt.softmax(rand(3, 4), 2), "axis"),
        (lambda: kt.softmax(torch.ones(3, dtype=torch.int32, device=DEVICE)), "int32"),
        (lambda: kt.rms_norm(rand(3, 4), 5), r"\(4,\)"),
        (lambda: kt.rms_norm(rand(3, 4), 4, rand(5)), r"\(5,\)"),
        (lambda: kt.group_norm(rand(2, 4), 3), "3"),
        (lambda: kt.group_norm(rand(2, 4), 0), "groups"),
        (lambda: kt.gelu(rand(3), "quick"), "approximate"),
        (lambda: kt.swiglu(rand(3, 4), rand(3, 5)), r"\(3, 5\)"),
        (lambda: kt.swiglu(rand(3, 5)), "even"),
        (lambda: kt.swiglu(rand(4), rand(4).float()), "float32"),
        (lambda: kt.bias_activation(rand(3, 4), rand(3)), r"\(3,\)"),
        (lambda: kt.bias_activation(rand(3, 4), rand(4), "swish"), "swish"),
        (lambda: kt.rope(rand(2, 9, 2, 8), None, COS, SIN), "positions"),
        (lambda: kt.rope_tables(4, 3), "even"),
        (lambda: kt.embedding(IDS, rand(7, 3), 7), "padding_idx"),
        (lambda: kt.embedding(IDS.double(), rand(7, 3)), "float64"),
        (lambda: kt.cross_entropy(rand(6, 11), rand(6, 11)), "probabilities"),
        (lambda: kt.cross_entropy(rand(6, 11), TARGET, rand(12)), "12"),
        (lambda: kt.cross_entropy(rand(6, 11), TARGET, reduction="avg"), "avg"),
        (lambda: kt.cross_entropy(rand(5, 11), TARGET), r"\(5, 11\)"),
        (lambda: kt.GatedMLP(4, 4, "swish"), "swish"),
        (lambda: kt.AdamW([rand(3)], betas=(1, 0)), "betas"),
    ],
)
def test_wrong_input_raises_errors_of_this_package(call, words):
    with pytest.raises(kw.Error, match=words):
        call()


def test_special_values():
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([[1.0, inf, nan], [0.0, -0.0, -inf], [1e-40, -1e-40, 3e38]], device=DEVICE)
    for ours, theirs in ((kt.silu, F.silu), (kt.softmax, lambda x: F.softmax(x, -1)),
                         (kt.relu2, lambda x: F.relu(x).square())):  # fmt: skip
        torch.testing.assert_close(ours(x), theirs(x), equal_nan=True)


@pytest.mark.skipif(DEVICE == "cpu", reason="torch's streams and graphs are those of a GPU")
def test_streams_graphs_and_allocations_are_torchs():
    x, weight = rand(64, 512, dtype=torch.bfloat16), rand(512, dtype=torch.bfloat16)

    def step():
        y, total = kt.rms_norm(x, 512, weight, residual=x)
        return torch.autograd.grad((kt.swiglu(y, total) * kt.softmax(y)).sum(), x)[0]

    expected = step()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)
        assert not side.query()
        late = step()
        assert not side.query()  # nothing waited
    side.synchronize()
    assert torch.equal(late, expected)
    ours = kw.memory.stats()["allocations"]
    held = torch.cuda.memory_allocated()
    y = kt.softmax(x.detach())  # a gradient of x would wait for the default stream in the capture
    assert torch.cuda.memory_allocated() >= held + y.nbytes
    step()
    assert kw.memory.stats()["allocations"] == ours
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = step()
    with torch.no_grad():
        x.mul_(0.5)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(result, step())
    with pytest.raises(kw.InvalidArgument, match="same device"):
        kt.rms_norm(x, 512, weight.cpu())


@pytest.mark.parametrize("name", ["", *(m.name for m in pkgutil.iter_modules(kt.__path__, "."))])
def test_examples_of_docstrings(name):
    module = importlib.import_module("kernwright.torch" + name)
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_tensors_of_the_host_are_read(dtype):
    values = torch.tensor([[1.0, 2.0, 0.5], [4.0, 8.0, 16.0]]).to(dtype)
    for tensor in (values, values.T, torch.nn.Parameter(values, requires_grad=dtype.itemsize > 1)):
        made = kw.asarray(tensor)
        assert made.dtype.name == str(dtype).removeprefix("torch.")
        assert made.astype("float32").numpy().tolist() == tensor.float().tolist()


def test_schemas_are_those_of_annotations():
    """torch's own reading of the annotations, but for its SymInt in place of each int."""
    from kernwright.torch._operators import schema_of

    def run(
        xs: list[torch.Tensor], x: torch.Tensor, y: torch.Tensor | None, axis: int,
        padding: int | None, scale: float, cap: float | None, causal: bool, kind: str,
        dtype: torch.dtype | None,
    ) -> tuple[torch.Tensor, torch.Tensor]: ...  # fmt: skip

    def extent(rows: int | torch.SymInt) -> torch.Tensor: ...

    theirs = torch.library.infer_schema(run, mutates_args=("x", "xs"))
    want = theirs.replace("SymInt", "int").replace("a0!", "b!").replace("a1!", "a!")
    assert schema_of(run, ("x", "xs")) == want
    assert schema_of(extent) == "(SymInt rows) -> Tensor"
