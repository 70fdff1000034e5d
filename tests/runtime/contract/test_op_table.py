"""OpTable: an op set that a plugin registers whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from heald.api import InvalidArgument, MetadataRule, OpCost, OpSpec, OpTable, dtypes, info
from heald.errors import NotFound, PluginError
from heald.runtime.contract.hookspecs import Contribution, OpRegistrar
from heald.runtime.contract.op import infer
from heald.runtime.contract.op_table import MOST_ABSENT_NAMES, bisect_row
from heald.runtime.host.registries import Registries
from heald_tf_ops.plugin import OPS

FLOAT = '{"in":[{"name":"x","type":"float"}],"out":[{"name":"y","type":"float"}]}'
HALF = '{"in":[{"name":"x","type":"half"}],"out":[{"name":"y","type":"half"}]}'
SHAPE = MetadataRule(lambda attrs, x: x)
rules_asked = []


def rule_of(op):
    rules_asked.append(op)
    return SHAPE


def cost_of(op, attrs, inputs, outputs):
    return OpCost(3 * len(inputs), 4)


def table(folder: Path, name: str = "ops", /, *, more=None, **rows: str) -> OpTable:
    path = folder / f"{name}.tsv"
    path.write_text("\n".join(["# ops", *(f"My>{op}\t{row}" for op, row in rows.items())]), "utf-8")
    return OpTable(path, **(more or {}))


def registries(**tables: OpTable | OpSpec) -> Registries:
    """Registries to which plugins have brought these, in order."""
    table_registries = Registries()
    for plugin, brought in tables.items():
        many = {"op_tables": [brought]} if isinstance(brought, OpTable) else {"ops": [brought.definition()]}
        table_registries.add(Contribution(plugin, **many))
    return table_registries


def test_an_op_of_a_table_is_known_with_its_plugin_and_its_rule(tmp_path):
    ops = registries(mine=table(tmp_path, more={"rules": f"{__name__}:rule_of"}, Op=FLOAT)).ops
    op = ops.get("My>Op")
    assert ("My>Op" in ops, ops.plugin_of("My>Op")) == (True, "mine")
    assert infer(op, ops.metadata(op), {}, [info(dtypes.float32, (2,))])[0].shape == (2,)


def test_registering_a_table_reads_nothing_of_it(tmp_path):
    path = tmp_path / "ops.tsv"
    path.write_bytes(b"# ops\n\xff")
    table_registries = registries(mine=OpTable(path, rules="no_such_module_of_mine:rule"))
    with pytest.raises(PluginError, match=r"the op table '.*ops.tsv' cannot be read: .*; install the plugin again"):
        table_registries.ops.get("My>Op")


@pytest.mark.parametrize(("rules", "reason"), [
    ("no_such_module_of_mine:rule", "the rules of the op table '.*' raised ModuleNotFoundError"),
    (lambda op: 1 / 0, "the rules of the op table '.*' raised ZeroDivisionError"),
    (lambda op: SHAPE.function, "the rules of the op table '.*' give a function for My>Op, not a MetadataRule"),
])
def test_rules_that_fail_are_an_error_of_the_plugin(tmp_path, rules, reason):
    ops = registries(mine=table(tmp_path, more={"rules": rules}, Op=FLOAT)).ops
    with pytest.raises(PluginError, match=reason):
        ops.metadata(ops.get("My>Op"))


def test_a_row_is_decoded_when_its_op_is_asked_for(tmp_path):
    ops = registries(mine=table(tmp_path, Good=FLOAT, Bad='{"in":[{}]}', Worse="{")).ops
    assert ops.get("My>Good").inputs[0].dtype is dtypes.float32
    for name in ("My>Bad", "My>Worse"):
        with pytest.raises(PluginError, match=f"the row of op {name} in .* cannot be decoded"):
            ops.get(name)


@pytest.mark.parametrize(("brought", "reason"), [
    ("ops.tsv", "add_table takes an OpTable, not str; OpTable"),
    (OpTable("ops.tsv"), "the rows of an OpTable are a pathlib.Path, not str"),
    (OpTable(Path("/no/such/ops.tsv")), "the op table '/no/such/ops.tsv' is not there"),
])
def test_a_registrar_refuses_what_is_no_table(brought, reason):
    with pytest.raises(PluginError, match=reason):
        OpRegistrar(Contribution("mine")).add_table(brought)


def test_tables_that_declare_an_op_alike_share_it(tmp_path):
    ops = registries(first=table(tmp_path, "a", Op=FLOAT), second=table(tmp_path, "b", Op=FLOAT, More=FLOAT)).ops
    assert (ops.get("My>Op").name, ops.plugin_of("My>Op"), ops.plugin_of("My>More")) == ("My>Op", "first", "second")


def test_an_op_set_that_two_plugins_bring_is_one():
    ops = registries(first=OPS, second=OpTable(OPS.rows)).ops
    assert [ops.get(name).name for name in OPS] == [*OPS]


def test_tables_that_declare_an_op_differently_are_an_error_of_that_op_alone(tmp_path):
    ops = registries(first=table(tmp_path, "a", Op=FLOAT, Other=FLOAT), second=table(tmp_path, "b", Op=HALF)).ops
    with pytest.raises(PluginError, match="op My>Op of plugin second and plugin first's have different signatures"):
        ops.get("My>Op")
    assert ops.get("My>Other").name == "My>Other"


def test_a_table_that_declares_an_op_of_the_compiler_differently_is_an_error_of_that_op(tmp_path):
    path = tmp_path / "ops.tsv"
    path.write_text(f"# ops\nIdentity\t{FLOAT}\n", "utf-8")
    ops = registries(mine=OpTable(path)).ops
    with pytest.raises(PluginError, match="op Identity of plugin mine and heald's own have different signatures"):
        ops.get("Identity")


def test_a_plugins_single_op_must_be_as_a_table_declares_it(tmp_path):
    table_registries = registries(mine=table(tmp_path, Op=FLOAT), same=OpSpec("My>Op", ["x: float"], ["y: float"]))
    with pytest.raises(InvalidArgument, match="op My>Op is plugin mine's already, with another signature"):
        table_registries.add(Contribution("other", ops=[OpSpec("My>Op", ["x: half"], ["y: half"]).definition()]))


def test_a_table_that_comes_later_is_compared_with_single_ops_when_they_are_used(tmp_path):
    table_registries = registries(single=OpSpec("My>Op", ["x: half"], ["y: half"]))
    table_registries.ops.get("My>Op")
    table_registries.add(Contribution("mine", op_tables=[table(tmp_path, Op=FLOAT)]))
    with pytest.raises(PluginError, match="op My>Op of plugin mine and plugin single's have different signatures"):
        table_registries.ops.get("My>Op")


def test_costs_and_tiers_come_from_the_ops_own_table(tmp_path):
    (tmp_path / "tiers.tsv").write_text("# tiers\nMy>Op\t2\n", "utf-8")
    more = {"costs": f"{__name__}:cost_of", "tiers": tmp_path / "tiers.tsv"}
    ops = registries(plain=table(tmp_path, "a", Plain=FLOAT), mine=table(tmp_path, "b", more=more, Op=FLOAT)).ops
    metas = [info(dtypes.float32, (2,)).meta]
    assert ops.cost("My>Op", {}, metas, metas) == (3, 4)
    assert ops.cost("My>Plain", {}, metas, metas) is None
    assert ops.tiers() == {"My>Op": 2}


def test_the_error_of_an_unknown_op_names_the_command_that_installs_op_sets(tmp_path):
    table_registries = Registries()
    with pytest.raises(NotFound, match="no op is called 'MatMul'.*; .*pip install .*plugins/tf_ops"):
        table_registries.ops.get("MatMul")
    table_registries.missing_plugins["tf_ops"] = "blocked: [plugins] block names it"
    with pytest.raises(NotFound, match="no op set is in use: plugin tf_ops is blocked: .plugins. block names it"):
        table_registries.ops.get("MatMul")
    with pytest.raises(NotFound) as caught:
        registries(mine=table(tmp_path, Op=FLOAT)).ops.get("MatMul")
    assert "heald-tf-ops" not in str(caught.value)


def test_bisection_finds_each_row_of_a_table_in_order():
    content = OPS.rows.read_bytes()
    rows = dict(line.split(b"\t", 1) for line in content.splitlines()[1:])
    assert {name: bisect_row(content, name) for name in rows} == rows
    strangers = [b"", b"!", b"AA", b"Conv2DD", b"# Signatures", b"zzz", b"\xff", *(name[:-1] for name in rows)]
    assert all(bisect_row(content, name) is None for name in strangers if name not in rows)


@pytest.mark.parametrize("content", [b"", b"# ops", b"# ops\n", b"# ops\nA", b"# ops\n\n\nA\tx"])
def test_bisection_ends_on_any_file(content):
    assert bisect_row(content, b"B") is None
    assert bisect_row(content, b"A") in (None, b"", b"x")


@pytest.mark.parametrize("names", [["A", "B", "C"], ["C", "A", "B"], ["B", "C", "A"]])
def test_rows_are_found_in_any_order(tmp_path, names):
    ops = table(tmp_path, **{name: FLOAT if name == "B" else HALF for name in names})
    assert [ops[f"My>{name}"].inputs[0].dtype.name for name in "ABC"] == ["float16", "float32", "float16"]
    assert ("My>D" in ops, 3 in ops, "My>\udc80" in ops) == (False, False, False)
    with pytest.raises(KeyError):
        ops["My>D"]


def test_an_op_of_a_table_in_order_is_found_without_dividing_all_rows(tmp_path):
    ops = table(tmp_path, A=FLOAT, B=HALF)
    assert "My>B" in ops
    assert "_rows" not in vars(ops)
    assert list(ops) == ["My>A", "My>B"]


def test_a_name_that_the_file_lacks_needs_no_division_of_all_rows_until_there_are_many(tmp_path):
    ops = table(tmp_path, A=FLOAT, B=HALF)
    for _ in range(2):
        assert not any(f"Absent{i}" in ops for i in range(MOST_ABSENT_NAMES))
        assert "_rows" not in vars(ops)
    assert ("My" in ops, "_rows" in vars(ops)) == (False, True)
    ops = table(tmp_path, A=FLOAT, B=HALF)
    assert not any(f"Absent{i}" in ops for i in range(2 * MOST_ABSENT_NAMES))
    assert ("_rows" in vars(ops), "My>A" in ops) == (True, True)


def test_a_row_without_a_tab_is_an_error_of_its_op(tmp_path):
    (tmp_path / "ops.tsv").write_text(f"# ops\nMy>A\t{FLOAT}\nMy>B\n", "utf-8")
    ops = OpTable(tmp_path / "ops.tsv")
    with pytest.raises(PluginError, match="row of op My>B in '.*' cannot be decoded"):
        ops["My>B"]
