"""kernel(), module() and Program: from a source text to kernels for launches."""

from __future__ import annotations

import os
import sys
from collections import namedtuple
from typing import TYPE_CHECKING, Any

from kernwright import _core
from kernwright._jit import recent as _recent
from kernwright._jit.options import ProgramOptions, make_options
from kernwright._jit.source import Located, locate
from kernwright.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kernwright._jit.background import CompileFuture
    from kernwright._jit.symbols import StructArray

Parameter = namedtuple("Parameter", "name type kind dtype lanes size offset const opaque")
Parameter.__module__ = __name__
Parameter.__doc__ = """One parameter of a kernel; size and offset are bytes of the argument block.

`kind` is "scalar", "pointer", "vector", "aggregate" or, in object code that tells no types,
"untyped"; `dtype` the element type of the value or of what a pointer points to, None where there is
none; `const` tells of the latter. The dtype of a struct has its accessible members, with those of
members that are structs, their offsets and its size, so that NumPy arrays of it are what the kernel
takes. `opaque` names what the compiler does not tell of a struct, and only sizes are compared of:
members by path ("pos.inner"), and bytes of no known member ("bytes 4:8 of pos": padding,
bit-fields, private members, unions).
"""

KernelAttributes = namedtuple(
    "KernelAttributes", "registers shared_bytes local_bytes constant_bytes max_threads_per_block"
)
KernelAttributes.__module__ = __name__
KernelAttributes.__doc__ = """What a compiled kernel uses: registers and local bytes a thread,
static shared bytes a block, constant bytes."""


def kernel(
    source: str | os.PathLike[str] | bytes | _core.ObjectCode,
    name: str | None = None,
    *,
    options: ProgramOptions | None = None,
    **option_fields: Any,
) -> _core.Kernel:
    """A kernel of `source`, compiled for a device when it is first needed there.

    A str is CUDA C++ text, a path object names a file of it (a regular one of at most 64 MiB).
    Object code is taken too: an ObjectCode, PTX as a str or bytes, bytes of a cubin, a file of
    either or of ObjectCode.save() (of at most 256 MiB). `name` may be left out when the text has
    one __global__ function, and may be a template instance: "scale<float, 4>". Options are those of
    ProgramOptions, as an object or as single fields. The same request from the same line gets the
    same object again, unless its text has variables of its own or options name headers.

    >>> twice = kw.kernel("__global__ void twice(float* x) { x[threadIdx.x] *= 2; }")
    >>> x = kw.asarray([1.0, 2.0])
    >>> twice[1, 2](x)
    >>> x.numpy()
    array([2., 4.], dtype=float32)
    """
    key = None
    if type(source) is not str and (code := _object_code(source, options, option_fields)):
        return _core._Program.of_code(*code).kernel(_name(name))
    if options is None:
        if not option_fields and (plain := _core._plain_kernel(source, name)) is not None:
            return plain
        key = _recent.request_key(source, name, option_fields, sys._getframe(1))
        if key is not None and (known := _recent.find(key)) is not None:
            return known
    if type(source) is str and (code := _object_code(source, options, option_fields)):
        return _core._Program.of_code(*code).kernel(_name(name))
    located = locate(source)
    program = _core._Program(*located, _options(options, option_fields))
    made = program.kernel(_name(name))
    if key is not None:
        _recent.keep(key, made)
    return made


def module(
    source: str | os.PathLike[str] | bytes | _core.ObjectCode,
    *,
    options: ProgramOptions | None = None,
    **option_fields: Any,
) -> Module:
    """A source, or object code, with several kernels and variables; arguments as for kernel().

    >>> text = "__global__ void a(int* x) { *x = 1; } __global__ void b(int* x) { *x += 1; }"
    >>> both, x = kw.module(text), kw.zeros(1, "int32")
    >>> both["a"][1, 1](x)
    >>> both["b"][1, 1](x)
    >>> x.item()
    2
    """
    if code := _object_code(source, options, option_fields):
        return Module(_core._Program.of_code(*code))
    located = locate(source)
    return Module(_core._Program(*located, _options(options, option_fields)))


