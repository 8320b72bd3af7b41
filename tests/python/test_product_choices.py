"""Tables of products: every plan is right, tables are read by shape and bucket, tuning keeps."""

import json
import textwrap
import threading

import numpy as np
import pytest
from children import run_child

import kernwright as kw
from kernwright import _core
from kernwright.cli import main
from kernwright.tune._product_operands import NARROW
from kernwright.tune._product_operands import operands as narrow_operands
from kernwright.tune._products import product_shapes, ratios

RANDOM = np.random.default_rng(5)
TYPES = "float32.float32.float32.nn"
PLAN = ["fma", 64, 64, 8, 4, 8, 4, 2]


def operands(m, n, k, dtype="float32", turned=False):
    a = RANDOM.standard_normal((m, k)).astype("float32")
    b = RANDOM.standard_normal((k, n)).astype("float32")
    left = kw.astype(kw.asarray(a), dtype)
    right = kw.asarray(np.ascontiguousarray(b.T)).T if turned else kw.asarray(b)
    return left, kw.astype(right.T, dtype).T if turned else kw.astype(right, dtype)


def check(result, a, b, tolerance):
    expected = a.astype("float64").numpy() @ b.astype("float64").numpy()
    out = result.astype("float64").numpy()
    assert np.linalg.norm(out - expected) <= tolerance * np.linalg.norm(expected)


@pytest.fixture(autouse=True)
def own_table(tmp_path, monkeypatch):
    """Each test begins with no table, and has a file of its own."""
    monkeypatch.setenv("KERNWRIGHT_KERNEL_CHOICES", str(tmp_path / "folder" / "choices.json"))
    _core._use_launch_table(None)
    yield tmp_path / "folder" / "choices.json"
    monkeypatch.undo()
    _core._use_launch_table(None)


def use(rows, device, types=TYPES):
    name = device if isinstance(device, str) else device.name
    table = {"format": 1, "devices": {}, "products": {name: {types: rows}}}
    _core._use_launch_table(json.dumps(table))


def numbers(plan):
    """Without the zeros at the end."""
    row = list(plan)
    while row and row[-1] == 0:
        row.pop()
    return row


@pytest.mark.parametrize(
    ("m", "n", "k", "dtype", "turned"),
    [
        (20, 136, 264, "bfloat16", True),
        (3, 264, 128, "float16", False),
        (140, 136, 520, "bfloat16", False),
        (4, 132, 300, "float32", True),
        (70, 68, 300, "float32", False),
        (33, 65, 300, "float64", True),
    ],
)
def test_every_candidate_gives_right_results(m, n, k, dtype, turned):
    a, b = operands(m, n, k, dtype, turned)
    tolerance = {"bfloat16": 8e-3, "float16": 1e-3, "float32": 1e-6, "float64": 1e-14}[dtype]
    plans = _core._product(a, b)[3]
    kernels = {plan[0] for plan in plans}
    assert kernels == (
        {"fma"} if dtype == "float64" or (m > 64 and dtype == "float32")
        else {"skinny", "fma"} if dtype == "float32" else {"mma"} if m > 64 else {"skinny", "mma"}
    ) or "gemm" in kernels  # fmt: skip
    kept = {tuple(plan[: 2 if plan[0] == "skinny" else 4]): plan for plan in plans}
    for plan in kept.values():  # of those that differ in splits alone, one
        check(_core._with_product(plan, lambda: kw.matmul(a, b)), a, b, tolerance)
        assert _core._product_plan(a, b) is None  # outside of it nothing is forced


def test_layers_of_float64_go_on_behind_a_planned_product():
    x, w = operands(33, 65, 300, "float64", turned=True)
    bias, residual = kw.arange(65, dtype="float64"), kw.ones((33, 65), "float64")
    plan = _core._product(x, w)[3][0]
    made = _core._with_product(
        plan, lambda: kw.nn.linear(x, w.T, bias, activation="relu", residual=residual)
    )
    wanted = np.maximum(x.numpy() @ w.numpy() + bias.numpy(), 0) + 1
    np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-12, atol=1e-12)
    made = _core._with_product(plan, lambda: kw.nn.linear(x, w.T, residual=residual))
    np.testing.assert_allclose(made.numpy(), x.numpy() @ w.numpy() + 1, rtol=1e-12, atol=1e-12)


