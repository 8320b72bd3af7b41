"""Biases of logits, allowed and bad tokens, and min_tokens, against NumPy."""

import collections

import numpy as np
import pytest
from summing_model import VOCABULARY, Summing, expected, make, prompts_of

from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.llm._sampling import Sampling

SPREAD = 2.0


def logits_after(tokens):
    target = (sum(tokens) * 31 + len(tokens) * 7 + 3) % VOCABULARY
    return -((np.arange(VOCABULARY) - target) % VOCABULARY) / SPREAD


def constrained(tokens, options, left=()):
    """The logits behind these tokens; those in `left` are masked, too."""
    x = logits_after(tokens)
    for token, value in options.get("logit_bias", {}).items():
        x[token] += value
    allowed = options.get("allowed_tokens")
    hidden = np.isin(np.arange(VOCABULARY), [*options.get("bad_tokens", ()), *left])
    if allowed is not None:
        hidden |= ~np.isin(np.arange(VOCABULARY), allowed)
    return np.where(hidden, -np.inf, x)


def greedy(prompt, count, options):
    tokens = list(prompt)
    stops, least = options.get("stop_tokens", ()), options.get("min_tokens", 0)
    for i in range(count):
        tokens.append(int(constrained(tokens, options, stops if i < least else ()).argmax()))
        if tokens[-1] in stops:
            break
    return tokens[len(prompt) :]


@pytest.fixture(scope="module")
def engine():
    return make(Summing(SPREAD))


@pytest.fixture(scope="module")
def wide_engine():
    return make(Summing(SPREAD), max_rows=32, max_tokens_per_step=128)


CONSTRAINTS = [
    {"logit_bias": {7: 5.5, 9: -100, 60: 11.25, 0: 2}},
    {"logit_bias": {13: 100}},
    {"allowed_tokens": [3, 31, 32, 33, 60]},
    {"bad_tokens": [*range(40)]},
    {"allowed_tokens": range(20), "bad_tokens": (4, 5), "logit_bias": {4: 100, 6: 3}},
    {"min_tokens": 6, "stop_tokens": [*range(45)]},
    {"min_tokens": 3, "stop_tokens": [*range(0, 61, 2)], "allowed_tokens": [*range(30)]},
]


@pytest.mark.parametrize("options", CONSTRAINTS)
def test_greedy_tokens_under_constraints_are_those_of_numpy(engine, options):
    prompts = prompts_of(1, 5, longest=30)
    made = engine.run(prompts, Sampling(max_tokens=14, **options))
    for prompt, (each,) in zip(prompts, made, strict=True):
        assert each.tokens == greedy(prompt, 14, options)


def test_min_tokens_keeps_stop_tokens_out_of_the_text_until_it_is_reached(engine):
    options = {"min_tokens": 5, "stop_tokens": [*range(0, 61, 3)]}
    made = engine.run(prompts_of(2, 8), Sampling(max_tokens=20, **options))
    for (each,) in made:
        assert each.finish_reason == "stop" and each.tokens[-1] % 3 == 0
        assert len(each.tokens) > 5 and not [t for t in each.tokens[:-1] if t % 3 == 0]
    none = engine.run([[1]], Sampling(max_tokens=4, min_tokens=9, stop_tokens=[*range(60)]))
    assert none[0][0].tokens == [60] * 4 and none[0][0].finish_reason == "length"


def test_rows_with_and_without_constraints_run_together(engine):
    kinds = [{}, *CONSTRAINTS[:3], {}, *CONSTRAINTS[3:], {"temperature": 1.0, "seed": 5}]
    prompts = prompts_of(3, len(kinds), longest=20)
    requests = [
        (prompt, Sampling(max_tokens=9, **kind))
        for prompt, kind in zip(prompts, kinds, strict=True)
    ]
    for (each,), request in zip(engine.run_each(requests), requests, strict=True):
        assert each == engine.run([request[0]], request[1])[0][0]
    assert engine.run([prompts[0]], Sampling(9))[0][0].tokens == greedy(prompts[0], 9, {})


