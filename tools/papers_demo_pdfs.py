#!/usr/bin/env python3
"""Write the PDF files of the papers demonstration: two short reports as typeset pages, and a page that is a picture.

Usage: papers_demo_pdfs.py [FOLDER]   (default: the demonstration's own folder)
The files are checked in; run this after a change of the texts. The output is the same on every run.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image, ImageDraw
from reportlab.lib.pagesizes import A5
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

FOLDER = Path(__file__).parents[1] / "src/headrace/apps/papers/demo/documents"
FONT = "Helvetica"  # every reader has it: nothing is embedded, and the files stay small

# Lines as a typesetter breaks them: words hyphenated, a new page in the middle of the text.
BALANCE_TRAINING = """\
Balance training with music in care homes

Falls are the most common cause of injury in care homes.
Training of balance works but is often dull. We tested
whether music keeps residents at it.
Methods
The trial took place in nine care homes in Portugal. In total,
96 residents agreed to take part; their mean age was 82.7
years. Homes were randomised, not single residents, be-
cause music carries through corridors. Sessions of 40 min-
utes were held twice a week for 12 weeks. A physiothera-
pist led every session.
\f
Results
Residents who trained with music attended 81 % of the ses-
sions, the others 66 %. The number of falls fell from 1.9 to
1.3 per resident and year. Grip strength did not differ
(p = 0.44). There were no serious injuries during training.
Funding
The trial was financed by the National Ageing Programme.
"""
SALT_SUBSTITUTE = """\
A salt substitute in village kitchens

Most salt in the villages is added at home. A substitute in
which a third of the sodium is replaced by potassium tastes
much the same.
We carried out the study in six villages in northern Peru. The
study covered 402 households with about 1,900 people. Vil-
lages switched from usual salt to the substitute in random
order. The study lasted 18 months.
Systolic pressure fell by 1.7 mmHg (95 % interval 0.4 to 3.0).
Sales of salt in the shops did not change. People with kid-
ney disease were advised not to take part. No grant was
needed for the substitute, which was sold at the usual price.
"""
SCANNED = "This page is a picture of a page.\nWithout text recognition\nnothing can be read from it."


def typeset(path: Path, text: str) -> None:
    """Draw the text line by line; a form feed begins a page."""
    canvas = Canvas(str(path), pagesize=A5, invariant=1)
    for page in text.split("\f"):
        canvas.setFont(FONT, 11)
        for row, line in enumerate(page.strip("\n").split("\n")):
            canvas.drawString(30, A5[1] - 50 - 16 * row, line)
        canvas.showPage()
    canvas.save()


def scan(path: Path, text: str) -> None:
    """Put the text on the page as a picture, as scanners do."""
    picture = Image.new("1", (360, 120), 1)
    ImageDraw.Draw(picture).multiline_text((10, 10), text, fill=0)
    canvas = Canvas(str(path), pagesize=A5, invariant=1)
    canvas.drawImage(ImageReader(picture), 30, 400, 360, 120)
    canvas.showPage()
    canvas.save()


def main(folder: Path) -> None:
    """Write the three files."""
    typeset(folder / "balance-training.pdf", BALANCE_TRAINING)
    typeset(folder / "salt-substitute.pdf", SALT_SUBSTITUTE)
    scan(folder / "scanned-page.pdf", SCANNED)
    for path in sorted(folder.glob("*.pdf")):
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
