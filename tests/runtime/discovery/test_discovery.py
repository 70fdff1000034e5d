"""Each plugin that cannot be used is shown with its reason and remedy, and everything else works."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, NamedTuple

import pytest
from heald.runtime.config.config import load_config
from heald.runtime.contract.api_version import API
from heald.runtime.discovery.config_names import unknown_names
from heald.runtime.host.registries import Registries
from heald.runtime.support.install import install_hint

HAS = ".".join(map(str, API))

GOOD = """
from heald.api import hookimpl
HEALD_API = (1, 0)

@hookimpl
def heald_devices(registry):
    registry.device(type="{type}", scan="nowhere:scan", priority={priority})
"""
PACK = """
from heald.api import hookimpl
HEALD_API = (1, 0)

@hookimpl
def heald_kernels(registry):
    registry.kernels("{type}", "{module}:register")
"""
KERNELS = """
def register(kernels):
    for op in {ops}:
        kernels.kernel(op)(lambda b: None)
"""
HOOK = """
from dataclasses import dataclass
from heald.api import OpSpec, hookimpl
HEALD_API = (1, 0)
"""


class Case(NamedTuple):
    source: str
    status: str
    reason: str
    remedy: str = ""
    requires: tuple[str, ...] = ("heald-core>=0.1",)


NEWER_CORE = install_hint("heald-core", upgrade=True)
CASES = {
    "import_error": Case("import vendorlib", "failed", "import of d_import_error raised ModuleNotFoundError: No module "
                         "named 'vendorlib'"),
    "syntax_error": Case("def", "failed", "SyntaxError: invalid syntax (d_syntax_error.py, line 1)"),
    "exits": Case("raise SystemExit(3)", "failed", "import of d_exits raised SystemExit: 3"),
    "half_way": Case(HOOK + """
@hookimpl
def heald_devices(registry):
    registry.device(type="HALF", scan="nowhere:scan")

@hookimpl
def heald_ops(registry):
    registry.add(OpSpec("Half>Op"))
    raise ValueError("boom")
""", "failed", "hook heald_ops raised ValueError: boom"),
    "no_version": Case("x = 1", "failed", "HEALD_API is missing", f"write HEALD_API = {API}"),
    "odd_version": Case("HEALD_API = '1.0'", "failed", "HEALD_API = '1.0' is not a pair of integers"),
    "old_major": Case("HEALD_API = (0, 9)", "incompatible", f"written for plugin API 0.9, this heald has {HAS}",
                      "pip install -U heald-old-major"),
    "new_major": Case("HEALD_API = (2, 0)", "incompatible", "plugin API 2.0", NEWER_CORE),
    "new_minor": Case("HEALD_API = (1, 99)", "incompatible", "plugin API 1.99", NEWER_CORE),
    "needs_newer": Case("raise RuntimeError('not to be imported')", "incompatible",
                        "heald-needs-newer 1.0 requires heald-core>=9.1,<10", NEWER_CORE,
                        ("numpy>=1", "heald-core>=9.1,<10")),
    "needs_older": Case("", "incompatible", "requires heald-core<0.1", "pip install -U heald-needs-older",
                        ("heald_core <0.1",)),
    "bad_parameter": Case(HOOK + "@hookimpl\ndef heald_ops(registry, conf): ...", "failed",
                          "Plugin 'bad_parameter' for hook 'heald_ops'", "a hook takes `registry` and"),
    "bad_name": Case(HOOK + "@hookimpl\ndef heald_kernel(registry): ...", "failed",
                     "there is no hook called heald_kernel", "did you mean heald_kernels?"),
    "unmarked": Case("HEALD_API = (1, 0)\ndef heald_ops(registry): ...", "failed", "heald_ops is not marked as a hook",
                     "decorate it with @hookimpl"),
    "old_wrapper": Case(HOOK + "@hookimpl(hookwrapper=True)\ndef heald_ops(registry):\n    yield", "failed",
                        "as a wrapper of the old form", "write wrapper=True"),
    "future_hook": Case(HOOK + "@hookimpl(optionalhook=True)\ndef heald_tomorrow(thing): ...", "ok", ""),
    "loose_config": Case(HOOK + "@dataclass\nclass Config:\n    x: int = 0", "failed", "a frozen dataclass",
                         "@dataclass(frozen=True)"),
    "wants_x": Case(HOOK + "@dataclass(frozen=True)\nclass Config:\n    size: int = 0", "failed",
                    "heald.toml:2: [plugin.wants_x] has no key 'sise'", "did you mean size?"),
    "picky": Case(HOOK + """
