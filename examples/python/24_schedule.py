"""One device answers requests while it trains: replies are guaranteed, training is best effort."""

import numpy as np

import kernwright as kw

kw.random.seed(3)
model = kw.nn.Sequential(kw.nn.Linear(8, 32), kw.nn.Linear(32, 1))
optimiser = kw.optim.AdamW(model, lr=0.02)
rule = np.linspace(-1, 1, 8, dtype=np.float32)[:, None]


def loss(network, x, y):
    return ((network(x) - y) ** 2).mean()


def train(x, y):
    value, gradients = kw.value_and_grad(loss)(model, x, y)
    optimiser.step(gradients)
    return value


with kw.schedule.Scheduler(memory=2**30) as scheduler:
    steps = []
    for seed in range(40):
        x = kw.random.normal(shape=(64, 8), dtype="float32", seed=seed)
        y = x @ kw.asarray(rule)
        # Steps change the same model, so each goes behind the one before.
        steps.append(
            scheduler.submit(
                train, x, y, qos="best_effort", name=f"step {seed}", after=steps[-1:], model="train"
            )
        )
        if seed % 10 == 9:
            # A request: it runs at once, whatever waits for training.
            reply = scheduler.submit(kw.matmul, x[:2], kw.asarray(rule), memory=2**20, deadline=1)
            print(f"request {seed // 10}: {reply.result().numpy().ravel().round(2)}, {reply.state}")
    first, last = (float(step.result().item()) for step in (steps[0], steps[-1]))
    print(f"loss: {first:.2f}, then {last:.3f}")
    refused = scheduler.submit(train, x, y, memory=2**31)
    print(refused.exception())
    done = scheduler.stats()["classes"]
    print({name: row["done"] for name, row in done.items()})
