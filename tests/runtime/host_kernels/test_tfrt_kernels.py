"""The kernels with which TFRT tests a host runtime: their output, the end of values, the way of errors."""

from __future__ import annotations

import re

import heald
import pytest
from builders.programs import CHAIN, Body, program
from heald.errors import Cancelled, Internal
from heald.runtime.program.host_program import native_function
from heald.runtime.values.async_value import AsyncValue
from runtime.host_kernels.conftest import payloads

ATOMIC, COORDINATE, RESOURCE, STRING, VALUE = (
    "!test.atomic.i32", "!my.coordinate", "!tfrt.test.resource", "!tfrt.string", "!vt.value")


def main(write, *types):
    """The functions of a program whose main returns the registers that `write(b)` gives."""
    b = Body(*types)
    registers = write(b)
    return [b.function("main", *(registers if isinstance(registers, tuple | list) else (registers,)))]


def strings(b):
    chain = b("tfrt_test.print_hello", b.chain(), results=CHAIN)
    first = b("tfrt_test.get_string", results=STRING, value="ab")
    both = b("tfrt_test.append_string", first, first, results=STRING)
    return b("tfrt_test.print_string", both, chain, results=CHAIN)


def coordinates(b):
    at = b("tfrt_tutorial.create_coordinate", b.constant(3), b.constant(-4), results=COORDINATE)
    return b("tfrt_tutorial.print_coordinate", at, b.chain(), results=CHAIN)


def costs(b):
    first = b("tfrt_test.test_cost", results="i32", id=1, _tfrt_cost=10)
    return b("tfrt_test.test_cost", first, results="i32", id=2, _tfrt_cost=1)


def counters(b):
    counter = b("tfrt_test.atomic.create.i32", results=ATOMIC)
    chain = b("tfrt_test.atomic.inc.i32", counter, b.chain(), results=CHAIN)
    chain = b("tfrt_test.atomic.add.i32", counter, b.constant(41), chain, results=CHAIN)
    value, chain = b("tfrt_test.atomic.get.i32", counter, chain, results=("i32", CHAIN))
    return b("tfrt.print.i32", value, chain, results=CHAIN)


def sleepers(b):
    return b("tfrt_test.blocking.usleep", b.constant(10), results=CHAIN)


@pytest.mark.parametrize(("write", "text"), [
    (strings, "hello host executor!\nstring = abab\n"), (coordinates, "(3, -4)\n"), (costs, "id: 1\nid: 2\n"),
    (counters, "int32 = 42\n"), (sleepers, "Slept for 10 microseconds\n"),
    (lambda b: b("tfrt_test.print_debug_info", b.chain(), results=CHAIN), "Kernel has no debug info\n"),
])
def test_kernels_print(give, capsys, write, text):
    give(main(write))
    assert capsys.readouterr().out == text


@pytest.mark.parametrize(("write", "values"), [
    (lambda b: b("tfrt_test.count3.i32", b.constant(4), results=("i32",) * 3), [5, 6, 7]),
    (lambda b: b("tfrt_test.identity", b.chain(), b.constant(4), results=("i32",)), [4]),
    (lambda b: b("tfrt_test.multi_arg_result", b.constant(4), b.constant(5), results=("i32", "i32")), [4, 5]),
    (lambda b: b("tfrt_test.share_to_two", b.constant(4), results=("i32", "i32")), [4, 4]),
    (lambda b: b("tfrt_test.flat", results=(STRING, "i32", "i32", "f32"), value=(("s", (1, 2)), (0.5,))),
     ["s", 1, 2, 0.5]),
    (lambda b: b("tfrt_test.copy.with_delay.i64", b("tfrt.constant.i64", results="i64", value=2**40), results="i64"),
     [2**40]),
    (lambda b: b("tfrt_test.async_add.i32", b.constant(2**31 - 1), b.constant(1)), [-(2**31)]),
    (lambda b: b("tfrt_test.async_constant.i32", value=3), [3]),
    (lambda b: b("tfrt_test.async_copy_2.i32", b("tfrt_test.async_copy.i32", b.constant(3))), [3]),
    (lambda b: b("tfrt_test.async_copy.with_delay.i32", b.constant(3)), [3]),
    (lambda b: b("tfrt_test.as_chain", b("tfrt_test.async_constant.i32", value=3), results=CHAIN), [None]),
    (lambda b: b("tfrt_test.use_sample_shared_context", b.chain(), results=(STRING, CHAIN)),
     ["sample_shared_context0", None]),
    (lambda b: b("tfrt_test.unique_loc", results=CHAIN, name="a"), [None]),
    (lambda b: b("tfrt_test.memory_leak_one_int32", results=()), []),
    (lambda b: b("tfrt_test.report_error_concrete_async", b.constant(0)), [0]),
    (lambda b: [b("tfrt.native.native_add", b.constant(2), b.constant(3)),
                b("tfrt.native.native_async_add", b.constant(2), b.constant(3))], [5, 5]),
])
def test_kernels_give_values(give, write, values):
    assert give(main(write)) == values


