"""A model without weights whose next token depends on all before it, and the same on the host."""

import random

import kernwright as kw
from kernwright import llm
from kernwright.llm._engine import TokenEngine

VOCABULARY = 61
DIM = 16


class Summing:
    """Its attention has equal weights, so the sum of all tokens comes out of the pages."""

    def __init__(self, spread=0.0):
        self.spread, self.calls, self.failure = spread, [], None
        self.numbers = kw.arange(VOCABULARY, dtype="int32")

    def __call__(self, step):
        self.calls.append((step.tokens.size, step.select(step.tokens).size))
        if self.failure is not None:
            raise self.failure
        numbers = step.tokens.astype("float32").reshape(-1, 1, 1)
        zeros = kw.zeros((step.tokens.size, 1, DIM))
        means = step.attend(0, zeros, zeros, zeros + numbers)[:, 0, 0]
        places = step.select(step.positions) + 1
        sums = kw.round(step.select(means) * places).astype("int32")
        target = (sums * 31 + places * 7 + 3) % VOCABULARY
        distance = (self.numbers.reshape(1, -1) - target.reshape(-1, 1)) % VOCABULARY
        if self.spread:
            return -distance.astype("float32") / self.spread
        bad = (self.numbers.reshape(1, -1) * 0 + sums.reshape(-1, 1)) == 1000
        return kw.where(bad, float("nan"), kw.where(distance == 0, 9.0, 0.0))


def expected(prompt, count, stop=(), least=0):
    """Of Summing() without spread. Among the first `least` tokens, none is of `stop`: the lowest
    other one comes in its place."""
    tokens = list(prompt)
    while len(tokens) - len(prompt) < count:
        token = (sum(tokens) * 31 + len(tokens) * 7 + 3) % VOCABULARY
        if token in stop and len(tokens) - len(prompt) < least:
            token = min(set(range(VOCABULARY)) - set(stop))
        tokens.append(token)
        if token in stop:
            break
    return tokens[len(prompt) :]


def make(model=None, **options):
    options = {"max_rows": 4, "capacity": 96, "page_size": 4, "max_tokens_per_step": 24, **options}
    return TokenEngine(
        model or Summing(), vocabulary=VOCABULARY, cache_layers=[(1, DIM)], dtype="float32",
        **options,
    )  # fmt: skip


def prompts_of(seed, count, longest=40):
    draw = random.Random(seed)
    return [
        [draw.randrange(VOCABULARY) for _ in range(draw.randint(1, longest))] for _ in range(count)
    ]


class SummingModule(kw.nn.Module):
    """Summing as a module of an llm.Model."""

    def __init__(self, spread=0.0):
        self.weight = kw.zeros((1,))
        self.summing = Summing(spread)

    def __call__(self, step):
        return self.summing(step)

    def cache_layers(self):
        return [(1, DIM)]


def make_model(capacity=96, spread=0.0):
    loaded = llm.load(random={
        "architectures": ["LlamaForCausalLM"], "vocab_size": VOCABULARY, "hidden_size": DIM,
        "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1,
        "max_position_embeddings": capacity, "dtype": "float32",
    })  # fmt: skip
    return llm.Model(
        loaded.config, SummingModule(spread), memory=loaded.memory, cache_dtype="float32"
    )
