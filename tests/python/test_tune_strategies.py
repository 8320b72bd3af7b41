"""Searches through small spaces, and tables replayed."""

import gzip
import json
import math
import random
import threading

import pytest

import kernwright as kw
from kernwright.tune import Config, Space, Strategy, Table, strategies

FAR = {"x": 11, "y": 11, "mode": "row"}


def bowl():
    return Space(x=range(12), y=range(12), mode=["row", "col"]).require("x + y < 18")


def cost(config):
    if config["x"] == 11:
        return None
    slope = 1.0 if config["mode"] == "row" else 1.3
    return slope * (1 + (config["x"] - 7) ** 2 + abs(config["y"] - 3))


@pytest.mark.parametrize("name", strategies())
def test_a_search_asks_each_configuration_once_until_none_is_left(name):
    space = bowl()
    search = Strategy(space, name, seed=4)
    seen, pending = [], []
    chooser = random.Random(1)
    while asked := search.ask(chooser.randrange(1, 6)):
        assert all(config in space for config in asked)
        seen += asked
        pending += asked
        chooser.shuffle(pending)
        while len(pending) > 7:
            config = pending.pop()
            search.tell(dict(config), cost(config))
        assert search.pending == len(pending)
    for config in pending:
        search.tell(config, cost(config))
    assert len(seen) == len(set(seen)) == len(space) == search.told
    assert search.best == {"x": 7, "y": 3, "mode": "row"}
    assert search.best_cost == 1.0
    assert search.ask(3) == []


@pytest.mark.parametrize("name", strategies())
def test_seeds_decide(name):
    def run(seed):
        search, order = Strategy(bowl(), name, seed=seed), []
        for _ in range(12):
            for config in search.ask(5):
                order.append(config)
                search.tell(config, cost(config))
        return order

    assert run(3) == run(3)
    if name != "brute_force":
        assert run(3) != run(4)


def test_the_default_is_the_portfolio_and_warm_starts_come_first():
    space = bowl()
    first = [Config(x=1, y=1, mode="col"), {"x": 0, "y": 2, "mode": "row"}]
    search = Strategy(space, initial=first)
    assert search.name == strategies()[0] == "portfolio"
    assert search.ask(2) == first
    search.tell(space[30], 5)
    assert (search.best, search.best_cost) == (space[30], 5.0)
    assert space[30] not in search.ask(200)


def test_later_changes_of_the_space_do_not_reach_a_search():
    space = bowl()
    count = len(space)
    search = Strategy(space, "random")
    space.require("x < 2")
    assert len(search.ask(1000)) == count > len(space)


def test_infinite_costs_are_failures():
    search = Strategy(bowl(), "random")
    (config,) = search.ask()
    search.tell(config, math.inf)
    assert search.best is None and search.told == 1


def test_threads_may_share_a_search():
    search = Strategy(bowl(), "portfolio")
    seen = []

    def work():
        while asked := search.ask(3):
            for config in asked:
                seen.append(config)
                search.tell(config, cost(config))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == len(set(seen)) == len(search.space)


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda s: Strategy(s, "protfolio"), kw.NameNotFound, "did you mean portfolio"),
        (lambda s: Strategy(s, 3), kw.ArgumentError, "name is a str"),
        (lambda s: Strategy([1, 2]), kw.ArgumentError, "wants a Space"),
        (lambda s: Strategy(s, seed="x"), kw.ArgumentError, "seed"),
        (lambda s: Strategy(s, initial=[FAR]), kw.InvalidArgument, "11"),
        (lambda s: Strategy(s.require("x > 99")), kw.InvalidArgument, "no configuration is valid"),
        (lambda s: Strategy(s).ask(-1), kw.InvalidArgument, "-1"),
        (lambda s: Strategy(s).ask("x"), kw.ArgumentError, "str"),
        (lambda s: Strategy(s).tell(s[0], float("nan")), kw.InvalidArgument, "got nan"),
        (lambda s: Strategy(s).tell(s[0], "compile"), kw.ArgumentError, "str"),
        (lambda s: Strategy(s).tell(FAR, 1), kw.InvalidArgument, "11"),
        (lambda s: Strategy(s).tell({"x": 1}, 1), kw.NameNotFound, "'y'"),
    ],
)  # fmt: skip
def test_wrong_use_is_refused(use, error, message):
    with pytest.raises(error, match=message):
        use(bowl())


