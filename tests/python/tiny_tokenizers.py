"""Small tokenizers, trained when a test asks for one, in the file formats of models."""

import base64
import json
import struct

import pytest

tokenizers = pytest.importorskip("tokenizers", reason="pip install 'kernwright[llm]'")

CORPUS = [
    "def add(first, second):\n    return first + second\n",
    "The weather in Paris is fine, isn't it? It's 20 degrees; we'll see 1234567 of them.",
    "for index in range(100):\n\tprint(index, 'caf\u00e9 \u00e9t\u00e9 \u20ac')\n\n\n",
    "\u4f60\u597d \U0001f600",
    "  spaces   between    words  and\ttabs \r\n and Don't WE'LL stop",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u0645\u0631\u062d\u0628\u0627",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 3.14159 e=mc2",
]
TEXTS = [
    *CORPUS,
    *(
        "",
        " ",
        "\n",
        "a",
        "  a",
        "a  ",
        "\t\n \n",
        "caf\u00e9",
        "e\u0301",
        "\U0001f468\u200d\U0001f469",
    ),
    *(
        "Hello, World!",
        "it's 1234 o'clock",
        "\u4f60\u597d\u4e16\u754c",
        "<unk> [INST]",
        "\x00\x7f",
        "\ufffd\ufeff",
    ),
    *(
        "x = {'a': [1, 2.5e-3]}  # done",
        "W\u00d6RTER \u00df \u01c5",
        "\u0661\u0662\u0663",
        "a" * 50,
    ),
]
SPECIAL = ["<s>", "</s>", "<unk>"]


def byte_level(size=400, pattern=None):
    """A tokenizer of byte pairs with special tokens first, as the library makes it."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    if pattern is not None:
        cut = pre_tokenizers.Split(Regex(pattern), "isolated")
        level = pre_tokenizers.Sequence([cut, level])
    made.pre_tokenizer = level
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=size, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
        ),
    )
    return made


def scored_pieces(size=420):
    """Pieces with scores as SentencePiece has them: control, bytes, then merges by their rank."""
    from tokenizers import Tokenizer, models, normalizers, trainers

    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.Replace(" ", "\u2581")
    made.train_from_iterator(
        [f" {text}" for text in CORPUS],
        trainers.BpeTrainer(vocab_size=size - 256, show_progress=False),
    )
    merged = ["".join(pair) for pair in json.loads(made.to_str())["model"]["merges"]]
    merged = [piece for piece in merged if not set(piece) & set("\n\t\r")]  # they come as bytes
    letters = sorted({each for text in CORPUS for each in text.replace(" ", "\u2581")})
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    pieces += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]
    pieces += [(piece, -float(i), 1) for i, piece in enumerate(dict.fromkeys(merged))]
    pieces += [
        (each, -float(len(merged) + i), 1) for i, each in enumerate(letters) if each not in "\n\t\r"
    ]
    return pieces


def folder_of(path, made, **files):
    """A model's folder with tokenizer.json and further JSON files."""
    path.mkdir(exist_ok=True)
    made.save(str(path / "tokenizer.json"))
    for name, content in files.items():
        (path / f"{name}.json").write_text(json.dumps(content))
    return path


# ---- GGUF


def _text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _value(value):
    """A value of metadata: the number of its type, and its bytes."""
    if isinstance(value, str):
        return 8, _text(value)
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return 5, struct.pack("<i", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    parts = [_value(each) for each in value]
    kind = parts[0][0] if parts else 8
    return 9, struct.pack("<IQ", kind, len(parts)) + b"".join(part for _, part in parts)


def write_gguf(path, metadata):
    made = b"GGUF" + struct.pack("<IQQ", 3, 0, len(metadata))
    for name, value in metadata.items():
        kind, content = _value(value)
        made += _text(name) + struct.pack("<I", kind) + content
    path.write_bytes(made + bytes(-len(made) % 32))
    return path


def gguf_of_pairs(made, **fields):
    """The metadata of a tokenizer of byte pairs."""
    spec = json.loads(made.to_str())
    vocab = spec["model"]["vocab"]
    tokens = sorted(vocab, key=vocab.get)
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in spec["model"]["merges"]]
    return {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if token in SPECIAL else 1 for token in tokens],
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 1,
        **{f"tokenizer.{name}": value for name, value in fields.items()},
    }


def gguf_of_pieces(pieces, **fields):
    """The metadata of pieces with scores."""
    return {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [piece for piece, _, _ in pieces],
        "tokenizer.ggml.scores": [score for _, score, _ in pieces],
        "tokenizer.ggml.token_type": [kind for _, _, kind in pieces],
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        **{f"tokenizer.{name}": value for name, value in fields.items()},
    }


# ---- SentencePiece


def _varint(value):
    made = b""
    while value >= 0x80:
        made += bytes([value & 0x7F | 0x80])
        value >>= 7
    return made + bytes([value])


def field(number, value):
    """A field of a message of protocol buffers."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value % (1 << 64))
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def write_sentencepiece(path, pieces, kind=2, **normalizer):
    made = b""
    for piece, score, type in pieces:
        made += field(1, field(1, piece.encode()) + field(2, score) + field(3, type))
    made += field(2, field(3, kind) + field(40, 0) + field(41, 1) + field(42, 2) + field(43, -1))
    numbers = {"add_dummy_prefix": 3, "remove_extra_whitespaces": 4}
    inner = field(1, b"identity")
    for name, value in normalizer.items():
        inner += field(numbers[name], int(value))
    path.write_bytes(made + field(3, inner))
    return path


def write_tiktoken(path, ranks):
    path.write_bytes(
        b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items())
    )
    return path
