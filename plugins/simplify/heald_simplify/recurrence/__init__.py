"""Recurrent loops: bodies of While, compared by the function that they compute.

`polynomials` is the normal form, `body_values` the values of a body's tensors, `body` their evaluation, `activations`
the functions of gates, `cells` the recurrent cells, `loop` the loop around a body, `weights` the weights of the op that
replaces it.
"""
