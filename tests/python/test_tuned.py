"""kernel.tuned(): what is launched for which problem, and why."""

import json
import pickle
import re
import threading
import warnings

import numpy as np
import pytest
from tuning import GRID, SCALE, result_row, run, write_rows

import kernwright as kw
from kernwright.tune import Choice, Session, Space, Store, Tuned


@pytest.fixture
def kernel():
    return kw.kernel(SCALE)


@pytest.fixture
def store(tmp_path, kernel):
    return write_rows(
        tmp_path / "store.jsonl",
        result_row(kernel, {"BLOCK": 64, "V": 2}, problem={"n": 4096}),
        result_row(kernel, {"BLOCK": 128, "V": 4}, problem={"n": 100}),
    )


def test_the_problem_chooses_configuration_and_grid(kernel, store):
    fast = kernel.tuned(store)
    assert isinstance(fast, Tuned)
    for n in (4096, 5000, 100, 127, 4096):
        run(fast, n)
    assert fast.choice(n=5000).config == {"BLOCK": 64, "V": 2}
    assert fast.choice({"n": 127}).config == {"BLOCK": 128, "V": 4}
    assert all(choice.from_store for choice in fast.choices)
    assert repr(fast.choice(n=5000).launch) == "<scale[(40, 1, 1), (64, 1, 1)]>"
    assert len(fast.why.splitlines()) == 4


def test_results_of_other_kernels_are_not_looked_at(tmp_path):
    """Neither for a launch nor for the names of the problem and a pack; one text has both."""
    text = SCALE + SCALE[SCALE.index("__global__") :].replace("scale(", "other(")
    kernel, other = kw.kernel(text, "scale"), kw.kernel(text, "other")
    own = result_row(kernel, {"BLOCK": 64, "V": 2})
    foreign = result_row(
        other, {"BLOCK": 256, "V": 1}, problem={"n": 4096, "rows": 3}, grid="-(-rows // BLOCK)"
    )
    mixed = write_rows(tmp_path / "mixed.jsonl", foreign, own)
    fast = kernel.tuned(mixed)
    run(fast, 4096)
    (choice,) = fast.choices
    assert choice.config == {"BLOCK": 64, "V": 2} and dict(choice.problem) == {"n": 4096}
    codes, lines = fast.packed()
    assert [json.loads(line)["kernel"] for line in lines.splitlines()] == ["scale"]
    assert len(codes) == 2  # the result's and the default's
    alone = write_rows(tmp_path / "alone.jsonl", foreign)
    fast = kernel.tuned(alone, grid=GRID, block="BLOCK", default={"BLOCK": 32, "V": 1})
    with pytest.warns(kw.PerformanceWarning, match="no tuned configuration"):
        run(fast, 4096)
    for name, config in (("other", foreign["config"]), ("scale", own["config"])):
        assert [match.config for match in Store(mixed).find({"kernel": name})] == [config]


