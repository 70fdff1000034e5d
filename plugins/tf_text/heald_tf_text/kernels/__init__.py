"""Kernels for the CPU, a family of ops a module. A family is imported when one of its ops is first needed."""

from functools import partial
from importlib import import_module

from heald.api import Kernels

FAMILIES = {
    "bert_normalizer": ("FastBertNormalize",),
    "boise_tags": ("TFText>BoiseTagsToOffsets", "TFText>OffsetsToBoiseTags"),
    "byte_split": ("TFText>ByteSplitByOffsets", "TFText>ByteSplitWithOffsets"),
    "constrained_sequence": ("ConstrainedSequence",),
    "fast_sentencepiece": ("TFText>FastSentencepieceDetokenize", "TFText>FastSentencepieceTokenize"),
    "fast_wordpiece": ("FastWordpieceTokenizeWithOffsets", "TFText>FastWordpieceDetokenize"),
    "ngrams": ("TFText>NgramsStringJoin",),
    "normalization": ("CaseFoldUTF8", "FindSourceOffsets", "NormalizeUTF8", "NormalizeUTF8WithOffsetsMap"),
    "phrases": ("PhraseTokenize", "TFText>PhraseDetokenize"),
    "regex_split": ("RegexSplitWithOffsets",),
    "rouge": ("RougeL",),
    "round_robin": ("TFText>RoundRobinGenerateMasks", "TFText>RoundRobinTrim"),
    "scripts": ("UnicodeScriptTokenizeWithOffsets",),
    "sentence_fragments": ("SentenceFragmentsV2",),
    "sentencepiece_ops": (
        "SentencepieceDetokenizeOp", "SentencepieceIdToStringOp", "SentencepieceOp", "SentencepieceStringToIdOp",
        "SentencepieceTokenizeOp", "SentencepieceTokenizeWithOffsetsOp", "SentencepieceVocabSizeOp"),
    "spanning_tree": ("MaxSpanningTree",),
    "split_merge": ("SplitMergeTokenizeWithOffsets", "TokenizerFromLogits"),
    "utf8_binarize": ("TFText>Utf8Binarize",),
    "whitespace": ("TFText>WhitespaceTokenizeWithOffsetsV2", "WhitespaceTokenizeWithOffsets"),
    "wordpiece": ("WordpieceTokenizeWithOffsets",),
}


def register_kernels(kernels: Kernels) -> None:
    for family, ops in FAMILIES.items():
        kernels.later(ops, partial(register_family, family))


def register_family(family: str, kernels: Kernels) -> None:
    import_module(f".{family}", __name__).register_kernels(kernels)
