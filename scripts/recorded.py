"""Packs recorded test data into an archive with a manifest, and unpacks it.

    python scripts/recorded.py unpack tests/sim/ptx.tar.xz FOLDER
    python scripts/recorded.py pack tests/sim/ptx.tar.xz FOLDER

The manifest beside the archive is text (`ptx.manifest`). For each file it has the beginning of the
SHA-256, the number of lines and the name, so that a diff names what changed. The same files make
the same archive.
The build unpacks archives into its folder (cmake/Recorded.cmake).
"""

from __future__ import annotations

import argparse
import hashlib
import io
import lzma
import pathlib
import tarfile


def manifest_path(archive: pathlib.Path) -> pathlib.Path:
    return archive.with_suffix("").with_suffix(".manifest")


def manifest_line(name: str, data: bytes) -> str:
    return f"{hashlib.sha256(data).hexdigest()[:16]} {data.count(10):6} {name}"


def pack(archive: pathlib.Path, folder: pathlib.Path) -> None:
    """Replaces the archive and the manifest by the files of the folder, in order of their names."""
    plain, lines = io.BytesIO(), []
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(path for path in folder.iterdir() if path.is_file()):
            data = path.read_bytes()
            entry = tarfile.TarInfo(path.name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
            lines.append(manifest_line(path.name, data) + "\n")
    archive.write_bytes(lzma.compress(plain.getvalue(), preset=9))
    manifest_path(archive).write_text("".join(lines))


def read(archive: pathlib.Path) -> dict[str, bytes]:
    """The files of an archive, by their names."""
    with tarfile.open(archive) as tar:
        found = ((entry.name, tar.extractfile(entry)) for entry in tar)
        return {name: file.read() for name, file in found if file is not None}


def unpack(archive: pathlib.Path, folder: pathlib.Path) -> None:
    """Writes the files of the archive into the folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in read(archive).items():
        (folder / name).write_bytes(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("pack", "unpack"))
    parser.add_argument("archive", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    (pack if options.what == "pack" else unpack)(options.archive, options.folder)


if __name__ == "__main__":
    main()
