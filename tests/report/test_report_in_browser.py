"""The page of heald report in a browser: pictures, search, keys, links, exports; and names that would like to run."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import heald
import pytest
from builders.graphs import node, placeholder
from harness.chromium import Browser, find_chromium
from heald.cli import main
from heald.graphs.graph.graph import Graph
from heald_report.page import page_bytes

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "frozen.pb"
PROGRAM = find_chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")
PAYLOADS = (
    "<script>hacked()</script>", "</script><script>hacked()</script>", "<img src=x onerror=hacked()>",
    "<svg onload=hacked()>", "</title><script>hacked()</script>", "<!--<script>", "-->", "]]>", "'\"><b>",
    "\" onload=\"hacked()", "javascript:hacked()", "{{ 7 * 7 }}", "{% raw %}", "${hacked()}", "`hacked()`",
    "\\u003cscript\\u003e", "&lt;script&gt;", "__proto__", "constructor", "toString", "\u2028hacked()", "\u202eevil",
    "\x00\x01", "\ud7ff\U0001f600", "=HYPERLINK(1)", "<iframe srcdoc='<script>hacked()</script>'>",
    "<style>*{display:none}</style>", "url(http://localhost/x)", "<a href=http://localhost>",
    "<base href=http://localhost>", "<meta http-equiv=refresh content=0>", "<template>", "%3Cscript%3E", "#node=x",
    "?a&b=c", "\x0a\x0d\x09", "a" * 3000, "</style><script>hacked()</script>", "<textarea>", "//")
NAMES = [f"{before}{payload}{number}{behind}" for number, (payload, (before, behind)) in enumerate(product(
    PAYLOADS, (("", ""), ("s/", ""), ("", "/t"), ("<b>/", "/u"), ("&/", "&"))))]


@pytest.fixture(scope="module")
def shared_browser(tmp_path_factory):
    browser = Browser(PROGRAM, tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture
def browser(shared_browser):
    shared_browser.logged.clear()
    shared_browser.emulate(width=1200, height=900)
    yield shared_browser
    assert shared_browser.logged == []


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "digits.html"
    assert main(["report", str(DIGITS), "-o", str(file)]) == 0
    return f"file://{quote(str(file))}"


PARSE_EXPORT = "new DOMParser().parseFromString(report.exported(), 'image/svg+xml').querySelector('parsererror')"


def open_page(browser, address):
    browser.open("about:blank")  # a change of the part behind # alone opens nothing
    browser.open(address)
    browser.wait_for("document.querySelector('#canvas .box')")


def path_of(browser):
    return browser.value("[...document.querySelectorAll('#path button')].map(b => b.textContent)")


def test_a_scope_opens_by_click_and_closes_by_key(browser, page):
    open_page(browser, page)
    assert path_of(browser) == ["graph", "functional_1"]
    browser.value("""[...document.querySelectorAll('#canvas .box.scope')].find(b => b.textContent.includes('conv2d_1'))
        .dispatchEvent(new MouseEvent('dblclick', {bubbles: true}))""")
    assert path_of(browser) == ["graph", "functional_1", "conv2d_1"]
    browser.value("document.getElementById('canvas').focus()")
    browser.press("Backspace")
    assert path_of(browser) == ["graph", "functional_1"]
    assert browser.value("document.querySelector('.box.chosen').textContent").startswith("conv2d_1")
    browser.press("ArrowDown")
    assert browser.value("document.querySelector('.box.chosen').textContent").startswith("batch_normalization_1")
    browser.press("Enter")
    assert len(path_of(browser)) == 3


def test_a_search_leads_to_the_node_and_its_address_leads_back(browser, page):
    open_page(browser, page)
    browser.value("document.getElementById('search').focus()")
    browser.value("document.getElementById('search').value = 'maxpool'")
    browser.value("document.getElementById('search').dispatchEvent(new Event('input'))")
    browser.press("Enter")
    assert "MaxPool" in browser.value("document.querySelector('#details h2').textContent")
    address, title = browser.value("location.href"), browser.value("document.querySelector('#details h2').textContent")
    open_page(browser, address)
    assert browser.value("document.querySelector('#details h2').textContent") == title


def test_a_node_leads_to_its_calls_and_a_call_to_its_nodes(browser, page):
    open_page(browser, f"{page}#tab=timeline&call=0")
    name = browser.value("document.querySelector('#timeline .card ul button').textContent")
    browser.value("document.querySelector('#timeline .card ul button').click()")
    assert browser.value("document.querySelector('#details h2').textContent") == name
    browser.value("[...document.querySelectorAll('#details .link')].find(b => b.textContent.includes('s')).click()")
    assert not browser.value("document.getElementById('timeline').hidden")


@pytest.fixture(scope="module")
def two_clocks(tmp_path_factory):
    """A page of a program on the CPU and a simulator, whose clock is virtual."""
    folder = tmp_path_factory.mktemp("two")
    nodes = [placeholder("x", (64, 64)), node("s/a", "Neg", "x", device="/device:CPU:0"),
             node("s/b", "Exp", "s/a", device="/device:SIM:0"), node("s/c", "MatMul", "s/b", "s/b",
                                                                     device="/device:SIM:0"),
             node("y", "Neg", "s/c", device="/device:CPU:0")]
    heald.graphdef.dump(Graph(nodes), folder / "two.pb")
    assert main(["report", str(folder / "two.pb"), "-o", str(folder / "two.html")]) == 0
    return f"file://{quote(str(folder / 'two.html'))}"


def test_each_clock_has_a_chart_with_its_own_axis(browser, two_clocks):
    open_page(browser, f"{two_clocks}#tab=timeline")
    charts = "[...document.querySelectorAll('#timeline .card:has(svg.chart)')]"
    titles = browser.value(f"{charts}.map(card => card.querySelector('h2').textContent.split(':')[0])")
    assert titles[0] == "The host's clock"
    assert titles[1].startswith("SIM")
    assert browser.value(f"{charts}[0].querySelectorAll('.call.enqueued').length") == 4
    assert browser.value(f"{charts}[1].querySelectorAll('.call').length") == 4
    ends = browser.value(f"{charts}.map(card => [...card.querySelectorAll('text')].filter("
                         "t => t.getAttribute('text-anchor') === 'end').pop().textContent)")
    assert ends == browser.value("report.clocks.map(clock => report.timeText(clock.us))")
    browser.value("report.showCall(report.calls.find(call => call.kernel === 'sim.Exp').index)")
    assert browser.value("document.querySelectorAll('#timeline .call.chosen').length") == 2
    assert "of SIM:0's clock" in browser.value("document.querySelector('#timeline > .card:last-child').textContent")


def test_memory_has_a_chart_for_each_memory(browser, two_clocks):
    open_page(browser, f"{two_clocks}#tab=memory")
    labels = browser.value("[...document.querySelectorAll('#memory svg')].map(svg => svg.getAttribute('aria-label'))")
    assert labels[0].startswith("Bytes of host memory over the time of the host's clock. Peak: ")
    assert labels[1] == "Bytes of SIM:0 over the time of SIM:0's clock. Peak: 32 768 bytes"


def test_times_of_two_clocks_are_never_one_sum(browser, two_clocks):
    open_page(browser, f"{two_clocks}#tab=graph&picture=0&colour=time")
    assert browser.value("report.ofPicture.every(sums => sums.us.length === 2)")
    details = browser.value("document.getElementById('details').textContent")
    assert "on the host's clock" in details
    assert "on SIM:0's clock" in details
    browser.value("report.showTab('kernels')")
    heads = browser.value("[...document.querySelectorAll('#kernels th')].map(th => th.textContent)")
    assert heads.count("clock") == 2
    shares = browser.value("""[0, 1].map(clock => report.calls.filter(call => call.clock === clock)
        .reduce((sum, call) => sum + call.us, 0))""")
    assert all(shares)


def test_copies_are_sorted_and_lead_to_graph_and_timeline(browser, two_clocks):
    open_page(browser, f"{two_clocks}#tab=copies")
    cells = "[...document.querySelectorAll('#copies .card:last-child td:first-child')].map(cell => cell.textContent)"
    assert sorted(browser.value(cells)) == ["s/a:0", "s/c:0"]
    head = "document.querySelectorAll('#copies .card:last-child th button')[0]"
    for mark in ("ascending", "descending"):
        browser.value(f"{head}.click()")
        assert browser.value(f"{head}.parentNode.getAttribute('aria-sort')") == mark
    assert browser.value(cells) == ["s/c:0", "s/a:0"]
    browser.value("document.querySelectorAll('#copies .card:last-child td .link')[2].click()")
    assert not browser.value("document.getElementById('timeline').hidden")
    assert "Copies s/c:0 from SIM:0 to host memory" in browser.value(
        "document.querySelector('#timeline > .card:last-child').textContent")
    open_page(browser, f"{two_clocks}#tab=copies")
    browser.value("document.querySelector('#copies .card:last-child td .link').click()")
    assert not browser.value("document.getElementById('graph').hidden")


def test_rounded_bytes_have_the_exact_number_as_tooltip_and_for_readers(browser, two_clocks):
    open_page(browser, f"{two_clocks}#tab=copies")
    texts = browser.value("""[...document.querySelectorAll('#copies .exact')].map(element => [element.title,
        ...[...element.children].map(child => child.textContent)].join())""")
    assert set(texts) == {"16 384 bytes,16.4 kB,16 384 bytes"}
    assert browser.value("[1, 999, 1000, 1234567].map(report.exactBytes)") == [
        "1 byte", "999 bytes", "1 000 bytes", "1 234 567 bytes"]
    open_page(browser, f"{two_clocks}#tab=graph&picture=0&colour=memory")
    titles = browser.value("[...document.querySelectorAll('#canvas .box .second title')].map(t => t.textContent)")
    assert "16 384 bytes" in titles
    browser.value("report.showNode(report.nodes.name.indexOf('y'))")
    rows = browser.value("""Object.fromEntries([...document.querySelectorAll('#details dt')].map(dt =>
        [dt.textContent, dt.nextSibling.textContent]))""")
    assert rows["copied for it"] == "16.4 kB16 384 bytes"
    assert "on SIM:0's clock" in rows["copy time"]
    browser.value("[...document.querySelectorAll('#details .link')].find(b => b.textContent.startsWith('All')).click()")
    assert not browser.value("document.getElementById('copies').hidden")


def test_the_placement_is_summed_up_and_sorted_by_each_column(browser, page):
    open_page(browser, f"{page}#tab=placement")
    lines = browser.value("[...document.querySelectorAll('#placement .summary li')].map(li => li.textContent)")
    assert lines[0] == "140 nodes on CPU:0: first in order with a kernel"
    heads = browser.value("[...document.querySelectorAll('#placement th')].map(th => th.textContent)")
    assert {"node", "op", "device", "reason", "pack", "kernel by"} <= {*heads}
    for index in range(len(heads)):
        browser.value(f"document.querySelectorAll('#placement th button')[{index}].click()")
        cells = browser.value(f"[...document.querySelectorAll('#placement tr td:nth-child({index + 1})')]"
                              ".map(td => td.textContent)")
        assert cells == sorted(cells)
    browser.value("report.showNode(report.nodes.name.findIndex((_, node) => report.text(report.nodes.rule[node])))")
    assert "kernel by" in browser.value("document.getElementById('details').textContent")


@pytest.mark.parametrize("tab", ["kernels", "roofline", "memory", "placement"])
def test_tables_are_filled(browser, page, tab):
    open_page(browser, f"{page}#tab={tab}")
    assert browser.value(f"document.querySelectorAll('#{tab} td').length") > 1


def test_colours_change_and_a_picture_is_exported(browser, page):
    open_page(browser, page)
    fills = set()
    for mode in ("device", "time"):
        browser.value(f"report.colourBy('{mode}')")
        fills.add(browser.value("getComputedStyle(document.querySelector('.box.scope .frame')).fill"))
    assert len(fills) == 2
    assert browser.value(PARSE_EXPORT) is None
    assert browser.value("report.pngOf(report.exported()).then(blob => blob.size)") > 1000


def test_one_moves_through_the_passes_and_sees_each_in_the_graph(browser, page):
    open_page(browser, f"{page}#tab=passes&step=12")
    title = "document.querySelector('#passes .steps > div:last-child h2').textContent"
    shown = "[...document.querySelectorAll('#passes svg')[0].querySelectorAll('.second')].map(t => t.textContent)"
    assert browser.value(title).startswith("scales")
    assert "AddV2 → BiasAdd" in browser.value(shown)
    browser.value("document.querySelector('[data-side=after]').click()")
    assert {"BiasAdd", "Mul"} & set(browser.value(shown)) == {"BiasAdd"}
    browser.value("document.querySelector('[data-side=before]').click()")
    assert {"AddV2", "Mul"} < set(browser.value(shown))
    rows = browser.value("""[...document.querySelectorAll('#passes .card:last-child table tr')].map(row =>
        [...row.cells].slice(2).map(cell => cell.textContent).join('|'))""")
    assert "op|AddV2|BiasAdd|" in rows
    assert "Of the removed nodes: 9 skipped, 9 removed with skipped nodes." in browser.value(
        "document.getElementById('passes').textContent")
    browser.value("document.querySelector('[aria-label=\"Pass before\"]').click()")
    assert browser.value(title).startswith("maps")
    browser.value("document.querySelector('[aria-label=\"Next pass\"]').click()")
    browser.value("""[...document.querySelectorAll('#passes button')].find(b => b.textContent === 'Show in the graph')
        .click()""")
    assert "scales" in browser.value("document.getElementById('legend').textContent")
    assert "step=12" in browser.value("location.hash")


@pytest.mark.parametrize("width", [400, 900, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_keeps_the_width_of_the_window(browser, page, two_clocks, width, scheme):
    browser.emulate(width=width, height=800, scheme=scheme)
    tabs = [(page, tab) for tab in ("graph", "timeline", "kernels", "roofline", "memory", "passes", "placement")]
    for address, tab in (*tabs, *((two_clocks, tab) for tab in ("timeline", "memory", "copies"))):
        open_page(browser, f"{address}#tab={tab}")
        assert browser.value("document.documentElement.scrollWidth") <= width, tab


LIVE = {"inputs": [[name, "float32"] for name in NAMES[::5]], "devices": NAMES[::20], "ranges": NAMES[1::20]}


@pytest.mark.parametrize("live", [None, LIVE])
def test_hostile_names_neither_run_nor_break_the_page(browser, tmp_path, live):
    assert len(NAMES) == 200
    nodes = [placeholder("x", (2,)), *(node(name, PAYLOADS[number % len(PAYLOADS)], "x", device=name)
                                       for number, name in enumerate(NAMES))]
    # Loading refuses most of these names, so a stand-in has them.
    model = SimpleNamespace(graph=Graph(nodes), placement=dict, inputs={}, outputs=dict.fromkeys(NAMES, "float32"))
    file = tmp_path / "hostile.html"
    file.write_bytes(page_bytes(model, NAMES[1], None, live=live))
    open_page(browser, f"file://{file}")
    assert browser.value("typeof hacked") == "undefined"
    assert browser.value("report.count") == 201
    assert browser.value("document.scripts.length") == (11 if live is None else 12)
    fields = 0 if live is None else len(live["inputs"])  # a live page has a text area for each input
    count_planted = "document.querySelectorAll('img, iframe, base, textarea, b, a').length"
    assert browser.value(count_planted) == fields
    browser.value("for (let node = 0; node < report.count; node += 1) report.showNode(node)")
    browser.value("report.showTab('placement')")
    assert browser.value(count_planted) == fields
    assert browser.value(PARSE_EXPORT) is None


@pytest.mark.parametrize(("value", "cell"), [
    ("=HYPERLINK(1)", '"\'=HYPERLINK(1)"'), ("+1", '"\'+1"'), ("-2", '"\'-2"'), ("@SUM(A1)", '"\'@SUM(A1)"'),
    ("\t=1", '"\'\t=1"'), (" =1", '"\' =1"'), ("\r=1", '"\'\r=1"'), ("a=1", '"a=1"'), ('say "x"', '"say ""x"""'),
    ("", '""')])