def test_keys():
    a, b = kw.empty((3, 40, 64), "bfloat16"), kw.empty((64, 9000), "bfloat16")
    types, shape, bucket, _ = _core._product(a, b)
    assert types == "bfloat16.bfloat16.bfloat16.nn"
    assert (shape, bucket) == ("120x9000x64", "~128x16384x64")
    types, shape, bucket, _ = _core._product(a.mT[:, :40], kw.empty((3, 40, 8), "bfloat16"))
    assert (types[-2:], shape, bucket) == ("tn", "3*40x8x40", "~4*64x8x64")
    x, w = kw.empty(64, "float16"), kw.empty((40, 64), "int8")
    types, shape, _, _ = _core._product(*_core._layer_operands(x, w))
    assert (types, shape) == ("float16.int8.float16.nt", "1x40x64")
    with pytest.raises(kw.InvalidArgument, match="two matrices"):
        _core._product(x, x)


def test_tables_are_read_by_shape_then_by_bucket(device):
    a, b = operands(70, 68, 100)
    arch = "sm_{}{}".format(*device.compute_capability)
    other = [*PLAN[:-1], 1]
    for name in (device.name, arch):
        use({"~128x128x128": other}, name)
        assert numbers(_core._product_plan(a, b)) == other
        use({"~128x128x128": other, "70x68x100": PLAN}, name)
        assert numbers(_core._product_plan(a, b)) == PLAN
        check(kw.matmul(a, b), a, b, 1e-6)
        use({"~128x128x128": other, "70x68x100": []}, name)
        assert _core._product_plan(a, b) is None and _core._has_product(a, b)
    use({"70x68x100": PLAN}, "another device")
    assert _core._product_plan(a, b) is None
    use({"70x68x100": PLAN}, device, "float32.float32.float32.nt")
    assert _core._product_plan(a, b) is None


def test_a_bucket_counts_where_its_tiles_make_no_more_waves():
    """3072 rows and columns are three waves of these tiles, and as many of smaller ones."""
    if kw.current_device().attributes["multiprocessor_count"] != 132:
        pytest.skip("other numbers of multiprocessors make other waves")
    plan = ["gemm", 128, 256, 4, 2, 0, 2, 1]
    types = "bfloat16.bfloat16.bfloat16.nt"
    use({"~4096x4096x4096": plan, "3000x3000x3000": plan}, kw.current_device(), types)

    def taken(n):
        x = kw.empty((n, n), "bfloat16")
        return _core._product_plan(x, x.T)

    assert numbers(taken(4000)) == plan and numbers(taken(3000)) == plan
    assert taken(3072) is None


@pytest.mark.parametrize(
    "row",
    [
        ["fma", 100, 64, 8, 4, 8, 4, 1],
        ["fma", 64, 64, 8, 4, 8, 4, 0],
        ["fma", 64, 64, 8, 4, 8, 4, 65],
        ["fma"],
        ["mma", 128, 128, 4, 1],
        ["gemm", 128, 128, 4, 2, 0, 1, 1],
        ["skinny", 11],
        ["skinny", 1, 3],
        ["new kernel", 1],
        ["fma", "64"],
        ["fma", 10**9],
        [1],
        7,
        None,
    ],
)
def test_what_this_release_does_not_know_counts_for_nothing(row, device):
    a, b = operands(70, 68, 100)
    for shape in ("70x68x100", "~128x128x128"):
        use({shape: row}, device)
        assert _core._product_plan(a, b) is None
        check(kw.matmul(a, b), a, b, 1e-6)


@pytest.mark.parametrize("row", [["gemm"], ["gemm", 128, 256], ["gemm", 0, 0, 0, 0, 0, 1, 0]])
@pytest.mark.parametrize("shape", ["70x72x100", "~128x128x128"])
def test_half_a_plan_counts_for_nothing(row, shape, device):
    a, b = operands(70, 72, 100, "bfloat16", True)
    use({shape: row}, device, "bfloat16.bfloat16.bfloat16.nt")
    assert _core._product_plan(a, b) is None
    check(kw.matmul(a, b), a, b, 8e-3)


def test_what_is_no_table_is_refused(device):
    for text in ('{"format": 1, "devices": {}, "products": 3}', "{"):
        with pytest.raises(kw.InvalidArgument, match="no table"):
            _core._use_launch_table(text)


