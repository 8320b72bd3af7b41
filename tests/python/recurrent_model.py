"""LSTM and GRU in NumPy, a loop over the steps, and weights for them."""

import numpy as np

import kernwright as kw

GATES = {"lstm": 4, "gru": 3}
# How a recurrence is spread over blocks: a launch a step, clusters, blocks that meet in memory.
STEPS, CLUSTER, GRID = range(3)
PLANS = [(STEPS, 1), (CLUSTER, 1), (GRID, 1), (GRID, 3)]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cell_step(cell, x, h, c, w_ih, w_hh, b_ih, b_hh):
    """h and c after one step of a batch."""
    a, p = x @ w_ih.T + b_ih, h @ w_hh.T + b_hh
    if cell == "lstm":
        i, f, g, o = np.split(a + p, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    (xr, xz, xn), (hr, hz, hn) = np.split(a, 3, -1), np.split(p, 3, -1)
    z = sigmoid(xz + hz)
    n = np.tanh(xn + sigmoid(xr + hr) * hn)
    return (1 - z) * n + z * h, c


def network(cell, x, h_0, c_0, weights, directions, each=4, masks=None):
    """output, h_n, c_n of x (length, batch, inputs), in float64."""
    layers = len(weights) // (each * directions)
    h_n, c_n = [], []
    for layer in range(layers):
        if masks is not None and layer > 0:
            x = x * masks[layer - 1]
        ways = []
        for way in range(directions):
            k = layer * directions + way
            arrays = list(weights[k * each : (k + 1) * each])
            if each == 2:
                arrays += [np.zeros(arrays[0].shape[0])] * 2
            h, c = h_0[k], c_0[k]
            out = np.zeros((*x.shape[:2], h.shape[-1]), np.result_type(x, h))
            for t in range(x.shape[0])[:: -1 if way else 1]:
                h, c = cell_step(cell, x[t], h, c, *arrays)
                out[t] = h
            ways.append(out)
            h_n.append(h)
            c_n.append(c)
        x = np.concatenate(ways, -1)
    return x, np.stack(h_n), np.stack(c_n)


class Drawn:
    """Arguments of a network: on the host in float64, as the device's dtype has them."""

    def __init__(
        self, cell, length, batch, inputs, hidden, layers=1, directions=1, bias=True,
        dtype="float32", seed=0,
    ):  # fmt: skip
        rng = np.random.default_rng(seed)
        self.cell, self.dtype, self.directions = cell, dtype, directions
        self.each = 4 if bias else 2
        rows = GATES[cell] * hidden

        def draw(*shape, scale=1.0):
            made = kw.asarray(rng.normal(size=shape) * scale).astype(dtype)
            return made.astype("float64").numpy()

        self.x = draw(length, batch, inputs)
        self.h_0, self.c_0 = (draw(layers * directions, batch, hidden) for _ in range(2))
        self.weights = []
        for layer in range(layers):
            wide = inputs if layer == 0 else directions * hidden
            for _ in range(directions):
                shapes = [(rows, wide), (rows, hidden), (rows,), (rows,)][: self.each]
                self.weights += [draw(*shape, scale=shape[-1] ** -0.5) for shape in shapes]
        self.options = {"num_layers": layers, "bidirectional": directions == 2}

    def on_device(self, values):
        return kw.asarray(values).astype(self.dtype)

    @property
    def hx(self):
        h = self.on_device(self.h_0)
        return h if self.cell == "gru" else (h, self.on_device(self.c_0))

    @property
    def arguments(self):
        """x, hx and weights on the device."""
        return self.on_device(self.x), self.hx, [self.on_device(w) for w in self.weights]

    @property
    def function(self):
        return getattr(kw.nn, self.cell)

    @property
    def backward(self):
        return getattr(kw.nn, f"{self.cell}_backward")

    def expected(self, masks=None):
        return network(
            self.cell, self.x, self.h_0, self.c_0, self.weights, self.directions, self.each, masks
        )
