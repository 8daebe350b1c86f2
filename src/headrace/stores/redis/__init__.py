"""The Redis store, on Redis 7 or Valkey. Nothing is imported before one of these is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.stores.redis.handle_cache import make_handle_cache
    from headrace.stores.redis.limiter_beside import open_redis_limiter
    from headrace.stores.redis.run_board import make_run_board
    from headrace.stores.redis.stores import (
        RedisSite,
        adopt,
        create_namespace,
        namespace_is_missing,
        open_redis_stores,
    )

__all__ = [
    "RedisSite",
    "adopt",
    "create_namespace",
    "make_handle_cache",
    "make_run_board",
    "namespace_is_missing",
    "open_redis_limiter",
    "open_redis_stores",
]


def __getattr__(name: str) -> Any:
    # The modules below that need no driver stay importable without one.
    if name == "open_redis_limiter":
        from headrace.stores.redis.limiter_beside import open_redis_limiter

        return open_redis_limiter
    if name == "make_handle_cache":
        from headrace.stores.redis.handle_cache import make_handle_cache

        return make_handle_cache
    if name == "make_run_board":
        from headrace.stores.redis.run_board import make_run_board

        return make_run_board
    if name in __all__:
        from headrace.stores.redis import stores

        return getattr(stores, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