@pytest.mark.parametrize(
    "options",
    [
        {"logit_bias": {7: 3.5, 9: -100, 60: 2.25}, "bad_tokens": [8, 1]},
        {"allowed_tokens": [5, 6, 7, 30, 31, 32], "top_k": 3},
        {"bad_tokens": [*range(10, 50)], "top_p": 0.8},
    ],
)
def test_drawn_tokens_have_the_distribution_of_numpy(wide_engine, options):
    prompt, temperature, count = [5, 9, 44], 6.0, 960
    x = constrained(prompt, options) / temperature
    chances = np.exp(x - x.max())
    order = np.argsort(-chances, kind="stable")
    if "top_k" in options:
        chances[order[options["top_k"] :]] = 0
    if "top_p" in options:
        sums = np.cumsum(chances[order]) / chances.sum()
        chances[order[1:][sums[:-1] >= options["top_p"]]] = 0
    chances /= chances.sum()
    sampling = Sampling(1, choices=count, temperature=temperature, seed=3, **options)
    drawn = collections.Counter(each.tokens[0] for each in wide_engine.run([prompt], sampling)[0])
    found = np.array([drawn[token] for token in range(VOCABULARY)])
    assert not found[chances == 0].any()
    wanted = count * chances[chances > 0]
    chi_square = float(((found[chances > 0] - wanted) ** 2 / wanted).sum())
    degrees = len(wanted) - 1
    assert chi_square < degrees + 5 * np.sqrt(2 * degrees)


def test_log_probabilities_are_those_of_the_raw_logits(engine):
    options = {"allowed_tokens": [3, 4], "logit_bias": {3: 40.0}}
    ((each,),) = engine.run([[2, 9]], Sampling(max_tokens=5, logprobs=2, **options))
    for i, (token, details) in enumerate(zip(each.tokens, each.logprobs, strict=True)):
        x = logits_after([2, 9, *each.tokens[:i]])
        chances = x - np.log(np.exp(x).sum())
        assert token == 3 and abs(details.logprob - chances[3]) < 1e-4
        assert details.top[0][0] == int(x.argmax())


def test_a_step_masks_only_where_a_row_asks():
    engine = make(Summing(SPREAD))
    masked = []
    record = engine._record

    def recorded(rows, tokens, random, penalties, details, masks, *more):
        masked.append(masks)
        return record(rows, tokens, random, penalties, details, masks, *more)

    engine._record = recorded
    engine.run([[1]], Sampling(4))
    assert masked and not any(masked)
    engine.run([[1]], Sampling(6, min_tokens=2, stop_tokens=[60]))
    assert any(masked)
    engine.run([[1]], Sampling(4))
    count = len(masked)
    engine.run([[2]], Sampling(6, min_tokens=2, stop_tokens=[60]))
    assert len(masked) == count  # a graph for each: with masks, without


def test_logits_that_are_no_numbers_end_only_their_own_sequence():
    engine = make()
    # The model gives NaN where the sum of all tokens is 1000.
    bad = [60] * 16 + [40]
    streams = [
        engine.stream(bad, Sampling(4, allowed_tokens=[1, 2])),
        engine.stream([3, 4], Sampling(4, bad_tokens=[60])),
    ]
    with pytest.raises(ValueError, match="not finite"):
        next(streams[0])
    assert [piece.token for piece in streams[1]] == expected([3, 4], 4)


@pytest.mark.parametrize(
    "options",
    [
        {"logit_bias": {61: 1.0}},
        {"logit_bias": {-1: 1.0}},
        {"logit_bias": {1: 100.5}},
        {"logit_bias": {1: float("nan")}},
        {"logit_bias": dict.fromkeys(range(301), 1.0)},
        {"allowed_tokens": []},
        {"allowed_tokens": [61]},
        {"allowed_tokens": [4], "bad_tokens": [4]},
        {"bad_tokens": range(61)},
        {"bad_tokens": [2**31]},
        {"allowed_tokens": [4], "stop_tokens": [4], "min_tokens": 1},
    ],
)
def test_constraints_that_make_no_sense_are_refused(engine, options):
    with pytest.raises(InvalidArgument):
        engine.run([[1]], Sampling(**options))
    assert engine.run([[1]], Sampling(2))[0][0].tokens == greedy([1], 2, {})


@pytest.mark.parametrize(
    "options",
    [
        {"logit_bias": [1, 2]},
        {"logit_bias": {"5": 1.0}},
        {"logit_bias": {5: "1"}},
        {"logit_bias": {5: True}},
        {"allowed_tokens": 5},
        {"allowed_tokens": "ab"},
        {"allowed_tokens": [1.0]},
        {"bad_tokens": None},
        {"bad_tokens": [True]},
    ],
)
def test_constraints_of_other_types_are_refused(options):
    with pytest.raises(ArgumentError):
        Sampling(**options)
