"""What an HTTP answer becomes: items of JSON, text or a file; or an error, when its status is one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from headrace.model.http import HttpAnswer
from headrace.nodes.base import Item, NodeError, OneCall
from headrace.nodes.binary import stored
from headrace.nodes.http_kept import kept, kept_text
from headrace.nodes.http_secrets import Secrets
from headrace.nodes.http_values import parse_json
from headrace.nodes.parameters import Parameters

FORMATS = ("autodetect", "json", "text", "file")
#: What of `application/…` is text; the rest of it is a file.
_TEXTS = re.compile(
    r"(text|multipart)/.*|application/([\w.-]+\+)?(json|xml|yaml)"
    r"|application/(x-)?(www-form-urlencoded|javascript|ecmascript|yaml|toml|ndjson|jsonl|jsonlines|graphql|sql|csv)"
)
#: Character sets that are worth reading; others are read as UTF-8.
_CHARSETS = re.compile(
    r"utf-?(8|16|32)(-?[bl]e)?|(us-)?ascii|latin-?1|iso-8859-\d{1,2}|windows-\d{3,4}|koi8-[ru]|gbk|gb2312|gb18030|big5"
    r"|shift_jis|euc-(jp|kr)"
)
_ENCODED_NAME = re.compile(r"filename\*\s*=\s*utf-8'[\w-]*'([^\s;]+)", re.IGNORECASE)
_SHOWN, _KEPT = 200, 2_000


@dataclass(frozen=True, slots=True)
class Reading:
    """How an answer is read."""

    format: str = "autodetect"
    #: Whether status and headers are given beside the body.
    full: bool = False
    #: Whether any status is fine.
    never_error: bool = False
    #: Where text and files are put.
    output: str = "data"
    #: Whether each element of a list becomes an item.
    split: bool = True

    @classmethod
    def of(cls, at: Parameters, version: float) -> Reading:
        """Return what the parameters say. Raises InvalidInputError."""
        if version < 3:
            written = at.one_of("responseFormat", ("json", "string", "file"), "json")
            return cls(
                "text" if written == "string" else written,
                at.flag("options.fullResponse"),
                at.flag("options.ignoreResponseCode"),
                at.text("dataPropertyName") or "data",
                at.flag("options.splitIntoItems"),
            )
        within = "options.response.response"
        return cls(
            at.one_of(f"{within}.responseFormat", FORMATS, "autodetect"),
            at.flag(f"{within}.fullResponse"),
            at.flag(f"{within}.neverError"),
            at.text(f"{within}.outputPropertyName") or "data",
        )


async def items_of(answer: HttpAnswer, reading: Reading, secrets: Secrets, call: OneCall) -> list[Item]:
    """Return the items of an answer. Raises NodeError for a status that is an error, and for what is no JSON."""
    if not reading.never_error and not 200 <= answer.status <= 299:
        raise _refused(answer, secrets)
    about = _about(answer, secrets) if reading.full else {}
    kind = _kind(answer) if reading.format == "autodetect" else reading.format
    if kind == "file":
        return [await _file(answer, reading.output, about, call)]
    text = secrets.without(_text(answer))
    if kind == "text":
        return [{"json": {reading.output: kept_text(text), **about}}]
    value = _json(text, reading.never_error)
    if reading.full:
        return [{"json": {"body": value, **about}}]
    values = value if isinstance(value, list) and reading.split else [value]
    return [{"json": one if isinstance(one, dict) else {"data": one}} for one in values]


def _about(answer: HttpAnswer, secrets: Secrets) -> dict[str, Any]:
    headers = {name: kept_text(secrets.without(value)) for name, value in answer.headers.items()}
    return {"headers": headers, "statusCode": answer.status, "statusMessage": kept_text(answer.reason)}


def _refused(answer: HttpAnswer, secrets: Secrets) -> NodeError:
    body = kept_text(secrets.without(_text(answer), least=1)).strip()
    shown = " ".join(body.split())[:_SHOWN] or kept_text(answer.reason)
    error = NodeError(f"{answer.status} - {shown}", details={"status": answer.status, "body": body[:_KEPT]})
    # Too early, too many at once, or the server's own failure.
    error.transient = answer.status in (408, 425, 429) or answer.status >= 500
    return error


def _kind(answer: HttpAnswer) -> str:
    mime = _mime(answer)
    if mime == "application/json":
        return "json"
    return "text" if not mime or _TEXTS.fullmatch(mime) else "file"


def _mime(answer: HttpAnswer) -> str:
    return answer.headers.get("content-type", "").partition(";")[0].strip().lower()


def _text(answer: HttpAnswer) -> str:
    found = re.search(r"charset=[\"']?([\w.-]+)", answer.headers.get("content-type", "").lower())
    charset = found[1] if found and _CHARSETS.fullmatch(found[1]) else "utf-8"
    try:
        return answer.body.decode(charset, "replace").removeprefix("\ufeff")
    except LookupError:  # a number that no character set has
        return answer.body.decode("utf-8", "replace")


def _json(text: str, lenient: bool) -> Any:
    if not text.strip():
        return {}
    try:
        return kept(parse_json(text))
    except ValueError as error:
        if lenient:
            return {}
        fix = 'choose "text" as the format of the answer'
        why = f"the answer is no JSON that can be kept ({error})"
        raise NodeError(f"{why}: {fix}", details={"body": kept_text(text[:_KEPT])}) from None


async def _file(answer: HttpAnswer, output: str, about: dict[str, Any], call: OneCall) -> Item:
    mime = _mime(answer) or "application/octet-stream"
    kept = await stored(call.services.files, answer.body, _name(answer), {"mimeType": mime})
    return {"json": about or call.item["json"], "binary": {**(call.item.get("binary") or {}), output: kept}}


def _name(answer: HttpAnswer) -> str:
    """Return how the file is called: as the answer says, in UTF-8 or plainly, or as the URL ends."""
    told = answer.headers.get("content-disposition", "")
    encoded, plainly = _ENCODED_NAME.search(told), re.search(r'filename="?([^";]+)', told)
    written = unquote(encoded[1] if encoded else urlsplit(answer.url).path)
    if plainly and not encoded:
        written = plainly[1]
    name = re.sub(r"[\x00-\x1f\x7f]", "", re.split(r"[/\\]", kept_text(written))[-1]).strip(" .")
    return name[-120:] or "file"
