"""Attention and linear layers of kernwright.torch against torch's own in float64."""

import pytest

import kernwright as kw

torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
kt = pytest.importorskip("kernwright.torch")
from torch_tensors import DEVICE, close, rand  # noqa: E402

F, ops = torch.nn.functional, torch.ops.kernwright
TORCHS = F.scaled_dot_product_attention
MATH = torch.nn.attention.SDPBackend.MATH
HALF = (torch.float16, torch.bfloat16)


def operands(q=(2, 4, 9, 16), kv=(2, 2, 7, 16), dtype=torch.float16, value_dim=None):
    return [rand(*shape, dtype=dtype, seed=i)
            for i, shape in enumerate((q, kv, (*kv[:-1], value_dim or kv[-1])))]  # fmt: skip


def wide(tensors):
    return [t.detach().double().requires_grad_() for t in tensors]


def gradients(result, tensors):
    weights = torch.arange(result.numel(), device=result.device).view(result.shape).cos()
    return torch.autograd.grad((result.double() * weights).sum(), tensors)


def agree(ours, theirs, tensors, factor=3):
    doubles = wide(tensors)
    got, want, dtype = ours(*tensors), theirs(*doubles), tensors[0].dtype
    assert got.dtype == dtype and got.is_contiguous()
    close(got, want, dtype, 2)
    for mine, his in zip(gradients(got, tensors), gradients(want, doubles), strict=True):
        assert mine.dtype == dtype
        close(mine, his, dtype, factor)


@pytest.mark.parametrize("dtype", [*HALF, torch.float32], ids=str)
@pytest.mark.parametrize(
    "options",
    [
        *({}, {"is_causal": True}, {"scale": 0.3}),
        *({"mask": "bool"}, {"mask": "added"}, {"mask": "lowest"}),
    ],
    ids=str,
)
def test_values_and_gradients_are_torchs(dtype, options):
    options, tensors = dict(options, enable_gqa=True), operands(dtype=dtype)
    kind, theirs = options.pop("mask", None), dict(options)
    if kind:
        mask = rand(2, 1, 9, 7, seed=5, grad=False)
        options["attn_mask"] = mask > -1 if kind == "bool" else mask.to(dtype)
        if kind == "lowest":  # as transformers have it; the whole first row too
            options["attn_mask"] = ((mask < -1) * torch.finfo(dtype).min).to(dtype)
            options["attn_mask"][..., 0, :] = torch.finfo(dtype).min
        added = options["attn_mask"]
        theirs = dict(options, attn_mask=added if kind == "bool" else added.double())
    # On CPUs torch 2.14's other kernels lose the gradients of rows that finfo.min fills.
    with torch.nn.attention.sdpa_kernel(MATH):
        agree(lambda *x: kt.scaled_dot_product_attention(*x, **options),
              lambda *x: TORCHS(*x, **theirs), tensors)  # fmt: skip


@pytest.mark.parametrize(
    ("q", "kv", "value_dim"),
    [((3, 5, 8), (3, 6, 8), 4), ((2, 3, 2, 4, 8), (2, 3, 2, 5, 8), None), ((5, 8), (6, 8), None),
     ((1, 1, 1, 3), (1, 1, 1, 3), 5)],
)  # fmt: skip
def test_other_numbers_of_axes(q, kv, value_dim):
    for dtype in (torch.float16, torch.float32):
        tensors = operands(q, kv, dtype, value_dim)
        agree(kt.scaled_dot_product_attention, TORCHS, tensors)
    if len(q) == 5:
        mask = rand(2, 1, 1, 4, 5, grad=False) > 0
        agree(lambda *x: kt.scaled_dot_product_attention(*x, mask),
              lambda *x: TORCHS(*x, mask), tensors)  # fmt: skip


def test_any_strides():
    plain = operands((2, 5, 4, 8), (2, 6, 4, 8), torch.bfloat16)
    turn = [t.detach().transpose(1, 2).requires_grad_() for t in plain]
    agree(kt.scaled_dot_product_attention, TORCHS, turn)
    gaps = [t.detach().repeat_interleave(2, -1)[..., ::2].requires_grad_() for t in turn]
    agree(lambda *x: kt.scaled_dot_product_attention(*x, is_causal=True),
          lambda *x: TORCHS(*x, is_causal=True), gaps)  # fmt: skip
    got = kt.scaled_dot_product_attention(*operands((0, 2, 3, 8), (0, 2, 3, 8)))
    assert got.shape == (0, 2, 3, 8)


