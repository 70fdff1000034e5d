"""The pass `references`: reference variables of TensorFlow 1 become resource variables.

A reference is a variable that an edge of the graph carries. A consumer of its value reads the variable when the
consumer runs, that is after all its other inputs and controls, and sees the changes that were made until then. The
consumers of `v/read = Identity(v)` do so too, for Identity returns the variable's memory, and changes write into that
memory. The pass writes these reads into the graph:

    v = VariableV2              v/handle = _ReferenceVariable; v = _ReadReference(v/handle)
    a = Assign(v, x)            a/AssignVariableOp(v/handle, x); a = _ReadReference(v/handle, ^a/AssignVariableOp)
    b = AssignAdd(a, y)         takes a/handle = Identity(v/handle, ^a/AssignVariableOp) for a
    c = Mul(v, z, ^a)           takes c/_ReadReference_0 = _ReadReference(v/handle, ^a/AssignVariableOp) for v
    s = RefSwitch(v, p)         s = Switch(v/handle, p); its consumers read s:0 and s:1

Every node keeps its name. All nodes except control flow keep the values of their outputs. A control edge from `v`
or `a` becomes an edge from the node that does the work, which reads nothing. A consumer has a read of its own only if
an input or control of it comes after a change of the variable; else it shares the read under the variable's name. A
value that is fed for `v:0` or `v/read:0` reaches the consumers of the shared read alone.

Ops on references that the tables lack stay as they are, and so do the ops that take their references.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Any, NamedTuple

from heald.api import DType, Graph, Input, Node, PassContext, Resolved, dtypes, new_name

Tensor = tuple[str, int]


class Form(NamedTuple):
    """The op that replaces an op on references, and its attributes: by name, the attribute of the old op."""

    op: str
    attrs: dict[str, str]


def _same(op: str, *attrs: str, **renamed: str) -> Form:
    return Form(op, {**{name: name for name in attrs}, **renamed})


_NESTEROV, _SLOTS, _SCALED = ("use_nesterov",), ("update_slots",), ("multiply_linear_by_lr",)
_APPLY: dict[str, tuple[str, ...]] = {  # optimizers: attributes besides T and use_locking
    "AdaMax": (), "Adadelta": (), "Adagrad": _SLOTS, "AdagradDA": (), "AdagradV2": _SLOTS, "Adam": _NESTEROV,
    "AddSign": (), "CenteredRMSProp": (), "Ftrl": _SCALED, "FtrlV2": _SCALED, "GradientDescent": (),
    "Momentum": _NESTEROV, "PowerSign": (), "ProximalAdagrad": (), "ProximalGradientDescent": (), "RMSProp": (),
}
_SPARSE_APPLY: dict[str, tuple[str, ...]] = {
    "Adadelta": (), "Adagrad": _SLOTS, "AdagradDA": (), "AdagradV2": _SLOTS, "CenteredRMSProp": (), "Ftrl": _SCALED,
    "FtrlV2": _SCALED, "Momentum": _NESTEROV, "ProximalAdagrad": (), "ProximalGradientDescent": (), "RMSProp": (),
}
_SCATTER = ("Add", "Div", "Max", "Min", "Mul", "Sub", "Update")
_SCATTER_ND_KINDS = ("Add", "Max", "Min", "Sub", "Update")

VARIABLES = frozenset({"TemporaryVariable", "Variable", "VariableV2"})
UPDATES: dict[str, Form] = {  # ops that change the variable of their first input, and return the reference
    "Assign": _same("AssignVariableOp", "validate_shape", dtype="T"),
    "AssignAdd": _same("AssignAddVariableOp", dtype="T"),
    "AssignSub": _same("AssignSubVariableOp", dtype="T"),
    **{f"Scatter{op}": _same(f"ResourceScatter{op}", "Tindices", dtype="T") for op in _SCATTER},
    **{f"ScatterNd{op}": _same(f"ResourceScatterNd{op}", "T", "Tindices", "use_locking", "bad_indices_policy")
       for op in _SCATTER_ND_KINDS},
    **{f"Apply{op}": _same(f"ResourceApply{op}", "T", "use_locking", *attrs) for op, attrs in _APPLY.items()},
    **{f"SparseApply{op}": _same(f"ResourceSparseApply{op}", "T", "Tindices", "use_locking", *attrs)
       for op, attrs in _SPARSE_APPLY.items()},
}
REFERENCE_QUERIES: dict[str, Form] = {  # ops that take a reference, and return values
    "CountUpTo": _same("ResourceCountUpTo", "limit", "T"),
    "DestroyTemporaryVariable": _same("ReadVariableOp", dtype="T"),
    "IsVariableInitialized": _same("VarIsInitializedOp"),
}
_ENTER = ("frame_name", "is_constant", "parallel_iterations")
MOVES: dict[str, str] = {  # ops that pass references on
    "DebugGradientRefIdentity": "Identity", "RefIdentity": "Identity", "RefSelect": "Gather",
}
CONTROL_FLOW: dict[str, Form] = {  # ops that pass references on, and afterwards handles, under the same name
    "RefEnter": _same("Enter", *_ENTER), "RefExit": _same("Exit"), "RefMerge": _same("Merge", "N"),
    "RefNextIteration": _same("NextIteration"), "RefSwitch": _same("Switch"),
}
FORMS = VARIABLES | UPDATES.keys() | REFERENCE_QUERIES.keys() | MOVES.keys() | CONTROL_FLOW.keys()
CHANGES = UPDATES.keys() | {"CountUpTo"}
SHARES = frozenset({"Enter", "Identity", "PreventGradient", "StopGradient", "Switch"})  # return their input's memory
OPS_WITH_OWN_HANDLES = frozenset({"Enter", "Switch"})  # they pass memory into a frame or branch
SWITCHES = frozenset({"RefSwitch", "Switch"})
MERGES = frozenset({"Merge", "RefMerge"})  # their dead inputs hold nothing up, so their reads wait for no input
VISITS = 10  # times the number of edges: the limit of the search for nodes behind changes, variable by variable
READ = "_ReadReference"


def rewrite_references(graph: Graph, context: PassContext) -> Graph:
    """Return the graph with resource variables in place of reference variables; the graph itself if it has none."""
    return _Rewriting(graph, context).result() if any(node.op in FORMS for node in graph) else graph


class _Reference(NamedTuple):
    """A node on references that fits its op: the indices of its inputs and outputs that are references."""

    entry: Resolved
    takes: frozenset[int]
    gives: frozenset[int]


class _Variables:
    """The variables behind references. References that may be of one variable count as the same variable.

    `reshaped`: The variables that an Assign may give another shape.
    """

    def __init__(self, references: dict[str, _Reference], consumers: dict[str, list[str]]) -> None:
        self._consumers = consumers
        self._above: dict[Hashable, Hashable] = {}  # a node or key -> another one of its variable, towards the root
        self._changes: dict[Hashable, list[str]] = {}  # variable -> the nodes that change it
        self._after: dict[Hashable, set[str]] = {}  # variable -> these nodes and all nodes behind them
        self._after_any: set[str] | None = None
        self._visits = VISITS * sum(map(len, consumers.values()))
        for name, (entry, takes, _) in references.items():
            op = entry.op.name
            if op in VARIABLES:
                self._join(name, _key(entry.node))
            elif op in UPDATES:
                self._join(name, entry.inputs[0][0])
            elif op not in REFERENCE_QUERIES:
                for index in takes:
                    self._join(name, entry.inputs[index][0])
        for name, (entry, takes, _) in references.items():
            if entry.op.name in CHANGES:
                for variable in {self.of(entry.inputs[index][0]) for index in takes}:
                    self._changes.setdefault(variable, []).append(name)
        self.reshaped = {self.of(name) for name, reference in references.items()
                         if reference.entry.op.name == "Assign" and not reference.entry.attrs["validate_shape"]}

    def of(self, node: Hashable) -> Hashable:
        """Return the variable behind the references that a node returns."""
        above = self._above
        while (higher := above.get(node, node)) != node:
            above[node] = above.get(higher, higher)
            node = higher
        return node

    def after(self, node: str) -> set[str]:
        """Return the nodes that change the variable behind a node's references, and all nodes behind these.

        A graph in which this takes too long gets the nodes that come after a change of any variable, for more reads
        than needed are still right.
        """
        variable = self.of(node)
        if variable not in self._after and self._visits > 0:
            self._after[variable] = self._consumers_behind(self._changes.get(variable, ()))
        if variable not in self._after:
            if self._after_any is None:
                self._after_any = self._consumers_behind([name for names in self._changes.values() for name in names])
            self._after[variable] = self._after_any
        return self._after[variable]

    def _join(self, one: Hashable, other: Hashable) -> None:
        one, other = self.of(one), self.of(other)
        if one != other:
            self._above[one] = other

    def _consumers_behind(self, names: Iterable[str]) -> set[str]:
        reached = set(names)
        stack = [*reached]
        while stack:
            users = self._consumers[stack.pop()]
            self._visits -= len(users)
            more = {name for name in users if name not in reached}
            reached |= more
            stack += more
        return reached


class _Rewriting:
    """The rewriting of one graph. `new_nodes` has the nodes that are new or change."""

    def __init__(self, graph: Graph, context: PassContext) -> None:
        self.graph = graph
        self.names_in_use = set(graph.nodes)
        self.consumers = _consumers(graph)
        self.references = {node.name: _reference(entry) for node in graph
                           if node.op in FORMS and (entry := context.resolve(node)) is not None}
        self.dtypes = {(name, index): reference.entry.output_tensors[index].dtype
                       for name, reference in self.references.items() for index in reference.gives}
        self._leave_misfits()
        self.variables = _Variables(self.references, self.consumers)
        self.memory = self._memory()
        self.names: dict[tuple[str, str], str] = {}  # (node, role) -> a new node
        self.carriers = {name for name, reference in self.references.items() if reference.entry.op.name in CONTROL_FLOW}
        self.handles: list[str] = []  # nodes whose handle is taken and yet to be made
        self.new_nodes: list[Node] = []

    def result(self) -> Graph:
        for node in self.graph:
            if node.name in self.references:
                self._rewrite(self.references[node.name])
            else:
                self._rewire(node)
        while self.handles:
            self._carry_handle(self.graph[self.handles.pop()])
        return self.graph.replace(nodes=self.new_nodes)

    def _leave_misfits(self) -> None:
        """Drop each node that is given a value for a reference, and the nodes that take the references it returns."""
        suspects = [*self.references]
        while suspects:
            name = suspects.pop()
            reference = self.references.get(name)
            if reference is None or all(reference.entry.inputs[index] in self.dtypes for index in reference.takes):
                continue
            del self.references[name]
            for index in reference.gives:
                del self.dtypes[name, index]
            suspects += self.consumers[name]

    def _memory(self) -> dict[Tensor, tuple[Tensor, Tensor]]:
        """Return the tensors that are the memory of a variable: the reference that each comes from, and the nearest
        tensor before it that has a handle."""
        memory = {tensor: (tensor, tensor) for tensor in self.dtypes}
        stack = [*memory]
        while stack:
            tensor = stack.pop()
            origin, anchor = memory[tensor]
            for user in self.consumers[tensor[0]]:
                node = self.graph[user]
                if node.op not in SHARES or not node.inputs or (node.inputs[0].node, node.inputs[0].index) != tensor:
                    continue
                for output in [(user, 0), (user, 1)] if node.op == "Switch" else [(user, 0)]:
                    if output not in memory:
                        memory[output] = origin, output if node.op in OPS_WITH_OWN_HANDLES else anchor
                        stack.append(output)
        return memory

    def _rewrite(self, reference: _Reference) -> None:
        entry, takes, _ = reference
        node, op = entry.node, entry.op.name
        if op in VARIABLES:
            self._variable(entry)
            return
        inputs, controls = self._inputs(node, takes), self._gates(node.controls)
        if op in MOVES:
            self._move(entry, inputs, controls)
            return
        form = (UPDATES | REFERENCE_QUERIES | CONTROL_FLOW)[op]
        attrs = {new: node.attrs.get(old, entry.attrs[old]) for new, old in form.attrs.items()}
        if op in CONTROL_FLOW:
            self._make(node.name, form.op, inputs, controls, attrs | {"T": dtypes.resource})
            return
        self._make(self._gate(node.name), form.op, inputs, controls, attrs, node, beside=inputs[0])
        if op in UPDATES:
            self._read(node.name, inputs[0], entry.attrs["T"], [self._gate(node.name)])

    def _variable(self, entry: Resolved) -> None:
        """Make the handle of a variable, and under the variable's name a read of it."""
        node, dtype = entry.node, entry.attrs["dtype"]
        key = _key(node)
        attrs: dict[str, Any] = {"dtype": dtype, "shape": entry.attrs["shape"]}
        if entry.op.name == "TemporaryVariable":
            op, attrs["var_name"] = "_TemporaryVariable", key[1]
        else:
            op, (attrs["container"], attrs["shared_name"]) = "_ReferenceVariable", key
            attrs["reshaped"] = self.variables.of(node.name) in self.variables.reshaped
        self._make(self._gate(node.name), op, (), self._gates(node.controls), attrs, node)
        self._read(node.name, self._handle((node.name, 0)), dtype)

    def _move(self, entry: Resolved, inputs: list[Input], controls: list[str]) -> None:
        """Make the node that passes on a handle, and under the old name a read of the variable behind it."""
        name, op, handle = entry.node.name, entry.op.name, self._gate(entry.node.name)
        attrs: dict[str, Any] = {"T": dtypes.resource}
        if op == "RefSelect":
            handles = self._name(name, "handles")
            self._make(handles, "Pack", inputs[1:], (), attrs | {"N": len(inputs) - 1})
            inputs, attrs = [Input(handles), inputs[0]], {"Tparams": dtypes.resource, "Tindices": dtypes.int32}
        self._make(handle, MOVES[op], inputs, controls, attrs)
        self._read(name, Input(handle), entry.attrs["T"])

    def _rewire(self, node: Node) -> None:
        """Give a node that takes no references values, and controls that do the work of the old ones."""
        inputs, controls = self._inputs(node, ()), self._gates(node.controls)
        if inputs != [*node.inputs] or controls != [*node.controls]:
            self.new_nodes.append(node.replace(inputs=inputs, controls=controls))

    def _inputs(self, node: Node, takes: Collection[int]) -> list[Input]:
        """Return the node's inputs: handles at the indices in `takes`, else values, which are read when it runs."""
        late = self._late_reads(node, takes)
        ready = self._node_after(node,
                                 set().union(*{id(names): names for names in late.values()}.values())) if late else ""
        inputs = []
        for index, source in enumerate(node.inputs):
            tensor = source.node, source.index
            if index in takes:
                inputs.append(self._handle(tensor))
            elif tensor not in self.memory:
                inputs.append(source)
            elif tensor not in late:
                inputs.append(self._shared_read(tensor))
            else:
                origin, _ = self.memory[tensor]
                read = self._name(node.name, f"{READ}_{index}")
                inputs.append(self._read(read, self._handle(tensor), self.dtypes[origin], [ready]))
        return inputs

    def _late_reads(self, node: Node, takes: Collection[int]) -> dict[Tensor, set[str]]:
        """Return the tensors of a node's inputs that the node must read anew, and the nodes that each read waits for:
        its sources that come after a change of the variable."""
        if node.op in MERGES:
            return {}
        sources = {*(source.node for source in node.inputs), *node.controls}
        late_by_changes: dict[int, set[str]] = {}  # id of the nodes after a change -> the sources among them
        late_tensors = {}
        for index, source in enumerate(node.inputs):
            tensor = source.node, source.index
            if index not in takes and tensor in self.memory:
                after = self.variables.after(self.memory[tensor][0][0])
                if id(after) not in late_by_changes:
                    late_by_changes[id(after)] = sources & after
                late = late_by_changes[id(after)]
                if not late <= {source.node}:
                    late_tensors[tensor] = late
        return late_tensors

    def _node_after(self, node: Node, late: set[str]) -> str:
        """Return a node that runs after the nodes `late`, made if they are several: each read waits for one."""
        switched = [(source.node, source.index) for source in node.inputs
                    if (switch := self.graph[source.node]).op in SWITCHES and isinstance(switch.attrs.get("T"), DType)]
        gates = [self._pivot(tensor) for tensor in dict.fromkeys(switched) if tensor[0] in late]
        gates += self._gates(sorted(late - {name for name, _ in switched}))
        if len(gates) == 1:
            return gates[0]
        ready = self._name(node.name, "ready")
        self._make(ready, "NoOp", (), gates, {})
        return ready

    def _pivot(self, switched: Tensor) -> str:
        """Return a node that runs if this output of a Switch is alive. The Switch itself runs in any case."""
        name, index = switched
        role = f"pivot_{index}"
        if (name, role) not in self.names:
            dtype = dtypes.resource if name in self.references else self.graph[name].attrs["T"]
            self._make(self._name(name, role), "Identity", [Input(name, None, index)], (), {"T": dtype})
        return self._name(name, role)

    def _shared_read(self, tensor: Tensor) -> Input:
        """Return the value of a reference as every consumer may read it that waits for nothing else."""
        name, index = tensor
        if tensor not in self.dtypes or self.references[name].entry.op.name not in CONTROL_FLOW:
            return Input(name, None, index)
        read = f"{READ}/{index}"
        if (name, read) in self.names:
            return Input(self.names[name, read])
        return self._read(self._name(name, read), self._handle(tensor), self.dtypes[tensor])

    def _read(self, name: str, handle: Input, dtype: DType, controls: Iterable[str] = ()) -> Input:
        self._make(name, READ, [handle], controls, {"dtype": dtype}, beside=handle)
        return Input(name)

    def _handle(self, tensor: Tensor) -> Input:
        """Return the tensor that is the handle behind a reference, or behind a tensor that is a variable's memory."""
        _, (name, index) = self.memory[tensor]
        if name in self.references and self.references[name].entry.op.name not in UPDATES:
            return Input(self._gate(name), None, index)
        if (name, "handle") not in self.names:
            self.handles.append(name)
            if name not in self.references:
                self.carriers.add(self._name(name, "handle"))
        return Input(self._name(name, "handle"), None, index)

    def _carry_handle(self, node: Node) -> None:
        """Make the handle of an update, behind its change, or of a Switch or Enter that has a variable's memory."""
        source = self._handle((node.inputs[0].node, node.inputs[0].index))
        handle, attrs = self._name(node.name, "handle"), dict[str, Any](T=dtypes.resource)
        if node.name in self.references:
            self._make(handle, "Identity", [source], [self._gate(node.name)], attrs, beside=source)
        else:
            attrs = {name: value for name, value in node.attrs.items() if not name.startswith("_")} | attrs
            self._make(handle, node.op, [source, *node.inputs[1:]], self._gates(node.controls), attrs)

    def _gates(self, controls: Iterable[str]) -> list[str]:
        return [self._gate(name) for name in controls]

    def _gate(self, name: str) -> str:
        """Return the node that does the work of an old one, for control edges."""
        reference = self.references.get(name)
        if reference is None or reference.entry.op.name in REFERENCE_QUERIES or reference.entry.op.name in CONTROL_FLOW:
            return name
        form = UPDATES.get(reference.entry.op.name)
        return self._name(name, "handle" if form is None else form.op)

    def _name(self, node: str, role: str) -> str:
        """Return the name of the new node that has this role for an old one."""
        if (node, role) not in self.names:
            self.names[node, role] = new_name(f"{node}/{role}", self.names_in_use)
        return self.names[node, role]

    def _make(
        self, name: str, op: str, inputs: Iterable[Input], controls: Iterable[str], attrs: dict[str, Any],
        like: Node | None = None, beside: Input | None = None,
    ) -> None:
        """Make a node, with the placement request of `like`, and on the device of the node whose output is `beside`."""
        colocated = () if like is None else like.attrs.get("_class", ())
        partners = [it for it in colocated if isinstance(it, bytes)] if isinstance(colocated, list | tuple) else []
        if beside is not None and beside.node not in self.carriers:
            partners.append(b"loc:@" + beside.node.encode())
        device = "" if like is None else like.device
        placed = {"_class": partners} if partners else {}
        self.new_nodes.append(Node(name, op, inputs, controls=controls, device=device, attrs=attrs | placed))


def _consumers(graph: Graph) -> dict[str, list[str]]:
    """Return by name of each node the nodes that take a tensor of it or run after it."""
    consumers: dict[str, list[str]] = {node.name: [] for node in graph}
    for node in graph:
        for name in {*(source.node for source in node.inputs), *node.controls}:
            consumers[name].append(node.name)
    return consumers


def _reference(entry: Resolved) -> _Reference:
    takes, gives = ({arg.name for arg in args if arg.is_ref} for args in (entry.op.inputs, entry.op.outputs))
    return _Reference(entry, frozenset(i for i, tensor in enumerate(entry.input_tensors) if tensor.arg in takes),
                      frozenset(i for i, tensor in enumerate(entry.output_tensors) if tensor.arg in gives))


def _key(node: Node) -> tuple[bytes, bytes]:
    """Return container and name under which a session keeps the variable of a node."""
    name = node.attrs.get("var_name" if node.op == "TemporaryVariable" else "shared_name")
    return node.attrs.get("container") or b"", name or node.name.encode()
