"""Compilers: random graphs keep their values, whichever of their groups a compiler takes.

The values with the compiler are compared with the values of sessions without any. Other compilers are left out, so that
the graphs are the same for each.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import heald
import numpy as np
from heald.runtime.contract import CompilerEntry
from heald.runtime.program import GROUP, GroupOutcome

from ..case import sentence
from ..hook_subject import HookSubject, faults_of_threads
from ..random_graphs import SIZE, RandomGraph, random_graph
from ..subject import whatever_comes
from ..verdict import NotApplicable, expect, expect_close, expect_same_bits
from .passes import ROUNDING, default_runtime, seeds

SILENCE = "it gives no reason"  # core's word for a refusal without one
THREAD_RUNS = 20


def registered_compiler(on: HookSubject) -> CompilerEntry:
    compilers = default_runtime().host.registries.compilers
    if on.name not in compilers:
        raise heald.errors.NotFound(f"no plugin has a compiler '{on.name}'",
                                    hint="heald plugins lists them; --plugin registers a file")
    return compilers[on.name]


def session_of(on: HookSubject, drawn: RandomGraph, *, with_compiler: bool, poison: bool = False) -> heald.Session:
    """A session on a device of the compiler's type, with this compiler alone or with none."""
    left_out = [name for name in default_runtime().host.registries.compilers if name != on.name or not with_compiler]
    return heald.Session(drawn.graph, config={"passes": {"disable": left_out}, "debug": {"poison": poison}},
                         device=f"{registered_compiler(on).device_type}:0")


def outcomes_of(session: heald.Session, drawn: RandomGraph) -> list[GroupOutcome]:
    """The fates of the compiler's groups of a graph. Most cases leave a graph alone that it claims nothing of."""
    step = session.prepare(drawn.fetches, [f"{name}:0" for name in drawn.feeds])
    return list(step.executable(tuple(feed.shape for feed in drawn.feeds.values())).report.groups)


def claims_of(session: heald.Session, drawn: RandomGraph) -> list[tuple[str, ...]]:
    """The nodes of each group in the program of a graph."""
    program = session.prepare(drawn.fetches, [f"{name}:0" for name in drawn.feeds]).program
    bodies = [program.functions[call.functions[0]] for function in program.functions.values()
              for call in function.kernels if call.code == GROUP]
    return [tuple(member.node for member in body.kernels) for body in bodies]


def other_feeds(drawn: RandomGraph, seed: int) -> Mapping[str, Any]:
    random = np.random.default_rng(seed)
    return {name: random.normal(size=(SIZE, SIZE)).astype(np.float32) for name in drawn.feeds}


@sentence()
def a_compiler_claims_groups_that_it_may_have(on: HookSubject) -> list[str]:
    """Core checks claims: nodes of the part, no node twice, convex groups. A figure counts the graphs with a claim."""
    counts = []
    for seed in seeds(on):
        drawn = random_graph(seed)
        with session_of(on, drawn, with_compiler=True) as session, whatever_comes(
                f"the claims of the graph of seed {seed}", expected="convex groups of nodes of the part",
                rule="compiler.claim"):
            counts.append(len(claims_of(session, drawn)))
    if not any(counts):
        raise NotApplicable(f"it claims nothing of {len(counts)} random graphs of element-wise ops and products")
    return [f"claimed groups of {sum(map(bool, counts))} of {len(counts)} graphs"]


@sentence(over=seeds)
def a_compiler_claims_the_same_groups_each_time(on: HookSubject, seed: str) -> None:
    claims = []
    for _ in range(2):
        drawn = random_graph(seed)
        with session_of(on, drawn, with_compiler=True) as session:
            claims.append(sorted(claims_of(session, drawn)))
    expect(claims[0] == claims[1], "the groups of two equal graphs", expected="the same groups",
           got=f"{claims[0]!s:.100} and {claims[1]!s:.100}", rule="compiler.deterministic")


@sentence(over=seeds)
def a_compiler_keeps_the_values_of_random_graphs(on: HookSubject, seed: str) -> None:
    """Several feeds, the first of them twice, show a kernel that keeps values from run to run."""
    drawn = random_graph(seed)
    feeds = [drawn.feeds, other_feeds(drawn, 1), drawn.feeds]
    with session_of(on, drawn, with_compiler=False) as plain, session_of(on, drawn, with_compiler=True) as session:
        if not outcomes_of(session, drawn):
            return
        want = [plain.run(drawn.fetches, feed) for feed in feeds]
        with whatever_comes("the graph with the compiler's kernels runs", expected="values", rule="compiler.values"):
            got = [session.run(drawn.fetches, feed) for feed in feeds]
    for turn, (wanted, given) in enumerate(zip(want, got, strict=True)):
        for name, one, other in zip(drawn.fetches, wanted, given, strict=True):
            expect_close(other, one, ROUNDING, f"'{name}' in run {turn} with the compiler", "compiler.values")


@sentence(over=seeds)
def a_kernel_keeps_to_its_operands(on: HookSubject, seed: str) -> None:
    """`[debug] poison` compares the inputs of each kernel before and after a run, and fills its results first."""
    drawn = random_graph(seed)
    with session_of(on, drawn, with_compiler=True, poison=True) as session:
        if not outcomes_of(session, drawn):
            return
        with whatever_comes("a run whose operands are watched",
                            expected="every element of each result written, and no input", rule="compiler.operands"):
            session.run(drawn.fetches, drawn.feeds)


@sentence(over=seeds)
def a_refusal_says_why_and_changes_nothing(on: HookSubject, seed: str) -> None:
    drawn = random_graph(seed)
    with session_of(on, drawn, with_compiler=False) as plain, session_of(on, drawn, with_compiler=True) as session:
        outcomes = outcomes_of(session, drawn)
        for outcome in outcomes:
            expect(SILENCE not in outcome.refusal, f"the refusal of {outcome.name}", expected="its reason",
                   got="no text", rule="compiler.declines")
        if outcomes and all(outcome.refusal for outcome in outcomes):
            for name, one, other in zip(drawn.fetches, plain.run(drawn.fetches, drawn.feeds),
                                        session.run(drawn.fetches, drawn.feeds), strict=True):
                expect_same_bits(other, one, f"'{name}' where all groups are declined", "compiler.declines")


@sentence(over=seeds)
def threads_run_a_kernel_at_once(on: HookSubject, seed: str) -> None:
    drawn = random_graph(seed)
    feeds = [other_feeds(drawn, number) for number in range(4)]
    with session_of(on, drawn, with_compiler=True) as session:
        if not outcomes_of(session, drawn):
            return
        alone = [session.run(drawn.fetches, feed) for feed in feeds]

        def run(number: int, faults: list[Any]) -> None:
            until = time.monotonic() + 1
            for _ in range(THREAD_RUNS):
                results = session.run(drawn.fetches, feeds[number])
                if not all(np.array_equal(a, b, equal_nan=True)
                           for a, b in zip(results, alone[number], strict=True)):
                    faults.append("other values than alone")
                if faults or time.monotonic() > until:
                    return

        faults = faults_of_threads(run)
    expect(not faults, "runs of four threads", expected="the values of each alone", got=str(faults[:1])[:200],
           rule="compiler.threads")
