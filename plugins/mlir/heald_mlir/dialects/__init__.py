"""The operations of host programs: each is declared where its kernel is, and read, printed and checked from there.

- A declaration comes from the signature of a host kernel, and the syntax from its `syntax`: no operation is declared
  twice. A third party's kernels bring dialects of their own through the ordinary hook `heald_kernels`.
- Types come from the signature, by their text in programs. A type that is no type of MLIR permits every type.

Modules: `declaration` (operands, results, attributes, regions of an operation), `assembly_format` (the text of a
format as its elements), `format_elements` (parsing and printing of each element), `registry` (the declarations of a
host), `verifier`, `call_verifier` (functions and what they return), `dominance`.
"""
