"""From text to a GraphDef.

`graph_parser` is the entry. `body_parser` and `module_reader` make `parsed_body`, `body_values` resolves its values,
`node_builder` and `region_builder` make bytes; `fault_order` orders the faults of a refused text. The room stands on
`regions`, `signatures` and `values`.
"""
