"""The tree of commands, exit statuses, and the output to stderr."""

import os
import subprocess
import sys
import warnings

import heald
import pytest
from builders.graphs import node, placeholder
from heald.cli import main
from heald.cli.commands import translate
from heald.errors import DataLoss, HealdWarning, Location
from heald.runtime.support import mapped_file

COMMANDS = ("run", "bench", "diff", "inspect", "explain", "devices", "plugins", "ops", "config", "translate")
HEAVY = ("numpy", "google.protobuf", "tabulate", "pluggy", "tqdm")


def raising(error, monkeypatch):
    def fail(_):
        raise error

    monkeypatch.setattr(translate, "translate", fail)


def test_version_is_one_line(command):
    assert command("--version") == (0, f"heald {heald.__version__}\n", "")


def test_help_names_every_command(command):
    done = command("--help")
    assert done.status == 0
    assert [name for name in COMMANDS if f"    {name} " not in done.out] == []


def test_help_before_a_command_is_that_of_heald(command):
    assert command("--help", "inspect") == command("--help")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(command, name):
    done = command(name, "--help")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"usage: heald {name} ")


@pytest.mark.parametrize("arguments", ["", "nonsense", "run", "translate a.pb", "run m.pb --repeat 0", "config set"])
def test_wrong_usage_is_status_2(command, arguments):
    done = command(*arguments.split())
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("usage: heald ")


@pytest.mark.parametrize(("argument", "loaded"), [("--version", []), ("--help", [])])
def test_version_and_help_import_nothing_heavy(argument, loaded):
    code = f"""
import sys
from heald.cli import main
try:
    main([{argument!r}])
except SystemExit:
    pass
print([name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == str(loaded)


def test_help_imports_no_module_of_a_command():
    code = """
import sys
from heald.cli import main
main(["--help"])
names = {name for package in ("heald.cli", "heald_tools") for name in sys.modules if name.startswith(f"{package}.")}
print(sorted(names))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "    bench " in done.stdout
    assert done.stdout.splitlines()[-1] == str([
        "heald.cli.commands", "heald.cli.commands.arguments", "heald.cli.printing", "heald.cli.printing.notices",
        "heald.cli.printing.progress", "heald.cli.printing.standard_streams", "heald_tools.plugin"])


def test_an_error_is_told_with_place_hint_and_cause(command, monkeypatch):
    location = Location("m.pb", 3)
    error = DataLoss("the file\nends", node="n", op="Op", device="CPU:0", location=location, hint="copy it again")
    error.__cause__ = EOFError("at 12")
    raising(error, monkeypatch)
    assert command("translate", "a.pb", "-o", "b.pb") == (1, "", (
        "error: m.pb:3: the file ends\n"
        "  hint: copy it again\n"
        "  where: node 'n', op Op, device CPU:0\n"
        "  cause: EOFError: at 12\n"
    ))


def test_a_failing_file_is_told_without_a_traceback(command, monkeypatch):
    raising(PermissionError(13, "Permission denied", "out.npz"), monkeypatch)
    assert command("translate", "a.pb", "-o", "b.pb") == (1, "", "error: out.npz: Permission denied\n")


def test_a_fault_of_heald_is_told_with_its_traceback(command, monkeypatch):
    raising(ZeroDivisionError("oops"), monkeypatch)
    done = command("translate", "a.pb", "-o", "b.pb")
    assert done.status == 1
    assert done.err.startswith("error: ZeroDivisionError: oops\n  hint: this is a fault of heald")
    assert "Traceback" in done.err


def test_interrupting_is_status_130_and_silent(command, monkeypatch):
    raising(KeyboardInterrupt, monkeypatch)
    assert command("translate", "a.pb", "-o", "b.pb") == (130, "", "")


def test_warnings_are_one_line_each_and_told_once(command, monkeypatch):
    def warn(_):
        for _ in range(2):
            warnings.warn("it runs\r\nelsewhere", HealdWarning, stacklevel=1)
        return 0

    monkeypatch.setattr(translate, "translate", warn)
    assert command("translate", "a.pb", "-o", "b.pb") == (0, "", "warning: it runs\\r\\nelsewhere\n")


def test_a_request_of_the_graph_for_a_device_that_is_not_there_is_a_warning(command, saved):
    done = command("run", saved(placeholder("x", ()), node("y", "Neg", "x", device="NOSUCH:0")), "--input", "1")
    assert done.status == 0
    assert done.err.startswith("warning: nothing runs on NOSUCH:0: no plugin brings the device type NOSUCH")


def test_statuses_reach_the_shell(process):
    assert process("--version") == (0, f"heald {heald.__version__}\n", "")
    done = process("inspect", "nothere.pb")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("error: nothere.pb: no such file")
    assert process("nonsense").status == 2


def test_names_that_the_terminal_cannot_write_are_escaped(saved):
    model = saved(placeholder("x", ()), node("y", "Größe", "x"))
    done = subprocess.run([sys.executable, "-m", "heald", "inspect", model], capture_output=True, text=True, check=True,
                          env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert "Gr\\xf6\\xdfe" in done.stdout


def test_a_closed_pipe_ends_quietly():
    arguments = [sys.executable, "-m", "heald", "ops", "--all"]
    writer = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.readline()
    writer.stdout.close()
    assert writer.stderr.read() == b""
    writer.stderr.close()
    assert writer.wait(30) == 141


def test_main_takes_arguments_as_a_list(capsys):
    assert main(["ops", "MatMul"]) == 0
    assert capsys.readouterr().out.startswith("MatMul(")


@pytest.mark.parametrize("arguments", [
    ("inspect",), ("explain",), ("ops", "--missing"), ("run", "--input", "x=[1]"), ("bench", "--duration", "0.01"),
    ("diff", "--device", "CPU:0", "--input", "x=[1]"),
], ids=lambda arguments: arguments[0])
def test_a_model_is_mapped_unless_told_otherwise(command, saved, monkeypatch, arguments):
    model = saved(placeholder("x", (1,)), node("y", "Neg", "x"))
    maps = []

    class Counted(mapped_file.MappedFile):
        @classmethod
        def of(cls, *arguments_of_open):
            maps.append(arguments_of_open)
            return super().of(*arguments_of_open)

    monkeypatch.setattr(mapped_file, "MAPPED_FROM_BYTES", 1)
    monkeypatch.setattr(mapped_file, "MappedFile", Counted)
    name, *options = arguments
    arguments_of_open = (name, *options, model) if name == "ops" else (name, model, *options)
    for flags, mapped in (("--no-mmap",), False), ((), True):
        done = command(*arguments_of_open, *flags)
        assert (done.status, bool(maps)) == (0, mapped), done.err
