"""Arrays with operators: arithmetic, reductions, indexing, products, fusion, random numbers."""

import numpy as np

import kernwright as kw

# Each call checks its arguments and runs one kernel, compiled from a string at its first use.
host = np.random.default_rng(1).random((64, 100), np.float32)
x = kw.asarray(host)
centred = (x - kw.mean(x, axis=0)) / kw.std(x, axis=0)
np.testing.assert_allclose(
    centred.numpy(), (host - host.mean(0)) / host.std(0), rtol=1e-3, atol=1e-4
)

# Nothing is copied to the host implicitly: masks, indices and selected rows stay on the device.
large = kw.where(x > 0.5, x, 0)
rows = large[kw.argsort(kw.sum(large, axis=1), descending=True)[:3]]
sums = np.sort(np.where(host > 0.5, host, 0).sum(1))
np.testing.assert_allclose(rows.numpy().sum(1), sums[:-4:-1], rtol=1e-5)
values, places = kw.topk(x, 5)
assert (kw.take_along_axis(x, places, axis=-1) == values).all()

# Products of any element type, and Einstein summation.
gram = kw.einsum("ij,kj->ik", centred, centred)
np.testing.assert_allclose(gram.numpy(), (centred @ centred.T).numpy(), rtol=1e-5)


# Several operations become one kernel with readable text.
@kw.fuse
def softmax(x):
    e = kw.exp(x - kw.max(x, axis=-1, keepdims=True))
    return e / kw.sum(e, axis=-1, keepdims=True)


np.testing.assert_allclose(softmax(x).numpy(), kw.nn.softmax(x).numpy(), rtol=1e-5)
assert "__global__" in softmax.source(x)

# Random numbers are the same on every device.
noise = kw.random.normal(shape=(100_000,), seed=7)
assert abs(kw.mean(noise).item()) < 0.02 and abs(kw.std(noise).item() - 1) < 0.02

# Errors name the wrong values.
try:
    x + kw.ones((3, 100))
except kw.InvalidArgument as error:
    print(error)
    assert "Incompatible dimensions" in str(error) and "(64, 100)" in str(error)
else:
    raise SystemExit("shapes that do not fit were added")
