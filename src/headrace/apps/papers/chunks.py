"""Split a long document into parts that fit a model, on sentence borders, with some sentences in both parts."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.apps.papers.sentences import Sentence


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has, rather too many than too few: English 4 characters each, other scripts fewer.

    >>> estimated_tokens("word " * 100), estimated_tokens("研究" * 50)
    (126, 151)
    """
    plain = sum(char.isascii() for char in text)
    return 1 + plain // 4 + (len(text) - plain) * 3 // 2


def split_chunks(sentences: Sequence[Sentence], *, budget: int, overlap: int = 3) -> list[tuple[Sentence, ...]]:
    """Runs of sentences of at most `budget` estimated tokens; each begins with the last `overlap` of the one before.

    A sentence above the budget is a chunk of its own. Every sentence is in at least one chunk; one chunk if all fit.
    """
    chunks: list[tuple[Sentence, ...]] = []
    start = 0
    while start < len(sentences):
        end = _fill(sentences, start, budget)
        chunks.append(tuple(sentences[start:end]))
        if end == len(sentences):
            break
        # The next part must begin behind where this one began, or the work would never end.
        start = max(start + 1, end - overlap)
    return chunks


def _fill(sentences: Sequence[Sentence], start: int, budget: int) -> int:
    used, end = 0, start
    while end < len(sentences):
        used += estimated_tokens(sentences[end].line) + 4  # its number and brackets
        if used > budget and end > start:
            break
        end += 1
    return end
