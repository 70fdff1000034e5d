"""A plugin of the tests alone: compilers with one fault each that the conformance suite must find."""

from __future__ import annotations

import time

import numpy as np
from builders.compilers import FUNCTIONS, NumPyCompiler
from heald.api import hookimpl

HEALD_API = (1, 4)


class Gap(NumPyCompiler):
    def claim(self, part):
        names = list(part.nodes)
        return [[names[0], names[-1]]] if len(names) > 2 else []


class Counting(NumPyCompiler):
    claims = 0

    def claim(self, part):
        self.claims += 1
        return part.split([name for name, node in part.nodes.items() if node.op.name in FUNCTIONS][self.claims % 2 :])


class NegForAbs(NumPyCompiler):
    def compile(self, group):
        kernel, has_abs = self.kernel(group), any(op.op == "Abs" for op in group.fused)

        def run(*operands):
            kernel(*operands)
            if has_abs:
                np.negative(operands[-1], out=operands[-1])

        return run


class FirstFeed(NumPyCompiler):
    def compile(self, group):
        kernel, count, first = self.kernel(group), len(group.inputs), []

        def run(*operands):
            first[:] = first or [operand.copy() for operand in operands[:count]]
            kernel(*first, *operands[count:])

        return run


class Sleeping(NumPyCompiler):
    def compile(self, group):
        time.sleep(2)
        return super().compile(group)


class WritingInputs(NumPyCompiler):
    def compile(self, group):
        kernel = self.kernel(group)

        def run(*operands):
            kernel(*operands)
            operands[0].flags.writeable = True
            operands[0][...] = 7

        return run


class Silent(NumPyCompiler):
    def compile(self, group):
        return group.decline("")


class OneThread(NumPyCompiler):
    def compile(self, group):
        kernel, count = self.kernel(group), len(group.inputs)
        scratch = [np.empty(info.meta.dims, info.dtype.numpy) for info in group.inputs]

        def run(*operands):
            for own, operand in zip(scratch, operands[:count], strict=True):
                own[...] = operand
            time.sleep(1e-3)
            kernel(*scratch, *operands[count:])

        return run


COMPILERS = {
    "leaves_a_gap": Gap(), "counts_its_claims": Counting(), "takes_neg_for_abs": NegForAbs(),
    "keeps_the_first_feed": FirstFeed(), "never_compiles": Sleeping(), "writes_its_inputs": WritingInputs(),
    "declines_in_silence": Silent(), "is_for_one_thread": OneThread(),
}


@hookimpl
def heald_compilers(registry):
    for name, compiler in COMPILERS.items():
        registry.add(name, compiler, device_type="CPU")
