"""What routes work with: the app that is served."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from headrace.app import App


async def served_app(request: Request) -> App:
    """Return the app that is served."""
    # Not a plain function: that would be called in a thread, for every request.
    app: App = request.app.state.headrace
    return app


Served = Annotated[App, Depends(served_app)]
