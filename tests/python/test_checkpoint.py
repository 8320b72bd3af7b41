"""kw.train.Checkpoint: resumed runs, processes that are killed, files that are damaged."""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from children import run_child

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument, StoreError


class Net(kw.nn.Module):
    def __init__(self, width=4):
        self.up = kw.nn.Linear(3, width, seed=1)
        self.drop = kw.nn.Dropout(0.5, seed=7)
        self.down = kw.nn.Linear(width, 3, False, seed=2)
        self.tied = self.down.weight


class Run:
    """A run with all that has a state; its gradients are made by hand."""

    def __init__(self):
        self.model = Net()
        self.optimizer = kw.optim.AdamW(
            self.model, lr=kw.optim.cosine(0.1, 12, warmup=3), master_weights=True,
            groups=[{"match": "bias", "weight_decay": 0.0}],
        )  # fmt: skip
        self.scale = kw.optim.LossScale(64.0, interval=2)
        self.average = kw.optim.EMA(self.model, 0.8)
        self.window = kw.optim.Accumulator(self.model)
        self.noise = kw.random.Generator(5, on_device=True)

        self.batches = 0

    def objects(self):
        return {name: each for name, each in vars(self).items() if name != "batches"}

    def batch(self):
        """Every third one ends a window."""
        x = kw.random.normal((5, 3)) + self.noise.uniform((5, 3))
        hidden = self.model.drop(self.model.up(x))
        out = self.model.down(hidden) * self.scale.scale
        dhidden = out @ self.model.down.weight
        grads = {"up": {"weight": dhidden.T @ x, "bias": kw.sum(dhidden, axis=0)},
                 "down": {"weight": out.T @ hidden}}  # fmt: skip
        self.window.add(grads, tokens=1 + self.batches % 4)
        self.batches += 1
        if self.batches % 3 == 0:
            self.optimizer.step(self.window, loss_scale=self.scale, max_norm=1.0)
            self.average.update()

    def bits(self):
        arrays = [*self.model.named_parameters(), ("scale", self.scale.scale),
                  ("good", self.scale.good), ("steps", self.optimizer.steps)]  # fmt: skip
        nests = (self.optimizer.state_dict()["exp_avg_sq"], self.average.values)
        arrays += [(n, x) for nest in nests for part in nest.values() for n, x in part.items()]
        return [(name, x.numpy().tobytes()) for name, x in arrays]


def test_a_resumed_run_equals_one_without_a_break(tmp_path):
    """Saved in the middle of a window, whose sums are part of the state."""
    kw.random.seed(3)
    whole = Run()
    for _ in range(15):
        whole.batch()
    kw.random.seed(3)
    first = Run()
    for _ in range(7):
        first.batch()
    checkpoint = kw.train.Checkpoint(tmp_path / "run")
    checkpoint.save(**first.objects(), batches=first.batches)
    first.batch()
    checkpoint.wait()
    kw.random.seed(99)
    kw.random.normal(17)
    second = Run()
    second.optimizer.lr = 0.5
    second.noise.uniform(9)
    second.batches = checkpoint.load(**second.objects())["batches"]
    assert second.bits() != whole.bits()
    for _ in range(8):
        second.batch()
    assert second.bits() == whole.bits()


def test_later_work_does_not_reach_the_checkpoint(tmp_path):
    weights = {"w": kw.full(1000, 1.0), "strided": kw.full((4, 6), 1.0).T, "none": kw.zeros((0, 3))}
    checkpoint = kw.train.Checkpoint(tmp_path)
    checkpoint.save(weights=weights, scalar=2.5, names=["a"])
    weights["w"] += 1
    weights["strided"] += 1
    checkpoint.wait()
    assert checkpoint.load(weights=weights) == {"scalar": 2.5, "names": ["a"]}
    assert (weights["w"].numpy() == 1).all() and (weights["strided"].numpy() == 1).all()


