"""Random models keep their values for random convex groups that a compiler takes, declines, or meets in a file."""

from __future__ import annotations

from random import Random

import heald
import numpy as np
from builders.compilers import FUNCTIONS, NumPyCompiler, runtime_with
from builders.random_models import FEEDS, models
from heald import graphdef
from heald.graphs.session.ahead_of_time import compile_model
from heald.runtime.program.bef import file as bef
from heald.runtime.service.compiled_model import LoadedCompiledModel
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

CONFIG = {"passes": {"disable": ["fusion"]}}
SHAPES = {"x": (2, 2), "p": (), "k": ()}
MODELS = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


class RandomCompiler(NumPyCompiler):
    """Claims random nodes in convex groups, and declines every third group."""

    def __init__(self, seed):
        super().__init__(self.draw)
        self._random = Random(seed)  # noqa: S311 - a test

    def draw(self, part):
        able = [name for name, node in part.nodes.items() if node.op.name in FUNCTIONS
                and not any(node.attrs.get(flag) for flag in ("transpose_a", "transpose_b"))]
        return part.split(name for name in able if self._random.random() < 0.8)

    def compile(self, group):
        self.reason = "by chance" if self._random.random() < 0.3 else ""
        return super().compile(group)


@MODELS
@given(models(), st.integers())
def test_random_groups_change_no_value(drawn, seed):
    model, results = drawn
    with np.errstate(all="ignore"):
        with heald.Session(model, CONFIG) as plain:
            expected = plain.run(results, FEEDS)
        with heald.Session(model, runtime_with(RandomCompiler(seed), config=CONFIG)) as session:
            got = session.run(results, FEEDS)
            again = session.run(results, FEEDS)
    for one, two, three in zip(expected, got, again, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-5)
        np.testing.assert_array_equal(two, three)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(models(), st.integers())
def test_random_groups_in_compiled_files_change_no_value(tmp_path_factory, drawn, seed):
    model, results = drawn
    path = tmp_path_factory.mktemp("models") / "model.pb"
    path.write_bytes(graphdef.dumps(model))
    with np.errstate(all="ignore"):
        with heald.Session(model, CONFIG) as plain:
            expected = plain.run(results, FEEDS)
        names = list(heald.load(path, outputs=results).inputs)
        compiled = compile_model(path, inputs={name: SHAPES[name] for name in names}, outputs=results,
                                 config=runtime_with(RandomCompiler(seed), config=CONFIG))
        for config in (runtime_with(RandomCompiler(seed), config=CONFIG), None):
            loaded = LoadedCompiledModel(bef.loads(bef.dumps(compiled)), config=config)
            answer = loaded(**{name: FEEDS[name] for name in names})
            arrays = [*answer.values()] if isinstance(answer, dict) else [answer]
            for one, two in zip(expected, arrays, strict=True):
                np.testing.assert_allclose(two, one, rtol=1e-5)
