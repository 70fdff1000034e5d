"""Build every distribution: an sdist of its folder, and a wheel of the unpacked sdist.

    python -m release.wheels    # into dist/, in place of heald's files there

hatchling builds in this process: an isolated environment for each of the distributions would take longer than all
builds. Builds are reproducible: equal folders give equal bytes.
"""

from __future__ import annotations

import os
import sys
import tarfile
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from hatchling.build import build_sdist, build_wheel
from tabulate import tabulate
from tqdm import tqdm

from .manifests import ROOT, folders, stale_files


def build_distribution(folder: Path, to: Path) -> tuple[Path, Path]:
    """The sdist of a folder, and the wheel of this sdist."""
    with chdir(folder):
        sdist = to / build_sdist(str(to))
    with TemporaryDirectory(prefix="heald-sdist-") as unpacked:
        with tarfile.open(sdist) as archive:
            archive.extractall(unpacked, filter="data")
        (source,) = Path(unpacked).iterdir()
        return sdist, build_wheel_of(source, to)


def build_wheel_of(folder: Path, to: Path) -> Path:
    """The wheel of a distribution's folder or unpacked sdist."""
    with chdir(folder):
        return to / build_wheel(str(to))


def wheel_contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel by their paths in it."""
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def build_all(to: Path) -> list[tuple[Path, Path]]:
    """Sdist and wheel of every distribution, which take the places of heald's files in the folder `to`."""
    to.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix=".heald-", dir=to) as aside:
        built = [build_distribution(folder, Path(aside)) for folder in tqdm(folders(), disable=None)]
        for old in to.glob("heald*"):
            old.unlink()
        return [(sdist.rename(to / sdist.name), wheel.rename(to / wheel.name)) for sdist, wheel in built]


def main() -> int:
    stale = [str(path.relative_to(ROOT)) for path, _ in stale_files()]
    if stale:
        sys.stderr.write(f"error: {', '.join(stale)}: not as python -m release.manifests writes them; run it first\n")
        return 1
    rows = [(wheel.name, _kilobytes(wheel), len(wheel_contents(wheel)), _kilobytes(sdist))
            for sdist, wheel in build_all(ROOT / "dist")]
    sys.stdout.write(f"{tabulate(rows, headers=['wheel', 'kB', 'files', 'kB of sdist'])}\n"
                     f"{2 * len(rows)} files in dist{os.sep}\n")
    return 0


def _kilobytes(path: Path) -> float:
    return round(path.stat().st_size / 1000, 1)


if __name__ == "__main__":
    sys.exit(main())
