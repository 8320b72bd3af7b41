"""Files and folders stay readable: 500 lines of 100 columns, 25 nouns."""

MAX_LINES = 500
MAX_COLUMNS = 100
# A header, its source and its kernel text are one noun.
MAX_NOUNS = 25
CODE = {"runtime", "jit", "worker", "tune", "kernels_src", "engine", "bindings"}
SOURCES = {".h", ".cpp", ".py", ".pyi", ".cu", ".cuh", ".cmake", ".sh"}
# Tables and generated text may be longer.
TABLES = {".inc", ".def"}
# One row per function: a row can be found and sorted as a line.
ROWS = {"runtime/driver/driver_api.def", "runtime/driver/nvrtc_api.def"}
LONG_BY_NATURE = {
    "runtime/driver/driver_types.h",  # the driver's ABI, one table of declarations
    "bindings/python/kernwright/_core.pyi",  # the extension module, one table of declarations
}


def test_files_have_at_most_500_lines(root, tracked):
    long = []
    for path in tracked:
        if path.suffix in SOURCES and path.as_posix() not in LONG_BY_NATURE:
            lines = len((root / path).read_text().splitlines())
            if lines > MAX_LINES:
                long.append(f"{path}: {lines} lines")
    assert not long, "\n".join(long)


def test_lines_have_at_most_100_columns(root, tracked):
    wide = []
    for path in tracked:
        # The probe kernels stay as they are: stored PTX names their lines.
        if path.parts[:3] == ("tests", "sim", "sources"):
            continue
        if path.suffix in SOURCES | TABLES and path.as_posix() not in ROWS:
            for number, line in enumerate((root / path).read_text().splitlines(), 1):
                if len(line) > MAX_COLUMNS:
                    wide.append(f"{path}:{number}: {len(line)} columns")
    assert not wide, "\n".join(wide[:50])


def test_sources_begin_with_a_banner(root, tracked):
    bare = []
    for path in tracked:
        if path.suffix in {".h", ".cpp", ".cu", ".cuh", ".inc", ".def"}:
            first = (root / path).read_text().split("\n", 1)[0]
            if not first.startswith("//"):
                bare.append(str(path))
    assert not bare, "\n".join(bare)


def test_folders_have_at_most_25_nouns(tracked):
    nouns = {}
    for path in tracked:
        if path.parts[0] in CODE and path.suffix in {".h", ".cpp", ".cu", ".cuh", ".inc", ".def"}:
            nouns.setdefault(path.parent, set()).add(path.stem)
    large = {folder.as_posix() for folder, names in nouns.items() if len(names) > MAX_NOUNS}
    assert not large, f"more than {MAX_NOUNS} nouns: {sorted(large)}"