@pytest.mark.parametrize(("code", "message"), [
    ("tfrt_test.fail", "something bad happened"), ("tfrt.native.native_error", "something bad happened"),
    ("tfrt_test.report_error_async", "something bad happened asynchronously"),
])
def test_kernels_fail(give, code, message):
    (error,) = give(main(lambda b: b(code)))
    assert type(error) is Internal
    assert error.message == message


@pytest.mark.parametrize("kind", ["concrete", "indirect"])
def test_an_asynchronous_error_has_the_place_of_its_call(give, kind):
    (error,) = give(main(lambda b: b(f"tfrt_test.report_error_{kind}_async", b.constant(1))))
    assert error.message == "something bad happened asynchronously"
    assert (error.op, str(error.location)) == (f"tfrt_test.report_error_{kind}_async", "program.mlir:2:1")


def test_a_kernel_may_fail_in_part(give):
    good, bad = give(main(lambda b: b("tfrt_test.partial_fail", results=("i32", "i32"))))
    assert good == 1
    assert bad.message == "something bad happened"


def test_a_kernel_receives_the_place_of_its_call(run):
    (function,) = main(lambda b: [b("tfrt_test.unique_loc", results=CHAIN, name=name) for name in ("a", "b")])
    assert payloads(run(program(function))) == [None, None]
    one = function.kernels[0].location
    shared = function._replace(kernels=tuple(call._replace(location=one) for call in function.kernels))
    good, bad = sorted(payloads(run(program(shared), request=None)), key=lambda location: location is not None)
    assert good is None
    assert "have one location" in bad.message


def test_a_native_function_is_called_like_others(give):
    def write(b):
        return [b("tfrt.call", b.constant(2), b.constant(3), functions=(name,))
                for name in ("native_add", "native_async_add")] + [b("tfrt.call", functions=("native_error",))]

    pair = ("i32", "i32")
    natives = [native_function("native_add", pair, ("i32",)), native_function("native_async_add", pair, ("i32",)),
               native_function("native_error", (), ("i32",))]
    one, other, error = give([*natives, *main(write)])
    assert (one, other) == (5, 5)
    assert error.message == "something bad happened"


def test_an_error_reaches_its_dependents_only(give, capsys):
    def write(b):
        bad = b("tfrt_test.error_chain", b.chain(), results=CHAIN)
        skipped = b("tfrt_test.print_hello", bad, results=CHAIN)
        return skipped, b("tfrt.print.i32", b.constant(1), b.chain(), results=CHAIN)

    skipped, printed = give(main(write))
    assert skipped.message == "error chain"
    assert printed is None
    assert capsys.readouterr().out == "int32 = 1\n"


def test_a_cancelled_request_skips_what_has_not_begun(give, capsys):
    def write(b):
        _, chain = b("tfrt_test.cancel", b.chain(), results=("i32", CHAIN))
        return b("tfrt_test.print_hello", chain, results=CHAIN)

    (error,) = give(main(write))
    assert (type(error), error.message) == (Cancelled, "Cancelled")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("late", [False, True])
def test_results_that_exist_stay_when_the_request_is_cancelled(give, late):
    def write(b):
        before = b("tfrt_test.async_constant.i32" if late else "tfrt.constant.i32", value=5)
        chain = b("tfrt_test.as_chain", before, results=CHAIN)
        zero, chain = b("tfrt_test.cancel", chain, results=("i32", CHAIN))
        return before, zero, b("tfrt.print.i32", before, chain, results=CHAIN)

    before, zero, printed = give(main(write))
    assert (before, zero) == (5, 0)
    assert isinstance(printed, Cancelled)