def t4_row(config, value, status="correct"):
    row = {"configuration": dict(config), "invalidity": status, "times": {"runtimes": [value]}}
    if status == "correct":
        row["measurements"] = [
            {"name": "energy", "value": 2 * value}, {"name": "time", "value": value, "unit": "ms"},
        ]  # fmt: skip
    return row


def t4_file(path, packed=False):
    rows = []
    for config in bowl():
        value = cost(config)
        rows.append(t4_row(config, value or 1e-3, "correct" if value else "compile"))
    data = json.dumps({"results": rows, "schema_version": "1.0.0"}).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_a_table_is_read_and_replayed(tmp_path, packed):
    table = Table.from_t4(t4_file(tmp_path / "table", packed))
    space = bowl()
    assert len(table) == len(table.space) == len(space)
    assert set(table.space) == set(space)
    assert table.best_cost == 1.0
    assert sum(value is None for value in table.costs.values()) == sum(c["x"] == 11 for c in space)
    for name in strategies():
        trace = table.replay(name, 60, seed=2, batch=4)
        assert len(trace) == 60
        assert trace == sorted(trace, reverse=True)
        assert trace == table.replay(name, 60, seed=2, batch=4)
    assert table.replay("random", 10**6)[-1] == 1.0
    assert len(table.replay("random", 10**6)) == len(space)
    assert Table.from_t4(tmp_path / "table", "energy").best_cost == 2.0


def test_failures_are_evaluations():
    with pytest.raises(kw.InvalidArgument, match="NaN"):
        Table({Config(x=1): math.nan, Config(x=2): 1.0})
    table = Table({Config(x=i): 5.0 if i == 9 else None for i in range(10)})
    assert table.replay("brute_force", 10) == [math.inf] * 9 + [5.0]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"results": [{}]}',
        b'{"results": []}',
        b"\x1f\x8b",
        b'{"results": [{"configuration": {"x": 1}}]}',
        b"\xff\xfe",
    ],
)
def test_files_that_are_no_tables_are_refused(tmp_path, data):
    path = tmp_path / "table.json"
    path.write_bytes(data)
    with pytest.raises(kw.InvalidArgument, match=r"table\.json") as caught:
        Table.from_t4(path)
    assert "Error" not in str(caught.value)  # of no exception's name
    with pytest.raises(kw.StoreError, match="missing cannot be read"):
        Table.from_t4(tmp_path / "missing")
    with pytest.raises(kw.ArgumentError, match="a path is a str"):
        Table.from_t4(None)


@pytest.mark.parametrize("time", [0.0, -1.0])
@pytest.mark.parametrize("has_measurement", [True, False])
def test_a_file_with_times_of_zero_or_below_is_refused(tmp_path, time, has_measurement):
    rows = [
        {"configuration": {"B": b}, "invalidity": "correct", "times": {"runtimes": [value]},
         "measurements": [{"name": "time", "value": value}] if has_measurement else []}
        for b, value in ((32, 0.5), (64, time))
    ]  # fmt: skip
    path = tmp_path / "t4.json"
    path.write_text(json.dumps({"results": rows}))
    with pytest.raises(kw.InvalidArgument, match=f"a time of {time}: times are numbers above 0"):
        Table.from_t4(path)
    rows[1]["measurements"].append({"name": "GFLOP/s", "value": time})
    rows[0]["measurements"].append({"name": "GFLOP/s", "value": 1.0})
    path.write_text(json.dumps({"results": rows}))
    assert Table.from_t4(path, "GFLOP/s").best_cost == time
