"""Peaks of devices as NVIDIA's documents have them: the one table of such numbers."""

from __future__ import annotations

from typing import NamedTuple


class DataSheet(NamedTuple):
    """`flops`: operations a second of dense bfloat16 products with sums in float32. `bandwidth`:
    bytes a second of the device's memory. `source`: the document that has both."""

    flops: float
    bandwidth: float
    source: str


_AMPERE = "NVIDIA A100 Tensor Core GPU data sheet (1758950 r4)"
_HOPPER = "NVIDIA H100 Tensor Core GPU Architecture, a white paper"
_HOPPER_2 = "NVIDIA H200 Tensor Core GPU data sheet, with half of its rate for sparse products"
_ADA_48 = "NVIDIA L40S data sheet"
_ADA_24 = "NVIDIA L4 Tensor Core GPU data sheet, with half of its rate for sparse products"
_BLACKWELL = "NVIDIA Blackwell Architecture Technical Brief, HGX B200"

# By the whole name that the driver gives a device: parts of names say too little, an H100 NVL and
# an H100 PCIe are slower than an H100 of a server.
_SHEETS = {
    "NVIDIA A100-SXM4-40GB": DataSheet(312e12, 1.555e12, _AMPERE),
    "NVIDIA A100-SXM4-80GB": DataSheet(312e12, 2.039e12, _AMPERE),
    "NVIDIA A100-PCIE-40GB": DataSheet(312e12, 1.555e12, _AMPERE),
    "NVIDIA A100 80GB PCIe": DataSheet(312e12, 1.935e12, _AMPERE),
    "NVIDIA H100 80GB HBM3": DataSheet(989.4e12, 3.35e12, _HOPPER),
    "NVIDIA H100 PCIe": DataSheet(756e12, 2.0e12, _HOPPER),
    "NVIDIA H200": DataSheet(989.4e12, 4.8e12, _HOPPER_2),
    "NVIDIA B200": DataSheet(2250e12, 8.0e12, _BLACKWELL),
    "NVIDIA L40S": DataSheet(362.05e12, 0.864e12, _ADA_48),
    "NVIDIA L4": DataSheet(121e12, 0.3e12, _ADA_24),
}


def data_sheet(device_name: str) -> DataSheet | None:
    """That of a device with this name; None where it is not in the table."""
    return _SHEETS.get(device_name)
