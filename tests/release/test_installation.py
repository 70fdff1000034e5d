"""heald is installed from dist in a fresh environment of each Python, and the copy works: `make installation`.

Third parties' wheels come from the package index into the user's cache, before: the installation itself uses no index.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from heald_tools import new
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from workers.opencl_runtime import unpacked_environment

from release import wheels

if "HEALDTEST_PYTHONS" not in os.environ:
    pytest.skip("fresh environments of each Python take minutes: make installation", allow_module_level=True)

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits"
WANTED = "heald[opencl,mlir,serve]"
PLUGINS = {"cpu", "eager", "heald", "mlir", "onednn", "opencl", "saved_model", "serve", "simplify", "tf_ops", "tools"}
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "heald", "third-parties")


def third_parties(metadata: dict[str, Metadata], requested: Requirement) -> Iterator[str]:
    """The requirements of others that a requirement of our distributions brings."""
    ours = metadata.get(canonicalize_name(requested.name))
    if ours is None:
        yield f"{requested.name}{requested.specifier}"
        return
    for requirement in ours.requires_dist or ():
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *requested.extras)):
            yield from third_parties(metadata, requirement)


def metadata_of(wheel: Path) -> Metadata:
    (text,) = (text for name, text in wheels.wheel_contents(wheel).items() if name.endswith(".dist-info/METADATA"))
    return Metadata.from_email(text)


def pyenv_root() -> Path:
    if "PYENV_ROOT" in os.environ:
        return Path(os.environ["PYENV_ROOT"])
    pyenv = shutil.which("pyenv")
    if pyenv is None:
        return Path("~/.pyenv").expanduser()
    return Path(run(pyenv, "root", cwd=Path.cwd(), env=dict(os.environ)).strip())


def newest_interpreter(python: str) -> Path:
    paths = list(pyenv_root().glob(f"versions/{python}.*/bin/python"))
    if not paths:
        pytest.skip(f"pyenv has no Python {python} in {pyenv_root()}")
    return max(paths, key=lambda path: Version(path.parts[-3]))


def run(*command: object, cwd: Path, env: dict[str, str]) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=600)
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


class Installation(NamedTuple):
    """An environment with heald, and a working folder from which no file of heald and no setting is in reach."""

    programs: Path
    folder: Path
    env: dict[str, str]

    def run(self, program: str, *arguments: object) -> str:
        return run(self.programs / program, *arguments, cwd=self.folder, env=self.env)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    wheels.build_all(folder)
    return folder


@pytest.fixture(scope="module", params=os.environ["HEALDTEST_PYTHONS"].split())
def installation(request: pytest.FixtureRequest, dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    python, folder = newest_interpreter(request.param), tmp_path_factory.mktemp(request.param)
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(("HEALD", "PIP_", "PYTHON"))}
    homes = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), str(folder))
    env = inherited | unpacked_environment() | homes | {"PIP_CONFIG_FILE": os.devnull}
    target = Installation(folder / "environment" / "bin", folder, env)
    run(python, "-m", "venv", folder / "environment", cwd=folder, env=env)
    target.run("python", "-m", "pip", "install", "--no-index", "--find-links", dist,
               "--find-links", third_party_wheels(target, dist, CACHE / request.param), WANTED)
    return target


def third_party_wheels(target: Installation, dist: Path, to: Path) -> Path:
    """The folder with the wheels of others that an installation takes, from the index that the user's pip asks."""
    metadata = {canonicalize_name(m.name): m for m in map(metadata_of, dist.glob("*.whl"))}
    requirements = target.folder / "third_parties.txt"
    requirements.write_text("\n".join(sorted(set(third_parties(metadata, Requirement(WANTED))))), "utf-8")
    run(target.programs / "python", "-m", "pip", "download", "--only-binary", ":all:", "-d", to, "-r", requirements,
        "-c", ROOT / "constraints.txt", cwd=target.folder, env=dict(os.environ))
    return to


def test_an_installation_has_every_requirement_and_usable_plugins(installation):
    installation.run("python", "-m", "pip", "check")
    states = {row["id"]: row["status"] for row in json.loads(installation.run("heald", "plugins", "--json"))}
    assert set(states) | {"onednn"} == PLUGINS  # which is for Linux on x86-64 alone
    assert set(states.values()) == {"ok"}, states


def test_the_devices_of_an_installation_pass_their_check_or_lack_a_driver(installation):
    done = subprocess.run([installation.programs / "heald", "devices", "--check", "--json"], cwd=installation.folder,
                          env=installation.env, capture_output=True, text=True, check=False)
    checks = {row["type"]: row for row in json.loads(done.stdout)}
    assert set(checks) == {"CPU", "OPENCL"}
    assert checks["CPU"]["check"] == "PASS"
    assert checks["OPENCL"]["check"] == "PASS" or "driver" in checks["OPENCL"]["reason"]


def test_an_installation_classifies_the_digits(installation):
    assert "529 of 540 test images" in installation.run("python", DIGITS / "demo.py")


def test_the_parts_of_an_installation_come_from_its_environment_and_work(installation):
    installation.run("python", "-W", "error", ROOT / "tests" / "workers" / "installed_copy.py", DIGITS)


def test_an_installation_serves_the_digits(installation):
    installation.run("python", "-W", "error", ROOT / "tests" / "workers" / "installed_server.py", DIGITS)


@pytest.mark.parametrize("other", ["tensorflow", "tritonclient[all]"])
def test_the_server_resolves_beside_other_users_of_protobuf_and_grpc(installation, dist, other):
    """The index is asked for their requirements, and nothing is installed: TensorFlow has 600 MB."""
    run(installation.programs / "python", "-m", "pip", "install", "--dry-run", "--find-links", dist, WANTED, other,
        cwd=installation.folder, env=dict(os.environ))


@pytest.mark.parametrize("kind", sorted(new.NEXT))
def test_an_installation_starts_plugins_of_each_kind(installation, kind):
    installation.run("heald", "new", kind, f"my-{kind}")
    assert (installation.folder / f"my-{kind}" / "pyproject.toml").exists()
