"""The walks in ARCHITECTURE.md are right: their stops are called in that order."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WALKS = {
    "A feed through `Session.run`": "session.run('logits:0', {'image:0': image})",
    "The same feed again": "session.run('logits:0', {'image:0': image})",
    "A .pb to a `Graph`": "heald.graphdef.load('examples/digits/frozen.pb')",
}
TRACE = """
import json, sys
from pathlib import Path
import numpy as np
import heald

code, again = sys.argv[1:]
core = str(Path(heald.__file__).parent)
image = np.zeros((1, 8, 8, 1), np.float32)
session = heald.Session(heald.graphdef.load("examples/digits/frozen.pb"))
if again == "True":
    for _ in range(50):
        session.run("logits:0", {"image:0": image})
called = []


def note(frame, event, _):
    file = frame.f_code.co_filename
    if event == "call" and file.startswith(core):
        called.append(file[len(core) + 1:-3].replace("/", ".") + "." + frame.f_code.co_qualname)


sys.setprofile(note)
exec(code)
sys.setprofile(None)
print(json.dumps(called))
"""


def stops(title: str) -> list[str]:
    """The functions that begin the items of the numbered list below this heading."""
    _, _, after_title = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition(f"### {title}\n")
    return re.findall(r"^\d+\. `([\w.]+)`", after_title.partition("\n#")[0], re.MULTILINE)


@pytest.mark.parametrize("title", WALKS)
def test_the_stops_of_a_walk_are_called_in_its_order(title):
    listed = stops(title)
    assert len(listed) > 3
    done = subprocess.run([sys.executable, "-c", TRACE, WALKS[title], str("again" in title)], capture_output=True,
                          text=True, check=True, cwd=ROOT, timeout=60)
    called = iter(json.loads(done.stdout))
    for stop in listed:
        assert any(name == stop for name in called), f"{stop} is not called, or not at this place"
