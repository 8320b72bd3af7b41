"""Records what transformers computes with the stored models: tests/data/tiny_llama*/expected.npz.

`python tests/data/record_tiny_llama.py DATA`, with the folder of data that tiny_llama.py wrote.
It needs torch and transformers; a processor is enough.
"""

import pathlib
import sys

import numpy as np
import torch
from transformers import AutoTokenizer, LlamaForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
PROMPTS = ("def ", "import os\n", "class Queue:\n", "    def __init__(self")
COUNT = 64  # tokens that follow each prompt
WINDOWS, LENGTH = 8, 256  # of held-out text
MESSAGES = [
    {"role": "system", "content": "Write Python.\n"},
    {"role": "user", "content": " Sort a list. "},
    {"role": "assistant", "content": "x.sort()"},
    {"role": "user", "content": "And reversed?"},
]


def greedy(model, tokens):
    """COUNT more tokens, and the margin of each over the second best logit."""
    tokens, margins = list(tokens), []
    for _ in range(COUNT):
        best = model(torch.tensor([tokens])).logits[0, -1].topk(2)
        tokens.append(int(best.indices[0]))
        margins.append(float(best.values[0] - best.values[1]))
    return tokens, margins


def record(folder, held_out):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    made = {"held_out": held_out, "chat": tokenizer.apply_chat_template(MESSAGES, tokenize=False)}
    asked = {"tokenize": False, "add_generation_prompt": True}
    made["chat_asked"] = tokenizer.apply_chat_template(MESSAGES, **asked)
    ids = torch.tensor(held_out.astype(np.int64))
    made["logits"] = model(ids[:1, :24]).logits[0].to(torch.float32).numpy()
    logits = model(ids[:, :-1]).logits
    losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    made["loss"] = losses.numpy()
    for i, prompt in enumerate(PROMPTS):
        made[f"prompt_{i}"], made[f"prompt_ids_{i}"] = prompt, tokenizer(prompt)["input_ids"]
        tokens, margins = greedy(model, made[f"prompt_ids_{i}"])
        made[f"greedy_{i}"] = np.array(tokens, np.uint16)
        made[f"margins_{i}"] = np.array(margins, np.float32)
        print(f"{folder.name} {np.mean(margins):.2f} {tokenizer.decode(tokens)!r}", flush=True)
    print(f"{folder.name}: loss {made['loss']:.4f}")
    np.savez_compressed(folder / "expected.npz", **made)


def main():
    tokens = np.fromfile(pathlib.Path(sys.argv[1]) / "val.bin", "<u2", offset=1024)
    starts = np.linspace(0, len(tokens) - LENGTH - 1, WINDOWS).astype(int)
    held_out = np.stack([tokens[start : start + LENGTH + 1] for start in starts])
    with torch.no_grad():
        for name in ("tiny_llama", "tiny_llama_draft"):
            record(HERE / name, held_out)


if __name__ == "__main__":
    main()