def test_a_plan_says_which_kernel_few_rows_take(device):
    a, b = operands(4, 256, 128, "bfloat16", True)
    types = "bfloat16.bfloat16.bfloat16.nt"
    by_rule = kw.matmul(a, b)
    for plan in (["mma", 64, 64, 3, 1], ["skinny", 2, 0, 0, 0, -1, 2, -1], ["skinny", 1, 4]):
        use({"4x256x128": plan}, device, types)
        assert numbers(_core._product_plan(a, b)) == plan
        check(kw.matmul(a, b), a, b, 8e-3)
        check(kw.nn.linear(a, b.T), a, b, 8e-3)
    check(by_rule, a, b, 8e-3)


CHILD = """
import json, numpy as np, kernwright as kw
from kernwright import _core
x, w = kw.ones((40, 100)), kw.ones((72, 100))
assert _core._product_plan(x, w.T) is None or not FIRST
print(_core._has_product(x, w.T))
assert (kw.TUNED).numpy().tolist() == [[100] * 72] * 40
print(_core._has_product(x, w.T))
"""


def child(tuned, first, **environment):
    text = CHILD.replace("kw.TUNED", tuned).replace("FIRST", str(first))
    ended = run_child(text, **environment)
    assert ended.code == 0, ended.err
    return ended.out.split()


@pytest.mark.parametrize("call", ["kw.matmul(x, w.T, tune=True)", "kw.nn.linear(x, w, tune=True)"])
def test_tuned_shapes_are_known_to_later_processes(call, tmp_path, device):
    path = tmp_path / "choices.json"
    other = {"format": 1, "devices": {"GPU": {"softmax.values": {"long/2": 8}}}}
    path.write_text(json.dumps(other))
    given = {"KERNWRIGHT_KERNEL_CHOICES": str(path)}
    assert child(call, True, **given) == ["False", "True"]
    table = json.loads(path.read_text())
    assert table["devices"] == other["devices"]
    (row,) = table["products"][device.name]["float32.float32.float32.nt"].items()
    assert row[0] == "40x72x100" and (row[1] == [] or row[1][0] == "fma")
    assert child(call.replace(", tune=True", ""), False, **given) == ["True", "True"]
    before = path.stat().st_mtime_ns
    assert child(call, False, **given) == ["True", "True"]
    assert path.stat().st_mtime_ns == before


def test_tuning_without_a_place_on_disk_is_for_this_process():
    call = "kw.matmul(x, w.T, tune=True)"
    assert child(call, True, KERNWRIGHT_KERNEL_CHOICES="off") == ["False", "True"]


def test_a_file_that_is_no_table_stays_as_it_is(own_table):
    own_table.parent.mkdir()
    own_table.write_text("{")
    a, b = operands(40, 36, 20)
    with pytest.warns(RuntimeWarning, match="in this process only"):
        check(kw.matmul(a, b, tune=True), a, b, 1e-6)
    assert own_table.read_text() == "{" and _core._has_product(a, b)
    with pytest.raises(kw.InvalidArgument, match="no table"):
        kw.tune.products([(40, 36, 20)], dtypes=["float32"], renew=True, seconds=0.01)


def test_errors_come_before_measuring(own_table):
    with pytest.raises(kw.InvalidArgument, match="Incompatible dimensions"):
        kw.matmul(kw.ones((3, 4)), kw.ones((3, 4)), tune=True)
    with pytest.raises(kw.InvalidArgument):
        kw.nn.linear(kw.ones((3, 4)), kw.ones((3, 5)), tune=True)
    assert not own_table.exists()
    assert kw.matmul(kw.ones(3, "int32"), kw.ones(3, "int32"), tune=True).item() == 3
    assert kw.matmul(kw.ones((0, 3)), kw.ones((3, 2)), tune=True).shape == (0, 2)
    assert kw.matmul(kw.ones((2, 3), "int32"), kw.ones((3, 2), "int32"), tune=True).sum() == 12


@pytest.mark.parametrize("layer", [False, True])
def test_tf32_is_tuned_apart(own_table, layer):
    a, b = operands(40, 36, 24)
    weights = b.T.copy() if layer else None
    if layer:
        got = kw.nn.linear(a, weights, precision="tf32", tune=True)
    else:
        got = kw.matmul(a, b, precision="tf32", tune=True)
    check(got, a, b, 2e-3)
    if not _core._product(a, weights.T if layer else b, None, "tf32")[3]:  # no choice
        assert not own_table.exists()
        return
    (table,) = json.loads(own_table.read_text())["products"].values()
    assert [*table] == [f"float32.float32.float32.n{'t' if layer else 'n'}.tf32"]


