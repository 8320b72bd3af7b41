"""kw.train.Shards against a loop over the tokens."""

import os

import numpy as np
import pytest

import kernwright as kw
from kernwright.errors import ArgumentError, ArgumentRangeError, InvalidArgument, StoreError

SIZES = (23, 7, 40, 3, 0)


@pytest.fixture
def paths(tmp_path):
    rng = np.random.default_rng(1)
    names = [tmp_path / f"{i}.bin" for i in range(len(SIZES))]
    for name, size in zip(names, SIZES, strict=True):
        kw.train.write_shard(name, rng.integers(0, 60000, size))
    return names


def all_windows(paths, length):
    """What a reader of llm.c's format finds."""
    found = []
    for path in paths:
        header = np.fromfile(path, "<i4", 256)
        tokens = np.fromfile(path, "<u2", offset=1024).astype(np.int64)
        assert header[:3].tolist() == [20240520, 1, len(tokens)] and not header[3:].any()
        found += [tokens[at : at + length + 1] for at in range(0, len(tokens) - length, length)]
    return np.array(found)


def rows(batch):
    inputs, targets = (each.numpy() for each in batch)
    assert inputs.dtype == targets.dtype == np.int32
    assert np.array_equal(inputs[:, 1:], targets[:, :-1])
    return np.concatenate([inputs, targets[:, -1:]], axis=1)


def test_in_order(paths):
    shards = kw.train.Shards(paths, batch_size=3, length=4)
    expected = all_windows(paths, 4)
    assert len(expected) == 5 + 1 + 9 and shards.batches == 5 and shards.tokens == sum(SIZES)
    for epoch in range(2):
        assert shards.epoch == epoch
        got = np.concatenate([rows(next(shards)) for _ in range(5)])
        assert np.array_equal(got, expected)


def test_shuffled_ranks_share_each_epoch(paths):
    expected = {tuple(row) for row in all_windows(paths, 4).tolist()}
    orders = []
    ranks = [kw.train.Shards(paths, batch_size=2, length=4, seed=9, rank=r, world=3)
             for r in range(3)]  # fmt: skip
    for _ in range(2):
        seen = [tuple(row) for _ in range(2) for each in ranks for row in rows(next(each)).tolist()]
        assert len(set(seen)) == 12 and set(seen) <= expected
        orders.append(seen)
    assert orders[0] != orders[1]
    again = kw.train.Shards(paths, batch_size=2, length=4, seed=9, world=3)
    assert [tuple(r) for r in rows(next(again)).tolist()] == orders[0][:2]
    other = kw.train.Shards(paths, batch_size=2, length=4, seed=2**40 + 9, world=3)
    assert [tuple(r) for r in rows(next(other)).tolist()] != orders[0][:2]


@pytest.mark.parametrize("seed", [None, 5])
def test_a_position_is_restored(paths, seed):
    whole = kw.train.Shards(paths, batch_size=4, length=3, seed=seed)
    first = kw.train.Shards(paths, batch_size=4, length=3, seed=seed)
    for _ in range(whole.batches + 2):  # in the second epoch
        next(whole), next(first)
    second = kw.train.Shards(paths, batch_size=4, length=3, seed=seed)
    second.restore(first.state())
    for _ in range(whole.batches):
        assert np.array_equal(rows(next(whole)), rows(next(second)))


def test_into_arrays_of_a_graph(paths):
    shards = kw.train.Shards(paths, batch_size=2, length=3)
    inputs, targets = kw.zeros((2, 3), "int32"), kw.zeros((2, 3), "int32")
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        total = kw.sum(inputs) + kw.sum(targets)
    expected = kw.train.Shards(paths, batch_size=2, length=3)
    for _ in range(3):
        shards.read_into(inputs, targets)
        kw.synchronize()
        graph.launch(stream)
        stream.synchronize()
        a, b = next(expected)
        assert total.item() == int(a.numpy().sum() + b.numpy().sum())
    with pytest.raises(InvalidArgument, match=r"targets have the shape \(2, 3\), got \(3, 2\)"):
        shards.read_into(inputs, targets.T)


def test_a_pattern_names_the_files(paths):
    by_pattern = kw.train.Shards(str(paths[0].parent / "*.bin"), batch_size=3, length=4)
    assert by_pattern.state() == kw.train.Shards(paths, batch_size=3, length=4).state()
    with pytest.raises(StoreError, match="matches no file"):
        kw.train.Shards(str(paths[0].parent / "*.txt"), batch_size=3, length=4)


