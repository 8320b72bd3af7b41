"""kernel.online(): served exactly once, tuned within a bounded share, rolled back, frozen."""

import threading

import numpy as np
import pytest
from tuning import GRID, SCALE, run

import kernwright as kw
from kernwright.tune import Online, Space, Store
from kernwright.tune import _online_search as online_search
from kernwright.tune._meter import CountMeter

ADD = """
#ifndef BLOCK
#define BLOCK 32
#endif
#ifndef MODE
#define MODE 0
#endif
__global__ void add(const float* x, float* y, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
#if MODE == 1
    if (i < n) y[i] += x[i] + 1;                       // wrong
#elif MODE == 2
    if (i < n) y[i + (1 << 28)] += x[i];               // out of bounds
#elif MODE == 3
    this does not compile
#elif MODE == 4
    if (i < n) for (int k = 0; k < 8; ++k) y[i] += x[i] / 8;
#else
    if (i < n) y[i] += x[i];
#endif
}
"""


class FakeMeter:
    """Costs as a test says, of the configuration that ran; known after `delay` looks."""

    unit = "ms"

    def __init__(self, cost, copies=0.0, delay=0):
        self.cost, self.copies, self.delay = cost, copies, delay
        self.is_synchronous = delay == 0
        self.ran = []

    def run(self, work):
        before = len(self.ran)
        work()
        cost = self.cost(self.ran[before], before) if len(self.ran) > before else self.copies
        looks = iter(range(self.delay))
        return lambda: cost if next(looks, None) is None else None

    def host(self):
        return 0.0


@pytest.fixture
def fake(monkeypatch):
    """Makes kernel.online() measure with a FakeMeter."""
    launch = online_search.OnlineSearch.launch

    def noted(search, config, problem):
        target = launch(search, config, problem)
        if not isinstance(search.meter, FakeMeter):
            return target

        def call(*arguments):
            search.meter.ran.append(config)
            target(*arguments)

        return call

    monkeypatch.setattr(online_search.OnlineSearch, "launch", noted)

    def make(kernel, space, cost, copies=0.0, delay=0, **options):
        meter = FakeMeter(cost, copies, delay)
        return kernel.online(space, grid=GRID, block="BLOCK", meter=lambda device: meter, **options)

    return make


def space():
    return Space(BLOCK=[32, 64, 128], V=[1, 2, 4])


class Caller:
    """Calls add(x, y, n) and checks that every call counted once."""

    def __init__(self, n=200):
        self.n, self.calls = n, 0
        self.x = kw.ones(n, dtype="float32")
        self.y = kw.zeros(n, dtype="float32")

    def __call__(self, serve, calls=1):
        for _ in range(calls):
            serve(self.x, self.y, self.n)
        self.calls += calls
        assert (self.y.numpy() == self.calls).all()


def modes(*numbers, blocks=(32,)):
    return Space(BLOCK=list(blocks), MODE=[0, *numbers])


def add_online(space, **options):
    return kw.kernel(ADD).online(space, grid="-(-n // BLOCK)", block="BLOCK", **options)