def test_nothing_is_measured_while_a_stream_is_captured(own_table):
    a, b = operands(40, 36, 24)
    kw.matmul(a, b)
    graph, stream = kw.Graph(), kw.Stream()
    with graph.capture(stream):
        result = kw.matmul(a, b, tune=True)
    graph.launch(stream)
    stream.synchronize()
    check(result, a, b, 1e-6)
    assert not own_table.exists()


def test_threads_tune_together(own_table):
    pairs = [operands(40, 36, 24) for _ in range(4)]
    wrong = []

    def work(a, b):
        try:
            for _ in range(3):
                check(kw.matmul(a, b, tune=True), a, b, 1e-6)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in pairs]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong
    assert len(json.loads(own_table.read_text())["products"]) == 1


def test_products_goes_on_where_it_was(own_table, device):
    seen = []
    rows = kw.tune.products([(40, 48, 64)], dtypes=["float32"], seconds=0.01, on_row=seen.append)
    assert rows == seen and [row["shape"] for row in rows] == ["40x48x64"] * 2
    mine = json.loads(own_table.read_text())["products"][device.name]
    assert set(mine) == {TYPES, "float32.float32.float32.nt"}
    assert set(mine[TYPES]) == {"40x48x64", "~64x64x64"}
    for row in rows:
        assert mine[row["types"]][row["shape"]] == row["plan"]
        assert row["best_ms"] <= row["rule_ms"] and len(row["plans"]) >= 3
    again = kw.tune.products([(40, 48, 64), (8, 24, 33)], dtypes=["float64"], seconds=0.01)
    assert [row["shape"] for row in again] == ["40x48x64"] * 2 + ["8x24x33"] * 2
    assert kw.tune.products([(40, 48, 64)], dtypes=["float32", "float64"]) == []
    _core._use_launch_table(None)
    assert kw.tune.products([(40, 48, 64)], dtypes=["float32"], path=own_table) == []
    half = {"dtypes": ["float32"], "seconds": 0.01, "save": False}
    parts = [kw.tune.products([(9, 8, 7)], part=(i, 2), **half) for i in (1, 2)]
    assert [len(part) for part in parts] == [1, 1]
    mean, worst = ratios(rows)
    assert 1 <= mean <= worst and ratios([]) == (1, 1)
    with pytest.raises(kw.ArgumentError, match="part 3 of 2"):
        kw.tune.products(part=(3, 2))
    with pytest.raises(kw.ArgumentError, match=r"\(3, 4\) is no"):
        kw.tune.products([(3, 4)])


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("float8_e4m3fn", "float8_e4m3fn.float8_e4m3fn.bfloat16.nt.promoted"),
        ("float8_e4m3fn.fast", "float8_e4m3fn.float8_e4m3fn.bfloat16.nt"),
        ("float8_e4m3fn.blocks", "float8_e4m3fn.float8_e4m3fn.bfloat16.nt.blocks"),
        ("int8", "int8.int8.int32.nt"),
        ("tf32", "float32.float32.float32.nt.tf32"),
    ],
)
def test_products_of_narrow_numbers_have_rows_of_their_own(kind, types, device):
    rows = kw.tune.products([(40, 48, 256)], dtypes=[kind], seconds=0.01)
    assert [(row["types"], row["shape"]) for row in rows] == [(types, "40x48x256")]
    product = narrow_operands(kind, (40, 48, 256), True, device)
    assert _core._has_product(*product.key) and not _core._has_product(product.a, product.b)


@pytest.mark.parametrize("kind", NARROW)
def test_every_candidate_of_narrow_numbers_gives_the_result_of_the_rule(kind, device):
    product = narrow_operands(kind, (72, 136, 1288), True, device)
    plans = _core._product(*product.key)[3]
    if device.compute_capability != (9, 0):
        assert plans == []
        return
    expected = product.run().astype("float64").numpy()
    assert len(plans) >= 5
    for plan in plans:
        got = _core._with_product(plan, product.run).astype("float64").numpy()
        off = np.linalg.norm(got - expected) / np.linalg.norm(expected)
        assert off <= (0 if kind == "int8" else 1e-2), plan
    assert _core._with_product(["gemm", 128, 100, 4, 2, 0, 1, 1], product.run) is not None


