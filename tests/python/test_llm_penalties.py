"""Penalties and log-probabilities of generated tokens against NumPy."""

import numpy as np
import pytest
from summing_model import VOCABULARY, Summing, make, prompts_of

import kernwright as kw
from kernwright.llm._sampling import Sampling

SPREAD = 2.0


def logits_after(tokens):
    target = (sum(tokens) * 31 + len(tokens) * 7 + 3) % VOCABULARY
    return -((np.arange(VOCABULARY) - target) % VOCABULARY) / SPREAD


def chances_after(tokens):
    x = logits_after(tokens)
    return x - np.log(np.exp(x).sum())


def penalised(tokens, prompt, repetition=1.0, presence=0.0, frequency=0.0):
    x = logits_after(tokens)
    for token in set(tokens):
        x[token] = x[token] / repetition if x[token] > 0 else x[token] * repetition
        often = tokens[len(prompt) :].count(token)
        x[token] -= frequency * often + presence * (often > 0)
    return x


def greedy(prompt, count, **penalties):
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(penalised(tokens, prompt, **penalties).argmax()))
    return tokens[len(prompt) :]


@pytest.fixture(scope="module")
def engine():
    return make(Summing(SPREAD))


PENALTIES = [
    {"repetition": 1.37},
    {"repetition": 0.61},
    {"presence": 7.3},
    {"frequency": 2.9},
    {"repetition": 1.2, "presence": -1.3, "frequency": 3.1},
]


@pytest.mark.parametrize("penalties", PENALTIES)
def test_greedy_tokens_with_penalties_are_those_of_numpy(engine, penalties):
    prompts = [*prompts_of(1, 3, longest=12), [4] * 11]
    sampling = Sampling(
        max_tokens=14, **{f"{name}_penalty": value for name, value in penalties.items()}
    )
    made = engine.run(prompts, sampling)
    assert [each.tokens for (each,) in made] == [greedy(each, 14, **penalties) for each in prompts]


def test_rows_with_and_without_penalties_run_together(engine):
    prompts = prompts_of(2, 4, longest=12)
    kinds = [{}, {"repetition": 1.37}, {"presence": 7.3}, {"frequency": 2.9}]
    made = engine.run_each(
        [
            (prompt, Sampling(10, **{f"{name}_penalty": value for name, value in kind.items()}))
            for prompt, kind in zip(prompts, kinds, strict=True)
        ]
    )
    for prompt, kind, (each,) in zip(prompts, kinds, made, strict=True):
        assert each.tokens == greedy(prompt, 10, **kind)


@pytest.mark.parametrize("options", [{}, {"temperature": 1.5, "seed": 3, "presence_penalty": 2.0}])
def test_log_probabilities_are_those_of_the_models_logits(engine, options):
    prompts = prompts_of(3, 3)
    for count in (0, 1, 5, 20):
        made = engine.run(prompts, Sampling(max_tokens=6, logprobs=count, **options))
        for prompt, (each,) in zip(prompts, made, strict=True):
            assert len(each.logprobs) == len(each.tokens) == 6
            for i, (token, details) in enumerate(zip(each.tokens, each.logprobs, strict=True)):
                chances = chances_after([*prompt, *each.tokens[:i]])
                assert abs(details.logprob - chances[token]) < 1e-4
                order = np.argsort(-chances, kind="stable")[:count]
                assert [token for token, _ in details.top] == order.tolist()
                np.testing.assert_allclose(
                    [value for _, value in details.top], chances[order], atol=1e-4
                )


def test_only_requests_that_ask_get_log_probabilities(engine):
    plain, asked = engine.run_each([([1, 2], Sampling()), ([3], Sampling(logprobs=2, choices=2))])
    assert plain[0].logprobs is None
    assert [len(each.logprobs) for each in asked] == [16, 16]
    pieces = list(engine.stream([3], Sampling(max_tokens=3, logprobs=1)))
    assert [piece.logprobs.top[0][0] for piece in pieces] == [piece.token for piece in pieces]


def test_no_kernel_of_a_step_makes_a_finding_under_all_checks(sim):
    prompts = prompts_of(4, 4)
    kinds = [
        {"max_tokens": 6},
        {"max_tokens": 5, "temperature": 1.0, "top_k": 5, "seed": 1, "choices": 2},
        {"repetition_penalty": 1.3, "presence_penalty": 0.5, "frequency_penalty": 0.2},
        {"max_tokens": 3, "logprobs": 4},
    ]
    with kw.checks("memory", "init", "race", "sync") as report:
        made = make(Summing(SPREAD)).run_each(
            [(each, Sampling(**kind)) for each, kind in zip(prompts, kinds, strict=True)]
        )
        kw.synchronize()
    assert not report.findings, str(report)
    assert made[0][0].tokens == greedy(prompts[0], 6)
