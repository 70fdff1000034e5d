"""The page in a browser: drawings, pictures, texts and numbers become requests, and answers are shown."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from harness.chromium import Browser, find_chromium
from harness.serve_models import echo, infos, settings_of, signature, start_server
from heald.api import TensorInfo, TensorMetadata, dtypes
from heald.errors import DataLoss
from heald_serve.metrics import Metrics
from heald_serve.models.load_version import LoadSettings, load_version
from heald_serve.models.model_config import ModelConfig, VersionPolicy
from heald_serve.models.served_model import CLASSIFY, REGRESS
from heald_serve.server import ModelServer

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
PROGRAM = find_chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")
MARKUP = "<img src=x onerror=document.title='hacked'>"
TOKEN = "a tökén/+=€"  # noqa: S105 - of these tests alone


def shaped(**tensors):
    """Tensors by name, each an element type and a shape."""
    return {name: TensorInfo(f"{name}:0", TensorMetadata(dtypes.named(kind), shape))
            for name, (kind, shape) in tensors.items()}


def classify_texts(text):
    scores = np.float32([[0.7, 0.3] if b"good" in row else [0.1, 0.9] for row in text])
    return np.array([[b"good", MARKUP.encode()]] * len(text), object), scores


IMAGE = shaped(image=("float32", (None, None, None, 3)))
NUMBERS = shaped(a=("int64", ()), b=("float64", (None, 2)), c=("bool", (None,)))
FEATURES = shaped(**{f"feature_{number}": ("float32", (None, 1)) for number in range(6)})
EXAMPLES = signature(infos(inputs="string"), infos(classes="string", scores="float32"), lambda inputs: (
    np.array([[b"cat", b"dog"]] * len(inputs), object), np.float32([[0.25, 0.75]] * len(inputs))), method=CLASSIFY)
EXAMPLES |= signature(infos(inputs="string"), infos(outputs="float32"), lambda inputs: np.float32([1.5] * len(inputs)),
                      name="size", method=REGRESS)
MODELS = {
    "texts": signature(shaped(text=("string", (None,))),
                       shaped(classes=("string", (None, 2)), scores=("float32", (None, 2))), classify_texts),
    MARKUP: echo(x="string"),
    "mirror": signature(IMAGE, IMAGE, lambda image: image[:, :, ::-1]),
    "flat": signature(shaped(x=("float32", (None, 784))), shaped(sums=("float32", (None, 2))),
                      lambda x: np.stack([x.sum(1), x.max(1)], 1)),
    "bytes": signature(shaped(x=("uint8", (None, 8, 8, 1))), shaped(y=("uint8", (None, 8, 8, 1))), lambda x: x),
    "numbers": signature(NUMBERS, NUMBERS, lambda a, b, c: (a, b, c)),
    "examples": EXAMPLES,
    "nothing": signature({}, shaped(y=("float32", ())), lambda: np.float32(7)),
    "features": signature(FEATURES, shaped(sum=("float32", (None, 1))), lambda **arrays: sum(arrays.values())),
    "embedding": signature(infos(x="string"), shaped(vector=("float32", (None, 300))),
                           lambda x: np.linspace(-1, 1, 300, dtype="f")[None]),
}


@pytest.fixture(scope="module")
def server():
    server = start_server(MODELS | {"digits": load_version(DIGITS / "saved_model", LoadSettings())})
    yield server
    server.close()


@pytest.fixture(scope="module")
def shared_browser(tmp_path_factory):
    browser = Browser(PROGRAM, tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture
def browser(shared_browser):
    shared_browser.emulate(width=1200, height=900)
    shared_browser.logged.clear()
    yield shared_browser
    shared_browser.open("about:blank")


def open_view(browser, server, path, ready):
    browser.open("about:blank")
    browser.open(f"http://127.0.0.1:{server.port}/#/{path}")
    return browser.wait_for(f"document.querySelector({json.dumps(ready)}) !== null")


def submit(browser):
    browser.value("document.querySelector('form.try').requestSubmit()")


def answer_of(browser):
    """The answer's JSON, when it is there."""
    return json.loads(browser.wait_for("document.querySelector('.json pre').textContent"))


def texts_of(browser, selector):
    return browser.value(f"[...document.querySelectorAll({json.dumps(selector)})].map((node) => node.innerText.trim())")


