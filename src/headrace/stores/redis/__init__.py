"""The Redis store (Redis 7 or Valkey). Nothing is imported before `open_redis_stores` is asked for."""
