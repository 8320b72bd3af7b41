"""A small network learns two spirals: functions of the forward and backward pass, and AdamW."""

import numpy as np

import kernwright as kw

rng = np.random.default_rng(0)
radii = rng.random((2, 200)) * 3 + 0.3
angles = radii * 2.2 + np.array([[0], [np.pi]])
points = np.stack([radii * np.cos(angles), radii * np.sin(angles)], -1).reshape(-1, 2)
x = kw.asarray((points / 3).astype(np.float32))
labels = kw.asarray(np.repeat([0, 1], 200))

shapes = {"w1": (2, 64), "b1": (64,), "w2": (64, 64), "b2": (64,), "w3": (64, 2), "b3": (2,)}
parameters = {
    name: kw.random.normal(shape=shape, seed=seed) * (0 if len(shape) == 1 else shape[0] ** -0.5)
    for seed, (name, shape) in enumerate(shapes.items())
}
optimizer = kw.optim.AdamW(parameters, lr=1e-2, groups=[{"match": "b", "weight_decay": 0.0}])


def step():
    """One training step; returns the loss before it, which stays on the device."""
    w1, b1, w2, b2, w3, b3 = parameters.values()
    a1 = x @ w1 + b1
    h1 = kw.nn.silu(a1)
    a2 = h1 @ w2 + b2
    h2 = kw.nn.silu(a2)
    logits = h2 @ w3 + b3
    loss, dlogits = kw.nn.cross_entropy_grad(logits, labels)
    dh2 = dlogits @ w3.T
    da2 = kw.nn.silu_backward(dh2, a2)
    dh1 = da2 @ w2.T
    da1 = kw.nn.silu_backward(dh1, a1)
    optimizer.step({
        "w1": x.T @ da1, "b1": kw.sum(da1, axis=0), "w2": h1.T @ da2, "b2": kw.sum(da2, axis=0),
        "w3": h2.T @ dlogits, "b3": kw.sum(dlogits, axis=0),
    })  # fmt: skip
    return loss, logits


first, _ = step()
for _ in range(100):
    loss, logits = step()
right = kw.mean(kw.astype(kw.argmax(logits, axis=-1) == labels, kw.float32)).item()
print(f"loss {first.item():.3f} -> {loss.item():.3f}, {right:.1%} of the points are right")
assert loss.item() < 0.3 * first.item() and right > 0.9
