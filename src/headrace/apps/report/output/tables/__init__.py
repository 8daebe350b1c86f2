"""Tables as both the page and the workbook show them: the same columns, the same rows, the same figures."""
