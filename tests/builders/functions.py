"""Layer normalisations of x, and activations of v, as frameworks and exporters write them."""

from __future__ import annotations

import math

import numpy as np
from builders.graphs import const, node
from harness.onednn_pair import numbers

CHANNELS = 24
AXIS = const("axis", [-1], np.int32)
KEEP = {"keep_dims": True}
MOMENTS = [AXIS, node("mean", "Mean", "x", "axis", **KEEP), node("apart", "SquaredDifference", "x", "mean"),
           node("variance", "Mean", "apart", "axis", **KEEP), const("epsilon", 1e-3),
           node("more", "AddV2", "variance", "epsilon"), node("root", "Rsqrt", "more")]
CENTRED = [node("centred", "Sub", "x", "mean"), node("normal", "Mul", "root", "centred")]
GAMMA, BETA = (const(name, numbers(1, 1, CHANNELS)) for name in ("gamma", "beta"))
LAYER_NORMS = {
    "keras 3": [*MOMENTS, GAMMA, BETA, node("inner", "Mul", "root", "gamma"), node("scaled", "Mul", "x", "inner"),
                node("less", "Neg", "mean"), node("shift", "Mul", "less", "inner"),
                node("shifted", "AddV2", "shift", "beta"), node("y", "AddV2", "scaled", "shifted")],
    "tf.nn.batch_normalization": [
        *MOMENTS, GAMMA, BETA, node("inner", "Mul", "root", "gamma"), node("scaled", "Mul", "x", "inner"),
        node("shift", "Mul", "mean", "inner"), node("shifted", "Sub", "beta", "shift"),
        node("y", "AddV2", "scaled", "shifted")],
    "as in the paper": [*MOMENTS, *CENTRED, GAMMA, BETA, node("scaled", "Mul", "normal", "gamma"),
                        node("y", "AddV2", "beta", "scaled")],
    "a division": [*MOMENTS[:-1], node("root", "Sqrt", "more"), CENTRED[0], GAMMA, BETA,
                   node("normal", "RealDiv", "centred", "root"), node("scaled", "Mul", "normal", "gamma"),
                   node("y", "AddV2", "scaled", "beta")],
    "squares of what is centred": [
        *MOMENTS[:2], CENTRED[0], node("apart", "Square", "centred"), *MOMENTS[3:], CENTRED[1], GAMMA, BETA,
        node("scaled", "Mul", "normal", "gamma"), node("y", "AddV2", "scaled", "beta")],
    "no scale": [*MOMENTS, *CENTRED, BETA, node("y", "AddV2", "normal", "beta")],
    "no shift": [*MOMENTS, *CENTRED, GAMMA, node("y", "Mul", "normal", "gamma")],
}
HALF, ONE, ROOT = const("half", 0.5), const("one", 1.0), const("root", math.sqrt(0.5))
GELUS = {  # of v
    "keras 3": [HALF, ROOT, node("halved", "Mul", "half", "v"), node("less", "Neg", "v"),
                node("inner", "Mul", "less", "root"), node("curve", "Erfc", "inner"),
                node("g", "Mul", "halved", "curve")],
    "erf": [HALF, ONE, ROOT, node("inner", "Mul", "v", "root"), node("curve", "Erf", "inner"),
            node("whole", "AddV2", "curve", "one"), node("halved", "Mul", "v", "half"),
            node("g", "Mul", "halved", "whole")],
    "erf of a quotient, halved last": [
        HALF, ONE, const("root", math.sqrt(2)), node("inner", "RealDiv", "v", "root"), node("curve", "Erf", "inner"),
        node("whole", "AddV2", "one", "curve"), node("double", "Mul", "whole", "v"),
        node("g", "Mul", "double", "half")],
    "tanh": [HALF, ONE, const("three", 3.0), const("small", 0.044715), const("root", math.sqrt(2 / math.pi)),
             node("cube", "Pow", "v", "three"), node("cubed", "Mul", "small", "cube"),
             node("sum", "AddV2", "v", "cubed"), node("inner", "Mul", "root", "sum"), node("curve", "Tanh", "inner"),
             node("whole", "AddV2", "one", "curve"), node("halved", "Mul", "half", "v"),
             node("g", "Mul", "halved", "whole")],
    "tanh by squares": [
        HALF, ONE, const("small", 0.044715), const("root", math.sqrt(2 / math.pi)), node("square", "Square", "v"),
        node("cube", "Mul", "square", "v"), node("cubed", "Mul", "small", "cube"), node("sum", "AddV2", "v", "cubed"),
        node("inner", "Mul", "root", "sum"), node("curve", "Tanh", "inner"), node("whole", "AddV2", "one", "curve"),
        node("halved", "Mul", "half", "whole"), node("g", "Mul", "v", "halved")],
}
THREE, SIX = const("three", 3.0), const("six", 6.0)
CLIPPED = [THREE, node("more", "AddV2", "v", "three"), node("clipped", "Relu6", "more")]
HARD_SWISHES = {  # of v
    "keras 3": [*CLIPPED, SIX, node("part", "RealDiv", "clipped", "six"), node("g", "Mul", "v", "part")],
    "by a factor": [*CLIPPED, const("sixth", 1 / 6), node("part", "Mul", "sixth", "clipped"),
                    node("g", "Mul", "part", "v")],
    "divided last": [*CLIPPED, SIX, node("whole", "Mul", "v", "clipped"), node("g", "RealDiv", "whole", "six")],
}
