"""scripts/kernel_instances follows the kernels: each template of a kernel has an instance for the
compile gate, and each instance names a kernel of its text. Types and constants of device code that
the library writes into names of instances, and arrays of tiles, are in instances, too."""

import re
import sys

# A kernel's name, and whether a template stands in front of it.
KERNEL = re.compile(
    r"(template\s*<[^;{}]*?>\s*)?(?:extern \"C\" )?__global__\s+void\s+"
    r"(?:__launch_bounds__\([^;{}]*?\)\s*)?(\w+)\s*\(",
    re.DOTALL,
)
COMMENT = re.compile(r"//[^\n]*")
WORD = re.compile(r"[A-Za-z_]\w*")
TYPE = re.compile(r"\b(?:struct|class|using)\s+(\w+)")
ENUM = re.compile(r"\benum\b[^;{]*{([^}]*)}")
LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')
TILES = re.compile(r"^constexpr [^;={]*\b(k\w*Tiles)(?:\[\])? = {", re.MULTILINE)


def kernels(text):
    """The names of the templates of kernels, and of all kernels of a text."""
    found = KERNEL.findall(COMMENT.sub("", text))
    return {name for template, name in found if template}, {name for _, name in found}


def problems_of(path, text, instances, headers=frozenset()):
    """`headers`: kernels of the headers, which any text may have instances of."""
    templates, names = kernels(text)
    named = {instance.split("<")[0].rsplit("::", 1)[-1] for instance in instances}
    for name in sorted(templates - named):
        yield f"{path}: the template {name} has no instance"
    for name in sorted(named - names - headers):
        yield f"{path}: there is no kernel {name}"


def device_names(text):
    """The types and the enumerators that device code declares."""
    text = COMMENT.sub("", text)
    return {*TYPE.findall(text), *WORD.findall(" ".join(ENUM.findall(text)))}


def written_names(text):
    """The words of string literals that may be parts of an instance's name, not of a message."""
    text = re.sub(r"#include[^\n]*", "", COMMENT.sub("", text))
    literals = [each for each in LITERAL.findall(text) if " " not in each.replace(", ", "")]
    return {*WORD.findall(" ".join(literals))}


def all_instances(root):
    sys.path.insert(0, str(root / "scripts"))
    from kernel_instances import CLUSTER_INSTANCES, INSTANCES

    for table in (INSTANCES, CLUSTER_INSTANCES):
        for names in table.values():
            yield from names or ()


def test_names_that_the_library_writes_into_instances_are_compiled(root, tracked):
    library = [path for path in tracked if path.parts[0] == "kernels_src"]
    device, written = set(), {}
    for path in library:
        if path.suffix in (".cu", ".cuh"):
            device |= device_names((root / path).read_text())
    for path in library:
        if path.suffix in (".cpp", ".h", ".def"):
            for name in written_names((root / path).read_text()) & device:
                written.setdefault(name, path)
    compiled = {*WORD.findall(" ".join(all_instances(root)))}
    assert len(written) > 200
    lacking = [f"{written[name]}: no instance has {name}" for name in sorted({*written} - compiled)]
    assert not lacking, "\n".join(lacking)


def test_names_of_device_code_and_of_literals():
    text = "struct Total {}; enum Way { kAlong, kAcross = 2 }; // struct Nothing {}"
    assert device_names(text) == {"Total", "kAlong", "kAcross"}
    text = '#include "a/Total.h"\nformat("sum<{}, Total>", "no Way"); // "kAlong"'
    assert written_names(text) == {"sum", "Total"}


def test_each_array_of_tiles_is_compiled(root, tracked):
    scripts = [path for path in tracked if path.parts[:2] == ("scripts", "kernel_instances")]
    read = "".join((root / path).read_text() for path in scripts)
    arrays = {}
    for path in tracked:
        if path.parts[0] == "kernels_src" and path.suffix in (".cpp", ".h"):
            arrays |= dict.fromkeys(TILES.findall((root / path).read_text()), path)
    assert len(arrays) > 6
    lacking = [f"{path}: {name}" for name, path in arrays.items() if f'"{name}"' not in read]
    assert lacking == ["kernels_src/gemm/mma/mma_choice.cpp: kMmaTiles"]
    # Tiles of warps follow there from the size of a block's: each size has an instance.
    from kernel_instances.tables import tiles

    for tile in tiles("gemm/mma/mma_choice.cpp", "kMmaTiles"):
        found = [each for each in all_instances(root) if f", Tile<{tile}, " in each]
        assert any(each.startswith("mma_gemm<") for each in found), f"mma_gemm with {tile}"


def test_each_kernel_of_the_library_has_instances_for_the_compile_gate(root, tracked):
    sys.path.insert(0, str(root / "scripts"))
    from kernel_instances import CLUSTER_INSTANCES, INSTANCES

    texts = {path.name: path for path in tracked if path.parts[0] == "kernels_src"}
    texts = {name: path for name, path in texts.items() if path.suffix == ".cu"}
    assert len(texts) > 60
    headers = set()
    for path in tracked:
        if path.parts[0] == "kernels_src" and path.suffix == ".cuh":
            headers |= kernels((root / path).read_text())[1]
    problems = [f"{name} is no text" for name in {*INSTANCES, *CLUSTER_INSTANCES} - set(texts)]
    for name, path in sorted(texts.items()):
        instances = [*(INSTANCES.get(name) or ()), *(CLUSTER_INSTANCES.get(name) or ())]
        problems += problems_of(path, (root / path).read_text(), instances, headers)
    assert not problems, "\n".join(problems)


def test_the_lint_finds_templates_without_instances():
    text = """template <typename T, int N>
    __global__ void __launch_bounds__(N) first(T* x) {}
    __global__ void second(int* x) {}  // template <int N> __global__ void third()
    """
    assert kernels(text) == ({"first"}, {"first", "second"})
    assert list(problems_of("a.cu", text, ["second", "fourth<int>"])) == [
        "a.cu: the template first has no instance",
        "a.cu: there is no kernel fourth",
    ]
