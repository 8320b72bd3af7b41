"""Cases of kw.nn."""

from every_operation import HOST, VIEW, Table, s

import kernwright as kw
from kernwright.nn import _activations

ROWS = s(9, 70)
HALF = s(9, 71, dtype="float16", layout="gaps")
BRAIN = s(9, 72, dtype="bfloat16")
LONG = s(2, 9000)

activations = Table("activations")
POINTWISE = [name for name in _activations.__all__ if not name.endswith("_backward")]
for number, name in enumerate(POINTWISE):
    forward, backward = getattr(kw.nn, name), getattr(kw.nn, f"{name}_backward")
    one, other = ((s(1031), HALF), (HALF, s(1031)))[number % 2]
    activations.add(f"nn.{name}", forward, one)
    activations.add(f"nn.{name}_backward", backward, other, other)
activations.add("nn.gelu", lambda x: kw.nn.gelu(x, "tanh"), BRAIN)
for name in ("swiglu", "geglu", "glu", "reglu"):
    forward, backward = getattr(kw.nn, name), getattr(kw.nn, f"{name}_backward")
    activations.add(f"nn.{name}", forward, ROWS, ROWS)
    activations.add(f"nn.{name}", forward, s(9, 72, dtype="float16"), form="one")
    activations.add(f"nn.{name}_backward", backward, ROWS, ROWS, ROWS)
    activations.add(f"nn.{name}_backward", backward, s(9, 36), s(9, 72), form="one")
activations.add("nn.bias_activation", lambda x, b: kw.nn.bias_activation(x, b, "silu"), ROWS, s(70))
activations.add(
    "nn.bias_activation_backward",
    lambda g, x, b: kw.nn.bias_activation_backward(g, x, b, "silu"),
    *(BRAIN, BRAIN, s(72, dtype="bfloat16")),
)
activations.add("nn.bias_gelu", kw.nn.bias_gelu, ROWS, s(70))
activations.add("nn.bias_gelu_backward", kw.nn.bias_gelu_backward, ROWS, ROWS, s(70))
activations.add("nn.dropout", lambda x: kw.nn.dropout(x, 0.3, seed=5), HALF)
activations.add("nn.dropout_backward", lambda g: kw.nn.dropout_backward(g, 0.3, seed=5), ROWS)

norms = Table("norms")
for name in ("softmax", "log_softmax"):
    forward, backward = getattr(kw.nn, name), getattr(kw.nn, f"{name}_backward")
    norms.add(f"nn.{name}", forward, ROWS)
    norms.add(f"nn.{name}", forward, s(2, 9000, dtype="float16"), form="long")
    norms.add(f"nn.{name}", lambda x, f=forward: f(x, 0), HALF, form="columns")
    norms.add(
        f"nn.{name}",
        lambda x, m, f=forward: f(x, scale=0.5, mask=m),
        *(s(2, 9, 70), s(9, 70, dtype="bool")),
        form="mask",
    )
    norms.add(
        f"nn.{name}",
        lambda x, m, f=forward: f(x, 1, scale=0.5, mask=m),
        *(s(2, 9, 70), s(2, 1, 70)),
        form="bias",
    )
    for spec in (ROWS, s(2, 9000, dtype="bfloat16")):
        norms.add(f"nn.{name}_backward", backward, spec, spec)
