"""Structs that the host fills and a kernel reads have the same fields on both sides."""

import functools
import re
from pathlib import Path

KERNELS = Path(__file__).parents[2] / "kernels_src"

# Structs of the host whose twin on the device has another name.
TWINS = {
    "AdvanceSettings": "Advance", "AxesWalk": "Walk", "BackwardArrays": "BackwardCell",
    "DeviceEdgeBins": "EdgeBins", "DeviceOrder": "Order", "DeviceValueBins": "ValueBins",
    "DirectValues": "Direct", "DistributionParameters": "Parameters", "ExpertPairs": "Pairs",
    "FmaProblem": "Problem", "FmaSide": "Side", "ForwardArrays": "ForwardCell",
    "GemmBlockValues": "BlockScales", "GemmEdgeMaps": "EdgeMaps",
    "GemmProblem": "Problem", "GradientCall": "Gradients", "LineCopy": "Lines",
    "MmaBlockScales": "BlockScales", "MmaProblem": "Problem", "MmaSide": "Side",
    "OptimizerSettings": "Settings", "PoolWindows": "Windows", "ProductBatch": "Batch",
    "QkvTables": "RopeTables", "RadixSides": "Sides", "ReducePartial": "Partial",
    "RepackField": "Field", "ResampleAxis": "Axis", "RouteValues": "Routing",
    "RowAxisValues": "RowAxis", "RowValues": "Rows", "SamplingScratch": "Scratch",
    "SamplingSettings": "Settings", "ScanBoard": "Board", "ScanPosts": "Posts",
    "StepOutput": "Step", "StepResults": "Results",
    "StepState": "State", "TensorTable": "Tensors", "WeightAxisValues": "WeightAxis",
    "WeightValues": "Weights", "WindowValues": "Windows",
}  # fmt: skip
# A struct of several kernels' texts is looked for beside the host's file, else in these.
BESIDE = {"AttentionCall": "attention", "GemmProblem": "product_stages", "FmaProblem": "fma",
          "GemmEdgeMaps": "product_stages", "MmaProblem": "mma", "FmaSide": "fma",
          "GemmBlockValues": "promoted", "MmaSide": "mma"}  # fmt: skip
# An array of the host has names on the device; two numbers are a struct there.
OTHER_NAMES = {"PackedArrays", "ReduceParameters"}

SIZES = {
    "CUdeviceptr": "i8", "pointer": "i8", "std::int64_t": "i8", "std::uint64_t": "i8",
    "Int64": "i8", "UInt64": "i8", "long long": "i8", "unsigned long long": "i8",
    "std::int32_t": "i4", "std::uint32_t": "i4", "int": "i4", "unsigned": "i4", "UInt32": "i4",
    "Int32": "i4", "bool": "b1", "float": "f4", "double": "f8", "CUtensorMap": "map",
    "TensorMap": "map",
}  # fmt: skip
STRUCT = re.compile(
    r"(?:template\s*<((?:[^<>{};]|<[^<>]*>)*)>\s*)?"
    r"struct\s+(?:alignas\(\w+\)\s*)?(\w+)(?:\s*:\s*(\w+)\s*(?=\{))?[^;{}()]*\{"
)
Field = tuple[str, str, tuple[str, ...]]


class Struct:
    def __init__(self, path: Path, text: str, match: "re.Match[str]") -> None:
        self.path, end, depth = path, match.end(), 1
        self.base = match[3]
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        names = re.findall(r"(?:typename|class)\s+(\w+)", match[1] or "")
        self.parameters = dict.fromkeys(names, "T")
        self.body = text[match.end() : end - 1]

    @functools.cached_property
    def fields(self) -> "list[Field]":
        return fields(self.body)


def fields(body: str) -> "list[Field]":
    """Type, name and extents of each member; functions and constants are no members."""
    while re.search(r"\{[^{}]*\}", body):
        body = re.sub(r"\)[^;{}()]*(?::[^;{}]*)?\{[^{}]*\}", ");", body)
        body = re.sub(r"\{[^{}]*\}", "", body)
    found: list[Field] = []
    for statement in (" ".join(each.split()) for each in body.split(";")):
        statement = re.sub(r"\b(?:const|__restrict__) ?", "", statement)
        if (
            not statement
            or "(" in statement
            or re.match(r"(static|using|friend|union)\b", statement)
        ):
            continue
        parts = re.split(r",(?![^<]*>)", re.sub(r"=[^,]*", "", statement))
        head = re.match(r"(.*?)([*&]*)\s*(\w+(?:\[[^\]]*\])*)\s*$", parts[0].strip())
        if head is None:  # a macro's
            return []
        kind = head[1].strip()
        for declared in [head[2] + head[3], *parts[1:]]:
            declared = declared.strip()
            name = declared.lstrip("*& ")
            extents = tuple(re.findall(r"\[([^\]]*)\]", name))
            pointer = declared[:1] in "*&"
            found.append(("pointer" if pointer else kind, re.split(r"[ \[]", name)[0], extents))
    return found


def read(*suffixes: str) -> "tuple[dict[str, list[Struct]], dict[str, list[tuple[Path, str]]]]":
    structs: dict[str, list[Struct]] = {}
    constants: dict[str, list[tuple[Path, str]]] = {}
    for path in sorted(p for s in suffixes for p in KERNELS.rglob("*" + s)):
        text = re.sub(r"//[^\n]*", "", path.read_text())
        for match in STRUCT.finditer(text):
            structs.setdefault(match[2], []).append(Struct(path, text, match))
        for name, value in re.findall(r"constexpr [\w:]+ (\w+) = ([\w\-+ ]+);", text):
            constants.setdefault(name, []).append((path, value))
    return structs, constants


