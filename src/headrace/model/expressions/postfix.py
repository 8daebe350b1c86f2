"""What follows behind a value: members, indices and methods."""

from __future__ import annotations

from headrace.model.expressions import words
from headrace.model.expressions.errors import SyntaxFault
from headrace.model.expressions.functions.table import FUNCTIONS
from headrace.model.expressions.operands import check_count
from headrace.model.expressions.reading import Reading, highest
from headrace.model.expressions.syntax import Chain, Index, Member, Method, Part
from headrace.model.expressions.views import METHODS


class Postfix(Reading):
    """Reads chains."""

    def postfix(self, value: Part) -> Part:
        """Return a value with all that follows behind it."""
        optional, start = False, value
        while self.token.kind == "sign" and self.token.text in (".", "?.", "[", "("):
            optional = optional or self.token.text == "?."
            value = self._link(value)
        if optional and value is not start:
            return self.sized(Chain(value.start, value.end, 0, value), value.height, value.start)
        return value

    def _link(self, value: Part) -> Part:
        token = self.token
        if token.text == "(":
            raise SyntaxFault("only listed functions can be called, by their names", token.start)
        optional = token.text == "?."
        if token.text != "[":
            self.take()
        if self.at("["):
            return self._index(value, optional)
        if self.token.kind != "name":
            rule = 'the name of a member has to follow the dot; other names go in brackets: $json["a b"], list[0]'
            raise SyntaxFault(rule, self.token.start)
        name = self.take()
        if self.at("("):
            return self._method(value, name.text, name.start, optional)
        return self.sized(Member(value.start, name.end, 0, value, name.text, optional), value.height, name.start)

    def _index(self, value: Part, optional: bool) -> Part:
        start = self.take().start
        key = self.expression()
        end = self.expect("]", "there has to be a ] here").end
        made = Index(value.start, end, 0, value, key, optional)
        return self.sized(made, max(value.height, key.height), start)

    def _method(self, value: Part, name: str, start: int, optional: bool) -> Part:
        function = FUNCTIONS.get(name)
        if function is not None and not function.has_method:
            function = None
        if function is None and name not in METHODS:
            rule = words.METHODS.get(name) or words.unknown("function", name, FUNCTIONS)
            raise SyntaxFault(rule, start)
        self.take()
        arguments, end = self.several(")"), self.token.start
        if function is None:
            check_count(name, len(arguments), 0, METHODS[name], start)
        else:
            check_count(name, len(arguments) + 1, function.least, function.most, start)
        made = Method(value.start, end, 0, value, name, function, arguments, optional)
        return self.sized(made, max(value.height, highest(arguments)), start)

    def all_of(self, node: Part, start: int, end: int) -> Part:
        """Return the node for all items of another node: `$items("X")`."""
        return self.sized(Method(start, end, 0, node, "all", None, [], False), node.height, start)
