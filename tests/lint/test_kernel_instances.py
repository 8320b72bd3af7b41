"""scripts/kernel_instances follows the kernels: each template of a kernel has an instance for the
compile gate, and each instance names a kernel of its text."""

import re
import sys

# A kernel's name, and whether a template stands in front of it.
KERNEL = re.compile(
    r"(template\s*<[^;{}]*?>\s*)?(?:extern \"C\" )?__global__\s+void\s+"
    r"(?:__launch_bounds__\([^;{}]*?\)\s*)?(\w+)\s*\(",
    re.DOTALL,
)
COMMENT = re.compile(r"//[^\n]*")


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
