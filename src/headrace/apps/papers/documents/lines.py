"""Lines of a region of a page, in the order in which they are read."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from headrace.apps.papers.documents.cleaning import clean_characters
from headrace.apps.papers.documents.rows import Row, base_of
from headrace.apps.papers.documents.words import RAISED, Word, is_raised, median

#: Words closer than this, in heights of the letters, and without a space in the file, are one.
_GLUED = 0.15
#: A page in more pieces than this is a drawing with labels; looking at pairs of them would take long.
_MAX_BLOCKS = 300


@dataclass(slots=True)
class Line:
    """The text of a line, with the boxes of its words; small, since a document may have very many."""

    text: str
    base: float
    x0: float
    x1: float
    size: float
    #: Lines of one region follow each other; a column is a region.
    region: int
    turn: int
    #: For each word: where it begins and ends in the text, and x0, y0, x1, y1 on the page as displayed.
    boxes: array[float]
    #: Whether its last word goes on, without a hyphen, in the next line.
    is_cut: bool = False


@dataclass(slots=True)
class Piece:
    """Words that the file gives one after the other on one line."""

    words: list[Word]
    order: int

    @property
    def row(self) -> Row:
        """The piece as a row."""
        return Row(self.base, tuple(self.words))

    @property
    def base(self) -> float:
        """Where its tallest word stands."""
        return base_of(self.words)

    @property
    def size(self) -> float:
        """The height of its tallest letters."""
        return max(word.size for word in self.words)

    @property
    def x0(self) -> float:
        """Where it begins."""
        return min(word.x0 for word in self.words)

    @property
    def x1(self) -> float:
        """Where it ends."""
        return max(word.x1 for word in self.words)


def ordered_rows(words: Iterable[Word]) -> list[list[Piece]]:
    """The rows of a region, each with its pieces from left to right.

    The order of the file is kept where it reads down; what it gives side by side, such as the cells of a table, is put
    into rows, unless both sides are running text: then a gutter was overlooked, and the file knows better.
    """
    blocks = _blocks(_pieces(words))
    if len(blocks) > _MAX_BLOCKS:
        return list(_rows([piece for block in blocks for piece in block.pieces]))
    groups: list[list[_Block]] = []
    for block in blocks:
        beside = [group for group in groups if any(_interleave(block, other) for other in group)]
        apart = [group for group in groups if group not in beside]
        groups = [*apart, [*(other for group in beside for other in group), block]]
    merged = [_block([piece for block in group for piece in block.pieces]) for group in groups]
    side_by_side = any(_overlap(a, b) for index, a in enumerate(merged) for b in merged[:index])
    merged.sort(key=lambda block: block.order if side_by_side else block.top)
    return [row for block in merged for row in _rows(block.pieces)]


def line_of(row: Sequence[Piece], region: int, shown: dict[int, Word]) -> Line:
    """Join the words of a row. `shown` has the words as displayed, where the page was turned to be read."""
    words = [word for piece in row for word in piece.words]
    text, boxes = "", array("f")
    for index, word in enumerate(words):
        glued = index > 0 and _is_glued(words[index - 1], word)
        raw = _raised(words[index - 1], word) if glued else word.text
        piece = raw if raw.isascii() and raw.isprintable() else clean_characters(raw)
        if not piece:
            continue
        text += piece if glued or not text else f" {piece}"
        place = shown.get(id(word), word)
        boxes.extend((len(text) - len(piece), len(text), place.x0, place.y0, place.x1, place.y1))
    size = median(word.size for word in words)
    x1 = max(piece.x1 for piece in row)
    is_cut = words[-1].text.endswith("\u00ad")
    return Line(text, row[0].base, row[0].x0, x1, size, region, words[0].turn, boxes, is_cut)


def _is_glued(before: Word, word: Word) -> bool:
    # Beside a raised sign the library that reads the file may see a space where there is none.
    close = -_GLUED * before.size < word.x0 - before.x1 < _GLUED * before.size
    return close and (not word.spaced or is_raised(word.size, word.base, on=before))


def _raised(before: Word, word: Word) -> str:
    return word.text.translate(RAISED) if is_raised(word.size, word.base, on=before) else word.text


def _pieces(words: Iterable[Word]) -> list[Piece]:
    pieces: list[Piece] = []
    for order, word in enumerate(words):
        if pieces and _continues(pieces[-1], word):
            pieces[-1].words.append(word)
        else:
            pieces.append(Piece([word], order))
    return pieces


def _continues(piece: Piece, word: Word) -> bool:
    last = piece.words[-1]
    overlap = min(last.y1, word.y1) - max(last.y0, word.y0)
    if overlap < 0.5 * min(last.y1 - last.y0, word.y1 - word.y0):
        return False
    # Text from right to left goes on to the left of the word before.
    return word.x0 >= last.x1 - 0.5 * last.size or 0 <= last.x0 - word.x1 < 1.5 * last.size


@dataclass(frozen=True, slots=True)
class _Block:
    """Pieces that go down the page, and what they take up of it."""

    pieces: list[Piece]
    order: int
    top: float
    bottom: float
    x0: float
    x1: float
    size: float
    is_prose: bool


def _block(pieces: list[Piece]) -> _Block:
    size = median(piece.size for piece in pieces)
    bases = [piece.base for piece in pieces]
    is_prose = len(pieces) >= 3 and sum(piece.row.is_prose(size) for piece in pieces) >= 0.5 * len(pieces)
    x0, x1 = min(piece.x0 for piece in pieces), max(piece.x1 for piece in pieces)
    order = min(piece.order for piece in pieces)
    return _Block(pieces, order, min(bases), max(bases), x0, x1, size, is_prose)


def _blocks(pieces: Iterable[Piece]) -> list[_Block]:
    """Stretches in which the file goes down the page."""
    blocks: list[list[Piece]] = []
    for piece in pieces:
        if blocks and _goes_down(blocks[-1][-1], piece):
            blocks[-1].append(piece)
        else:
            blocks.append([piece])
    return [_block(block) for block in blocks]


def _goes_down(last: Piece, piece: Piece) -> bool:
    size = max(last.size, piece.size)
    step = piece.base - last.base
    return -0.4 * size < step < 4 * size and (step > 0.4 * size or piece.x0 >= last.x1 - 0.5 * size)


def _interleave(block: _Block, other: _Block) -> bool:
    apart = block.x0 >= other.x1 or other.x0 >= block.x1
    return _overlap(block, other) and not (apart and block.is_prose and other.is_prose)


def _overlap(block: _Block, other: _Block) -> bool:
    return min(block.bottom, other.bottom) - max(block.top, other.top) > -0.4 * min(block.size, other.size)


def _rows(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    row: list[Piece] = []
    for piece in sorted(pieces, key=lambda piece: piece.base):
        if row and piece.base - row[0].base > 0.4 * max(piece.size, row[0].size):
            yield sorted(row, key=lambda piece: piece.x0)
            row = []
        row.append(piece)
    if row:
        yield sorted(row, key=lambda piece: piece.x0)