W, CHANNELS = s(70), s(6)
norms.add("nn.rms_norm", kw.nn.rms_norm, ROWS, W)
norms.add("nn.rms_norm", kw.nn.rms_norm, LONG, form="long")
norms.add("nn.rms_norm", lambda x, r: kw.nn.rms_norm(x, residual=r), BRAIN, BRAIN, form="residual")
norms.add("nn.rms_norm", lambda x: kw.nn.rms_norm(x, quantize="int8"), HALF, form="quantize")
norms.add("nn.layer_norm", kw.nn.layer_norm, ROWS, W, W)
norms.add("nn.layer_norm", kw.nn.layer_norm, s(2, 9000, dtype="float16"), form="long")
norms.add(
    "nn.layer_norm",
    lambda x, r: kw.nn.layer_norm(x, residual=r, quantize="float8_e4m3fn"),
    *(BRAIN, BRAIN),
    form="all",
)
IMAGES = s(2, 6, 5, 7)
norms.add("nn.group_norm", lambda x, w: kw.nn.group_norm(x, 3, w), IMAGES, CHANNELS)
norms.add("nn.instance_norm", kw.nn.instance_norm, IMAGES, CHANNELS, CHANNELS)
norms.add("nn.l2_norm", kw.nn.l2_norm, ROWS)
norms.add("nn.l2_norm", lambda x: kw.nn.l2_norm(x, 0), HALF, form="columns")
norms.add("nn.rms_norm_backward", kw.nn.rms_norm_backward, ROWS, ROWS, W)
norms.add("nn.rms_norm_backward", kw.nn.rms_norm_backward, LONG, LONG, form="long")
norms.add("nn.layer_norm_backward", kw.nn.layer_norm_backward, ROWS, ROWS, W)
norms.add("nn.layer_norm_backward", kw.nn.layer_norm_backward, BRAIN, BRAIN, form="half")
norms.add(
    "nn.group_norm_backward",
    lambda g, x, w: kw.nn.group_norm_backward(g, x, 3, w),
    *(IMAGES, IMAGES, CHANNELS),
)
norms.add("nn.instance_norm_backward", kw.nn.instance_norm_backward, IMAGES, IMAGES, CHANNELS)
norms.add("nn.l2_norm_backward", kw.nn.l2_norm_backward, ROWS, ROWS)
norms.add("nn.cosine_similarity", kw.nn.cosine_similarity, ROWS, ROWS)
norms.add(
    "nn.batch_norm", lambda x, w: kw.nn.batch_norm(x, None, None, w, w, True), IMAGES, CHANNELS
)
norms.add(
    "nn.batch_norm_backward",
    lambda g, x, w: kw.nn.batch_norm_backward(g, x, weight=w),
    *(IMAGES, IMAGES, CHANNELS),
)
norms.add("nn.gumbel_softmax", lambda x: kw.nn.gumbel_softmax(x, seed=3), ROWS)
norms.add("nn.quantize_rows", kw.nn.quantize_rows, ROWS)
norms.add(
    "nn.quantize_rows", lambda x: kw.nn.quantize_rows(x, "float8_e4m3fn", scope="tensor"), BRAIN
)
BYTES = s(9, 70, dtype="int8", low=-99, high=99)
norms.add("nn.quant.pack_int4", kw.nn.quant.pack_int4, BYTES)
norms.add("nn.quant.pack_int4", lambda x: kw.nn.quant.pack_int4(x[:, :7]), BYTES, form="odd")
NIBBLES = s(9, 70, dtype="uint8", low=0, high=255)
norms.add("nn.quant.unpack_int4", kw.nn.quant.unpack_int4, NIBBLES)
norms.add(
    "nn.quant.unpack_int4",
    lambda x: kw.nn.quant.unpack_int4(x, signed=False, length=139),
    *(NIBBLES,),
    form="odd",
)
norms.add("nn.dequantize_rows", kw.nn.dequantize_rows, BYTES, s(9))
norms.add("nn.quantize_blocks", kw.nn.quantize_blocks, ROWS)


def scaled_square(x, *of):
    return kw.nn.scaled_matmul(x, kw.matrix_transpose(x), *of)


norms.add("nn.scaled_matmul", scaled_square, BYTES, s(9), s(9))
norms.add(
    "nn.scaled_matmul",
    scaled_square,
    s(9, 160, dtype="float8_e4m3fn"),
    s(9, 2),
    s(2, 1),
)

