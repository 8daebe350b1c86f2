"""What the parts of the parser need of each other."""

from __future__ import annotations

from abc import ABC, abstractmethod

from headrace.model.expressions.syntax import Part
from headrace.model.expressions.tokens import Token, Tokens


class Reading(ABC):
    """The state of a parser, and the steps that all its parts take."""

    text: str
    tokens: Tokens
    token: Token

    @abstractmethod
    def expression(self, least: int = 0) -> Part:
        """Return the expression that begins here."""

    @abstractmethod
    def sized(self, part: Part, below: int, start: int) -> Part:
        """Return a node with its height over those below it."""

    @abstractmethod
    def take(self) -> Token:
        """Return the current token, and go on to the next."""

    @abstractmethod
    def at(self, sign: str) -> bool:
        """Whether the current token is this sign."""

    @abstractmethod
    def expect(self, sign: str, rule: str) -> Token:
        """Return the current token if it is this sign."""

    def several(self, last: str) -> list[Part]:
        """Return expressions with commas between them, up to the sign that ends them, which is taken."""
        found: list[Part] = []
        while not self.at(last):
            found.append(self.expression())
            if not self.at(last):
                self.expect(",", f"there has to be a comma or {last} here")
        self.take()
        return found


def highest(parts: list[Part]) -> int:
    """Return the height of the highest of some nodes; 0 of none."""
    return max((part.height for part in parts), default=0)
