"""The only reader of the environment and of headrace.toml.

Every key may stand in `headrace.toml` (`[queue] url = "…"`) or in the environment (`HEADRACE_QUEUE_URL`); the
environment wins. An unknown key or a wrong type stops the start with the key and the fix.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from headrace.celery_settings import ENGINE_QUEUES, LOCAL, CelerySettings, check_celery
from headrace.details_settings import DetailSettings, check_details
from headrace.event_settings import EventSettings, check_events
from headrace.flow_settings import CredentialSettings, FlowSettings, check_flows
from headrace.memory_settings import MemorySettings, check_memory
from headrace.model.attempt_log import MOST_LINES
from headrace.model.durations import format_duration
from headrace.model.elastic import MAX_MARK, MAX_SLOTS
from headrace.model.errors import ConfigError, InvalidInputError
from headrace.model.llm import LLMSettings
from headrace.model.names import check_name
from headrace.model.queue import QueueRule
from headrace.model.quota import Pool
from headrace.model.scale_values import ScalingRule
from headrace.model.setting_values import check_secret, convert
from headrace.model.telemetry import TelemetrySettings
from headrace.model_pools import Written, share_pools
from headrace.model_rules import check_models
from headrace.model_settings import ModelSettings
from headrace.papers_settings import PaperSettings
from headrace.queue_settings import LimitsSettings, QueueTable, ScalingSettings
from headrace.ray_settings import RayResources, RaySettings, check_ray
from headrace.report_settings import ReportSettings
from headrace.service_settings import ServiceSettings, check_service
from headrace.webhook_settings import WebhookSettings, check_webhooks
from headrace.workflow_settings import BlobSettings, SchedulerSettings, check_blobs, check_scheduler

T = TypeVar("T")

FILE_NAME = "headrace.toml"
MEMORY_URL = "memory://"
#: How the URLs of each durable store begin.
SCHEMES = {
    "postgres": ("postgresql", "postgres"),
    "redis": (
        "redis", "rediss", "valkey", "valkeys", "unix", "redis+unix", "redis+sentinel", "rediss+sentinel",
        "redis+cluster", "rediss+cluster",
    ),
}  # fmt: skip
#: No colon: that joins prefix and group, and the names of keys.
_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
#: A host, and perhaps its port and a name: what people write where a URL is meant, and no place for a password.
_HOST = re.compile(r"[A-Za-z0-9._-]{1,63}(:[0-9]{1,5})?(/[A-Za-z0-9._-]{0,63})?")


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """`[queue]`: the store and its connection."""

    #: "postgres", "redis", or "memory" for tests; empty: what `url` says
    type: str = ""
    #: store URL: postgresql://…, redis://…, or memory:// for tests; empty: an embedded PostgreSQL in `directory`
    url: str = field(default="", repr=False)
    #: schema that holds the tables
    schema: str = "headrace"
    #: most connections of one process, the one that listens and the one of its worker's heartbeat included; at least 4
    max_pool_size: int = 10
    #: length of a worker's lease: a dead worker's jobs run elsewhere after it
    visibility_timeout: timedelta = timedelta(seconds=12)
    #: send and hear hints, by LISTEN/NOTIFY or by PUBLISH on Redis; false polls only
    enable_listen_notify: bool = True
    #: true behind PgBouncer in transaction mode: no named statements
    pooled: bool = False
    #: direct DSN for LISTEN where `url` goes through a pooler
    listen_url: str = field(default="", repr=False)
    #: attempts beyond the first for tasks that declare no retry policy
    max_retries: int = 3
    #: false keeps nothing on disk and needs `unsafe_no_persistence = true` too
    enable_persistence: bool = True
    #: states that losing every job is acceptable; on Redis, that it may run without an append-only file
    unsafe_no_persistence: bool = False
    #: key prefix of the Redis store: its namespace, one per application; PostgreSQL has `schema`
    stream_prefix: str = "headrace"
    #: workers of the Redis store that take over from one another; another group is a namespace with jobs of its own
    consumer_group: str = "headrace"


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """`[worker]`: how a worker claims and runs jobs."""

    #: worker processes under `headrace worker`; a supervisor restarts dead ones
    count: int = 1
    #: where handlers run: "local", in the worker, "celery", on the farm of `[celery]`, or "ray", on the cluster of
    #: `[ray]`; `[queues.NAME]` may differ
    executor: str = LOCAL
    #: jobs running at once per process and queue, unless given per queue
    concurrency: int = 10
    #: most jobs of one claim; never more than the free slots
    batch_size: int = 100
    #: longest wait between claims when no hint arrives, ± jitter
    poll_interval: timedelta = timedelta(milliseconds=500)
    #: time between renewals of the lease; at most a third of `[queue] visibility_timeout`
    heartbeat_interval: timedelta = timedelta(seconds=3)
    #: execution timeout of tasks that declare none, counted from the start of the attempt
    max_processing_time: timedelta = timedelta(seconds=300)
    #: on SIGTERM running jobs may finish this long; then they are released, uncharged
    shutdown_grace: timedelta = timedelta(seconds=20)
    #: time between looks at queues with elastic slots (`max_slots` in `[queues.NAME]`)
    resize_interval: timedelta = timedelta(seconds=30)
    #: last lines of what a handler logs with `ctx.log` that are kept with its attempt, 16 KiB at most; 0 keeps none
    keep_log_lines: int = 100
    #: false leaves nodes that are no tasks, such as maps and waits, to other workers
    node_processor_enabled: bool = True
    #: false leaves runs at workflow level to other workers
    workflow_processor_enabled: bool = True
    #: false leaves taking events from the outbox to the bus to `headrace relay` and other workers
    relay_enabled: bool = True
    #: false leaves the agents of the app to `headrace agent` and other workers
    agents_enabled: bool = True
    #: false leaves waking what waits for events to `headrace callback` and other workers
    callback_enabled: bool = True


@dataclass(frozen=True, slots=True)
class RecoverySettings:
    """`[recovery]`: sweeps and retention."""

    #: time between sweeps for jobs of dead workers
    check_interval: timedelta = timedelta(seconds=2)
    #: time between safety passes of the aggregator on the leader
    aggregate_interval: timedelta = timedelta(seconds=10)
    #: an open batch idle this long becomes abandoned
    seal_timeout: timedelta = timedelta(hours=1)
    #: time between prunes of history
    prune_interval: timedelta = timedelta(seconds=60)
    #: how long succeeded jobs are kept
    keep_succeeded: timedelta = timedelta(days=7)
    #: how long failed jobs are kept
    keep_failed: timedelta = timedelta(days=30)
    #: how long cancelled jobs are kept
    keep_cancelled: timedelta = timedelta(days=7)
    #: how long stored answers of models are kept: as long nothing is paid twice
    keep_answers: timedelta = timedelta(days=30)
    #: how long runs of workflows are kept after their end, with their nodes and large values
    keep_runs: timedelta = timedelta(days=30)
    #: how long entries of feeds are kept: as long clients that follow one may go on where they were
    keep_feeds: timedelta = timedelta(days=7)
    #: how long actions of the audit are kept
    keep_audit: timedelta = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings."""

    #: holds what runs embedded: database, local model, application files
    directory: Path = Path(".headrace")
    queue: QueueSettings = QueueSettings()
    worker: WorkerSettings = WorkerSettings()
    recovery: RecoverySettings = RecoverySettings()
    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
    blob_storage: BlobSettings = field(default_factory=BlobSettings)
    llm: ModelSettings = field(default_factory=ModelSettings)
    #: further models by their names, `[llm.models.NAME]`
    models: Mapping[str, ModelSettings] = field(default_factory=dict)
    limits: LimitsSettings = field(default_factory=LimitsSettings)
    scaling: ScalingSettings = field(default_factory=ScalingSettings)
    celery: CelerySettings = field(default_factory=CelerySettings)
    ray: RaySettings = field(default_factory=RaySettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    flows: FlowSettings = field(default_factory=FlowSettings)
    events: EventSettings = field(default_factory=EventSettings)
    service: ServiceSettings = field(default_factory=ServiceSettings)
    webhooks: WebhookSettings = field(default_factory=WebhookSettings)
    papers: PaperSettings = field(default_factory=PaperSettings)
    details: DetailSettings = field(default_factory=DetailSettings)
    report: ReportSettings = field(default_factory=ReportSettings)
    memory: MemorySettings = field(default_factory=MemorySettings)
    #: tables by the names of queues
    queues: Mapping[str, QueueTable] = field(default_factory=dict)

    def scaling_of(self, queue: str) -> ScalingRule:
        """Return the rule of a queue's scale signal."""
        return self.queues.get(queue, QueueTable()).scaling(self.scaling)

    def executor_of(self, queue: str) -> str:
        """Return where the handlers of a queue run."""
        if queue in ENGINE_QUEUES:
            return LOCAL
        table = self.queues.get(queue)
        return self.worker.executor if table is None or table.executor is None else table.executor

    @property
    def executors(self) -> dict[str, str]:
        """Return every executor that is named, by its key."""
        named = {f"queues.{name}.executor": table.executor for name, table in self.queues.items() if table.executor}
        return {"worker.executor": self.worker.executor} | named

    def llm_settings(self, name: str = "") -> LLMSettings:
        """Return a configured model, the default one unless its name is given. Raises KeyError.

        Models of one pool have its limits in common. Raises ConfigError where settings made in code give it different
        ones; those of file and environment are refused when they are read.
        """
        tables = share_pools(self.model_sections)
        return tables[f"llm.models.{name}" if name else "llm"].to_llm(name)

    def pools(self) -> list[Pool]:
        """Return the quotas of the configured models, with the limits they have here."""
        models = [self.llm_settings(name) for name in ("", *self.models)]
        return [Pool(model.pool_name, model.limits) for model in models]

    @property
    def model_sections(self) -> dict[str, ModelSettings]:
        """Return the tables of models by the sections they stand in."""
        return {"llm": self.llm} | {f"llm.models.{name}": table for name, table in self.models.items()}

    def sharing_pools(self, written: Written) -> Settings:
        """Return these settings, each model with all limits of its pool. Raises ConfigError; see `share_pools`."""
        tables = share_pools(self.model_sections, written)
        models = {name: tables[f"llm.models.{name}"] for name in self.models}
        return replace(self, llm=tables["llm"], models=models)


#: They name an account at the provider "openai"; no other provider is given its key.
_OPENAI_ACCOUNT = {"base_url": "OPENAI_BASE_URL", "api_key": "OPENAI_API_KEY"}
#: Environment names beside HEADRACE_<SECTION>_<KEY>, in order of preference.
_ALIASES = {
    ("", "directory"): ("HEADRACE_DIRECTORY",),
    ("queue", "url"): ("HEADRACE_URL",),
    ("llm", "model"): ("OPENAI_MODEL",),
    **{("llm", name): (variable,) for name, variable in _OPENAI_ACCOUNT.items()},
}


def load_settings(*, environ: Mapping[str, str] | None = None, file: Path | None = None) -> Settings:
    """Read headrace.toml (of the working directory, or `file`) and the environment.

    Raises ConfigError naming the key, the rule, the value and the fix.

    >>> load_settings(environ={"HEADRACE_WORKER_COUNT": "2"}, file=Path("missing.toml")).worker.count
    2
    """
    environ = os.environ if environ is None else environ
    chosen = environ.get("HEADRACE_CONFIG", "")
    document = _read_file(file or Path(chosen or FILE_NAME), required=file is None and bool(chosen))
    _check_environment(environ)
    document, models = _without_models(document)
    fitting = _fitting(environ, document)
    settings: Settings = _fill(Settings(), document, fitting, section="")
    settings = replace(settings, models=_model_tables(settings.llm, models, _openai_account(environ)))
    written = _written(document.get("llm", {}), models, fitting)
    _check_rules(settings)
    check_models(settings.model_sections, written)
    return use_store(settings.sharing_pools(written), settings.queue.url)


def _written(first: Mapping[str, Any], models: Mapping[str, Any], environ: Mapping[str, str]) -> Written:
    """Return what finds the place of a model's key, and its value as written."""

    def find(section: str, name: str) -> tuple[str, Any]:
        if section == "llm":
            return _raw_value(section, name, first, environ)
        where, raw = _raw_value(section, name, models[section.removeprefix("llm.models.")], {})
        # What is taken from [llm] was found wrong there.
        foreign = raw is None and name in _OPENAI_ACCOUNT
        return (f"{where}, taken from {_OPENAI_ACCOUNT[name]}," if foreign else where), raw

    return find


def _openai_account(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: environ.get(variable, "") for name, variable in _OPENAI_ACCOUNT.items()}


def _fitting(environ: Mapping[str, str], document: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the environment without the account of a provider that is not asked."""
    table = document.get("llm")
    written = table if isinstance(table, Mapping) else {}
    provider = _raw_value("llm", "provider", written, environ)[1]
    if provider in (None, "", "openai"):
        return environ
    return {name: value for name, value in environ.items() if name not in _OPENAI_ACCOUNT.values()}


def use_store(settings: Settings, url: str) -> Settings:
    """Return `settings` on the store at `url`; an empty one leaves them as they are. Raises ConfigError."""
    if not url:
        return settings
    if url == MEMORY_URL:
        return replace(settings, queue=replace(settings.queue, type="memory", url=""))
    return replace(settings, queue=replace(settings.queue, type=_kind_of("queue.url", url), url=url))


def _kind_of(name: str, url: str, kinds: tuple[str, ...] = ("postgres", "redis")) -> str:
    """Return which kind of store a URL names."""
    scheme, found, _ = url.partition("://")
    for kind in kinds:
        if found and scheme in SCHEMES[kind]:
            return kind
    starts = " or ".join(f"{SCHEMES[kind][0]}://" for kind in kinds)
    # Never with the whole value: a password may stand in it.
    memory = ", or be memory://" if len(kinds) > 1 else ""
    shown = f"{scheme}://…" if found else repr(url) if _HOST.fullmatch(url) else "a text without ://"
    raise ConfigError(f"{name} must begin with {starts}{memory}, got {shown}")


def _read_file(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if required:
            raise ConfigError(f"HEADRACE_CONFIG names {path}, which does not exist") from None
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read as TOML ({error})") from None


def _fill(defaults: Any, document: Mapping[str, Any], environ: Mapping[str, str], *, section: str) -> Any:
    """Return `defaults` with the keys of `document` and then of `environ` put in."""
    hints = get_type_hints(type(defaults))
    # Models are written within [llm].
    _check_known(document, [item.name for item in fields(defaults) if section or item.name != "models"], section)
    changes: dict[str, Any] = {}
    for item in fields(defaults):
        current = getattr(defaults, item.name)
        if (section, item.name) in _NAMED_TABLES:
            if item.name != "models":
                given = _with_json(section, item.name, document.get(item.name, {}), environ)
                changes[item.name] = _NAMED_TABLES[section, item.name](given)
            continue
        if is_dataclass(current):
            table, inner = document.get(item.name, {}), f"{section}.{item.name}" if section else item.name
            if not isinstance(table, Mapping):
                raise ConfigError(f"{FILE_NAME}: {inner} must be a table, write [{inner}]")
            changes[item.name] = _fill(current, table, environ, section=inner)
            continue
        where, raw = _raw_value(section, item.name, document, environ)
        if raw is not None:
            if not item.repr:
                check_secret(where, raw, hints[item.name])
            changes[item.name] = convert(where, raw, hints[item.name])
    return replace(defaults, **changes)


def _queue_tables(document: Any) -> dict[str, QueueTable]:
    return _named_tables(lambda _: QueueTable(), document, "queues")


def _model_tables(first: ModelSettings, document: Any, openai: Mapping[str, str]) -> dict[str, ModelSettings]:
    return _named_tables(lambda table: first.inherited(table, openai), document, "llm.models")


def _credential_tables(document: Any) -> dict[str, CredentialSettings]:
    return _named_tables(lambda _: CredentialSettings(), document, "flows.credentials", any_name=True)


def _resource_tables(document: Any) -> dict[str, RayResources]:
    return _named_tables(lambda _: RayResources(), document, "ray.resources")


def _variables(document: Any) -> dict[str, Any]:
    if not isinstance(document, Mapping):
        raise ConfigError(f"{FILE_NAME}: flows.vars must be a table, write [flows.vars]")
    return dict(document)


#: What reads the tables that hold something for each name; those of models are read with what they inherit.
_NAMED_TABLES: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("", "queues"): _queue_tables,
    ("", "models"): dict,
    ("flows", "credentials"): _credential_tables,
    ("flows", "vars"): _variables,
    ("ray", "resources"): _resource_tables,
}


#: Those of them that may stand in the environment as well, as JSON: what starts further processes hands them on so.
_JSON_TABLES = {("", "queues"), ("ray", "resources")}


def _with_json(section: str, name: str, document: Any, environ: Mapping[str, str]) -> Any:
    """Return tables by name with those of the environment, whose keys win."""
    variable = _variable(section, name)
    if (section, name) not in _JSON_TABLES or not environ.get(variable) or not isinstance(document, Mapping):
        return document
    try:
        given = json.loads(environ[variable])
    except ValueError:
        given = None
    if not isinstance(given, dict) or not all(isinstance(table, dict) for table in given.values()):
        raise ConfigError(f'{variable} must be JSON of tables by name, such as {{"llm": {{"concurrency": 5}}}}')
    merged = dict(document)
    for key, table in given.items():
        own = merged.get(key, {})
        merged[key] = {**own, **table} if isinstance(own, Mapping) else own
    return merged


def _without_models(document: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """Return the document without `[llm.models]`, and that."""
    table = document.get("llm")
    if not isinstance(table, Mapping) or "models" not in table:
        return dict(document), {}
    return {**document, "llm": {key: value for key, value in table.items() if key != "models"}}, table["models"]


def _named_tables(
    defaults: Callable[[Mapping[str, Any]], T], document: Any, section: str, *, any_name: bool = False
) -> dict[str, T]:
    if not isinstance(document, Mapping):
        raise ConfigError(f"{FILE_NAME}: {section} must hold a table for each name, write [{section}.NAME]")
    tables = {}
    for name, table in document.items():
        try:
            if not any_name:
                check_name(f"{FILE_NAME}: the name of [{section}.{name}]", name)
        except InvalidInputError as error:
            raise ConfigError(str(error)) from None
        if not isinstance(table, Mapping):
            raise ConfigError(f"{FILE_NAME}: {section}.{name} must be a table, write [{section}.{name}]")
        tables[name] = _fill(defaults(table), table, {}, section=f"{section}.{name}")
    return tables


def _raw_value(section: str, name: str, document: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str, Any]:
    for variable in (_variable(section, name), *_ALIASES.get((section, name), ())):
        if environ.get(variable):
            return variable, environ[variable]
    return f"{FILE_NAME}: {section + '.' if section else ''}{name}", document.get(name)


def _variable(section: str, name: str) -> str:
    return "_".join(part for part in ("HEADRACE", section, name) if part).replace(".", "_").upper()


def _check_known(document: Mapping[str, Any], known: list[str], section: str) -> None:
    for key in document:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            fix = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
            where = f"[{section}] " if section else ""
            raise ConfigError(f"{FILE_NAME}: unknown key {where}{key}; {fix}")


#: Read elsewhere than in the table of settings.
_OTHER_VARIABLES = {"HEADRACE_CONFIG", "HEADRACE_TOKEN"}


def _check_environment(environ: Mapping[str, str]) -> None:
    known = _OTHER_VARIABLES | {_variable(section, name) for section, name in _keys(Settings())}
    known |= {variable for variables in _ALIASES.values() for variable in variables}
    for variable in environ:
        if variable.startswith("HEADRACE_") and variable not in known:
            # They all begin alike, so only a close match says something.
            near = get_close_matches(variable, known, n=1, cutoff=0.8)
            fix = f"did you mean {near[0]}?" if near else "see docs/reference/configuration.md"
            raise ConfigError(f"unknown environment variable {variable}; {fix}")


def _keys(table: Any, section: str = "") -> Iterator[tuple[str, str]]:
    """Yield section and name of every key of a table and of those within it."""
    for item in fields(table):
        value = getattr(table, item.name)
        if is_dataclass(value):
            yield from _keys(value, f"{section}.{item.name}" if section else item.name)
        elif (section, item.name) not in _NAMED_TABLES or (section, item.name) in _JSON_TABLES:
            yield section, item.name


def _check_rules(settings: Settings) -> None:
    queue, worker = settings.queue, settings.worker
    positive = {
        "worker.count": worker.count,
        "worker.concurrency": worker.concurrency,
        "worker.batch_size": worker.batch_size,
    }
    for name, value in positive.items():
        _require(value >= 1, name, "must be at least 1", value)
    _require(worker.count <= 256, "worker.count", "must be at most 256: each is a process", worker.count)
    rule = f"must be from 0 to {MOST_LINES}"
    _require(0 <= worker.keep_log_lines <= MOST_LINES, "worker.keep_log_lines", rule, worker.keep_log_lines)
    _require(queue.max_pool_size >= 4, "queue.max_pool_size", "must be at least 4", queue.max_pool_size)
    _check_store(queue)
    _check_limits(settings)
    check_scheduler(settings.scheduler)
    check_blobs(settings.blob_storage)
    check_flows(settings.flows)
    check_events(settings.events)
    check_service(settings.service)
    check_webhooks(settings.webhooks)
    check_details(settings.details)
    check_memory(settings.memory)
    check_celery(settings.celery, settings.executors)
    check_ray(settings.ray)
    endpoint = settings.telemetry.endpoint
    rule = "must be a URL such as http://127.0.0.1:4318"
    _require(not endpoint or endpoint.startswith(("http://", "https://")), "telemetry.endpoint", rule, repr(endpoint))
    _require(0 <= queue.max_retries <= 99, "queue.max_retries", "must be from 0 to 99", queue.max_retries)
    for name, duration in {
        "worker.poll_interval": worker.poll_interval,
        "worker.heartbeat_interval": worker.heartbeat_interval,
        "worker.max_processing_time": worker.max_processing_time,
        "worker.resize_interval": worker.resize_interval,
        "recovery.check_interval": settings.recovery.check_interval,
        "recovery.aggregate_interval": settings.recovery.aggregate_interval,
        "recovery.prune_interval": settings.recovery.prune_interval,
        "recovery.seal_timeout": settings.recovery.seal_timeout,
    }.items():
        _require(duration > timedelta(), name, "must be longer than zero", duration)
    _require(
        worker.heartbeat_interval * 3 <= queue.visibility_timeout,
        "worker.heartbeat_interval",
        "must be at most a third of queue.visibility_timeout",
        worker.heartbeat_interval,
    )
    _require(
        queue.enable_persistence or queue.unsafe_no_persistence,
        "queue.enable_persistence",
        "= false loses every job with the process; set queue.unsafe_no_persistence = true as well if that is wanted",
        queue.enable_persistence,
    )


#: What some options of a queue go with, which may stand in the code: each is checked alone here.
_COMPANIONS: dict[str, dict[str, Any]] = {
    "burst": {"rate_limit": "1/s"},
    "on_full": {"max_waiting": 1},
    "wait_timeout": {"max_waiting": 1, "on_full": "wait"},
    "min_slots": {"max_slots": MAX_SLOTS},
    "start_slots": {"max_slots": MAX_SLOTS},
    "grow_above": {"max_slots": MAX_SLOTS, "shrink_below": 0},
    "shrink_below": {"max_slots": MAX_SLOTS, "grow_above": MAX_MARK},
}


def _check_limits(settings: Settings) -> None:
    if settings.limits.url:
        _kind_of("limits.url", settings.limits.url, ("redis",))
    _check_scaling("[scaling]", QueueTable(), settings.scaling)
    for name, table in settings.queues.items():
        _check_scaling(f"{FILE_NAME}: [queues.{name}]", table, settings.scaling)
        for option, value in table.options().items():
            try:
                QueueRule.parse(name, **{**_COMPANIONS.get(option, {}), option: value})
            except InvalidInputError as error:
                raise ConfigError(f"{FILE_NAME}: [queues.{name}] {error}") from None


def _check_scaling(where: str, table: QueueTable, usual: ScalingSettings) -> None:
    try:
        table.scaling(usual)
    except InvalidInputError as error:
        raise ConfigError(f"{where} {error}") from None


def _check_store(queue: QueueSettings) -> None:
    kinds = ("postgres", "redis", "memory")
    _require(queue.type in ("", *kinds), "queue.type", 'must be "postgres", "redis" or "memory"', queue.type)
    _require(
        queue.type != "redis" or bool(queue.url), "queue.url", "must name the Redis server, as redis://HOST", "none"
    )
    if queue.url and queue.type:
        named = "memory" if queue.url == MEMORY_URL else _kind_of("queue.url", queue.url)
        _require(named == queue.type, "queue.type", f"must be {named!r}, or left out, as queue.url says", queue.type)
    if queue.listen_url:
        _kind_of("queue.listen_url", queue.listen_url, ("postgres",))
    for name, value in {"stream_prefix": queue.stream_prefix, "consumer_group": queue.consumer_group}.items():
        rule = "must be 1 to 64 of A-Z a-z 0-9 _ . - and begin with a letter or digit"
        _require(bool(_NAMESPACE.fullmatch(value)), f"queue.{name}", rule, repr(value))


def _require(holds: bool, name: str, rule: str, value: object) -> None:
    if not holds:
        shown = format_duration(value) if isinstance(value, timedelta) else value
        raise ConfigError(f"{name} {rule}, got {shown}")
