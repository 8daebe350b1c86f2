"""What routes work with: the app that is served."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from headrace.app import App


def served_app(request: Request) -> App:
    """Return the app that is served."""
    app: App = request.app.state.headrace
    return app


Served = Annotated[App, Depends(served_app)]