def draw(browser, strokes):
    """Draw strokes on the canvas, in shares of its size."""
    left, top, width, height = browser.value(
        "(() => { const box = document.querySelector('canvas.drawing').getBoundingClientRect();"
        " return [box.x, box.y, box.width, box.height]; })()")
    for stroke in strokes:
        points = [(left + x * width, top + y * height) for x, y in stroke]
        browser.mouse("mousePressed", *points[0])
        for point in points:
            browser.mouse("mouseMoved", *point)
        browser.mouse("mouseReleased", *points[-1])


def strokes_of(image, threshold=0.55):
    """Strokes along the bright runs of each row of a picture."""
    height, width = image.shape
    for row in range(height):
        bright = [column for column in range(width) if image[row, column] > threshold]
        runs = np.split(bright, np.flatnonzero(np.diff(bright) > 1) + 1) if bright else []
        for run in runs:
            y = (row + 0.5) / height
            yield [((run[0] + 0.5) / width, y), ((run[-1] + 0.5) / width, y)]


@pytest.mark.parametrize("label", [2, 3, 7])
def test_a_drawn_digit_is_classified(browser, server, label):
    test = np.load(DIGITS / "test.npz")
    image = test["image"][np.flatnonzero(test["label"] == label)[0], ..., 0]
    open_view(browser, server, "models/digits", "canvas.drawing")
    draw(browser, strokes_of(image))
    browser.wait_for(f"document.querySelector('.bars .best .bar-name').innerText === 'class {label}'")
    assert "".join(texts_of(browser, ".single")) == str(label)
    assert browser.value("document.getElementById('announcement').textContent").startswith(f"Answer: class {label}, ")
    assert browser.logged == []


def test_the_request_as_a_line_of_curl_gives_the_same_answer(browser, server):
    open_view(browser, server, "models/flat", "canvas.drawing")
    draw(browser, [[(0.5, 0.2), (0.5, 0.8)]])
    answer = answer_of(browser)
    line = browser.value("document.querySelector('.curl pre').textContent")
    assert line.startswith("""curl -d '{"inputs": {"x": [[""")
    assert line.endswith(f"'http://127.0.0.1:{server.port}/v1/models/flat:predict'")
    assert 20 < answer["outputs"][0][0] < 300  # the ink of a line of 20 by 2 pixels or so
    assert answer["outputs"][0][1] == 1


def test_the_keyboard_draws_undoes_and_clears(browser, server):
    open_view(browser, server, "models/bytes", "canvas.drawing")
    browser.value("document.querySelector('canvas.drawing').focus()")
    browser.press(" ", " ")
    for _ in range(6):
        browser.press("ArrowDown")
    browser.press(" ", " ")
    assert np.max(answer_of(browser)["outputs"]) == 255
    browser.press("Backspace")
    submit(browser)
    browser.wait_for("document.querySelector('.input .fault').textContent === 'Draw something first.'")


