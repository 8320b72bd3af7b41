"""Objects never initialised, manipulated pickles, and types without a pickle.

Each runs in a process of its own: the tests look for crashes.
"""

import copy
import pickle

import numpy as np
import pytest
from children import run_child

import kernwright as kw
from kernwright import _core

TOUCH = """
    import copy, pickle
    import kernwright as kw
    from kernwright import _core

    classes = [v for v in vars(_core).values() if isinstance(v, type)]
    touched = 0
    for cls in classes:
        for make in (lambda: cls.__new__(cls), lambda: object.__new__(cls), lambda: cls()):
            try:
                half = make()
            except Exception:
                continue
            for name in dir(cls):
                if name in ("__class__", "__new__", "__init_subclass__", "__subclasshook__"):
                    continue
                for arguments in ((), (half,), (1,), (half, half)):
                    try:
                        member = getattr(half, name)
                        if name != "__init__" and callable(member):
                            member(*arguments)
                    except Exception:
                        pass
                    touched += 1
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                try:
                    pickle.dumps(half, protocol)
                except Exception:
                    pass
            for clone in (copy.copy, copy.deepcopy, repr, str, hash, bool):
                try:
                    clone(half)
                except Exception:
                    pass
            try:
                pickle.loads(b"\\x80\\x02c" + cls.__module__.encode() + b"\\n"
                             + cls.__name__.encode() + b"\\n)\\x81}X\\x01\\0\\0\\0aK\\x01sb.")
            except Exception:
                pass
    print(len(classes), touched)
"""


def test_no_member_of_a_half_made_object_crashes():
    ended = run_child(TOUCH, timeout=120)
    assert ended.code == 0, ended.err
    classes, touched = map(int, ended.out.split()[-2:])
    assert classes > 40 and touched > 2000


@pytest.mark.parametrize("name", ["Stream", "Event", "Array", "Kernel", "Graph", "ObjectCode"])
def test_a_half_made_object_raises(name):
    cls = getattr(kw, name)
    half = cls.__new__(cls)
    known = [n for n, member in vars(cls).items() if isinstance(member, property)]
    for member in known or ["nodes"]:
        with pytest.raises(kw.ArgumentError, match="__init__"):
            getattr(half, member)
    with pytest.raises(kw.ArgumentError):
        half.__repr__()


def test_a_subclass_that_forgot_its_base_raises():
    class Forgetful(kw.Stream):
        def __init__(self):
            self.early = self.done

    with pytest.raises(kw.ArgumentError, match=r"super\(\).__init__"):
        Forgetful()


def test_half_made_objects_as_arguments_raise():
    kernel = kw.kernel("__global__ void f(float* o) { o[0] = 1; }")
    array, stream, event = (cls.__new__(cls) for cls in (kw.Array, kw.Stream, kw.Event))
    calls = [
        lambda: kernel[1, 1](array),
        lambda: kernel[1, 1](kw.strided(array)),
        lambda: kernel[1, 1, stream],
        lambda: kw.Stream().wait(event),
        lambda: kw.Graph().launch(stream),
        lambda: kw.Kernel.__new__(kw.Kernel)[1, 1],
        lambda: kw.Kernel.__new__(kw.Kernel).forall(3),
        lambda: kw.warmup([kw.Kernel.__new__(kw.Kernel)], wait=True),
        lambda: kw.Kernel.launch(kw.Kernel.__new__(kw.Kernel), kw.LaunchConfig(1, 1)),
        lambda: kernel.launch(kw.LaunchConfig.__new__(kw.LaunchConfig), kw.zeros(1)),
    ]
    for call in calls:
        with pytest.raises(kw.ArgumentError):
            call()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_what_belongs_to_its_process_has_no_pickle(protocol):
    kernel = kw.kernel("__global__ void f(float* o) { o[0] = 1; }")
    things = [kw.Stream(), kw.Event(), kw.Graph(), kernel[1, 1], kw.memory.alloc(16)]
    things += [kw.memory.PoolResource(), kw.LaunchConfig(1, 1), kw.Pointer(0), kw.TransferEngine()]
    for thing in things:
        with pytest.raises(kw.ArgumentError, match="cannot be pickled or copied"):
            pickle.dumps(thing, protocol)
        with pytest.raises(kw.ArgumentError, match="cannot be pickled or copied"):
            copy.copy(thing)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_what_travels_does_so_in_every_protocol(protocol):
    def again(thing):
        return pickle.loads(pickle.dumps(thing, protocol))

    program = kw.Program("__global__ void f(float* o) { o[0] = 3; }")
    code = again(program.compile("ptx"))
    out = kw.zeros(1)
    for kernel in (code.kernel("f"), again(program.kernel("f")), again(program).kernel("f")):
        out[...] = 0
        kernel[1, 1](out)
        assert out.numpy().tolist() == [3]
    assert again(kw.current_device()) == kw.current_device()
    values = np.arange(6, dtype="i4").reshape(2, 3)
    assert (again(kw.asarray(values)).numpy() == values).all()
    assert (copy.deepcopy(kw.asarray(values)).numpy() == values).all()


@pytest.mark.parametrize("state", [b"", b"x" * 100, b"\0" * 4096, 3, None, "text"])
def test_tampered_object_code_raises(state):
    with pytest.raises(kw.Error):
        _core._object_code(state)


def test_a_sub_interpreter_is_refused():
    ended = run_child("""
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        import kernwright
        one = interpreters.create()
        code = '''
        try:
            import kernwright
        except ImportError as error:
            assert "main interpreter" in str(error), error
        else:
            raise SystemError("imported")
        '''
        import textwrap
        result = getattr(interpreters, "exec", None) or interpreters.run_string
        failed = result(one, textwrap.dedent(code))
        assert failed is None, failed
        kernwright.zeros(3).numpy()
    """)
    assert ended.code == 0, ended.err


def test_a_sub_interpreter_is_refused_before_the_main_one_imports():
    ended = run_child("""
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        one = interpreters.create()
        code = "try:\\n import kernwright\\nexcept ImportError: pass\\nelse: raise SystemError"
        result = getattr(interpreters, "exec", None) or interpreters.run_string
        assert result(one, code) is None
        import kernwright
        kernwright.zeros(3).numpy()
    """)
    assert ended.code == 0, ended.err