def test_another_bucket_gets_the_default_and_a_reason_once(kernel, store):
    fast = kernel.tuned(store)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            run(fast, 1)
    choice = fast.choice(n=1)
    assert not choice.from_store and choice.config == {"BLOCK": 32, "V": 1}
    assert "problem: n 100, not 1" in choice.reason
    (warning,) = caught
    assert (
        warning.category is kw.PerformanceWarning and warning.filename == run.__code__.co_filename
    )
    assert re.search("no tuned configuration.*n 100, not 1", str(warning.message))
    with pytest.warns(kw.PerformanceWarning, match="no tuned configuration"):
        run(fast, 2)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"source": "0" * 32}, "source"),
        ({"source": None}, "source"),
        ({"nvrtc": "1.0"}, "nvrtc"),
        ({"nvrtc": None}, "nvrtc"),
        ({"driver": 1}, "driver"),
        ({"device": {"name": "other", "major": 1, "minor": 0, "sm_count": 1}}, "device"),
        ({"device": None}, "device"),
        ({"objective": "energy"}, "objective"),
        ({"policy": "warm"}, "policy"),
        ({"space": "4567"}, "space"),
        ({"problem": {"n": 64}}, "problem"),
    ],
)
def test_no_stale_result_is_used_and_near_ones_on_request_alone(tmp_path, kernel, changes, part):
    row = result_row(kernel, {"BLOCK": 64, "V": 2}, **changes)
    path = write_rows(tmp_path / "store", row)
    options = {"policy": "counts"}
    fast = kernel.tuned(path, **options, grid="-(-n // (BLOCK * V))", block="BLOCK",
                        default={"BLOCK": 32, "V": 1})  # fmt: skip
    if part == "space":
        space = kw.tune.Space(BLOCK=[32, 64], V=[1, 2])
        options["space"] = space
        fast = kernel.tuned(path, **options)
    run(fast, 4096)
    (choice,) = fast.choices
    assert not choice.from_store and part in choice.reason
    if part == "source":
        with pytest.raises(kw.InvalidArgument, match="source"):
            kernel.tuned(path, near="source")
        assert not kernel.tuned(path, near=True, grid=1, block=32).choice(n=4096).from_store
        return
    near = kernel.tuned(path, near=part, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(near, 4096)
    assert near.choices[0].from_store
    assert near.choices[0].reason.count(f"({part}: ") == (part != "nvrtc")
    said = "".join(str(warning.message) for warning in caught)
    assert part == "nvrtc" or ("a near result is used" in said and part in said)
    assert kernel.tuned(path, near=True, **options).choice(n=4096).from_store


def test_an_edit_of_source_or_header_makes_results_stale(tmp_path):
    header, source = tmp_path / "factor.h", tmp_path / "kernel.cu"
    header.write_text("// one\n")
    source.write_text('#include "factor.h"\n' + SCALE)
    kernel = kw.kernel(source)
    path = write_rows(tmp_path / "store", result_row(kernel, {"BLOCK": 64, "V": 2}))
    assert kw.kernel(source).tuned(path).choice(n=4096).from_store
    header.write_text("// two\n")
    fast = kw.kernel(source).tuned(path, grid=128, block=32)
    assert "source" in fast.choice(n=4096).reason
    header.write_text("// one\n")
    assert kw.kernel(source).tuned(path).choice(n=4096).from_store
    source.write_text('#include "factor.h"\n//\n' + SCALE)
    assert not kw.kernel(source).tuned(path, grid=128, block=32).choice(n=4096).from_store


def test_restrictions_hold_for_the_problem_at_hand(tmp_path, kernel):
    row = result_row(kernel, {"BLOCK": 64, "V": 2}, restrictions=["n % V == 0", "BLOCK <= 1024"])
    fast = kernel.tuned(write_rows(tmp_path / "store", row))
    assert fast.choice(n=4098).from_store
    assert "'n % V == 0' does not hold" in fast.choice(n=4097).reason
    run(fast, 4097)
    row["restrictions"] = ["m > 3"]
    fast = kernel.tuned(write_rows(tmp_path / "store", row))
    assert fast.choice(n=4096).from_store  # it was measured so
    assert "cannot be checked" in fast.choice(n=4097).reason


def test_rules_and_defaults_may_stand_in_the_session_row(tmp_path, kernel):
    row = result_row(kernel, {"BLOCK": 64, "V": 2}, grid=None, block=None, default=None)
    session = {"v": 1, "kind": "session", "session": row["session"], "block": ["BLOCK", 1],
               "grid": ["-(-n // (BLOCK * V))"], "default": {"BLOCK": 96, "V": 1},
               "space": {"restrictions": ["n % V == 0"]}}  # fmt: skip
    fast = kernel.tuned(write_rows(tmp_path / "store", session, row))
    run(fast, 4096)
    run(fast, 4097)
    run(fast, 3)
    assert [choice.config["BLOCK"] for choice in fast.choices] == [64, 96, 96]


def test_without_any_default_the_nearest_result_serves(tmp_path, kernel):
    row = result_row(kernel, {"BLOCK": 64, "V": 2}, default=None)
    fast = kernel.tuned(write_rows(tmp_path / "store", row))
    with pytest.warns(kw.PerformanceWarning, match="for want of a default"):
        run(fast, 1)
    assert fast.choices[0].config == {"BLOCK": 64, "V": 2} and not fast.choices[0].from_store


def test_no_result_serves_where_its_restrictions_do_not_hold(tmp_path, kernel):
    rows = [
        result_row(kernel, {"BLOCK": 64, "V": 4}, default=None, restrictions=["n % V == 0"]),
        result_row(kernel, {"BLOCK": 96, "V": 1}, default=None, restrictions=["n % V == 0"],
                   problem={"n": 1 << 20}),
    ]  # fmt: skip
    fast = kernel.tuned(write_rows(tmp_path / "store", *rows))
    run(fast, 5)
    assert fast.choices[0].config == {"BLOCK": 96, "V": 1}


def test_problem_values_come_from_where_they_are_said_to(tmp_path, kernel):
    row = result_row(kernel, {"BLOCK": 64, "V": 2}, problem={"size": 4096},
                     grid="-(-size // (BLOCK * V))")  # fmt: skip
    path = write_rows(tmp_path / "store", row)
    with pytest.raises(kw.NameNotFound, match="'size' is no parameter"):
        kernel.tuned(path)(1, 2, 3, 4)
    sources = ["n", "x.size", "x.shape[0]", "y.shape[-1]", lambda x, y, a, n: n]
    for source in sources:
        fast = kernel.tuned(path, problem={"size": source})
        run(fast, 5000)
        assert fast.choices[0].from_store and fast.choices[0].problem == {"size": 5000}
    fast = kernel.tuned(path, problem={"size": 4096})
    assert fast.for_problem(size=4096) is fast.choice(size=4096).launch
    for wrong in ("z", "x.dtype", "x.shape", "x.shape[n]", ""):
        with pytest.raises(kw.NameNotFound):
            kernel.tuned(path, problem={"size": wrong})
    fast = kernel.tuned(path, problem={"size": "x.shape[3]"})
    with pytest.raises(kw.ArgumentError, match="1 dimensions"):
        run(fast, 10)


def test_numbers_of_numpy_choose_as_well(kernel, store):
    fast = kernel.tuned(store)
    x, y = kw.ones(5000, dtype="float32"), kw.zeros(5000, dtype="float32")
    fast(x, y, 2.0, np.int32(5000))
    fast(x, y, np.float32(2), np.int64(5000))
    assert [choice.problem for choice in fast.choices] == [{"n": 5000}]
    assert (y.numpy() == 2).all()


def test_wrong_calls_are_told_as_by_the_kernel(kernel, store):
    fast = kernel.tuned(store)
    x = kw.zeros(8, dtype="float32")
    run(fast, 8)
    with pytest.raises(kw.ArgumentError, match="n is missing"):
        fast(x, x, 1.0)
    with pytest.raises(kw.ArgumentError):
        fast(x, "y", 1.0, 8)
    with pytest.raises(kw.ArgumentError):
        fast(x, x, 1.0, "8")
    with pytest.raises(kw.ArgumentRangeError):
        fast(x, x, 1.0, 2**70)
    with pytest.raises(TypeError):
        fast(x, x, 1.0, n=8)
    with pytest.raises(kw.ArgumentError):
        kernel.tuned(store, grid=1)
    with pytest.raises(kw.InvalidArgument):
        kernel.tuned(store, near="weather")
    with pytest.raises(kw.ArgumentError):
        kernel.tuned(store, block_size=3)
    with pytest.raises(kw.InvalidArgument, match="object code"):
        kw.Program(SCALE).compile("ptx").kernel("scale").tuned(store)


def test_no_grid_at_all_is_an_error_that_says_what_to_do(tmp_path, kernel):
    fast = kernel.tuned(tmp_path / "missing")
    with pytest.raises(kw.InvalidArgument, match=r"there is no such file.*pass grid="):
        fast(1, 2, 3, 4)
    fast = kernel.tuned(tmp_path / "missing", grid="-(-n // 32)", block=32)
    run(fast, 100)
    assert "no such file" in fast.why


def test_configurations_that_fail_are_passed_over(tmp_path, kernel):
    rows = [
        result_row(kernel, {"BLOCK": 4096, "V": 2}, median_ms=0.1),
        result_row(kernel, {"BLOCK": "nonsense(", "V": 2}, median_ms=0.2),
        result_row(kernel, {"BLOCK": 64, "V": 2}, median_ms=0.3, grid="n // 0"),
        result_row(kernel, {"BLOCK": 96, "V": 2}, median_ms=0.4),
    ]
    fast = kernel.tuned(write_rows(tmp_path / "store", *rows))
    run(fast, 4096)
    assert fast.choices[0].config["BLOCK"] == 96


def test_streams(kernel, store):
    fast = kernel.tuned(store)
    stream = kw.Stream()
    x, y = kw.ones(5000, dtype="float32"), kw.zeros(5000, dtype="float32")
    kw.synchronize()
    fast[stream](x, y, 2.0, 5000)
    stream.synchronize()
    assert (y.numpy() == 2).all()
    with stream:
        fast(x, y, 4.0, 5000)
    stream.synchronize()
    assert (y.numpy() == 4).all()


def test_a_store_that_grows_is_seen_after_reload(tmp_path, kernel):
    store = Store(tmp_path / "store")
    fast = kernel.tuned(store, grid="-(-n // (BLOCK * V))", block="BLOCK",
                        default={"BLOCK": 32, "V": 1})  # fmt: skip
    run(fast, 4096)
    store.append(result_row(kernel, {"BLOCK": 64, "V": 2}))
    fast.reload()
    run(fast, 4096)
    assert fast.choices[0].config["BLOCK"] == 64


def test_threads_share_one_object(kernel, store):
    fast = kernel.tuned(store)
    errors = []

    def work(first):
        try:
            for n in range(first, first + 40):
                run(fast, n)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(100 + 7 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_more_problems_than_are_kept(kernel, store):
    fast = kernel.tuned(store)
    x = kw.zeros(64, dtype="float32")
    target = fast.for_problem(n=64)
    fast._choose = lambda problem, device: Choice(problem, "", None, target, True, "")
    for n in range(5000):
        fast(x, x, 1.0, -n)
    run(fast, 64)


def test_two_devices_choose_each_for_itself(kernel, store):
    devices = kw.devices()
    if len(devices) < 2:
        devices = [devices[0], kw.Device("sim")]
    fast = kernel.tuned(store)
    for device in (*devices[:2], devices[0]):
        with device:
            run(fast, 4096)


def test_template_and_defines_of_the_kernel_stay(tmp_path):
    text = SCALE.replace("void scale", "void scale_by").replace("a * x", "OFFSET * a * x")
    text = "template <typename T>\n" + text
    kernel = kw.kernel(text, "scale_by<int>", defines={"OFFSET": 1, "BLOCK": 512})
    path = write_rows(tmp_path / "store", result_row(kernel, {"BLOCK": 64, "V": 2}))
    fast = kernel.tuned(path)
    run(fast, 4096)
    assert fast.choices[0].from_store
    other = kw.kernel(text, "scale_by<int>", defines={"OFFSET": 2, "BLOCK": 512})
    choice = other.tuned(path).choice(n=4096)
    assert not choice.from_store and choice.config == {"BLOCK": 32, "V": 1}


def test_clusters_of_a_row_are_launched(tmp_path, kernel):
    row = result_row(kernel, {"BLOCK": 64, "V": 2}, cluster="V")
    fast = kernel.tuned(write_rows(tmp_path / "store", row))
    assert fast.choice(n=4096).launch.args[0].cluster == (2, 1, 1)
    assert fast.choice(n=1).launch.args[0].cluster == (1, 1, 1)
    if kw.current_device().compute_capability >= (9, 0):
        run(fast, 4096)
        run(fast, 1)


def test_a_session_leaves_what_is_launched_then(tmp_path, kernel):
    x, path = np.arange(1000, dtype=np.float32), tmp_path / "store.jsonl"
    session = Session(
        kernel, Space(BLOCK=[32, 64], V=[1, 2]).require("n % V == 0"),
        (x, kw.Out(np.zeros(1000, np.float32)), 3.0, 1000), grid=GRID, block="BLOCK", store=path,
        default={"BLOCK": 32, "V": 2}, verify=lambda x, y, a, n: (None, 3 * x, None, None),
    )  # fmt: skip
    best = session.run()
    fast = kernel.tuned(path)
    for n in (1000, 1023, 5000):
        run(fast, n)
    assert fast.choice(n=1000).from_store and fast.choice(n=1000).config == best.config
    assert fast.choice(n=5000).config == {"BLOCK": 32, "V": 2}
    tuned_space = kernel.tuned(path, space=Space(BLOCK=[32, 64], V=[1, 2]).require("n % V == 0"))
    assert tuned_space.choice(n=1000).from_store
    assert not kernel.tuned(path, space=Space(BLOCK=[32, 64], V=[1, 2])).choice(n=1000).from_store


def test_a_store_that_cannot_be_read_any_more_stops_no_launch(tmp_path, kernel):
    path = write_rows(tmp_path / "store", result_row(kernel, {"BLOCK": 64, "V": 2}))
    fast = kernel.tuned(path, grid=GRID, block="BLOCK", default={"BLOCK": 32, "V": 1})
    run(fast, 4096)
    path.unlink()
    path.mkdir()
    run(fast, 4097)
    assert "is a folder" in fast.choice(n=4097).reason and fast.choice(n=4096).from_store


def test_rows_without_a_problem_hold_for_all(tmp_path, kernel):
    row = result_row(kernel, {"BLOCK": 64, "V": 2}, problem={}, grid=40)
    fast = kernel.tuned(write_rows(tmp_path / "store", row))
    run(fast, 5000)
    run(fast, 3)
    assert len(fast.choices) == 1 and fast.choices[0].from_store
    assert "every problem" in fast.why
    assert json.loads(json.dumps(row)) == row
    assert pickle.loads(pickle.dumps(Store(tmp_path / "store"))).results


def test_a_damaged_launch_of_one_result_stops_no_other(tmp_path, kernel):
    def rows(name, *rest):
        damaged = result_row(
            kernel, {"BLOCK": 64, "V": 2}, problem={"n": 100}, grid="__import__('os')"
        )
        return write_rows(tmp_path / name, damaged, *rest)

    good = result_row(kernel, {"BLOCK": 128, "V": 4}, problem={"n": 100})
    fast = kernel.tuned(rows("both.jsonl", good))
    run(fast, 100)
    assert fast.choice(n=100).config == {"BLOCK": 128, "V": 4}
    with pytest.raises(kw.InvalidArgument, match=r"no function __import__.*pass grid="):
        run(kernel.tuned(rows("one.jsonl")), 100)
