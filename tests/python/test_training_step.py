"""A whole training step: forward, gradients, accumulation, clipping, loss scale, optimiser."""

import numpy as np
import pytest

import kernwright as kw


class Net(kw.nn.Module):
    """Predicts the next token; the embedding is the last layer, too."""

    def __init__(self):
        self.embed = kw.nn.Embedding(11, 8, seed=1)
        self.embed.weight *= 0.3
        self.up = kw.nn.Linear(8, 16, seed=2)
        self.norm = kw.nn.LayerNorm(16)
        self.down = kw.nn.Linear(16, 8, seed=3)
        self.head = kw.nn.Linear(8, 11, False)
        self.head.weight = self.embed.weight

    def __call__(self, tokens):
        x = self.embed(tokens)
        return self.head(x + self.down(kw.nn.silu(self.norm(self.up(x)))))


def scaled_loss(model, inputs, targets, scale):
    logits = model(inputs).reshape(-1, 11)
    loss = kw.nn.cross_entropy(logits, targets.reshape(-1))
    return loss * scale, loss


class Run:
    def __init__(self, kind):
        self.model = Net()
        groups = [{"match": "embed", "lr": 0.01}]
        if kind == "Muon":
            groups[0]["rule"] = "adamw"
        self.optimizer = getattr(kw.optim, kind)(
            self.model, lr=kw.optim.wsd(0.02, 40, decay=10, warmup=3), groups=groups
        )
        self.window = kw.optim.Accumulator(self.model)
        self.scale = kw.optim.LossScale(256.0, interval=8)
        self.gradient = kw.value_and_grad(scaled_loss, has_aux=True)
        self.inputs, self.targets = kw.zeros((2, 3, 6), "int32"), kw.zeros((2, 3, 6), "int32")

    def feed(self, shards):
        for i in range(2):
            shards.read_into(self.inputs[i], self.targets[i])
        kw.synchronize()

    def step(self):
        for i in range(2):
            (_, loss), grads = self.gradient(
                self.model, self.inputs[i], self.targets[i], self.scale.scale
            )
            self.window.add(grads, tokens=18)
        norm = self.optimizer.step(self.window, max_norm=1.0, loss_scale=self.scale)
        return loss, norm


@pytest.fixture
def path(tmp_path):
    """Each token follows from the one before."""
    tokens = [1]
    for _ in range(400):
        tokens.append((tokens[-1] * 7 + 3) % 11)
    kw.train.write_shard(tmp_path / "a.bin", tokens)
    return tmp_path / "a.bin"


@pytest.mark.parametrize("kind", ["AdamW", "Muon"])
def test_replays_of_a_whole_step_equal_steps(path, kind):
    eager, captured = Run(kind), Run(kind)
    data = [kw.train.Shards(path, batch_size=3, length=6, seed=2) for _ in range(2)]
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        loss, norm = captured.step()
    losses = []
    for _ in range(20):
        eager.feed(data[0])
        expected = eager.step()
        captured.feed(data[1])
        graph.launch(stream)
        stream.synchronize()
        for got, value in zip((loss, norm), expected, strict=True):
            assert got.numpy().tobytes() == value.numpy().tobytes()
        losses.append(loss.item())
    names = [name for name, _ in eager.model.named_parameters()]
    assert "head.weight" not in names
    for (name, a), (_, b) in zip(
        eager.model.named_parameters(), captured.model.named_parameters(), strict=True
    ):
        assert a.numpy().tobytes() == b.numpy().tobytes(), name
    assert np.mean(losses[-3:]) < 0.7 * np.mean(losses[:3])


def test_two_runs_have_the_same_bits(path):
    results = []
    for _ in range(2):
        run, data = Run("AdamW"), kw.train.Shards(path, batch_size=3, length=6, seed=2)
        for _ in range(5):
            run.feed(data)
            loss, _ = run.step()
        results.append((loss.numpy().tobytes(), run.model.embed.weight.numpy().tobytes()))
    assert results[0] == results[1]
