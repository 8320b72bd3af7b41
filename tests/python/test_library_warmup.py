"""The library's operations by name: compiled ahead, packed, and never launched for it."""

import json
import os

import numpy as np
import pytest
from children import run_child

import kernwright as kw
from kernwright import _core
from kernwright._jit.library import OPERATIONS, Prepared


def test_every_operation_can_be_compiled_by_name(device):
    for name in OPERATIONS:
        Prepared(name, "float32", (4, 64), device).compile()


def test_nothing_is_launched():
    x, y = kw.ones(64), kw.ones(64)
    _core._compile_only(lambda: x.__iadd__(y))
    np.testing.assert_array_equal(x.numpy(), 1)
    x += y
    np.testing.assert_array_equal(x.numpy(), 2)
    with pytest.raises(ZeroDivisionError):
        _core._compile_only(lambda: 1 // 0)
    x += y
    np.testing.assert_array_equal(x.numpy(), 3)


WARM = """
import kernwright as kw
futures = kw.warmup({names}, wait=True, dtypes=["float32"], shapes=[(8, 600)])
assert [f.result() for f in futures] == {names}, futures
before = kw.cache.info()["process"]["compiles"]
x, w = kw.ones((8, 600)), kw.ones(600)
kw.nn.softmax(x), kw.nn.rms_norm(x, w), x + x, kw.sum(x, axis=0)
print(before, kw.cache.info()["process"]["compiles"])
"""


def test_a_warm_call_compiles_nothing():
    names = ["softmax", "rms_norm", "add", "sum_columns"]
    ended = run_child(WARM.format(names=names), KERNWRIGHT_CACHE="memory")
    assert ended.code == 0, ended.err
    before, after = map(int, ended.out.split()[-2:])
    assert before == after >= 4


WARM_ATTENTION = """
import kernwright as kw
options = {{"wait": True, "dtypes": [{dtype!r}]}}
kw.warmup(["attention", "attention_backward"], shapes=[(2, 3, 70, 64)], **options)
kw.warmup("decode_attention", shapes=[(2, 3, 90, 64)], **options)
kw.warmup("linear", shapes=[(70, 64)], **options)
q, x = kw.empty((2, 3, 70, 64), {dtype!r}), kw.empty((70, 64), {dtype!r})
cache, lengths = kw.empty((2, 3, 90, 64), {dtype!r}), kw.empty(2, "int32")
before = kw.cache.info()["process"]["compiles"]
for causal in (False, True):
    out, lse = kw.nn.attention(q, q, q, is_causal=causal, return_lse=True)
    kw.nn.attention_backward(q, q, q, q, out, lse, is_causal=causal)
kw.nn.decode_attention(q[:, :, :1], cache, cache, lengths)
kw.nn.linear(x, kw.empty((64, 64), {dtype!r}))
print(before, kw.cache.info()["process"]["compiles"])
"""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_warm_attention_and_layers_compile_nothing(dtype):
    ended = run_child(WARM_ATTENTION.format(dtype=dtype), KERNWRIGHT_CACHE="memory")
    assert ended.code == 0, ended.err
    before, after = map(int, ended.out.split()[-2:])
    assert before == after >= 4


def test_names_go_with_kernels():
    kernel = kw.kernel("__global__ void of_warmup(int n) {}")
    futures = kw.warmup([kernel, "add"], wait=True, dtypes=["float32"], shapes=[(16,)])
    assert [f.result() for f in futures] == [kernel, "add"]
    assert len(kw.warmup("add", wait=True, dtypes=["float32"])) == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kernels": "sofmax"}, "did you mean 'softmax'"),
        ({"kernels": ["add"], "dtypes": "float32"}, "a list of element types"),
        ({"kernels": ["add"], "shapes": [(0, 4)]}, "no shape of whole numbers"),
        ({"kernels": ["add"], "shapes": 3}, "a list of shapes"),
        ({"kernels": [3]}, "got a int"),
    ],
)
def test_wrong_names_and_shapes(given, message):
    with pytest.raises(kw.ArgumentError, match=message):
        kw.warmup(**given)


def test_calls_of_several_kernels_ask_for_them_together(tmp_path):
    record = tmp_path / "record.jsonl"
    code = "import kernwright as kw; kw.sum(kw.ones((64, 4096))); "
    code += "kw.nn.cross_entropy(kw.ones((4, 9)), kw.ones(4, dtype='int64'))"
    ended = run_child(code, KERNWRIGHT_RECORD=str(record))
    assert ended.code == 0, ended.err
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    names = {line["name"]: [name.split("<")[0] for name in line["names"]] for line in lines}
    assert names["reduce.cu"] == ["reduce_rows"]
    assert names["cross_entropy.cu"] == ["cross_entropy", "target_scale", "total"]
    assert all(not line["declared"] for line in lines if line["options"]["headers"])


# Children find the package where this process does, and the modules beside this file.
BESIDE = os.pathsep.join([os.path.dirname(__file__), *filter(None, [os.getenv("PYTHONPATH")])])

