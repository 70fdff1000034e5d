"""The options of an engine: the runs that have none, and the amounts of resources."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

import pytest
from heald.errors import InvalidArgument
from heald_tools import run
from heald_tools.engine import check_engine, resource_amount

MODEL = str(Path(__file__).parents[2] / "examples" / "digits" / "frozen.pb")


def parse(*words):
    parser = ArgumentParser(allow_abbrev=False)
    run.add_arguments(parser)
    return parser.parse_args([MODEL, *words])


@pytest.mark.parametrize("words", [["--actors", "2"], ["--address", "a:1"], ["--insecure"],
                                   ["--actor-resource", "GPU=1"],
                                   ["--model-on-workers", "/m"]])
def test_an_option_of_engines_asks_for_one(words):
    with pytest.raises(InvalidArgument, match=f"{words[0]} is for --engine"):
        check_engine(parse(*words), is_served=False, is_of_rows=True)


@pytest.mark.parametrize(("words", "is_served", "is_of_rows", "text"), [
    ([], False, False, "is for many rows"),
    ([], True, True, "this one is served"),
    (["--target", "init"], False, True, "has no --target"),
    (["--timeout", "3"], False, True, "has no --timeout"),
    (["--format", "bef"], False, True, "has no --format"),
    (["--tags", "serve"], False, True, "has no --tags"),
])
def test_a_run_that_engines_do_not_have_is_refused(words, is_served, is_of_rows, text):
    with pytest.raises(InvalidArgument, match=text):
        check_engine(parse("--engine", "ray", *words), is_served=is_served, is_of_rows=is_of_rows)


@pytest.mark.parametrize("text", ["GPU", "GPU=", "=1", "GPU=0", "GPU=-1", "GPU=nan", "GPU=inf", "GPU=x"])
def test_a_resource_has_a_name_and_a_positive_amount(text):
    with pytest.raises(ArgumentTypeError, match="no resource with an amount"):
        resource_amount(text)