formats = Table("formats")
WORDS = {"dtype": "int32", "low": 0, "high": 2**31 - 1}
GGUF = ("q4_0", "q5_1", "q8_0", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs")
for name in (*GGUF, "mxfp4", "nvfp4", "nf4", "fp4", "fp8_block"):
    formats.add(
        "nn.quant.quantize",
        lambda x, f=name: kw.nn.quant.quantize(x, f),
        s(3, 512, dtype="bfloat16"),
        form=name,
    )
formats.add(
    "nn.quant.quantize", lambda x: kw.nn.quant.quantize(x, "nf4", double=True), s(77, 51),
    form="double",
)  # fmt: skip
for name, length in (
    ("q4_0", 1440),
    ("q8_0", 1360),
    ("q4_k", 1440),
    ("q5_k", 1408),
    ("q6_k", 1260),
    ("q2_k", 1260),
    ("iq4_nl", 1440),
):
    formats.add(
        "nn.quant.dequantize",
        lambda b, f=name: kw.nn.quant.dequantize(b, f, dtype="bfloat16"),
        s(3, length, dtype="uint8", low=0, high=60),
        form=name,
    )
formats.add(
    "nn.quant.dequantize",
    lambda *b: kw.nn.quant.dequantize(b, "nf4", shape=(3, 301)),
    *(s(452, dtype="uint8", low=0, high=255), s(15)),
    form="nf4",
)
formats.add(
    "nn.quant.dequantize",
    lambda *b: kw.nn.quant.dequantize(b, "mxfp4", dtype="float16"),
    *(s(4, 64, dtype="uint8", low=0, high=255), s(4, 4, dtype="uint8", low=120, high=130)),
    form="mxfp4",
)
formats.add(
    "nn.quant.dequantize",
    lambda *b: kw.nn.quant.dequantize(b, "nvfp4"),
    *(s(4, 64, dtype="uint8", low=0, high=255), s(4, 8, dtype="float8_e4m3fn"), s(1)),
    form="nvfp4",
)
formats.add(
    "nn.quant.dequantize",
    lambda *b: kw.nn.quant.dequantize(b, "fp8_block"),
    *(s(130, 200, dtype="float8_e4m3fn"), s(2, 2)),
    form="fp8_block",
)
formats.add(
    "nn.quant.dequantize",
    lambda *b: kw.nn.quant.dequantize(b, "gptq"),
    *(s(8, 40, **WORDS), s(2, 5, **WORDS), s(2, 40, dtype="float16")),
    form="gptq",
)
formats.add(
    "nn.quant.dequantize",
    lambda *b: kw.nn.quant.dequantize(b, "awq"),
    *(s(64, 5, **WORDS), s(2, 5, **WORDS), s(2, 40, dtype="float16")),
    form="awq",
)

BLOCKS = s(24, 288, dtype="uint8", low=0, high=60)
formats.add("nn.quant.pack", lambda b: kw.nn.quant.pack(b, "q4_k").arrays, BLOCKS)
formats.add("nn.quant.unpack", lambda b: kw.nn.quant.unpack(kw.nn.quant.pack(b, "q4_k")), BLOCKS)
formats.add(
    "nn.quant.pack",
    lambda *b: kw.nn.quant.pack(b, "gptq").arrays,
    *(s(8, 40, **WORDS), s(2, 5, **WORDS), s(2, 40, dtype="float16")),
    form="gptq",
)
formats.add(
    "nn.quant.pack",
    lambda *b: kw.nn.quant.pack(b, "gptq").arrays,
    *(s(8, 40, **WORDS), s(2, 5, **WORDS), s(2, 40, dtype="float16")),
    s(64, dtype="int32", low=0, high=2),
    form="act-order",
)
for rows, form in ((3, "packed"), (70, "packed"), (520, "packed tiles")):
    formats.add(
        "nn.linear",
        lambda x, b: kw.nn.linear(x, kw.nn.quant.pack(b, "q4_k"), activation="silu"),
        *(s(rows, 512, dtype="bfloat16"), BLOCKS),
        form=form,
    )

losses = Table("losses")
LOGITS, CLASSES = s(9, 70), s(9, dtype="int64", low=0, high=70)
WIDE = s(2, 9000, dtype="bfloat16")
BOUND = {"low": 0, "high": 1}
losses.add("nn.cross_entropy", kw.nn.cross_entropy, LOGITS, CLASSES)
losses.add(
    "nn.cross_entropy",
    lambda x, t: kw.nn.cross_entropy(x, t, reduction="none", label_smoothing=0.1, z_loss=0.1),
    *(WIDE, s(2, dtype="int32", low=0, high=70)),
    form="long",
)
losses.add(
    "nn.cross_entropy",
    lambda x, t: kw.nn.cross_entropy(x, t, check=True),
    *(LOGITS, CLASSES),
    form="check",
    kind=HOST,
)
losses.add("nn.linear_cross_entropy", kw.nn.linear_cross_entropy, s(9, 24), s(70, 24), CLASSES)
losses.add(
    "nn.linear_cross_entropy",
    lambda x, w, t: kw.nn.linear_cross_entropy(x, w, t, chunk=4, z_loss=0.1, reduction="sum"),
    *(s(9, 24), s(70, 24), CLASSES),
    form="chunks",
)
losses.add("nn.cross_entropy_grad", kw.nn.cross_entropy_grad, LOGITS, CLASSES)
losses.add(
    "nn.cross_entropy_grad",
    lambda x, t: kw.nn.cross_entropy_grad(x, t, inplace=True),
    *(WIDE, s(2, dtype="int32", low=0, high=70)),
    form="inplace",
)
losses.add(
    "nn.cross_entropy_grad",
    lambda x, t: kw.nn.cross_entropy_grad(x, t, weight=x[0], label_smoothing=0.1),
    *(LOGITS, CLASSES),
    form="weight",
)
losses.add("nn.cross_entropy_backward", kw.nn.cross_entropy_backward, s(), LOGITS, CLASSES)
for name in ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "bce_with_logits"):
    losses.add(f"nn.{name}", getattr(kw.nn, name), ROWS, s(9, 70, **BOUND))
    losses.add(f"nn.{name}_grad", getattr(kw.nn, f"{name}_grad"), HALF, HALF._replace(**BOUND))
    losses.add(
        f"nn.{name}_backward", getattr(kw.nn, f"{name}_backward"), s(), ROWS, s(9, 70, **BOUND)
    )
