"""What a texture fetch returns, by the CUDA Programming Guide ("Texture Fetching"), in float64.

Texels are an array of shape (layers, depth, height, width, channels); coordinates are arrays of n
numbers for x, y and z.
"""

import numpy as np

REACH = 4  # how many extents beyond an axis the tables of wrapped and mirrored texels go


def resolved(index, extent, mode):
    """Which texel stands for each index, and whether there is one."""
    index = index.astype(np.int64)
    inside = np.ones(index.shape, bool)
    if mode == "border":
        inside = (index >= 0) & (index < extent)
    if mode in ("wrap", "mirror"):
        once = np.arange(extent)
        tiles = [once, once[::-1] if mode == "mirror" else once] * (REACH + 1)
        row = np.concatenate(tiles)
        first = (len(tiles) // 2 // 2) * 2 * extent  # of a tile that is not reversed
        assert (index + first >= 0).all() and (index + first < row.size).all()
        return row[index + first], inside
    return np.clip(index, 0, extent - 1), inside


def texel(texels, layer, indices, modes, border):
    """The texels at indices for x, y and z."""
    extents = texels.shape[3], texels.shape[2], texels.shape[1]
    place, inside = [], True
    for index, extent, mode in zip(indices, extents, modes, strict=True):
        at, there = resolved(index, extent, mode)
        place.append(at)
        inside = inside & there
    values = texels[layer, place[2], place[1], place[0]]
    return np.where(inside[:, None], values, np.broadcast_to(border, values.shape))


def fixed(x):
    """A coordinate between texel centres, rounded to 8 bits of fraction."""
    return np.floor((np.asarray(x, np.float64) - 0.5) * 256 + 0.5) / 256


def scaled(x, extent, normalized):
    return np.asarray(x, np.float64) * (extent if normalized else 1)


def face_of(x, y, z):
    """The face that a direction meets (+x, -x, +y, -y, +z, -z) and where on it, 0 to 1."""
    faces = {  # the Programming Guide's table: m, s, t
        0: (x, -z, -y),
        1: (-x, z, -y),
        2: (y, x, z),
        3: (-y, x, -z),
        4: (z, x, -y),
        5: (-z, -x, -y),
    }
    major = np.abs(np.stack([x, y, z])).argmax(axis=0)
    negative = np.choose(major, [x, y, z]) < 0
    face = 2 * major + negative
    m, s, t = (np.choose(face, [faces[i][k] for i in range(6)]) for k in range(3))
    return face, (s / m + 1) / 2, (t / m + 1) / 2


class Model:
    """A texture: `axes` are 1 to 3; address modes are those of x, y and z."""

    def __init__(
        self, texels, axes, *, filter, normalized, address="clamp", border=0.0, cube=False
    ):
        self.texels = np.asarray(texels)
        self.axes, self.filter, self.cube = axes, filter, cube
        self.normalized = normalized or cube
        self.modes = [address] * 3 if isinstance(address, str) else list(address)
        self.modes = [m if i < axes else "clamp" for i, m in enumerate(self.modes)]
        self.border = np.asarray(border, np.float64)

    def place(self, x, y, z, layer):
        layers = self.texels.shape[0] // (6 if self.cube else 1)
        layer = np.clip(layer, 0, layers - 1)
        if self.cube:
            face, s, t = face_of(*(np.asarray(v, np.float64) for v in (x, y, z)))
            layer, x, y = layer * 6 + face, s, t
        extents = self.texels.shape[3], self.texels.shape[2], self.texels.shape[1]
        where = [scaled(c, n, self.normalized) for c, n in zip((x, y, z), extents, strict=True)]
        return layer, [w if i < self.axes else np.zeros_like(w) for i, w in enumerate(where)]

    def fetch(self, x, y, z, layer):
        layer, where = self.place(x, y, z, layer)
        if self.filter == "point":
            indices = [np.floor(w) for w in where]
            return texel(self.texels, layer, indices, self.modes, self.border)
        first = [np.floor(fixed(w)) if i < self.axes else w for i, w in enumerate(where)]
        part = [fixed(w) - f for w, f in zip(where[: self.axes], first, strict=False)]
        total = 0.0
        for corner in range(1 << self.axes):
            steps = [corner >> i & 1 for i in range(3)]
            shares = [p if s else 1 - p for p, s in zip(part, steps, strict=False)]
            weight = np.prod(shares, axis=0)
            indices = [f + s for f, s in zip(first, steps, strict=True)]
            values = texel(self.texels, layer, indices, self.modes, self.border)
            total = total + np.where(weight[:, None] != 0, weight[:, None] * values, 0)
        return total

    def gather(self, x, y, component):
        """The four texels of a filtered fetch, from the lower left against the clock."""
        n = np.asarray(x).size
        layer, where = self.place(x, y, np.zeros(n), np.zeros(n, int))
        first = [np.floor(fixed(w)) for w in where[:2]]
        result = []
        for dx, dy in ((0, 1), (1, 1), (1, 0), (0, 0)):
            indices = [first[0] + dx, first[1] + dy, np.zeros(n)]
            result.append(texel(self.texels, layer, indices, self.modes, self.border)[:, component])
        return np.stack(result, axis=1)


def promoted(values):
    """Integers as floats of 0 to 1, or -1 to 1."""
    return np.maximum(values.astype(np.float64) / np.iinfo(values.dtype).max, -1)
