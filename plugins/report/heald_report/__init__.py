"""heald report: a model as one page, which needs no other file and no network.

    scopes      names of nodes -> a tree of name scopes, with a bounded number of members each
    layout      sizes and edges of boxes -> coordinates, by a library of layered layouts
    pictures    trees -> pictures: boxes, edges, bodies of functions inside the nodes that call them
    node_table  nodes -> device, kernel pack, the rules of both, refusals; `placement_summary` counts them
    run_record  the trace of a run -> calls on the clocks of `run_clocks`, `memory_use`, and `copies` between memories
    pass_steps  graphs -> pictures of changes, `field_changes` of nodes, and the reasons of `removals`
    page        all of these -> HTML, with the rules by which the browser runs the page's own scripts alone

A host program has a page of its own: `program_record` has its calls, registers and streams, and `program_steps` the
steps of a run.

heald view serves the same page on loopback: `inspection` answers questions about the loaded model, `picture_inputs`
takes pictures for its inputs, and `view_server` has the rules of who may ask.

Pictures without a page are SVG files: `svg` draws graphs, `program_svg` programs, and `ratio_plot` the plots of
benchmarks, all in the colours of `palette`.

Times of two clocks have no order and no sum, on no part of the page.

Python computes every coordinate. The scripts draw, zoom and link. No weight, input or path of the machine is in the
page. Strings of a model reach the browser as JSON, and the document as text nodes, never as markup.
"""