@dataclass(frozen=True)
class Config:
    x: int = 0
    def __post_init__(self): raise KeyError("never")
""", "failed", "Config of plugin picky raised KeyError: 'never'", "check [plugin.picky]"),
    "other_matmul": Case(HOOK + "@hookimpl\ndef heald_ops(registry): registry.add(OpSpec('MatMul'))", "failed",
                         "op MatMul is plugin tf_ops's already, with another signature"),
    "bad_notation": Case(HOOK + "@hookimpl\ndef heald_ops(registry): registry.add(OpSpec('A', inputs=['x']))", "failed",
                         "hook heald_ops raised InvalidArgument: cannot read the argument 'x' of op A"),
    "plain_again": Case(HOOK + "@hookimpl\ndef heald_allocators(registry): registry.add('plain', list)", "failed",
                        "allocator 'plain' is heald's own already"),
    "blocked": Case("raise RuntimeError('not to be imported')", "blocked", "[plugins] block names it"),
    "good": Case(GOOD.format(type="GOOD", priority=1), "ok", ""),
    "inert": Case(PACK.format(type="NOBODYS", module="nowhere"), "ok",
                  "inert: no plugin announces device type NOBODYS"),
    "odd_attributes": Case("HEALD_API = (1, 0)\ndef __getattr__(name): raise RuntimeError(name)", "ok", ""),
    # two that claim one device type
    "type_a": Case(GOOD.format(type="CLAIMED", priority=0), "conflict", "device type CLAIMED: claimed by plugin type_b "
                   "too, type_b's is used", "set [placement.provider] CLAIMED = 'type_a' or 'type_b'"),
    "type_b": Case(GOOD.format(type="CLAIMED", priority=5), "conflict",
                   "claimed by plugin type_a too, type_b's is used"),
    # two that claim one kernel, and one whose kernels cannot be imported, for a device type of a fourth
    "toy": Case(GOOD.format(type="TOY", priority=1), "ok", ""),
    "pack_a": Case(PACK.format(type="TOY", module="k_a"), "conflict", "the kernels for Add, Mul on TOY at equal "
                   "priority: claimed by plugin pack_b too, pack_a's is used",
                   "set [kernels] Add = 'pack_b' or 'pack_a'"),
    "pack_b": Case(PACK.format(type="TOY", module="k_b"), "conflict", "claimed by plugin pack_a too, pack_a's is used"),
    "pack_c": Case(PACK.format(type="TOY", module="k_c"), "failed",
                   "registering its kernels for TOY raised ModuleNotFoundError: No module named 'k_c'"),
}


@pytest.fixture(scope="module")
def plugin_listing(shared_site: Any) -> dict[str, Any]:
    """All cases installed side by side; one listing."""
    for name, case in CASES.items():
        module = f"d_{name}"
        shared_site.add(f"heald-{name.replace('_', '-')}", {name: module}, {f"{module}.py": case.source},
                        requires=case.requires)
    for pack, ops in {"k_a": ["Add", "Mul"], "k_b": ["Add", "Mul", "Sub"]}.items():
        (shared_site.libraries / f"{pack}.py").write_text(KERNELS.format(ops=ops))
    shared_site.add("heald-gone", {"gone": "heald_gone.plugin"}, {})
    for distribution in ("heald-first", "heald-second"):
        word = distribution.removeprefix("heald-")
        source = GOOD.format(type=word.upper(), priority=0)
        shared_site.add(distribution, {"twice": f"t_{word}"}, {f"t_{word}.py": source})
    settings = "[plugin.wants_x]\nsise = 3\n[plugins]\nblock = ['blocked', 'onednn']\n"
    named = shared_site.folder / "heald.toml"
    named.write_text(settings)
    facts: dict[str, Any] = shared_site.run("""
        told = warnings.catch_warnings(record=True)
        caught = told.__enter__()
        warnings.simplefilter("always")
        plugins = load_plugins(load_config())
        before = sorted(sys.modules)
        records = shown(plugins.listing())
        types = plugins.registries.device_types
        tell(records=records, before=before, after=sorted(sys.modules), ops=list(plugins.registries.ops),
             types=[t for t in ("HALF", "GOOD", "FIRST", "SECOND") if types.get(t)],
             claimed=types.get("CLAIMED").plugin,
             add=[k.pack for k in plugins.registries.kernels.candidates("Add", "TOY")],
             allocators=sorted(plugins.registries.allocators), warned=[str(w.message) for w in caught])
    """, env={"HEALD_CONFIG": str(named)})
    return facts


def test_each_plugin_that_cannot_be_used_or_is_displaced_is_warned_of_once(plugin_listing: Any) -> None:
    """Also a pack whose import fails, once its device type is used."""
    for name, case in CASES.items():
        if case.status in ("failed", "incompatible") and not name.startswith("pack_"):
            warning_texts = [text for text in plugin_listing["warned"]
                             if text.startswith(f"plugin {name} is {case.status}: ")]
            assert len(warning_texts) == 1, name
            assert case.reason in warning_texts[0]
            assert case.remedy in warning_texts[0]
    assert "device type CLAIMED is announced by plugins type_b and type_a: type_b's is used; set " \
           "[placement.provider] CLAIMED = 'type_a' or 'type_b'" in plugin_listing["warned"]
    assert "plugins pack_a and pack_b have kernels for Add on TOY at equal priority: pack_a's is used; " \
           "set [kernels] Add = 'pack_b' or 'pack_a'" in plugin_listing["warned"]
    warned = plugin_listing["warned"]
    assert any(text.startswith("plugin pack_c: registering its kernels for TOY raised") for text in warned)
    assert not [text for text in warned if text.startswith(("plugin good", "plugin blocked", "plugin inert"))]


@pytest.mark.parametrize("name", CASES)
def test_a_plugin_is_listed_with_status_reason_and_remedy(name: str, plugin_listing: Any) -> None:
    case = CASES[name]
    (record,) = [r for r in plugin_listing["records"] if r["id"] == name]
    assert record["status"] == case.status, record
    assert case.reason in record["reason"]
    assert case.remedy in record["remedy"]
    assert record["distribution"] == f"heald-{name.replace('_', '-')}"
    assert record["version"] == "1.0"


def test_records_come_in_order_of_id(plugin_listing: Any) -> None:
    ids = [record["id"] for record in plugin_listing["records"]]
    assert ids == sorted(ids)
    assert {"cpu", "example_device"} <= set(ids)


def test_a_plugin_that_failed_half_way_leaves_no_registration(plugin_listing: Any) -> None:
    assert plugin_listing["types"] == ["GOOD", "FIRST"]
    assert "Half>Op" not in plugin_listing["ops"]
    assert "Example>Gelu" in plugin_listing["ops"]
    assert plugin_listing["allocators"] == ["counting", "plain", "poisoning", "pooled"]


def test_the_traceback_of_a_failure_leads_into_the_plugin(plugin_listing: Any) -> None:
    (record,) = [r for r in plugin_listing["records"] if r["id"] == "half_way"]
    assert 'raise ValueError("boom")' in record["traceback"]
    assert "d_half_way.py" in record["traceback"]
    assert not any(r["traceback"] for r in plugin_listing["records"] if r["status"] == "ok")


def test_priority_then_the_lower_id_decides_between_rivals(plugin_listing: Any) -> None:
    assert plugin_listing["claimed"] == "type_b"
    assert plugin_listing["add"] == ["pack_a", "pack_b"]


def test_the_first_of_two_plugins_with_one_id_is_loaded_and_both_are_shown(plugin_listing: Any) -> None:
    first, second = (record for record in plugin_listing["records"] if record["id"] == "twice")
    assert (first["status"], second["status"]) == ("conflict", "conflict")
    assert first["reason"] == "another plugin has the same id: heald-second"
    assert second["reason"] == "plugin of heald-first has the id 'twice' already"
    assert second["remedy"] == "pip uninstall heald-second"
    assert first["registered"] == {"device types": ["FIRST"]}
    assert second["registered"] == {}


def test_a_distribution_whose_folder_is_gone_says_so(plugin_listing: Any) -> None:
    (record,) = [r for r in plugin_listing["records"] if r["id"] == "gone"]
    assert record["status"] == "failed"
    assert record["reason"] == "module heald_gone.plugin does not exist: no 'heald_gone' on sys.path"


def test_loading_imports_no_kernels_and_listing_those_of_all_packs(plugin_listing: Any) -> None:
    before, after = set(plugin_listing["before"]), set(plugin_listing["after"])
    assert not before & {"numpy", "k_a", "heald_cpu.kernels", "heald_example_device.device",
                         "heald_example_device.kernels"}
    assert {"heald_example_device.kernels", "k_a", "k_b", "heald_cpu.kernels",
            "heald_saved_model.checkpoint_ops"} <= after
    assert not after & {"d_blocked", "d_needs_newer"}


def test_importing_heald_imports_nothing_heavy(site: Any) -> None:
    facts = site.run("""
        early = set(sys.modules)  # of discovery and config
        plugins = load_plugins(load_config({"plugins": {"allow": [], "block": ["heald"]}}))
        tell(early=sorted(early), late=sorted(sys.modules), statuses=[r.status for r in plugins.listing()])
    """)
    heavy = {"numpy", "pluggy", "importlib.metadata", "google.protobuf", "tomllib"}
    assert not heavy & set(facts["early"])
    assert not heavy & set(facts["late"])
    assert set(facts["statuses"]) == {"blocked"}
    code = "import sys, heald; print(*(m for m in sys.modules if m.startswith('heald') or m == 'dataclasses'))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["heald"]


def test_only_allowed_plugins_are_loaded_and_named_ones_always(site: Any) -> None:
    (site.folder / "mine.py").write_text(GOOD.format(type="MINE", priority=0))
    listing = site.listing(env={"HEALD_PLUGINS__ALLOW": "cpu", "HEALD_PLUGINS__LOAD": "./mine.py"})
    blocked = ("cuda", "decision_forests", "eager", "example_device", "mlir", "onednn", "opencl", "ray", "report",
               "saved_model", "serve", "sim", "simplify", "tf_ops", "tf_text", "tools")
    statuses = {"cpu": "ok", "heald": "ok", "mine": "ok", **dict.fromkeys(blocked, "blocked")}
    assert {name: r["status"] for name, r in listing.items()} == statuses
    assert listing["example_device"]["reason"] == "[plugins] allow does not name it"


def test_strict_mode_raises_the_first_plugin_that_cannot_be_used(site: Any) -> None:
    site.add("heald-wrong", {"wrong": "d_wrong"}, {"d_wrong.py": "1 / 0"})
    facts = site.run("""
        try:
            load_plugins(load_config())
        except heald.errors.PluginError as error:
            tell(message=str(error), cause=type(error.__cause__.__cause__).__name__)
    """, env={"HEALD_PLUGINS__STRICT": "1"})
    assert facts["message"] == ("plugin wrong is failed: import of d_wrong raised ZeroDivisionError: division by zero; "
                                "'heald plugins --traceback wrong' shows where, [plugins] block = ['wrong'] leaves it "
                                "out")
    assert facts["cause"] == "ZeroDivisionError"


def test_settings_for_a_plugin_that_is_not_installed_are_a_warning_with_the_command(site: Any) -> None:
    facts = site.run("""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            load_plugins(load_config({"plugin": {"tpu_v1": {"a": 1}, "cpi": {}}, "kernels": {"MatMul": "fast"}}))
        tell(texts=[str(w.message) for w in caught], kinds=[w.category.__name__ for w in caught])
    """)
    assert facts["kinds"] == ["HealdWarning"] * 3
    assert facts["texts"] == [
        "[plugin.tpu_v1] (argument) is for a plugin that is not installed",
        "[plugin.cpi] (argument) is for a plugin that is not installed; did you mean cpu?",
        "kernels.MatMul = 'fast' (argument) is for a plugin that is not installed",
    ]


@pytest.mark.parametrize(("plugin", "distribution"), [
    ("opencl", "heald-opencl"), ("tf_ops", "heald-tf-ops"), ("TF-ops", "heald-tf-ops"), ("cuda", "heald-cuda")])
def test_settings_for_a_plugin_of_healds_name_the_command_that_installs_it(plugin: str, distribution: str) -> None:
    config = load_config({"plugin": {plugin: {"a": 1}}, "kernels": {"MatMul": plugin}}, environ={})
    texts = [text for text in unknown_names(config, Registries(), ()) if "not installed" in text]
    assert len(texts) == 2
    assert {text.partition("; ")[2] for text in texts} == {install_hint(distribution)}


def test_a_plugin_takes_its_settings_from_its_section(site: Any) -> None:
    facts = site.run("""
        plugins = load_plugins(load_config())
        tell(config=repr(plugins.configs["example_device"]),
             type=repr(plugins.registries.device_types.get("EXAMPLE").config))
    """, env={"HEALD_PLUGIN__EXAMPLE_DEVICE__DEVICES": "2"})
    assert facts["config"] == facts["type"] == "Config(devices=2, memory=1073741824)"


def test_plugins_that_config_names_are_loaded_from_paths_and_modules(site: Any) -> None:
    parts = site.folder / "parts"
    parts.mkdir()
    (parts / "my_ops.py").write_text("HEALD_ID = 'mine'\n" + GOOD.format(type="MINE", priority=0))
    (parts / "cpu.py").write_text(GOOD.format(type="OTHER", priority=0))
    (parts / "json.py").write_text("HEALD_API = (1, 0)")
    (site.libraries / "named_module.py").write_text(GOOD.format(type="NAMED", priority=0))
    (site.folder / "heald.toml").write_text("""
        [plugins]
        load = ["./parts/my_ops.py", "named_module", "parts/gone.py", "parts/cpu.py", "parts/json.py", "no_module"]
    """)
    environ = {"HEALD_CONFIG": str(site.folder / "heald.toml")}
    facts = site.run("""
        from heald.runtime.discovery.discovery import Plugins
        plugins = Plugins(load_config())
        plugins.load()
        try:
            heald.Session(heald.Graph([]))
        except heald.errors.PluginError as error:
            tell(records=shown(plugins.records()), error=str(error))
    """, env=environ)
    records = facts["records"]
    assert facts["error"].startswith("plugin gone is failed: the file ")
    of = {(r["id"], r["distribution"]): r for r in records}
    assert of["mine", None]["status"] == "ok"
    assert of["mine", None]["module"] == str(parts / "my_ops.py")
    assert of["named_module", None]["registered"] == {"device types": ["NAMED"]}
    assert of["gone", None]["reason"] == f"the file {parts / 'gone.py'} does not exist"
    assert of["cpu", None]["status"] == of["cpu", "heald-cpu"]["status"] == "conflict"
    assert of["cpu", None]["remedy"] == "set HEALD_ID in it"
    assert of["json", None]["reason"] == "a module called 'json' exists already"
    assert of["no_module", None]["status"] == "failed"


def test_register_takes_modules_names_and_paths_once_and_raises_at_once(site: Any) -> None:
    (site.folder / "mine.py").write_text(GOOD.format(type="MINE", priority=0))
    (site.folder / "broken.py").write_text("1 / 0")
    (site.libraries / "loose.py").write_text(GOOD.format(type="LOOSE", priority=0))
    facts = site.run("""
        import types
        import loose
        plugins = load_plugins(load_config())
        made = types.ModuleType("made_here")
        made.HEALD_API = (1, 0)
        given = ("./mine.py", "mine.py", loose, "loose", made, "heald_example_device.plugin")
        ids = [plugins.register(each).id for each in given]
        errors = []
        for wrong in ("./broken.py", "./absent.py", "no.such.module"):
            try:
                plugins.register(wrong)
            except heald.errors.PluginError as error:
                errors.append(str(error))
        tell(ids=ids, errors=errors, listed=[r.id for r in plugins.records()],
             refused=[(r.id, r.status) for r in plugins.refused])
    """)
    assert facts["ids"] == ["mine", "mine", "loose", "loose", "made_here", "example_device"]
    assert facts["listed"] == ["cpu", "cuda", "decision_forests", "eager", "example_device", "heald", "mlir", "onednn",
                               "opencl", "ray", "report", "saved_model", "serve", "sim", "simplify", "tf_ops",
                               "tf_text", "tools", "mine", "loose", "made_here"]
    assert facts["refused"] == [["broken", "failed"], ["absent", "failed"], ["module", "failed"]]
    assert "plugin broken is failed: import of" in facts["errors"][0]
    assert "ZeroDivisionError" in facts["errors"][0]
    assert "absent.py does not exist" in facts["errors"][1]
    assert "no 'no' on sys.path" in facts["errors"][2]


def test_a_wheel_that_pip_installed_is_found(site: Any) -> None:
    files = {"heald_wheeled/__init__.py": "", "heald_wheeled/plugin.py": GOOD.format(type="WHEELED", priority=0)}
    wheel = site.wheel("heald-wheeled", {"wheeled": "heald_wheeled.plugin"}, files, version="2.5")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-cache-dir", "--no-index"]
    subprocess.run([*pip, "--no-deps", "--target", site.libraries, wheel], check=True, timeout=60)
    record = site.listing()["wheeled"]
    assert (record["status"], record["distribution"], record["version"]) == ("ok", "heald-wheeled", "2.5")
    assert record["registered"] == {"device types": ["WHEELED"]}


SLOW = """
import threading
from heald.api import hookimpl
HEALD_API = (1, 0)
never = threading.Event()

