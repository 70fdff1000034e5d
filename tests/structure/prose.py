"""Find sentences that hide their noun, in docstrings, comments and Markdown.

    python tests/structure/prose.py core README.md --show

A clause in place of a noun makes the reader guess the component: "what is there", "those that wait". Sentences that
open with such a clause, or with a vague person as the subject, are the same fault. Each rule below is one pattern. The
share of matching sentences is printed for each path, and with --show every such sentence with its rule. The exit status
is 1 when a share exceeds --most, and 2 for a path that does not exist.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from pathlib import Path
from typing import NamedTuple

LEAST_WORDS = 4  # shorter pieces are labels rather than sentences
RULES = {  # the first that matches a sentence is its finding; code within a sentence reads as CODE
    "opens with a clause or pronoun":
        re.compile(r"(?:What|Who|Whose|Where|Wherever|Whether|How|That|Those|Which|Why)\b", re.ASCII),
    "nobody in particular": re.compile(r".*\b(?:nobody|somebody|anybody|whoever|whomever|whatever|whichever)\b", re.I),
    "those, without their noun": re.compile(
        r".*\b(?:those (?:that|who|which|whose|of|from|in|with|without|for|to|where)|that which)\b", re.I),
    "what, for a noun": re.compile(r".*\bwhat\b", re.I),
    "who, for a noun": re.compile(
        r".*(?:\b(?:of|by|for|to|with|from|and|or|than|but|is|as)|[;:]) who\b", re.I),
}
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_MARKUP = re.compile(r"<!--.*?-->|</?[a-z][^>]*>", re.DOTALL)
_CODE = re.compile(r"(`+).+?\1", re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s")  # of a list: it begins a paragraph
_APART = re.compile(r"\s*(?:\||#|>>>|    )|\s*$")  # rows of tables, headings, code, empty lines: they end one
_END = re.compile(r"(?<=[.!?])[\"')*_]*\s+(?=[\"'(*_]*(?:[A-Z]|heald\b))")
_DIRECTIVE = re.compile(r"#\s*(?:noqa|type:|mypy:|pragma|!)")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Finding(NamedTuple):
    """A sentence that hides its noun, with the name of its rule."""

    path: Path
    rule: str
    sentence: str


class Report(NamedTuple):
    """The sentences of one path: their number, and the findings among them."""

    sentences: int
    findings: tuple[Finding, ...]

    @property
    def share(self) -> float:
        """Findings in percent of the sentences; 0 without sentences."""
        return 100 * len(self.findings) / max(self.sentences, 1)


def rule_of(sentence: str) -> str | None:
    """The rule that a sentence breaks, or None. Questions break none."""
    if sentence.rstrip("\"')*_").endswith("?"):
        return None
    return next((name for name, pattern in RULES.items() if pattern.match(sentence)), None)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text in Markdown: of its paragraphs and list items, not of code, tables and headings."""
    for paragraph in _paragraphs(_LINK.sub(r"\1", _CODE.sub("CODE", _MARKUP.sub("", _FENCE.sub("", text))))):
        for sentence in _END.split(paragraph):
            sentence = sentence.strip().lstrip("\"'(*_")
            if len(sentence.split()) >= LEAST_WORDS:
                yield sentence


def _paragraphs(text: str) -> Iterator[str]:
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        is_item = _ITEM.match(line) is not None
        if is_item or (_APART.match(line) and not (lines and line.startswith("    ") and line.strip())):
            yield " ".join(lines)
            lines = []
        if is_item:
            line = _ITEM.sub("", line, count=1)
        if lines or not _APART.match(line):
            lines.append(line.strip())


def texts(path: Path) -> Iterator[str]:
    """The prose of a file: all of a .md file, the docstrings and comments of a .py file."""
    source = path.read_text("utf-8")
    if path.suffix == ".md":
        yield source
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED):
            yield cleandoc(ast.get_docstring(node, clean=False) or "")
    yield from _comments(source)


def _comments(source: str) -> Iterator[str]:
    """Comments, those on adjacent lines as one text."""
    block: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or _DIRECTIVE.match(token.string):
            continue
        line = token.start[0]
        if line != last + 1:
            yield "\n".join(block)
            block = []
        block.append(token.string.lstrip("#: "))
        last = line
    yield "\n".join(block)


def report(path: Path) -> Report:
    """The report on a file, or on all .py and .md files below a folder."""
    files = [path] if path.is_file() else sorted([*path.rglob("*.py"), *path.rglob("*.md")])
    every = [(file, sentence) for file in files for text in texts(file) for sentence in sentences(text)]
    findings = (Finding(file, rule, sentence) for file, sentence in every if (rule := rule_of(sentence)) is not None)
    return Report(len(every), tuple(findings))


def main(arguments: Iterable[str] | None = None) -> int:
    """Print the share of each path. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a .py or .md file, or a folder of them")
    parser.add_argument("--show", action="store_true", help="print each sentence, with its rule")
    parser.add_argument("--most", type=float, default=100.0, metavar="PERCENT", help="the largest share that passes")
    options = parser.parse_args(None if arguments is None else list(arguments))
    missing = [str(path) for path in options.paths if not path.exists()]
    if missing:
        parser.error(f"no such file or folder: {', '.join(missing)}")
    status = 0
    for path in options.paths:
        hidden = report(path)
        for finding in hidden.findings if options.show else ():
            print(f"{finding.path}: {finding.sentence}\n    {finding.rule}")
        print(f"{hidden.share:5.1f} %  {len(hidden.findings)} of {hidden.sentences} sentences  {path}")
        status |= hidden.share > options.most
    return status


if __name__ == "__main__":
    sys.exit(main())
