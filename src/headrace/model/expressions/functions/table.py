"""All functions in one table; the parser knows no others."""

from __future__ import annotations

import math

from headrace.model.expressions.functions.dates import DATES
from headrace.model.expressions.functions.either import EITHER
from headrace.model.expressions.functions.listing import Function
from headrace.model.expressions.functions.lists import LISTS
from headrace.model.expressions.functions.numbers import NUMBERS
from headrace.model.expressions.functions.objects import OBJECTS
from headrace.model.expressions.functions.text import TEXT

#: In the order of the reference.
TABLES = (TEXT, EITHER, LISTS, OBJECTS, NUMBERS, DATES)
FUNCTIONS: dict[str, Function] = {name: one for table in TABLES for name, one in table.functions.items()}
#: Numbers with a name.
VALUES: dict[str, float] = {"Math.PI": math.pi, "Math.E": math.e}
#: Words before the dot of functions that belong together: `Math`, `JSON`; some are functions themselves.
NAMESPACES = frozenset(name.partition(".")[0] for name in (*FUNCTIONS, *VALUES) if "." in name)
