"""One device answers requests while it trains: replies are guaranteed, training is best effort."""

import numpy as np

import kernwright as kw
from kernwright import llm

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


TINY = {
    "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    "dtype": "float32", "max_position_embeddings": 64,
}  # fmt: skip

with kw.schedule.Scheduler(memory=2**30) as scheduler:
    chat = llm.load(random=TINY, scheduler=scheduler)  # its steps are guaranteed tasks
    kept = scheduler.keep(model, optimiser, model="train")  # may leave the device between steps
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
            # A request: its steps run at once, whatever waits for training.
            reply = chat.generate([seed, 1, 2], max_tokens=4)
            print(f"request {seed // 10}: {len(reply.tokens)} tokens")
    first, last = (float(step.result().item()) for step in (steps[0], steps[-1]))
    print(f"loss: {first:.2f}, then {last:.3f}")
    refused = scheduler.submit(train, x, y, memory=2**31)
    print(refused.exception())
    print(f"{kept.evict()} bytes of model and optimiser moved to the host")
    kept.release()
    done = scheduler.stats()["classes"]
    print({name: row["done"] for name, row in done.items()})
