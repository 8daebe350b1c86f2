"""Reading documents: a port with readers for PDF, plain text and Markdown, and the scan of a folder."""

from headrace.apps.papers.documents.boxes import Box
from headrace.apps.papers.documents.folder import FoundDocument, Selection, scan_folder
from headrace.apps.papers.documents.model import Document, Page, Reason, Unreadable
from headrace.apps.papers.documents.reader import DocumentReader, Readers, default_readers, read_document
from headrace.apps.papers.documents.sections import Section, sections_for
from headrace.apps.papers.documents.titles import SectionKind

__all__ = [
    "Box",
    "Document",
    "DocumentReader",
    "FoundDocument",
    "Page",
    "Readers",
    "Reason",
    "Section",
    "SectionKind",
    "Selection",
    "Unreadable",
    "default_readers",
    "read_document",
    "scan_folder",
    "sections_for",
]
