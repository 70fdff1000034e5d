"""Expected output in comments, as LLVM's FileCheck has it: CHECK, CHECK-NEXT, CHECK-LABEL, CHECK-DAG, CHECK-NOT.

A pattern is text, with regular expressions in double braces; runs of blanks are one blank. Each line follows the one
before, CHECK-NEXT in the very next line. CHECK-DAG lines beside each other come in any order. CHECK-NOT must not occur
before the next match.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_DIRECTIVE = re.compile(r"//\s*CHECK(?:-(NEXT|LABEL|DAG|NOT))?:[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_BLANKS = re.compile(r"[ \t]+")


class Check(NamedTuple):
    kind: str
    pattern: re.Pattern[str]
    text: str


def checks_of(source: str) -> list[Check]:
    return [Check(match[1] or "", _pattern(match[2]), match[2]) for match in _DIRECTIVE.finditer(source)]


def _pattern(text: str) -> re.Pattern[str]:
    parts = re.split(r"\{\{(.*?)\}\}", _BLANKS.sub(" ", text))
    return re.compile("".join(f"(?:{part})" if i % 2 else re.escape(part) for i, part in enumerate(parts)))


def check_output(source: str, output: str) -> None:
    """Raises AssertionError for the first comment of a source that its output does not meet."""
    lines = [_BLANKS.sub(" ", line) for line in output.splitlines()]
    checks = checks_of(source)
    assert checks or not output or "expected-" in source, f"no comment expects this output:\n{output}"
    at, number = 0, 0
    while number < len(checks):
        banned = []
        while number < len(checks) and checks[number].kind == "NOT":
            banned.append(checks[number])
            number += 1
        group = [checks[number]] if number < len(checks) else []
        number += 1
        while group and group[0].kind == "DAG" and number < len(checks) and checks[number].kind == "DAG":
            group.append(checks[number])
            number += 1
        first, last = _matched_lines(group, lines, at, output) if group else (len(lines), len(lines))
        for check in banned:
            bad = [line for line in lines[at:first] if check.pattern.search(line)]
            assert not bad, f"CHECK-NOT: {check.text}\nis met by {bad[0]!r} in\n{output}"
        at = last
    assert number >= len(checks)


def _matched_lines(group: list[Check], lines: list[str], start: int, output: str) -> tuple[int, int]:
    """The first line of the matches, and the line after the last one."""
    line_numbers: list[int] = []
    for check in group:
        candidates = [start] if check.kind == "NEXT" else range(start, len(lines))
        line_number = next((i for i in candidates if i < len(lines) and i not in line_numbers
                            and check.pattern.search(lines[i])), None)
        name = f"CHECK-{check.kind}" if check.kind else "CHECK"
        assert line_number is not None, f"{name}: {check.text}\nis not met from line {start + 1} on in\n{output}"
        line_numbers.append(line_number)
    return min(line_numbers), max(line_numbers) + 1
