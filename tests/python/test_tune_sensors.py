"""Observers of sensors, with packages and files that a test makes."""

import sys
import types

import numpy as np
import pytest

import kernwright as kw
from kernwright.tune import observers
from kernwright.tune.observers import nvml as nvml_module
from kernwright.tune.observers import tegra
from kernwright.tune.observers.ncu import NCUObserver
from kernwright.tune.observers.nvml import (
    NVMLObserver,
    get_idle_power,
    get_nvml_gr_clocks,
    get_nvml_mem_clocks,
    get_nvml_pwr_limits,
)
from kernwright.tune.observers.pmt import PMTObserver
from kernwright.tune.observers.tegra import TegraObserver


@pytest.mark.parametrize(
    "observer",
    [lambda: NVMLObserver(["nvml_power"]), lambda: NCUObserver(["dram__bytes.sum"]),
     lambda: TegraObserver(["core_freq"])],
)  # fmt: skip
def test_the_simulated_device_has_no_sensor(observer, sim):
    text = "__global__ void nothing(float* x) {}"
    with pytest.raises(kw.InvalidArgument, match="has no sensor: run it on a GPU"):
        kw.tune.tune_kernel(
            "nothing", text, 32, [np.zeros(32, np.float32)], {"block_size_x": [32]},
            observers=[observer()],
        )  # fmt: skip


def gpu(**more):
    """What an observer knows of a device that is no simulated one."""
    device = types.SimpleNamespace(is_simulated=False)
    return types.SimpleNamespace(name="GPU", device=device, env={"uuid": "GPU-1"}, **more)


