"""NumPy's files: .npy written, bytes in the other order, archives of several arrays."""

import os

import numpy as np
import pytest

import kernwright as kw
from kernwright._files import npz

VALUES = [
    np.arange(24, dtype=np.int16).reshape(2, 3, 4), np.float32(3.0).reshape(()),
    np.zeros((0, 5), np.float64), np.array([True, False, True]),
    np.array([1 + 2j, 3 - 4j], np.complex64), np.arange(5, dtype=np.uint64),
    np.linspace(-2, 2, 7).astype(np.float16),
]  # fmt: skip


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.npy"


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{value.dtype}-{value.shape}")
def test_written_arrays_are_numpys(path, value):
    kw.save_npy(path, kw.asarray(value))
    with open(path, "rb") as file:
        assert file.read(8) == b"\x93NUMPY\x01\x00"
    got = np.load(path)
    assert got.dtype == value.dtype and got.shape == value.shape and np.array_equal(got, value)
    assert os.listdir(path.parent) == ["x.npy"]


def test_views_are_written_in_order(path):
    host = np.arange(60.0).reshape(3, 4, 5)
    x = kw.asarray(host)
    for view in (lambda a: a[::-1, 1:3, ::2], lambda a: a.transpose(2, 0, 1), lambda a: a[:, :1]):
        kw.save_npy(path, view(x))
        assert np.array_equal(np.load(path), view(host))


@pytest.mark.parametrize("dtype", [">i2", ">f4", ">f8", ">c8", ">u8", ">f2"])
def test_bytes_in_the_other_order(path, dtype):
    value = np.asarray(np.arange(-6, 6).reshape(3, 4) % 99 + 0.0).astype(dtype)
    for order in (value, np.asfortranarray(value), value[:0], value[1, 2]):
        np.save(path, order)
        got = kw.load_npy(path)
        assert got.dtype == value.dtype.newbyteorder("=") and np.array_equal(got.numpy(), order)
    np.savez(path.with_suffix(".npz"), a=value)
    assert np.array_equal(kw.load_npz(path.with_suffix(".npz"))["a"].numpy(), value)


def test_what_numpy_lacks_is_not_written(path):
    path.write_bytes(b"kept")
    for dtype in ("bfloat16", "float8_e4m3fn"):
        with pytest.raises(kw.InvalidArgument, match="save_safetensors"):
            kw.save_npy(path, kw.zeros(3, dtype))
    with pytest.raises(kw.ArgumentError):
        kw.save_npy(path, np.zeros(3))
    with pytest.raises(kw.ArgumentError):
        kw.savez(path, kw.ones(2), b="text")
    with pytest.raises(kw.StoreError):
        kw.save_npy(path.parent / "none" / "x.npy", kw.ones(2))
    assert path.read_bytes() == b"kept"


@pytest.mark.parametrize("save", [kw.savez, kw.savez_compressed])
def test_archives(tmp_path, save):
    path = tmp_path / "a.npz"
    save(path, *map(kw.asarray, VALUES), w=kw.asarray(VALUES[0])[:, ::-1], **{"a/b": kw.ones(2)})
    with np.load(path) as archive:
        for i, value in enumerate(VALUES):
            assert np.array_equal(archive[f"arr_{i}"], value)
        assert np.array_equal(archive["w"], VALUES[0][:, ::-1])
    read = kw.load_npz(path)
    assert list(read) == ["w", "a/b", *(f"arr_{i}" for i in range(len(VALUES)))]
    assert all(read[f"arr_{i}"].dtype == value.dtype for i, value in enumerate(VALUES))
    assert list(kw.load_npz(path, ["a/b", "arr_1"])) == ["a/b", "arr_1"]
    with pytest.raises(kw.NameNotFound, match="has no array 'c'"):
        kw.load_npz(path, ["c"])
    with pytest.raises(kw.ArgumentError, match="list of str"):
        kw.load_npz(path, "w")
    with pytest.raises(kw.InvalidArgument, match="arr_0"):
        save(path, kw.ones(1), arr_0=kw.ones(2))


def test_damaged_archives(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.arange(1000))
    whole = path.read_bytes()
    middle = len(whole) // 3
    for wrong in (b"", whole[:40], whole[:-9], whole[:middle] + b"\0\1\2" + whole[middle + 3 :]):
        path.write_bytes(wrong)
        with pytest.raises(kw.StoreError):
            kw.load_npz(path)
    encrypted = bytearray(whole)
    for flags in (6, whole.find(b"PK\x01\x02") + 8):  # of the member and of the directory
        encrypted[flags] |= 1
    path.write_bytes(encrypted)
    with pytest.raises(kw.StoreError, match="encrypted"):
        kw.load_npz(path)
    np.savez(path, a=np.arange(3))
    plain = path.read_bytes()
    at = plain.find(b"'shape'")
    for head in (b"(((", b'"""', b"'shape': (9**99,)"):
        damaged = plain[:at] + head + plain[at + len(head) :]
        path.write_bytes(damaged)
        with pytest.raises(kw.StoreError, match="damaged"):
            kw.load_npz(path)
    np.savez(path, a=np.array([{}], object))
    with pytest.raises(kw.StoreError, match="no array of numbers"):
        kw.load_npz(path)
    np.savez(path, a=np.array(["text"]))
    with pytest.raises(kw.InvalidArgument, match="no array here"):
        kw.load_npz(path)
    assert kw.load_npz(path, []) == {}


def test_files_reach_the_disk_before_they_replace_others(path, monkeypatch):
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(path.exists()), fsync(file)))
    kw.save_npy(path, kw.ones(3))
    kw.savez(path.with_suffix(".npz"), kw.ones(3))
    kw.save_safetensors(path.with_suffix(".safetensors"), {"a": kw.ones(3)})
    assert synced == [False, True, True]


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_format(path, version):
    value = np.arange(12, dtype=np.int32).reshape(3, 4)
    with open(path, "wb") as file:
        np.lib.format.write_array(file, value, version=version)
    assert np.array_equal(kw.load_npy(path).numpy(), value)


def test_archives_are_written_in_pieces(path, monkeypatch):
    monkeypatch.setattr(npz, "_PIECE", 64)
    value = np.arange(101, dtype=np.float64)
    kw.savez(path, kw.asarray(value), turned=kw.asarray(value)[::-1], one=kw.ones((1, 1)))
    got = np.load(path)
    assert np.array_equal(got["arr_0"], value) and np.array_equal(got["turned"], value[::-1])


def test_a_failed_write_leaves_the_folder_as_it_was(path, monkeypatch):
    def full(array):
        yield b"half"
        raise OSError(28, "No space left on device")

    path.write_bytes(b"kept")
    monkeypatch.setattr(npz, "_pieces", full)
    with pytest.raises(kw.StoreError, match="No space left"):
        kw.savez(path, kw.ones(3))
    assert os.listdir(path.parent) == [path.name] and path.read_bytes() == b"kept"
