"""Models of torch on kernwright.torch: accelerate(), compiled models, layers, AdamW."""

import copy
import io

import numpy as np
import pytest

import kernwright as kw

torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
kt = pytest.importorskip("kernwright.torch")
from torch_tensors import DEVICE, close, ids, rand, turned  # noqa: E402

F = torch.nn.functional


class Block(torch.nn.Module):
    """Every piece at once: what accelerate() knows, and functions."""

    def __init__(self, dim=16, ours=False):
        super().__init__()
        nn, own = torch.nn, kt if ours else torch.nn
        self.embed, self.norm = own.Embedding(13, dim), own.RMSNorm(dim, eps=1e-5)
        self.up, self.act, self.layer = nn.Linear(dim, dim), own.SiLU(), own.LayerNorm(dim)
        self.gelu, self.group = own.GELU("tanh"), own.GroupNorm(4, dim)
        self.soft, self.loss = own.Softmax(-1), own.CrossEntropyLoss()

    def forward(self, tokens, target):
        x = self.up(self.act(self.norm(self.embed(tokens))))
        x = self.group(self.gelu(self.layer(x)).transpose(1, 2)).transpose(1, 2)
        x = x + self.soft(x) @ self.embed.weight.T @ self.embed.weight
        return self.loss((x @ self.embed.weight.T).flatten(0, 1), target.flatten())


def run(model, tokens, target):
    model.zero_grad()
    loss = model(tokens, target)
    loss.backward()
    return [loss.detach(), *(p.grad.clone() for p in model.parameters())]


def test_accelerate_and_undo():
    torch.manual_seed(0)
    model = Block().double().to(DEVICE)
    tokens, target = ids(13, 2, 6), ids(13, 2, 6, seed=1)
    before = run(model, tokens, target)
    state, seen = {k: v.clone() for k, v in model.state_dict().items()}, []
    hook = model.norm.register_forward_hook(lambda *_: seen.append(1))
    done = kt.accelerate(model)
    assert {r.name for r in done.replaced} == {
        "embed", "norm", "act", "layer", "gelu", "group", "soft", "loss"
    }  # fmt: skip
    assert isinstance(model.norm, torch.nn.RMSNorm) and isinstance(model.norm, kt.RMSNorm)
    assert "norm: RMSNorm" in str(done) and len(done) == 8
    after = run(model, tokens, target)
    assert seen
    hook.remove()
    for got, want in zip(after, before, strict=True):
        close(got, want, torch.float64, 10)
    assert state.keys() == model.state_dict().keys()
    model.load_state_dict(state)
    twin = copy.deepcopy(model)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=False)
    for other in (twin, loaded):
        assert type(other.norm) is kt.RMSNorm
    done.undo()
    done.undo()
    assert type(model.norm) is torch.nn.RMSNorm and len(done) == 0
    for got, want in zip(run(model, tokens, target), before, strict=True):
        close(got, want, torch.float64, 10)


