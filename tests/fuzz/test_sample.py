"""The fuzzer: a sample of its mutants fails in no way, nor does a file that failed once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz.child import Child
from fuzz.outcomes import RESULT
from fuzz.samples import folder, pack_sample
from fuzz.targets import TARGETS

MUTANTS = 200
REGRESSIONS = Path(__file__).parents[2] / "fuzz" / "regressions"


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    child = Child()
    yield child
    child.close()


@pytest.mark.parametrize("target", TARGETS)
def test_mutants_end_in_a_result_or_a_typed_error(child, target):
    failures = [(number, *outcome) for number, outcome in child.run(target, 1, 0, MUTANTS) if outcome.is_failure]
    assert not failures


@pytest.mark.parametrize("target", TARGETS)
def test_a_child_has_the_plugins_that_a_target_needs(child, target):
    pools = TARGETS[target].pools()
    seeds = (pool.samples[index] for pool in pools for index in range(min(len(pool.samples), 20)))
    assert any(child.judge(target, pack_sample(sample)).kind == RESULT for sample in seeds)


@pytest.mark.parametrize("target", ["bef", "mlir", "tfg"])
def test_mutants_of_programs_and_graphs_come_to_kernels(child, target):
    reached = [outcome.reached for _, outcome in child.run(target, 2, 0, MUTANTS)]
    assert sum(reached) > MUTANTS / 20


@pytest.mark.parametrize("name", folder(REGRESSIONS))
def test_a_recorded_failure_does_not_occur_again(child, name):
    outcome = child.judge(name.partition("/")[0], (REGRESSIONS / name).read_bytes())
    assert not outcome.is_failure, outcome.text


def test_every_regression_belongs_to_a_target():
    assert {name.partition("/")[0] for name in folder(REGRESSIONS)} <= {*TARGETS}