def test_a_text_that_a_spreadsheet_would_run_is_quoted(browser, page, value, cell):
    open_page(browser, page)
    columns = "[['name', row => row], ['n', () => -1.5, {number: true}]]"
    assert browser.value(f"report.csvText({columns}, [{json.dumps(value)}])") == f'"name","n"\r\n{cell},-1.5\r\n'


def test_points_of_the_roofline_lead_to_their_calls(browser, page):
    open_page(browser, f"{page}#tab=roofline")
    assert browser.value("document.querySelectorAll('#roofline .point').length") > 3
    assert browser.value("document.querySelector('#roofline .roof').getAttribute('d').includes('NaN')") is False
    browser.value("document.querySelector('#roofline .point').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert not browser.value("document.getElementById('timeline').hidden")


def test_each_call_has_its_device_and_the_rates_that_it_could_attain(browser, page, two_clocks):
    open_page(browser, f"{page}#tab=roofline")
    rows = browser.value("""(() => { const [head, ...rows] = [...document.querySelectorAll('#roofline tr')].map(row =>
        [...row.cells].map(cell => cell.textContent.replace(/.[▲▼]/u, '')));
        return rows.map(row => Object.fromEntries(row.map((text, index) => [head[index], text]))); })()""")
    roof = browser.value("report.data.run.roofline")
    assert {row["device"] for row in rows} == {"CPU:0"}
    for row in rows:
        intensity, most = float(row["flop/byte"]), float(row["attainable GFLOP/s"] or 0)
        assert most == pytest.approx(min(roof["gflops"], intensity * roof["gbs"]), rel=0.02)
        assert float(row["attainable GB/s"]) <= roof["gbs"] * 1.01
    assert "The roof is that of CPU:0 on the machine that made this page" in browser.value(
        "document.getElementById('roofline').textContent")
    open_page(browser, f"{two_clocks}#tab=roofline")
    assert "SIM:0: no roof was measured" in browser.value("document.getElementById('roofline').textContent")
    bounds = browser.value("""[...document.querySelectorAll('#roofline tr')].filter(row => row.cells[2].textContent ===
        'SIM:0').map(row => [...row.cells].slice(-2).map(cell => cell.textContent).join(''))""")
    assert len(bounds) == 4
    assert set(bounds) == {""}


def test_a_comparison_shows_both_sides_and_leads_to_the_first_difference(browser, tmp_path):
    graph = heald.graphdef.load(DIGITS)
    changed = [entry for entry in graph if entry.op == "Relu6"][1].replace(op="Neg")
    heald.graphdef.dump(graph.replace(nodes=[changed]), tmp_path / "other.pb")
    file = tmp_path / "page.html"
    assert main(["report", str(DIGITS), "-o", str(file), "--compare", str(tmp_path / "other.pb")]) == 0
    open_page(browser, f"file://{quote(str(file))}#tab=comparison")
    titles = browser.value("[...document.querySelectorAll('.pair h3')].map(h => h.textContent)")
    assert titles == ["frozen.pb", "other.pb"]
    assert browser.value("[...document.querySelectorAll('.pair .rewritten .second')].map(t => t.textContent)") == [
        "Relu6", "Neg"]
    browser.value("[...document.querySelectorAll('#comparison p .link')][0].click()")
    assert browser.value("document.querySelector('#details h2').textContent") == changed.name
    browser.value("report.colourBy('comparison')")
    assert "differs" in browser.value("document.getElementById('legend').textContent")


def test_a_scope_on_two_devices_has_strips_and_its_copies_are_told(browser, tmp_path):
    nodes = [placeholder("x", (2,)), node("s/a", "Neg", "x", device="/device:CPU:0"),
             node("s/b", "Neg", "s/a", device="/device:SIM:0"), node("y", "Neg", "s/b", device="/device:CPU:0")]
    heald.graphdef.dump(Graph(nodes), tmp_path / "two.pb")
    file = tmp_path / "two.html"
    assert main(["report", str(tmp_path / "two.pb"), "-o", str(file), "--no-run"]) == 0
    open_page(browser, f"file://{quote(str(file))}#tab=graph&picture=0")
    assert browser.value("document.querySelectorAll('.box.scope .strip').length") == 2
    assert browser.value("[...document.querySelectorAll('#canvas g > title')].map(t => t.textContent)") == [
        "1 tensor copied: SIM:0 to host memory"]
    browser.value("document.querySelector('.box.scope').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert "out: 1 tensor copied" in browser.value("document.querySelector('#details').textContent")
