"""The rules for every operation: it can be captured, copies nothing, and gives the same bits."""

import numpy as np
import operations_arrays
import operations_layers
import operations_library
import operations_nn
import operations_numpy
import operations_optim
import operations_spatial
import pytest
from every_operation import CHECKED, HOST, KERNELS, bits, outputs, public_names

import kernwright as kw

TABLES = (
    *(*operations_arrays.TABLES, *operations_library.TABLES),
    *(*operations_nn.TABLES, *operations_numpy.TABLES, *operations_spatial.TABLES),
    *(*operations_layers.TABLES, *operations_optim.TABLES),
)
CASES = [case for table in TABLES for case in table]
EVERY = pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
ON_DEVICE = [case for case in CASES if case.kind != HOST]

# Public callables without a computation of their own, and the reason.
NO_OPERATIONS = {
    "run the kernels of users": (
        "Kernel Module Program ProgramOptions ObjectCode LaunchConfig In InOut Out Pointer strided "
        "checked kernel module warmup pack use_pack lint slices slice_blocks"
    ),
    "are devices, their streams and what waits": (
        "Device Event Graph GraphNode GraphPool Partition Stream current_device current_stream "
        "devices synchronize libcuda_path"
    ),
    "move memory, which tests of their own look at": (
        "CudaArray Surface TensorMap Texture Transfer TransferEngine pinned"
    ),
    "read and write files, which tests of their own look at": (
        "Gguf SafeTensors load_npy load_npz load_safetensors save_gguf save_npy save_safetensors "
        "savez savez_compressed"
    ),
    "measure, look on and judge": (
        "annotate profile time time_kernel line_profile judge Judge Task Inputs Verdict"
    ),
    "tell learning rates": ("optim.Schedule optim.constant optim.cosine optim.linear optim.wsd"),
    "take gradients, which test_gradients.py looks at": (
        "captured checkpoint custom_gradient grad gradcheck stop_gradient value_and_grad vjp"
    ),
    "hold the parameters and layers of networks": "nn.Module nn.Sequential",
    "tell about types and shapes": (
        "finfo iinfo isdtype can_cast promote_types result_type broadcast_shapes "
        "get_default_dtype set_default_dtype "
        "__array_namespace_info__ Array Array.__len__ Array.__array_namespace__ "
        "Array.__dlpack_device__ nn.quant.formats nn.quant.PackedWeight"
    ),
    "make nothing, and say what to do instead": (
        "Array.__new__ Array.__init__ Array.__array__ Array.__getattr__"
    ),
    "set and tell the state of generators": (
        "random.seed random.default_generator random.Generator.state random.Generator.restore"
    ),
}


def test_the_table_is_complete():
    left_out = {name for names in NO_OPERATIONS.values() for name in names.split()}
    known, public = {case.name for case in CASES}, set(public_names())
    assert not public - known - left_out, "public names that are in no table"
    assert not known - public, "names of cases that are not public"
    assert not left_out - public, "names left out that are not public"
    assert not left_out & known, "names left out that have a case"


def test_cases_have_names_of_their_own():
    assert len({case.id for case in CASES}) == len(CASES)


def computed(case, seed):
    """The bits of results and arguments after a call with new arrays."""
    arguments = case.arguments(seed)
    return bits(outputs([case.call(*arguments), arguments]))


@EVERY
def test_twice_the_same_bits(case):
    assert computed(case, 1) == computed(case, 1)


@EVERY
def test_what_is_copied_to_and_from_the_host(case):
    case.call(*case.arguments())  # constants of a transform go to the device once
    arguments = case.arguments()
    before = kw.memory.transfers()
    case.call(*arguments)
    after = kw.memory.transfers()
    moved = {name: after[name] - before[name] for name in before}
    assert any(moved.values()) == (case.kind in (HOST, CHECKED)), moved


@pytest.mark.parametrize("case", ON_DEVICE, ids=[case.id for case in ON_DEVICE])
def test_capture_and_replay(case):
    case.call(*case.arguments())  # constants
    arguments = case.arguments()
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        result = case.call(*arguments)
    assert (graph.node_count > 0) == (case.kind in (KERNELS, CHECKED))
    for seed in (21, 22):
        news = [spec.values(seed + i) for i, spec in enumerate(case.specs)]
        for array, values in zip(arguments, news, strict=True):
            array[...] = kw.asarray(values)
        kw.synchronize()
        graph.launch(stream)
        stream.synchronize()
        assert bits(outputs([result, arguments])) == computed(case, seed)


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.kind == HOST],
    ids=[case.id for case in CASES if case.kind == HOST],
)
def test_a_capture_refuses_by_name_and_goes_on(case):
    arguments = case.arguments()
    x = kw.ones(300)
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        doubled = x * 2
        with pytest.raises(kw.CaptureError) as refused:
            case.call(*arguments)
        result = doubled + 1
    assert str(refused.value).startswith("kw.")
    assert f"{case.name.rpartition('.')[2]}():" in str(refused.value)
    for value in (3.0, 5.0):
        x.fill(value)
        kw.synchronize()
        graph.launch(stream)
        stream.synchronize()
        assert (result.numpy() == 2 * value + 1).all()


