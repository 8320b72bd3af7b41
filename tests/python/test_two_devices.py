"""Operands of two devices: every operation refuses them by name, and writes nothing."""

from children import run_child

# Each call prints a line unless it raises an error that names both devices; assignments say more.
PROGRAM = """
import operator
import numpy as np
import kernwright as kw

values = np.arange(6.0).reshape(2, 3)
a, b = kw.asarray(values, device="sim:0"), kw.asarray(values + 10, device="sim:1")
places = kw.asarray([0, 1], device="sim:1")
mask = kw.asarray(np.ones((2, 3), bool), device="sim:1")
number = kw.zeros((), "float64", device="sim:1")
store = operator.setitem
calls = {
    "assign": lambda: store(a, ..., b),
    "assign a row": lambda: store(a, 0, b[0]),
    "assign one element": lambda: store(a, (0, 0), b[0, 0]),
    "assign columns": lambda: store(a, (slice(None), slice(None, None, -2)), b[:, :2]),
    "assign at a mask": lambda: store(a, mask, 1.0),
    "assign at positions": lambda: store(a, places, 1.0),
    "assign values at positions": lambda: store(a, [0, 1], b),
    "element": lambda: a[places],
    "mask": lambda: a[mask],
    "add": lambda: a + b,
    "add in place": lambda: operator.iadd(a, b),
    "add out": lambda: kw.add(a, a, out=b),
    "where": lambda: kw.where(mask, a, a),
    "matmul": lambda: a @ b.T,
    "matmul out": lambda: kw.matmul(a, a.T, out=b[:, :2]),
    "einsum": lambda: kw.einsum("ij,ij", a, b),
    "take": lambda: kw.take(a, places),
    "put": lambda: kw.put(a, places, 1.0),
    "put values": lambda: kw.put(a, [0, 1], b[0, :2]),
    "gather": lambda: kw.gather(a, 0, places.reshape(1, 2)),
    "scatter": lambda: kw.scatter(a, 0, [[0, 1]], b),
    "take_along_axis": lambda: kw.take_along_axis(a, places.reshape(1, 2), 1),
    "put_along_axis": lambda: kw.put_along_axis(a, places.reshape(1, 2), 1.0, 1),
    "concat": lambda: kw.concat([a, b]),
    "stack": lambda: kw.stack([a, b]),
    "sum out": lambda: kw.sum(a, out=number),
    "sum where": lambda: kw.sum(a, where=mask),
    "cumsum out": lambda: kw.cumsum(a, 0, out=b),
    "searchsorted": lambda: kw.searchsorted(a[0], b[0]),
    "isin": lambda: kw.isin(a, b),
    "lexsort": lambda: kw.lexsort([a[0], b[0]]),
    "interp": lambda: kw.interp(a, b[0], b[1]),
    "convolve": lambda: kw.convolve(a[0], b[0]),
    "polyval": lambda: kw.polyval(b[0], a),
    "histogram": lambda: kw.histogram(a, b[0]),
    "linear": lambda: kw.nn.linear(a, b),
    "solve": lambda: kw.linalg.solve(a[:, :2] + kw.eye(2, device="sim:0"), b[0, :2]),
    "fuse": lambda: kw.fuse(lambda x, y: x + y)(a, b),
}
for name, call in calls.items():
    try:
        call()
        print(name, "raises nothing")
    except kw.Error as error:
        told = ["sim:0", "sim:1", *([".to(device)"] if name.startswith("assign") else [])]
        if not all(words in str(error) for words in told):
            print(name, "says", error)
assert (a.numpy() == values).all() and (b.numpy() == values + 10).all()
a[...] = b.to("sim:0")
assert (a.numpy() == values + 10).all()
"""


def test_operands_of_two_devices():
    ended = run_child(PROGRAM, timeout=300, KERNWRIGHT_DEVICE="sim", KERNWRIGHT_SIM_DEVICES="2")
    assert (ended.code, ended.out) == (0, ""), ended.out + ended.err
