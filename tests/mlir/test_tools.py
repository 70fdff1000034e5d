"""The tools for host programs: commands of heald, and TFRT's programs."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import heald
import pytest
from harness.command_line import command, own_runtime  # noqa: F401 - fixtures
from heald_mlir import bef_executor, bef_executor_lite, tfrt_opt, tfrt_translate

SUM = """
func.func @argument(%a: i32) { "tfrt.return"() : () -> () }
func.func @main() -> (i32, f32, i1) {
  %x = "tfrt.constant.i32"() {value = 20 : i32} : () -> i32
  %y = "tfrt.add.i32"(%x, %x) : (i32, i32) -> i32
  %f = "tfrt.constant.f32"() {value = 0.5 : f32} : () -> f32
  %t = "tfrt.constant.i1"() {value = true} : () -> i1
  "tfrt.return"(%y, %f, %t) : (i32, f32, i1) -> ()
}
func.func @bad() -> i32 {
  %x = "tfrt.constant.i32"() {value = 0 : i32} : () -> i32
  %q, %r = "tfrt.div.i32"(%x, %x) : (i32, i32) -> (i32, i32)
  "tfrt.return"(%q) : (i32) -> ()
}
"""
RAN = """Choosing memory leak check allocator.
Choosing single-threaded work queue.
--- Not running 'argument' because it has arguments.
--- Running 'main':
'main' returned 40,5.000000e-01,1
"""


@pytest.fixture
def files(tmp_path):
    text, binary = tmp_path / "p.mlir", tmp_path / "p.bef"
    text.write_text(SUM)
    assert tfrt_translate.main(["-mlir-to-bef", str(text), "-o", str(binary)]) == 0
    return str(text), str(binary)


def test_the_executor_prints_its_protocol(files, capsys):
    text, binary = files
    for file in (text, binary):
        assert bef_executor.main([file, "-functions", "argument,main"]) == 0
        assert capsys.readouterr().out == RAN


def test_an_error_that_no_comment_expects_is_status_1_at_its_place(files, capsys):
    text, binary = files
    assert bef_executor.main([binary, "--functions=bad", "--print_error_code"]) == 1
    out, err = capsys.readouterr()
    assert out.endswith("'bad' returned <<error: Divide by zero, code: INVALID_ARGUMENT>>\n")
    assert err.startswith(f"{text}:12:12: error: unexpected error: runtime error: Divide by zero\n")


@pytest.mark.parametrize(("options", "line"), [
    (["--work_queue_type=mstd:2,5"], "Choosing Multi-threaded C++ work queue (2 threads, 5 blocking threads) work"),
    (["-host_allocator_type", "malloc"], "Choosing malloc."),
    (["--host_allocator_type=test_fixed_size_1k"], "Choosing fixed size malloc."),
    (["--test_init_function=main"], "--- Running 'main':\n'main' returned 40,5.000000e-01,1\n--- Not running"),
])
def test_options_of_the_executor(files, capsys, options, line):
    bef_executor.main([*options, files[1]])
    assert line in capsys.readouterr().out


def test_wrong_usage_is_status_1(files, capsys):
    assert bef_executor.main([files[1], "--functions=nope"]) == 1
    assert capsys.readouterr().err == "bef_executor: couldn't find function nope\n"
    assert bef_executor.main([files[1], "--work_queue_type=fast"]) == 1
    assert "no work queue is called 'fast'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        bef_executor.main(["--no_such_option"])
    assert ended.value.code == 1
    assert bef_executor_lite.main(["/no/file"], "bef_executor_lite") == 1


def test_standard_input_and_output_are_the_defaults(files, capsysbinary, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(files[1]).read_bytes())))
    assert tfrt_translate.main(["--bef-to-mlir=true"]) == 0
    text = capsysbinary.readouterr().out.decode()
    assert heald.mlir.dumps(heald.mlir.loads(SUM)) == text


def test_commands_choose_by_the_file(command, files, tmp_path, capsys):  # noqa: F811
    text, binary = files
    done = command("run", text, "main")
    assert (done.status, done.out) == (0, RAN.replace("--- Not running 'argument' because it has arguments.\n", ""))
    assert command("run", binary, "main").out == done.out
    other = tmp_path / "q.bef"
    assert command("translate", text, "-o", other).status == 0
    assert heald.HostProgram.load(other).run("main")[0].get() == 40
    back = tmp_path / "q.mlir"
    assert command("translate", other, "-o", back, "--mlir-print-op-generic").status == 0
    assert back.read_text().startswith('"builtin.module"')
    done = command("translate", text, "-o", tmp_path / "q.pb")
    assert (done.status, "programs are written as .bef and .mlir" in done.err) == (1, True)


def test_opt_is_a_command(command, files, tmp_path):  # noqa: F811
    out = tmp_path / "out.mlir"
    assert command("opt", "--canonicalize", files[0], "-o", out).status == 0
    assert heald.mlir.load(out).functions.keys() == {"argument", "main", "bad"}
    assert tfrt_opt.main(["-inline", files[0], "-o", str(out)]) == 0


ENDLESS = """
func.func @forever() {
  %yes = tfrt.constant.i1 true
  tfrt.while %yes @turn() : () -> ()
  tfrt.return
}
func.func @turn() -> i1 {
  %yes = tfrt.constant.i1 true
  tfrt.return %yes : i1
}
"""


def test_a_program_ends_at_the_time_limit_of_its_command(command, tmp_path):  # noqa: F811
    text, binary = tmp_path / "p.mlir", tmp_path / "p.bef"
    text.write_text(ENDLESS)
    assert command("translate", text, "-o", binary).status == 0
    for file in (text, binary):
        done = command("run", file, "forever", "--timeout", "0.02")
        assert done.status == 1
        assert "function 'forever' took longer than its timeout of 0.02 s" in done.err
    assert command("run", text, "turn", "--timeout", "60").status == 0
