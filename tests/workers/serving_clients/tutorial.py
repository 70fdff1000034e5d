"""REST as TensorFlow Serving's tutorials write it, with curl and with requests."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import requests

DIGITS = Path(__file__).parents[3] / "examples" / "digits"


def curl(*arguments):
    done = subprocess.run(["curl", "-s", *arguments], check=True, capture_output=True)
    return json.loads(done.stdout)


def call_with_curl(models):
    half = f"{models}/half_plus_two"
    assert curl("-d", '{"instances": [1.0, 2.0, 5.0]}', "-X", "POST", f"{half}:predict") == {
        "predictions": [2.5, 3.0, 4.5]}
    for verb, signature in (("regress", "regress_x_to_y"), ("classify", "classify_x_to_y")):
        body = {"signature_name": signature, "examples": [{"x": 1.0}, {"x": 2.0}]}
        assert len(curl("-d", json.dumps(body), "-X", "POST", f"{half}:{verb}")["results"]) == 2
    assert curl(half)["model_version_status"][0]["state"] == "AVAILABLE"
    assert curl(f"{half}/versions/123/metadata")["model_spec"]["version"] == "123"
    assert "error" in curl("-d", '{"instances": [1.0', f"{half}:predict")
    assert "error" in curl(f"{models}/none")
    assert "error" in curl("-X", "PUT", f"{half}:predict")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"instances": np.ones((1, 224, 224, 3), int).tolist()}, file)
        file.flush()
        assert len(curl("-d", f"@{file.name}", f"{models}/picture:predict")["predictions"][0]) == 1000
        assert len(curl("-T", file.name, "-X", "POST", "-H", "Expect: 100-continue", f"{models}/picture:predict")[
            "predictions"][0]) == 1000


def call_with_requests(models):
    images = np.load(DIGITS / "test.npz")["image"][:2]
    text = json.dumps({"signature_name": "serving_default", "instances": images.tolist()})
    headers = {"content-type": "application/json"}
    answer = requests.post(f"{models}/digits:predict", data=text, headers=headers, timeout=30)
    assert [row["digit"] for row in answer.json()["predictions"]] == [0, 6]
    with requests.Session() as session:
        answer = session.post(f"{models}/digits/versions/1:predict", json={"inputs": {"image": images.tolist()}})
        assert answer.json()["outputs"]["digit"] == [0, 6]
        answer = session.post(f"{models}/digits:predict", data=gzip.compress(text.encode(), mtime=0),
                              headers={"content-encoding": "gzip"})
        assert answer.ok
        assert session.post(f"{models}/digits:predict", data=iter([text[:50].encode(), text[50:].encode()])).ok
        rows = ["a fine day", {"b64": "ZHVsbA=="}]
        assert len(session.post(f"{models}/text:predict", json={"instances": rows}).json()["predictions"]) == 2
        assert session.get(f"{models}/digits").json()["model_version_status"][0]["version"] == "1"
        for path, body, status in (
                ("text:predict", {"instances": [1]}, 400), ("text:predict", {"inputs": {"other": ["a"]}}, 400),
                ("digits:predict", {"instances": [[1, 2], [3]]}, 400), ("none:predict", {"instances": [1]}, 404),
                ("digits/versions/7:predict", {"instances": [1]}, 404),
                ("half_plus_two:regress", {"signature_name": "regress_x2_to_y3", "examples": [{"x2": 1.0}]}, 400),
                ("half_plus_two:classify", {"signature_name": "classify_x_to_y", "examples": []}, 400)):
            answer = session.post(f"{models}/{path}", json=body)
            assert answer.status_code == status, (path, body, answer.text)
            assert answer.json()["error"]


def main():
    call_with_curl(f"{sys.argv[1]}/v1/models")
    call_with_requests(f"{sys.argv[1]}/v1/models")


main()
