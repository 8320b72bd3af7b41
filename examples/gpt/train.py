"""Trains a GPT: `python train.py` in a minute without a GPU, with `--preset gpt2` on one.

A run that was interrupted goes on when it is started again with the same --out.
"""

import argparse
import dataclasses
import pathlib

import data
import model as gpt

import kernwright as kw

# Options that differ between the presets.
SETTINGS = {
    "tiny": {"steps": 300, "batch": 8, "accumulate": 1, "lr": 1e-2, "limit": 300_000},
    "char": {"steps": 5000, "batch": 64, "accumulate": 1, "lr": 1e-3, "limit": 20_000_000},
    "gpt2": {"steps": 20000, "batch": 64, "accumulate": 8, "lr": 6e-4, "limit": 10**9},
}


def options_of(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", choices=gpt.PRESETS, default="tiny")
    parser.add_argument("--init", help="a folder with a GPT-2 checkpoint of Hugging Face")
    parser.add_argument("--data", default="stdlib", help="a text file, a folder of them, stdlib")
    parser.add_argument("--tokenizer", help="byte, char, gpt2, or bpe:N; byte unless --init")
    parser.add_argument("--out", type=pathlib.Path, help="the folder of the run")
    parser.add_argument("--dtype", help="of the weights; bfloat16 on a GPU, float32 without one")
    for name in ("steps", "batch", "accumulate", "limit"):  # limit: characters of the data
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--lr", type=float)
    parser.add_argument("--every", type=int, default=50, help="steps between validations")
    parser.add_argument("--until", type=int, help="stop at this step; go on later")
    options = parser.parse_args(words)
    for name, value in SETTINGS[options.preset].items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    options.out = options.out or pathlib.Path(f"gpt-{options.preset}")
    options.tokenizer = options.tokenizer or ("gpt2" if options.init else "byte")
    if options.dtype is None:
        options.dtype = "float32" if kw.current_device().is_simulated else "bfloat16"
    return options


def model_of(options, tokenizer):
    if options.init:
        return gpt.load(options.init)
    config = gpt.PRESETS[options.preset]
    padded = -(-tokenizer.vocab_size // 64) * 64  # whole tiles of the last product
    return gpt.GPT(dataclasses.replace(config, vocab_size=max(padded, config.vocab_size)))


def train(options):
    tokenizer = data.prepare(options.data, options.tokenizer, options.out, options.limit)
    model = model_of(options, tokenizer).astype(options.dtype)
    rows, length = options.batch * options.accumulate, model.config.n_positions
    known = {"vocabulary": model.config.vocab_size}
    shards = kw.train.Shards(options.out / "train.bin", rows, length, seed=1, **known)
    others = kw.train.Shards(options.out / "val.bin", options.batch, length, **known)
    validation = [next(others) for _ in range(min(4, others.batches))]
    optimizer = kw.optim.AdamW(
        model, lr=kw.optim.cosine(options.lr, options.steps, warmup=options.steps // 20),
        betas=(0.9, 0.95), weight_decay=0.1, master_weights=options.dtype != "float32",
        groups=[{"match": r"bias|ln_", "weight_decay": 0.0}],
    )  # fmt: skip
    window = kw.optim.Accumulator(model)
    gradient = kw.value_and_grad(gpt.loss_of)

    @kw.captured
    def train_step(inputs, targets):
        shape, total = (options.accumulate, options.batch, length), 0.0
        for each, wanted in zip(inputs.reshape(shape), targets.reshape(shape), strict=True):
            loss, gradients = gradient(model, each, wanted)
            window.add(gradients, tokens=each.size)
            total = total + loss
        return total / options.accumulate, optimizer.step(window, max_norm=1.0)

    loss_of = kw.captured(lambda inputs, targets: gpt.loss_of(model, inputs, targets))
    checkpoint, step = kw.train.Checkpoint(options.out / "checkpoints", keep=2), 0
    kept = {"model": model, "optimizer": optimizer, "shards": shards}
    if checkpoint.newest:
        step = checkpoint.load(**kept)["step"]
    with kw.train.Log(
        options.out / "log.jsonl", page=options.out / "log.html", title=options.preset,
        flops_per_token=gpt.flops_per_token(model.config),
    ) as log:  # fmt: skip
        while step < min(options.steps, options.until or options.steps):
            loss, norm = train_step(*next(shards))
            step += 1
            if step % 10 == 0:
                log(step, loss=loss, norm=norm, lr=optimizer.rate, tokens=10 * rows * length)
            if step % options.every == 0:
                mean = sum(loss_of(*pair).item() for pair in validation) / len(validation)
                print(f"step {step}: loss {loss.item():.4f}, validation {mean:.4f}", flush=True)
                checkpoint.save(**kept, step=step)
    checkpoint.save(**kept, step=step)
    checkpoint.wait()
    gpt.save(model, options.out / "model")


if __name__ == "__main__":
    train(options_of())
