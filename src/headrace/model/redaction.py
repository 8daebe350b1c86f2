"""What is taken out of a text before it is kept: values of names that mean secrets, and secrets that are known.

Not guaranteed: that nothing secret is left. What neither stands behind such a name, nor looks like a token, nor is
known from the settings cannot be told from other words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import quote

MASK = "***"
#: A shorter secret could be part of anything.
LEAST = 8
#: `password=…`, `"api_key": "…"`, `Authorization: Bearer …`. Counts such as `tokens=12` are none.
_NAMED = re.compile(
    r"((?:password|passwd|passphrase|pwd|secret|token|authorization|credential|cookie|api[_-]?key|access[_-]?key"
    r"|private[_-]?key)(?:[_-]?(?:key|value|hash))?[\"']?\s{0,3}[=:]\s{0,3})"
    r"(\"[^\"]*\"|'[^']*'|(?:bearer|basic|token)\s+[^\s,;\"']+|[^\s,;&)}\]]+)",
    re.IGNORECASE,
)
#: What follows a scheme, what begins like a token, and a key between its lines.
_BARE = re.compile(
    r"(?:(?<=bearer )|(?<=basic ))[\w.~+/=-]{8,}"
    r"|\b(?:hra_|hrh_|whsec_|sk-|ghp_|xox[a-z]-|AKIA|eyJ)[\w.+/=-]{8,}"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\w\s+/=-]*",
    re.IGNORECASE,
)
#: User and password of a URL.
_LOGIN = re.compile(r"(?<=://)[^\s/@\"']{1,500}@")


@dataclass(frozen=True, slots=True)
class Redaction:
    """Takes secrets out of texts. `hidden` are values that are known to be some."""

    hidden: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, secrets: set[str]) -> Redaction:
        """Return one that knows these secrets, also as they stand in URLs; shorter ones than `LEAST` are let be."""
        known = {form for secret in secrets if len(secret) >= LEAST for form in (secret, quote(secret, safe=""))}
        return cls(tuple(sorted(known, key=len, reverse=True)))

    def clean(self, text: str) -> str:
        """Return a text with `***` for what is secret in it.

        >>> Redaction.of({"correct horse"}).clean("password=x1, tokens=12; said correct horse")
        'password=***, tokens=12; said ***'
        """
        for secret in self.hidden:
            text = text.replace(secret, MASK)
        text = _LOGIN.sub(f"{MASK}@", text)
        return _BARE.sub(MASK, _NAMED.sub(rf"\1{MASK}", text))