def block(x, weights, cos, sin):
    """A transformer block, causal, of one batch."""
    length, width = x.shape
    heads = 4
    y = kw.nn.rms_norm(x, weights["norm1"])
    q, k, v = kw.nn.split_qkv(y @ weights["qkv"], heads, 2)
    q, k = kw.nn.rope(q, k, cos, sin)
    q, k, v = (kw.permute_dims(each, (1, 0, 2)) for each in (q, k, v))
    k, v = (kw.repeat(each, heads // 2, axis=0) for each in (k, v))
    seen = kw.tril(kw.ones((length, length), "bool"))
    scores = kw.nn.softmax(
        q @ kw.matrix_transpose(k), scale=(width // heads) ** -0.5, mask=seen[None]
    )
    mixed = kw.permute_dims(scores @ v, (1, 0, 2)).reshape(length, width)
    y, x = kw.nn.rms_norm(mixed @ weights["out"], weights["norm2"], residual=x)
    return x + kw.nn.swiglu(y @ weights["up"]) @ weights["down"]


def test_a_transformer_copies_nothing():
    """Forward, loss, a token: on the device from the ids to the sampled token."""
    generator = kw.random.Generator(0)
    shapes = {"norm1": 32, "norm2": 32, "qkv": (32, 64), "out": (32, 32), "up": (32, 96),
              "down": (48, 32)}  # fmt: skip
    ids = kw.asarray([3, 1, 4, 1, 5, 9, 2, 6])
    before = kw.memory.transfers()
    weights = {name: generator.normal(shape, std=0.2) for name, shape in shapes.items()}
    table = generator.normal((20, 32))
    cos, sin = kw.nn.rope_tables(len(ids), 8)
    x = kw.nn.embedding(ids, table)
    for _ in range(2):
        x = block(x, weights, cos, sin)
    logits = kw.nn.rms_norm(x) @ table.T
    loss, gradient = kw.nn.cross_entropy_grad(logits[:-1], ids[1:])
    token = kw.nn.sample(logits[-1:], top_k=5, seed=1)
    kw.synchronize()
    assert kw.memory.transfers() == before
    assert 0 < loss.item() < 99 and gradient.shape == (7, 20) and 0 <= token.item() < 20
    after = kw.memory.transfers()
    assert after["to_host"] == before["to_host"] + 2
    assert after["to_host_bytes"] == before["to_host_bytes"] + 4 + 8
    assert after["to_device"] == before["to_device"]


def test_positions_and_labels_outside():
    """Documented results, without an access out of bounds; an error where one is asked for."""
    x = kw.asarray(np.arange(12, dtype=np.float32).reshape(3, 4))
    far = kw.asarray(np.array([-(2**62), -5, 99, 2**62]))
    assert kw.take(x, far, axis=0).numpy()[:, 0].tolist() == [0, 0, 8, 8]
    with pytest.raises(kw.Error):
        kw.take(x, far, axis=0, mode="raise")
    kw.put(x, far, -1.0, axis=0)
    assert x.numpy().min() == 0
    with pytest.raises(kw.Error):
        kw.put(x, far, -1.0, axis=0, mode="raise")
    assert (kw.nn.embedding(far, x).numpy() == 0).all()
    with pytest.raises(kw.InvalidArgument):
        kw.nn.embedding(far, x, check=True)
    gradient = kw.nn.embedding_backward(kw.ones((4, 4)), far, 3)
    assert (gradient.numpy() == 0).all()
    labels = kw.asarray(np.array([1, 99, -1]))
    assert np.isnan(kw.nn.cross_entropy(x, labels, reduction="none").numpy()).tolist() == [
        False, True, True]  # fmt: skip
    with pytest.raises(kw.InvalidArgument, match="99"):
        kw.nn.cross_entropy(x, labels, check=True)
    cos, sin = kw.nn.rope_tables(4, 4)
    q = kw.ones((3, 1, 4))
    assert np.isnan(kw.nn.rope(q, None, cos, sin, positions=labels).numpy()).any()
    kw.synchronize()
