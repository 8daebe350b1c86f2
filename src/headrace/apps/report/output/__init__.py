"""What people and programs read: one page of HTML, a workbook, and JSON, all of the same document."""
