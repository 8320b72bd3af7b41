"""Arrays in files: a read returns the written array; damaged and hostile files are refused."""

import json
import os
import struct
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw

CODES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64",
    "int32": "I32", "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32",
    "uint16": "U16", "uint8": "U8", "bool": "BOOL", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2", "complex64": "C64",
}  # fmt: skip


def sample(dtype, shape, seed=0):
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    size = int(np.prod(shape)) * kind.itemsize
    raw = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 120, size, np.uint8)
    return raw.view(kind).reshape(shape)


def written(path, header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(text) if length is None else length
    path.write_bytes(size.to_bytes(8, "little") + text + data)
    return path


def entry(dtype="F32", shape=(2,), begin=0, end=8):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def same(array, expected):
    assert array.dtype == expected.dtype and array.shape == expected.shape
    assert array.numpy().tobytes() == np.ascontiguousarray(expected).tobytes()


def test_reads_what_the_format_says(tmp_path):
    values = {name: sample(name, (3, 5), i) for i, name in enumerate(CODES)}
    header, data = {"__metadata__": {"format": "pt", "\u00f6": "\u00fc"}}, b""
    for name, value in values.items():
        begin, data = len(data), data + value.tobytes()
        header[name] = entry(CODES[name], (3, 5), begin, len(data))
    path = written(tmp_path / "a.safetensors", header, data)
    with kw.SafeTensors(path) as file:
        assert set(file) == set(values) and len(file) == 16 and "int8" in file
        assert file.metadata == {"format": "pt", "\u00f6": "\u00fc"}
        for name, value in values.items():
            assert file.shape(name) == (3, 5) and file.dtype(name) == name
            same(file[name], value)
            assert file.bytes(name).numpy().tobytes() == value.tobytes()
        with pytest.raises(kw.NameNotFound, match="no array 'w'"):
            file["w"]
    for name, array in kw.load_safetensors(path).items():
        same(array, values[name])
    some = kw.load_safetensors(str(path), ["int8", "bool"])
    assert list(some) == ["int8", "bool"]
    with pytest.raises(kw.InvalidArgument, match="closed"):
        file["int8"]


def test_writes_what_it_reads(tmp_path):
    path = tmp_path / "w.safetensors"
    values = {f"{name}.{n}": sample(name, (n, 3), n) for name in CODES for n in (0, 1, 7)}
    values["scalar"], values["caf\u00e9"] = np.float32(3.5).reshape(()), sample("int16", (2, 2, 2))
    arrays = {name: kw.asarray(value) for name, value in values.items()}
    arrays["view"] = kw.asarray(sample("float32", (6, 8)))[::2, ::-3]
    values["view"] = arrays["view"].numpy()
    kw.save_safetensors(path, arrays, metadata={"a": "b"})
    with kw.SafeTensors(path) as file:
        assert file.metadata == {"a": "b"}
    for name, array in kw.load_safetensors(path).items():
        same(array, values[name])
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    assert length % 8 == 0 and json.loads(raw[8 : 8 + length])["scalar"]["shape"] == []
    kw.save_safetensors(path, {})
    assert kw.load_safetensors(path) == {} and os.listdir(tmp_path) == ["w.safetensors"]
    with pytest.raises(kw.InvalidArgument, match="complex128"):
        kw.save_safetensors(path, {"z": kw.zeros(2, "complex128")})
    with pytest.raises(kw.ArgumentError, match="mapping"):
        kw.save_safetensors(path, [kw.ones(2)])
    with pytest.raises(kw.ArgumentError, match="metadata"):
        kw.save_safetensors(path, {}, metadata={"a": 1})
    with pytest.raises(kw.StoreError, match="errno 2"):
        kw.save_safetensors(tmp_path / "no" / "x", {})


def test_arrays_larger_than_a_piece(tmp_path):
    """Places that are multiples of nothing, pieces of 8 MB, small arrays between large ones."""
    rng = np.random.default_rng(1)
    values = {str(i): rng.integers(0, 256, n, np.uint8) for i, n in
              enumerate((3, 8 << 20, (17 << 20) + 5, 1, (8 << 20) - 1, 0, 100))}  # fmt: skip
    path = tmp_path / "large.safetensors"
    kw.save_safetensors(path, {name: kw.asarray(value) for name, value in values.items()})
    for name, array in kw.load_safetensors(path).items():
        assert np.array_equal(array.numpy(), values[name])


def test_parts_of_a_model(tmp_path):
    for i in range(2):
        kw.save_safetensors(tmp_path / f"part{i}.safetensors", {f"w{i}": kw.full((3,), i)})
    index = tmp_path / "model.safetensors.index.json"
    parts = {"w1": "part1.safetensors", "w0": "part0.safetensors"}
    index.write_text(json.dumps({"metadata": {"total_size": 24}, "weight_map": parts}))
    loaded = kw.load_safetensors(index)
    assert list(loaded) == ["w1", "w0"] and loaded["w1"].numpy().tolist() == [1, 1, 1]
    assert list(kw.load_safetensors(index, ["w0"])) == ["w0"]
    with pytest.raises(kw.Error, match="w7"):
        kw.load_safetensors(index, ["w7"])
    for wrong in ('{"weight_map": {"w": "../x"}}', '{"weight_map": {"w": 3}}', "{}", "[]", "{"):
        index.write_text(wrong)
        with pytest.raises(kw.StoreError):
            kw.load_safetensors(index)


E = entry()
HOSTILE = {
    "empty": (b"", b"", 0),
    "length beyond the file": ({"a": E}, bytes(8), 10**6),
    "length of 2**63": ({"a": E}, bytes(8), 2**63),
    "length of 2**64 - 1": ({"a": E}, bytes(8), 2**64 - 1),
    "no brace": (b"[]", b"", None),
    "spaces first": (b" {}", b"", None),
    "no JSON": (b"{nonsense", b"", None),
    "cut JSON": (b'{"a": ', b"", None),
    "not UTF-8": (b'{"\xff": 1}', b"", None),
    "nested": (b'{"a":' * 100_000, b"", None),
    "nested lists": (b'{"a":' + b"[" * 1_000_000, b"", None),
    "digits": (b'{"a":' + b"9" * 100_000 + b"}", b"", None),
    "NaN": (b'{"a": NaN}', b"", None),
    "twice": (b'{"a": %s, "a": %s}' % ((json.dumps(E).encode(),) * 2), bytes(8), None),
    "number": ({"a": 3}, b"", None),
    "a field more": ({"a": {**E, "x": 1}}, bytes(8), None),
    "no dtype": ({"a": {"shape": [2], "data_offsets": [0, 8]}}, bytes(8), None),
    "unknown dtype": ({"a": entry("F31")}, bytes(8), None),
    "dtype 3": ({"a": entry(3)}, bytes(8), None),
    "negative extent": ({"a": entry(shape=(-2,))}, bytes(8), None),
    "extents that overflow": ({"a": entry(shape=(2**33, 2**31, 2))}, bytes(8), None),
    "extent that wraps to 2": ({"a": entry(shape=(2**62 + 2,))}, bytes(8), None),
    "extent of 2.0": ({"a": entry(shape=(2.0,))}, bytes(8), None),
    "extent true": ({"a": entry(shape=(True, 2))}, bytes(8), None),
    "too many axes": ({"a": entry(shape=(1,) * 70 + (2,))}, bytes(8), None),
    "shape is a number": ({"a": {**E, "shape": 2}}, bytes(8), None),
    "place outside": ({"a": entry(begin=0, end=8)}, bytes(4), None),
    "place backwards": ({"a": entry(begin=8, end=0)}, bytes(8), None),
    "three places": ({"a": {**E, "data_offsets": [0, 4, 8]}}, bytes(8), None),
    "wrong size": ({"a": entry(end=4)}, bytes(4), None),
    "gap before": ({"a": entry(begin=8, end=16)}, bytes(16), None),
    "gap": ({"a": E, "b": entry(begin=16, end=24)}, bytes(24), None),
    "overlap": ({"a": E, "b": entry(begin=4, end=12)}, bytes(12), None),
    "the same place": ({"a": E, "b": E}, bytes(8), None),
    "bytes behind": ({"a": E}, bytes(9), None),
    "odd bits": ({"a": entry("F4", (3,), 0, 2)}, bytes(2), None),
    "metadata": ({"__metadata__": {"a": 1}}, b"", None),
    "metadata is a list": ({"__metadata__": []}, b"", None),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_headers(tmp_path, what):
    path = written(tmp_path / "h.safetensors", *HOSTILE[what])
    with pytest.raises(kw.StoreError) as raised:
        kw.SafeTensors(path)
    assert "h.safetensors" in str(raised.value) and len(str(raised.value)) < 500


def test_any_cut_and_any_byte(tmp_path):
    """Whatever is changed or missing, a file is read or refused."""
    header = {"a": entry(), "bcd": entry("U8", (3, 1), 8, 11), "__metadata__": {"x": "y"}}
    path = written(tmp_path / "a.safetensors", header, bytes(range(11)))
    whole = path.read_bytes()
    rng = np.random.default_rng(2)
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with pytest.raises(kw.StoreError):
            kw.SafeTensors(path)
    for _ in range(600):
        changed = bytearray(whole)
        for at in rng.integers(0, len(whole), rng.integers(1, 4)):
            changed[at] = rng.integers(0, 256)
        path.write_bytes(changed)
        try:
            with kw.SafeTensors(path) as file:
                assert all(file.shape(name) is not None for name in file)
        except kw.StoreError:
            pass


def test_a_file_that_is_cut_off_while_it_is_open(tmp_path):
    path = tmp_path / "a.safetensors"
    kw.save_safetensors(path, {"a": kw.ones(10_000), "b": kw.ones(10_000)})
    with kw.SafeTensors(path) as file:
        os.truncate(path, 50_000)
        same(file["a"], np.ones(10_000, np.float32))
        with pytest.raises(kw.StoreError, match="it was cut off"):
            file["b"]


def test_dtypes_that_there_are_none_of(tmp_path):
    header = {"a": entry("F4", (4, 4), 0, 8), "b": entry("F8_E8M0", (3,), 8, 11)}
    path = written(tmp_path / "a.safetensors", header, bytes(range(11)))
    with kw.SafeTensors(path) as file:
        assert file.dtype("a") == "F4" and file.shape("a") == (4, 4)
        assert file.bytes("b").numpy().tolist() == [8, 9, 10]
        with pytest.raises(kw.InvalidArgument, match=r"F4.*bytes\(\)"):
            file["a"]


def test_paths_that_cannot_be_read(tmp_path):
    for read in (kw.load_safetensors, kw.SafeTensors, kw.load_npy, kw.load_npz, kw.Gguf):
        with pytest.raises(kw.StoreError, match="errno 2") as raised:
            read(tmp_path / "none")
        assert raised.value.errno == 2
        with pytest.raises(kw.StoreError):
            read(tmp_path)
        with pytest.raises(kw.ArgumentError, match="path"):
            read(3)
        with pytest.raises(kw.InvalidArgument):
            read("a\0b")
    with pytest.raises(kw.ArgumentError, match="list of str"):
        kw.load_safetensors("x.index.json", "w")
    os.mkfifo(tmp_path / "pipe")
    for load in (kw.load_npy, kw.load_npz, kw.load_safetensors, kw.Gguf):
        with pytest.raises(kw.StoreError, match="no regular file"):
            load(tmp_path / "pipe")


def test_a_capture_refuses_to_read(tmp_path):
    kw.save_safetensors(tmp_path / "a", {"a": kw.ones(3)})
    stream, graph = kw.Stream(), kw.Graph()
    with pytest.raises(kw.CaptureError, match="file"), graph.capture(stream):
        kw.load_safetensors(tmp_path / "a")


MEMORY = """
import resource, sys, kernwright as kw
with kw.SafeTensors(sys.argv[1]) as file:
    kw.zeros(1).numpy()
    peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    before = peak()
    for name in file:
        array = file[name]
        assert float(kw.sum(array[-1:]).item()) == 1
        del array
    print(peak() - before)
"""


def test_memory_of_the_host_stays_bounded(sim, tmp_path):
    """Of the simulated device, with arrays in the host's memory: one array and three pieces."""
    path = tmp_path / "large.safetensors"
    megabytes = 96
    one = kw.ones((megabytes << 18,))
    kw.save_safetensors(path, {"a": one, "b": one, "c": one})
    del one
    environment = {**os.environ, "KERNWRIGHT_DEVICE": "sim"}
    out = subprocess.run([sys.executable, "-c", MEMORY, str(path)], env=environment, check=True,
                         capture_output=True, text=True).stdout  # fmt: skip
    # The pool may keep one freed array; never are there copies of an array beside it.
    assert int(out) < (megabytes * 1.2 + 32) * 2**20


def test_npy(tmp_path):
    path = tmp_path / "x.npy"
    for value in (
        np.arange(24, dtype=np.int16).reshape(2, 3, 4), np.float64(3.0).reshape(()),
        np.zeros((0, 5), np.float32), np.array([True, False]), np.ones(3, np.complex128),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    ):  # fmt: skip
        for version in ((1, 0), (2, 0), (3, 0)):
            with open(path, "wb") as file:
                np.lib.format.write_array(file, value, version=version)
            same(kw.load_npy(path), value)
    whole = path.read_bytes()
    for wrong in (b"", whole[:9], whole[:100], whole[:-1], whole + b"x", b"PK" + whole[2:],
                  whole.replace(b"'<f8'", b"'<f9'"), whole.replace(b"(3, 4)", b"(3,-4)"),
                  whole.replace(b"(3, 4)", b"(3**9)"), whole[:8] + b"\xff\xff" + whole[10:],
                  whole.replace(b"{'d", b"{{d")):  # fmt: skip
        path.write_bytes(wrong)
        with pytest.raises(kw.StoreError):
            kw.load_npy(path)
    for value in (np.ones(3, np.longdouble), np.array(["a"]), np.zeros(2, [("a", "f4")])):
        np.save(path, value)
        with pytest.raises(kw.InvalidArgument, match="no array here"):
            kw.load_npy(path)


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def gguf(entries, tensors, data, version=3, alignment=32):
    made = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(entries)) + b"".join(entries)
    for name, shape, kind, begin in tensors:
        made += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        made += struct.pack("<IQ", kind, begin)
    return made + bytes(-len(made) % alignment) + data


ENTRIES = [
    text("general.architecture") + struct.pack("<I", 8) + text("llama"),
    text("n") + struct.pack("<II", 4, 7), text("f") + struct.pack("<If", 6, 0.5),
    text("b") + struct.pack("<IB", 7, 1), text("big") + struct.pack("<Iq", 11, -(2**40)),
    text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("\u00f6l"),
    text("scores") + struct.pack("<IIQ3f", 9, 6, 3, 1, 2, 3),
]  # fmt: skip


def test_gguf(tmp_path):
    path = tmp_path / "m.gguf"
    numbers = np.random.default_rng(0).standard_normal((4, 512)).astype(np.float32)
    blocks = kw.nn.quant.quantize(kw.asarray(numbers), "q4_k").numpy()
    plain = np.arange(15, dtype=np.float16).reshape(5, 3)
    short = kw.nn.quant.quantize(kw.asarray(numbers[:1, :32]), "q4_1").numpy()
    data = blocks.tobytes() + plain.tobytes() + bytes(2) + short.tobytes() + bytes(12) + bytes(66)
    tensors = [("w", (512, 4), 12, 0), ("p", (3, 5), 1, 1152), ("q", (32, 1), 3, 1184)]
    tensors.append(("other", (256, 1), 16, 1216))
    path.write_bytes(gguf(ENTRIES, tensors, data))
    with kw.Gguf(path) as file:
        assert file.version == 3 and list(file) == ["w", "p", "q", "other"]
        scores = file.metadata.pop("scores")
        assert scores.tolist() == [1, 2, 3] and scores.dtype == np.float32
        assert file.metadata == {"general.architecture": "llama", "n": 7, "f": 0.5, "b": True,
                                 "big": -(2**40), "tokens": ["a", "\u00f6l"]}  # fmt: skip
        assert file.format("w") == "q4_k" and file.shape("w") == (4, 512)
        same(file["w"], blocks)
        expected = kw.nn.quant.dequantize(kw.asarray(blocks), "q4_k", dtype="float16").numpy()
        same(file.numbers("w", "float16"), expected)
        same(file["p"], plain)
        same(file.numbers("p"), plain.astype(np.float32))
        assert file.format("q") == "q4_1" and file.shape("q") == (1, 32)
        same(file.numbers("q"), kw.nn.quant.dequantize(kw.asarray(short), "q4_1").numpy())
        assert file["other"].shape == (1, 66)
        with pytest.raises(kw.InvalidArgument, match="iq2_xxs"):
            file.numbers("other")
    path.write_bytes(gguf([], [], b"", version=2))
    assert len(kw.Gguf(path)) == 0


def test_hostile_gguf(tmp_path):
    path, data = tmp_path / "m.gguf", bytes(64)
    one = [("w", (8,), 0, 0)]
    whole = gguf(ENTRIES, one, data)
    aligned = text("general.alignment")
    wrong = {
        "magic": b"GGUX" + whole[4:],
        "version 1": gguf([], one, data, 1),
        "other byte order": gguf([], one, data, 3 << 24),
        "tensors": whole[:8] + struct.pack("<Q", 2**60) + whole[16:],
        "entries": whole[:16] + struct.pack("<Q", 2**62) + whole[24:],
        "long name": gguf([struct.pack("<Q", 2**63) + b"x"], one, data),
        "unknown kind": gguf([text("a") + struct.pack("<I", 99)], one, data),
        "list of lists": gguf([text("a") + struct.pack("<IIQ", 9, 9, 1)], one, data),
        "long list": gguf([text("a") + struct.pack("<IIQ", 9, 10, 2**61)], one, data),
        "same entry": gguf([ENTRIES[1]] * 2, one, data),
        "alignment 0": gguf([aligned + struct.pack("<II", 4, 0)], one, data),
        "alignment 24": gguf([aligned + struct.pack("<II", 4, 24)], one, data),
        "same array": gguf([], [*one, ("w", (8,), 0, 32)], data),
        "five axes": gguf([], [("w", (1,) * 5, 0, 0)], data),
        "unknown type": gguf([], [("w", (8,), 4, 0)], data),
        "half a block": gguf([], [("w", (100,), 12, 0)], data),
        "overflow": gguf([], [("w", (2**62, 4), 0, 0)], data),
        "outside": gguf([], [("w", (8,), 0, 64)], data),
        "overlap": gguf([], [("w", (16,), 0, 0), ("v", (8,), 0, 32)], data),
        "unaligned": gguf([], [("w", (8,), 0, 4)], data),
        "not UTF-8": gguf([struct.pack("<Q", 1) + b"\xff" + ENTRIES[1][9:]], one, data),
    }
    for name, content in wrong.items():
        path.write_bytes(content)
        with pytest.raises(kw.StoreError):
            raise AssertionError(f"{name} was taken: {kw.Gguf(path)}")
    for cut in range(len(whole) - len(data) + 31):
        path.write_bytes(whole[:cut])
        with pytest.raises(kw.StoreError):
            kw.Gguf(path)


def test_numbers_of_written_metadata_keep_their_kinds(tmp_path):
    path = tmp_path / "m.gguf"
    kept = {name: np.array([1, 2], name) for name in ("uint8", "int16", "uint32", "int64")}
    kept |= {name: np.array([0.5, -2], name) for name in ("float32", "float64")}
    narrow = {"uint32": [7, 2**32 - 1], "int32": [-1, 5], "uint64": [2**40, 2**63], "bool": [True]}
    kw.save_gguf(path, {}, kept | {f"list {name}": each for name, each in narrow.items()})
    with kw.Gguf(path) as file:
        for name, each in kept.items():
            assert file.metadata[name].dtype == each.dtype
            np.testing.assert_array_equal(file.metadata[name], each)
        for name, each in narrow.items():
            found = file.metadata[f"list {name}"]
            assert found.dtype.name == name and found.tolist() == each
    for wrong in ([1, 0.5], [True, 1], ["a", 1], [2**64], [-1, 2**63], [[1]], np.ones((2, 2)), {}):
        with pytest.raises(kw.ArgumentError):
            kw.save_gguf(path, {}, {"wrong": wrong})