def op_calls():
    q, k, v = operands((1, 2, 5, 8), (1, 1, 6, 8), torch.float32)
    mask = rand(5, 6, dtype=torch.float32, grad=False)
    out, lse = ops.attention(q.detach(), k.detach(), v.detach(), mask, False, None)
    detached = [t.detach() for t in (q, q, k, v)]
    x, w, b = (rand(*s, dtype=torch.float32) for s in ((3, 2, 8), (4, 8), (4,)))
    return {
        "attention": (q, k, v, mask, False, 0.5),
        "attention_backward": (*detached, out, lse, None, False, None),
        "linear": (x, w, b),
    }


@pytest.mark.parametrize("name", op_calls())
def test_opcheck(name):
    torch.library.opcheck(getattr(ops, name).default, op_calls()[name])


def test_autocast_takes_mixed_dtypes():
    q, k, v = operands(dtype=torch.float32)
    with torch.autocast(DEVICE, torch.bfloat16):
        got = kt.scaled_dot_product_attention(q, k, v.detach().bfloat16(), enable_gqa=True)
        with kt.switch_attention():
            switched = F.scaled_dot_product_attention(q, k, v.bfloat16(), enable_gqa=True)
    assert got.dtype == torch.bfloat16 and torch.equal(got, switched)
    switched.sum().backward()
    assert q.grad.dtype == torch.float32


class Attention(torch.nn.Module):
    """What calls a function, by its name in torch.nn.functional."""

    def __init__(self, width=16, heads=2, dropout=0.0):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout)
        return self.out(y.transpose(1, 2).flatten(-2))


@pytest.fixture
def ours(monkeypatch):
    """Calls of our attention."""
    from kernwright.torch import _attention

    calls = []
    function = _attention.scaled_dot_product_attention

    def count(*arguments, **options):
        calls.append(arguments[0].dtype)
        return function(*arguments, **options)

    monkeypatch.setattr(_attention, "scaled_dot_product_attention", count)
    yield calls
    assert F.scaled_dot_product_attention is TORCHS


def test_the_switch_and_what_goes_to_torch(ours):
    x = rand(2, 5, 16, dtype=torch.bfloat16)
    torch.manual_seed(0)
    model = Attention().bfloat16().to(DEVICE)
    before = model(x)
    with kt.switch_attention() as outer:
        close(model(x), before, torch.bfloat16, 3)
        with kt.switch_attention():
            model(x)
        assert len(ours) == 2
        model.dropout = 0.5
        model(x)
        model.dropout = 0.0
        q, k, v = operands(dtype=torch.bfloat16, kv=(2, 4, 7, 16))
        mask = rand(9, 7, dtype=torch.bfloat16)
        F.scaled_dot_product_attention(q, k, v, mask)  # its gradient
        F.scaled_dot_product_attention(q, k, v, mask.detach())
        F.scaled_dot_product_attention(*(t.double() for t in (q, k, v)))
        F.scaled_dot_product_attention(*(t.float() for t in (q, k, v)))
        F.scaled_dot_product_attention(q[:1], k[:1], v[:1], scale=0.5)
        assert len(ours) == 4
        with pytest.raises(RuntimeError):  # torch's own message
            F.scaled_dot_product_attention(q, k[:, :3], v[:, :3])
        outer.undo()
        outer.undo()
        assert F.scaled_dot_product_attention is TORCHS
    assert torch.equal(model(x), before)


def test_the_switch_reaches_layers_of_torch(ours):
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(16, 2, batch_first=True).to(DEVICE, torch.float16)
    x = rand(2, 5, 16, dtype=torch.float16)
    with kt.switch_attention():
        got = layer(x, x, x, need_weights=False)[0]
    assert len(ours) == 1
    close(got, layer(x, x, x, need_weights=False)[0], torch.float16, 3)


