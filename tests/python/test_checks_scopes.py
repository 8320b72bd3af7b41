"""kw.checks blocks that nest, end in any order or run on several threads; arguments refused."""

import threading

import numpy as np
import pytest

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")

RACE = """__global__ void race(int* x) {
    x[0] = threadIdx.x;
}"""


@pytest.fixture
def launch():
    kernel = kw.kernel(RACE)
    return lambda: kernel[1, 64](kw.zeros(1, "int32"))


def test_an_open_block_cannot_be_entered_again(launch):
    block = kw.checks()
    with block as report:
        with pytest.raises(kw.InvalidArgument, match="make another one"):
            with block:
                pass
        launch()
    assert len(report) == 1
    with kw.checks() as again:
        launch()
    assert len(again) == 1
    schedule = kw.checks.schedule(1)
    with schedule, pytest.raises(kw.InvalidArgument, match="make another one"):
        schedule.__enter__()


def test_one_object_makes_a_report_each_time(launch):
    block = kw.checks()
    with block as first:
        launch()
    with block as second:
        launch()
        launch()
    assert [finding.count for finding in first] == [63]
    assert [finding.count for finding in second] == [126]


def test_a_block_that_was_not_entered_cannot_be_left():
    with pytest.raises(kw.InvalidArgument, match="not entered"):
        kw.checks().__exit__(None, None, None)


def test_blocks_of_generators_end_in_any_order(launch):
    def collect(*words):
        with kw.checks(*words) as report:
            yield report

    first, second = collect("race"), collect("init")
    outer, inner = next(first), next(second)
    first.close()
    launch()
    assert len(outer) == len(inner) == 0  # nobody looks for races any more
    second.close()
    with kw.checks() as report:
        launch()
    assert len(report) == 1
    launch()
    assert report[0].count == 63


def test_a_block_ends_where_waiting_fails(monkeypatch, launch):
    def fail():
        raise kw.Error("no")

    monkeypatch.setattr("kernwright._sim.watch.finish_simulated", fail)
    with pytest.raises(kw.Error, match="no"), kw.checks() as report:
        pass
    launch()
    assert not report


def test_threads_have_reports_of_their_own(launch):
    launch()
    counts = []

    def work():
        with kw.Device("sim"):
            for _ in range(20):
                with kw.checks("race") as report:
                    launch()
                counts.append([finding.count for finding in report])

    with kw.checks() as outer:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not outer
        launch()
    assert counts == [[63]] * 80
    assert [finding.count for finding in outer] == [63]


def test_words_are_arguments_of_their_own():
    with pytest.raises(kw.InvalidArgument, match=r"\['init'\].*argument of its own"):
        kw.checks(["init"])
    with pytest.raises(kw.InvalidArgument, match="rase"):
        kw.checks("all", "rase")


def test_streams_is_no_check_of_a_block():
    with pytest.raises(kw.InvalidArgument, match="KERNWRIGHT_CHECKS=streams"):
        kw.checks("streams")


@pytest.mark.parametrize("limit", [-1, "a", 1.5, None, 1 << 70])
def test_a_limit_is_a_whole_number(limit):
    with pytest.raises(kw.InvalidArgument, match="limit = "):
        kw.checks(limit=limit)


@pytest.mark.parametrize("seed", [-1, 1 << 64, "a", 1.5, b"1"])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(kw.InvalidArgument, match="seed = "):
        kw.checks.schedule(seed)


def test_numbers_of_numpy_are_numbers():
    with kw.checks(limit=np.int32(3)), kw.checks.schedule(np.uint64((1 << 64) - 1)):
        pass
