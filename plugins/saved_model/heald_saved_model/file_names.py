"""Names of the graph's file in the folder of a SavedModel."""

GRAPH_FILES = ("saved_model.pb", "saved_model.pbtxt")