def test_checkpoints_and_compile_under_the_switch():
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    model, x = Attention().bfloat16().to(DEVICE), rand(2, 5, 16, dtype=torch.bfloat16)
    with kt.switch_attention():
        plain = torch.autograd.grad(model(x).sum(), x)[0]
        saved = torch.autograd.grad(checkpoint(model, x, use_reentrant=False).sum(), x)[0]
        assert torch.equal(plain, saved)
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True, dynamic=True)
        for tokens in (5, 4):
            close(compiled(x[:, :tokens]), model(x[:, :tokens]), torch.bfloat16)


@pytest.mark.parametrize("dtype", [*HALF, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(3, 24), (2, 5, 24), (24,), (70, 24), (0, 24)])
def test_linear(dtype, shape):
    x, w = rand(*shape, dtype=dtype), rand(6, 24, dtype=dtype, seed=1)
    b = rand(6, dtype=dtype, seed=2)
    agree(kt.linear, F.linear, [x, w, b])
    agree(kt.linear, F.linear, [x, w])


def test_accelerate_with_linear_and_attention(ours):
    torch.manual_seed(0)
    model, x = Attention().half().to(DEVICE), rand(1, 5, 16, dtype=torch.float16, grad=False)
    with torch.no_grad():
        before = model(x)
        assert not kt.accelerate(model).replaced
        done = kt.accelerate(model, linear=True, attention=True)
        assert {r.name for r in done.replaced} == {"qkv", "out"}
        assert type(model.qkv) is kt.Linear and "scaled_dot_product_attention" in str(done)
        close(model(x), before, torch.float16, 3)
        assert len(ours) == 1
    model(x).sum().backward()  # with gradients a Linear is torch's
    assert model.qkv.weight.grad is not None
    with torch.no_grad():
        many = x.expand(20, 5, 16)
        close(model.qkv(many), F.linear(many, model.qkv.weight, model.qkv.bias), torch.float16)
        with torch.autocast(DEVICE, torch.bfloat16):
            assert model.qkv(x.float()).dtype == torch.bfloat16
        with pytest.raises(RuntimeError):
            model.qkv(x[..., :3])
    done.undo()
    done.undo()
    assert type(model.qkv) is torch.nn.Linear and F.scaled_dot_product_attention is TORCHS
    assert torch.equal(model(x), before)


def test_compile_takes_layers_of_few_rows_whole():
    torch.manual_seed(0)
    layer = kt.Linear(24, 8).to(DEVICE, torch.float16)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True, dynamic=True)
    for rows in (3, 5, 80):
        x = rand(rows, 24, dtype=torch.float16, grad=False)
        with torch.no_grad():
            close(compiled(x), F.linear(x, layer.weight, layer.bias), torch.float16)
        assert compiled(x).requires_grad


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda q, k, v: kt.scaled_dot_product_attention(q, k, v), "enable_gqa"),
        (lambda q, k, v: kt.scaled_dot_product_attention(q, k, v, dropout_p=0.1), "dropout"),
        (lambda q, k, v: kt.scaled_dot_product_attention(q, q, q, rand(9, 9)), "detach"),
        (lambda q, k, v: kt.scaled_dot_product_attention(q, q[0], q), r"\(4, 9, 16\)"),
        (lambda q, k, v: kt.scaled_dot_product_attention(q.double(), q, q), "float64"),
        (lambda q, k, v: kt.scaled_dot_product_attention(q, q, q, rand(9, 9, grad=False) > 0,
                                                         is_causal=True), "exclude"),
        (lambda q, k, v: kt.scaled_dot_product_attention(q, q, q, rand(9, 9)),
         r"call torch\.nn\.functional\.scaled_dot_product_attention\(\), or pass attn_mask\.det"),
        (lambda q, k, v: kt.linear(q, rand(3, 5, dtype=q.dtype)), "5"),
        (lambda q, k, v: kt.linear(q, rand(3, 16)), "float64"),
    ],
)  # fmt: skip
def test_wrong_input_raises_errors_of_this_package(call, words):
    with pytest.raises(kw.Error, match=words):
        call(*operands())
