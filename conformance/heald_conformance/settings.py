"""heald-conformance.toml: the levels that run, the tolerances of numbers, and the cases that are known to fail.

    levels = ["discovery", "memory", "ordering", "kernels"]

    [tolerance.float16]
    rtol = 4e-3

    [expected_failures]
    "kernels.*[Softmax-float16]" = "the driver rounds to zero; fixed in 2.1"
    "OPENCL:1 memory.*" = "a device that is broken"

    recordings = "tests/recordings"    # a folder beside the file: cases of the plugin's own ops, as in `golden`
    failing_work = "acme.tests:enqueue_failure"    # of a kernel's Bind: returns a kernel whose enqueued work fails

In a pattern, `*` stands for any characters and `?` for one; a device may stand before the case. A case that is expected
to fail and passes makes the run fail.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

FILE = "heald-conformance.toml"
LEVELS = ("discovery", "memory", "ordering", "streams", "parts", "kernels", "limits", "split", "faults", "throughput")
OF_PACKS = ("kernels", "limits")  # the other levels are about devices
Tolerance = tuple[float, float]  # relative, absolute

TOLERANCES: Mapping[str, Tolerance] = MappingProxyType({
    "float64": (1e-9, 1e-9), "float32": (2e-5, 2e-5), "float16": (4e-3, 4e-3), "bfloat16": (3e-2, 3e-2),
    "complex64": (1e-4, 1e-4), "complex128": (1e-9, 1e-9), "float8_e5m2": (0.5, 0.1), "float8_e4m3fn": (0.25, 0.05),
})


class SettingsError(ValueError):
    """A settings file cannot be read. The message gives its path and the reason."""


@dataclass(frozen=True)
class Settings:
    """The settings of a run.

    `quick`: fewer and smaller cases, for a run with every commit.
    `recordings`: a folder of recorded cases of a plugin's own ops.
    `failing_work`: the place of a function that makes a kernel whose enqueued work fails, see `late_failures`.
    `pack`: the id of a plugin; its kernels alone are tested, against heald-cpu's.
    """

    levels: tuple[str, ...] = LEVELS
    tolerances: Mapping[str, Tolerance] = field(default_factory=lambda: TOLERANCES)
    expected_failures: Mapping[str, str] = field(default_factory=dict)
    quick: bool = False
    pack: str | None = None
    recordings: Path | None = None
    failing_work: str | None = None

    def tolerance(self, dtype: str) -> Tolerance:
        """The tolerance (relative, absolute) of an element type; zero for every type but floats and complex numbers."""
        return self.tolerances.get(dtype, (0.0, 0.0))

    def why_expected(self, device: str, case_id: str) -> str | None:
        """The reason for which the case is known to fail on this device, or None."""
        return next((self.expected_failures[pattern] for pattern in self.patterns_of(device, case_id)), None)

    def patterns_of(self, device: str, case_id: str) -> list[str]:
        """The expected failures that name this case on this device."""
        return [pattern for pattern in self.expected_failures
                if _matches(pattern, case_id) or _matches(pattern, f"{device} {case_id}")]


def load_settings(path: Path | None = None, *, quick: bool = False, pack: str | None = None) -> Settings:
    """Read a settings file; without a path, return the defaults. With a pack, the level "kernels" alone runs.

    Raises SettingsError.
    """
    settings = _load(path)
    levels = settings.levels if pack is None else tuple(level for level in settings.levels if level in OF_PACKS)
    return replace(settings, levels=levels, quick=quick, pack=pack)


def _load(path: Path | None) -> Settings:
    if path is None:
        return Settings()
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from None
    try:
        return _read(table, path.parent)
    except ValueError as error:
        raise SettingsError(f"{path}: {error}") from None


def _read(table: dict[str, Any], folder: Path) -> Settings:
    _check(table, ("levels", "tolerance", "expected_failures", "recordings", "failing_work"), "key")
    levels = table.get("levels", list(LEVELS))
    if not isinstance(levels, list):
        raise ValueError(f"levels must be a list, not {levels!r}")
    _check(levels, LEVELS, "level")
    tolerances = dict(TOLERANCES)
    for dtype, bounds in table.get("tolerance", {}).items():
        _check([dtype], tuple(TOLERANCES), "element type with a tolerance")
        _check(bounds, ("rtol", "atol"), f"key of tolerance.{dtype}")
        relative, absolute = tolerances[dtype]
        tolerances[dtype] = float(bounds.get("rtol", relative)), float(bounds.get("atol", absolute))
    failures = table.get("expected_failures", {})
    for pattern, reason in failures.items():
        if not isinstance(reason, str) or not reason:
            raise ValueError(f"expected_failures: '{pattern}' needs a reason")
    return Settings(tuple(level for level in LEVELS if level in levels), tolerances, failures,
                    recordings=_recordings(table.get("recordings"), folder),
                    failing_work=_failing_work(table.get("failing_work")))


def _failing_work(place: object) -> str | None:
    """The place of a function, 'package.module:function'. Raises ValueError for another value."""
    if place is not None and (not isinstance(place, str) or re.fullmatch(r"[\w.]+:\w+", place) is None):
        raise ValueError(f"failing_work must be 'package.module:function', not {place!r}")
    return place


def _recordings(name: object, folder: Path) -> Path | None:
    """The folder of recorded cases that a settings file names, beside it. Raises ValueError for another one."""
    if name is None:
        return None
    if not isinstance(name, str) or not (folder / name / "index.json").is_file():
        raise ValueError(f"recordings must be a folder with index.json beside the file, not {name!r}")
    return (folder / name).absolute()


def _check(table: Any, known_keys: tuple[str, ...], what: str) -> None:
    for name in table:
        if name not in known_keys:
            close_keys = get_close_matches(str(name), known_keys, 1)
            hint = f"did you mean {close_keys[0]}?" if close_keys else f"known: {', '.join(known_keys)}"
            raise ValueError(f"'{name}' is no {what}; {hint}")


def _matches(pattern: str, text: str) -> bool:
    """True if the whole text matches. Brackets are part of ids, and stand for themselves."""
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, text) is not None
