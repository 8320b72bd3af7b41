"""Compiles tests/sim/sources/*.cu to PTX, with one NVRTC or several.

With no folder given, the texts replace those of the same names in tests/sim/ptx.tar.xz.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import sys
import tempfile
from pathlib import Path

SIM = Path(__file__).resolve().parents[1] / "sim"
ARCHIVE = SIM / "ptx.tar.xz"
sys.path.insert(0, str(SIM.parents[1] / "scripts"))
import recorded  # noqa: E402

BASIC = (
    "saxpy",
    "sgemm_tiled",
    "reduce_shuffle",
    "atomics",
    "print_assert",
    "votes",
    "constant_memory",
)
# (suffix, sources or None for all, options); each given NVRTC compiles every set.
VARIANTS: list[tuple[str, tuple[str, ...] | None, list[str]]] = [
    ("80", None, ["-arch=compute_80", "-lineinfo"]),
    ("75", ("saxpy", "atomics", "half_math", "float_math", "local_switch"), ["-arch=compute_75"]),
    ("86", ("sgemm_register_blocked", "mma_half", "bfloat16_math"), ["-arch=compute_86"]),
    ("89", ("fp8_conversions", "half_conversions", "virtual_calls"), ["-arch=compute_89"]),
    ("80_debug", (*BASIC, "function_pointers", "inline_ptx"), ["-arch=compute_80", "-G"]),
    (
        "80_fast",
        ("softmax", "rope", "float_math", "float_arithmetic", "rmsnorm"),
        ["-arch=compute_80", "-use_fast_math"],
    ),
    ("90a", ("hopper_gemm",), ["-arch=compute_90a", "-lineinfo"]),
]

# The probes: many small kernels each. Only the oldest compiler's PTX is stored; probe_nvrtc.py
# makes and checks the others anew. libdevice's would be too large to keep.
PROBES: list[tuple[str, tuple[str, ...] | None, list[str]]] = [
    ("80", None, ["-arch=compute_80"]),
    ("75", ("probe_matrix", "probe_video"), ["-arch=compute_75"]),
    ("89", ("probe_matrix", "probe_memory"), ["-arch=compute_89"]),
]
NOT_STORED = ("probe_libdevice",)


class Nvrtc:
    """One NVRTC library and the folders of its headers."""

    def __init__(self, library: Path, includes: list[Path]) -> None:
        # NVRTC opens its builtins by name alone, and so finds a library loaded before.
        for builtins in sorted(library.resolve().parent.glob("libnvrtc-builtins.so.*")):
            ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
        self.lib = ctypes.CDLL(str(library))
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.lib.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"
        self.includes = includes or self._bundled_headers()

    def _bundled_headers(self) -> list[Path]:
        """Unpacks the headers in NVRTC 13.3 and newer."""
        if not hasattr(self.lib, "nvrtcInstallBundledHeaders"):
            raise SystemExit(f"NVRTC {self.version} carries no headers: name their folders")
        root = Path(tempfile.mkdtemp(prefix="nvrtc_headers_"))
        install = self.lib.nvrtcInstallBundledHeaders
        install.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
        if install(str(root).encode(), 0, None) != 0:
            raise SystemExit(f"NVRTC {self.version} could not unpack its headers")
        found = sorted({path.parent for path in root.rglob("cuda_fp16.h")})
        cccl = sorted({path.parent for path in root.rglob("cccl") if path.is_dir()})
        return [*found, *(folder / "cccl" for folder in cccl)]

    def compile(self, source: str, name: str, options: list[str]) -> str:
        program = ctypes.c_void_p()
        self.lib.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), name.encode(), 0, None, None
        )
        every = [
            *options,
            "--std=c++17",
            "--device-int128",
            *(f"-I{folder}" for folder in self.includes),
        ]
        array = (ctypes.c_char_p * len(every))(*(option.encode() for option in every))
        failed = self.lib.nvrtcCompileProgram(program, len(every), array) != 0
        kind = "ProgramLog" if failed else "PTX"
        size = ctypes.c_size_t()
        getattr(self.lib, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        getattr(self.lib, f"nvrtcGet{kind}")(program, text)
        self.lib.nvrtcDestroyProgram(ctypes.byref(program))
        if failed:
            raise SystemExit(f"{name} with NVRTC {self.version}: {text.value.decode()}")
        return text.value.decode()


def prune(ptx: str, includes: list[Path]) -> str:
    """Drops folder names and the many unused variables of library headers."""
    for folder in includes:
        ptx = ptx.replace(f"{folder}/", "include/")
    ptx = ptx.replace(f"{Path.cwd()}/", "")
    lines = ptx.split("\n")
    words: dict[str, int] = {}
    for word in re.findall(r"[A-Za-z_$%][\w$]*", ptx):
        words[word] = words.get(word, 0) + 1
    variable = re.compile(
        r"^(?:\.visible |\.weak )?\.(?:global|const) [^=;]*?([A-Za-z_$%][\w$]*)"
        r"(?:\[[\d ]*\])*(?: = [^;]*)?;$"
    )
    kept = []
    for line in lines:
        match = variable.match(line)
        unused = match is not None and words[match.group(1)] == 1 and "cuda" in match.group(1)
        unused = unused or (
            match is not None and words[match.group(1)] == 1 and "_ZN" in match.group(1)
        )
        if not unused:
            kept.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept))


def cut_debug_sections(ptx: str) -> str:
    """Keeps of each DWARF section the beginning and the strings that .loc directives name.

    The parser skips the sections, so a sample is enough; a GPU's assembler wants the strings.
    """
    named = set(re.findall(r"function_name (\$L__info_string\d+)", ptx))

    def shorten(match: re.Match[str]) -> str:
        head, *strings = re.split(r"^(?=\$L__info_string\d+:)", match.group(2), flags=re.M)
        kept = [text for text in strings if text.split(":")[0] in named]
        lines = head.split("\n") if strings else head.split("\n")[:12]
        return match.group(1) + "\n".join(lines) + "".join(kept).rstrip("\n") + "\n}"

    return re.sub(r"(\.section[^{]*\{)(.*?)\n\t*\}", shorten, ptx, flags=re.S)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--nvrtc",
        action="append",
        required=True,
        metavar="LIBRARY[:INCLUDE...]",
        help="an NVRTC library; without include folders its bundled headers are used",
    )
    parser.add_argument("--out", type=Path, help="a folder, in place of the archive")
    parser.add_argument("--everything", action="store_true", help="every source in every variant")
    parser.add_argument(
        "--probes", action="store_true", help="the oldest NVRTC compiles the probes alone"
    )
    arguments = parser.parse_args()
    folder = arguments.out or Path(tempfile.mkdtemp(prefix="ptx_"))
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.out is None:
        recorded.unpack(ARCHIVE, folder)
    total = 0
    compilers = []
    for text in arguments.nvrtc:
        library, *folders = text.split(":")
        compilers.append(Nvrtc(Path(library), [Path(folder) for folder in folders]))
    oldest = min(compilers, key=lambda nvrtc: [int(part) for part in nvrtc.version.split(".")])
    for nvrtc in compilers:
        sets = [(False, *row) for row in VARIANTS if nvrtc is not oldest or not arguments.probes]
        sets += [(True, *row) for row in PROBES if nvrtc is oldest]
        for are_probes, suffix, names, options in sets:
            for source in sorted((SIM / "sources").glob("*.cu")):
                if source.stem.startswith("probe_") != are_probes or source.stem in NOT_STORED:
                    continue
                if names is not None and source.stem not in names and not arguments.everything:
                    continue
                if source.stem.startswith("hopper_") and suffix != "90a":
                    continue  # instructions of 9.0
                ptx = nvrtc.compile(source.read_text(), source.name, options)
                ptx = cut_debug_sections(prune(ptx, nvrtc.includes))
                path = folder / f"{source.stem}.nvrtc{nvrtc.version}.{suffix}.ptx"
                path.write_text(ptx)
                total += len(ptx)
        print(f"NVRTC {nvrtc.version}: done, {total} bytes so far", file=sys.stderr)
    if arguments.out is None:
        recorded.pack(ARCHIVE, folder)


if __name__ == "__main__":
    main()
