"""NumPy kernels with TensorFlow's semantics, a family a module: the reference that other devices are compared with.

A family is imported at the first request for one of its ops: a network needs few families. families.tsv lists the ops,
a family a line; `python -m heald_cpu.kernels` writes it.
"""

from functools import partial
from importlib import import_module
from pathlib import Path

from heald.api import Kernels

TABLE = Path(__file__).parent / "families.tsv"


def register_kernels(kernels: Kernels) -> None:
    for line in TABLE.read_text("utf-8").splitlines():
        family, ops = line.split("\t")
        kernels.later(ops.split(), partial(register_family, family))


def register_family(family: str, kernels: Kernels) -> None:
    import_module(f".{family}", __name__).register_kernels(kernels)


register = register_kernels  # the name in version 1.0 of the contract: other devices' packs may refer to it
