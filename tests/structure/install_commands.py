"""The pip commands of pages and sources, and their renewal when `PUBLISHED` of `heald.runtime.support.install` changes.

    python tests/structure/install_commands.py    # writes the commands of heald's distributions into all pages anew
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heald.runtime.support import install

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for pattern in ("*.md", "docs/*.md", "*/README.md", "plugins/*/README.md")
               for path in ROOT.glob(pattern))
FOLDERS = ("core", "conformance", "device_*", "plugins", "benchmarks", "examples", "fuzz", "release")
SOURCES = sorted(path for folder in FOLDERS for top in ROOT.glob(folder) for path in top.rglob("*.py"))
REQUIREMENTS = (  # that the table is asked for
    *((name,) for name in install.DISTRIBUTIONS),
    *((f"{name}[{extra}]",) for name, row in install.DISTRIBUTIONS.items() for extra in row.extras),
    ("heald[opencl,mlir]",), ("heald", "heald-conformance"),
)
END = r"""(?=[`)"]|\\n|\s*(?:#.*)?$| && |, | \(|;)"""  # of a command in a text
COMMAND = re.compile(rf"pip install (?P<words>\S.*?){END}", re.MULTILINE)


@contextmanager
def use_names(*, published: bool) -> Iterator[None]:
    before, install.PUBLISHED = install.PUBLISHED, published
    try:
        yield
    finally:
        install.PUBLISHED = before


def table_commands(*, published: bool, upgrade: bool = False) -> list[str]:
    """The commands that the table gives, in the order of REQUIREMENTS."""
    with use_names(published=published):
        return [install.install_command(*requirements, upgrade=upgrade) for requirements in REQUIREMENTS]


def commands_in(text: str) -> list[str]:
    """The arguments of each pip command in a text, its continued lines joined."""
    return [match["words"] for match in COMMAND.finditer(re.sub(r"\\+\n\s*", "", text))]


def renew_commands(text: str, *, published: bool) -> str:
    """The text with the table's commands as they are with this switch."""
    pairs = zip(table_commands(published=not published), table_commands(published=published), strict=True)
    for old, new in pairs:
        text = re.sub(re.escape(old) + END, new.replace("\\", r"\\"), text, flags=re.MULTILINE)
    return text


def main() -> None:
    for page in PAGES:
        text = page.read_text("utf-8")
        page.write_text(renew_commands(text, published=install.PUBLISHED), "utf-8")


if __name__ == "__main__":
    main()
