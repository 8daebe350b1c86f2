"""One spelling for each module: the rules' name, or the spelling that the sheet has most."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable

from headrace.apps.report.tagging.rules import Rules

#: Cells that say that there is no module.
_NOTHING = frozenset(
    {"", "-", "--", "/", "n/a", "na", "none", "null", "tbd", "无", "未知", "未分类", "uncategorized", "?"}
)
_STEPS = re.compile(r"\s*[/\\>»→|]+\s*")


def key_of(name: str) -> str:
    """What spellings of one module share: Unicode form, case and spaces do not count, and paths have one form.

    >>> key_of(" ＬＯＧＩＮ  Page"), key_of("Shop > Cart"), key_of("N/A")
    ('login page', 'shop/cart', '')
    """
    plain = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
    return "" if plain in _NOTHING else _STEPS.sub("/", plain).strip("/")


class Spellings:
    """The names of the modules that rules and sheet know.

    >>> spellings = Spellings(Rules.model_validate({"modules": [{"name": "Login", "aliases": ["登录模块"]}]}),
    ...     ["Shop/Cart", "shop > cart", "Shop/Cart"])
    >>> spellings.of("登录模块 "), spellings.of("SHOP/CART"), spellings.of("-")
    ('Login', 'Shop/Cart', '')
    """

    def __init__(self, rules: Rules, given: Iterable[str]) -> None:
        self._aliases = {key_of(name): rule.name for rule in rules.modules for name in (rule.name, *rule.aliases)}
        spellings: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for name in given:
            spellings[self._key(name)][" ".join(name.split())] += 1
        self._usual = {
            key: min(counts, key=lambda name: (-counts[name], name)) for key, counts in spellings.items() if key
        }

    def of(self, name: str) -> str:
        """The one spelling of a module that a cell or a title names; empty where it names none."""
        key = self._key(name)
        return self._aliases.get(key) or self._usual.get(key, "")

    def all(self) -> dict[str, str]:
        """The one spelling of each name that is known, aliases too, by key."""
        return {**self._usual, **self._aliases}

    def _key(self, name: str) -> str:
        """The key of a name in which each step of a path that is an alias is the rules' name."""
        key = key_of(name)
        if key in self._aliases:
            return key_of(self._aliases[key])
        return "/".join(key_of(self._aliases.get(step, step)) for step in key.split("/"))
