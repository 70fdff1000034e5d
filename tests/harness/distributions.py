"""Throw-away distributions, laid out in a folder as an installer does, and a fresh interpreter that sees them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

PREAMBLE = """
import json, sys, warnings
import heald
from heald.runtime.config.config import load_config
from heald.runtime.discovery.discovery import load_plugins

def shown(records):
    names = ("id", "status", "module", "distribution", "version", "reason", "remedy", "traceback")
    return [{n: getattr(r, n) for n in names} | {"registered": dict(r.registered)} for r in records]

def tell(**facts):
    print(json.dumps(facts))
"""


class Site:
    """A folder on sys.path of a fresh interpreter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.libraries = folder / "site"
        self.libraries.mkdir(parents=True)

    def add(
        self, name: str, plugins: Mapping[str, str], files: Mapping[str, str], *, version: str = "1.0",
        requires: Iterable[str] = ("heald-core>=0.1",),
    ) -> None:
        """Install a distribution: `plugins` are its entry points, `files` its modules."""
        for path, text in distribution_files(name, plugins, files, version, requires).items():
            target = self.libraries / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")

    def wheel(self, name: str, plugins: Mapping[str, str], files: Mapping[str, str], *, version: str) -> Path:
        """The same distribution as a wheel."""
        path = self.folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for member, text in distribution_files(name, plugins, files, version, ()).items():
                archive.writestr(member, text)
        return path

    def run(self, code: str, *, env: Mapping[str, str] | None = None, status: int = 0) -> Any:
        """The values that `code` hands to `tell(...)` in a fresh interpreter where warnings are errors."""
        inherited_environ = {k: v for k, v in os.environ.items() if not k.startswith("HEALD_")}
        site_environ = {"PYTHONPATH": str(self.libraries), "XDG_CONFIG_HOME": str(self.folder)}
        environ = inherited_environ | site_environ | dict(env or {})
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", PREAMBLE + textwrap.dedent(code)], cwd=self.folder, env=environ,
            capture_output=True, text=True, timeout=60, check=False,
        )
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def listing(self, *, env: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
        """Every plugin's record, by id."""
        records = self.run("tell(records=shown(load_plugins(load_config()).listing()))", env=env)["records"]
        return {record["id"]: record for record in records}


def distribution_files(
    name: str, plugins: Mapping[str, str], files: Mapping[str, str], version: str, requires: Iterable[str]
) -> dict[str, str]:
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    entries = "".join(f"{plugin} = {module}\n" for plugin, module in plugins.items())
    content = {path: textwrap.dedent(text) for path, text in files.items()} | {
        f"{info}/METADATA": metadata + "".join(f"Requires-Dist: {line}\n" for line in requires) + "\nText.\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n\n[heald.plugins]\n{entries}",
    }
    record = "".join(f"{path},,\n" for path in [*content, f"{info}/RECORD"])
    return content | {f"{info}/RECORD": record}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "installed")


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("shared") / "installed")
