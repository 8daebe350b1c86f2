"""From source to tree: operators by their precedence, names checked against what there is."""

from __future__ import annotations

from headrace.model.expressions import words
from headrace.model.expressions.budget import MAX_DEPTH
from headrace.model.expressions.errors import LimitFault, SyntaxFault
from headrace.model.expressions.operands import Operands
from headrace.model.expressions.operators import UNARY
from headrace.model.expressions.postfix import Postfix
from headrace.model.expressions.syntax import Binary, Choice, Logic, Part, Unary
from headrace.model.expressions.tokens import Token, Tokens

_LOGIC = {"??": 1, "||": 1, "&&": 2}
_BINARY = {
    **dict.fromkeys(("==", "!=", "===", "!=="), 3),
    **dict.fromkeys(("<", "<=", ">", ">=", "in"), 4),
    **dict.fromkeys(("+", "-"), 5),
    **dict.fromkeys(("*", "/", "%"), 6),
    "**": 7,
}
_CHOICE = 0
#: Nodes of one tree.
MAX_PARTS = 2_000


class Parser(Postfix, Operands):
    """Reads one expression; what is behind it is left to the caller."""

    def __init__(self, text: str, start: int = 0) -> None:
        self.tokens = Tokens(text, start)
        self.text = text
        self.token: Token = self.tokens.next()
        self._depth = 0
        self._parts = 0

    def expression(self, least: int = _CHOICE) -> Part:
        """Return the expression that begins here, up to an operator that binds less than `least`."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise LimitFault(f"the expression is nested more than {MAX_DEPTH} levels deep", self.token.start)
        left = self._unary()
        while (strength := self._strength()) is not None and strength >= least:
            left = self._choice(left) if strength == _CHOICE else self._operation(left, strength)
        self._refuse_foreign_sign()
        self._depth -= 1
        return left

    def _strength(self) -> int | None:
        sign = self.token.text
        if self.token.kind == "name":
            return _BINARY["in"] if sign == "in" else None
        if self.token.kind != "sign":
            return None
        return _CHOICE if sign == "?" else _LOGIC.get(sign, _BINARY.get(sign))

    def _operation(self, left: Part, strength: int) -> Part:
        token = self.take()
        from_the_right = token.text == "**"
        right = self.expression(strength if from_the_right else strength + 1)
        kind = Logic if token.text in _LOGIC else Binary
        # A row of operators of one strength is evaluated without going deeper for each of them.
        below = left.height - 1 if isinstance(left, kind) else left.height
        made = kind(left.start, right.end, 0, token.text, left, right)
        return self.sized(made, max(below, right.height), token.start)

    def _choice(self, test: Part) -> Part:
        self.take()
        yes = self.expression()
        self.expect(":", "the part after ? needs a : and another value: test ? yes : no")
        no = self.expression()
        made = Choice(test.start, no.end, 0, test, yes, no)
        return self.sized(made, max(test.height, yes.height, no.height), test.start)

    def _unary(self) -> Part:
        token = self.token
        if token.text in UNARY and (token.kind == "sign" or (token.text == "typeof" and token.kind == "name")):
            return self._prefixed(self.take())
        if token.kind == "sign" and token.text == "!":
            return self._prefixed(self.take())
        return self.postfix(self.operand())

    def _prefixed(self, token: Token) -> Part:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise LimitFault(f"the expression is nested more than {MAX_DEPTH} levels deep", token.start)
        operand = self._unary()
        self._depth -= 1
        if self.at("**"):
            raise SyntaxFault("put brackets around the operand before **: (-2) ** 2", token.start)
        return self.sized(Unary(token.start, operand.end, 0, token.text, operand), operand.height, token.start)

    def sized(self, part: Part, below: int, start: int) -> Part:
        """Return a node with its height over those below it. Raises LimitFault when the tree grows too high."""
        part.height = below + 1
        self._parts += 1
        if part.height > MAX_DEPTH:
            raise LimitFault(f"the expression is nested more than {MAX_DEPTH} levels deep", start)
        if self._parts > MAX_PARTS:
            raise LimitFault(f"the expression has more than {MAX_PARTS} parts: split it over several nodes", start)
        return part

    def take(self) -> Token:
        """Return the current token, and go on to the next."""
        token, self.token = self.token, self.tokens.next()
        return token

    def at(self, sign: str) -> bool:
        """Whether the current token is this sign."""
        return self.token.kind == "sign" and self.token.text == sign

    def expect(self, sign: str, rule: str) -> Token:
        """Return the current token if it is this sign. Raises SyntaxFault with what to do."""
        if not self.at(sign):
            self._refuse_foreign_sign()
            raise SyntaxFault(rule, self.token.start)
        return self.take()

    def _refuse_foreign_sign(self) -> None:
        token = self.token
        if token.kind == "sign" and token.text in words.SIGNS:
            raise SyntaxFault(words.SIGNS[token.text], token.start)
        if token.kind == "name" and token.text in words.WORDS:
            raise SyntaxFault(words.WORDS[token.text], token.start)
