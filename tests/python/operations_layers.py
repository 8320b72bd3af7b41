"""Cases of the layers and initialisers of kw.nn."""

import functools

from every_operation import VIEW, Table, s

import kernwright as kw

layers = Table("layers")


def layer(name, make, *specs):
    """A case that calls a layer, which is made once."""
    made = functools.cache(make)
    layers.add(f"nn.{name}", lambda *arrays: made()(*arrays), *specs)


ROWS, TOKENS = s(9, 24), s(2, 5, 24)
layer("Linear", lambda: kw.nn.Linear(24, 16, seed=1), ROWS)
layer("Embedding", lambda: kw.nn.Embedding(40, 24, seed=1), s(5, dtype="int64", low=0, high=40))
layer("RMSNorm", lambda: kw.nn.RMSNorm(24), ROWS)
layer("LayerNorm", lambda: kw.nn.LayerNorm((4, 6)), s(9, 4, 6))
layer("GroupNorm", lambda: kw.nn.GroupNorm(2, 6), s(2, 6, 35))
layer("MLP", lambda: kw.nn.MLP(24, 32, seed=1), ROWS)
layer("GatedMLP", lambda: kw.nn.GatedMLP(24, 32, seed=1), ROWS)
layer("Rope", lambda: kw.nn.Rope(16), s(2, 9, 3, 16))
layer(
    "MultiHeadAttention",
    lambda: kw.nn.MultiHeadAttention(24, 3, rope=kw.nn.Rope(8), is_causal=True, seed=1),
    TOKENS,
)
layer("Experts", lambda: kw.nn.Experts(16, 24, 4, 2, seed=1), s(9, 16, dtype="bfloat16"))

layers.add("nn.Dropout", lambda x: kw.nn.Dropout(0.3, seed=5)(x), ROWS)
WAVES = s(2, 16, 9)
layer("Conv1d", lambda: kw.nn.Conv1d(16, 8, 3, 2, 1, seed=1), WAVES)
layer("Conv1d", lambda: kw.nn.Conv1d(16, 8, 3, 1, "same", padding_mode="reflect", seed=1), WAVES)
layer("Conv2d", lambda: kw.nn.Conv2d(3, 8, 3, padding=1, seed=1), s(2, 3, 7, 5))
layer("ConvTranspose1d", lambda: kw.nn.ConvTranspose1d(16, 8, 4, 2, 1, seed=1), WAVES)

layer("LSTM", lambda: kw.nn.LSTM(24, 8, bidirectional=True, seed=1), TOKENS)
layer("GRU", lambda: kw.nn.GRU(24, 8, num_layers=2, seed=1), TOKENS)
layer("LSTMCell", lambda: kw.nn.LSTMCell(24, 8, seed=1), ROWS)
layer("GRUCell", lambda: kw.nn.GRUCell(24, 8, seed=1), ROWS)

WEIGHTS = (6, 4, 3)
DRAWS = ("normal", "uniform", "truncated_normal", "xavier_uniform", "xavier_normal")
for name in (*DRAWS, "kaiming_uniform", "kaiming_normal", "orthogonal"):
    draw = getattr(kw.nn.init, name)
    layers.add(f"nn.init.{name}", lambda f=draw: f(WEIGHTS, seed=3))
layers.add("nn.init.gain", lambda: kw.nn.init.gain("tanh"), kind=VIEW)

recurrent = Table("recurrent")


def networks(cell, gates):
    """A network of two directions, its gradient, and one step."""
    function, backward = getattr(kw.nn, cell), getattr(kw.nn, f"{cell}_backward")
    one_step = getattr(kw.nn, f"{cell}_cell")
    shapes = [s(gates * 8, 5), s(gates * 8, 8), s(gates * 8), s(gates * 8)]
    x, both = s(4, 3, 5), [*shapes, *shapes]
    recurrent.add(f"nn.{cell}", lambda x, *w: function(x, None, w, bidirectional=True), x, *both)
    recurrent.add(f"nn.{cell}", lambda x, *w: function(x, None, w), s(2, 3, 5), *shapes[:2],
                  form="steps")  # fmt: skip
    recurrent.add(f"nn.{cell}_backward", lambda g, x, *w: backward(g, x, None, w), s(4, 3, 8), x,
                  *shapes)  # fmt: skip
    recurrent.add(f"nn.{cell}_cell", lambda x, *w: one_step(x, None, *w), s(3, 5), *shapes)


networks("lstm", 4)
networks("gru", 3)

TABLES = (layers, recurrent)
