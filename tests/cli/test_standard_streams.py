"""Closed, full and unread outputs, and terminals that lack letters: each ends with one clear line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the redirections are of a POSIX shell")
FULL = "error: standard output: No space left on device\n"
CLOSED = "error: standard output: Bad file descriptor\n"


def run(arguments: str, *, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run heald by a shell, with redirections among the arguments."""
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith(("HEALD_", "LC_", "PYTHONUNBUFF"))}
    environment |= {"HEALD_PLUGINS__ALLOW": "cpu, tf_ops", "XDG_CONFIG_HOME": str(folder)}
    return subprocess.run(["/bin/sh", "-c", f'exec "$0" -m heald {arguments}', sys.executable], cwd=folder, timeout=60,
                          capture_output=True, encoding="utf-8", env=environment | environ, check=False)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["--version", "--help", "config show", "config show --json"])
@pytest.mark.parametrize(("redirection", "error"), [(">&-", CLOSED), (">/dev/full", FULL), (">&- <&-", CLOSED)])
def test_an_output_that_cannot_be_written_is_an_error_of_one_line(command, redirection, error, unbuffered, tmp_path):
    if "full" in redirection and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    done = run(f"{command} {redirection}", folder=tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stderr) == (1, error)


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "2>&- <&-"])
def test_results_and_status_are_the_same_without_a_place_for_errors(redirection, tmp_path):
    (tmp_path / "heald.toml").write_text("[work_queue]\nthreads = -1\n")  # a warning
    for arguments, status in (("config show", 0), ("inspect nothing.pb", 1), ("nothing", 2)):
        usual = run(arguments, folder=tmp_path)
        done = run(f"{arguments} {redirection}", folder=tmp_path)
        assert usual.stderr != ""
        assert (done.returncode, done.stdout, done.stderr) == (status, usual.stdout, "")


def test_a_file_that_is_written_while_standard_outputs_are_closed_has_its_content_alone(tmp_path):
    (tmp_path / "heald.toml").write_text("[work_queue]\nthreads = -1\n")
    run("config trust heald.toml >&- 2>&-", folder=tmp_path)
    run("config show >usual 2>&1", folder=tmp_path)
    assert (tmp_path / "usual").read_text().startswith("warning: ")
    code = "from heald.cli import main; main(['--version']); f = open('own', 'w'); print(f.fileno(), file=f)"
    subprocess.run(["/bin/sh", "-c", f'exec "$0" -c "{code}" >&- 2>&- <&-', sys.executable], cwd=tmp_path, check=False)
    assert int((tmp_path / "own").read_text()) > 2


def test_json_is_json_on_a_terminal_that_lacks_its_letters(tmp_path):
    (tmp_path / "ü.toml").write_text("[plugin.ü]\nx = 'ü'\n", encoding="utf-8")
    (tmp_path / "own.toml").write_text("[plugin.x]\nx = 'ü \U0001f600'\n", encoding="utf-8")
    done = run("config show --json --config own.toml", folder=tmp_path, LC_ALL="C", PYTHONUTF8="0",
               PYTHONCOERCECLOCALE="0")
    assert {row["key"]: row["value"] for row in json.loads(done.stdout)}["plugin.x.x"] == "ü \U0001f600"
    done = run("config show --json --config own.toml", folder=tmp_path, PYTHONUTF8="1")
    assert "ü \U0001f600" in done.stdout


def test_a_path_in_other_letters_than_the_locales_is_told_in_one_line(tmp_path):
    done = run("inspect ü.pb", folder=tmp_path, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 1
    assert done.stderr.startswith("error: \\udcc3\\udcbc.pb: ")
    assert len(done.stderr.splitlines()) == 1
