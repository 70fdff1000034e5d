"""Predict over REST: one table of bodies with their answers, as TensorFlow Serving gives them."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from harness.serve_models import Client, echo, infos, signature, start_server
from heald.api import dtypes
from heald_serve.rest.request_tensors import regular_array, walked_array
from heald_serve.rest.response_text import float_texts

FED = []


def double(x):
    FED.append(x)
    return np.asarray(2 * x + 1)


MODELS = {
    "F": signature(infos(x="float32"), infos(y="float32"), double),
    "D": echo(x="float64"), "I": echo(x="int32"), "B": echo(x="bool"), "S": echo(s="string"), "H": echo(x="float16"),
    "U": echo(x="uint64"), "T": echo(x="int8"),
    "Z": signature(infos(s="string"), infos(z_bytes="string"), lambda s: s),
    "M": echo(a="int32", s="string"),
    "scalar": signature(infos(x="float32"), infos(y="float32"), lambda x: np.float32(1)),
    "A": echo(inputs="float32"),
    "half": signature(infos(x="float32"), infos(y="float16"), lambda x: x.astype("e")),
    "uneven": signature(infos(x="float32"), infos(y="float32", z="float32"),
                        lambda x: (np.zeros(2, "f"), np.zeros(3, "f"))),
    "empty": signature(infos(x="float32"), infos(y="float32"), lambda x: np.zeros((0, 2), "f")),
}
DEEP = "[" * 100 + "1" + "]" * 100

ANSWERS = [  # model, body, answer
    ("F", '{"instances": [1, 2.5]}', '{"predictions": [3.0, 6.0]}'),
    ("F", '{"inputs": [1, 2.5]}', '{"outputs": [3.0, 6.0]}'),
    ("F", '{"inputs": 4}', '{"outputs": 9.0}'),
    ("F", '{"inputs": []}', '{"outputs": []}'),
    ("F", '{"instances": [[1, 2], [3, 4]]}', '{"predictions": [[3.0, 5.0], [7.0, 9.0]]}'),
    ("F", '{"instances": [{"x": 1}, {"x": 2}]}', '{"predictions": [3.0, 5.0]}'),
    ("F", '{"inputs": {"x": [1]}}', '{"outputs": [3.0]}'),
    ("F", '{"instances": [NaN, -Inf]}', '{"predictions": [NaN, -Infinity]}'),
    ("F", '{"instances": [Infinity, Inf, -Infinity]}', '{"predictions": [Infinity, Infinity, -Infinity]}'),
    ("F", '{"instances": [[], []]}', '{"predictions": [[], []]}'),
    ("F", '{"instances": [1], "instances": [2]}', '{"predictions": [3.0]}'),
    ("A", '{"instances": [{"inputs": 1}, {"inputs": 2}]}', '{"predictions": [1.0, 2.0]}'),
    ("A", '{"instances": [{"inputs": 1}], "instances": [{"inputs": 2}]}', '{"predictions": [1.0]}'),
    ("S", '{"instances": ["\\"inputs\\" \\"inputs\\"", "instances"]}',
     '{"predictions": ["\\"inputs\\" \\"inputs\\"", "instances"]}'),
    ("F", '{"instances": [1], "more": {"a": [null]}} and text', '{"predictions": [3.0]}'),
    ("F", '{"signature_name": "serving_default", "instances": [0.5]}', '{"predictions": [2.0]}'),
    ("I", '{"instances": [1, -2]}', '{"predictions": [1, -2]}'),
    ("U", '{"instances": [18446744073709551615]}', '{"predictions": [18446744073709551615]}'),
    ("B", '{"instances": [true, false]}', '{"predictions": [true, false]}'),
    ("S", '{"instances": ["a", {"b64": "aGk="}]}', '{"predictions": ["a", "hi"]}'),
    ("S", '{"inputs": {"b64": "aGk"}}', '{"outputs": "hi"}'),
    ("S", '{"instances": [["NaN", "Inf, \\" Inf"], ["\\u00e4", "\\n"]]}',
     '{"predictions": [["NaN", "Inf, \\" Inf"], ["ä", "\\n"]]}'),
    ("Z", '{"instances": ["hi"]}', '{"predictions": [{"b64": "aGk="}]}'),
    ("M", '{"instances": [{"a": 1, "s": "u"}]}', '{"predictions": [{"a": 1, "s": "u"}]}'),
    ("M", '{"inputs": {"a": [1], "s": ["u"]}}', '{"outputs": {"a": [1], "s": ["u"]}}'),
    ("M", '{"inputs": {"a": [1], "s": ["u"], "q": 7}}', '{"outputs": {"a": [1], "s": ["u"]}}'),
    ("D", '{"instances": [0.1, 1e300, 9000000, 16777216, -0.0, 0.333333343]}',
     '{"predictions": [0.1, 1e+300, 9e+06, 16777216.0, -0.0, 0.333333343]}'),
    ("D", '{"inputs": [0.30000000000000004]}', '{"outputs": [0.30000000000000004]}'),
    ("empty", '{"instances": [1]}', '{"predictions": []}'),
]
FLOATS = [(0.1, "0.1"), (1 / 3, "0.333333343"), (9e6, "9e+06"), (16777216.0, "16777216.0"), (-0.0, "-0.0"),
          (1e-45, "1.4013e-45"), (0.0, "0.0"), (123456.0, "123456.0"), (1e5, "100000.0")]

ERRORS = [  # model, body, a part of the error
    ("F", '{"instances": []}', "No values in 'instances' array"),
    ("F", '{"instances": 5}', "Expecting 'instances' to be an list/array"),
    ("F", '{"instances": ["1"]}', 'JSON Value: "1" Type: String is not of expected type: float'),
    ("F", '{"instances": [true]}', "JSON Value: true Type: True is not of expected type: float"),
    ("F", '{"instances": [null]}', "JSON Value: null Type: Null is not of expected type: float"),
    ("F", '{"instances": [{"b64": "aGk="}]}', "Type: Object is not of expected type: float"),
    ("F", '{"instances": [1, false]}', "Failed to process element: 1 of 'instances' list. Error: INVALID_ARGUMENT: "),
    ("F", '{"inputs": [1, "a"]}', 'JSON Value: "a" Type: String is not of expected type: float'),
    ("F", f'{{"inputs": {DEEP}}}', "more than 64 dimensions"),
    ("F", f'{{"instances": {DEEP}}}', "more than 64 dimensions"),
    ("F", '{"inputs": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deep"),
    ("F", '{"inputs": ' + '{"a":' * 100_000, "nested too deep"),
    ("F", '{"inputs": NaN, "a": ' + "[" * 100_000, "nested too deep"),
    ("F", '{"instances": [' + "9" * 5000 + "]}", ""),
    ("I", '{"instances": [1.0]}', "is not of expected type: int32"),
    ("I", '{"instances": [3000000000]}', "is not of expected type: int32"),
    ("I", '{"instances": [true]}', "is not of expected type: int32"),
    ("U", '{"instances": [-1]}', "is not of expected type: uint64"),
    ("B", '{"instances": [1]}', "is not of expected type: bool"),
    ("F", '{"instances": [[1, 2], [3]]}', "Expecting tensor size: 2 but got: 1"),
    ("F", '{"instances": [[1, 2], [[3, 4]]]}', "Expecting shape [2] but got: [1,2]"),
    ("F", '{"inputs": [[1, 2], [3]]}', "Encountered list at unexpected size: 1 at level: 1 expected size: 2"),
    ("F", '{"inputs": [1, [2]]}', "Encountered list at unexpected level: 1 expected < 1"),
    ("F", '{"inputs": [[1], 2]}', "found at incorrect level: 2 in the JSON DOM. Expected at level: 2"),
    ("S", '{"instances": [{"b64": "@"}]}', "Unable to base64 decode"),
    ("S", '{"instances": [{"b64": "aGk=", "k": 1}]}', "does not have named input: b64"),
    ("S", '{"instances": [["u"], {"s": "u"}]}', "Expecting value/list but got object at item 1 "),
    ("S", '{"instances": [1]}', "JSON Value: 1 Type: Number is not of expected type: string"),
    ("M", '{"instances": [1]}', "instances is a plain list, "),
    ("M", '{"inputs": [1]}', "inputs is a plain value/list, "),
    ("M", '{"instances": [{"a": 1}]}', "keys must be equal to: a,s"),
    ("M", '{"inputs": {"a": [1]}}', "Missing named input: s in 'inputs' object."),
    ("M", '{"instances": [{"a": 1, "s": "u", "q": 7}]}', "does not have named input: q"),
    ("M", '{"instances": [{"a": 1, "s": "u"}, [1]]}', "Expecting object but got list at item 1 "),
    ("M", '{"instances": [{"a": "x", "s": "u"}]}',
     "Failed to process element: 0 key: a of 'instances' list. Error: INVALID_ARGUMENT: "),
    ("F", '{"instances": [1], "inputs": [1]}', "expecting only one of 'inputs' or 'instances' keys "),
    ("F", "{}", "Missing 'inputs' or 'instances' key"),
    ("F", '{"signature_name": 7, "inputs": 1}', "'signature_name' key must be a string value."),
    ("F", '{"signature_name": "no", "inputs": 1}', 'Serving signature name: "no" not found in signature def'),
    ("F", "[1]", "JSON Value: [1] Is not object"),
    ("F", "", "JSON Parse error: The document is empty"),
    ("F", "x=1", "JSON Parse error: Invalid value. at offset: 0"),
    ("F", b'{"inputs": "\xff"}', "JSON Parse error: "),
    ("F", '{"inputs": [1', "JSON Parse error: "),
    ("scalar", '{"instances": [1]}', "Tensor name: y has no shape information"),
    ("uneven", '{"instances": [1]}', "Tensor name: z has inconsistent batch size: 3 expecting: 2"),
    ("half", '{"instances": [1]}', "Failed to write JSON value for tensor type: half"),
]


@pytest.fixture(scope="module")
def client():
    server = start_server(MODELS)
    client = Client(server.port)
    yield client
    client.close()
    server.close()


@pytest.mark.parametrize(("model", "body", "text"), ANSWERS)
def test_a_body_gets_the_text_of_tensorflow_serving(client, model, body, text):
    answer = client.predict(model, body.encode())
    assert (answer.status, answer.body.decode()) == (200, text)
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(("model", "body", "text"), ERRORS)
def test_a_wrong_body_gets_the_error_of_tensorflow_serving(client, model, body, text):
    answer = client.predict(model, body)
    assert answer.status == 400
    assert text in answer.error


@pytest.mark.parametrize(("number", "text"), FLOATS)
def test_a_float_is_short_where_that_reads_back_equal(number, text):
    assert float_texts(np.float32([number])) == [text]


def test_numbers_beyond_a_float_become_infinite_or_zero(client):
    FED.clear()
    client.predict("F", '{"instances": [1e39, 1e-50, 16777217]}')
    assert FED[0].tolist() == [np.inf, 0, 16777216]


def test_an_element_type_without_json_is_unimplemented(client):
    answer = client.predict("H", {"inputs": 1})
    assert (answer.status, answer.error) == (501, "Conversion of JSON Value: 1 to type: half")


def test_bytes_that_are_no_text_leave_as_they_came(client):
    assert client.predict("S", {"instances": [{"b64": "/w=="}]}).body == b'{"predictions": ["\xff"]}'


def test_checks_come_in_the_order_of_tensorflow_serving(client):
    assert client.predict("none", "x").error == "JSON Parse error: Invalid value. at offset: 0"
    assert "must be a string" in client.predict("none", {"signature_name": 1}).error
    answer = client.predict("none", {"signature_name": "no"})
    assert (answer.status, answer.error) == (404, "Servable not found for request: Latest(none)")
    assert "not found in signature def" in client.predict("F", {"signature_name": "no"}).error


def test_a_packed_body_is_unpacked_within_bounds(client):
    body = gzip.compress(b'{"instances": [1]}')
    assert client.ask("POST", "/v1/models/F:predict", body, content_encoding="gzip").json == {"predictions": [3.0]}
    for damaged in (b"no gzip", body[:-9], gzip.compress(b" " * (101 << 20))):
        answer = client.ask("POST", "/v1/models/F:predict", damaged, content_encoding="x-gzip")
        assert (answer.status, answer.error) == (400, "JSON Parse error: The document is empty")


def test_a_large_body_is_read_and_answered_off_the_loop(client):
    numbers = list(range(100_000))
    assert client.predict("I", {"instances": numbers}).json == {"predictions": numbers}


def test_random_lists_are_read_alike_by_both_ways():
    """The regular way and the exact way give one array, or the regular way gives none."""

    random = np.random.default_rng(7)
    for _ in range(200):
        shape = random.integers(0, 4, random.integers(0, 4))
        for kind in (dtypes.float32, dtypes.int32, dtypes.int64):
            value = random.integers(-9, 9, shape).tolist()
            regular = regular_array(value, kind)
            exact = walked_array(value, kind)
            assert regular is not None
            assert regular.dtype == exact.dtype
            assert regular.size == 0 or (regular.shape == exact.shape and (regular == exact).all())



@pytest.mark.parametrize("kind", [dtypes.float32, dtypes.float64, dtypes.int32, dtypes.bool_, dtypes.string])
@pytest.mark.parametrize("value", [[[1.0], "a"], [[1], {"a": 1}], [["a"], "b"], [[], ""], [[], {}], [[True], 1],
                                   ["b", [1]], [[[1.0]], ["a"]], [[1.0], [1.0, 2.0]], [[1.0], None]])
def test_lists_among_other_values_are_not_regular(value, kind):
    assert regular_array(value, kind) is None


def test_an_array_of_numbers_that_was_read_is_a_run_s_own():
    array = regular_array([[1, 2.5], [3, 1e39]], dtypes.float32)
    assert array.tolist() == [[1, 2.5], [3, np.inf]]
    assert (array.dtype is dtypes.float32.numpy, array.flags.carray) == (True, True)  # so no run converts it


@pytest.mark.parametrize(("dtype", "third"), [("float32", "0.333333343"), ("float64", "0.33333333333333331")])
def test_each_number_of_an_array_has_its_own_precision(dtype, third):
    numbers = np.array([1 / 3, 0.1, np.nan, np.inf, -np.inf, 2, -0.0, 1e30], dtype)
    assert float_texts(numbers) == [third, "0.1", "NaN", "Infinity", "-Infinity", "2.0", "-0.0", "1e+30"]
    assert float_texts(np.array([0.5, 4], dtype)) == ["0.5", "4.0"]


def test_damaged_bodies_get_an_answer_of_the_table(client):
    """A body with bytes changed, removed or doubled is answered, or is the fault of the request."""
    from random import Random

    random = Random(44)  # noqa: S311 - a seed, no secret
    pieces = [b"[", b"]", b"{", b"}", b",", b":", b'"', b"\\", b"NaN", b"-Inf", b"1e999", b"null", b"\xff", b"\\ud800",
              b'{"b64": "aGk="}', b"true", b"9" * 25, b"-", b" ", b'"instances"', b'"inputs"', b"\x00"]
    bodies = [(model, text.encode()) for model, text, *_ in (*ANSWERS, *ERRORS[:9]) if isinstance(text, str)]
    for _ in range(1500):
        model, body = random.choice(bodies)
        for _ in range(random.randint(1, 3)):
            at, width = random.randint(0, len(body)), random.randint(0, 3)
            body = body[:at] + random.choice(pieces) + body[at + width :]
        answer = client.predict(model, body)
        assert answer.status in (200, 400), (body, answer)


def test_a_large_body_counts_what_its_values_take():
    from heald_serve.rest.json_text import debug_text, parsed_bytes

    assert parsed_bytes(b"[[1.5, 2.5], [3.5, 4.5]]") == 24 + 3 * 64 + 3 * 64
    assert parsed_bytes(b'{"a": 1}') == 8 + 240
    text = debug_text({"a": list(range(1_000_000))})
    assert (len(text), text[-3:]) == (1003, "...")
