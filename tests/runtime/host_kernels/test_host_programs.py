"""Host programs: the results of kernels, their time, and the way of errors."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections import Counter

import heald
import pytest
from builders.programs import CHAIN, Body, program
from harness.garbage import collect
from heald.errors import Aborted, Cancelled, HealdError, InvalidArgument, NotFound, PluginError
from runtime.host_kernels.conftest import CONFIG


def payloads(results):
    return [r.error if r.is_error() else r.get() for r in results]


def test_a_program_gives_its_results(run):
    b = Body("i32")
    quotient, remainder = b("tfrt.div.i32", b("tfrt.add.i32", 0, b.constant(3)), b.constant(4), results=("i32", "i32"))
    assert payloads(run(program(b.function("main", quotient, remainder)), "main", 8)) == [2, 3]


@pytest.mark.parametrize(("code", "kind", "a", "b", "result"), [
    ("tfrt.add.i32", "i32", 2**31 - 1, 1, -(2**31)), ("tfrt.add.i64", "i64", -(2**63), -1, 2**63 - 1),
    ("tfrt.add.f32", "f32", 0.1, 0.2, 0.30000001192092896), ("tfrt.add.f64", "f64", 0.1, 0.2, 0.1 + 0.2),
    ("tfrt.multiply.f32", "f32", 3e38, 10.0, float("inf")), ("tfrt.minimum.f64", "f64", 2.0, -1.0, -1.0),
    ("tfrt.div.f32", "f32", 1.0, 3.0, 0.3333333432674408),
])
def test_numbers_keep_to_their_types(run, code, kind, a, b, result):
    body = Body(kind, kind)
    assert payloads(run(program(body.function("main", body(code, 0, 1, results=kind))), "main", a, b)) == [result]


def test_division_truncates_towards_zero(run):
    b = Body("i32", "i32")
    divided = program(b.function("main", *b("tfrt.div.i32", 0, 1, results=("i32", "i32"))))
    assert [payloads(run(divided, "main", *pair)) for pair in ((7, 2), (-7, 2), (7, -2), (-7, -2))] == [
        [3, 1], [-3, -1], [-3, 1], [3, -1]]
    assert isinstance(run(divided, "main", 1, 0)[1].error, InvalidArgument)


def test_a_kernel_that_fails_in_part_spoils_what_needs_that_part_alone(run, capsys):
    b = Body()
    x, y = b("test.partial_fail", b.constant(1), results=("i32", "i32"))
    printed = b("tfrt.print.i32", x, b.chain(), results=CHAIN)
    skipped = b("tfrt.print.i32", y, b.chain(), results=CHAIN)
    x, y, printed, skipped = run(program(b.function("main", x, y, printed, skipped)))
    assert capsys.readouterr().out == "int32 = 1\n"
    assert (x.get(), printed.get()) == (1, None)
    assert isinstance(y.error, Aborted)
    assert skipped.error is y.error
    assert str(y.error.location) == "program.mlir:2:1"
    assert y.error.op == "test.partial_fail"


@pytest.mark.parametrize("late", [False, True])
def test_the_last_error_among_the_arguments_is_that_of_the_results(run, late):
    b = Body()
    first, last = b("test.fail", b.constant(1)), b("test.later_fail" if late else "test.fail", b.constant(2))
    (error,) = payloads(run(program(b.function("main", b("tfrt.add.i32", first, last)))))
    assert "boom 2" in error.message


def test_a_failure_that_nobody_needs_does_not_matter(run):
    b = Body()
    b("test.fail", b.constant(1))
    assert payloads(run(program(b.function("main", b.constant(1))))) == [1]


def test_effects_on_a_chain_keep_their_order_and_merged_chains_wait_for_all():
    b = Body()
    ends = []
    for first in (0, 10):
        chain = b.chain()
        for what in range(first, first + 3):
            chain = b("test.note_later", b.constant(what), chain, results=CHAIN)
        ends.append(chain)
    merged = b("tfrt.merge.chains", *ends, results=CHAIN)
    noted = program(b.function("main", b("test.note", b.constant(100), merged, results=CHAIN)))
    host = heald.HostContext(config=CONFIG | {"work_queue": {"threads": 4}})
    for _ in range(100):
        request = heald.RequestContext(host)
        assert host.await_values(noted.run("main", request=request), timeout=20)
        notes = request.resources.get("notes", list)
        assert [n for n in notes if n < 10] == [0, 1, 2]
        assert [n for n in notes if 10 <= n < 100] == [10, 11, 12]
        assert notes[6:] == [100]
    host.close()


def test_a_nonstrict_call_gives_what_is_there_while_an_argument_is_pending(host):
    first = Body("i32", "i32")
    b = Body()
    ready, blocked = b.constant(7), b("test.gated")
    result = b("tfrt.call", ready, blocked, functions=("first",), nonstrict=True)
    request = heald.RequestContext(host)
    called = program(first.function("first", 0), b.function("main", result, blocked))
    result, blocked = called.run("main", request=request)
    assert host.await_values([result], timeout=20)
    assert result.get() == 7
    assert not blocked.is_available()
    request.resources.get("gate", None).emplace(3)
    assert host.await_values([blocked], timeout=20)
    assert blocked.get() == 3


def test_a_strict_call_waits_for_all_arguments_and_is_not_made_when_one_is_an_error(host):
    noting = Body("i32", "i32", CHAIN)
    noted = noting("test.note", 0, 2, results=CHAIN)
    b = Body()
    good, bad, gate = b.constant(1), b("test.fail", b.constant(1)), b("test.gated")
    called = program(
        noting.function("noting", noted),
        b.function("main", b("tfrt.call", good, bad, b.chain(), results=CHAIN, functions=("noting",)),
                   b("tfrt.call", good, gate, b.chain(), results=CHAIN, functions=("noting",))))
    request = heald.RequestContext(host)
    skipped, waits = called.run("main", request=request)
    assert host.await_values([skipped], timeout=20)
    assert isinstance(skipped.error, PluginError)
    assert not waits.is_available()
    assert "notes" not in request.resources
    request.resources.get("gate", None).emplace(1)
    assert host.await_values([waits], timeout=20)
    assert request.resources.get("notes", list) == [1]


@pytest.mark.parametrize("kind", ["KeyboardInterrupt", "SystemExit", "GeneratorExit"])
def test_the_exception_of_a_kernel_in_a_worker_is_the_error_of_its_run_alone(kind):
    b = Body()
    bad, good = b("test.raising_task", kind=kind), b("test.later", b.constant(1))
    raising = program(b.function("main", bad, b("tfrt.add.i32", good, good)))
    host = heald.HostContext(config=CONFIG | {"work_queue": {"threads": 2}})
    for _ in range(20):
        bad, good = raising.run("main", request=heald.RequestContext(host))
        assert host.await_values([bad, good], timeout=20)
        assert (type(bad.error), bad.error.op) == (PluginError, "test.raising_task")
        assert kind in bad.error.message
        assert good.get() == 2
    host.close()


@pytest.mark.parametrize("kind", ["SystemExit", "GeneratorExit", "ValueError"])
def test_the_exception_of_a_kernel_on_the_callers_thread_is_an_error_and_no_exit(run, kind):
    b = Body()
    (bad,) = run(program(b.function("main", b("test.raising", kind=kind))))
    assert kind in bad.error.message
    assert "enough" in bad.error.message


def test_ctrl_c_within_a_kernel_on_the_main_thread_ends_the_run(host):
    b = Body()
    with pytest.raises(KeyboardInterrupt):
        program(b.function("main", b("test.raising", kind="KeyboardInterrupt"))).run(
            "main", request=heald.RequestContext(host))


def test_a_blocking_task_is_not_waited_for_by_the_others(run):
    b = Body()
    assert payloads(run(program(b.function("main", b("test.blocking", b.constant(1)), b("test.later", b.constant(2)))))
                    ) == [1, 2]


def test_payloads_may_be_anything(run):
    b = Body()
    at = b("test.point", b.constant(3), b.constant(4), results="!test.point")
    assert payloads(run(program(b.function("main", b("test.x_of", at))))) == [3]


def test_attributes_have_defaults_and_arguments_may_be_many(run):
    b = Body("i32", "i32")
    scaled = b("test.scaled", 0, 1, results=("i32", "i32"), by=10)
    one = b("test.scaled", 0, results=("i32",), by=2, offset=1)
    assert payloads(run(program(b.function("main", *scaled, *one)), "main", 1, 2)) == [10, 20, 3]


def factorial_like():
    """sum(n) = n + sum(n - 1), by functions that call each other."""
    b, zero, more = Body("i32"), Body("i32"), Body("i32")
    done = b("tfrt.lessequal.i32", 0, b.constant(0), results="i1")
    summed = b("tfrt.cond", done, 0, functions=("zero", "more"))
    recursion = more("tfrt.call", more("tfrt.add.i32", 0, more.constant(-1)), functions=("sum",))
    return program(b.function("sum", summed), zero.function("zero", zero.constant(0)),
                   more.function("more", more("tfrt.add.i32", recursion, 0)))


@pytest.mark.parametrize("depth", [0, 1, 40, 300])
def test_functions_may_call_themselves_deeper_than_the_stack(run, depth):
    (result,) = run(factorial_like(), "sum", depth)
    assert result.get() == depth * (depth + 1) // 2


@pytest.mark.parametrize("slow", [False, True])
def test_a_loop_runs_until_its_body_says_so(run, slow):
    body, b = Body("i32", "i32"), Body("i32")
    following = body("tfrt.add.i32", 0, body.constant(-1))
    if slow:
        following = body("test.later", following)
    total = body("tfrt.add.i32", 1, 0)
    positive = body("tfrt.lessequal.i32", body.constant(1), following, results="i1")
    yes = b("tfrt.constant.i1", results="i1", value=True)
    results = b("tfrt.while", yes, 0, b.constant(0), results=("i32", "i32"), functions=("body",))
    loop = program(body.function("body", following, total, positive), b.function("main", *results))
    assert payloads(run(loop, "main", 500)) == [0, 500 * 501 // 2]


def test_a_loop_whose_body_fails_gives_the_error_for_all_it_would_have_given(run):
    body, b = Body("i32"), Body("i32")
    failing = body("test.fail", 0)
    yes = b("tfrt.constant.i1", results="i1", value=True)
    (result,) = b("tfrt.while", yes, 0, results=("i32",), functions=("body",))
    never = body("tfrt.lessequal.i32", failing, 0, results="i1")
    loop = program(body.function("body", failing, never), b.function("main", result))
    assert "boom 5" in run(loop, "main", 5)[0].error.message


@pytest.mark.parametrize(("index", "result"), [(0, 10), (1, 20), (2, 20), (-1, 20)])
def test_a_case_takes_the_last_branch_for_want_of_a_better_one(run, index, result):
    tens, b = Body(), Body("i32")
    twenty = Body()
    cases = program(tens.function("ten", tens.constant(10)), twenty.function("twenty", twenty.constant(20)),
                    b.function("main", b("tfrt.case", 0, functions=("ten", "twenty"))))
    assert payloads(run(cases, "main", index)) == [result]


def test_resources_belong_to_a_request_or_are_shared_by_several(host, run):
    b = Body()
    program_def = program(b.function("main", b("test.times_made", name="a"), b("test.times_made", name="a")))
    request = heald.RequestContext(host)
    assert payloads(run(program_def, request=request)) == payloads(run(program_def, request=request)) == [1, 1]
    other = heald.RequestContext(host, resources=request.resources)
    assert other.resources.get("made", list) == ["a"]
    assert "made" not in heald.RequestContext(host).resources


def test_a_request_that_is_cancelled_gives_errors_for_what_is_not_there(host):
    b = Body()
    gate = b("test.gated")
    waiting = program(b.function("main", b.constant(1), gate, b("tfrt.add.i32", gate, gate)))
    request = heald.RequestContext(host)
    results = waiting.run("main", request=request)
    assert not results[2].is_available()
    request.cancel()
    assert host.await_values(results[2:], timeout=20)
    assert results[0].get() == 1
    assert isinstance(results[2].error, Cancelled)
    assert all(isinstance(r.error, Cancelled) for r in waiting.run("main", request=request))
    assert request.is_cancelled


def test_a_kernel_may_cancel_its_step(run):
    b = Body()
    chain = b("test.cancel", b.chain(), results=CHAIN)
    noted = b("test.note", b.constant(1), chain, results=CHAIN)
    request_results = run(program(b.function("main", b("test.note", b.constant(2), noted, results=CHAIN))))
    assert request_results[0].is_available()


def test_a_cancelled_host_ends_everything_until_it_is_restarted(host):
    b = Body()
    waiting = program(b.function("gated", b("test.gated")))
    c = Body()
    simple = program(c.function("main", c.constant(1)))
    results = waiting.run("gated", request=heald.RequestContext(host))
    host.cancel_execution()
    assert host.await_values(results, timeout=20)
    assert isinstance(results[0].error, Cancelled)
    assert isinstance(simple.run("main", request=heald.RequestContext(host))[0].error, Cancelled)
    host.restart()
    assert simple.run("main", request=heald.RequestContext(host))[0].get() == 1


def test_the_diagnostics_handler_hears_of_each_failure_once_and_of_none_that_is_passed_on():
    heard = []
    host = heald.HostContext(config=CONFIG, diagnostics=heard.append)
    inner, b = Body("i32"), Body()
    failed = inner("test.fail", 0)
    called = b("tfrt.call", b.constant(4), functions=("inner",))
    late = b("test.later_fail", b.constant(5))
    both = program(inner.function("inner", inner("tfrt.add.i32", failed, failed)),
                   b.function("main", b("tfrt.add.i32", called, called), b("tfrt.add.i32", late, late)))
    results = both.run("main", request=heald.RequestContext(host))
    assert host.await_values(results, timeout=20)
    assert sorted(error.op for error in heard) == ["test.fail", "test.later_fail"]
    assert {str(error.location) for error in heard} == {"program.mlir:1:1", "program.mlir:4:1"}
    assert results[0].error in heard
    host.close()


@pytest.mark.parametrize(("code", "message"), [
    ("test.wrong_type", "returned 'one' as result 0"),
    ("test.too_many", "returned <class"),
])
def test_a_result_of_the_wrong_type_is_an_error_in_debug_mode(checking_host, code, message):
    b = Body()
    (result,) = program(b.function("main", b(code))).run("main", request=heald.RequestContext(checking_host))
    assert isinstance(result.error, PluginError)
    assert message in result.error.message
    assert f"{code}() -> i32" in result.error.hint


def test_too_few_results_are_an_error_in_any_mode(run):
    b = Body()
    results = run(program(b.function("main", *b("test.no_result", results=("i32", "i32")))))
    assert {type(r.error) for r in results} == {PluginError}
    assert "expected 2 values" in results[0].error.message


def test_arguments_of_users_are_checked(host):
    b = Body("i32")
    same = program(b.function("main", 0))
    request = heald.RequestContext(host)
    for wrong in ("1", 1.0, True, 2**31):
        with pytest.raises(InvalidArgument, match="the program expects i32"):
            same.run("main", wrong, request=request)
    with pytest.raises(InvalidArgument, match="takes 1 arguments, 0 given"):
        same.run("main", request=request)
    with pytest.raises(NotFound, match="no function 'other'"):
        same.run("other", 1, request=request)


@pytest.mark.parametrize(("write", "error", "message"), [
    (lambda b: b("test.fial", b.constant(1)), NotFound, "there is no host kernel test.fial"),
    (lambda b: b("test.fail"), InvalidArgument, "has 0 arguments"),
    (lambda b: b("test.fail", b.chain()), InvalidArgument, "as argument 0, which is i32"),
    (lambda b: b("test.fail", b.constant(1), results="i64"), InvalidArgument, "has i64 as result 0"),
    (lambda b: b("test.fail", b.constant(1), results=("i32", "i32"))[0], InvalidArgument, "has 2 results"),
    (lambda b: b("tfrt.constant.i32"), InvalidArgument, "lacks the attribute 'value'"),
    (lambda b: b("tfrt.constant.i32", value="1"), InvalidArgument, "has '1' as attribute 'value', which is i32"),
    (lambda b: b("tfrt.constant.i32", value=1, other=2), InvalidArgument, "has an attribute 'other'"),
    (lambda b: b("tfrt.call", b.constant(1)), InvalidArgument, "names 0 functions"),
])
def test_a_call_that_does_not_fit_its_kernel_is_refused_before_anything_runs(host, write, error, message):
    b = Body()
    noted = b("test.note", b.constant(1), b.chain(), results=CHAIN)
    request = heald.RequestContext(host)
    bad = program(b.function("main", write(b), noted))
    with pytest.raises(error, match=message) as caught:
        bad.run("main", request=request)
    assert caught.value.location.file == "program.mlir"
    assert "notes" not in request.resources


def test_a_trace_of_a_request_has_every_call_and_what_it_has_started(run, host):
    b = Body("i32")
    late = b("test.later", b("tfrt.add.i32", 0, 0))
    traced = program(b.function("main", b("tfrt.add.i32", late, late)))
    request = heald.RequestContext(host, trace=True)
    assert payloads(run(traced, "main", 3, request=request)) == [12]
    rows = request.trace.to_chrome()["traceEvents"]
    assert [row["args"]["kernel"] for row in rows if row["ph"] == "X"] == ["tfrt.add.i32", "test.later", "tfrt.add.i32"]
    assert [row["ph"] for row in rows if row["ph"] in "be"] in (["b", "e"], [])  # a worker may be faster than the call
    assert heald.RequestContext(host).trace is None


def notes(request):
    return request.resources.get("notes", list)


@pytest.mark.parametrize("kernel", ["tfrt.add.i32", "test.later_sum"])
def test_a_value_dies_with_its_last_user(run, host, kernel):
    b = Body()
    thing = b("test.tracked", results="!test.tracked")
    used = b("test.used", thing)
    later = b("test.later", used) if kernel == "test.later_sum" else used
    again = b("test.used_with", thing, later)
    chain = b("test.chained", again, results=CHAIN)
    noted = b("test.note", again, chain, results=CHAIN)
    request = heald.RequestContext(host)
    run(program(b.function("main", noted)), request=request)
    assert notes(request) == ["used", "used", "freed", 1]


def test_the_object_in_a_value_is_freed_when_an_error_skips_the_values_user(run, host):
    b = Body()
    thing = b("test.tracked", results="!test.tracked")
    used = b("test.used_with", thing, b("test.fail", b.constant(1)))
    request = heald.RequestContext(host)
    (result,) = run(program(b.function("main", used)), request=request)
    assert result.is_error()
    assert notes(request) == ["freed"]


def test_the_object_in_a_value_is_freed_when_a_cancellation_skips_the_values_user(host):
    b = Body()
    thing = b("test.tracked", results="!test.tracked")
    request = heald.RequestContext(host)
    (result,) = program(b.function("main", b("test.used_with", thing, b("test.gated")))).run("main", request=request)
    assert notes(request) == []
    request.cancel()
    assert host.await_values([result], timeout=20)
    del result
    gc.collect()
    assert notes(request) == ["freed"]


def test_ten_thousand_executions_of_which_many_fail_or_are_cancelled_leave_nothing_behind():
    b = Body("i32")
    gate = b("test.gated")
    late = b("test.later", 0)
    fine = program(
        Body("i32").function("same", 0),
        (ok := Body("i32")).function("ok", ok("tfrt.call", ok("tfrt.add.i32", 0, 0), functions=("same",))),
        (bad := Body("i32")).function("bad", bad("tfrt.add.i32", bad("test.fail", 0), 0)),
        b.function("gated", b("tfrt.add.i32", gate, late)))
    host = heald.HostContext(config=CONFIG | {"work_queue": {"threads": 1}})

    def execute(count):
        for i in range(count):
            if i % 10 == 1:
                (result,) = fine.run("bad", i, request=heald.RequestContext(host))
                assert isinstance(result.error, HealdError)
            elif i % 10 == 2:
                request = heald.RequestContext(host)
                (result,) = fine.run("gated", i, request=request)
                request.cancel()
                assert host.await_values([result], timeout=20)
                assert isinstance(result.error, Cancelled)
            else:
                (result,) = fine.run("ok", i, request=heald.RequestContext(host))
                assert result.get() == 2 * i
        assert host.work_queue.quiesce(20)

    def footprint():
        collect()
        kinds = Counter(f"{type(thing).__module__}.{type(thing).__name__}" for thing in gc.get_objects())
        return {kind: n for kind, n in kinds.items() if kind.startswith("heald.")}

    execute(200)
    before, threads = footprint(), set(threading.enumerate())
    execute(10_000)
    assert footprint() == before
    assert set(threading.enumerate()) <= threads
    host.close()


def test_a_host_that_is_closed_ends_what_waits(host):
    b = Body()
    request = heald.RequestContext(host)
    (result,) = program(b.function("main", b("test.gated"))).run("main", request=request)
    host.work_queue  # noqa: B018 - it is there
    host.close()
    request.resources.get("gate", None).emplace(1)
    end = time.monotonic() + 5
    while not result.is_available() and time.monotonic() < end:
        time.sleep(0.001)
    assert result.is_available()


def test_a_program_that_outlives_its_hosts_keeps_none_of_them_nor_does_a_host_keep_programs():
    def new_program():
        b = Body()
        return program(b.function("main", b("tfrt.add.i32", b.constant(1), b.constant(2))))

    lasting, hosts = new_program(), []
    for _ in range(3):
        host = heald.HostContext(config=CONFIG)
        assert payloads(lasting.run("main", request=heald.RequestContext(host))) == [3]
        host.close()
        hosts.append(weakref.ref(host))
        del host
    collect()
    assert [host() for host in hosts] == [None] * 3
    host = heald.HostContext(config=CONFIG)
    short = new_program()
    short.run("main", request=heald.RequestContext(host))
    assert len(host.linked) == 1
    del short
    assert not host.linked
    host.close()