TOGETHER = """
import numpy as np
import kernwright as kw
from compile_children import workers
rng = np.random.default_rng(5)
q, k, v, dy = (kw.asarray(rng.normal(size=(1, 1, 24, 40)).astype("f4")) for _ in range(4))
out, lse = kw.nn.attention(q, k, v, return_lse=True)
before = len(workers())
stream, graph = kw.Stream(), kw.Graph()
with stream:
    {call}
print(before, len(workers()), *(float(abs(g.numpy()).sum()) for g in found))
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="compiles run one after the other")
def test_kernels_of_a_call_compile_at_the_same_time_also_in_a_capture():
    gradients = "found = kw.nn.attention_backward(dy, q, k, v, out, lse)"
    captured = f"""
    with graph.capture(stream):
        {gradients}
    graph.launch(stream)
    stream.synchronize()"""
    paths = {"KERNWRIGHT_CACHE": "off", "PYTHONPATH": BESIDE}
    results = []
    for call in (gradients, captured):
        ended = run_child(TOGETHER.format(call=call.strip()), timeout=120, **paths)
        assert ended.code == 0, ended.err
        before, after, *sums = ended.out.split()
        # The same process compiles again and again, unless another one is needed meanwhile.
        assert (int(before), int(after) >= 2) == (1, True)
        results.append(sums)
    assert results[0] == results[1] and all(float(each) > 0 for each in results[0])


INTERRUPTED = """
import os, signal, threading, time
import kernwright as kw
from compile_children import are_working, at_rest, workers
signal.signal(signal.SIGINT, signal.default_int_handler)
arrays = [kw.zeros((1, 1, 8, 64)) for _ in range(5)] + [kw.zeros((1, 1, 8))]
kw.kernel("__global__ void a() {}").compile()

def interrupt():
    while len(workers()) < 2 or not are_working():
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)

waiting = threading.Thread(target=interrupt)
waiting.start()
try:
    kw.nn.attention_backward(*arrays)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
waiting.join()
print(at_rest())
print(kw.nn.attention_backward(*arrays)[0].numpy().sum())
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="compiles run one after the other")
def test_ctrl_c_ends_all_compiles_of_a_call():
    paths = {"KERNWRIGHT_CACHE": "off", "PYTHONPATH": BESIDE}
    ended = run_child(INTERRUPTED, timeout=120, **paths)
    assert ended.code == 0, ended.err
    assert ended.out.splitlines() == ["interrupted", "True", "0.0"]


MANY = '''
import kernwright as kw
text = """
namespace n {{ constexpr float halves[2] = {{0.5f, 1.5f}}; }}  // NVRTC may tell its process
template <class T, int i> __global__ void fill(T* x) {{ x[threadIdx.x] = n::halves[i & int(*x)]; }}
"""
module = kw.module(text)
names = [f"fill<{{kind}}, {{n}}>" for kind in ("float", "int") for n in range(4)]
kw.pack({path!r}, [module.kernel(name) for name in names{order}], archs=["sm_90", "sm_80"])
'''


def test_a_pack_of_many_kernels_has_the_same_bytes_each_time(tmp_path):
    contents = set()
    for number, order in enumerate(("", "[::-1]", "")):
        path = tmp_path / f"{number}.kwpack"
        ended = run_child(MANY.format(path=str(path), order=order), KERNWRIGHT_CACHE="off")
        assert ended.code == 0, ended.err
        contents.add(path.read_bytes())
    assert len(contents) == 1 and len(_core._pack_read(str(path))) == 16


PACKED = """
import kernwright as kw
kw.use_pack({pack!r})
x = kw.ones((64, 4096))
print(float(kw.nn.softmax(x).numpy().sum()), float(kw.sum(x).numpy()))
print(kw.cache.info()["process"]["compiles"])
"""


def test_a_pack_holds_operations(tmp_path, device):
    arch = "sim" if device.is_simulated else "sm_{}{}".format(*device.compute_capability)
    path = tmp_path / "library.kwpack"
    options = {"dtypes": ["float32"], "shapes": [(64, 4096)]}
    rows = kw.pack(path, library=["softmax", "sum"], archs=[arch], **options)
    kernels = [name.split("<")[0] for row in rows for name in row["kernels"]]
    assert sorted(kernels) == ["reduce_rows", "softmax_rows"]
    nowhere = {"KERNWRIGHT_NVRTC": str(tmp_path / "none"), "KERNWRIGHT_CACHE": "off"}
    code = PACKED.format(pack=str(path)).replace("kw.ones((64, 4096))", "kw.empty((64, 4096))")
    code = code.replace("print(float", "x._fill(0); print(float", 1)
    ended = run_child(code, **nowhere)
    assert ended.code == 0, ended.err
    assert ended.out.splitlines() == ["64.0 0.0", "0"]
    with pytest.raises(kw.ArgumentError, match="got one str"):
        kw.pack(path, library="softmax", archs=[arch])
    with pytest.raises(kw.ArgumentError, match="names none"):
        kw.pack(path, library=["nothing"], archs=[arch])
