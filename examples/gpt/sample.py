"""Writes text with a trained GPT: `python sample.py gpt-tiny --prompt "def "`."""

import argparse
import pathlib

import data
import model as gpt
import numpy as np

import kernwright as kw


def generate(model, tokens, count, vocab_size, **options):
    """`tokens` and `count` more, below vocab_size; the model sees the last n_positions of them.
    `options` are those of kw.nn.sample()."""
    width = model.config.n_positions

    @kw.captured
    def logits_of(window, place):
        last = kw.take(model.features(window), place, axis=1)[0]
        return model.wte.as_linear(last)[:, :vocab_size]

    tokens = [int(token) for token in tokens]
    for step in range(count):
        seen = tokens[-width:]  # what follows the last one is hidden by the causal mask
        window = np.zeros((1, width), np.int32)
        window[0, : len(seen)] = seen
        logits = logits_of(kw.asarray(window), kw.asarray(np.asarray([len(seen) - 1])))
        tokens.append(kw.nn.sample(logits, step=step, **options).item())
    return tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=pathlib.Path, help="the folder that train.py wrote")
    parser.add_argument("--prompt", default="import ")
    parser.add_argument("--count", type=int, default=200, help="tokens to write")
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--top-k", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    tokenizer, model = data.tokenizer_of(options.run), gpt.load(options.run / "model")
    if not kw.current_device().is_simulated:
        model.astype("bfloat16")
    tokens = generate(
        model, tokenizer.encode(options.prompt or "\n"), options.count, tokenizer.vocab_size,
        temperature=options.temperature, top_k=options.top_k, seed=options.seed,
    )  # fmt: skip
    print(tokenizer.decode(tokens))


if __name__ == "__main__":
    main()