@pytest.mark.parametrize(
    ("observer", "said"),
    [
        (lambda: NVMLObserver(["temperature"]), "pynvml .*pip install nvidia-ml-py"),
        (lambda: NCUObserver(["dram__bytes.sum"]), "pip install nvmetrics"),
        (lambda: PMTObserver("rapl"), "pip install pmt"),
    ],
)
def test_a_missing_package_is_named(observer, said, monkeypatch):
    for name in ("pynvml", "nvmetrics", "pmt"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(kw.ArgumentError, match=said):
        observer().register_device(gpu())


class FakeNvml(types.ModuleType):
    """The package pynvml over a card with two memory clocks; readings rise with each call."""

    NVML_SUCCESS, NVML_CLOCK_GRAPHICS, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 0, 0, 2, 0

    class NVMLError(Exception):
        pass

    def __init__(self):
        super().__init__("pynvml")
        self.limit, self.clocks, self.opened, self.reads = 300_000, None, [], 0

    def __getattr__(self, name):
        if not name.startswith("nvml"):
            raise AttributeError(name)
        return lambda *arguments: None

    def nvmlDeviceGetHandleByUUID(self, uuid):
        self.opened.append(uuid)
        return "card"

    def nvmlDeviceGetHandleByIndex(self, index):
        self.opened.append(index)
        return "card"

    def nvmlDeviceGetPowerManagementLimit(self, card):
        return self.limit

    def nvmlDeviceSetPowerManagementLimit(self, card, limit):
        self.limit = limit

    def nvmlDeviceGetPowerManagementLimitConstraints(self, card):
        return [100_000, 310_000]

    def nvmlDeviceGetSupportedMemoryClocks(self, card):
        return [2000, 800]

    def nvmlDeviceGetSupportedGraphicsClocks(self, card, memory):
        return [1980, 1500, 1005, 300] if memory == 2000 else [300]

    def nvmlDeviceSetApplicationsClocks(self, card, memory, graphics):
        self.clocks = memory, graphics

    def nvmlDeviceResetApplicationsClocks(self, card):
        self.clocks = None

    def nvmlDeviceGetTemperature(self, card, sensor):
        self.reads += 1
        return 40 + self.reads

    def nvmlDeviceGetClockInfo(self, card, kind):
        return 1500 if kind == self.NVML_CLOCK_GRAPHICS else 2000

    def nvmlDeviceGetFieldValues(self, card, fields):
        value = types.SimpleNamespace(uiVal=250_000)
        return [types.SimpleNamespace(nvmlReturn=self.NVML_SUCCESS, value=value)]


@pytest.fixture
def pynvml(monkeypatch):
    made = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", made)
    return made


def test_nvml_readings_are_averages_of_launches(pynvml):
    observer = NVMLObserver(["temperature", "core_freq", "mem_freq"], save_all=True)
    observer.register_device(gpu())
    assert pynvml.opened == ["GPU-1"]
    for _ in range(2):
        for step in ("before_start", "after_start", "during", "after_finish"):
            getattr(observer, step)()
    assert observer.get_results() == {
        "temperatures": [41.5, 43.5], "temperature": 42.5, "core_freqs": [1500.0, 1500.0],
        "core_freq": 1500.0, "mem_freqs": [2000.0, 2000.0], "mem_freq": 2000.0,
    }  # fmt: skip


def test_nvml_energy_is_that_of_one_launch(pynvml):
    observer = NVMLObserver(["nvml_power", "nvml_energy"], device=1)
    observer.register_device(gpu())
    meter = observer.continuous_observer
    meter.results = {"time": 4.0}
    for step in ("before_start", "after_start", "during", "after_finish"):
        getattr(meter, step)()
    assert pynvml.opened == [1]
    assert meter.get_results() == {"nvml_power": 250.0, "nvml_energy": 1.0}


def test_nvml_settings_are_put_back(pynvml):
    observer = NVMLObserver(["core_freq"])
    observer.register_device(gpu())
    card = observer.nvml
    card.configure({"nvml_pwr_limit": 200, "nvml_gr_clock": 1005})
    assert pynvml.limit == 200_000 and pynvml.clocks == (2000, 1005)
    card.configure({"nvml_pwr_limit": 150, "nvml_mem_clock": 800})
    assert pynvml.limit == 150_000 and pynvml.clocks == (800, 300)
    card.restore_defaults()
    assert pynvml.limit == 300_000 and pynvml.clocks is None
    with pytest.raises(kw.InvalidArgument, match="400000 mW is outside of 100000 to 310000"):
        card.configure({"nvml_pwr_limit": 400})
    with pytest.raises(kw.InvalidArgument, match="graphics clock 7 MHz is none of"):
        card.configure({"nvml_gr_clock": 7})


def test_a_jetson_tells_its_clock_in_files(tmp_path, monkeypatch):
    monkeypatch.setattr(tegra, "_SYSTEM", tmp_path)
    observer = TegraObserver(["core_freq", "gpu_temp"])
    with pytest.raises(kw.InvalidArgument, match="finds no GPU of a Jetson below"):
        observer.register_device(gpu())
    for folder, file, name in (
        ("devfreq/1.cpu", "device/of_node/name", "cpu"), ("devfreq/2.gpu", "device/of_node/name",
        "ga10b\0"), ("thermal/zone0", "type", "CPU-therm\n"), ("thermal/zone1", "type",
        "GPU-therm\n"),
    ):  # fmt: skip
        path = tmp_path / folder / file
        path.parent.mkdir(parents=True)
        path.write_text(name)
    clock, zone = tmp_path / "devfreq/2.gpu/cur_freq", tmp_path / "thermal/zone1/temp"
    observer.register_device(gpu())
    for hertz, degrees in ((1000, 40500), (3000, 41500)):
        clock.write_text(f"{hertz}\n")
        zone.write_text(f"{degrees}\n")
        for step in ("before_start", "after_start", "after_finish"):
            getattr(observer, step)()
    assert observer.get_results() == {"core_freq": 2000.0, "gpu_temp": 41.0}


def test_a_tuning_with_clocks_as_a_parameter(pynvml, monkeypatch, recwarn):
    """On the simulated device, as if it had the sensors of the package."""
    monkeypatch.setattr(nvml_module, "refuse_simulated", lambda *of_any: None)
    text = """__global__ void twice(float* x, int n) {
      int i = blockIdx.x * block_size_x + threadIdx.x;
      if (i < n) x[i] *= 2;
    }"""
    x = np.arange(100, dtype=np.float32)
    clocks = []

    class Clocks(observers.BenchmarkObserver):
        def after_start(self):
            clocks.append(pynvml.clocks)

        def get_results(self):
            return {}

    nvml = NVMLObserver(["nvml_energy", "temperature"], continuous_duration=0.01)
    results, env = kw.tune.tune_kernel(
        "twice", text, 100, [x, np.int32(100)],
        {"block_size_x": [64], "nvml_gr_clock": [1980, 300]},
        answer=[2 * x, None], observers=[nvml, Clocks()], iterations=2, quiet=True,
        metrics={"GFLOPS/W": lambda row: 1e-7 / row["nvml_energy"]}, objective="GFLOPS/W",
    )  # fmt: skip
    assert [row["nvml_gr_clock"] for row in results] == [1980, 300]
    assert clocks == [(2000, 1980)] * 2 + [(2000, 300)] * 2 and pynvml.clocks is None
    for row in results:
        assert row["temperature"] > 40 and row["GFLOPS/W"] == 1e-7 / row["nvml_energy"] > 0
    assert env["best_config"]["GFLOPS/W"] == max(row["GFLOPS/W"] for row in results)
    assert pynvml.opened == [kw.current_device().uuid]
    assert not [told for told in recwarn.list if "does not use" in str(told.message)]


def test_parameters_of_nvml(pynvml, capsys):
    assert get_nvml_pwr_limits(0, n=3, quiet=True) == {"nvml_pwr_limit": [100, 205, 310]}
    assert get_nvml_gr_clocks(0, n=2, quiet=True) == {"nvml_gr_clock": [1980, 300]}
    assert get_nvml_mem_clocks(0) == {"nvml_mem_clock": [2000, 800]}
    assert capsys.readouterr().out == "Using nvml_mem_clock: [2000, 800]\n"
    assert get_idle_power(0, n=2, sleep_s=0) == 250.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: NVMLObserver(["volts"]),
        lambda: TegraObserver(["volts"]),
        lambda: PMTObserver("volts"),
        lambda: NVMLObserver(["core_freq"], nvidia_smi_fallback="nvidia-smi"),
    ],
)  # fmt: skip
def test_wrong_options_of_observers_are_refused(make):
    with pytest.raises(kw.InvalidArgument):
        make()


