"""Control flow: the functions that run, their number and arguments, and the time of their results."""

from __future__ import annotations

import heald
import pytest
from builders.programs import CHAIN, Body, program
from heald.errors import Cancelled, Internal, InvalidArgument
from heald.runtime.values.async_value import AsyncValue
from runtime.host_kernels.conftest import payloads


def start(host, functions, *arguments, request=None):
    """The results of main, which may be pending."""
    return program(*functions).run("main", *arguments, request=request or heald.RequestContext(host))


def settle(host, *pairs):
    """Complete values, in this order, and let everything that follows happen."""
    for value, content in pairs:
        value.set_error(content) if isinstance(content, Exception) else value.emplace(content)
    assert host.work_queue.quiesce(20)


def done(host, results):
    assert host.await_values(results, timeout=20)
    return payloads(results)


def adding(name, amount):
    """A function (x) -> x + amount."""
    b = Body("i32")
    return b.function(name, b("tfrt.add.i32", 0, b.constant(amount)))


def chosen_by(code, **options):
    """main(condition, x): x + 10 for true, x + 20 for false."""
    b = Body("i1", "i32")
    return [adding("yes", 10), adding("no", 20),
            b.function("main", b(code, 0, 1, functions=("yes", "no"), **options))]


@pytest.mark.parametrize("code", ["tfrt.if", "tfrt.cond"])
@pytest.mark.parametrize(("condition", "result"), [(True, 11), (False, 21)])
def test_one_of_two_functions_gives_the_results(give, code, condition, result):
    assert give(chosen_by(code), condition, 1) == [result]


def test_an_if_without_else_does_nothing_when_the_condition_is_false(give, capsys):
    b = Body("i1")
    inner = Body()
    inner("tfrt.print.i32", inner.constant(1), inner.chain(), results=CHAIN)
    b("tfrt.if", 0, results=(), functions=("then",))
    functions = [inner.function("then"), b.function("main")]
    assert give(functions, False) == []
    assert capsys.readouterr().out == ""
    assert give(functions, True) == []
    assert capsys.readouterr().out == "int32 = 1\n"


@pytest.mark.parametrize("regions", [("yes",), ("yes", "no", "no")])
def test_an_if_with_results_has_two_regions(run, regions):
    b = Body("i1", "i32")
    program_def = program(adding("yes", 1), adding("no", 2), b.function("main", b("tfrt.if", 0, 1, functions=regions)))
    (error,) = payloads(run(program_def, "main", True, 1))
    assert isinstance(error, InvalidArgument)
    assert f"tfrt.if has {len(regions)} regions" in error.message


@pytest.mark.parametrize(("code", "condition"), [("tfrt.if", True), ("tfrt.cond", False), ("tfrt.case", 0)])
@pytest.mark.parametrize("nonstrict", [False, True])
def test_an_error_that_decides_becomes_all_results(host, code, condition, nonstrict):
    b = Body("i32" if code == "tfrt.case" else "i1", "i32")
    two = Body("i32")
    functions = [two.function("f", 0, 0), b.function("main", *b(code, 0, 1, results=("i32", "i32"),
                                                                functions=("f", "f"), nonstrict=nonstrict))]
    decides = AsyncValue()
    results = start(host, functions, decides, 1)
    assert not any(r.is_available() for r in results)
    bad = Internal("bad")
    settle(host, (decides, bad))
    assert done(host, results) == [bad, bad]


@pytest.mark.parametrize("code", ["tfrt.if", "tfrt.cond"])
def test_a_strict_call_waits_for_arguments_that_its_function_does_not_need(host, code):
    functions = functions_with_unneeded_call(code, nonstrict=False)
    late = AsyncValue()
    (result,) = start(host, functions, True, late)
    assert not result.is_available()
    settle(host, (late, 3))
    assert done(host, [result]) == [7]


@pytest.mark.parametrize("code", ["tfrt.if", "tfrt.cond", "tfrt.case"])
def test_a_nonstrict_call_returns_before_an_argument_that_its_function_does_not_need(host, code):
    decides, late = AsyncValue(), AsyncValue()
    kind = "i32" if code == "tfrt.case" else "i1"
    (result,) = start(host, functions_with_unneeded_call(code, nonstrict=True, kind=kind), decides, late)
    assert not result.is_available()
    settle(host, (decides, 0 if kind == "i32" else True))
    assert done(host, [result]) == [7]
    assert not late.is_available()
    settle(host, (late, 3))


