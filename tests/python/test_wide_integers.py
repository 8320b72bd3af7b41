"""Parameters of type __int128 and nullptr_t."""

import numpy as np
import pytest

import kernwright as kw


def test_wide_integers_and_nullptr():
    wide = kw.kernel(
        """__global__ void wide(__int128 a, const unsigned __int128 b, decltype(nullptr) p,
                                unsigned long long* x) {
    x[0] = a; x[1] = a >> 64; x[2] = b; x[3] = b >> 64; x[4] = p == nullptr;
}""",
        extra=["--device-int128"],
    )[1, 1]
    x = kw.zeros(5, "uint64")
    for a, b in ((-5, 1), (-(1 << 127), (1 << 128) - 1), (np.int64(-3), np.uint8(7)), (True, 0)):
        wide(a, b, None, x)
        words = [int(n) & (1 << 64) - 1 for n in (int(a), int(a) >> 64, int(b), int(b) >> 64)]
        assert x.numpy().tolist() == [*words, 1]
    wide((9).to_bytes(16, "little"), 1, None, x)
    assert x.numpy()[0] == 9
    for a, b in ((1 << 127, 0), (0, -1), (0, 1 << 128)):
        with pytest.raises(kw.ArgumentRangeError, match=r"outside (-2\*\*127|0) \.\.\. 2\*\*1"):
            wide(a, b, None, x)
    with pytest.raises(kw.ArgumentError, match=r"got float \(1.0\): a wants an integer"):
        wide(1.0, 0, None, x)
    with pytest.raises(kw.ArgumentError, match=r"p wants None"):
        wide(1, 0, 0, x)
