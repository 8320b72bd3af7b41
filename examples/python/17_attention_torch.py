"""Attention and linear layers of a torch model on our kernels: the model writes token by token."""

import kernwright as kw

try:
    import torch

    import kernwright.torch as kt
except ImportError as missing:
    print(f"nothing to show without torch: {missing}")
    raise SystemExit(0) from None

nn, functional = torch.nn, torch.nn.functional
DEVICE = "cpu" if kw.current_device().is_simulated else "cuda"
WIDTH, HEADS, WORDS, LENGTH = 32, 2, 29, 10


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.act, self.down = nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(-2))
        return x + self.down(self.act(self.up(self.norm2(x))))


torch.manual_seed(0)
model = nn.Sequential(
    nn.Embedding(WORDS, WIDTH), Block(), Block(), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)
)
model = model.to(DEVICE, torch.bfloat16)


@torch.no_grad()
def logits_of(tokens):
    return model(tokens)


tokens = torch.arange(LENGTH, device=DEVICE)[None] * 7 % WORDS
wanted = logits_of(tokens).float()

# Norms, activations and embeddings are always replaced, linear layers and attention on request.
done = kt.accelerate(model, linear=True, attention=True)
print(done)
got = logits_of(tokens).float()
off = (got - wanted).norm() / wanted.norm()
print(f"logits in bfloat16 differ by {off:.4f} of their norm")
assert off < 0.02

for _ in range(3):
    following = logits_of(tokens)[:, -1].argmax(-1, keepdim=True)
    tokens = torch.cat([tokens, following], 1)
print(f"written: {tokens[0, LENGTH:].tolist()}")

# With gradients, our attention has its own backward pass; a Linear runs as torch's.
loss = functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1).float(), tokens[0, 1:])
loss.backward()
assert all(p.grad is not None for p in model.parameters())

done.undo()
assert type(model[4]) is nn.Linear
assert torch.equal(logits_of(tokens[:, :LENGTH]).float(), wanted)
print("and back to torch's own")