def test_states_of_other_data(paths):
    shards = kw.train.Shards(paths, batch_size=3, length=4, seed=1)
    for other, words in (
        (kw.train.Shards(paths, batch_size=2, length=4, seed=1), "batch_size was 2 and is 3"),
        (kw.train.Shards(paths, batch_size=3, length=4, seed=2), "seed was 2 and is 1"),
        (kw.train.Shards(paths[:3], batch_size=3, length=4, seed=1), "files was"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            shards.restore(other.state())
    with pytest.raises(InvalidArgument, match="batch 5 of epoch 0 of 5 batches"):
        shards.restore({**shards.state(), "batch": 5})
    assert shards.batch == 0


def changed(path, how):
    data = bytearray(path.read_bytes())
    if how == "magic":
        data[0] ^= 1
    elif how == "version":
        data[4] = 7
    elif how == "count":
        data[8:12] = (10**6).to_bytes(4, "little")
    elif how == "negative":
        data[8:12] = (-2).to_bytes(4, "little", signed=True)
    elif how == "tail":
        data = data[:-1]
    elif how == "header":
        data = data[:1000]
    elif how == "empty":
        data = data[:0]
    elif how == "longer":
        data += b"\0\0"
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("magic", "is no shard of tokens: it begins with 20240521, and shards with 20240520"),
        ("version", "version 7"),
        ("count", "has 1104 bytes, and 1000000 tokens with the header 2001024"),
        ("negative", "-2 tokens"),
        ("tail", "has 1103 bytes, and 40 tokens with the header 1104"),
        ("header", "has 1000 bytes"),
        ("empty", "has 0 bytes"),
        ("longer", "has 1106 bytes, and 40 tokens with the header 1104"),
    ],
)
def test_damaged_shards_are_named(paths, how, words):
    changed(paths[2], how)
    with pytest.raises(StoreError, match=r"2\.bin") as caught:
        kw.train.Shards(paths, batch_size=3, length=4)
    assert words in str(caught.value)


def test_a_shard_that_is_cut_off_later(paths):
    shards = kw.train.Shards(paths, batch_size=6, length=4)
    next(shards)
    os.truncate(paths[2], 1100)
    before = shards.state()
    with pytest.raises(StoreError, match=r"2\.bin is cut off .* has 1100 bytes"):
        next(shards)
    assert shards.state() == before


def test_tokens_beyond_the_vocabulary(tmp_path):
    tokens = np.arange(20)
    tokens[13] = 500
    kw.train.write_shard(tmp_path / "a.bin", tokens)
    shards = kw.train.Shards([tmp_path / "a.bin"], batch_size=2, length=4, vocabulary=50)
    next(shards)
    kw.train.write_shard(tmp_path / "b.bin", [3, 7, 1, 2, 0])
    for size in (8, 7):
        few = kw.train.Shards(tmp_path / "b.bin", 1, 4, vocabulary=size)
        if size == 8:
            next(few)
    with pytest.raises(StoreError, match=r"the token 7 at 1, and the vocabulary 7"):
        next(few)
    with pytest.raises(StoreError, match=r"a\.bin has the token 500 at 13, and the vocabulary 50"):
        next(shards)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda p: kw.train.Shards(p, batch_size=0, length=4), InvalidArgument, "batch_size is"),
        (lambda p: kw.train.Shards(p, batch_size=2, length=True), InvalidArgument, "length is"),
        (lambda p: kw.train.Shards(p, batch_size=2, length=4, rank=1), InvalidArgument, "rank"),
        (lambda p: kw.train.Shards(p, 2, 4, seed=-1), ArgumentRangeError, "seed lies"),
        (lambda p: kw.train.Shards(p, 2, 4, vocabulary="a"), ArgumentError, "vocabulary"),
        (lambda p: kw.train.Shards(p, batch_size=16, length=4), InvalidArgument,
         "73 tokens in 5 shards are 15 windows of 4, and one batch takes 16 for each of 1 ranks"),
        (lambda p: kw.train.Shards([], batch_size=2, length=4), InvalidArgument, "no shards"),
        (lambda p: kw.train.Shards(3, batch_size=2, length=4), ArgumentError, "paths are files"),
        (lambda p: kw.train.Shards(["/none.bin"], batch_size=2, length=4), StoreError, "none.bin"),
        (lambda p: kw.train.write_shard(p[0], [1.5]), ArgumentError, "whole numbers in one axis"),
        (lambda p: kw.train.write_shard(p[0], [[1]]), ArgumentError, r"of shape \(1, 1\)"),
        (lambda p: kw.train.write_shard(p[0], [-1, 3]), InvalidArgument, "got -1 to 3"),
        (lambda p: kw.train.write_shard(p[0], [65536]), InvalidArgument, "from 0 to 65535"),
    ],
)  # fmt: skip
def test_wrong_calls(paths, make, error, words):
    with pytest.raises(error, match=words):
        make(paths)
