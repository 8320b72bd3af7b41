"""Random kernels with shuffles of some lanes, beside an interpreter. It marks each lane's value as
defined or not."""

import random

import numpy as np
import pytest

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")

REGISTERS, LANES, WORD = 5, 32, (1 << 32) - 1
DATA = np.array([(i * 7919 + 13) % 1000003 for i in range(64)], np.int32)
BITS = (1, 2, 4, 8, 16)
DISTANCES = (1, 2, 3, 4, 8, 15, 16, 31)


class Program:
    """Lanes below `lanes` take part; the others wait in a branch, have exited or are not there."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lanes = self.rng.choice([1, 7, 16, 20, 31, 32])
        self.rest = self.rng.choice(["waits", "exited", "none"])
        self.unrolled = self.rng.random() < 0.5
        self.body = self.operations(self.rng.randrange(3, 12), ("sum", "choice", "shuffle"), 0)
        self.result = self.rng.randrange(REGISTERS)
        self.kept = self.rng.choice((0, *BITS))  # lanes with this bit drop the result

    def operations(self, count, kinds, depth):
        rng, made = self.rng, []
        for _ in range(count):
            to, a, b = (rng.randrange(REGISTERS) for _ in range(3))
            kind = rng.choice(kinds + ("loop", "branch")[depth:])
            if kind == "sum":
                made.append((kind, to, a, b, rng.randrange(1, 99) * 2 + 1))
            elif kind == "choice":
                made.append((kind, to, a, b, rng.choice(BITS)))
            elif kind == "shuffle":
                way = rng.choice(("down_", "up_", "xor_", ""))
                made.append((kind, to, a, way, rng.choice(DISTANCES)))
            elif kind == "loop":
                made.append((kind, rng.choice((2, 3)), self.operations(2, kinds, depth + 1)))
            else:  # no shuffles: all participating lanes come to each
                made.append((kind, rng.choice(BITS), self.operations(2, ("sum", "choice"), 2)))
        return made

    def text(self):
        mask = (1 << self.lanes) - 1 if self.rest == "waits" else WORD
        lines = []

        def add(operations):
            for kind, *rest in operations:
                if kind == "sum":
                    to, a, b, k = rest
                    lines.append(f"r{to} = r{a} * {k} + r{b} * x[{k % 60}];")
                elif kind == "choice":
                    to, a, b, bit = rest
                    lines.append(f"r{to} = lane & {bit} ? r{a} : r{b};")
                elif kind == "shuffle":
                    to, a, way, by = rest
                    lines.append(f"r{to} = __shfl_{way}sync({mask:#x}u, r{a}, {by});")
                elif kind == "loop":
                    lines.append("" if self.unrolled else "#pragma unroll 1")
                    lines.append(f"for (int i = 0; i < {rest[0]}; ++i) {{")
                    add(rest[1])
                    lines.append("}")
                else:
                    lines.append(f"if (lane & {rest[0]}) {{")
                    add(rest[1])
                    lines.append("}")

        add(self.body)
        start = ", ".join(f"r{i} = x[lane + {i}]" for i in range(REGISTERS))
        body = "\n".join([*lines, f"if (!(lane & {self.kept})) y[lane] = r{self.result};"])
        before = f"if (lane >= {self.lanes}) return;" if self.rest == "exited" else ""
        if self.rest == "waits":
            body = f"if (lane < {self.lanes}) {{\n{body}\n}} else y[lane] = r0;"
        return (
            "__global__ void k(const int* x, int* y) {\n"
            f"int lane = threadIdx.x, {start};\n{before}\n{body}\n}}"
        )

    def run(self):
        """Result by lane, and whether one of them is undefined."""
        data = [int(value) for value in DATA]
        values = [[data[lane + i] for lane in range(LANES)] for i in range(REGISTERS)]
        lost = [[False] * LANES for _ in range(REGISTERS)]

        def source(way, lane, by):
            at = {"down_": lane + by, "up_": lane - by, "xor_": lane ^ by, "": by}[way]
            return at if 0 <= at < LANES else lane

        def step(operations, active):
            for kind, *rest in operations:
                if kind == "loop":
                    for _ in range(rest[0]):
                        step(rest[1], active)
                elif kind == "branch":
                    step(rest[1], [lane for lane in active if lane & rest[0]])
                else:
                    to, a, b, k = rest
                    new = []
                    for lane in active:
                        if kind == "sum":
                            value = values[a][lane] * k + values[b][lane] * data[k % 60]
                            new.append((value & WORD, lost[a][lane] or lost[b][lane]))
                        elif kind == "choice":
                            chosen = a if lane & k else b
                            new.append((values[chosen][lane], lost[chosen][lane]))
                        else:
                            at = source(b, lane, k)
                            there = at < self.lanes
                            new.append((values[a][at], lost[a][at]) if there else (0, True))
                    for lane, (value, is_lost) in zip(active, new, strict=True):
                        values[to][lane], lost[to][lane] = value, is_lost

        step(self.body, range(self.lanes))
        kept = [lane for lane in range(self.lanes) if not lane & self.kept]
        results = {lane: values[self.result][lane] & WORD for lane in kept}
        return results, any(lost[self.result][lane] for lane in kept)


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_random_kernels(first):
    for seed in range(first, first + 20):
        program = Program(seed)
        text = program.text()
        y = kw.zeros(LANES, "int32")
        threads = program.lanes if program.rest == "none" else LANES
        kernel = kw.kernel(text, name="k")
        with kw.checks("sync") as report:
            kernel[1, threads](kw.asarray(DATA), y)
        expected, is_lost = program.run()
        results = y.numpy().view(np.uint32)
        for lane, value in expected.items():
            assert results[lane] == value, f"seed {seed}, lane {lane}:\n{text}"
        assert bool(len(report)) == is_lost, f"seed {seed}:\n{text}\n{report}"


def test_the_programs_show_both():
    shown = [Program(seed).run()[1] for seed in range(120)]
    assert 20 <= sum(shown) <= 100
