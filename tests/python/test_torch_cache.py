"""Caches of kernwright.torch against kernwright.nn and torch's own attention; class weights."""

import pytest

import kernwright as kw

torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
kt = pytest.importorskip("kernwright.torch")
from torch_tensors import DEVICE, close, ids, rand  # noqa: E402

F, ops = torch.nn.functional, torch.ops.kernwright
HALF = torch.bfloat16


def numbers(*values):
    return torch.tensor(values, dtype=torch.int32, device=DEVICE)


def operands(tokens=1, capacity=20, dtype=HALF):
    """A query of four heads and caches of two, of three sequences."""
    q = rand(3, 4, tokens, 16, dtype=dtype, grad=False)
    return q, *(rand(3, 2, capacity, 16, dtype=dtype, seed=i, grad=False) for i in (1, 2))


def attended(q, k, v, lengths, **options):
    """What torch computes in float64, sequence by sequence."""
    made = []
    for i, length in enumerate(lengths.tolist()):
        tokens = q.shape[2]
        mask = torch.ones(tokens, length, dtype=torch.bool, device=q.device).tril(length - tokens)
        parts = [t[i : i + 1].double() for t in (q, k[:, :, :length], v[:, :, :length])]
        made.append(F.scaled_dot_product_attention(*parts, mask, enable_gqa=True, **options))
    return torch.cat(made)


@pytest.mark.parametrize("dtype", [torch.float16, HALF, torch.float32], ids=str)
@pytest.mark.parametrize("tokens", [1, 3])
def test_decode_attention(dtype, tokens):
    q, k, v = operands(tokens, dtype=dtype)
    lengths = numbers(20, 5, 11)
    got = kt.decode_attention(q, k, v, lengths)
    assert got.is_contiguous() and got.dtype == dtype
    close(got, attended(q, k, v, lengths), dtype, 2)
    close(kt.decode_attention(q, k, v, lengths, scale=0.1, splits=2),
          attended(q, k, v, lengths, scale=0.1), dtype, 2)  # fmt: skip
    turned = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in (k, v)]
    assert torch.equal(kt.decode_attention(q, *turned, lengths), got)
    out, lse = kt.decode_attention(q, k, v, return_lse=True)
    assert lse.shape == q.shape[:-1] and lse.dtype == torch.float32
    close(out, attended(q, k, v, numbers(20, 20, 20)), dtype, 2)


def paged(k, v, size=4):
    """Caches of pages, the last page first, and the table."""
    pages = k.shape[2] // size
    table = torch.arange(3 * pages, dtype=torch.int32, device=k.device).flip(0).view(3, pages)
    flat = [t.transpose(1, 2).reshape(3 * pages, size, 2, 16).flip(0).contiguous() for t in (k, v)]
    return (*flat, table)


def test_pages_and_narrow_caches():
    q, k, v = operands()
    lengths = numbers(20, 5, 11)
    want = kt.decode_attention(q, k, v, lengths)
    *caches, table = paged(k, v)
    got = kt.decode_attention(q, *caches, lengths, page_table=table)
    close(got, want, HALF)
    scales = torch.tensor([0.5, 0.25], device=DEVICE)
    narrow = [(t / scales.view(2, 1, 1)).to(torch.float8_e4m3fn) for t in (k, v)]
    plain = [(t.to(HALF) * scales.view(2, 1, 1)).to(HALF) for t in narrow]
    got = kt.decode_attention(q, *narrow, lengths, key_scale=scales, value_scale=scales)
    close(got, attended(q, *plain, lengths), HALF, 2)


def test_append_qkv():
    """Tokens one at a time give what attention over all of them gives."""
    cos, sin = kt.rope_tables(20, 16, device=DEVICE)
    x = rand(3, 6, (4 + 2 + 2) * 16, dtype=torch.float32, grad=False)
    weight = rand(16, dtype=torch.float32, seed=3, grad=False)
    q, k, v = x.view(3, 6, 8, 16).split((4, 2, 2), 2)
    q, k = (F.rms_norm(t, (16,), weight, 1e-6) for t in (q, k))
    q, k = kt.rope(q, k, cos[:6], sin[:6])
    want = attended(*(t.transpose(1, 2) for t in (q, k, v)), numbers(6, 6, 6))
    caches = [torch.zeros(3, 2, 20, 16, device=DEVICE) for _ in range(2)]
    norms = {"q_weight": weight, "k_weight": weight}
    made = []
    for t in range(6):
        start = numbers(t, t, t)
        version = caches[0]._version
        token = kt.append_qkv(x[:, t : t + 1], *caches, start, cos, sin, **norms)
        assert token.shape == (3, 4, 1, 16) and caches[0]._version > version
        made.append(kt.decode_attention(token, *caches, start + 1))
    close(torch.cat(made, 2), want, torch.float32)
    close(caches[1][:, :, :6], v.transpose(1, 2), torch.float32)
    assert not caches[1][:, :, 6:].any()
    again = [torch.zeros_like(t) for t in caches]
    parts = x.view(3, 6, 8, 16).split((4, 2, 2), 2)
    whole = kt.append_qkv(parts, *again, numbers(0, 0, 0), cos, sin, **norms)
    close(whole, q.transpose(1, 2), torch.float32)
    for mine, his in zip(again, caches, strict=True):
        close(mine, his, torch.float32)