def test_counters_and_meters_of_packages(monkeypatch):
    counters = types.ModuleType("nvmetrics")
    counters.measureMetricsStart = lambda metrics, device: None
    counters.measureMetricsStop = lambda: [5.0, 6.0]
    monkeypatch.setitem(sys.modules, "nvmetrics", counters)
    observer = NCUObserver(["a", "b"])
    observer.register_device(gpu())
    observer.before_start()
    observer.after_finish()
    assert observer.get_results() == {"a": 5.0, "b": 6.0}

    meters = types.ModuleType("pmt")
    ticks = iter(range(100))
    meters.create = lambda name, device: types.SimpleNamespace(read=lambda: next(ticks))
    meters.joules = lambda begin, end: 2.0 * (end - begin)
    meters.watts = lambda begin, end: 10.0
    monkeypatch.setitem(sys.modules, "pmt", meters)
    observer = PMTObserver([("nvidia", 0), "rapl"], use_continuous_observer=True)
    observer.register_device(gpu())
    observer.after_start()
    observer.after_finish()
    assert observer.get_results() == {
        "nvidia_energy": 4.0, "nvidia_power": 10.0, "rapl_energy": 4.0, "rapl_power": 10.0,
    }  # fmt: skip
    meter = observer.continuous_observer
    meter.results = {"time": 500.0}
    meter.before_start()
    meter.after_start()
    meter.during()
    meter.after_finish()
    assert meter.get_results()["rapl_energy"] == 5.0