def test_the_simulated_device_finds_the_cheapest_within_the_budget(sim):
    kernel = kw.kernel(SCALE)
    serve = kernel.online(space(), overhead=0.5, grid=GRID, block="BLOCK")
    assert isinstance(serve, Online) and not serve.frozen and serve.config is None
    calls = 0
    while not serve.frozen:
        run(serve, 1000)
        calls += 1
        assert calls < 2000
    assert len(serve.trials) == len(space()) - 1
    assert {trial.status for trial in serve.trials} == {"correct"}
    assert serve.overhead <= 0.5
    costs = {}
    for config in space():
        chosen = kw.kernel(SCALE, defines=dict(config))
        grid = -(-1000 // (config["BLOCK"] * config["V"]))
        with kw.line_profile() as counted:
            run(chosen[grid, config["BLOCK"]], 1000)
        total = counted.total
        costs[config] = total.instructions + total.global_sectors
    assert costs[serve.config] <= min(costs.values()) / online_search.GAIN
    run(serve, 1000)
    assert "trials; complete" in serve.why and "frozen" in repr(serve)


def test_every_call_is_served_exactly_once(sim):
    serve = add_online(modes(4, blocks=(32, 64, 96)), overhead=0.9)
    caller = Caller()
    while not serve.frozen:
        caller(serve)
        assert caller.calls < 2000
    caller(serve, 10)
    assert serve.config["MODE"] == 0


@pytest.mark.parametrize(
    ("mode", "status", "error"),
    [(1, "correctness", "differs at"), (2, "runtime", ""), (3, "compile", "")],
)
def test_candidates_that_fail_are_data(sim, mode, status, error):
    serve = add_online(modes(mode), overhead=0.9)
    caller = Caller()
    while not serve.frozen:
        caller(serve)
        assert caller.calls < 500
    (trial,) = serve.trials
    assert (trial.config["MODE"], trial.status) == (mode, status)
    assert error in trial.error and (trial.error or status == "correct")
    assert serve.config == {"BLOCK": 32, "MODE": 0}


def test_blocks_beyond_the_limit_are_data(sim):
    serve = add_online(modes(blocks=(32, 4096)), overhead=0.9)
    caller = Caller()
    while not serve.frozen:
        caller(serve)
    assert serve.trials[0].status == "runtime" and "4096 threads" in serve.trials[0].error


@pytest.mark.parametrize("overhead", [0.02, 0.2])
@pytest.mark.parametrize("delay", [0, 3])
def test_what_is_spent_stays_within_its_share(fake, overhead, delay):
    prices = {32: 1.0, 64: 0.7, 128: 30.0}

    def cost(config, number):
        return prices[config["BLOCK"]] / config["V"] ** 0.5

    serve = fake(kw.kernel(SCALE), space(), cost, copies=0.3, delay=delay, overhead=overhead)
    x, y = kw.ones(64, dtype="float32"), kw.zeros(64, dtype="float32")
    worst = 3 * 30 + 2
    for _ in range(20000 if overhead > 0.1 else 40000):
        serve(x, y, 2.0, 64)
        if serve.frozen:
            break
        assert serve.spent <= overhead * serve.served + worst
    assert serve.spent <= overhead * serve.served + worst
    assert serve.config == {"BLOCK": 64, "V": 4}
    # Most calls launch without a look from Python, and none of them tries anything.
    assert serve.served > 0 and (y.numpy() == 2).all()


def test_one_that_becomes_slow_is_rolled_back(fake):
    def cost(config, number):
        if config["BLOCK"] == 64:
            return 0.5 if seen.setdefault("fast", 0) < 1 and not seen.update(fast=1) else 2.0
        return 1.0

    seen = {}
    serve = fake(kw.kernel(SCALE), Space(BLOCK=[32, 64], V=[1]), cost, overhead=0.9)
    for _ in range(200):
        run(serve, 64)
    # The first run of the candidate is its verification, so its pair is slow: make it fast there.
    assert serve.trials[0].status == "correct" and serve.config["BLOCK"] == 32

    def later(config, number):
        if config["BLOCK"] != 64:
            return 1.0
        seen["runs"] = seen.get("runs", 0) + 1
        return 0.5 if seen["runs"] <= 4 else 1.2  # two checks, a pair, a last check

    seen.clear()
    serve = fake(kw.kernel(SCALE), Space(BLOCK=[32, 64], V=[1]), later, overhead=0.9, guard=1.1)
    for _ in range(200):
        run(serve, 64)
    assert serve.trials[0].status == "rolled back" and serve.trials[0].ratio == 1.2
    assert serve.config["BLOCK"] == 32 and serve.frozen
    assert "at 1 of the default's time" in serve.why

    seen.clear()
    serve = fake(kw.kernel(SCALE), Space(BLOCK=[32, 64], V=[1]), later, overhead=0.9, guard=1.3)
    for _ in range(200):
        run(serve, 64)
    assert serve.trials[0].status == "correct" and serve.config["BLOCK"] == 64


def test_patience_ends_a_search(fake):
    serve = fake(kw.kernel(SCALE), space(), lambda config, number: 1.0, overhead=0.9, patience=3)
    for _ in range(300):
        run(serve, 64)
    assert len(serve.trials) == 3 and "no gain in 3 trials" in serve.why


def test_nothing_is_tried_in_a_capture(sim):
    serve = add_online(modes(4, blocks=(32, 64)), overhead=1e9)
    caller = Caller()
    caller(serve, 2)
    trials, spent = [(t.config, t.status) for t in serve.trials], serve.spent
    graph, stream = kw.Graph(), kw.Stream()
    with graph.capture(stream):
        for _ in range(40):
            serve[stream](caller.x, caller.y, caller.n)
    assert graph.node_count == 40
    assert [(t.config, t.status) for t in serve.trials] == trials and serve.spent == spent
    graph.launch(stream)
    stream.synchronize()
    caller.calls += 40
    caller(serve)


def test_what_is_found_goes_into_the_store_and_comes_back(sim, tmp_path):
    store = tmp_path / "store.jsonl"
    kernel = kw.kernel(SCALE)
    options = {"grid": GRID, "block": "BLOCK", "store": store, "overhead": 0.9}
    serve = kernel.online(space(), **options)
    while not serve.frozen:
        run(serve, 1000)
    rows = Store(store).results
    assert rows[-1]["reason"] == "complete" and rows[-1]["config"] == serve.config
    again = kernel.online(space(), **options)
    run(again, 1001)
    assert again.frozen and again.config == serve.config and not again.trials
    fast = kernel.tuned(store)
    run(fast, 1023)
    assert fast.choices[0].from_store and fast.choices[0].config == serve.config
    other = kernel.online(Space(BLOCK=[32, 64], V=[1, 2]), **options)
    run(other, 1000)
    assert not other.frozen


def test_a_store_that_cannot_be_written_stops_nothing(sim, tmp_path, caplog):
    serve = add_online(modes(4), overhead=0.9, store=tmp_path / "none" / "store")
    caller = Caller()
    while not serve.frozen:
        caller(serve)
    assert "is not kept" in caplog.text


def test_each_bucket_has_its_search_and_restrictions_hold_for_each_problem(sim):
    kernel = kw.kernel(SCALE)
    limited = space().require("n % V == 0").require(lambda BLOCK, n: n >= BLOCK)
    serve = kernel.online(limited, grid=GRID, block="BLOCK", overhead=0.9)
    for _ in range(60):
        for n in (1000, 1001, 96, 97, 1003):
            run(serve, n)
    assert serve.config_for(n=1000)["V"] in (1, 2, 4)
    assert len(serve.why.splitlines()) == 2
    for other in ({"n": 5}, {}, {"m": 1000}, {"n": 1000, "m": 1}):
        with pytest.raises(kw.InvalidArgument):
            serve.config_for(other)


def test_arguments_without_shadows_are_served_and_end_the_search(sim):
    serve = add_online(modes(4, blocks=(32, 64)), overhead=0.9)
    y = np.zeros(100, np.float32)
    for calls in range(1, 400):
        serve(kw.In(np.ones(100, np.float32)), kw.InOut(y), 100)
        assert (y == calls).all()
    assert "have no shadows: the argument y" in serve.why
    serve = add_online(modes(4, blocks=(32, 64)), overhead=0.9, shadow_bytes=100)
    caller = Caller()
    caller(serve, 400)
    assert "above shadow_bytes=100" in serve.why


def test_in_place_calls_are_tried_in_place(sim):
    serve = add_online(modes(4, blocks=(32, 64)), overhead=0.9)
    for _ in range(30):
        x = kw.ones(100, dtype="float32")
        serve(x, x, 100)
        assert (x.numpy() == 2).all()
    part = kw.ones(164, dtype="float32")
    assert {trial.status for trial in serve.trials} <= {"correct", "correctness", "running"}
    serve = add_online(modes(blocks=(32, 64)), overhead=0.9)
    for _ in range(400):
        serve(part[:100], part[50:150], 40)
    assert "overlap in part" in serve.why


def test_wrong_calls_are_the_callers(sim):
    serve = add_online(modes(4), overhead=0.9)
    caller = Caller()
    for _ in range(30):
        with pytest.raises(kw.ArgumentError):
            serve(caller.x, "y", caller.n)
        with pytest.raises(kw.ArgumentError):
            serve(caller.x, caller.y)
        with pytest.raises(kw.ArgumentError):
            serve(caller.x, caller.y, caller.n, 3)
        caller(serve)
    assert serve.trials[0].status == "correct"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"overhead": 0}, kw.InvalidArgument),
        ({"overhead": -1}, kw.InvalidArgument),
        ({"overhead": float("nan")}, kw.InvalidArgument),
        ({"overhead": "2%"}, kw.ArgumentError),
        ({"guard": 1}, kw.InvalidArgument),
        ({"guard": None}, kw.ArgumentError),
        ({"patience": 0}, kw.InvalidArgument),
        ({"patience": 1.5}, kw.ArgumentError),
        ({"shadow_bytes": -1}, kw.InvalidArgument),
        ({"grid": "n +"}, kw.InvalidArgument),
        ({"block": [1, 2, 3, 4]}, kw.InvalidArgument),
        ({"block": 1.5}, kw.ArgumentError),
        ({"unknown": 1}, kw.ArgumentError),
        ({"strategy": "lucky"}, kw.InvalidArgument),
        ({"seed": "one"}, kw.ArgumentError),
    ],
)
def test_bad_options_are_refused_at_once(options, error):
    with pytest.raises(error):
        kw.kernel(ADD).online(modes(4), **{"grid": 1, "block": 32, **options})


