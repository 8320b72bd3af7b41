"""A network learns two spirals: gradients, AdamW, and the whole step as one graph."""

import numpy as np

import kernwright as kw

rng = np.random.default_rng(0)
radii = rng.random((2, 200)) * 3 + 0.3
angles = radii * 2.2 + np.array([[0], [np.pi]])
points = np.stack([radii * np.cos(angles), radii * np.sin(angles)], -1).reshape(-1, 2)
x = kw.asarray((points / 3).astype(np.float32))
labels = kw.asarray(np.repeat([0, 1], 200))

net = kw.nn.Sequential(
    *(kw.nn.Linear(2, 64, seed=1), kw.nn.silu),
    *(kw.nn.Linear(64, 64, seed=2), kw.nn.silu),
    kw.nn.Linear(64, 2, seed=3),
)
print(net)
optimizer = kw.optim.AdamW(net, lr=1e-2, groups=[{"match": "bias", "weight_decay": 0.0}])


def loss_of(net, x, labels):
    logits = net(x)
    return kw.nn.cross_entropy(logits, labels), logits


@kw.captured
def step(x, labels):
    """One training step; returns the loss and the logits before it, which stay on the device."""
    (loss, logits), gradients = kw.value_and_grad(loss_of, has_aux=True)(net, x, labels)
    optimizer.step(gradients)
    return loss, logits


first = step(x, labels)[0].item()
for _ in range(100):
    loss, logits = step(x, labels)
right = kw.mean(kw.astype(kw.argmax(logits, axis=-1) == labels, kw.float32)).item()
print(f"loss {first:.3f} -> {loss.item():.3f}, {right:.1%} of the points are right")
assert loss.item() < 0.3 * first and right > 0.9
