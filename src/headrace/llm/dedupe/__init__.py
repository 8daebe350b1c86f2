"""Names that are given once: exact on a normalised key, alike by letters or meaning, unique in a scope, topped up."""

from __future__ import annotations

from headrace.llm.dedupe.book import NameBook
from headrace.llm.dedupe.claims import Claimed, Reason, Rejected
from headrace.llm.dedupe.collecting import Unique, collect_unique
from headrace.llm.dedupe.judging import Rule
from headrace.llm.dedupe.meaning import Calibration, Meaning, calibrate
from headrace.llm.dedupe.normalising import ARTICLES, Normalisation, normalise
from headrace.llm.dedupe.similarity import Scorer, Similarity

__all__ = [
    "ARTICLES",
    "Calibration",
    "Claimed",
    "Meaning",
    "NameBook",
    "Normalisation",
    "Reason",
    "Rejected",
    "Rule",
    "Scorer",
    "Similarity",
    "Unique",
    "calibrate",
    "collect_unique",
    "normalise",
]
