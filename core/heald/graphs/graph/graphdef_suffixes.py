"""The suffixes of GraphDef files. Every start of heald may import this module, so it imports nothing."""

TEXT_SUFFIXES = frozenset((".pbtxt", ".pbtext", ".prototxt", ".textproto", ".txt"))
SUFFIXES = TEXT_SUFFIXES | {".pb"}
