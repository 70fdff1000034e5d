"""The runtime: host programs run here. It knows no op graph, no protobuf text form, no device and no op set.

The rooms, bottom up: `support/`, `values/`, `contract/`, `config/`, `program/`, `host/`, `executor/`, `linker/` and
`host_kernels/`, `discovery/`, `service/`. ARCHITECTURE.md has their floors. `version` has the version of core.
"""
