"""Names and marks of files: the graph of a SavedModel, the graph of a checkpoint."""

GRAPH_FILES = ("saved_model.pb", "saved_model.pbtxt")  # in the folder of a SavedModel
META_GRAPH_SUFFIX = ".meta"
META_GRAPH_TEXT = b"meta_info_def"  # a MetaGraphDef in the text form begins with it