@hookimpl
def heald_ops(registry):
    pass

@hookimpl
def heald_devices(registry):
    registry.device(type="SLOW", scan=list)
    never.wait()
"""


def test_a_hook_that_does_not_end_is_a_failed_plugin_and_the_others_work(site: Any) -> None:
    site.add("heald-slow", {"slow": "t_slow"}, {"t_slow.py": SLOW})
    site.add("heald-then", {"then": "t_then"}, {"t_then.py": GOOD.format(type="THEN", priority=0)})
    plugin_records = site.run("""
        from heald.runtime.discovery import plugin_module
        from heald.runtime.discovery.discovery import Plugins
        plugin_module.LONGEST_HOOKS_SECONDS = 0.2
        plugins = Plugins(load_config())
        plugins.load()
        types = plugins.registries.device_types
        tell(records=shown(plugins.records()), types=[t for t in ("SLOW", "THEN") if types.get(t)])
    """)
    record = next(record for record in plugin_records["records"] if record["id"] == "slow")
    assert (record["status"], record["reason"]) == ("failed", "hook heald_devices takes longer than 0.2 s")
    assert record["remedy"] == "hooks only register: leave slow work to scans and to kernels"
    assert plugin_records["types"] == ["THEN"]


def test_a_package_may_register_itself_while_it_is_imported(site: Any) -> None:
    package = site.libraries / "t_self"
    package.mkdir()
    (package / "__init__.py").write_text("""
import heald
from heald.api import hookimpl
HEALD_API = (1, 0)

@hookimpl
def heald_devices(registry):
    from . import types
    registry.device(type=types.NAME, scan=list)

record = heald.register(__name__)
""")
    (package / "types.py").write_text("NAME = 'SELF'\n")
    plugin_records = site.run("""
        import t_self
        tell(status=t_self.record.status, registered=t_self.record.registered)
    """)
    assert plugin_records == {"status": "ok", "registered": {"device types": ["SELF"]}}
