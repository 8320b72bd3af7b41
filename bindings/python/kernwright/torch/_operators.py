"""How an operator of torch is made of a function of arrays, and how that is called on tensors.

On a GPU the function reads the tensors' memory where it is, works on torch's current stream, and
whatever it allocates, torch's allocator gives: results are plain tensors, memory that is freed goes
back to torch, and a CUDA graph of torch captures all of it. (Results through DLPack would belong to
a second pool, which knows nothing of torch's graphs and streams; functions with `out` would need
one more form of every kernel.)

Tensors in host memory are copied to the simulated device, and results back: right, and slow.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import numpy as np
import torch

import kernwright as kw
from kernwright import _core
from kernwright._support.warn import warn_caller
from kernwright.errors import InvalidArgument, PerformanceWarning

# torch's types that NumPy lacks, and what their bits are carried in.
_CARRIERS = {
    torch.bfloat16: torch.int16,
    torch.float8_e4m3fn: torch.uint8,
    torch.float8_e5m2: torch.uint8,
}


# Types of an operator's arguments and results, as schemas of torch name them.
_SCHEMA_TYPES: dict[Any, str] = {
    torch.Tensor: "Tensor",
    list[torch.Tensor]: "Tensor[]",
    torch.dtype: "ScalarType",
    int | torch.SymInt: "SymInt",
    int: "int",
    float: "float",
    bool: "bool",
    str: "str",
}
_SCHEMA_TYPES |= {kind | None: f"{name}?" for kind, name in _SCHEMA_TYPES.items()}


def schema_of(run: Callable[..., Any], changed: tuple[str, ...] = ()) -> str:
    """The schema of an operator that calls `run`, from its annotations. torch.library makes a
    schema, too, in which each int is a SymInt: torch.compile() would not specialize on an axis."""
    types = get_type_hints(run)
    result = types.pop("return")
    names = {name: _SCHEMA_TYPES[kind] for name, kind in types.items()}
    for alias, name in zip("abcdefgh", changed, strict=False):
        names[name] = names[name].replace("Tensor", f"Tensor({alias}!)", 1)
    results = ", ".join(_SCHEMA_TYPES[kind] for kind in get_args(result) or (result,))
    arguments = ", ".join(f"{kind} {name}" for name, kind in names.items())
    return f"({arguments}) -> " + (f"({results})" if get_args(result) else results)


def define(
    name: str,
    run: Callable[..., Any],
    fake: Callable[..., Any],
    changed: tuple[str, ...] = (),
) -> Callable[..., Any]:
    """The operator kernwright::name; its schema follows the annotations of `run`, which gets
    tensors of one device. `fake` makes results of the right shapes and types, in what no kernel
    runs for. The operator writes to the arguments of the names in `changed`."""
    schema = schema_of(run, changed)
    made = torch.library.custom_op(f"kernwright::{name}", run, mutates_args=changed, schema=schema)
    made.register_fake(fake)
    return getattr(torch.ops.kernwright, name).default


def differentiate(name: str, backward: Callable[..., Any], setup: Callable[..., None]) -> None:
    """Gives the operator its gradient, as torch.library.register_autograd() has it."""
    torch.library.register_autograd(f"kernwright::{name}", backward, setup_context=setup)


def call(function: Callable[..., Any], like: torch.Tensor, *arguments: Any) -> Any:
    """function(*arguments) of arrays with tensors in their place, which lie where `like` does."""
    device = like.device
    for each in arguments:
        if isinstance(each, torch.Tensor) and each.device != device:
            raise InvalidArgument(
                f"all tensors must be on the same device, got {device} and {each.device}"
            )
    if device.type == "cuda":
        number = device.index
        stream = torch._C._cuda_getCurrentRawStream(number)
        return _core._call_on_tensors(function, arguments, _maker(number), _gpu(number), stream)
    if device.type != "cpu":
        raise InvalidArgument(f"tensors of {device}: kernels run on cuda, and on cpu to be tested")
    return _on_simulated_device(function, arguments)


def call_changing(
    function: Callable[..., Any], like: torch.Tensor, changed: list[Any], *arguments: Any
) -> Any:
    """function(*changed, *arguments), which writes over the tensors in the lists of `changed`."""
    if like.device.type != "cpu":
        return call(function, like, *changed, *arguments)
    device = _simulated_device()
    arrays = [_to_array(each, device) for each in changed]
    with device:
        made = _to_tensors(function(*arrays, *(_to_array(each, device) for each in arguments)))
        for tensors, results in zip(changed, arrays, strict=True):
            for tensor, result in zip(tensors, results, strict=True):
                tensor.copy_(_to_tensors(result))
    return made


def call_in_place(
    function: Callable[..., None], like: torch.Tensor, changed: list[Any], *arguments: Any
) -> None:
    """call_changing() outside of an operator: torch's versions of the tensors count on."""
    call_changing(function, like, changed, *arguments)
    for tensors in changed:
        torch.autograd.graph.increment_version(tensors)


@functools.cache
def _gpu(number: int) -> kw.Device:
    return kw.Device(f"cuda:{number}")


@functools.cache
def _maker(number: int) -> Callable[[tuple[int, ...], str], torch.Tensor]:
    device, empty = torch.device("cuda", number), torch.empty

    def make(shape: tuple[int, ...], dtype: str) -> torch.Tensor:
        return empty(shape, dtype=getattr(torch, dtype), device=device)

    return make


@functools.cache
def _simulated_device() -> kw.Device:
    warn_caller(
        "kernwright.torch: tensors in host memory are copied to the simulated device and back, "
        "which is for tests; move them to a GPU to compute",
        PerformanceWarning,
    )
    device = kw.current_device()
    return device if device.is_simulated else kw.Device("sim")


def _on_simulated_device(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    device = _simulated_device()
    with device:
        return _to_tensors(function(*(_to_array(each, device) for each in arguments)))


def _to_array(value: Any, device: kw.Device) -> Any:
    if isinstance(value, list):
        return [_to_array(each, device) for each in value]
    if not isinstance(value, torch.Tensor):
        return value
    tensor = value.detach().contiguous()
    carrier = _CARRIERS.get(tensor.dtype)
    if carrier is None:
        return kw.asarray(tensor.numpy(), device=device)
    array = kw.asarray(tensor.view(carrier).numpy(), device=device)
    return array.view(str(tensor.dtype).removeprefix("torch."))


def _to_tensors(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_to_tensors(each) for each in value)
    if not isinstance(value, kw.Array):
        return value
    dtype = getattr(torch, str(value.dtype))
    carrier = _CARRIERS.get(dtype)
    if carrier is None:
        return torch.from_numpy(np.array(value.numpy()))
    bits = np.asarray(value.numpy()).view(str(carrier).removeprefix("torch."))
    return torch.from_numpy(np.array(bits)).view(dtype)


def empty(like: torch.Tensor, shape: Any = None, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Row-major, as all results of kernels are; what fake operators return."""
    return torch.empty(
        like.shape if shape is None else shape, dtype=dtype or like.dtype, device=like.device
    )
