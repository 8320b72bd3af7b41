"""A model without weights whose next token depends on all before it, and the same on the host."""

import random

import kernwright as kw
from kernwright import llm
from kernwright.llm._engine import TokenEngine
from kernwright.llm._sampling import Sampling

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


def require_right_texts(engine, pages, *, seed, rounds, at_once, new):
    """Runs texts of any length that share beginnings, with `new` tokens (least, most); the stats
    then."""
    draw = random.Random(seed)
    roots = prompts_of(13, 3, longest=30)
    for _ in range(rounds):
        prompts = [
            root[: draw.randint(1, len(root))] + [draw.randrange(3) for _ in range(4)]
            for root in draw.choices(roots, k=at_once)
        ]
        made = engine.run(prompts, Sampling(max_tokens=draw.randint(*new)))
        for prompt, (each,) in zip(prompts, made, strict=True):
            assert each.tokens == expected(prompt, len(each.tokens))
        stats = engine.stats()
        assert stats["used_pages"] == 0
        assert stats["free_pages"] + stats["cached_pages"] == pages
    return stats


def require_right_texts_with_few_pages(engine, pages):
    """The same of texts that preempt each other."""
    # The sum of no text is 1000, which the model takes ill.
    stats = require_right_texts(engine, pages, seed=2, rounds=6, at_once=4, new=(30, 55))
    assert stats["preemptions"] > 0
    assert stats["shared_tokens"] > 0
    return stats


ENDS_WITHIN_DRAFTS = [
    {"stop_tokens": "fourth"}, {"stop_tokens": "fourth", "min_tokens": 6}, {"max_tokens": 1},
    {"max_tokens": 2}, {"choices": 3},
]  # fmt: skip


def require_ends_without_drafts(engine, options, count):
    """Texts of an engine with drafts end as those without; the fourth token may be a stop token."""
    for prompt in prompts_of(5, count, longest=30):
        chosen = {"max_tokens": 12, **options}
        if "stop_tokens" in chosen:
            chosen["stop_tokens"] = [expected(prompt, 12)[3]]
        wanted = expected(
            prompt, chosen["max_tokens"], chosen.get("stop_tokens", ()), chosen.get("min_tokens", 0)
        )
        (made,) = engine.run([prompt], Sampling(**chosen))
        assert [each.tokens for each in made] == [wanted] * chosen.get("choices", 1)