def warmup(
    kernels: Iterable[_core.Kernel | Module | str] | str,
    wait: bool = False,
    *,
    device: Any = None,
    dtypes: Sequence[Any] | None = None,
    shapes: Sequence[tuple[int, ...]] | None = None,
) -> list[CompileFuture]:
    """Compiles kernels and modules in the background, as many at once as there are processors.

    A name of an operation of the library ("softmax", "rms_norm", "add", "sum") stands for what
    calls of it with arrays of these `dtypes` (float32, float16 and bfloat16) and `shapes` (256 rows
    of 1024, 4096 and 8192) launch on the device: each call is planned as ever, with arrays of its
    own, and its kernels are compiled and loaded without being launched.

    Returns their futures, in order; that of a name has it as its result. With wait=True it returns
    when all are compiled and raises the first error; what is still to be done is cancelled then.

    >>> kw.warmup(["softmax", "rms_norm"], dtypes=["bfloat16"], shapes=[(4096, 8192)])
    """
    from kernwright._jit import background as _background
    from kernwright._jit.library import Prepared, prepared

    items: list[Any] = []
    for item in [kernels] if isinstance(kernels, str) else kernels:
        if isinstance(item, str):
            items += prepared([item], dtypes, shapes, device, "warmup()")
        elif isinstance(item, (_core.Kernel, Module)):
            items.append(item)
        else:
            kind = type(item).__name__
            raise ArgumentError(
                f"warmup() takes a list of kernels, modules and names, got a {kind} in it"
            )
    current = _core.current_device() if device is None and items else device

    def submit(call: Prepared) -> CompileFuture:
        call = call._replace(device=current)

        def compile(stop: _core._Stop) -> str:
            call.compile()
            return call.name

        return _background.submit(compile)

    futures = [
        submit(item) if isinstance(item, Prepared) else item.compile_async(device) for item in items
    ]
    return _background.finish(futures) if wait else futures


class Module:
    """Kernels and variables of one source: ``m["name<float>"]``, ``m.symbol("coefficients")``.

    >>> m = kw.module('''
    ... __device__ int steps;
    ... __global__ void store(float* x) { *x = steps; }''')
    >>> m.symbol("steps")[...] = 3
    >>> x = kw.zeros(1)
    >>> m["store"][1, 1](x)
    >>> float(x[0])
    3.0
    """

    __slots__ = ("_kernels", "_program")

    def __init__(self, program: _core._Program) -> None:
        self._program = program
        self._kernels: dict[str, _core.Kernel] = {}

    @property
    def names(self) -> list[str]:
        """The kernels, and the templates of the text.

        Where macros, headers or an #if have a say, the text is compiled for the current device.
        """
        return self._program.names()

    def kernel(self, name: str) -> _core.Kernel:
        """The named kernel, also of a template instance."""
        if name not in self._kernels:
            self._kernels[_name(name)] = self._program.kernel(name)
        return self._kernels[name]

    __getitem__ = kernel

    # Without this, a missing __iter__ would make Python try m[0], m[1], ...
    def __iter__(self) -> Any:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def compile(self, device: Any = None, timeout: float | None = None) -> Module:
        """Compiles and loads, now, all kernels but the templates; at most `timeout` seconds."""
        self._program.load(device, timeout, None)
        return self

    def compile_async(self, device: Any = None) -> CompileFuture:
        """The same in the background; the future's result is this module."""
        from kernwright._jit import background as _background

        chosen = _core.current_device() if device is None else device

        def load(stop: _core._Stop) -> Module:
            self._program.load(chosen, None, stop)
            return self

        return _background.submit(load)

    def symbol(
        self,
        name: str,
        dtype: Any = None,
        shape: int | tuple[int, ...] | None = None,
        *,
        device: Any = None,
    ) -> _core.Array | StructArray:
        """A __device__, __constant__ or __managed__ variable as an array over its memory.

        An instance of a variable template ("table<3>") is found where a kernel uses it. Instances
        of kernel templates that are compiled later belong to a module of their own, with variables
        of their own.

        Element type and shape are the variable's: an enum has its integer, a pointer uint64, a
        vector such as float4 one more dimension. A struct is a StructArray with NumPy's structured
        dtype, and so is a variable of unknown type, whose bytes wait for a `dtype`.
        """
        from kernwright._jit.symbols import variable

        if isinstance(shape, int):
            shape = (shape,)
        return variable(self._program, _name(name), dtype, shape, device)

    def __repr__(self) -> str:
        names = _known_names(self._program)
        return f"<Module of {self._program.source_name}: {', '.join(names) or 'no kernels'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if (code := self._program.code) is not None:
            return _rebuild_loaded_module, (code, self._program.source_name)
        return _rebuild_module, (_state(self._program),)