HOST, HOST_CONSTANTS = read(".h", ".cpp")
DEVICE, DEVICE_CONSTANTS = read(".cu", ".cuh")


def beside(structs: "list[Struct]", host: Struct, name: str) -> Struct:
    """The one with the names of the host's fields, in the host's own file or that of BESIDE."""
    names = [each[1] for each in host.fields]
    wanted = BESIDE.get(name, host.path.stem.split(".")[0])
    return max(
        structs,
        key=lambda s: ([each[1] for each in s.fields] == names, wanted in str(s.path), s.path.stem),
    )


def extent(text: str, struct: Struct, constants: "dict[str, list[tuple[Path, str]]]") -> int:
    """The number of an array's elements; of a template's parameter a number that stands for it."""
    if text in ("Views", "Dims"):
        return 2
    while not re.fullmatch(r"[\d+\- ]+", text):
        name = re.search(r"[A-Za-z]\w*(?:::\w+)?", text)
        assert name, text
        known = constants[name[0].rsplit("::", 1)[-1]]
        own = [value for path, value in known if path == struct.path]
        text = text.replace(name[0], (own or [value for _, value in known])[0])
    return sum(int(each) for each in re.findall(r"[+-]?\d+", text.replace(" ", "")))


def flat(struct: Struct, on_device: bool) -> "list[str]":
    """The sizes of all scalars in their order: T is a type of the template."""
    known, constants = (DEVICE, DEVICE_CONSTANTS) if on_device else (HOST, HOST_CONSTANTS)
    sizes = flat(known[struct.base][0], on_device) if struct.base in known else []
    for kind, _, extents in struct.fields:
        array = re.fullmatch(r"std::array<(.*), ([\w:]+)>", kind)
        if array:
            kind, extents = array[1], (*extents, array[2])
        count = 1
        for each in extents:
            count *= extent(each, struct, constants)
        base = kind.split("<")[0]
        if kind in SIZES or struct.parameters.get(kind) or kind in ("Real", "Index", "F"):
            one = [SIZES.get(kind, "T")]
        elif base in ("Walk", "AxesWalk"):
            one = ["walk"]
        else:
            inner = known[base]
            one = flat(max(inner, key=lambda s: s.path == struct.path), on_device)
        sizes += one * count
    return sizes


def is_plain(struct: Struct, deep: int = 0) -> bool:
    """Whether all fields are numbers, addresses and structs of these."""
    for kind, _, _ in struct.fields:
        array = re.fullmatch(r"std::array<(.*), ([\w:]+)>", kind)
        base = (array[1] if array else kind).split("<")[0]
        if base in SIZES or base in struct.parameters or base == "AxesWalk":
            continue
        if base not in HOST or deep > 3 or not all(is_plain(s, deep + 1) for s in HOST[base]):
            return False
    return bool(struct.fields)


def pairs() -> "list[tuple[str, Struct, Struct]]":
    found = []
    for name, structs in HOST.items():
        for struct in structs:
            twins = DEVICE.get(TWINS.get(name, name))
            if twins and is_plain(struct):
                found.append((name, struct, beside(twins, struct, name)))
    return found


def difference(host: Struct, device: Struct, by_names: bool = True) -> str:
    """What the two sides do not agree about; empty where they do."""
    sides = [flat(host, False), flat(device, True)]
    if sides[0] != sides[1]:
        return f"the host has scalars of {sides[0]}, the device of {sides[1]}"
    names = [[each[1] for each in struct.fields] for struct in (host, device)]
    return (
        f"the host has {names[0]}, the device {names[1]}"
        if by_names and names[0] != names[1]
        else ""
    )


def test_structs_of_both_sides_have_equal_fields() -> None:
    found = pairs()
    assert len(found) > 70
    wrong = {
        f"{name} in {host.path.name}, {device.path.name}": difference(
            host, device, name not in OTHER_NAMES
        )
        for name, host, device in found
    }
    assert not {place: what for place, what in wrong.items() if what}


def test_every_struct_of_addresses_has_a_twin() -> None:
    known = {name for name, _, _ in pairs()}
    alone = [
        f"{name} in {struct.path.name}"
        for name, structs in HOST.items()
        for struct in structs
        if name not in known and is_plain(struct)
        if any("CUdeviceptr" in kind for kind, _, _ in struct.fields)
    ]
    assert not alone, "name their structs of the device in TWINS"


def test_differences_are_seen() -> None:
    def struct(text: str) -> Struct:
        text = f"struct A {{ {text} }};"
        match = STRUCT.search(text)
        assert match
        return Struct(KERNELS, text, match)

    host = struct("CUdeviceptr x = 0, out[2] = {}; std::int32_t rows = 1; int f() { return 1; }")
    assert not difference(host, struct("const void* x; float* out[2]; int rows;"))
    assert "scalars" in difference(host, struct("const void* x; float* out[2]; long long rows;"))
    assert "scalars" in difference(host, struct("const void* x; float* out[3]; int rows;"))
    assert "scalars" in difference(host, struct("int rows; const void* x; float* out[2];"))
    assert "'y'" in difference(host, struct("const void* y; float* out[2]; int rows;"))


def test_fields_of_a_base_count() -> None:
    tile, base = (HOST[name][0] for name in ("TileEpilogueValues", "ProductEpilogueValues"))
    assert [each[1] for each in tile.fields] == ["row_scales", "beta", "knobs"]
    assert flat(tile, False)[: len(flat(base, False))] == flat(base, False)
