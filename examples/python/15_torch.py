"""One line runs a torch model on our kernels: a small transformer learns a sequence."""

import copy
import time

import kernwright as kw

try:
    import torch

    import kernwright.torch as kt
except ImportError as missing:
    print(f"nothing to show: {missing}")
    raise SystemExit(0) from None

nn, functional = torch.nn, torch.nn.functional
DEVICE = "cpu" if kw.current_device().is_simulated else "cuda"
WIDTH, HEADS, LENGTH, WORDS = 32, 2, 12, 17


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH, 1e-5), nn.RMSNorm(WIDTH, 1e-5)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.act, self.down = nn.Linear(WIDTH, 64), nn.SiLU(), nn.Linear(64, WIDTH)
        self.rope = kt.Rope(WIDTH // HEADS, LENGTH, heads_first=True)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        q, k = self.rope(q, k)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(-2))
        return x + self.down(self.act(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.blocks = nn.Embedding(WORDS, WIDTH), nn.Sequential(Block(), Block())
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, tokens, following):
        logits = self.head(self.norm(self.blocks(self.embed(tokens))))
        return self.loss(logits.flatten(0, 1), following.flatten())


torch.manual_seed(0)
plain = Transformer().to(DEVICE)
model = copy.deepcopy(plain)

done = kt.accelerate(model)  # the one line
print(done)

sequence = (torch.arange(2 * (LENGTH + 1), device=DEVICE) ** 2 % WORDS).view(2, -1)
tokens, following = sequence[:, :-1], sequence[:, 1:]

# Loss and gradients agree with torch's.
losses = [m(tokens, following) for m in (plain, model)]
for loss in losses:
    loss.backward()
torch.testing.assert_close(losses[0], losses[1])
for (name, p), q in zip(plain.named_parameters(), model.parameters(), strict=True):
    assert torch.allclose(p.grad, q.grad, rtol=1e-3, atol=1e-5), name

optimizer = kt.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
for _ in range(5):
    optimizer.zero_grad()
    loss = model(tokens, following)
    loss.backward()
    optimizer.step()
assert loss < losses[0]
print(f"five steps of training: loss {losses[0].item():.3f}, then {loss.item():.3f}")

if DEVICE == "cuda":
    for name, each in (("torch", plain), ("kernwright", model)):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(20):
            each(tokens, following).backward()
        torch.cuda.synchronize()
        print(f"{name}: {(time.perf_counter() - start) * 50:.2f} ms for forward and backward")

done.undo()
assert type(model.norm) is nn.LayerNorm
print("and back to torch's own")