def op_calls():
    q, k, v = operands(2)
    x = rand(3, 2, 8 * 16, dtype=HALF, grad=False)
    *caches, table = paged(k, v)
    rest = (None,) * 6
    return {
        "decode_attention": (q, k, v, numbers(20, 5, 11), *rest[:5], 0.3, 4, None, True, None),
        "decode_attention paged": (q, *caches, None, table, *rest[:4], None, None, 3.0, False, 2),
        "append_qkv": ([x], k, v, numbers(0, 3, 1), *rest, None, None, 1e-6, False),
        "append_qkv paged": (
            list(x.view(3, 2, 8, 16).split((4, 2, 2), 2)), *caches, numbers(0, 3, 1),
            *rest[:5], table, None, None, 1e-6, False),
    }  # fmt: skip


@pytest.mark.parametrize("name", op_calls())
def test_opcheck(name):
    torch.library.opcheck(getattr(ops, name.split()[0]).default, op_calls()[name])


def test_compile_a_step():
    _, k, v = operands()

    @torch.compile(backend="aot_eager", fullgraph=True)
    def step(x, k, v, lengths):
        token = kt.append_qkv(x, k, v, lengths)
        return kt.decode_attention(token, k, v, lengths + 1)

    x, lengths = rand(3, 1, 8 * 16, dtype=HALF, grad=False), numbers(3, 0, 7)
    other = [k.clone(), v.clone()]
    token = kt.append_qkv(x, *other, lengths)
    want = kt.decode_attention(token, *other, lengths + 1)
    assert torch.equal(step(x, k, v, lengths), want)
    assert torch.equal(k, other[0]) and torch.equal(v, other[1])


def test_wrong_caches():
    q, k, v = operands()
    with pytest.raises(kw.InvalidArgument, match="head"):
        kt.decode_attention(q[:, :3], k, v)
    with pytest.raises(kw.ArgumentError, match="window"):
        kt.decode_attention(q, k, v, window=0)
    with pytest.raises(kw.Error, match="lengths"):
        kt.decode_attention(q, k, v, numbers(1, 2, 3).long())
    with pytest.raises(kw.ArgumentError, match="three"):
        kt.append_qkv((q, q), k, v, numbers(0, 0, 0))
    with pytest.raises(kw.Error):
        kt.append_qkv(rand(3, 1, 5 * 16, dtype=torch.float16, grad=False), k, v, numbers(0, 0, 0))


@pytest.mark.parametrize("dtype", [torch.float32, HALF], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_class_weights(dtype, reduction):
    x, target = rand(6, 11, dtype=dtype), ids(11, 6)
    target[2] = -100
    weight = rand(11, dtype=torch.float32, seed=9, grad=False).abs()
    wide = x.detach().double().requires_grad_()
    options = {"reduction": reduction, "label_smoothing": 0.1}
    want = F.cross_entropy(wide, target, weight.double(), **options)
    above = torch.arange(want.numel(), device=DEVICE).view(want.shape).cos()
    expected = torch.autograd.grad((want * above).sum(), wide)[0]
    for one_pass in (False, True):
        got = kt.cross_entropy(x, target, weight, one_pass=one_pass, **options)
        close(got, want, dtype)
        close(torch.autograd.grad((got * above).sum(), x)[0], expected, dtype)
    module = kt.CrossEntropyLoss(weight=weight, **options).to(DEVICE)
    close(module(x, target), want, dtype)
    done = kt.accelerate(torch.nn.CrossEntropyLoss(weight=weight, **options))
    assert len(done) == 1


def test_opcheck_of_class_weights():
    x, target = rand(4, 6, dtype=torch.float32), ids(6, 4)
    weight = rand(6, dtype=torch.float32, seed=1, grad=False).abs()
    options = ("mean", 0.0, 0.0, -100)
    torch.library.opcheck(ops.cross_entropy.default, (x, target, weight, *options))
