"""Fuzzed programs with groups: seeds are right both ways, and a wrong kernel of a group is found."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from heald import bef
from heald.errors import HealdError, Internal, InvalidArgument

from fuzz import bef_edits, compiled_groups, compiled_models, seeds
from fuzz.outcomes import outcome
from fuzz.samples import SINGLE
from fuzz.targets import TARGETS

GROUPS = [sample[SINGLE] for sample in seeds.program_pools()[-1].samples]


def test_every_seed_has_a_group_and_runs(tmp_path):
    for data in GROUPS:
        assert compiled_groups.has_groups(bef.loads(data).program)
        assert outcome(lambda data=data: TARGETS["bef"].door({SINGLE: data}, tmp_path)).kind == "result"


def test_seeds_are_compiled_in_groups_of_several_results():
    results = [len(call.results) for data in GROUPS for function in bef.loads(data).program.functions.values()
               for call in function.kernels if call.code == "heald.group"]
    assert max(results) > 1


def test_mutants_with_groups_end_in_a_result_or_a_typed_error(tmp_path):
    kinds = []
    for number in range(150):
        rng = Random(number)
        data, other = rng.choice(GROUPS), rng.choice(GROUPS)
        edit = rng.choice((bef_edits.edit_repaired, bef_edits.edit_repaired, bef_edits.edit_lying))
        mutant = {SINGLE: edit(rng, data, other, ())}
        result = outcome(lambda mutant=mutant: TARGETS["bef"].door(mutant, tmp_path))
        assert not result.is_failure, (number, result.text)
        kinds.append(result.kind)
    assert kinds.count("result") > 50


def test_some_edits_change_the_call_of_a_group():
    model = bef.loads(GROUPS[2])
    changes = [edit(Random(number), model, model) for edit in compiled_models.EDITS for number in range(60)]
    attributes = {repr(sorted(call.attrs.items(), key=str)) for changed in changes
                  for function in changed.program.functions.values() for call in function.kernels
                  if call.code == "heald.group"}
    assert len(attributes) > 4


@pytest.mark.parametrize(("plain", "with_groups", "error"), [
    ([1, 2], [1, 2], None), ([np.nan], [np.nan], None), ([1, 2], [1, 3], Internal),
    ([1], InvalidArgument("no"), InvalidArgument), (InvalidArgument("no"), [1], Internal),
    (InvalidArgument("no"), InvalidArgument("other"), InvalidArgument), (Internal("no"), [1], Internal),
])
def test_both_ways_are_compared(plain, with_groups, error):
    def run(config):
        result = plain if config is None else with_groups
        if isinstance(result, HealdError):
            raise result
        return {"y": np.float32(result)}

    if error is None:
        compiled_groups.check_both_ways(run)
    else:
        with pytest.raises(error):
            compiled_groups.check_both_ways(run)
