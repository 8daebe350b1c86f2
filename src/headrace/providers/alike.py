"""Events of a stream that differ in nothing but their text: what they say is taken at once, without reading each.

A model writes thousands of events, most servers write all of an answer by one form, and reading each as JSON was a
tenth of a busy agent's processor.
"""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json

#: The form is looked for in so many events at most: those of some servers have a number or a padding of their own, or
#: do not stand back to back.
MOST_TRIES = 20


class AlikeEvents:
    """The form of a stream's events, once it is known: the bytes before their text, and those behind it.

    >>> events, line = AlikeEvents(b"data: "), b'data: {"choices": [{"delta": {"content": "An"}}]}'
    >>> events.learn(line, {"choices": [{"delta": {"content": "An"}}]})
    >>> text, end = events.read(line.replace(b"An", b" ember") + b"\\n\\n" + line + b"\\n\\ndata: [DONE]\\n\\n", 0)
    >>> text, end == 2 * (len(line) + 2) + len("ember") - 1
    (' emberAn', True)
    """

    def __init__(self, field: bytes) -> None:
        """`field`: what stands before the JSON of an event."""
        self._field = field
        self._tries = 0
        self._before = self._behind = b""
        self.is_known = False

    def read(self, data: bytes, at: int) -> tuple[str, int]:
        """Return the text of the whole events of the form that stand at a place, together, and the place behind them.

        Only while the form is known. "" and the place itself: what stands there is to be read as any other event.
        """
        if not data.startswith(self._before, at):
            return "", at
        *texts, last = data[at + len(self._before) :].split(self._behind + self._before)
        text, found, rest = last.partition(self._behind)
        if found:
            texts.append(text)
        try:
            said = "".join([from_json(b'"%s"' % text) for text in texts])
        except ValueError:
            # There was another among them. Whoever reads them one by one finds it.
            self.is_known = False
            return "", at
        # All that came was looked through: where whole lines stand behind so little, that would be done for each.
        self.is_known = len(texts) > 1 or b"\n" not in (rest if found else last).rstrip(b"\r\n")
        return said, len(data) - (len(rest) if found else len(self._before) + len(last))

    def learn(self, line: bytes, body: dict[str, Any]) -> None:
        """Learn the form from an event that was read and had a text, `body`, if that is all that may change in it."""
        if self._tries == MOST_TRIES or (self.is_known and line.startswith(self._before)):
            return
        text = body["choices"][0]["delta"].get("content")
        if not (isinstance(text, str) and text.isascii() and text.isalnum()) or body.get("usage") or body.get("x_groq"):
            return  # the count of tokens that came last is the right one, however it came
        self._tries += 1
        before, _, behind = line.rpartition(b'"%s"' % text.encode("ascii"))
        before, behind, other = before + b'"', b'"' + behind, f"{text}0"
        # The same word may stand elsewhere in it: the text, and nothing but the text, has to follow the change.
        if _read(before[len(self._field) :] + other.encode("ascii") + behind) == _changed(body, other):
            self._before, self._behind = before, behind + (b"\n\r\n" if line.endswith(b"\r") else b"\n\n")
            self.is_known = True


def _read(text: bytes) -> Any:
    try:
        return from_json(text)
    except ValueError:
        return None


def _changed(body: dict[str, Any], text: str) -> dict[str, Any]:
    first, *others = body["choices"]
    return {**body, "choices": [{**first, "delta": {**first["delta"], "content": text}}, *others]}
