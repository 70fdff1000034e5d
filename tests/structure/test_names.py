"""Names say what a function does and what a variable holds: few bare participles, few words that fit anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from structure import names

ROOT = Path(__file__).parents[2]
MOST_PARTICIPLES = 2.0  # percent of functions; well-kept libraries have 0 to 1.4
MOST_VAGUE = 0.5  # percent of identifiers; well-kept libraries have 0 to 0.4
MOST_VAGUE_IN_TESTS = 1.0
PLUGINS = sorted(manifest.parent.relative_to(ROOT).as_posix() for manifest in ROOT.glob("plugins/*/pyproject.toml"))
CODE = ("benchmarks", "conformance", "core", "device_cpu", "device_gpu", "device_opencl", "examples", "fuzz", "release",
        *PLUGINS)


@pytest.mark.parametrize("folder", CODE)
def test_functions_are_no_bare_participles_and_identifiers_no_vague_words(folder):
    share = names.share_of(ROOT / folder)
    assert share.participles <= MOST_PARTICIPLES, [f for f in share.findings if f.is_function]
    assert share.vague <= MOST_VAGUE, [f for f in share.findings if not f.is_function]


def test_names_of_tests_keep_the_same_rules():
    share = names.share_of(ROOT / "tests")
    assert share.participles <= MOST_PARTICIPLES, [f for f in share.findings if f.is_function]
    assert share.vague <= MOST_VAGUE_IN_TESTS, [f for f in share.findings if not f.is_function]


@pytest.mark.parametrize("name", ["divided", "_told", "laid_out", "remembered"])
def test_a_bare_participle_is_found(name):
    assert names.is_participle(name)


@pytest.mark.parametrize("name", ["feed", "need", "make_divided", "is_closed", "red", "share_of"])
def test_a_name_that_says_more_is_left_alone(name):
    assert not names.is_participle(name)


def test_a_module_is_counted_by_its_functions_and_by_each_use_of_an_identifier(tmp_path):
    module = tmp_path / "module.py"
    module.write_text("""
def divided(found):
    return found, kernel

class Queue:
    @property
    def closed(self):
        return True
    def __enter__(self):
        return self
    def put_last(self, element):
        return element
""")
    share = names.share_of(module)
    assert (share.functions, share.participles, share.identifiers) == (2, 50.0, 9)
    assert [(f.line, f.name, f.is_function) for f in share.findings] == [
        (2, "divided", True), (2, "found", False), (3, "found", False)]


def test_the_contract_of_plugins_does_not_count():
    assert {"Device", "copy_in", "KernelDef"} <= names.contract()
