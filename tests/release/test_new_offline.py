"""heald new in an environment that was installed from dist, without an index: its next command works as printed.

Libraries of other projects are the ones of this environment. A link to each of them keeps heald's own folders out.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from release import manifests, wheels

NEEDED = ("core", "conformance", "device_cpu", "tf_ops", "tools")  # the folders of the distributions


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment with heald-tools and heald-conformance from their wheels."""
    folder = tmp_path_factory.mktemp("offline")
    dist, others = folder / "dist", folder / "others"
    dist.mkdir()
    others.mkdir()
    for place in manifests.folders():
        if place.name in NEEDED:
            wheels.build_wheel_of(place, dist)
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "heald" not in path.name and path.suffix != ".pth":
            (others / path.name).symlink_to(path)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "environment"], check=True)
    (site,) = (folder / "environment").glob("lib/python*/site-packages")
    (site / "others.pth").write_text(str(others), "utf-8")
    python = folder / "environment" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--find-links", dist, "heald-tools",
                    "heald-conformance"], check=True, env=outside_environment(python.parent))
    return python.parent


def outside_environment(programs: Path) -> dict[str, str]:
    own = {name: text for name, text in os.environ.items() if not name.startswith(("HEALD", "PYTHON", "PIP_"))}
    return own | {"PATH": f"{programs}:{own['PATH']}", "PIP_CONFIG_FILE": os.devnull}


@pytest.mark.parametrize(("kind", "options"), [("device", "--conformance-quick -k memory"), ("queue", "-k task")])
def test_the_next_command_works_without_an_index(programs, tmp_path, kind, options):
    env = outside_environment(programs)
    done = subprocess.run([programs / "heald", "new", kind, "mine"], cwd=tmp_path, env=env, capture_output=True,
                          text=True, check=True)
    next_command = done.stdout.splitlines()[-1].removeprefix("next: ")
    ran = subprocess.run(["sh", "-c", f"{next_command} -q -p no:cacheprovider {options}"], cwd=tmp_path, env=env,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stdout
    assert " passed" in ran.stdout
