"""Tables fit the terminal; JSON holds the values of a row in full."""

import json
import math

import pytest
from heald.cli.printing import table

ROWS = [{"name": "scope/" * 12 + "leaf", "why": "words that go on " * 6, "empty": "", "count": 1234, "on": True}]


def print_table(capsys, **options):
    table.show(ROWS, ("name", "why", "empty", "count", "on"), **options)
    return capsys.readouterr().out


def test_piped_tables_are_whole(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    text = print_table(capsys, cut=("name",), wrap=("why",))
    assert ROWS[0]["name"] in text
    assert ROWS[0]["why"].strip() in text


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_names_are_cut_and_texts_wrapped_on_a_terminal(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    text = print_table(capsys, cut=("name",), wrap=("why",))
    assert max(map(len, text.splitlines())) <= columns
    assert "…" in text
    assert "leaf" in text
    assert text.count("words") == 6


def test_empty_columns_are_left_out_and_values_are_for_people(capsys):
    head, _, row = print_table(capsys).splitlines()
    assert head.split() == ["name", "why", "count", "on"]
    assert row.split()[-2:] == ["1,234", "yes"]


def test_json_has_no_numbers_that_json_lacks(capsys):
    table.show_json({"a": [math.nan, math.inf, -math.inf, 1.5], "b": {1: (2, "ü")}})
    text = capsys.readouterr().out
    assert json.loads(text) == {"a": ["NaN", "Infinity", "-Infinity", 1.5], "b": {"1": [2, "ü"]}}
    assert "ü" in text


@pytest.mark.parametrize(("count", "text"), [
    (0, "0 bytes"), (999, "999 bytes"), (1000, "1 kB"), (999_999, "1 MB"), (14_363_601, "14.4 MB"), (3 * 10**12, "3 TB")
])
def test_bytes_are_told_in_three_digits(count, text):
    assert table.byte_text(count) == text


def test_nouns_are_counted():
    assert [table.plural(n, "node") for n in (0, 1, 2000)] == ["0 nodes", "1 node", "2,000 nodes"]