def functions_with_unneeded_call(code, nonstrict, kind="i1"):
    seven = Body("i32")
    b = Body(kind, "i32")
    return [seven.function("seven", seven.constant(7)),
            b.function("main", b(code, 0, 1, functions=("seven", "seven"), nonstrict=nonstrict))]


def test_a_nonstrict_call_runs_the_parts_of_its_function_that_can_run(host, capsys):
    inner = Body("i32", "i32", CHAIN)
    first = inner("tfrt.print.i32", 0, 2, results=CHAIN)
    last = inner("tfrt.print.i32", 1, first, results=CHAIN)
    b = Body("i32", "i32")
    called = b("tfrt.call", 0, 1, b.chain(), results=(CHAIN, "i32"), functions=("inner",), nonstrict=True)
    late = AsyncValue()
    chain, number = start(host, [inner.function("inner", last, 0), b.function("main", *called)], 1, late)
    assert done(host, [number]) == [1]
    assert host.work_queue.quiesce(20)
    assert capsys.readouterr().out == "int32 = 1\n"
    settle(host, (late, 2))
    assert done(host, [chain]) == [None]
    assert capsys.readouterr().out == "int32 = 2\n"


def counted_down(**options):
    """main(n): sums n, n - 1, ... 1 by tfrt.while."""
    body, b = Body("i32", "i32"), Body("i32")
    total = body("tfrt.add.i32", 1, 0)
    following = body("tfrt.add.i32", 0, body.constant(-1))
    goes_on = body("tfrt.lessequal.i32", body.constant(1), following, results="i1")
    begins = b("tfrt.lessequal.i32", b.constant(1), 0, results="i1")
    _, total_after = b("tfrt.while", begins, 0, b.constant(0), results=("i32", "i32"), functions=("body",), **options)
    return [body.function("body", following, total, goes_on), b.function("main", total_after)]


