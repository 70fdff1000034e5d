"""The templates of `heald new` in wheel and sdist: copies of the example plugins beside this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KINDS = ("device", "kernels", "ops", "pass")
FILES = {"loader": "scale_loader.py", "queue": "last_in_first_out.py", "allocator": "page_allocator.py",
         "handler": "batching_handler.py", "command": "count_command.py",
         "compiler": "blocked_compiler.py"}  # in `examples/`
CONTENT = ("pyproject.toml", "README.md", "heald_example_*", "tests")


class Templates(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the examples, unless this folder is an sdist, which has their copies, or is installed as editable."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = Path(self.root)
        if version != "editable" and not (folder / "PKG-INFO").exists():
            for kind in KINDS:
                files = {str(path): f"heald_tools/templates/{kind}/{path.name}"
                         for path in template_files(folder.parent / f"example_{kind}")}
                build_data["force_include"].update(files)
            examples = folder.parents[1] / "examples"
            build_data["force_include"].update(
                {str(examples / name): f"heald_tools/templates/{kind}.py" for kind, name in FILES.items()})


def template_files(example: Path) -> Iterator[Path]:
    """Files and folders of an example that are a template. Caches and the licence text stay."""
    if not example.is_dir():
        raise FileNotFoundError(f"{example}: `heald new` needs this example as a template; build heald-tools in a "
                                "checkout of heald, or from its sdist")
    for pattern in CONTENT:
        yield from sorted(example.glob(pattern))
