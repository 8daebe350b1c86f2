"""Expressions of flows, `={{ $json.price * 1.2 }}`: a small language of its own over plain data.

It looks like JavaScript, and gives what JavaScript does where that is what people expect. It differs where that helps:
what is missing is null; arithmetic with null, division by zero and results that are no number are errors; lists and
objects are equal if what is in them is; objects in a text are JSON; null in a text is nothing; a comparison with null
is false; dates compare with ISO texts; a date in a list, an object or a result is an ISO text; texts are counted in
characters and not in UTF-16 units; `replace` and `split` take texts and never patterns. `$('X').item` is the item
that the current one came from; `$node["X"].json` is that of the item with the same number.

`evaluation` has the public functions, `functions.table` the listed functions, `budget` the limits.
"""
