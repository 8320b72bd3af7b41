"""Cases of kw.optim."""

from every_operation import HOST, Table, s

import kernwright as kw

optimisers = Table("optimisers")
P, G, M = s(1031), s(1031, dtype="bfloat16"), s(1031, low=0)
W = s(6, 4)


def stepped(optimizer, gradient, **options):
    norm = optimizer.step(gradient, **options)
    return [optimizer.params, *optimizer.state_dict().values(), norm]


for name in ("adam", "adamw"):
    call = getattr(kw.optim, name)
    optimisers.add(f"optim.{name}", lambda p, g, m, v, f=call: f(p, g, m, v, step=3), P, G, M, M)
optimisers.add(
    "optim.adamw",
    lambda p, g, m, v: kw.optim.adamw(p, g, m, v, step=3, stochastic_rounding=True, seed=5),
    *(G, G, M, M),
    form="stochastic",
)
optimisers.add("optim.lion", kw.optim.lion, P, G, M)
optimisers.add("optim.sgd", kw.optim.sgd, P, P)
optimisers.add("optim.sgd", lambda p, g, m: kw.optim.sgd(p, g, m, step=2, momentum=0.9), P, G, M)
for name in ("SGD", "Adam", "AdamW", "Lion", "Muon"):
    cls, narrow = getattr(kw.optim, name), s(6, 4, dtype="bfloat16") if name == "Muon" else G
    wide = W if name == "Muon" else P
    optimisers.add(f"optim.{name}", lambda p, cls=cls: cls(p, master_weights=True).params, narrow)
    optimisers.add(f"optim.{name}.step", lambda p, g, cls=cls: stepped(cls(p), g), wide, narrow)
    optimisers.add(
        f"optim.{name}.state_dict",
        lambda p, cls=cls: stepped(cls(p, master_weights=True), p),
        narrow,
    )
    optimisers.add(
        f"optim.{name}.load_state_dict",
        lambda p, g, cls=cls: cls(p).load_state_dict(cls(g).state_dict()),
        *(wide, wide),
    )
    optimisers.add(
        f"optim.{name}.load_settings",
        lambda p, cls=cls: cls(p).load_settings(cls(p, lr=0.5).settings()),
        wide,
    )
    optimisers.add(
        f"optim.{name}.settings",
        lambda p, lr, cls=cls: cls(p, lr=lr).settings(),
        *(wide, s(1, low=0)),
        kind=HOST,
    )


def scaled(p, g):
    scale = kw.optim.LossScale(4.0, interval=1)
    result = stepped(kw.optim.SGD(p, kw.optim.cosine(0.1, 9)), g, loss_scale=scale, max_norm=1.0)
    return [*result, scale.state_dict()]


def summed(p, g):
    window = kw.optim.Accumulator(p)
    window.add(g, tokens=3)
    window.add(g, tokens=kw.full(1, 2, "int64"), reduction="sum")
    return window


def averaged(p):
    average = kw.optim.EMA(p, 0.5)
    p += 1
    average.update()
    return average


def reset(p, g):
    window = summed(p, g)
    window.reset()
    return window.tokens


def applied(p):
    average = averaged(p)
    with average.applied():
        return p.copy()


def loaded(other, state):
    other.load_state_dict(state)
    return other.state_dict()


optimisers.add("optim.LossScale", scaled, P, G)
optimisers.add("optim.LossScale.state_dict", lambda: kw.optim.LossScale().state_dict())
optimisers.add(
    "optim.LossScale.load_state_dict",
    lambda: loaded(kw.optim.LossScale(), kw.optim.LossScale(2.0).state_dict()),
)
optimisers.add("optim.Accumulator", lambda p, g: stepped(kw.optim.SGD(p), summed(p, g)), P, G)
optimisers.add("optim.Accumulator.add", lambda p, g: summed(p, g).state_dict(), P, G)
optimisers.add("optim.Accumulator.mean", lambda p, g: summed(p, g).mean(), P, P)
optimisers.add("optim.Accumulator.reset", reset, P, P)
optimisers.add("optim.Accumulator.state_dict", lambda p: summed(p, p).state_dict(), P)
optimisers.add(
    "optim.Accumulator.load_state_dict",
    lambda p: loaded(kw.optim.Accumulator(p), summed(p, p).state_dict()),
    P,
)
optimisers.add("optim.EMA", lambda p: averaged(p).values, G)
optimisers.add("optim.EMA.update", lambda p: averaged(p).values, P)
optimisers.add("optim.EMA.applied", applied, P)
optimisers.add("optim.EMA.state_dict", lambda p: averaged(p).state_dict(), P)
optimisers.add(
    "optim.EMA.load_state_dict",
    lambda p: loaded(kw.optim.EMA(p), averaged(p).state_dict()),
    P,
)
optimisers.add("optim.newton_schulz", lambda x: kw.optim.newton_schulz(x), s(2, 6, 4))
optimisers.add(
    "optim.newton_schulz", lambda x: kw.optim.newton_schulz(x, dtype="float32"), W, form="float32"
)
for name in ("grad_norm", "clip_scale", "clip_grad_norm"):
    arguments = () if name == "grad_norm" else (1.0,)
    call = getattr(kw.optim, name)
    optimisers.add(
        f"optim.{name}", lambda x, y, f=call, a=arguments: f([x, y], *a), P, s(33, 7), form="two"
    )
optimisers.add("optim.grad_norm", lambda x: kw.optim.grad_norm(x, float("inf")), s(70000))

TABLES = (optimisers,)