@pytest.mark.parametrize("dtype", ["int8", "float8_e4m3fn"])
def test_a_table_leaves_the_dtype_of_a_result(device, dtype):
    a, b = kw.ones((40, 64), dtype), kw.ones((64, 48), dtype)
    before = kw.matmul(a, b)
    types, shape, _, plans = _core._product(a, b)
    assert plans == [] and types == f"{dtype}.{dtype}.{dtype}.nn"
    use({shape: ["gemm", 128, 128, 6, 2, 1, 1, 1]}, device, types)
    after = kw.matmul(a, b)
    assert after.dtype == before.dtype == a.dtype
    np.testing.assert_array_equal(after.astype("float32").numpy(), before.astype("float32").numpy())


def test_ways_of_accumulation_have_names():
    a, b = kw.ones((8, 16)), kw.ones((16, 8))
    assert _core._product(a, b, None, "tf32")[0] == "float32.float32.float32.nn.tf32"
    with pytest.raises(kw.InvalidArgument, match="plain, promoted, blocks or tf32, not 'fast'"):
        _core._product(a, b, None, "fast")
    with pytest.raises(kw.Error, match="no_such"):
        kw.tune.products([(8, 8, 8)], dtypes=["no_such"], save=False)


def test_the_list_of_shapes():
    shapes = product_shapes()
    assert len(set(shapes)) == len(shapes)
    assert ((8192, 8192, 8192), False) in shapes and ((1, 57344, 8192), True) in shapes
    assert all(min(shape) >= 1 for shape, _ in shapes)
    narrow = product_shapes("int8")
    assert len(set(narrow)) == len(narrow) and all(turned for _, turned in narrow)
    assert ((4096, 7168, 16384), True) in narrow and ((8192, 8192, 8192), True) in narrow


def test_the_command(own_table, capsys):
    options = ["--shape", "40x48x64", "--dtype", "float32", "--seconds", "0.01"]
    assert main(["tune-kernels", "--products", *options]) == 0
    out = capsys.readouterr().out
    assert "float32.float32.float32.nn 40x48x64" in out and "of 2 have a plan of their own" in out
    assert "on average" in out and own_table.exists()
    more = ["--part", "2/2", "--renew", "--dry-run", "--json"]
    assert main(["tune-kernels", "--products", *options, *more]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1
    assert main(["tune-kernels", "--products", "--part", "x"]) == 2
    assert "I/N" in capsys.readouterr().err
    assert main(["tune-kernels", "--products", "softmax"]) == 2


@pytest.mark.parametrize(
    ("rows", "columns", "inner", "splits"),
    [
        (512, 512, 8192, True),
        (256, 2048, 16384, True),
        (128, 4096, 16384, False),
        (8192, 8192, 8192, False),
    ],
)
def test_the_rule_splits_where_a_wave_is_short(rows, columns, inner, splits):
    assert ("splits" in _core._gemm_choice(rows, columns, inner)) == splits


def test_plans_of_one_column_launch_kernels_of_their_own():
    """The rule makes b^T @ a^T by a skinny kernel; plans of a @ b are measured themselves."""
    code = (
        "import numpy as np, kernwright as kw\n"
        "from kernwright import _core\n"
        "a = kw.asarray(np.arange(32768, dtype='f4').reshape(256, 128) % 7)\n"
        "b = kw.ones((128, 1))\n"
        "for plan in (_core._product(a, b)[3][0], []):\n"
        "    got = _core._with_product(plan, lambda: kw.matmul(a, b))\n"
        "    assert (got.numpy() == a.numpy().sum(1, keepdims=True)).all()\n"
    )
    ended = run_child(code, KERNWRIGHT_LOG="debug")
    assert ended.code == 0, ended.err
    assert ended.err.count("launch fma_gemm<") == 1
    assert ended.err.count("launch skinny_dot<") == 1


def test_rules_of_float32():
    code = textwrap.dedent("""
        import numpy as np, kernwright as kw
        kw.matmul(kw.ones((40, 4096)), kw.ones((4096, 40)))  # few tiles, a long sum: parts of it
        kw.matmul(kw.ones((70, 33)), kw.ones((33, 70)))
    """)
    assert run_child(code).code == 0


@pytest.mark.parametrize("kernel", [6, 9])
def test_kernels_of_earlier_releases_count_for_nothing(kernel, device):
    a, b = operands(40, 128, 136, "bfloat16", True)
    for plan in (["skinny", kernel], ["skinny", kernel, 4, 0, 0, -1, 2, -1, 0]):
        use({"40x128x136": plan}, device, "bfloat16.bfloat16.bfloat16.nt")
        assert _core._product_plan(a, b) is None
        assert plan not in _core._product(a, b)[3]
        check(kw.matmul(a, b), a, b, 8e-3)