def test_bad_spaces_and_kernels():
    with pytest.raises(kw.ArgumentError, match="Space"):
        kw.kernel(ADD).online({"BLOCK": [32]}, grid=1, block=32)
    with pytest.raises(kw.InvalidArgument, match="object code"):
        kw.Program(SCALE).compile("ptx").kernel("scale").online(modes(), grid=1, block=32)
    serve = add_online(modes(4).require("m > BLOCK"), overhead=0.9)
    caller = Caller()
    with pytest.raises(kw.NameNotFound, match="'m' is no parameter"):
        caller(serve)


def test_a_profile_of_the_user_is_left_alone(sim):
    serve = add_online(modes(4), overhead=0.9)
    caller = Caller()
    with kw.line_profile() as profile:
        caller(serve, 20)
    assert sum(profile.launches.values()) == 20 and not serve.trials
    while not serve.frozen:
        caller(serve)


def test_stop_freezes(sim):
    serve = add_online(modes(4, blocks=(32, 64, 96, 128)), overhead=0.001)
    caller = Caller()
    caller(serve, 5)
    serve.stop()
    assert serve.frozen and "stopped" in serve.why
    caller(serve, 5)


def test_threads_serve_while_one_explores(sim):
    serve = add_online(modes(4, blocks=(32, 64, 96, 128)), overhead=0.9)
    errors = []

    def work(first):
        try:
            with kw.Device("sim"):
                for n in range(first, first + 25):
                    Caller(n)(serve, 8)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(130 + 25 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_a_gpu_or_the_simulated_device_serves_while_it_tunes(device):
    serve = add_online(modes(4, blocks=(32, 64, 128)), overhead=0.5)
    caller = Caller(n=5000)
    for _ in range(400):
        caller(serve, 20)
        if serve.frozen:
            break
    # Rounds of a GPU take their time; what was tried by now was right.
    assert all(trial.status in ("correct", "running", "rolled back") for trial in serve.trials)


def test_costs_are_those_of_sessions(sim):
    """Also where memory is moved by no request of a warp, as fragments are."""
    kernel = kw.kernel("""#include <mma.h>
    __global__ void tile(float* y) {
        nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> sum;
        nvcuda::wmma::fill_fragment(sum, 1.0f);
        nvcuda::wmma::store_matrix_sync(y, sum, 16, nvcuda::wmma::mem_row_major);
    }""")
    y = kw.zeros(256, dtype="float32")
    launch = kernel[1, 32]
    with kw.line_profile() as profile:
        launch(y)
    assert profile.total.uncounted > 0
    effort = {"min_samples": 1, "max_samples": 1, "max_seconds": 0.1, "noise": 0.1}
    counts = kw._core._Timer().measure(lambda: launch(y), policy="warm", **effort)["counts"]
    assert CountMeter().run(lambda: launch(y))() == sum(counts.values())