def test_the_last_ones_stay(tmp_path):
    weights = {"w": kw.zeros(2, "bfloat16")}
    checkpoint = kw.train.Checkpoint(tmp_path, keep=2)
    assert checkpoint.newest is None and checkpoint.numbers == []
    for step in range(4):
        weights["w"].fill(step)
        checkpoint.save(weights=weights, step=step)
    checkpoint.wait()
    assert checkpoint.numbers == [3, 4] and checkpoint.newest.name == "0000004"
    assert checkpoint.load(weights=weights, number=3) == {"step": 2}
    assert (weights["w"].numpy() == 2).all()
    assert sorted(os.listdir(tmp_path)) == ["0000003", "0000004"]
    assert sorted(os.listdir(checkpoint.newest)) == ["state.json", "weights.safetensors"]
    with pytest.raises(InvalidArgument, match=r"has the checkpoints \[3, 4\], not 1"):
        checkpoint.load(weights=weights, number=1)


def test_weights_are_a_file_that_modules_load(tmp_path):
    model = Net()
    checkpoint = kw.train.Checkpoint(tmp_path)
    checkpoint.save(model)
    checkpoint.wait()
    other = Net()
    other.up.weight.fill(0.0)
    other.load(checkpoint.newest / "model.safetensors")
    assert np.array_equal(other.up.weight.numpy(), model.up.weight.numpy())
    with kw.SafeTensors(checkpoint.newest / "model.safetensors") as file:
        assert json.loads(file.metadata["tied"]) == {"tied": "down.weight"}


def saved(tmp_path, **objects):
    checkpoint = kw.train.Checkpoint(tmp_path)
    checkpoint.save(**objects)
    checkpoint.wait()
    return checkpoint


def test_a_checkpoint_of_another_model(tmp_path):
    model = Net()
    checkpoint = saved(tmp_path, model=model, optimizer=kw.optim.SGD(model, momentum=0.5))
    other = Net(5)
    other.extra = kw.nn.Linear(1, 1)
    del other.drop
    other.down = kw.nn.Linear(5, 3, seed=4).astype("bfloat16")
    other.tied = None
    before = other.up.weight.numpy()
    with pytest.raises(InvalidArgument) as caught:
        checkpoint.load(model=other, data={"x": kw.ones(1)})
    for words in ("missing: data, model: down.bias, model: extra.weight, model: extra.bias",
                  "unexpected: optimizer", "model: up.weight has (4, 3) in place of (5, 3)",
                  "model: down.weight is float32 in place of bfloat16",
                  "0000001 does not fit, and nothing has changed"):  # fmt: skip
        assert words in str(caught.value), caught.value
    assert np.array_equal(other.up.weight.numpy(), before)


def test_dtypes_are_converted_only_on_demand(tmp_path):
    checkpoint = saved(tmp_path, model=kw.nn.Linear(2, 3, seed=1))
    narrow = kw.nn.Linear(2, 3, seed=2).astype("bfloat16")
    with pytest.raises(InvalidArgument, match="weight is float32 in place of bfloat16"):
        checkpoint.load(model=narrow)
    checkpoint.load(model=narrow, cast=True)
    expected = kw.nn.Linear(2, 3, seed=1).astype("bfloat16")
    assert np.array_equal(narrow.weight.numpy(), expected.weight.numpy())


def test_other_groups_settings_and_parts(tmp_path):
    model = kw.nn.Linear(2, 3, seed=1)
    optimizer = kw.optim.SGD(model, lr=0.5)
    checkpoint = saved(tmp_path, model=model, optimizer=optimizer, step=3)
    grouped = kw.optim.SGD(model, lr=0.25, groups=[{"match": "bias", "lr": 0.1}])
    with pytest.raises(InvalidArgument, match="other groups: optimizer"):
        checkpoint.load(model=model, optimizer=grouped)
    new = kw.optim.SGD(model, lr=0.25)
    checkpoint.load(model=model, optimizer=new, settings=False)
    assert new.lr == 0.25 and new.settings()[0]["lr"] == 0.25
    checkpoint.load(model=model, optimizer=new)
    assert new.lr == 0.5 and new.settings()[0]["lr"] == 0.5
    with pytest.raises(InvalidArgument, match="unexpected: optimizer"):
        checkpoint.load(model=model)
    assert checkpoint.load(model=model, strict=False) == {"step": 3}


