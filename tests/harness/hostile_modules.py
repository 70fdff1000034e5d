"""A folder of modules that a stranger put beside a program. Each one that is imported leaves a mark."""

from __future__ import annotations

from pathlib import Path

NAMES = ("numpy", "json", "random", "heald", "heald_ray", "heald_serve", "ray", "pandas", "pyarrow", "starlette",
         "google", "sitecustomize")


def write_hostile_modules(folder: Path) -> Path:
    """Fill a new folder, and return the path of the mark."""
    folder.mkdir()
    mark = folder / "mark"
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write(__file__)\nraise SystemExit\n", "utf-8")
    return mark