losses.add("nn.nll_loss", kw.nn.nll_loss, LOGITS, CLASSES)
losses.add("nn.nll_loss_backward", kw.nn.nll_loss_backward, s(), LOGITS, CLASSES)
losses.add("nn.kl_div", kw.nn.kl_div, HALF, HALF._replace(**BOUND))
losses.add("nn.kl_div_backward", kw.nn.kl_div_backward, s(), HALF, HALF._replace(**BOUND))

tokens = Table("tokens")
IDS, VOCABULARY = s(3, 5, dtype="int64", low=0, high=40), s(40, 24)
tokens.add("nn.embedding", kw.nn.embedding, IDS, VOCABULARY)
tokens.add(
    "nn.embedding",
    lambda i, t: kw.nn.embedding(i, t, check=True),
    *(IDS, VOCABULARY),
    form="check",
    kind=HOST,
)
tokens.add(
    "nn.embedding_backward",
    lambda g, i: kw.nn.embedding_backward(g, i, 40),
    *(s(3, 5, 24, dtype="float16"), IDS),
)
tokens.add("nn.one_hot", lambda i: kw.nn.one_hot(i, 40), IDS)
tokens.add("nn.greedy", kw.nn.greedy, s(5, 999))
tokens.add("nn.sample", lambda x: kw.nn.sample(x, top_k=20, top_p=0.9, seed=1), s(5, 999))
tokens.add("nn.sample", lambda x: kw.nn.sample(x, seed=1), s(2, 9000, dtype="float16"), form="long")
tokens.add("nn.sample", lambda x: kw.nn.sample(x, top_p=0.9, seed=1), s(1, 17001), form="spread")
tokens.add(
    "nn.sample",
    lambda x, p: kw.nn.sample(x, repetition_penalty=1.3, previous=p, min_p=0.01, seed=1),
    *(s(5, 999), s(5, 7, dtype="int64", low=-1, high=999)),
    form="previous",
)
tokens.add(
    "nn.sample",
    lambda x, seeds, steps: kw.nn.sample(x, seed=seeds, step=steps),
    *(s(5, 999), s(5, dtype="int64", low=0, high=9), s(5, dtype="int32", low=0, high=9)),
    form="seeds",
)

experts = Table("experts")
CHOSEN, EXPERTS = s(9, 2, dtype="int32", low=0, high=4), s(4, 24, 16, dtype="bfloat16")


def grouped(x, weights, chosen, **more):
    """Each token's row times the matrices of its experts."""
    made = kw.nn.permute(x, chosen, 4)
    return kw.nn.grouped_linear(made.rows, weights, made.offsets, **more)


