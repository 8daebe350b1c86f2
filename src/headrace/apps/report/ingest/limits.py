"""How much a file may be. What is beyond is refused before it is parsed, or by the process that parses it."""

from __future__ import annotations

MIB = 1024 * 1024

MAX_BYTES = 50 * MIB
#: Of an archive (xlsx, ods): its entries, their size once unpacked, and how much smaller packed than unpacked.
MAX_ENTRIES, MAX_UNPACKED, MAX_RATIO = 1_000, 200 * MIB, 100
#: Below this size a part may be packed however well: an empty sheet is.
SMALL_PART = MIB

#: Of one sheet, with what is empty above and left of its last cell.
MAX_ROWS, MAX_COLUMNS = 200_000, 1_000
#: Of all sheets that are read.
MAX_CELLS, MAX_CHARS = 2_000_000, 50_000_000
#: Ranges of merged cells in one sheet.
MAX_MERGES = 100_000
#: What Excel allows in one cell; the rest of a longer text is left out.
MAX_TEXT = 32_767

#: Seconds that a reader waits for the next row of a workbook before it gives up. How long reading may take in all is
#: told by processor time alone: a busy machine refuses no file.
TIMEOUT = 120.0

#: Of JUnit files: elements within elements.
MAX_DEPTH = 50


def child_memory(unpacked: int) -> int:
    """Return the address space that a workbook is read in: what it says it is, several times over, plus a base.

    A sheet that names one cell far away would be laid out as millions of cells. So small a file is not given the room.

    >>> child_memory(0) // MIB, child_memory(MAX_UNPACKED) // MIB
    (96, 1696)
    """
    return 96 * MIB + 8 * unpacked


def child_seconds(unpacked: int) -> int:
    """Return the seconds of a processor in which a workbook is read.

    >>> child_seconds(0), child_seconds(MAX_UNPACKED)
    (2, 52)
    """
    return 2 + unpacked // (4 * MIB)