def png(pixels):
    """A PNG of an array of bytes, rows by columns by three."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def test_a_picture_is_resized_and_its_answer_is_drawn(browser, server, tmp_path):
    pixels = np.zeros((16, 16, 3), "u1")
    pixels[:, :8, 0], pixels[:, 8:, 2] = 255, 128  # red, then a dark blue
    file = tmp_path / f"{MARKUP[:9]}.png"
    file.write_bytes(png(pixels))
    open_view(browser, server, "models/mirror", "input[type=file]")
    for side in ("Width", "Height"):
        browser.value(f"""(() => {{ const label = [...document.querySelectorAll('label')].find(
            (node) => node.textContent === '{side}'); const input = document.getElementById(label.htmlFor);
            input.value = '8'; input.dispatchEvent(new Event('change')); }})()""")
    browser.choose_file("input[type=file]", file)
    outputs = np.float32(answer_of(browser)["outputs"])
    assert outputs.shape == (1, 8, 8, 3)
    np.testing.assert_allclose(outputs[0, 2, [0, 7]], [[0, 0, 128 / 255], [1, 0, 0]], atol=1e-4)
    canvas = "document.querySelector('.output-picture').getContext('2d')"
    assert browser.value(f"[...{canvas}.getImageData(0, 0, 1, 1).data]") == [0, 0, 128, 255]
    for scaling, red in {"signed": 1, "bytes": 255, "torch": (1 - 0.485) / 0.229, "caffe": -103.939}.items():
        browser.value(f"""(() => {{ document.querySelector('.json').remove();
            const select = document.querySelector('.picture-editor select'); select.value = '{scaling}';
            select.dispatchEvent(new Event('change')); }})()""")
        assert answer_of(browser)["outputs"][0][2][7][0] == pytest.approx(red, abs=1e-4)
    assert browser.logged == []


@pytest.mark.parametrize("event", [
    "new DragEvent('drop', { bubbles: true, dataTransfer: data })",
    "new ClipboardEvent('paste', { bubbles: true, clipboardData: data })"])
def test_a_picture_is_dropped_or_pasted(browser, server, event):
    open_view(browser, server, "models/mirror", ".drop")
    file = [*png(np.full((16, 16, 3), 255, "u1"))]
    browser.value(f"""(() => {{ const data = new DataTransfer();
        data.items.add(new File([new Uint8Array({file})], 'white.png', {{ type: 'image/png' }}));
        document.querySelector('.drop').dispatchEvent({event}); }})()""")
    browser.wait_for("document.querySelector('.output-picture')")
    assert "white.png: 16 " in texts_of(browser, ".picture-place figcaption")[0]


def test_a_file_that_is_no_picture_is_told(browser, server, tmp_path):
    file = tmp_path / "a.png"
    file.write_bytes(b"no picture")
    open_view(browser, server, "models/mirror", "input[type=file]")
    browser.choose_file("input[type=file]", file)
    assert "cannot decode a.png" in browser.wait_for("document.querySelector('.picture-editor .fault').textContent")


def fill(browser, selector, text):
    browser.value(f"""(() => {{ const area = document.querySelector({json.dumps(selector)});
        area.value = {json.dumps(text)}; area.dispatchEvent(new Event('input')); }})()""")


def test_each_line_of_a_text_has_its_classes_and_no_text_is_markup(browser, server):
    open_view(browser, server, "models/texts", "textarea")
    fill(browser, "textarea", f"a good film\n{MARKUP}")
    submit(browser)
    assert answer_of(browser)["outputs"]["classes"] == [["good", MARKUP]] * 2
    assert texts_of(browser, ".row-name") == ["a good film", MARKUP]
    assert texts_of(browser, ".best .bar-name") == ["good", MARKUP]
    assert texts_of(browser, ".best .bar-value") == ["70.0 %", "90.0 %"]
    assert browser.value("document.querySelectorAll('main img, main script').length") == 0
    assert browser.logged == []


def test_the_name_of_a_model_is_a_text(browser, server):
    open_view(browser, server, f"models/{quote(MARKUP, safe='')}", "textarea")
    assert texts_of(browser, "h1") == [MARKUP]
    assert MARKUP in texts_of(browser, ".model-name")
    fill(browser, "textarea", "it's")
    submit(browser)
    assert answer_of(browser) == {"outputs": ["it's"]}
    assert """["it'\\''s"]""" in browser.value("document.querySelector('.curl pre').textContent")
    assert browser.value("document.querySelectorAll('main img').length") == 0
    assert browser.value("document.title") == f"{MARKUP} · heald serve"


@pytest.mark.parametrize("script", [
    "document.body.innerHTML = '<b>'", "document.body.setAttribute('onclick', 'alert(1)')",
    "document.createElement('script').src = 'https://example.invalid/'"])
def test_the_policy_stops_markup_and_scripts_of_texts(browser, server, script):
    open_view(browser, server, "models", "h1")
    with pytest.raises(AssertionError, match="requires 'Trusted"):
        browser.value(script)


def test_the_policy_stops_requests_to_other_hosts(browser, server):
    open_view(browser, server, "models", "h1")
    assert browser.value("fetch('http://localhost:1/').catch(() => 'refused')") == "refused"
    assert "violates" in "".join(browser.logged)


def test_numbers_keep_all_their_digits(browser, server):
    open_view(browser, server, "models/numbers", "table.cells")
    values = ["9007199254740993", "0.1", "nan"]
    browser.value(f"""(() => {{ const inputs = document.querySelectorAll('table.cells input[type=text]');
        {json.dumps(values)}.forEach((value, at) => {{ inputs[at].value = value; }});
        document.querySelector('table.cells input[type=checkbox]').click(); }})()""")
    submit(browser)
    browser.wait_for("document.querySelector('.json pre')")
    assert texts_of(browser, ".single") == ["9007199254740993", "true"]
    assert texts_of(browser, ".bar-value, .answer td") == ["0.1", "NaN"]


@pytest.mark.parametrize("text", ["1\t2\n3\t4", "1, 2\n3, 4\n", "1 2\r\n3 4"])
def test_cells_of_a_spreadsheet_fill_the_table(browser, server, text):
    open_view(browser, server, "models/numbers", "table.cells")
    browser.value(f"""(() => {{ const data = new DataTransfer(); data.setData('text', {json.dumps(text)});
        document.querySelectorAll('table.cells')[1].querySelector('input').dispatchEvent(
            new ClipboardEvent('paste', {{ bubbles: true, cancelable: true, clipboardData: data }})); }})()""")
    submit(browser)
    assert answer_of(browser)["outputs"]["b"] == [[1, 2], [3, 4]]


def test_rows_are_added_and_removed(browser, server):
    open_view(browser, server, "models/numbers", "table.cells")
    click = "[...document.querySelectorAll('.input')][1].querySelectorAll('button')[{}].click()"
    for button in (0, 0, 1):
        browser.value(click.format(button))
    submit(browser)
    assert answer_of(browser)["outputs"]["b"] == [[0, 0], [0, 0]]


def test_a_signature_without_inputs_runs(browser, server):
    open_view(browser, server, "models/nothing", "form.try")
    submit(browser)
    assert answer_of(browser) == {"outputs": 7.0}


def test_many_single_values_take_a_line_each(browser, server):
    open_view(browser, server, "models/features", "table.cells")
    assert browser.value("document.querySelectorAll('.compact').length") == 6
    fill(browser, ".compact:last-child input", "2.5")
    submit(browser)
    assert answer_of(browser) == {"outputs": [[2.5]]}
    assert texts_of(browser, ".single") == ["2.5"]


@pytest.mark.parametrize(("text", "fault"), [("1.5", "'1.5' is no whole number."), ("", "'' is no whole number.")])
def test_a_value_that_does_not_fit_is_told_at_its_place(browser, server, text, fault):
    open_view(browser, server, "models/numbers", "table.cells")
    fill(browser, "table.cells input", text)
    submit(browser)
    browser.wait_for(f"document.querySelector('.input .fault').textContent === {json.dumps(fault)}")
    assert browser.value("document.activeElement.getAttribute('aria-invalid')") == "true"


def test_an_error_of_the_server_is_shown(browser, server):
    open_view(browser, server, "models/mirror", ".choices input[value=json]")
    browser.value("document.querySelector('.choices input[value=json]').click()")
    fill(browser, "textarea", '["<b>"]')
    submit(browser)
    problem = browser.wait_for("document.querySelector('.problem')?.innerText")
    assert problem.startswith("Status 400")
    assert "<b>" in problem
    fill(browser, "textarea", "[1,")
    submit(browser)
    browser.wait_for("document.querySelector('.input .fault').textContent.startsWith('This is no JSON')")


def test_examples_are_classified_and_regressed(browser, server):
    open_view(browser, server, "models/examples", "textarea")
    submit(browser)
    browser.wait_for("document.querySelector('.best .bar-name').innerText === 'dog'")
    browser.value("""(() => { const select = document.querySelector('.signature select'); select.value = 'size';
        select.dispatchEvent(new Event('change')); })()""")
    submit(browser)
    browser.wait_for("document.querySelector('.single').innerText === '1.5'")


def test_a_vector_is_drawn_and_its_greatest_values_are_a_choice(browser, server):
    open_view(browser, server, "models/embedding", "textarea")
    fill(browser, "textarea", "a")
    submit(browser)
    browser.wait_for("document.querySelector('svg.columns')")
    browser.value("document.querySelector('.scores input[value=classes]').click()")
    assert texts_of(browser, ".best .bar-name") == ["class 299"]


def test_the_traffic_has_lines_of_the_last_requests(browser, server):
    open_view(browser, server, "models/embedding", "textarea")
    fill(browser, "textarea", "a")
    browser.wait_for("document.getElementById('condition').innerText === 'ready'")
    submit(browser)
    answer_of(browser)
    browser.value("location.hash = '#/traffic'")
    browser.wait_for("[...document.querySelectorAll('.line.third')].some((line) => line.getAttribute('d'))")
    assert texts_of(browser, ".chart h3")[:3] == ["Requests a second", "Latency", "Requests that run or wait"]
    assert browser.logged == []


def test_the_machine_has_memory_and_devices(browser, server):
    open_view(browser, server, "machine", ".facts")
    assert "CPU:0" in " ".join(texts_of(browser, ".devices li"))
    assert texts_of(browser, ".amount")


def test_the_page_asks_for_the_token_and_keeps_it_in_memory(browser, start):
    server, _ = start({"texts": MODELS["texts"]}, token=TOKEN)
    browser.open(f"http://127.0.0.1:{server.port}/")
    for text, after in (("wrong", "document.querySelector('dialog .fault')"),
                        (TOKEN, "document.querySelector('textarea')")):
        browser.wait_for("document.querySelector('dialog[open]')")
        browser.value(f"document.getElementById('token').value = {json.dumps(text)}")
        browser.value("document.querySelector('dialog form').requestSubmit()")
        browser.wait_for(f"{after} !== null")
    fill(browser, "textarea", "good")
    submit(browser)
    answer_of(browser)
    assert browser.value("document.querySelector('.curl pre').textContent").startswith(
        'curl -H "Authorization: Bearer $TOKEN" -d ')
    assert browser.value("localStorage.length + sessionStorage.length + document.cookie.length") == 0
    assert TOKEN not in browser.value("document.documentElement.outerHTML")


def test_the_colours_follow_the_system_until_the_reader_chooses(browser, server):
    colour = "getComputedStyle(document.body).backgroundColor"
    open_view(browser, server, "machine", ".facts")
    light = browser.value(colour)
    browser.emulate(width=1200, height=900, scheme="dark")
    dark = browser.value(colour)
    assert dark != light
    browser.wait_for("document.getElementById('theme').getAttribute('aria-pressed') === 'true'")
    browser.value("document.getElementById('theme').click()")
    assert browser.value(colour) == light
    open_view(browser, server, "machine", ".facts")
    assert browser.value(colour) == light
    assert browser.value("document.getElementById('theme').getAttribute('aria-pressed')") == "false"
    browser.value("localStorage.clear()")


@pytest.mark.parametrize(("path", "ready"), [
    ("models/digits", "canvas.drawing"), ("models/texts", "textarea"), ("models/numbers", "table.cells"),
    ("models/mirror", ".drop"), ("traffic", ".chart svg"), ("machine", ".facts"),
    (f"models/{quote(MARKUP, safe='')}", "textarea")])
def test_a_view_fits_a_narrow_window_and_names_its_controls(browser, server, path, ready):
    browser.emulate(width=340, height=700)
    open_view(browser, server, path, ready)
    assert browser.value("document.documentElement.scrollWidth") <= 340
    tree = browser.command("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "textbox", "radio", "checkbox", "combobox", "slider", "spinbutton", "image", "link"}
    nameless = [node["role"]["value"] for node in tree if not node["ignored"] and node["role"]["value"] in roles
                and not node.get("name", {}).get("value")]
    assert nameless == []
    assert sum(node["role"]["value"] == "heading" and node["properties"][0]["value"]["value"] == 1 for node in tree
               if not node["ignored"]) == 1


def test_an_unknown_model_is_told(browser, server):
    open_view(browser, server, "models/nothing%", ".notice")
    assert "No model is called nothing%." in texts_of(browser, ".notice")


def test_the_page_tells_when_the_server_is_gone(browser, start):
    server, _ = start({"texts": MODELS["texts"]})
    browser.open(f"http://127.0.0.1:{server.port}/")
    browser.wait_for("document.getElementById('condition').innerText === 'ready'")
    server.close()
    browser.wait_for("document.getElementById('condition').innerText === 'no answer'")


@pytest.fixture
def versions(tmp_path):
    """A server of two versions with a label, and a third that fails to load when its folder comes."""
    for number in (1, 2):
        (tmp_path / str(number)).mkdir()

    def load(path):
        if path.name == "3":
            raise DataLoss("<i>broken</i>")
        return signature(infos(x="string"), infos(y="string"), lambda x: np.array([path.name.encode()], object))

    config = ModelConfig("model", tmp_path, VersionPolicy("all"), {"stable": 1})
    server = ModelServer(settings_of([], models=[config], max_num_load_retries=0, file_system_poll_wait_seconds=1,
                                     allow_version_labels_for_unavailable_models=True), loader=load)
    server.start()
    yield server, tmp_path
    server.close()


def test_a_version_is_chosen_and_a_new_one_leaves_the_input_alone(browser, versions):
    server, folder = versions
    open_view(browser, server, "models/model", "textarea")
    fill(browser, "textarea", "a")
    submit(browser)
    assert answer_of(browser) == {"outputs": ["2"]}
    (folder / "3").mkdir()
    browser.wait_for("document.querySelector('.version.bad .fault')")
    (folder / "4").mkdir()
    browser.wait_for("document.querySelectorAll('.version').length === 4 && "
                     "document.querySelector('.version').innerText.includes('available')")
    assert "<i>broken</i>" in "".join(texts_of(browser, ".version.bad .fault"))
    assert browser.value("document.querySelector('textarea').value") == "a"
    browser.value("document.querySelector('.json').remove()")
    submit(browser)
    assert answer_of(browser) == {"outputs": ["4"]}
    browser.value("""(() => { const select = document.querySelector('.detail-head select'); select.value = '1';
        select.dispatchEvent(new Event('change')); })()""")
    browser.wait_for("location.hash === '#/models/model/1' && document.querySelector('textarea').value === ''")
    assert texts_of(browser, ".detail-head option:checked") == ["1 (stable)"]
    fill(browser, "textarea", "a")
    submit(browser)
    assert answer_of(browser) == {"outputs": ["1"]}
    assert "/v1/models/model/versions/1:predict" in browser.value("document.querySelector('.curl pre').textContent")


def of_module(browser, name, expression):
    """The value of an expression over the exports `m` of one of the page's modules."""
    return browser.value(f"import('/page/{name}.js').then((m) => {expression})")


