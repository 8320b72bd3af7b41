"""Facts of a device, beside nvidia-smi and torch, which ask the driver on their own."""

import subprocess

import pytest

import kernwright as kw

MIB = 1 << 20


@pytest.fixture
def gpu():
    with kw.Device("cuda") as device:
        yield device


def ask_nvidia_smi(device, *fields):
    """The fields of the device's row, as nvidia-smi writes them."""
    done = subprocess.run(
        ["nvidia-smi", f"--id={device.uuid}", f"--query-gpu={','.join(fields)}"]
        + ["--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [field.strip() for field in done.stdout.strip().split(",")]


def test_name_capability_and_memory_are_those_of_nvidia_smi(gpu):
    name, capability, uuid, bus, total = ask_nvidia_smi(
        gpu, "name", "compute_cap", "uuid", "pci.bus_id", "memory.total"
    )
    assert gpu.name == name
    assert gpu.compute_capability == tuple(int(part) for part in capability.split("."))
    assert gpu.uuid == uuid
    # nvidia-smi writes the PCI domain in eight digits, the driver in four.
    assert bus.lower().endswith(gpu.pci_bus_id.lower())
    assert gpu.memory_info().total == pytest.approx(int(total) * MIB, rel=0.01)


def test_used_memory_is_that_of_nvidia_smi(gpu):
    def free_by_both():
        gpu.synchronize()
        (free,) = ask_nvidia_smi(gpu, "memory.free")
        return gpu.memory_info().free, int(free) * MIB

    kw.memory.trim()
    before = free_by_both()
    held = kw.empty(4 << 30, "uint8")
    during = free_by_both()
    del held
    kw.memory.trim()
    after = free_by_both()
    total = gpu.memory_info().total
    for ours, theirs in (before, during, after):
        assert ours == pytest.approx(theirs, abs=0.01 * total)
    for column in range(2):  # whoever else uses the device may move it by 64 MiB
        assert before[column] - during[column] == pytest.approx(4 << 30, abs=64 * MIB)
        assert after[column] == pytest.approx(before[column], abs=64 * MIB)


def test_properties_are_those_of_torch(gpu):
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    theirs = torch.cuda.get_device_properties(0)
    ours = gpu.attributes
    assert torch.cuda.device_count() == sum(not d.is_simulated for d in kw.devices())
    assert gpu.name == theirs.name
    assert gpu.compute_capability == (theirs.major, theirs.minor)
    assert gpu.uuid == f"GPU-{theirs.uuid}"
    assert gpu.memory_info().total == theirs.total_memory
    assert {
        "multiprocessor_count": ours.multiprocessor_count,
        "warp_size": ours.warp_size,
        "L2": ours.l2_cache_size,
        "threads": ours.max_threads_per_multiprocessor,
        "shared": ours.max_shared_memory_per_block,
        "opt-in": ours.max_shared_memory_per_block_optin,
        "registers": ours.max_registers_per_multiprocessor,
    } == {
        "multiprocessor_count": theirs.multi_processor_count,
        "warp_size": theirs.warp_size,
        "L2": theirs.L2_cache_size,
        "threads": theirs.max_threads_per_multi_processor,
        "shared": theirs.shared_memory_per_block,
        "opt-in": theirs.shared_memory_per_block_optin,
        "registers": theirs.regs_per_multiprocessor,
    }