def test_consumers_of_a_task_run_before_the_tasks_behind_it(capsys):
    def write(b):
        return [b("tfrt.print.i32", b.constant(number), b("tfrt_test.blocking.usleep", b.constant(number),
                                                          results=CHAIN), results=CHAIN) for number in (1, 2)]

    host = heald.HostContext(config={"plugins": {"load": ["plugins_for_tests.tfrt_test"]}},
                             work_queue="single_threaded")
    results = program(*main(write)).run("main", request=heald.RequestContext(host))
    assert host.await_values(results, timeout=20)
    assert capsys.readouterr().out == ("Slept for 2 microseconds\nint32 = 2\n"
                                       "Slept for 1 microseconds\nint32 = 1\n")
    host.close()


def test_a_region_that_runs_as_a_task_gives_its_results_later(capsys):
    body = Body("i32")
    printed = body("tfrt.print.i32", 0, body.chain(), results=CHAIN)
    functions = [body.function("body", printed, 0),
                 *main(lambda b: b("tfrt_test.do.async", b.constant(4), results=(CHAIN, "i32"), functions=("body",)))]
    host = heald.HostContext(config={"plugins": {"load": ["plugins_for_tests.tfrt_test"]}},
                             work_queue="single_threaded")
    results = program(*functions).run("main", request=heald.RequestContext(host))
    assert capsys.readouterr().out == ""
    assert host.await_values(results, timeout=20)
    assert payloads(results) == [None, 4]
    assert capsys.readouterr().out == "int32 = 4\n"
    host.close()


def test_a_region_without_results_runs_as_a_task(give, host, capsys):
    body = Body("i32")
    body("tfrt.print.i32", 0, body.chain(), results=CHAIN)
    give([body.function("body"), *main(lambda b: b("tfrt_test.do.async", b.constant(4), results=(),
                                                   functions=("body",)))])
    assert host.work_queue.quiesce(20)
    assert capsys.readouterr().out == "int32 = 4\n"


def test_a_benchmark_prints_its_times(give, capsys):
    body = Body("i32")
    b = Body()
    done = b("tfrt_test.benchmark", b.constant(1), results=CHAIN, functions=("body",), name="sum", duration_secs=10,
             max_count=20, num_warmup_runs=2)
    assert give([body.function("body", body("tfrt.add.i32", 0, 0)), b.function("main", done)]) == [None]
    lines = capsys.readouterr().out.splitlines()
    times = [f"{kind} {what}(ns)" for kind in ("Time", "CPU") for what in ("Min", "50%", "95%", "99%")]
    assert [line.split(":")[2] for line in lines] == ["Duration(ns)", "Count", *times, "CPU utilization(percent)"]
    assert all(re.fullmatch(r"BM:sum:[^:]+: \d+", line) for line in lines)
    assert "BM:sum:Count: 20" in lines


def test_logs_go_to_the_error_output(give, capsys):
    give(main(lambda b: b("tfrt_test.logging", b("tfrt_test.get_string", results=STRING, value="S"), b.chain(),
                          results=CHAIN)))
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("] ")[2] for line in lines] == [
        f"from {macro}: S" for macro in ("TFRT_LOG(INFO)", "TFRT_LOG(WARNING)", "TFRT_LOG(ERROR)",
                                         "TFRT_LOG_IF(INFO, true)", "TFRT_LOG_IF(WARNING, true)",
                                         "TFRT_LOG_IF(ERROR, true)")]
    assert all(re.match(r"[IWE] \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} \d+ \S+:\d+\] ", line) for line in lines)


# Lives


def construction(number):
    return f"constructed vt.value({number})\nmove constructed vt.value({number})\n"


def destruction(number):
    return f"destroyed vt.value({number})\n"


def value(b, number):
    return b("vt.constant", results=VALUE, value=number)


def test_a_value_without_users_is_dropped_at_once(give, capsys):
    def write(b):
        one = value(b, 1)
        b("vt.add", one, one, results=VALUE)
        return b("vt.print", one, b.chain(), results=CHAIN)

    give(main(write))
    assert capsys.readouterr().out == (
        construction(1) + construction(2) + destruction(2) + "print vt_value(1)\n" + destruction(1))


