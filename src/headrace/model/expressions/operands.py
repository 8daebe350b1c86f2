"""Operands: what is written out, names, and what stands in brackets."""

from __future__ import annotations

from abc import abstractmethod

from headrace.model.expressions import words
from headrace.model.expressions.errors import SyntaxFault
from headrace.model.expressions.functions.table import FUNCTIONS, NAMESPACES, VALUES
from headrace.model.expressions.reading import Reading, highest
from headrace.model.expressions.syntax import Call, Elements, Literal, Members, OtherNode, Part, Pieces, Root
from headrace.model.expressions.tokens import Token
from headrace.model.expressions.values import EXACT, MAX_DIGITS
from headrace.model.expressions.views import ROOTS

_CONSTANTS = {"true": True, "false": False, "null": None, "undefined": None}
_NODE_NAME = "the name of a node has to be written out in quotes: $('Name') or $node[\"Name\"]"


class Operands(Reading):
    """Reads operands."""

    def operand(self) -> Part:
        """Return the value that begins here, without what follows behind it."""
        token = self.token
        if token.kind == "number":
            return self._number(self.take())
        if token.kind == "quoted":
            return self._leaf(Literal, self.take(), token.text)
        if token.kind == "name":
            return self._name(self.take())
        reader = {"`": self._pieces, "[": self._list, "{": self._object, "(": self._brackets}.get(token.text)
        if token.kind != "sign" or reader is None:
            raise SyntaxFault(self._no_operand(token), token.start)
        return reader(token)

    def _leaf(self, kind: type[Literal] | type[Root], token: Token, value: object) -> Part:
        return self.sized(kind(token.start, token.end, 0, value), 0, token.start)  # type: ignore[arg-type]

    def _no_operand(self, token: Token) -> str:
        if token.kind == "end":
            return "the expression ends where a value has to follow"
        if token.text in ("/", "/=", "//", "/*"):
            return words.REGEX
        return words.SIGNS.get(token.text, f"a value has to stand here, not `{token.text}`")

    def _number(self, token: Token) -> Part:
        if self.token.kind in ("name", "number") and self.token.start == token.end:
            rule = "a number is written in decimal digits, 1.5 or 1e3, and a name does not begin with a digit"
            raise SyntaxFault(rule, token.start)
        if len(token.text) > MAX_DIGITS:
            raise SyntaxFault(f"a number has at most {MAX_DIGITS} digits", token.start)
        if token.text.isdigit() and len(token.text) < 18 and int(token.text) <= EXACT:
            return self._leaf(Literal, token, int(token.text))
        value = float(token.text)
        if value == float("inf"):
            raise SyntaxFault("the number is too large", token.start)
        return self._leaf(Literal, token, int(value) if value.is_integer() and value <= EXACT else value)

    def _name(self, token: Token) -> Part:
        name = token.text
        if name in _CONSTANTS:
            return self._leaf(Literal, token, _CONSTANTS[name])
        if name in ("$", "$node", "$items"):
            return self._other_node(token)
        if name in ROOTS:
            return self._leaf(Root, token, name)
        if name in NAMESPACES:
            return self._named_space(token)
        if name in FUNCTIONS and self.at("("):
            return self.call(token, name)
        raise SyntaxFault(self._no_name(name), token.start)

    def _no_name(self, name: str) -> str:
        if name in words.WORDS:
            return words.WORDS[name]
        if name in FUNCTIONS:
            return f"`{name}` is a function: write {name}(…)"
        if self.at("("):
            return words.METHODS.get(name) or words.unknown("function", name, FUNCTIONS)
        if name.startswith("$"):
            return words.unknown("value", name, ROOTS)
        if self.text.find("=>", self.token.start, self.token.start + 40) >= 0:
            return words.SIGNS["=>"]
        return f"there is no value `{name[:40]}`: a text needs quotes, a field is $json.{name[:40]}"

    def _named_space(self, token: Token) -> Part:
        if not self.at("."):
            if token.text in FUNCTIONS and self.at("("):
                return self.call(token, token.text)
            raise SyntaxFault(f"`{token.text}` is no value: write {token.text}.name(…)", token.start)
        self.take()
        name = f"{token.text}.{self.token.text}"
        self.take()
        if name in VALUES:
            return self.sized(Literal(token.start, self.token.start, 0, VALUES[name]), 0, token.start)
        if name not in FUNCTIONS or not self.at("("):
            rule = words.METHODS.get(name) or words.unknown("function", name, FUNCTIONS)
            raise SyntaxFault(rule, token.start)
        return self.call(token, name)

    def call(self, token: Token, name: str) -> Part:
        """Return the call of a listed function, at the bracket of its arguments."""
        self.take()
        arguments, end = self.several(")"), self.token.start
        function = FUNCTIONS[name]
        check_count(function.name, len(arguments), function.least, function.most, token.start)
        return self.sized(Call(token.start, end, 0, function, arguments), highest(arguments), token.start)

    def _other_node(self, token: Token) -> Part:
        if token.text == "$node" and self.at("."):
            self.take()
            if self.token.kind != "name":
                raise SyntaxFault(_NODE_NAME, self.token.start)
            name = self.take()
            return self.sized(OtherNode(token.start, name.end, 0, name.text, numbered=True), 0, token.start)
        first, last = ("[", "]") if token.text == "$node" else ("(", ")")
        self.expect(first, _NODE_NAME)
        name = self.token
        if name.kind != "quoted":
            raise SyntaxFault(_NODE_NAME, name.start)
        self.take()
        if token.text == "$items":
            self._skip_zeros()
        end = self.expect(last, _NODE_NAME).end
        node = self.sized(OtherNode(token.start, end, 0, name.text, token.text == "$node"), 0, token.start)
        return self.all_of(node, token.start, end) if token.text == "$items" else node

    def _skip_zeros(self) -> None:
        """Pass over the output and the run of `$items("X", 0, 0)`: there are no others."""
        while self.at(","):
            self.take()
            if self.token.text != "0":
                raise SyntaxFault(
                    "$items has the items of the first output alone: leave out the numbers", self.token.start
                )
            self.take()

    @abstractmethod
    def all_of(self, node: Part, start: int, end: int) -> Part:
        """Return the node for all items of another node."""

    def _brackets(self, token: Token) -> Part:
        self.take()
        if self.at(")"):
            self.take()
            raise SyntaxFault(words.SIGNS["=>"] if self.at("=>") else "a value has to stand in ( )", token.start)
        inner = self.expression()
        self.expect(")", "there has to be a ) here")
        return inner

    def _list(self, token: Token) -> Part:
        self.take()
        elements = self.several("]")
        return self.sized(Elements(token.start, self.token.start, 0, elements), highest(elements), token.start)

    def _object(self, token: Token) -> Part:
        self.take()
        members: list[tuple[str, Part]] = []
        while not self.at("}"):
            members.append(self._member())
            if not self.at("}"):
                self.expect(",", "there has to be a comma or } here")
        self.take()
        below = highest([value for _, value in members])
        return self.sized(Members(token.start, self.token.start, 0, members), below, token.start)

    def _member(self) -> tuple[str, Part]:
        name = self.token
        if name.kind not in ("name", "quoted", "number"):
            rule = words.SIGNS.get(name.text, "the name of a member has to stand here, as in { a: 1, 'b c': 2 }")
            raise SyntaxFault(rule, name.start)
        self.take()
        self.expect(":", "a member needs a value behind a colon, as in { a: 1 }")
        return name.text, self.expression()

    def _pieces(self, token: Token) -> Part:
        pieces: list[Part] = []
        piece = self.tokens.piece(token.end)
        while piece.kind == "more":
            pieces.append(Literal(piece.start, piece.end, 1, piece.text))
            self.token = self.tokens.next()
            pieces.append(self.expression())
            if not self.at("}"):
                raise SyntaxFault("there has to be a } here, which ends ${", self.token.start)
            piece = self.tokens.piece(self.token.end)
        pieces.append(Literal(piece.start, piece.end, 1, piece.text))
        self.token = self.tokens.next()
        return self.sized(Pieces(token.start, piece.end, 0, pieces), highest(pieces), token.start)


def check_count(name: str, count: int, least: int, most: int | None, start: int) -> None:
    """Raise SyntaxFault unless a function is given as many arguments as it takes."""
    if count < least or (most is not None and count > most):
        span = f"{least}" if least == most else f"{least} or more" if most is None else f"{least} to {most}"
        raise SyntaxFault(f"{name}() takes {span} values, what is before the dot among them, got {count}", start)