def test_a_state_that_is_refused_leaves_the_others(tmp_path):
    generator = kw.random.Generator(4)
    checkpoint = saved(tmp_path, first=generator, second=kw.random.Generator(5, on_device=True))
    other = kw.random.Generator(6)
    with pytest.raises(InvalidArgument, match="a generator with one"):
        checkpoint.load(first=other, second=kw.random.Generator(8))
    assert other.state() == {"seed": 6, "offset": 0, "counter": None}


def damage(path, how):
    data = path.read_bytes()
    if how == "gone":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "cut off":
        path.write_bytes(data[:-5])
    elif how == "longer":
        path.write_bytes(data + b"\0")
    else:
        middle = len(data) // 2 if how == "middle" else len(data) - 20
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])


@pytest.mark.parametrize("file", ["model.safetensors", "state.json"])
@pytest.mark.parametrize("how", ["gone", "empty", "cut off", "longer", "middle", "end"])
def test_damaged_files_are_named(tmp_path, file, how):
    model = kw.nn.Linear(2, 3, seed=1)
    checkpoint = saved(tmp_path, model=model, step=3)
    damage(checkpoint.newest / file, how)
    model.weight.fill(7.0)
    with pytest.raises(StoreError, match=file) as caught:
        checkpoint.load(model=model)
    if file != "state.json" and how in ("empty", "cut off", "longer"):
        assert "bytes, and" in str(caught.value)
    assert (model.weight.numpy() == 7).all()


def test_no_checkpoint(tmp_path):
    with pytest.raises(StoreError, match="has no checkpoint"):
        kw.train.Checkpoint(tmp_path / "none").load()


def test_errors_of_the_writer_come_with_the_next_call(tmp_path):
    (tmp_path / "file").write_text("")
    checkpoint = kw.train.Checkpoint(tmp_path / "file" / "below")
    checkpoint.save(x=kw.ones(3))
    with pytest.raises(StoreError, match="below"):
        checkpoint.wait()
    checkpoint.wait()  # said once
    checkpoint.save(x=kw.ones(3))
    with pytest.raises(StoreError, match="below"):
        checkpoint.save(x=kw.ones(3))


def test_a_write_that_fails_leaves_the_last_one(tmp_path, monkeypatch):
    weights = {"w": kw.ones(3)}
    checkpoint = saved(tmp_path, weights=weights, step=1)
    calls = []

    def fsync(file):
        calls.append(file)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    checkpoint.save(weights=weights, step=2)
    with pytest.raises(StoreError, match="No space left"):
        checkpoint.wait()
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["0000001"]
    assert checkpoint.load(weights=weights) == {"step": 1}


def test_the_end_of_a_program_waits_for_the_writer(tmp_path):
    ended = run_child(f"""
        import kernwright as kw
        checkpoint = kw.train.Checkpoint({str(tmp_path)!r})
        checkpoint.save(x=kw.full(300_000, 5.0), step=2)
        raise SystemExit(3)
        """)
    assert ended.code == 3 and not ended.err, ended.err
    x = kw.zeros(300_000)
    assert kw.train.Checkpoint(tmp_path).load(x=x) == {"step": 2}
    assert (x.numpy() == 5).all()


def test_every_file_reaches_the_disk_before_the_name(tmp_path, monkeypatch):
    order = []

    def fsync(file):
        order.append(os.path.basename(os.readlink(f"/proc/self/fd/{file}")))

    def rename(source, target):
        order.append(f"-> {os.path.basename(target)}")
        os.replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    saved(tmp_path / "run", a=kw.ones(1), b=kw.ones(1))
    part = f".0000001.part.{os.getpid()}"
    assert order == [
        tmp_path.name, "a.safetensors", "b.safetensors", "state.json", part, "-> 0000001", "run",
    ]  # fmt: skip


