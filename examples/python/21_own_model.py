"""A language model of one's own, with a kernel of one's own, on the engine of kernwright.llm.

Its layers are plain: attention through the step, and a gated layer whose product with the gate is a
kernel written below. It is trained by nobody, so that its text is noise; what counts is that one
class serves whole prompts, chunks and single tokens, alone and in a batch.
"""

import kernwright as kw
from kernwright import llm
from kernwright.llm.models import Attention, Embedding, Linear, RMSNorm, RotaryTables

gate = kw.kernel(r"""
__global__ void gate(const float* y, float* out, int rows, int width) {
    // out = relu(gate)^2 * up, where a row of y has the gates before the others
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * width) return;
    const float* row = y + (i / width) * 2 * width;
    float g = fmaxf(row[i % width], 0.0f);
    out[i] = g * g * row[width + i % width];
}""")


class Block(kw.nn.Module):
    def __init__(self, config, layer, rope):
        self.attention_norm = RMSNorm(config.hidden_size, config.norm_eps)
        self.attention = Attention(config, layer, rope=rope)
        self.gated_norm = RMSNorm(config.hidden_size, config.norm_eps)
        self.up = Linear(config.hidden_size, 2 * config.intermediate_size)
        self.down = Linear(config.intermediate_size, config.hidden_size)

    def __call__(self, x, step):
        x = self.attention(self.attention_norm(x), step, residual=x)
        y = self.up(self.gated_norm(x))
        gated = kw.empty((y.shape[0], y.shape[1] // 2), y.dtype)
        gate[-(-gated.size // 256), 256](y, gated, *gated.shape)
        return self.down(gated, residual=x)


class Mine(kw.nn.Module):
    def __init__(self, config):
        rope = RotaryTables(config)
        self.embedding = Embedding(config.vocab_size, config.hidden_size)
        self.layers = [Block(config, i, rope) for i in range(config.num_layers)]
        self.norm = RMSNorm(config.hidden_size, config.norm_eps)
        self.head = Linear(config.hidden_size, config.vocab_size)

    def __call__(self, step):
        x = self.embedding(step.tokens)
        for layer in self.layers:
            x = layer(x, step)
        return self.head(self.norm(step.select(x)))


llm.register("MineForCausalLM", Mine)
model = llm.load(random={
    "architectures": ["MineForCausalLM"], "vocab_size": 256, "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "dtype": "float32",
})  # fmt: skip

prompts = [list(b"one prompt"), list(b"another, longer prompt"), list(b"x")]
together = model.generate(prompts, max_tokens=8)
alone = [model.generate(prompt, max_tokens=8) for prompt in prompts]
assert [each.tokens for each in together] == [each.tokens for each in alone]

whole = prompts[0] + together[0].tokens[:-1]
best = model.logits(whole).numpy()[len(prompts[0]) - 1 :].argmax(-1)
assert best.tolist() == together[0].tokens
print("tokens alone, in a batch and of the whole text are equal:", together[0].tokens)