def grouped_gradients(grad, x, weights, chosen):
    made = kw.nn.permute(x, chosen, 4)
    grads = kw.nn.permute(grad, chosen, 4).rows
    return kw.nn.grouped_linear_backward(grads, made.rows, weights, made.offsets)


experts.add("nn.route", lambda x: kw.nn.route(x, 4), s(9, 70))
experts.add(
    "nn.route",
    lambda x, b: kw.nn.route(x, 4, scores="sigmoid", bias=b, groups=8, groups_kept=3),
    *(s(9, 64, dtype="float16"), s(64)),
    form="groups",
)
experts.add("nn.permute", lambda x, e: kw.nn.permute(x, e, 4), ROWS, CHOSEN)
experts.add(
    "nn.permute", lambda x, e: kw.nn.permute(x, e, 3), s(2500, 3), s(2500, 2, dtype="int64")
)
experts.add("nn.unpermute", kw.nn.unpermute, BRAIN, s(5, 3, dtype="int32", high=9), s(5, 3))
TOKENS = s(9, 16, dtype="bfloat16")
experts.add("nn.grouped_linear", grouped, TOKENS, EXPERTS, CHOSEN)
experts.add(
    "nn.grouped_linear",
    lambda x, w, e: grouped(x, w, e, gate="silu"),
    *(TOKENS, EXPERTS, CHOSEN),
    form="gate",
)
WIDE, WIDE_EXPERTS = s(9, 16), s(4, 24, 16)
experts.add("nn.grouped_linear", grouped, WIDE, WIDE_EXPERTS, CHOSEN, form="float32")
experts.add(
    "nn.grouped_linear",
    lambda x, w, e: grouped(x, w, e, gate="silu"),
    *(WIDE, WIDE_EXPERTS, CHOSEN),
    form="float32-gate",
)
experts.add(
    "nn.grouped_linear_backward",
    grouped_gradients,
    *(s(9, 24, dtype="bfloat16"), TOKENS, EXPERTS, CHOSEN),
)
experts.add(
    "nn.grouped_linear_backward",
    grouped_gradients,
    *(s(9, 24), WIDE, WIDE_EXPERTS, CHOSEN),
    form="float32",
)

positions = Table("positions")
TABLE, HEADS = s(16, 8), s(2, 9, 3, 16)
positions.add("nn.rope_frequencies", lambda: kw.nn.rope_frequencies(64))
positions.add("nn.rope_tables", lambda: kw.nn.rope_tables(30, 64))
positions.add("nn.rope_attention_factor", kw.nn.rope_attention_factor, kind=VIEW)
for name in ("rope", "rope_backward"):
    call = getattr(kw.nn, name)
    positions.add(f"nn.{name}", call, HEADS, s(2, 9, 1, 16), TABLE, TABLE)
    positions.add(
        f"nn.{name}",
        lambda q, c, t, p, f=call: f(q, None, c, t, positions=p, interleaved=True, inplace=True),
        *(s(2, 9, 3, 16, dtype="float16"), TABLE, TABLE, s(9, dtype="int32", low=0, high=16)),
        form="positions",
    )
PAIRS = s(16, 16)
positions.add("nn.pope", kw.nn.pope, HEADS, PAIRS, PAIRS)
positions.add("nn.pope_backward", kw.nn.pope_backward, s(2, 9, 3, 32), HEADS, PAIRS, PAIRS)
positions.add(
    "nn.pope_shifts_backward",
    lambda g, x, c, t, shifts: kw.nn.pope_shifts_backward(g, x, c, t, shifts=shifts),
    *(s(2, 9, 3, 32), HEADS, PAIRS, PAIRS, s(16)),
)
positions.add("nn.alibi_slopes", lambda: kw.nn.alibi_slopes(6))
positions.add("nn.alibi_bias", lambda: kw.nn.alibi_bias(6, 9, 20, dtype="float16"))
positions.add(
    "nn.attention_temperature", lambda q: kw.nn.attention_temperature(q, floor_scale=4), HEADS
)
positions.add("nn.split_qkv", lambda x: kw.nn.split_qkv(x, 4, 2), s(2, 9, 64))
positions.add("nn.merge_qkv", kw.nn.merge_qkv, HEADS, s(2, 9, 1, 16), s(2, 9, 1, 16))

