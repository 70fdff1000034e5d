"""heald view in a browser: the page asks its server about a node, and shows the answer."""

from __future__ import annotations

import base64
import threading
from pathlib import Path

import heald
import numpy as np
import pytest
from harness.chromium import Browser, find_chromium
from heald_report.inspection import Inspector
from heald_report.page import page_bytes
from heald_report.view_server import ViewServer
from PIL import Image

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "frozen.pb"
PROGRAM = find_chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")
NODE = "functional_1/conv2d_1/convolution"


@pytest.fixture(scope="module")
def address():
    model = heald.load(DIGITS)
    inspector = Inspector(model)
    with ViewServer(page_bytes(model, "digits", None, live=inspector.form_data()), inspector) as server:
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
        .find(l => l.textContent.startsWith('{label}')).querySelector('input, textarea');
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


@pytest.fixture
def picture(tmp_path):
    file = tmp_path / "seven.png"
    Image.fromarray(np.arange(48 * 48, dtype=np.uint32).reshape(48, 48).astype(np.uint8)).save(file)
    return file


def show_model(browser):
    browser.value("report.showPicture(report.first)")
    browser.wait_for("document.querySelector('[data-do=outputs]')")


def test_a_chosen_picture_is_shown_as_the_model_sees_it_and_runs(browser, picture):
    show_model(browser)
    browser.choose_file("#details input[type=file]", picture)
    browser.wait_for("document.querySelector('.sent img')?.naturalWidth === 8")
    assert browser.value("document.querySelector('#details textarea').value").startswith("picture ")
    assert "float32[1, 10]" in answer(browser, "outputs")
    assert browser.value("document.querySelectorAll('.answer .top-results li').length") == 5 * 2  # outputs
    browser.value(f"report.showNode({browser.value(f'report.nodes.name.indexOf({NODE!r})')})")
    assert browser.value("document.querySelector('.sent img').naturalWidth") == 8
    assert "float32[1, 8, 8, 16]" in answer(browser, "values")
    assert browser.logged == []


def test_dropped_and_pasted_files_are_taken_and_bad_ones_told(browser, picture):
    show_model(browser)
    content = base64.b64encode(picture.read_bytes()).decode()
    browser.value(f"""window.drop = (text, name, kind) => {{
        const data = new DataTransfer();
        data.items.add(new File([text], name, {{ type: kind }}));
        document.querySelector('.input-field').dispatchEvent(
            new DragEvent('drop', {{ dataTransfer: data, bubbles: true, cancelable: true }}));
    }}; window.png = Uint8Array.from(atob('{content}'), (c) => c.charCodeAt(0)); drop(png, 'a.png', 'image/png')""")
    browser.wait_for("document.querySelector('.sent img')?.naturalWidth === 8")
    browser.value("drop('no picture', 'b.png', 'image/png')")
    browser.wait_for("document.querySelector('.sent .bad')?.textContent.includes('no PNG, JPEG')")
    browser.value(f"drop('{[[[[0.5]] * 8] * 8]}', 'c.json', 'application/json')")
    browser.wait_for("document.querySelector('#details textarea').value.startsWith('[[[[0.5]')")
    assert "float32[1, 10]" in answer(browser, "outputs")
    browser.value("""(() => { const data = new DataTransfer();
        data.items.add(new File([png], 'd.png', { type: 'image/png' }));
        document.querySelector('#details textarea').dispatchEvent(
            new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })); })()""")
    browser.wait_for("document.querySelector('#details textarea').value.startsWith('picture ')")
    for width, scheme in ((400, "light"), (900, "dark")):
        browser.emulate(width=width, height=800, scheme=scheme)
        assert browser.value("document.querySelector('#details').scrollWidth"
                             " <= document.querySelector('#details').clientWidth")
    assert [line for line in browser.logged if "400" not in line] == []
