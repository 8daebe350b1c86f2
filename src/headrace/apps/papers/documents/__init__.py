"""Reading documents: a port with readers for PDF, plain text and Markdown, and the scan of a folder."""

from headrace.apps.papers.documents.folder import FoundDocument, Selection, scan_folder
from headrace.apps.papers.documents.model import Document, Page, Reason, Unreadable
from headrace.apps.papers.documents.reader import DocumentReader, Readers, default_readers, read_document

__all__ = [
    "Document",
    "DocumentReader",
    "FoundDocument",
    "Page",
    "Readers",
    "Reason",
    "Selection",
    "Unreadable",
    "default_readers",
    "read_document",
    "scan_folder",
]