attention = Table("attention")
QUERY, KEYS = s(2, 4, 33, 64, dtype="bfloat16"), s(2, 2, 40, 64, dtype="bfloat16")
SINGLE = s(1, 2, 20, 40)
PAGES, PAGE_TABLE = s(6, 16, 2, 64, dtype="float16"), s(2, 3, dtype="int32", low=0, high=6)
LENGTHS, LAST = s(2, dtype="int32", low=20, high=40), s(2, 4, 1, 64, dtype="float16")


def running_sum(counts):
    """Starts from 0 on, and the last end."""
    return kw.cumulative_sum(counts, dtype="int32", include_initial=True)


def causal(q, k, v):
    return kw.nn.attention(q, k, v, is_causal=True, enable_gqa=True, return_lse=True)


def backward(g, q, k, v):
    return kw.nn.attention_backward(g, q, k, v, *causal(q, k, v), is_causal=True, enable_gqa=True)


attention.add("nn.attention", causal, QUERY, KEYS, KEYS, form="tiles")
attention.add(
    "nn.attention",
    lambda q, k, v, m: kw.nn.attention(q, k, v, m, window=9, soft_cap=20.0),
    *(SINGLE, SINGLE, SINGLE, s(20, 20)),
    form="mask",
)
attention.add("nn.attention_backward", backward, QUERY, QUERY, KEYS, KEYS, form="tiles")
attention.add("nn.attention_backward", backward, SINGLE, SINGLE, SINGLE, SINGLE, form="single")
attention.add("nn.decode_attention", kw.nn.decode_attention, s(2, 4, 1, 64), *2 * [s(2, 2, 90, 64)])
attention.add(
    "nn.decode_attention",
    lambda q, k, v, n, t: kw.nn.decode_attention(q, k, v, n, page_table=t, splits=2),
    *(LAST, PAGES, PAGES, LENGTHS, PAGE_TABLE),
    form="pages",
)
attention.add(
    "nn.paged_attention",
    lambda q, k, v, t, n, counts: kw.nn.paged_attention(q, k, v, t, n, running_sum(counts)),
    *(s(30, 4, 64, dtype="float16"), PAGES, PAGES, PAGE_TABLE, LENGTHS),
    s(2, dtype="int32", low=0, high=9),
)
attention.add(
    "nn.append_cache",
    kw.nn.append_cache,
    *2 * [s(2, 2, 1, 64, dtype="float16")],
    *2 * [s(2, 2, 50, 64, dtype="float16")],
    LENGTHS,
)
attention.add(
    "nn.fused_matmul",
    lambda a, b, c: kw.nn.fused_matmul(a, b, "relu(x) + c", c=c),
    *(s(9, 64, dtype="float16"), s(64, 16, dtype="float16"), s(9, 16, dtype="float16")),
    form="tiles",
)
attention.add(
    "nn.append_qkv",
    lambda x, k, v, n, t, w, c: kw.nn.append_qkv(
        *(x, k, v, n, c, c), q_weight=w, k_weight=w, page_table=t
    ),
    *(s(2, 1, 8 * 64, dtype="float16"), PAGES, PAGES, LENGTHS, PAGE_TABLE, s(64), s(48, 32)),
)
attention.add(
    "nn.append_qkv",
    lambda x, k, v, n, t, rows: kw.nn.append_qkv(
        # Two tokens at one place would race.
        *(x, k, v, n + 9 * kw.arange(5, dtype="int32")),
        page_table=t,
        token_rows=rows,
    ),
    *(s(5, 8 * 64, dtype="float16"), PAGES, PAGES, s(5, dtype="int32", low=0, high=9)),
    *(PAGE_TABLE, s(5, dtype="int32", low=-1, high=1)),
    form="packed",
)
for rows, width, form in ((3, 512, ""), (40, 320, ""), (128, 256, "tiles")):
    attention.add(
        "nn.linear",
        lambda x, w, b, r: kw.nn.linear(x, w, b, activation="silu", residual=r),
        *(s(rows, width, dtype="bfloat16"), s(96, width, dtype="bfloat16")),
        *(s(96, dtype="bfloat16"), s(rows, 96, dtype="bfloat16")),
        form=form,
    )

TABLES = (activations, norms, formats, losses, tokens, experts, positions, attention)