def test_operands_are_dropped_after_their_last_user(give, capsys):
    def write(b):
        total = b("vt.add", value(b, 1), value(b, 2), results=VALUE)
        return b("vt.print", total, b.chain(), results=CHAIN)

    give(main(write))
    assert capsys.readouterr().out == (
        construction(2) + construction(1) + construction(3) + destruction(1) + destruction(2)
        + "print vt_value(3)\n" + destruction(3))


def test_operands_are_dropped_after_a_user_that_waited(host, capsys):
    def write(b):
        return b("vt.print", value(b, 1), b("tfrt_test.as_chain", 0, results=CHAIN), results=CHAIN)

    late = AsyncValue()
    results = program(*main(write, "i32")).run("main", late, request=heald.RequestContext(host))
    assert capsys.readouterr().out == construction(1)
    late.emplace(1)
    assert host.await_values(results, timeout=20)
    assert capsys.readouterr().out == "print vt_value(1)\n" + destruction(1)


def test_results_live_until_the_caller_drops_them(run, capsys):
    results = run(program(*main(lambda b: value(b, 1))))
    assert capsys.readouterr().out == construction(1)
    del results
    assert capsys.readouterr().out == destruction(1)


def test_arguments_of_a_call_die_after_the_call(give, capsys):
    inner = Body(VALUE)
    printed = inner("tfrt_test.print_hello", inner.chain(), results=CHAIN)

    def write(b):
        chain = b("tfrt.call", value(b, 1), results=CHAIN, functions=("inner",))
        return b("tfrt_test.print_hello", chain, results=CHAIN)

    give([inner.function("inner", printed), *main(write)])
    hello = "hello host executor!\n"
    assert capsys.readouterr().out == construction(1) + hello + destruction(1) + hello


def test_each_iteration_of_a_loop_drops_the_values_of_the_one_before(give, capsys):
    body = Body(VALUE)
    doubled = body("vt.add", 0, 0, results=VALUE)

    def write(b):
        (last,) = b("tfrt.repeat.i32", b.constant(2), value(b, 1), results=(VALUE,), functions=("body",))
        return b("vt.print", last, b.chain(), results=CHAIN)

    give([body.function("body", doubled), *main(write)])
    text = capsys.readouterr().out
    assert text.startswith(construction(1) + construction(2))
    assert text.index(destruction(2)) < text.index("print vt_value(4)")
    assert text.endswith("print vt_value(4)\n" + destruction(4))


def test_a_resource_dies_with_its_explicit_end(give, capsys):
    def write(b):
        resource, chain = b("tfrt_test.allocate_resource", b.chain(), results=(RESOURCE, CHAIN))
        return b("tfrt_test.deallocate_resource", resource, chain, results=CHAIN)

    give(main(write))
    assert capsys.readouterr().out == ("Allocated TestResource\nDestroyed TestResource\n"
                                       "tfrt_test.deallocate_resource done\n")


@pytest.mark.parametrize("stop", ["error", "late error", "cancellation"])
def test_a_resource_dies_when_its_user_is_skipped(give, capsys, stop):
    def write(b):
        resource, chain = b("tfrt_test.allocate_resource", b.chain(), results=(RESOURCE, CHAIN))
        if stop == "error":
            chain = b("tfrt_test.error_chain", chain, results=CHAIN)
        elif stop == "late error":
            late = b("tfrt_test.report_error_async")
            chain = b("tfrt.merge.chains", late, chain, results=CHAIN)
        else:
            _, chain = b("tfrt_test.cancel", chain, results=("i32", CHAIN))
        return b("tfrt_test.deallocate_resource", resource, chain, results=CHAIN)

    (error,) = give(main(write))
    assert error is not None
    assert capsys.readouterr().out == "Allocated TestResource\nDestroyed TestResource\n"


def test_a_resource_without_users_dies_at_once(give, capsys):
    def write(b):
        _, chain = b("tfrt_test.allocate_resource", b.chain(), results=(RESOURCE, CHAIN))
        return b("tfrt_test.print_hello", chain, results=CHAIN)

    give(main(write))
    assert capsys.readouterr().out == "Allocated TestResource\nDestroyed TestResource\nhello host executor!\n"
