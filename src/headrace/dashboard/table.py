"""All pages, in the order in which they are listed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from headrace.app import App
from headrace.dashboard.page import Look, Page
from headrace.dashboard.pages import (
    audit,
    batches,
    dead_letters,
    details,
    events,
    flows,
    jobs,
    limits,
    memory,
    models,
    overview,
    papers,
    queues,
    reports,
    runs,
    schedules,
    workers,
)
from headrace.dashboard.rendering import link_maker

PAGES: tuple[Page, ...] = (
    *overview.PAGES,
    *batches.PAGES,
    *jobs.PAGES,
    *runs.PAGES,
    *flows.PAGES,
    *models.PAGES,
    *queues.PAGES,
    *limits.PAGES,
    *workers.PAGES,
    *dead_letters.PAGES,
    *schedules.PAGES,
    *events.PAGES,
    *audit.PAGES,
    *reports.PAGES,
    *papers.PAGES,
    *details.PAGES,
    *flows.FLOWS,
    *memory.PAGES,
)


def pages_of(app: App) -> tuple[Page, ...]:
    """Return the pages that an app has."""
    return tuple(page for page in PAGES if page.belongs(app))


def listed(pages: Sequence[Page], here: Page, look: Look) -> list[dict[str, Any]]:
    """Return the list of pages as the frame of a page shows it, in groups; `here`: the page that it stands beside."""
    url = link_maker(look.base)
    root = here.path.split("/")[1]
    named = [page for page in pages if page.title is not None and page.scope in look.scopes]
    return [
        {
            "title": group,
            "links": [
                {
                    "title": page.title,
                    "href": url(*filter(None, [page.path.strip("/")])),
                    "here": page.path == f"/{root}",
                }
                for page in members
            ],
        }
        for group, members in groupby(named, key=lambda page: page.group)
    ]