def test_what_other_processes_write_is_left_alone(tmp_path, monkeypatch):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for process in (1, ended.pid):
        (tmp_path / f".0000009.part.{process}").mkdir()
        (tmp_path / f".0000003.old.{process}").mkdir()
    (tmp_path / "notes").mkdir()
    saved(tmp_path, x=kw.ones(1))
    left = [".0000003.old.1", ".0000009.part.1", "0000001", "notes"]
    assert sorted(os.listdir(tmp_path)) == left

    def kill(process, signal):
        raise PermissionError("of another user")

    monkeypatch.setattr(os, "kill", kill)
    (tmp_path / ".0000009.part.77").mkdir()
    saved(tmp_path, x=kw.ones(1))
    assert (tmp_path / ".0000009.part.77").is_dir() and (tmp_path / "0000002").is_dir()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda c: kw.train.Checkpoint("x", keep=0), InvalidArgument, "keep is a number"),
        (lambda c: kw.train.Checkpoint(3), ArgumentError, "a path is"),
        (lambda c: c.save(x=object()), ArgumentError, "x cannot be kept"),
        (lambda c: c.save(strict=kw.ones(1)), ArgumentError, "'strict' is no name"),
        (lambda c: c.save(**{"../x": kw.ones(1)}), ArgumentError, "'../x' is no name"),
        (lambda c: c.save(x=[kw.ones(1), 3]), ArgumentError, "array"),
        (lambda c: c.load(step=3), ArgumentError, "step is a plain value"),
    ],
)
def test_wrong_calls(tmp_path, call, error, words):
    checkpoint = saved(tmp_path, step=1)
    with pytest.raises(error, match=words):
        call(checkpoint)


CHILD = """
import signal
import sys
import kernwright as kw
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in jobs of the background
weights = {"w": kw.zeros(50_000), "v": kw.zeros(1000)}
checkpoint = kw.train.Checkpoint(sys.argv[1], keep=2)
step = checkpoint.load(weights=weights)["step"] if checkpoint.newest else 0
print("ready", flush=True)
while True:
    step += 1
    for each in weights.values():
        each.fill(step)
    checkpoint.save(weights=weights, step=step)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_ends_at_any_moment(tmp_path, number):
    """The last whole checkpoint stays, and what was begun is removed by the next run."""
    chance, before = random.Random(8), 0
    for _ in range(3 if number == signal.SIGKILL else 1):
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(CHILD), str(tmp_path / "run")],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ) as child:  # fmt: skip
            assert child.stdout.readline() == b"ready\n"
            while not any(pathlib.Path(tmp_path / "run").glob("[0-9]*")):
                time.sleep(0.01)
            time.sleep(0.05 + chance.random() / 3)
            child.send_signal(number)
            child.wait(60)
        weights = {"w": kw.zeros(50_000), "v": kw.zeros(1000)}
        step = kw.train.Checkpoint(tmp_path / "run").load(weights=weights)["step"]
        assert step >= max(before, 1)
        assert all((each.numpy() == step).all() for each in weights.values())
        before = step
    saved(tmp_path / "run", weights=weights, step=before)
    assert not list((tmp_path / "run").glob(".*"))


INTERRUPTED = """
import os, signal, threading, time
import kernwright as kw
from kernwright.train import _folder
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in jobs of the background
goes_on, publish = threading.Event(), _folder.publish
def slow(*args):
    goes_on.wait(60)
    publish(*args)
_folder.publish = slow
x = kw.full(1000, 1.0)
checkpoint = kw.train.Checkpoint({path!r}, keep=2)
checkpoint.save(x=x, step=1)
for call in (checkpoint.wait, lambda: checkpoint.save(x=x, step=0)):
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        call()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
threading.Timer(0.3, goes_on.set).start()
{after}
"""


@pytest.mark.parametrize("goes_on", [True, False])
def test_ctrl_c_in_a_wait_leaves_the_writer_at_work(tmp_path, goes_on):
    """The checkpoint is whole at the end of the program, and before the next one begins."""
    after = "x.fill(2.0)\ncheckpoint.save(x=x, step=2)" if goes_on else ""
    ended = run_child(INTERRUPTED.format(path=str(tmp_path), after=after))
    assert ended.code == 0 and ended.out.split() == ["interrupted"] * 2, ended.err
    checkpoint, x = kw.train.Checkpoint(tmp_path), kw.zeros(1000)
    assert checkpoint.numbers == ([1, 2] if goes_on else [1])
    for number in checkpoint.numbers:
        assert checkpoint.load(number=number, x=x) == {"step": number}
        assert (x.numpy() == number).all()
