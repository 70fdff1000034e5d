"""The options: the table, the parser made of it, and the page agree; each is obeyed, accepted, refused or our own."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

import pytest
from heald.errors import InvalidArgument, NotFound, Unimplemented
from heald_serve import serve as command
from heald_serve.options import ACCEPTED, OBEYED, OWN, REFUSED, given_options, markdown_table, options
from heald_serve.settings import read_settings

PAGE = Path(__file__).parents[2] / "docs" / "serve.md"


def parse(*words):
    parser = ArgumentParser(allow_abbrev=False)
    command.add_arguments(parser)
    return parser.parse_args(words)


def settings_of(*words, environ=None):
    return read_settings(parse(*words), environ or {})


def test_the_table_has_the_48_options_of_tensorflow_serving():
    kinds = [option.here for option in options().values()]
    assert len(kinds) - kinds.count(OWN) == 48
    assert set(kinds) == {OBEYED, ACCEPTED, REFUSED, OWN}


def test_the_page_has_the_tables():
    page = PAGE.read_text("utf-8")
    assert markdown_table(of_server=False) in page
    assert markdown_table(of_server=True) in page


@pytest.mark.parametrize("name", [*options()])
def test_each_option_is_parsed_with_hyphens_and_underscores(name):
    option = options()[name]
    text = {"bool": "true", "string": "text", "float": "0.5"}.get(option.kind, "7")
    for spelling in (name, name.replace("_", "-")):
        (value,) = given_options(parse(f"--{spelling}={text}")).values()
        assert value == {"bool": True, "string": "text", "float": 0.5}.get(option.kind, 7)
    assert given_options(parse("model.pb")) == {}


@pytest.mark.parametrize(("words", "value"), [
    (["--enable_batching"], True), (["--enable_batching=true"], True), (["--enable_batching=false"], False),
    (["--enable-batching=False"], False), (["--enable_batching=1"], True), (["--enable_batching", "--port=1"], True)])
def test_a_flag_has_three_forms(words, value):
    assert parse(*words).enable_batching is value


@pytest.mark.parametrize("word", ["--port=x", "--port=99999999999", "--enable_batching=maybe", "--port", "--unknown=1",
                                  "--per_process_gpu_memory_fraction=x"])
def test_a_value_of_another_kind_is_an_error_of_usage(word, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(word)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name, option in options().items() if option.here == REFUSED])
def test_a_refused_option_is_an_error_but_for_its_default(name):
    value = "true" if options()[name].kind == "bool" else "x"
    with pytest.raises(Unimplemented, match=f"--{name} is not served"):
        settings_of("m.pb", f"--{name}={value}")
    settings_of("m.pb", f"--{name}={options()[name].default_text}")


@pytest.mark.parametrize("name", [name for name, option in options().items() if option.here == ACCEPTED])
def test_an_accepted_option_is_told_in_a_line(name):
    option = options()[name]
    text = {"bool": "false" if option.default else "true", "string": "x"}.get(option.kind, "77")
    (line,) = settings_of("m.pb", f"--{name}={text}").lines
    assert line.startswith(f"--{name} is accepted and changes nothing")


def test_the_short_form_listens_on_a_loopback_address():
    settings = settings_of("a/digits.pb", "other=b.bef")
    assert (settings.host, settings.rest_port, settings.lines) == ("127.0.0.1", 8501, [])
    assert [(model.name, str(model.base_path), model.is_single) for model in settings.models] == [
        ("digits", "a/digits.pb", True), ("other", "b.bef", True)]
    assert settings.allowed_hosts == ["127.0.0.1", "[::1]", "localhost"] or "localhost" in settings.allowed_hosts


def test_the_long_form_listens_on_all_addresses_with_a_line():
    settings = settings_of("--rest_api_port=8501", "--model_base_path=/models/m")
    assert (settings.host, settings.rest_port, settings.allowed_hosts) == ("0.0.0.0", 8501, None)  # noqa: S104
    assert [model.name for model in settings.models] == ["default"]
    assert len(settings.lines) == 1
    settings = settings_of("--model_base_path=/models/m", "--host=127.0.0.2")
    assert (settings.host, settings.rest_port, settings.lines) == ("127.0.0.2", None, [])
    assert "localhost" in settings.allowed_hosts


@pytest.mark.parametrize(("words", "grpc_port", "rest_port"), [
    ([], 8500, None), (["--port=9"], 9, None), (["--rest_api_port=9"], 8500, 9),
    (["--port=0", "--rest_api_port=9"], None, 9)])
def test_a_port_alone_turns_nothing_else_on_or_off(words, grpc_port, rest_port):
    settings = settings_of("--model_base_path=/models/m", *words)
    assert (settings.grpc_port, settings.rest_port) == (grpc_port, rest_port)


def test_one_port_for_both_skips_rest_with_a_line():
    settings = settings_of("--model_base_path=/models/m", "--host=h", "--port=9", "--rest_api_port=9")
    assert (settings.grpc_port, settings.rest_port) == (9, None)
    assert settings.lines == ["--rest_api_port and --port are both 9: the REST interface is skipped"]


def test_the_environment_stands_for_the_container():
    settings = settings_of(environ={"MODEL_NAME": "digits"})
    assert (settings.rest_port, settings.models[0].name, str(settings.models[0].base_path)) == (
        8501, "digits", "/models/digits")
    settings = settings_of(environ={"MODEL_NAME": "a", "MODEL_BASE_PATH": "/b"})
    assert str(settings.models[0].base_path) == "/b/a"


def test_without_a_model_there_is_nothing_to_serve():
    with pytest.raises(InvalidArgument, match="no model to serve"):
        settings_of()


@pytest.mark.parametrize("path", ["gs://bucket/m", "s3://bucket/m", "GS://b"])
def test_a_remote_store_is_an_error_with_the_way_out(path, tmp_path):
    config = tmp_path / "models.config"
    config.write_text(f'model_config_list {{ config {{ name: "m" base_path: "{path}" }} }}')
    for words in ([path], [f"--model_base_path={path}"], [f"--model_config_file={config}"]):
        with pytest.raises(Unimplemented) as raised:
            settings_of(*words)
        assert "copy the folder" in str(raised.value)


def write(folder, text):
    file = folder / "file.config"
    file.write_text(text)
    return file


def test_a_file_of_models_has_policies_and_labels(tmp_path):
    file = write(tmp_path, """
        model_config_list {
          config { name: "a" base_path: "/a" model_platform: "tensorflow" }
          config { name: "b" base_path: "/b" model_version_policy { latest { num_versions: 3 } } }
          config { name: "c" base_path: "/c" model_version_policy { all {} }
                   version_labels { key: "stable" value: 4 } }
          config { name: "d" base_path: "/d" model_version_policy { specific { versions: 1 versions: 5 } } }
        }""")
    models = settings_of(f"--model_config_file={file}", "--model_base_path=/other").models
    assert [(model.name, model.policy.kind, model.policy.latest_count, sorted(model.policy.versions))
            for model in models] == [("a", "latest", 1, []), ("b", "latest", 3, []), ("c", "all", 1, []),
                                     ("d", "specific", 1, [1, 5])]
    assert models[2].labels == {"stable": 4}


@pytest.mark.parametrize(("text", "error"), [
    ("model_config_list { config { nme: 1 } }", "ModelConfig"), ("{", "no ModelServerConfig"),
    ('model_config_list { config { base_path: "/a" } }', "has no name"),
    ('model_config_list { config { name: "a" } }', "has no base_path"),
    ('model_config_list { config { name: "a" base_path: "a" } }', "absolute path"),
    ('model_config_list { config { name: "a" base_path: "/a" model_platform: "x" } }', "platform"),
    ('model_config_list { config { name: "a" base_path: "/a" } config { name: "a" base_path: "/a" } }', "multiple"),
    ('model_config_list { config { name: "a" base_path: "/a" model_version_policy { specific {} } } }', "names none"),
])
def test_a_faulty_file_of_models_is_an_error_with_its_place(tmp_path, text, error):
    file = write(tmp_path, text)
    with pytest.raises(InvalidArgument, match=error) as raised:
        settings_of(f"--model_config_file={file}")
    assert str(file) in str(raised.value)


@pytest.mark.parametrize("field", ["logging_config { }", "logging_configs { sampling_config { sampling_rate: 1 } }"])
def test_a_log_of_requests_is_refused_with_the_way_out(tmp_path, field):
    file = write(tmp_path, f'model_config_list {{ config {{ name: "a" base_path: "/a" {field} }} }}')
    with pytest.raises(Unimplemented, match="requests are not collected; --access_log"):
        settings_of(f"--model_config_file={file}")


def test_a_file_that_cannot_be_read_is_a_typed_error(tmp_path):
    with pytest.raises(NotFound):
        settings_of(f"--model_config_file={tmp_path / 'none'}")
    with pytest.raises(NotFound):
        settings_of("m.pb", f"--token_file={tmp_path / 'none'}")
    with pytest.raises(InvalidArgument, match="no token"):
        settings_of("m.pb", f"--token_file={write(tmp_path, ' ')}")
    (tmp_path / "file.config").write_bytes(b"\xff\xfe")
    for words in (["m.pb", f"--token_file={tmp_path / 'file.config'}"],
                  ["m.pb", f"--monitoring_config_file={tmp_path / 'file.config'}"]):
        with pytest.raises((InvalidArgument, ValueError)):
            settings_of(*words)


@pytest.mark.parametrize("words", [
    ["--workers=0"], ["--workers=257"], ["--workers=2", "--grpc_socket_path=/x"],
    ["--port=-1"], ["--rest_api_port=70000"], ["--rest_api_num_threads=0"], ["--max_connections=0"],
    ["--max_queued_requests=-1"], ["--access_log=xml"], ["--batching_parameters_file=x"],
    ["--tensorflow_session_parallelism=1", "--tensorflow_intra_op_parallelism=1",
     "--tensorflow_inter_op_parallelism=1"], ["--model_name=a"]])
def test_options_that_do_not_fit_are_errors(words):
    with pytest.raises(InvalidArgument):
        settings_of("m.pb", "n.pb", *words)


def test_batching_comes_from_its_file(tmp_path):
    assert settings_of("m.pb").batching is None
    defaults = settings_of("m.pb", "--enable_batching").batching
    assert (defaults.max_batch_size, defaults.batch_timeout_micros) == (1000, 0)
    file = write(tmp_path, """
        max_batch_size { value: 8 } batch_timeout_micros { value: 500 } num_batch_threads { value: 3 }
        thread_pool_name { value: "pool" } allowed_batch_sizes: 4 allowed_batch_sizes: 8
        pad_variable_length_inputs: true""")
    own = settings_of("m.pb", "--enable_batching", f"--batching_parameters_file={file}").batching
    assert (own.max_batch_size, own.batch_timeout_micros, own.num_batch_threads, own.thread_pool_name) == (
        8, 500, 3, "pool")
    assert (own.allowed_batch_sizes, own.pad_variable_length_inputs, own.max_execution_batch_size) == ((4, 8), True, 8)
    for text in ("max_batch_size { value: 0 }", "max_batch_size { value: 8 } allowed_batch_sizes: 4",
                 "allowed_batch_sizes: [1000, 4]", "batch_timeout_micros { value: -1 }", "num_batch_threads {}"):
        with pytest.raises(InvalidArgument):
            settings_of("m.pb", "--enable_batching", f"--batching_parameters_file={write(tmp_path, text)}")


def test_the_path_of_the_metrics_comes_from_its_file(tmp_path):
    for text, path in (("prometheus_config { enable: true }", "/monitoring/prometheus/metrics"),
                       ('prometheus_config { enable: true path: "/m" }', "/m"), ("prometheus_config {}", None)):
        assert settings_of("m.pb", f"--monitoring_config_file={write(tmp_path, text)}").metrics_path == path


def test_the_version_is_told(capsys):
    assert command.serve(parse("--version")) == 0
    assert capsys.readouterr().out.startswith("TensorFlow ModelServer: heald-serve ")
