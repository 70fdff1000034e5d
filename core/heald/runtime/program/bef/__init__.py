"""BEF, the binary form of host programs: TFRT's layout, and three sections of heald's own.

- Reading keeps copies of every section but the arrays', so a changed file can harm arrays alone; those are checked.
- Nothing is believed: an offset, a count or an id is compared with its section before it is used or memory is taken.
- Load reads the header, the section table, the function index and the facts of the model. A function is decoded, and
  verified, when it is first asked for; an array becomes a view of the file when it is first asked for.
- Encoding is deterministic: a file of heald that is decoded and encoded again has the same bytes.

Modules: `vbr` (numbers, and the cursor that reads them), `sections` (ids, alignment), `attributes` (values),
`arrays` (their table and elements), `encode`, `decode`, `file` (the public functions), `loader`. docs/bef.md has the
layout.
"""
