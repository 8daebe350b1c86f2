"""Test reports: a workbook of test cases becomes an HTML report, a workbook with charts, and one JSON document."""
