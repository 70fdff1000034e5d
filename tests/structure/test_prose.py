"""The prose checker finds sentences that hide their noun, and the project's pages have few of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from structure import prose

ROOT = Path(__file__).parents[2]
MOST = 3.0  # percent; well-kept libraries have 0 to 3
PAGES = sorted(page.relative_to(ROOT).as_posix() for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")))
PLUGINS = sorted(manifest.parent.relative_to(ROOT).as_posix() for manifest in ROOT.glob("plugins/*/pyproject.toml"))
CODE = ("benchmarks", "conformance", "core", "device_cpu", "device_opencl", "fuzz", "release", *PLUGINS)

HIDING = [
    ("What is there is kept for the next run.", "opens with a clause or pronoun"),
    ("Whether the device is usable, and why.", "opens with a clause or pronoun"),
    ("Where it goes is in the table below.", "opens with a clause or pronoun"),
    ("How many threads run non-blocking tasks.", "opens with a clause or pronoun"),
    ("Those that wait are told about the error.", "opens with a clause or pronoun"),
    ("A lock that nobody holds is made anew.", "nobody in particular"),
    ("The error goes to whoever waits for it.", "nobody in particular"),
    ("It wakes those who wait for the value.", "those, without their noun"),
    ("Names are those of TensorFlow's own messages.", "those, without their noun"),
    ("The queue runs what was added first.", "what, for a noun"),
    ("The device decides about what is enqueued.", "what, for a noun"),
    ("Memory goes back to who asked for it.", "who, for a noun"),
]
PLAIN = [
    "The queue runs the oldest task first.",
    "Returns the number of threads, or None without a pool.",
    "A user who names no device gets CPU:0.",
    "The caller, who owns the array, may write it.",
    "What does a plugin look like?",
    "The step is cancelled where its deadline has passed.",
    "All those devices have one driver.",
    "Somewhere else the budget is larger by half.",
    "Howard's method converges in a few steps.",
]


@pytest.mark.parametrize(("sentence", "rule"), HIDING)
def test_a_sentence_that_hides_its_noun_is_found_by_a_rule(sentence, rule):
    assert prose.rule_of(sentence) == rule


@pytest.mark.parametrize("sentence", PLAIN)
def test_a_sentence_with_its_noun_is_left_alone(sentence):
    assert prose.rule_of(sentence) is None


def test_every_rule_has_an_example():
    assert {rule for _, rule in HIDING} == set(prose.RULES)


def test_sentences_of_markdown_are_those_of_paragraphs_and_items_alone():
    text = """# What this title says is no sentence

The first sentence
goes on. The `what` of code, and [the text](what.md) of links, stay.

| what | a table has |
|---|---|

- One item of a list,
  on two lines. heald is the subject here.
1. A numbered item stands alone.

```sh
what --is this_here now
```
Too short.
<!-- what a comment says here -->
"""
    assert list(prose.sentences(text)) == [
        "The first sentence goes on.", "The CODE of code, and the text of links, stay.",
        "One item of a list, on two lines.", "heald is the subject here.", "A numbered item stands alone.",
    ]


def test_docstrings_and_comments_of_a_module_are_read_and_its_strings_are_not(tmp_path):
    path = tmp_path / "module.py"
    path.write_text('''"""The first line of a module.

    what(is, indented, here)
"""
x = "what a string says is no prose"  # noqa: what a directive says
# Two lines of a comment
# are one sentence.

def f():
    """What a function does here."""
    return x  # a comment beside code
''', "utf-8")
    sentences = [sentence for text in prose.texts(path) for sentence in prose.sentences(text)]
    assert sorted(sentences) == ["The first line of a module.", "Two lines of a comment are one sentence.",
                                 "What a function does here.", "a comment beside code"]


def test_the_command_prints_shares_and_fails_above_the_largest_that_passes(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("A sentence with its noun. What is there is kept.\n", "utf-8")
    assert prose.main([str(tmp_path), "--most", "50"]) == 0
    assert capsys.readouterr().out == f" 50.0 %  1 of 2 sentences  {tmp_path}\n"
    assert prose.main([str(page), "--show", "--most", "49"]) == 1
    assert f"{page}: What is there is kept." in capsys.readouterr().out
    with pytest.raises(SystemExit) as exit_of:
        prose.main([str(tmp_path / "missing.md")])
    assert exit_of.value.code == 2


@pytest.mark.parametrize("name", [*PAGES, *CODE])
def test_few_sentences_of_a_text_hide_their_noun(name):
    hidden = prose.report(ROOT / name)
    shown = "\n".join(f"{f.path.relative_to(ROOT)}: {f.sentence} ({f.rule})" for f in hidden.findings)
    assert hidden.share <= MOST, f"{hidden.share:.1f} % of {name}\n{shown}"


def test_few_sentences_of_tests_hide_their_noun():
    """tests/data has a frozen copy of older plugins, and is left out."""
    reports = [prose.report(path) for path in (ROOT / "tests").iterdir()
               if path.name != "data" and (path.is_dir() or path.suffix == ".py")]
    findings = [f"{f.path.relative_to(ROOT)}: {f.sentence} ({f.rule})" for report in reports for f in report.findings]
    assert 100 * len(findings) <= MOST * sum(report.sentences for report in reports), "\n".join(findings)
