"""heald view in a browser: the page asks its server about a node, and shows the answer."""

from __future__ import annotations

import threading
from pathlib import Path

import heald
import pytest
from harness.chromium import Browser, find_chromium
from heald_report.inspection import Inspector
from heald_report.page import page_bytes
from heald_report.view_server import ViewServer

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "frozen.pb"
PROGRAM = find_chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")
NODE = "functional_1/conv2d_1/convolution"


@pytest.fixture(scope="module")
def address():
    model = heald.load(DIGITS)
    inspector = Inspector(model)
    with ViewServer(page_bytes(model, "digits", None, live=inspector.description()), inspector) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"{server.address}#tab=graph&node={NODE}"
        server.shutdown()
        thread.join()


@pytest.fixture
def browser(tmp_path, address):
    browser = Browser(PROGRAM, tmp_path / "chromium")
    browser.open(address)
    browser.wait_for("document.querySelector('#details [data-do]')")
    yield browser
    browser.close()


def answer(browser, action):
    browser.value(f"document.querySelector('[data-do={action}]').click()")
    browser.wait_for("!document.querySelector('[data-do]').disabled && document.querySelector('.answer').textContent")
    return browser.value("document.querySelector('.answer').innerText")


def fill(browser, label, text):
    browser.value(f"""(() => {{ const field = [...document.querySelectorAll('#details label')]
        .find(l => l.textContent.startsWith('{label}')).querySelector('input');
        field.value = '{text}'; field.dispatchEvent(new Event('input')); }})()""")


def test_a_node_shows_its_value_shapes_and_another_device(browser):
    text = answer(browser, "values")
    assert "float32[1, 8, 8, 16]" in text
    assert browser.value("document.querySelectorAll('.answer .bar-of').length") == 32
    assert browser.value("document.querySelector('.answer img').naturalWidth") == 32
    fill(browser, "image", ":5,8,8,1")
    assert "float32[5,8,8,16]" in answer(browser, "shapes")
    fill(browser, "device", "EXAMPLE:0")
    assert "EXAMPLE" in answer(browser, "compare") or browser.value("document.querySelector('.answer .bad')")
    fill(browser, "image", "/etc/passwd")
    assert "no JSON value" in answer(browser, "values")
    assert [line for line in browser.logged if "400" not in line] == []


@pytest.mark.parametrize("width", [400, 900, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_with_an_answer_keeps_the_width_of_the_window(browser, width, scheme):
    browser.emulate(width=width, height=800, scheme=scheme)
    assert "float32" in answer(browser, "values")
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value("document.querySelector('#details').scrollWidth"
                         " <= document.querySelector('#details').clientWidth")