class Program:
    """A source and its options, compiled explicitly: ``Program(text).compile("cubin")``.

    >>> program = kw.Program("template <typename T> __global__ void one(T* x) { *x = 1; }")
    >>> code = program.compile("ptx", names=["one<int>"])
    >>> x = kw.zeros(1, "int32")
    >>> code.kernel("one<int>")[1, 1](x)
    >>> int(x[0])
    1
    """

    __slots__ = {"_program": "", "options": "How it is compiled."}

    def __init__(
        self, source: str | os.PathLike[str], options: ProgramOptions | None = None
    ) -> None:
        from kernwright._jit.source import object_code

        if code := object_code(source):
            raise ArgumentError(
                f"{code[1]} is object code: there is nothing to compile; kw.module() and "
                "kw.kernel() load it"
            )
        self.options = make_options(options, {})
        self._program = _core._Program(*locate(source), self.options)

    @property
    def names(self) -> list[str]:
        """The kernels, as Module.names tells them."""
        return self._program.names()

    def compile(
        self,
        kind: str = "cubin",
        names: list[str] | None = None,
        *,
        timeout: float | None = None,
    ) -> _core.ObjectCode:
        """Object code of that kind ("cubin" or "ptx") for the options' arch, or the device's.

        `names` are the kernels wanted, template instances among them; by default all that are no
        templates.
        """
        if isinstance(names, str):
            raise ArgumentError("names= is a list of str, got one str")
        for name in names or ():
            if not isinstance(name, str):
                raise ArgumentError(f"names= is a list of str, got {name!r} in it")
        return self._program.compile(kind, list(names or ()), timeout)

    def kernel(self, name: str | None = None) -> _core.Kernel:
        """A kernel of this program, compiled when first needed."""
        return self._program.kernel(_name(name))

    def __repr__(self) -> str:
        names = _known_names(self._program)
        return f"<Program {self._program.source_name}: {', '.join(names) or 'no kernels'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_program, (_state(self._program),)


def _name(name: str | None) -> str:
    if name is None:
        return ""
    if not isinstance(name, str):
        raise ArgumentError(f"a name is a str, got {type(name).__name__}")
    return name


def rehearse() -> None:
    """Makes a program and a kernel of a text that nobody has, without compiling it.

    Code that runs for the first time in a process takes several times as long: so this is done
    when the device is opened, which takes long anyway.
    """
    text = (
        "__global__ void rehearsal(float a, const float* x, float* y, int n) { y[n] = a * x[n]; }"
    )
    _core._Program(text, "<rehearsal>", 1, "", None).kernel("")


def _options(options: ProgramOptions | None, fields: dict[str, Any]) -> ProgramOptions | None:
    """None for the defaults of most kernels: nothing is made and read for them."""
    return make_options(options, fields) if fields or options is not None else None


_State = tuple[Located, ProgramOptions | None]


def _state(program: _core._Program) -> _State:
    located = Located(program.text, program.source_name, program.first_line, program.directory)
    return located, program.options


def _of_state(state: _State) -> _core._Program:
    located, options = state
    return _core._Program(*located, options)


def _known_names(program: _core._Program) -> list[str]:
    """All facts known without a compile."""
    return program.declared if program.code is None else program.names()


def _object_code(
    source: Any, options: ProgramOptions | None, fields: dict[str, Any]
) -> tuple[_core.ObjectCode, str] | None:
    """Object code and its name where `source` is some, None where it is a text."""
    if isinstance(source, str) and ".version" not in source:
        return None
    from kernwright._jit.source import object_code

    code = object_code(source)
    if code is not None and (options is not None or fields):
        raise ArgumentError(f"{code[1]} is compiled already: options cannot change it")
    return code


def _rebuild_loaded_module(code: _core.ObjectCode, name: str) -> Module:
    return Module(_core._Program.of_code(code, name))


def _rebuild_module(state: _State) -> Module:
    return Module(_of_state(state))


def _rebuild_program(state: _State) -> Program:
    program = Program.__new__(Program)
    program.options = make_options(state[1], {})
    program._program = _of_state(state)
    return program


def _rebuild_kernel(state: _State, name: str) -> _core.Kernel:
    return _of_state(state).kernel(name)


def _rebuild_loaded_kernel(code: _core.ObjectCode, name: str) -> _core.Kernel:
    return code.kernel(name)


def reduce_kernel(kernel: _core.Kernel) -> tuple[Any, ...]:
    """Kernel.__reduce__: source and options travel, code is made anew or comes from the cache."""
    program = kernel._program
    if program is None:
        return _rebuild_loaded_kernel, (kernel._code, kernel.name)
    if program.code is not None:
        return _rebuild_loaded_kernel, (program.code, kernel.name)
    return _rebuild_kernel, (_state(program), kernel.name)