@pytest.mark.parametrize("count", [0, 1, 100, 5000])
@pytest.mark.parametrize("options", [{}, {"parallel_iterations": 1}, {"parallel_iterations": 10}])
def test_a_while_loop_runs_until_its_condition_is_false(give, count, options):
    assert give(counted_down(**options), count) == [count * (count + 1) // 2]


def test_a_while_loop_with_parallel_iterations_enqueues_each_body(capsys):
    body, b = Body("i32", CHAIN), Body("i32")
    printed = body("tfrt.print.i32", 0, 1, results=CHAIN)
    following = body("tfrt.add.i32", 0, body.constant(-1))
    goes_on = body("tfrt.lessequal.i32", body.constant(1), following, results="i1")
    yes = b("tfrt.constant.i1", results="i1", value=True)
    _, after = b("tfrt.while", yes, 0, b.chain(), results=("i32", CHAIN), functions=("body",), parallel_iterations=4)
    functions = [body.function("body", following, printed, goes_on), b.function("main", after)]
    host = heald.HostContext(work_queue="single_threaded")
    (result,) = start(host, functions, 3)
    assert capsys.readouterr().out == ""  # nothing runs before the queue does
    assert done(host, [result]) == [None]
    assert capsys.readouterr().out == "int32 = 3\nint32 = 2\nint32 = 1\n"
    host.close()


def test_a_while_loop_needs_one_iteration_at_a_time_or_more(run):
    (error,) = payloads(run(program(*counted_down(parallel_iterations=0)), "main", 3))
    assert error.message == "parallel_iterations is 0, not 1 or more"


def failing_loop():
    """main(i, x): the third iteration's condition fails; x is passed on."""
    body, b = Body("i32", "i32"), Body("i32")
    following = body("tfrt.add.i32", 0, body.constant(-1))
    _, checked = body("tfrt.div.i32", body.constant(1), 0, results=("i32", "i32"))  # fails for 0
    goes_on = body("tfrt.equal.i32", checked, checked, results="i1")
    yes = b("tfrt.constant.i1", results="i1", value=True)
    results = b("tfrt.while", yes, 0, b.constant(5), results=("i32", "i32"), functions=("body",))
    return [body.function("body", following, 1, goes_on), b.function("main", *results)]


def test_an_error_of_the_condition_ends_a_while_loop_with_the_error_as_all_results(give):
    first, second = give(failing_loop(), 2)
    assert first is second
    assert first.message == "Divide by zero"


def test_an_error_of_the_condition_waits_for_the_variables(host):
    body, b = Body("i32", "i1"), Body("i32", "i1", "i32")
    yes = b("tfrt.constant.i1", results="i1", value=True)
    results = b("tfrt.while", yes, 0, 1, results=("i32", "i1"), functions=("body",), nonstrict=True)
    late, condition = AsyncValue(), AsyncValue()
    results = start(host, [body.function("body", 0, 1, 1), b.function("main", *results)], late, condition, 0)
    bad = Internal("bad")
    settle(host, (condition, bad))
    assert not results[0].is_available()
    settle(host, (late, 1))
    assert done(host, results) == [bad, bad]


def test_a_while_loop_goes_on_when_a_pending_condition_arrives(host):
    body, b = Body("i32", "i1"), Body("i32", "i1")
    yes = b("tfrt.constant.i1", results="i1", value=True)
    results = b("tfrt.while", yes, 0, 1, results=("i32", "i1"), functions=("body",), nonstrict=True)
    no = body("tfrt.constant.i1", results="i1", value=False)
    following = body("tfrt.add.i32", 0, body.constant(1))
    condition = AsyncValue()
    results = start(host, [body.function("body", following, no, 1), b.function("main", *results)], 1, condition)
    assert not results[0].is_available()
    settle(host, (condition, True))
    assert done(host, results) == [3, False]


def repeat_functions(count, *, slow=False):
    """main(n, x): x + n by tfrt.repeat.i32."""
    body, b = Body("i32"), Body("i32", "i32")
    following = body("tfrt_test.async_add.i32" if slow else "tfrt.add.i32", 0, body.constant(1))
    (result,) = b("tfrt.repeat.i32", 0, 1, results=("i32",), functions=("body",))
    return [body.function("body", following), b.function("main", result)]


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("count", [-1, 0, 1, 31, 32, 33, 1000])
def test_a_repeat_loop_runs_its_body_so_often(give, count, slow):
    assert give(repeat_functions(count, slow=slow), count, 5) == [5 + max(count, 0)]


def test_a_nonstrict_repeat_loop_waits_for_its_first_variable(host):
    body, b = Body("i32", CHAIN), Body("i32", "i32")
    noted = body("test.note", body.constant(1), 1, results=CHAIN)
    results = b("tfrt.repeat.i32", 0, 1, b.chain(), results=("i32", CHAIN), functions=("body",), nonstrict=True)
    request, late = heald.RequestContext(host), AsyncValue()
    functions = [body.function("body", 0, noted), b.function("main", *results)]
    results = start(host, functions, 40, late, request=request)
    assert host.work_queue.quiesce(20)
    assert len(request.resources.get("notes", list)) == 0
    settle(host, (late, 9))
    assert done(host, results) == [9, None]
    assert len(request.resources.get("notes", list)) == 40


def test_iterations_of_a_repeat_loop_overlap_while_a_result_is_pending(host):
    """The second body starts although the first one's result is pending; the 33rd waits."""
    body, b = Body("i32", CHAIN), Body("i32")
    noted = body("test.note", body.constant(1), 1, results=CHAIN)
    gate = body("test.gated")
    results = b("tfrt.repeat.i32", 0, b.constant(0), b.chain(), results=("i32", CHAIN), functions=("body",))
    request = heald.RequestContext(host)
    results = start(host, [body.function("body", gate, noted), b.function("main", *results)], 40, request=request)
    assert host.work_queue.quiesce(20)
    assert len(request.resources.get("notes", list)) == 32
    settle(host, (request.resources.get("gate", None), 4))
    assert done(host, results) == [4, None]
    assert len(request.resources.get("notes", list)) == 40


def test_an_error_of_a_repeat_loop_passes_through_the_iterations_behind_it(host):
    body, b = Body("i32", CHAIN), Body("i32")
    _, remainder = body("tfrt.div.i32", body.constant(1), 0, results=("i32", "i32"))
    noted = body("test.note", body.constant(1), 1, results=CHAIN)
    results = b("tfrt.repeat.i32", b.constant(5), 0, b.chain(), results=("i32", CHAIN), functions=("body",))
    request = heald.RequestContext(host)
    error, chain = done(host, start(host, [body.function("body", remainder, noted), b.function("main", *results)], 0,
                                    request=request))
    assert error.message == "Divide by zero"
    assert chain is None
    assert len(request.resources.get("notes", list)) == 5


@pytest.mark.parametrize("code", ["tfrt.while", "tfrt.repeat.i32"])
def test_a_cancelled_request_ends_a_loop(host, code):
    """The body cancels in its first iteration; the loop would never end."""
    body, b = Body("i32", CHAIN), Body()
    noted = body("test.note", 0, 1, results=CHAIN)
    body("tfrt_test.cancel", noted, results=("i32", CHAIN))
    begin = b("tfrt.constant.i1", results="i1", value=True) if code == "tfrt.while" else b.constant(2**31 - 1)
    goes_on = (body("tfrt.constant.i1", results="i1", value=True),) if code == "tfrt.while" else ()
    results = b(code, begin, b.constant(1), b.chain(), results=("i32", CHAIN), functions=("body",))
    request = heald.RequestContext(host)
    results = start(host, [body.function("body", 0, noted, *goes_on), b.function("main", *results)], request=request)
    assert [(type(error), error.message) for error in done(host, results)] == [(Cancelled, "Cancelled")] * 2
    assert request.resources.get("notes", list) == [1]


def test_a_request_that_is_cancelled_from_outside_ends_a_loop_that_waits(host):
    body, b = Body("i32"), Body()
    results = b("tfrt.repeat.i32", b.constant(1000), b.constant(0), results=("i32",), functions=("body",))
    gate = body("test.gated")
    request = heald.RequestContext(host)
    (result,) = start(host, [body.function("body", gate), b.function("main", *results)], request=request)
    assert not result.is_available()
    request.cancel()
    assert isinstance(*done(host, [result]), Cancelled)


def test_a_function_runs_once_in_all_runs_that_share_resources(host, capsys):
    inner, b = Body("i32"), Body("i32")
    chain = inner("tfrt.print.i32", 0, inner.chain(), results=CHAIN)
    late = inner("tfrt_test.async_add.i32", 0, 0)
    twice = [b("tfrt.once", 0, results=("i32", CHAIN), functions=("inner",)) for _ in range(2)]
    program_def = program(inner.function("inner", late, chain), b.function("main", *twice[0], *twice[1]))
    request = heald.RequestContext(host)
    first = program_def.run("main", 3, request=request)
    again = program_def.run("main", 4, request=heald.RequestContext(host, request.resources))
    assert done(host, first) == done(host, again) == [6, None, 6, None]
    assert capsys.readouterr().out == "int32 = 3\n"
    assert done(host, program_def.run("main", 4, request=heald.RequestContext(host)))[0] == 8


def test_functions_of_one_name_in_two_programs_are_two(host):
    shared = heald.RequestContext(host).resources
    results = []
    for amount in (1, 2):
        b = Body("i32")
        programs = [adding("f", amount), b.function("main", b("tfrt.once", 0, functions=("f",)))]
        results += done(host, start(host, programs, 10, request=heald.RequestContext(host, shared)))
    assert results == [11, 12]


def test_an_error_of_a_function_that_runs_once_is_the_result_of_all_calls(give):
    inner, b = Body(), Body()
    bad = inner("tfrt_test.fail")
    results = [b("tfrt.once", functions=("inner",)) for _ in range(2)]
    first, second = give([inner.function("inner", bad), b.function("main", *results)])
    assert first is second
    assert first.message == "something bad happened"


@pytest.mark.parametrize(("write", "message"), [
    (lambda b: b("tfrt.call", 0, functions=("two",)),
     "names the function 'two' of type (i32, i32) -> (i32), expected (i32) -> (i32)"),
    (lambda b: b("tfrt.call", 0, 0, results=("i32", "i32"), functions=("two",))[0],
     "expected (i32, i32) -> (i32, i32)"),
    (lambda b: b("tfrt.case", 0, 0, functions=("two", "two")), "expected (i32) -> (i32)"),
    (lambda b: b("tfrt.while", 1, 0, functions=("two",)), "expected (i32) -> (i32, i1)"),
    (lambda b: b("tfrt.while", 1, 0, 0, functions=("two",)), "has 2 loop variables and 1 results"),
    (lambda b: b("tfrt.repeat.i32", 0, 0, functions=("two",)), "expected (i32) -> (i32)"),
    (lambda b: b("tfrt.parallel_for.i32", 0, 0, 0, results=CHAIN, functions=("two",)),
     "expected (i32, i32) -> (!tfrt.chain) or (i32, i32) -> ()"),
])
def test_a_function_of_another_type_is_refused_before_anything_runs(run, write, message):
    two, b = Body("i32", "i32"), Body("i32", "i1")
    program_def = program(two.function("two", 0), b.function("main", write(b)))
    with pytest.raises(InvalidArgument) as caught:
        run(program_def, "main", 1, True)
    assert message in caught.value.message
    assert str(caught.value.location) == "program.mlir:1:1"


@pytest.mark.parametrize("depth", [1, 31, 33, 500])
def test_calls_nest_to_any_depth(give, depth):
    """Each function is the body of a loop in the next one."""
    functions = [adding("f0", 1)]
    for number in range(1, depth):
        b = Body("i32")
        code, first = [("tfrt.call", ()), ("tfrt.repeat.i32", (b.constant(1),)),
                       ("tfrt.if", (b("tfrt.constant.i1", results="i1", value=True),))][number % 3]
        names = (f"f{number - 1}",) * (2 if code == "tfrt.if" else 1)
        functions.append(b.function(f"f{number}", *b(code, *first, 0, results=("i32",), functions=names)))
    b = Body("i32")
    functions.append(b.function("main", b("tfrt.call", 0, functions=(f"f{depth - 1}",))))
    assert give(functions, 1) == [2]


def fizzbuzz(loop):
    """main(n): prints each number below n + 1, or 15, 3 or 5 where it is a multiple of these."""
    body, b, functions = Body("i32", CHAIN), Body("i32"), []
    number = body("tfrt.add.i32", 0, body.constant(1))
    divides = []
    for divisor in (3, 5):
        _, remainder = body("tfrt.div.i32", number, body.constant(divisor), results=("i32", "i32"))
        divides.append(body("tfrt.equal.i32", remainder, body.constant(0), results="i1"))
    printed = body("tfrt.cond", *divides, number, 1, results=CHAIN, functions=("by 3", "not by 3"))
    for name, branches in {"by 3": ("15", "3"), "not by 3": ("5", "n")}.items():
        inner = Body("i1", "i32", CHAIN)
        functions.append(inner.function(name, inner("tfrt.cond", 0, 1, 2, results=CHAIN, functions=branches)))
    for name in ("15", "3", "5", "n"):
        inner = Body("i32", CHAIN)
        printed_number = 0 if name == "n" else inner.constant(int(name))
        functions.append(inner.function(name, inner("tfrt.print.i32", printed_number, 1, results=CHAIN)))
    begin, goes_on = 0, ()
    if loop == "tfrt.while":
        goes_on = (body("tfrt.lessequal.i32", number, body.constant(99), results="i1"),)
        begin = b("tfrt.constant.i1", results="i1", value=True)
    results = b(loop, begin, b.constant(0), b.chain(), results=("i32", CHAIN), functions=("body",))
    return [*functions, body.function("body", number, printed, *goes_on), b.function("main", *results)]


@pytest.mark.parametrize("loop", ["tfrt.while", "tfrt.repeat.i32"])
def test_fizzbuzz(give, capsys, loop):
    assert give(fizzbuzz(loop), 100) == [100, None]
    expected_numbers = [next((d for d in (15, 3, 5) if not number % d), number) for number in range(1, 101)]
    assert capsys.readouterr().out == "".join(f"int32 = {number}\n" for number in expected_numbers)
