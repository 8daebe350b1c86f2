"""Templates to HTML: whole pages, and the live parts of one.

Everything is escaped by the templates themselves, names that there are not are errors, and no page has a script or a
style within it: the policy that pages are sent with runs files of ours alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from headrace import __version__
from headrace.dashboard import formats
from headrace.dashboard.page import Context, Look, Page, View
from headrace.dashboard.run_graph import RECORD, node_words
from headrace.dashboard.words import LOCALES, translator

STATIC = Path(__file__).parent / "static"
#: Blocks of templates that are sent as they change begin with this.
LIVE = "live_"


@cache
def files() -> Mapping[str, Path]:
    """Return the scripts and styles by their names in addresses: nothing else is served."""
    return {path.relative_to(STATIC).as_posix(): path for path in sorted(STATIC.rglob("*")) if path.is_file()}


@cache
def digest() -> str:
    """Return what tells the scripts and styles of this version from those of others: browsers keep them for ever."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in files().values())).hexdigest()[:12]


def render_page(page: Page, view: View, context: Context, frame: Context) -> str:
    """Return a page as HTML; `frame` is what stands around it and is of one visitor."""
    return _shown(_template(page.template or page.name, view.look).render(_given(page, view, context) | dict(frame)))


def render_parts(page: Page, view: View, context: Context) -> dict[str, str]:
    """Return the live parts of a page as HTML, by name."""
    template = _template(page.template or page.name, view.look)
    given = template.new_context(_given(page, view, context))
    live = {name: block for name, block in template.blocks.items() if name.startswith(LIVE)}
    return {name: _shown("".join(block(given))) for name, block in live.items()}


def render_other(name: str, look: Look, context: Context) -> str:
    """Return a page that shows nothing of the system: the one to log in with, the one that tells of an error."""
    return _shown(_template(name, look).render(dict(context) | {"look": look}))


def _shown(text: str) -> str:
    """Return a text that can be sent: of names that are no UTF-8, such as those of files, what is none becomes `?`."""
    return text.encode(errors="replace").decode()


def _given(page: Page, view: View, context: Context) -> dict[str, Any]:
    return dict(context) | {"page": page, "view": view, "look": view.look, "now": context.get("now", view.now)}


def _template(name: str, look: Look) -> Template:
    return environment(look.base, look.locale).get_template(f"{name}.html")


@lru_cache(maxsize=16)
def environment(base: str, locale: str) -> Environment:
    """Return what renders the templates of one language."""
    made = Environment(
        loader=PackageLoader("headrace.dashboard"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, auto_reload=False,
    )  # fmt: skip
    translate, url = translator(locale), link_maker(base)
    made.globals.update(
        t=translate, url=url, locale=locale, locales=LOCALES, base=base, version=__version__,
        static=lambda path: url("static", digest(), *path.split("/")), api=lambda *parts: url("api", "v1", *parts),
        node_words=node_words(translate), record=RECORD,
    )  # fmt: skip
    made.filters.update(
        number=formats.number, rate=formats.rate, span=formats.span, share=formats.share, size=formats.size,
        dollars=formats.dollars(translate), ago=formats.clock(translate), payload=formats.payload(translate),
        cell=formats.cell,
    )  # fmt: skip
    made.globals["ui"] = made.get_template("ui.html").module
    return made


def link_maker(base: str) -> Callable[..., str]:
    """Return what makes addresses below a path: each part is quoted, so that names of users cannot leave it.

    >>> link_maker("/jobs")("queues", "a/b", state="ready", cursor=None)
    '/jobs/queues/a%2Fb?state=ready'
    """

    def url(*parts: Any, **query: Any) -> str:
        path = "/".join(quote(str(part), safe="", errors="replace") for part in parts)
        asked: Mapping[str, Any] = {name: value for name, value in query.items() if value not in (None, "")}
        return f"{base}/{path}" + (f"?{urlencode(asked, errors='replace')}" if asked else "")

    return url