def test_accelerate_leaves_what_it_cannot_do():
    class Own(torch.nn.LayerNorm):
        pass

    model = torch.nn.ModuleDict({
        "sparse": torch.nn.Embedding(4, 4, sparse=True),
        "inplace": torch.nn.SiLU(inplace=True),
        "own": Own(4),
    })  # fmt: skip
    done = kt.accelerate(model)
    assert not done.replaced and set(done.left) == {"sparse", "inplace"}
    assert "sparse stays torch's" in str(done)

    class Faster(Own):
        pass

    assert len(kt.accelerate(model, also={Own: Faster})) == 1 and type(model["own"]) is Faster
    with pytest.raises(kw.InvalidArgument, match="no subclass"):
        kt.accelerate(model, also={Own: torch.nn.GELU})
    with pytest.raises(kw.ArgumentError, match="Module"):
        kt.accelerate(3)
    whole = torch.nn.LayerNorm(4)
    assert str(kt.accelerate(whole)).splitlines()[1] == "  (the model): LayerNorm"


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile_has_no_graph_breaks(backend):
    torch.manual_seed(0)
    model = Block(ours=True).to(DEVICE)
    tokens, target = ids(13, 2, 6), ids(13, 2, 6, seed=1)
    expected = run(model, tokens, target)
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    for got, want in zip(run(compiled, tokens, target), expected, strict=True):
        close(got, want, torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_adamw_is_torchs(dtype):
    mine = [rand(5, 3, dtype=dtype), rand(7, dtype=dtype)]
    his = [p.detach().to(torch.float64).requires_grad_() for p in mine]
    options = {"lr": 1e-2, "betas": (0.8, 0.9), "weight_decay": 0.1}
    ours = kt.AdamW(mine, **options, master_weights=dtype == torch.bfloat16)
    theirs = torch.optim.AdamW(his, **options)
    version = mine[0]._version
    for step in range(3):
        for p, q in zip(mine, his, strict=True):
            p.grad = rand(*p.shape, dtype=dtype, seed=step + 5, grad=False)
            q.grad = p.grad.double()
        ours.step()
        theirs.step()
    assert mine[0]._version > version
    for p, q in zip(mine, his, strict=True):
        close(p, q, dtype)
        if dtype == torch.bfloat16:
            close(ours.state[p]["master"], q, torch.float32)
    again = kt.AdamW([p.detach().clone().requires_grad_() for p in mine], **options)
    again.load_state_dict(ours.state_dict())
    assert int(again.state[again.param_groups[0]["params"][0]]["step"]) == 3


def test_layers_of_our_own():
    torch.manual_seed(0)
    loss, logits = kt.CrossEntropyLoss(), rand(4, 9)
    loss.one_pass = True
    mine = torch.autograd.grad(loss(logits, ids(9, 4)), logits)[0]
    his = torch.autograd.grad(F.cross_entropy(logits, ids(9, 4)), logits)[0]
    close(mine, his, torch.float64)
    assert loss(logits, logits.detach().softmax(-1)).shape == ()
    mlp = kt.GatedMLP(8, 12, bias=True, dtype=torch.float64, device=DEVICE)
    x = rand(3, 8)
    gate, up = mlp.gate_up(x).chunk(2, -1)
    close(mlp(x), mlp.down(F.silu(gate) * up), torch.float64)
    rope = kt.Rope(8, 32, heads_first=True).half().to(DEVICE)
    assert rope.cos.dtype == torch.float32 and not rope.state_dict()
    q = rand(2, 3, 5, 8)
    cos, sin = (t.to(DEVICE) for t in kt.rope_tables(32, 8))
    close(rope(q, offset=4), turned(q.transpose(1, 2), cos[4:9], sin[4:9]).transpose(1, 2),
          torch.float64)  # fmt: skip
    places = torch.tensor([4, 5, 6, 7, 8], device=DEVICE)
    close(rope(q, positions=places), rope(q, offset=4), torch.float64)
    tables = kw.nn.rope_tables(32, 8)
    np.testing.assert_allclose(tables[0].numpy(), cos.cpu(), atol=1e-7)


def test_modules_on_other_devices_are_torchs():
    model = Block(ours=True).to("meta")
    assert model.norm(torch.empty(2, 3, 16, device="meta")).shape == (2, 3, 16)


class TheirRMSNorm(torch.nn.Module):
    """As models of transformers have it."""

    def __init__(self, size, plus=0.0):
        super().__init__()
        self.weight = torch.nn.Parameter(rand(size, seed=9, grad=False))
        self.variance_epsilon, self.plus = 1e-6, plus

    def forward(self, hidden_states):
        x = hidden_states.to(torch.promote_types(torch.float32, hidden_states.dtype))
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return (self.plus + self.weight) * x.to(hidden_states.dtype)


class TheirMLP(torch.nn.Module):
    def __init__(self, size, act, twist=1.0):
        super().__init__()
        self.gate_proj, self.up_proj = (torch.nn.Linear(size, 24) for _ in range(2))
        self.down_proj, self.act_fn, self.twist = torch.nn.Linear(24, size), act, twist

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x) * self.twist)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_modules_of_other_packages_are_recognised_by_what_they_compute(dtype):
    torch.manual_seed(0)
    model = torch.nn.ModuleDict({
        "norm": TheirRMSNorm(16),
        "plus": TheirRMSNorm(16, plus=1.0),
        "mlp": TheirMLP(16, torch.nn.SiLU()),
        "gelu": TheirMLP(16, torch.nn.GELU("tanh")),
        "twisted": TheirMLP(16, torch.nn.SiLU(), twist=0.5),
        "hard": TheirMLP(16, torch.nn.Hardswish()),
    }).to(DEVICE, dtype)  # fmt: skip
    x = rand(5, 16, dtype=dtype, seed=3)
    before = {name: module(x) for name, module in model.items()}
    done = kt.accelerate(model)
    assert set(done.left) == {"plus", "twisted", "hard"}
    assert "computes something else" in str(done)
    assert {"norm", "mlp", "gelu"} <= {r.name for r in done.replaced}
    twin = copy.deepcopy(model)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=False)
    for name in ("norm", "mlp", "gelu"):
        assert type(model[name]) is not type(model["plus"]) and isinstance(
            model[name], (TheirRMSNorm, TheirMLP)
        )
        for each in (model, twin, loaded):
            assert type(each[name]) is type(model[name])
            close(each[name](x), before[name], dtype)
    mine, his = (torch.autograd.grad(y.sum(), x)[0] for y in (model["mlp"](x), before["mlp"]))
    close(mine, his, dtype, 3)
    assert not kt.accelerate(model).replaced
    done.undo()
    assert type(model["norm"]) is TheirRMSNorm and type(model["mlp"]) is TheirMLP
