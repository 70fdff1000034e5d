"""Graphs that the importer of TensorFlow refuses, in its words.

The room stands on `signatures` and `values`.
"""