def test_quantiles_lie_in_their_buckets(browser, server):
    open_view(browser, server, "traffic", ".chart")
    metrics = Metrics()
    latencies = [700.0] * 60 + [3_000.0] * 38 + [90_000.0] * 2
    for latency in latencies:
        metrics.request_latency.add("m", "Predict", "predict", amount=latency)
    metrics.request_latency.add("m", "GetModelStatus", "", amount=1e9)  # a read of a state is no inference
    sample = f"m.readSample({json.dumps(metrics.plain_text())}, 2).models.get('m').requests"
    for share, latency in ((0.5, 700.0), (0.9, 3_000.0), (0.99, 90_000.0)):
        milliseconds = of_module(browser, "samples", f"m.quantile({sample}, {share})")
        assert latency / 1.8 < 1000 * milliseconds < latency * 1.8
    assert of_module(browser, "samples", "m.quantile(new Map(), 0.5)") is None


def test_names_of_models_pass_through_the_text_of_the_metrics(browser, server):
    open_view(browser, server, "traffic", ".chart")
    metrics = Metrics()
    name = 'a"b\\c\nd}{,=é'
    metrics.request_count.add(name, "OK", amount=3)
    text = json.dumps(metrics.plain_text())
    assert of_module(browser, "samples", f"[...m.readSample({text}, 1).models]")[0][0] == name


@pytest.mark.parametrize(("text", "value"), [
    ('[NaN, -Infinity, "NaN", 1.5]', ["NaN", "-Infinity", "NaN", 1.5]),
    ("[12345678901234567890, -9007199254740993, 12]", ["12345678901234567890", "-9007199254740993", 12]),
    ("[0.1234567890123456789, 1e20, 12345678901234567890.5]", [0.12345678901234568, 1e20, 12345678901234567168]),
    (r'{"a\"NaN": "1234567890123456789", "b\\": NaN}', {'a"NaN': "1234567890123456789", "b\\": "NaN"}),
])
def test_an_answer_keeps_what_javascript_would_lose(browser, server, text, value):
    open_view(browser, server, "machine", ".facts")
    assert of_module(browser, "numbers", f"m.parseAnswer({json.dumps(text)})") == value
