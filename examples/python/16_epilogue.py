"""A matrix product with an epilogue in CUDA of your own."""

import numpy as np

import kernwright as kw

generator = kw.random.Generator(0)
x = generator.normal((48, 64), dtype="bfloat16")
weight = generator.normal((96, 64), std=0.1, dtype="bfloat16")  # the layout of layers: (out, in)
bias, residual = generator.normal(96), generator.normal((48, 96), dtype="bfloat16")

# In the expression, x is the sum in float32; bias belongs to its column and c to its element.
ours = "gelu(x + bias) + 0.5 * c"
y = kw.nn.fused_matmul(x, weight.T, ours, bias=bias, c=residual)

# The same by separate functions: each result is rounded to bfloat16.
apart = kw.nn.gelu(x @ weight.T + bias.astype("bfloat16")) + residual * 0.5
off = np.abs(y.numpy().astype(float) - apart.numpy().astype(float)).max()
print(f"{ours}: at most {off:.3f} from what five kernels give")
assert off < 0.1

# alpha and beta may change from call to call without a new compile.
for limit in (0.25, 2.0):
    z = kw.nn.fused_matmul(x, weight.T, "clip(x, -alpha, alpha)", alpha=limit, dtype="float32")
    assert abs(z.numpy()).max() <= limit

# An error points to the mistake in the expression.
try:
    kw.nn.fused_matmul(x, weight.T, "swish(x)")
except kw.CompileError as error:
    first = error.diagnostics[0]
    print(f"{first.file}, line {first.line}: {first.message.splitlines()[0]}")
else:
    raise AssertionError("swish is no function of CUDA")
