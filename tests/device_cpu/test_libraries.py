"""Kernels of the CPU that need a library state it, so that its lack is known before anything is bound."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import heald_cpu
import numpy as np
import pytest
from harness.run_op import REGISTRIES, run_op
from heald.runtime.support import install

PACKAGE = Path(heald_cpu.__file__).parent
REQUIRED = {"heald", "heald_cpu", "heald_tf_ops", "ml_dtypes", "numpy"}  # by the distribution itself
OPS = {
    "google-re2": ["RegexFullMatch", "RegexReplace", "StaticRegexFullMatch", "StaticRegexReplace"],
    "pillow": ["DecodeGif", "DecodeImage", "DecodePng", "DecodeWebP", "EncodeJpeg"],
    "scipy": ["BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0", "BesselJ1", "BesselK0",
              "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1", "Betainc", "Dawsn",
              "Digamma", "Erfinv", "Expint", "FresnelCos", "FresnelSin", "Igamma", "IgammaGradA",
              "Igammac", "Lgamma", "MatrixExponential", "MatrixLogarithm", "MatrixSquareRoot",
              "Ndtri", "Polygamma", "RandomGammaGrad", "Spence", "Zeta"],
    "simplejpeg": ["DecodeAndCropJpeg", "DecodeJpeg", "ExtractJpegShape"],
}


def imported_packages() -> set[str]:
    trees = [ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")]
    statements = [statement for tree in trees for statement in ast.walk(tree)]
    modules = [alias.name for s in statements if isinstance(s, ast.Import) for alias in s.names]
    modules += [str(s.module) for s in statements if isinstance(s, ast.ImportFrom) and not s.level]
    return {module.partition(".")[0] for module in modules}


def test_every_library_that_is_not_required_is_stated_by_kernels():
    REGISTRIES.kernels.load("CPU")
    stated: dict[str, set[str]] = {}
    modules = set()
    for kernel in REGISTRIES.kernels.loaded_kernels():
        if kernel.library is not None:
            stated.setdefault(kernel.library.requirement, set()).add(kernel.op)
            modules.add(kernel.library.module)
    assert {requirement: sorted(ops) for requirement, ops in stated.items()} == OPS
    assert imported_packages() - set(sys.stdlib_module_names) - REQUIRED == modules


@pytest.mark.parametrize(("requirement", "op"), [(name, op) for name, ops in OPS.items() for op in ops])
def test_a_kernel_without_its_library_is_no_candidate_and_names_the_command(requirement, op, monkeypatch):
    monkeypatch.setattr(install, "is_importable", lambda _: False)
    for kernel in REGISTRIES.kernels.candidates(op, "CPU"):
        attrs = {name: next(iter(types)) for name, types in kernel.dtypes.items() if types}
        assert f"pip install {requirement}" in str(kernel.refuses(attrs))


def test_a_kernel_beside_those_that_lack_a_library_works(monkeypatch):
    monkeypatch.setattr(install, "is_importable", lambda _: False)
    with pytest.raises(AssertionError, match="no kernel for DecodePng"):
        run_op("DecodePng", [np.array(b"", object)], {})
    (encoded,) = run_op("EncodePng", [np.zeros((2, 3, 1), np.uint8)], {})
    assert encoded.item().startswith(b"\x89PNG")


@pytest.mark.parametrize(("module", "is_there"), [("json", True), ("no_such_module", False), ("hidden_module", False)])
def test_a_library_is_looked_for_without_an_import(module, is_there, monkeypatch):
    monkeypatch.setitem(sys.modules, "hidden_module", None)
    library = install.Library("Thing", module, "some-distribution")
    install.is_importable.cache_clear()
    assert library.lack() == (None if is_there else "it needs Thing: pip install some-distribution")
