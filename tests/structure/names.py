"""Find names that their source alone explains: functions called by a bare participle, and vague identifiers.

    python tests/structure/names.py core tests --show

A function that is called `divided` or `told` does not say what it does, nor to what. An identifier such as `found` or
`given` does not say what it holds. The share of both is printed for each path, and with --show every such name with its
line. Properties, special methods, decorators, and the contract of plugins do not count: functions that `heald.api`
exports, and methods of its classes.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

PARTICIPLE = re.compile(
    r"[a-z]{3,}ed|begun|bound|broken|built|chosen|drawn|found|given|gone|held|hidden|kept|laid_out|left|lent|lost|made"
    "|met|put|seen|sent|shown|spread|taken|told|understood|written|known")
NO_PARTICIPLES = {"embed", "exceed", "feed", "indeed", "need", "proceed", "seed", "shed", "speed"}
CALLED_BY_NAME = {"attached", "elapsed", "forked"}  # methods that packs, core and `heald.api.inherited` call
VAGUE = re.compile(
    "around|asked|chosen|come|each|elsewhere|entered|found|given|gone|held|kept|known|made|mine|most|near|own|pieces?"
    "|place|put|rest|seen|sent|served|taken|told|wanted|ways?|whole")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Finding(NamedTuple):
    """A name with its place. `is_function` is False for an identifier."""

    path: Path
    line: int
    name: str
    is_function: bool


class Share(NamedTuple):
    """Counts below a path: of functions and identifiers, and the findings among them."""

    functions: int
    identifiers: int
    findings: list[Finding]

    @property
    def participles(self) -> float:
        """The share of functions that are called by a bare participle, in percent."""
        return 100 * sum(f.is_function for f in self.findings) / max(1, self.functions)

    @property
    def vague(self) -> float:
        """The share of identifiers that are vague words, in percent."""
        return 100 * sum(not f.is_function for f in self.findings) / max(1, self.identifiers)


def is_participle(name: str) -> bool:
    """Return True when a whole name, without leading underscores, is one participle."""
    name = name.lstrip("_")
    return PARTICIPLE.fullmatch(name) is not None and name not in NO_PARTICIPLES


@cache
def contract() -> frozenset[str]:
    """The names that `heald.api` exports, and those of the members of its classes."""
    import heald.api

    exports = [getattr(heald.api, name) for name in heald.api.__all__]
    members = (name for export in exports if isinstance(export, type)
               for name in (*vars(export), *getattr(export, "__annotations__", ())))
    return frozenset((*heald.api.__all__, *CALLED_BY_NAME, *members))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a module, without properties, special methods and the contract of plugins."""
    for node in ast.walk(tree):
        if (isinstance(node, _FUNCTIONS) and not node.name.startswith("__") and node.name not in contract()
                and not any("property" in ast.unparse(decorator) for decorator in node.decorator_list)):
            yield node


def identifiers(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Each use of a variable and each argument of a function, with its line. Decorators are left out."""
    decorators = {decorator.func if isinstance(decorator, ast.Call) else decorator
                  for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) for decorator in node.decorator_list}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node not in decorators:
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno


def share_of(path: Path) -> Share:
    """Count the names of a module, or of all modules below a folder."""
    function_count = identifier_count = 0
    findings: list[Finding] = []
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        tree = ast.parse(file.read_text("utf-8"))
        for function in functions(tree):
            function_count += 1
            if is_participle(function.name):
                findings.append(Finding(file, function.lineno, function.name, True))
        for name, line in identifiers(tree):
            identifier_count += 1
            if VAGUE.fullmatch(name):
                findings.append(Finding(file, line, name, False))
    return Share(function_count, identifier_count, findings)


def main(argv: list[str] | None = None) -> int:
    """Print a line for each path. Return 2 when one does not exist."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--show", action="store_true", help="print every finding")
    options = parser.parse_args(argv)
    for path in options.paths:
        if not path.exists():
            print(f"{path} does not exist", file=sys.stderr)
            return 2
        share = share_of(path)
        if options.show:
            for finding in share.findings:
                print(f"{finding.path}:{finding.line} {'def ' * finding.is_function}{finding.name}")
        print(f"{path}: {share.participles:.1f} % of {share.functions} functions, {share.vague:.2f} % of "
              f"{share.identifiers} identifiers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
