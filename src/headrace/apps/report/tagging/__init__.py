"""Which module each case belongs to, by the sheet and by rules: pure code, without a model."""

from __future__ import annotations

from headrace.apps.report.tagging.rules import DEFAULT_RULES, ModuleRule, Rules
from headrace.apps.report.tagging.rules_file import load_rules, parse_rules
from headrace.apps.report.tagging.tag import tag_cases

__all__ = ["DEFAULT_RULES", "ModuleRule", "Rules", "load_rules", "parse_rules", "tag_cases"]
