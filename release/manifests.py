"""Write the metadata that all manifests share: version, pins among our distributions, classifiers, addresses, licence.

    python -m release.manifests    # after a change of core/heald/runtime/version.py, or of a constant below

The rest of a manifest is written by hand. Examples are the templates of `heald new`: they get no address of heald, and
a copy of one has no licence text of heald.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT_URL = ""  # the repository on the web; while it is empty, no distribution has an address
PYTHONS = ("3.11", "3.12", "3.13")
CLASSIFIERS = (
    "Development Status :: 4 - Beta",
    "Intended Audience :: Developers",
    "Intended Audience :: Science/Research",
    "Operating System :: OS Independent",
    "Programming Language :: Python :: 3 :: Only",
    *(f"Programming Language :: Python :: {python}" for python in PYTHONS),
    "Topic :: Scientific/Engineering :: Artificial Intelligence",
    "Typing :: Typed",
)
PAGES = {"Repository": "", "Documentation": "/blob/HEAD/docs/README.md", "Changelog": "/blob/HEAD/CHANGELOG.md"}

_OURS = r"(?<=[\"'])(?P<name>heald(?:-[a-z-]+)?(?:\[[a-z,]+\])?)"
_PIN = re.compile(_OURS + r"==[0-9][0-9a-z.+]*")
_RANGE = re.compile(_OURS + r">=[0-9][0-9a-z.+]*,<[0-9][0-9a-z.]*")
_VERSION = re.compile(r'^version = ".*\n', re.MULTILINE)
_CLASSIFIERS = re.compile(r"^classifiers = \[\n(?: .*\n)*\]\n", re.MULTILINE)
_PYTHON = re.compile(r"^requires-python = .*\n", re.MULTILINE)
_URLS = re.compile(r"^\[project\.urls\]\n(?:.+\n)*\n", re.MULTILINE)
_TARGETS = re.compile(r"^\[tool\.", re.MULTILINE)


def folders() -> list[Path]:
    """The folders of all distributions, the meta distribution first."""
    patterns = ("pyproject.toml", "*/pyproject.toml", "plugins/*/pyproject.toml")
    return [manifest.parent for pattern in patterns for manifest in sorted(ROOT.glob(pattern))]


def is_template(folder: Path) -> bool:
    return folder.name.startswith("example_")


def project_version() -> str:
    """The version of all distributions, `__version__` of heald."""
    source = (ROOT / "core/heald/runtime/version.py").read_text("utf-8")
    (version,) = re.findall(r'^__version__ = "(.*)"$', source, re.MULTILINE)
    return str(Version(version))


def compatible_range(version: str) -> str:
    """The versions that promise to work with `version`: of one minor version before 1.0, of one major after."""
    parsed = Version(version)
    lowest = version if parsed.is_prerelease else f"{parsed.major}.{parsed.minor}"
    beyond = f"0.{parsed.minor + 1}" if parsed.major == 0 else f"{parsed.major + 1}"
    return f">={lowest},<{beyond}"


def renew_manifest(text: str, version: str, project_url: str) -> str:
    """The text of a manifest with this version, these addresses and our classifiers."""
    text, count = _VERSION.subn(f'version = "{version}"\n', text)
    if count != 1:
        raise ValueError(f"{count} lines of a manifest are `version = ...`; one is expected")
    text = _PIN.sub(rf"\g<name>=={version}", text)
    text = _RANGE.sub(rf"\g<name>{compatible_range(version)}", text)
    text = _PYTHON.sub(rf"\g<0>{_classifier_lines()}", _CLASSIFIERS.sub("", text), count=1)
    text = _URLS.sub("", text)
    return _TARGETS.sub(rf"{_url_table(project_url)}\g<0>", text, count=1) if project_url else text


def _classifier_lines() -> str:
    return "".join(("classifiers = [\n", *(f'    "{classifier}",\n' for classifier in CLASSIFIERS), "]\n"))


def _url_table(project_url: str) -> str:
    rows = (f'{label} = "{project_url}{page}"\n' for label, page in PAGES.items())
    return "".join(("[project.urls]\n", *rows, "\n"))


def stale_files() -> Iterator[tuple[Path, bytes]]:
    """The files of distributions that `renew_manifest` or a new LICENSE changes, and their new content."""
    licence = (ROOT / "LICENSE").read_bytes()
    for folder in folders():
        manifest = folder / "pyproject.toml"
        url = "" if is_template(folder) else PROJECT_URL
        renewed = renew_manifest(manifest.read_text("utf-8"), project_version(), url).encode()
        for path, content in ((manifest, renewed), (folder / "LICENSE", licence)):
            if not path.exists() or path.read_bytes() != content:
                yield path, content


def main() -> int:
    for path, content in list(stale_files()):
        path.write_bytes(content)
        sys.stdout.write(f"written: {path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
