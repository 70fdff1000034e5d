"""The guide of plugin authors names things that exist: hooks, options, settings, and names of heald.api."""

from __future__ import annotations

import re
from pathlib import Path

import heald.api
import pytest
from heald import errors
from heald.cli.commands import COMMANDS, of_plugins, parser_of
from heald.runtime.config.config import load_config
from heald.runtime.contract import hookspecs
from heald_conformance.pytest_plugin import HELP
from heald_tools import new

ROOT = Path(__file__).parents[2]
GUIDE = sorted([*ROOT.glob("docs/plugin-*.md"), ROOT / "docs/commands.md", ROOT / "docs/plugins.md"])
OF_OTHERS = {"--pyargs"}  # options of pytest
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.DOTALL | re.MULTILINE)


def code_of(page: Path) -> str:
    return "\n".join(CODE.findall(page.read_text("utf-8")))


def options() -> set[str]:
    """The options of all commands, and of the conformance suite."""
    helps = [parser_of(command).format_help() for command in (*COMMANDS.values(), *of_plugins().usable())]
    own = {"--device", "--pack", "--plugin", "--conformance-config", "--conformance-quick", "--session",
           *(f"--{name}" for name in HELP)}
    return own | OF_OTHERS | {option for text in helps for option in re.findall(r"--[a-z][\w-]*", text)} | {"--version"}


def hooks() -> set[str]:
    return {name for name in vars(hookspecs.Hooks) if name.startswith("heald_")}


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.name)
def test_the_hooks_of_a_page_exist(page):
    named = set(re.findall(r"\b(heald_[a-z_]+)\(registry", code_of(page)))
    assert named - hooks() == set()


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.name)
def test_the_options_of_a_page_exist(page):
    named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", code_of(page)))
    assert named - options() - {"--count"} == set()  # which the command of the page on commands brings


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.name)
def test_the_settings_of_a_page_exist(page):
    code = code_of(page)
    named = set(re.findall(r"\[([a-z_]+)\] ([a-z_]+)\b", code))
    named |= {(section.lower(), key.lower()) for section, key in re.findall(r"HEALD_([A-Z]+)__([A-Z_]+)", code)}
    config = load_config({})
    assert [pair for pair in named if not hasattr(getattr(config, pair[0], None), pair[1])] == []


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.name)
def test_the_names_of_the_contract_of_a_page_exist(page):
    code = code_of(page)
    for name in set(re.findall(r"heald\.api\.([A-Za-z_]+)", code)) - {"cli", "NAME"}:
        assert hasattr(heald.api, name), name
    for name in set(re.findall(r"heald\.errors\.([A-Za-z_]+)", code)):
        assert hasattr(errors, name), name


def test_every_hook_and_every_kind_has_a_page():
    texts = {page.name: page.read_text("utf-8") for page in GUIDE if page.name != "plugins.md"}
    assert {hook for hook in hooks() if not any(f"`{hook}" in text for text in texts.values())} == set()
    first_hour = texts["plugin-first-hour.md"]
    assert {kind for kind in (*new.NEXT, *new.FILES) if f"`heald new {kind}`" not in first_hour} == set()


@pytest.mark.parametrize("page", [page for page in GUIDE if page.name not in ("plugins.md", "plugin-first-hour.md")],
                         ids=lambda page: page.name)
def test_a_page_states_calls_threads_results_errors_and_cost(page):
    text = page.read_text("utf-8").lower()
    lacking = [word for word in ("called ", "thread", "returns", "may raise", "cost") if word not in text]
    assert lacking == []
