"""Settings: every key from the file and from the environment, and every mistake named with its fix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import App
from headrace.model.durations import format_duration
from headrace.model.errors import ConfigError
from headrace.model.queue import QueueOptions, QueueRule
from headrace.settings import QueueSettings, Settings, load_settings, use_store


def keys(table: Any = None, section: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield section, key and default of every setting; the section is empty above the tables."""
    table = Settings() if table is None else table
    for item in fields(table):
        value = getattr(table, item.name)
        if is_dataclass(value):
            yield from keys(value, f"{section}.{item.name}" if section else item.name)
        elif (section, item.name) not in NAMING:
            yield section, item.name, value


#: Tables by name, and what names one of them: these have tests of their own.
NAMING = {("", "queues"), ("", "models"), ("llm", "escalate_to")}
NAMING |= {("service", "hosts"), ("flows", "allow_targets"), ("flows", "credentials"), ("flows", "vars")}
NAMING |= {("webhooks", "secrets"), ("webhooks", "allow_targets")}
NAMING |= {("ray", "resources"), ("ray", "py_modules"), ("ray", "pip"), ("ray", "env_vars")}
#: But the one that needs a key of another table: see test_settings_events.py.
KEYS = [one for one in keys() if one[:2] != ("events", "bus")]

#: Values other than the default where any other value of the type would break a rule.
SPECIAL: dict[tuple[str, str], Any] = {
    ("queue", "type"): "memory",
    ("queue", "url"): "postgresql://app@db/app",
    ("queue", "listen_url"): "postgresql://app@direct/app",
    ("queue", "enable_persistence"): False,
    ("worker", "heartbeat_interval"): timedelta(seconds=2),
    ("llm", "base_url"): "http://127.0.0.1:9/v1",
    ("llm", "style"): "plain",
    ("llm", "provider"): "openai",
    ("llm", "charge"): "split",
    ("telemetry", "endpoint"): "http://127.0.0.1:4318",
    ("limits", "url"): "redis://limits",
    ("worker", "executor"): "celery",
    ("celery", "broker_url"): "redis://broker",
    ("ray", "address"): "10.0.0.1:6379",
    ("scheduler.hybrid", "default_mode"): "node_level",
    ("scheduler.distributed", "priority_strategy"): "by_node_type",
    ("blob_storage", "type"): "memory",
    ("blob_storage", "path"): Path("elsewhere"),
    ("blob_storage", "endpoint"): "https://storage.example:9000",
    ("flows", "files"): Path("elsewhere"),
    ("events", "format"): "cloudevents",
    ("service", "host"): "0.0.0.0",
    ("service", "url"): "https://example.org/jobs",
    ("service", "audit"): "all",
    ("papers", "templates"): Path("elsewhere"),
    ("papers", "documents"): Path("elsewhere"),
    ("report", "files"): Path("elsewhere"),
    ("report", "rules"): Path("elsewhere"),
    ("details", "first_response_deadline"): timedelta(seconds=3),
    ("details", "single_call_at"): 0.5,
    ("memory", "source"): "debezium",
    ("memory", "language"): "zh",
    ("memory", "batch_mode"): "large",
    ("memory", "alert_error_rate"): 0.5,
    ("events", "dead_letter_suffix"): "-dead",
    ("events", "prefect_api_url"): "http://127.0.0.1:4200/api",
    ("events.kafka", "servers"): "kafka-1:9092,kafka-2:9092",
    ("events.kafka", "security_protocol"): "ssl",
    ("events.kafka", "sasl_mechanism"): "plain",
    ("events.kafka", "ca_file"): __file__,
}
S3 = {"type": "s3", "bucket": "big"}
#: What has to be said as well for a value to be allowed.
BESIDES: dict[tuple[str, str], dict[str, Any]] = {
    ("queue", "enable_persistence"): {"unsafe_no_persistence": True},
    ("queue", "url"): {"type": "postgres"},
    ("llm", "input_price"): {"output_price": 2.5},
    ("llm", "output_price"): {"input_price": 2.5},
    ("blob_storage", "bucket"): {"type": "s3"},
    ("blob_storage", "endpoint"): S3,
    ("blob_storage", "region"): S3,
    ("blob_storage", "access_key"): {**S3, "secret_key": "k"},
    ("blob_storage", "secret_key"): {**S3, "access_key": "k"},
    ("webhooks", "retry_for"): {"longest_retry": timedelta(hours=2)},
    ("events.kafka", "sasl_mechanism"): {"security_protocol": "sasl_ssl"},
}


def other_value(section: str, key: str, default: Any) -> Any:
    """Return a valid value of a key that is not its default."""
    if (section, key) in SPECIAL:
        return SPECIAL[section, key]
    match default:
        case None:  # a number that has no default
            return 7
        case bool():
            return not default
        case int():
            return default + 1
        case timedelta():
            return default * 2
        case Path():
            return Path("elsewhere")
        case _:
            return "other"


def as_text(value: Any) -> str:
    """Return a value as an environment variable holds it."""
    return format_duration(value) if isinstance(value, timedelta) else str(value).lower()


def as_toml(value: Any) -> str:
    """Return a value as TOML writes it."""
    return str(value).lower() if isinstance(value, bool | int | float) else f'"{as_text(value)}"'


def load(tmp_path: Path, text: str = "", **environ: str) -> Settings:
    """Load settings from a file with `text` and an environment."""
    file = tmp_path / "headrace.toml"
    file.write_text(text, encoding="utf-8")
    return load_settings(environ=environ, file=file)


def read(settings: Settings, section: str, key: str) -> Any:
    """Return one value."""
    table: Any = settings
    for name in filter(None, section.split(".")):
        table = getattr(table, name)
    return getattr(table, key)


@pytest.mark.parametrize(("section", "key", "default"), KEYS, ids=[f"{section}.{key}" for section, key, _ in KEYS])
def test_every_key_is_read_from_the_file(tmp_path: Path, section: str, key: str, default: Any) -> None:
    """A key of headrace.toml replaces its default, and nothing else."""
    value = other_value(section, key, default)
    given = {key: value, **BESIDES.get((section, key), {})}
    lines = [f"{name} = {as_toml(item)}" for name, item in given.items()]
    settings = load(tmp_path, "\n".join([f"[{section}]" if section else "", *lines]))
    assert read(settings, section, key) == value
    changed = {(table, name) for table, name, before in KEYS if read(settings, table, name) != before}
    assert changed == {(section, name) for name in given}


@pytest.mark.parametrize(("section", "key", "default"), KEYS, ids=[f"{section}.{key}" for section, key, _ in KEYS])
def test_every_key_is_read_from_the_environment(tmp_path: Path, section: str, key: str, default: Any) -> None:
    """`HEADRACE_SECTION_KEY` replaces the default, and wins over the file."""
    value = other_value(section, key, default)
    given = {key: value, **BESIDES.get((section, key), {})}
    table = section.replace(".", "_")
    environ = {"_".join(filter(None, ("HEADRACE", table, name))).upper(): as_text(item) for name, item in given.items()}
    in_file = "" if default is None or isinstance(default, str) else f"{key} = {as_toml(default)}"
    settings = load(tmp_path, f"[{section}]\n{in_file}" if section else in_file, **environ)
    assert read(settings, section, key) == value


QUEUES = """
[queues.llm]
concurrency = 20
rate_limit = "30/m"
burst = 2
fair = "batch"
max_waiting = 1000
on_full = "wait"
wait_timeout = "5s"
alarm_size = 100
alarm_age = "5m"
max_slots = 100
min_slots = 10
start_slots = 20
grow_above = 500
shrink_below = 50

[queues."q.2"]
"""


def test_queues_are_tables_by_their_names(tmp_path: Path) -> None:
    """`[queues.NAME]` takes every option of `app.queue`, and what is not given is left to the code."""
    queues = load(tmp_path, QUEUES).queues
    assert QueueRule.parse("llm", **queues["llm"].options()) == QueueRule.parse(
        "llm", concurrency=20, rate_limit="30/m", burst=2, fair="batch", max_waiting=1000, on_full="wait",
        wait_timeout="5s", alarm_size=100, alarm_age="5m", max_slots=100, min_slots=10, start_slots=20, grow_above=500,
        shrink_below=50,
    )  # fmt: skip
    assert queues["q.2"].options() == {}
    assert set(queues["llm"].options()) == set(QueueOptions.__annotations__)


@pytest.mark.parametrize(
    ("environ", "section", "key", "value"),
    [
        ({"HEADRACE_URL": "postgresql://db/a"}, "queue", "url", "postgresql://db/a"),
        ({"HEADRACE_URL": "postgresql://db/a", "HEADRACE_QUEUE_URL": "postgresql://db/b"}, "queue", "url",
         "postgresql://db/b"),
        ({"HEADRACE_URL": "memory://"}, "queue", "type", "memory"),
        ({"OPENAI_MODEL": "m"}, "llm", "model", "m"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1/v1"}, "llm", "base_url", "http://127.0.0.1/v1"),
        ({"OPENAI_API_KEY": "k"}, "llm", "api_key", "k"),
        ({"OPENAI_API_KEY": "k", "HEADRACE_LLM_API_KEY": "mine"}, "llm", "api_key", "mine"),
        ({"HEADRACE_WORKER_POLL_INTERVAL": "1.5"}, "worker", "poll_interval", timedelta(seconds=1.5)),
        ({"HEADRACE_QUEUE_POOLED": "Yes"}, "queue", "pooled", True),
        ({"HEADRACE_WORKER_COUNT": ""}, "worker", "count", 1),
    ],
)  # fmt: skip
def test_names_and_spellings_that_are_understood(
    tmp_path: Path, environ: dict[str, str], section: str, key: str, value: Any
) -> None:
    """Short and foreign names stand behind the own ones; numbers are seconds; an empty variable is none."""
    assert read(load(tmp_path, **environ), section, key) == value


MISTAKES = {
    "an unknown table": ("[quue]", {}, ["unknown key quue", "did you mean 'queue'"]),
    "an unknown key": ("[worker]\nconcurency = 4", {}, ["[worker] concurency", "did you mean 'concurrency'"]),
    "an unknown key like none": ("[worker]\nzzz = 4", {}, ["[worker] zzz", "known keys:", "poll_interval"]),
    "an unknown variable": ("", {"HEADRACE_WORKER_CONCURENCY": "4"}, ["HEADRACE_WORKER_CONCURENCY",
                                                                     "did you mean HEADRACE_WORKER_CONCURRENCY"]),
    "an unknown variable like none": ("", {"HEADRACE_ZZZZZZZZZ": "4"}, ["HEADRACE_ZZZZZZZZZ", "configuration.md"]),
    "a table that is a value": ("queue = 4", {}, ["queue must be a table", "[queue]"]),
    "text for a number": ("[worker]\ncount = 'two'", {}, ["worker.count", "whole number", "'two'"]),
    "truth for a number": ("[worker]\ncount = true", {}, ["worker.count", "whole number", "True"]),
    "a fraction for a number": ("", {"HEADRACE_WORKER_COUNT": "1.5"}, ["HEADRACE_WORKER_COUNT", "whole number"]),
    "a number for text": ("[queue]\nschema = 4", {}, ["queue.schema", "text in quotes", "4"]),
    "a number for truth": ("[queue]\npooled = 2", {}, ["queue.pooled", "true or false", "2"]),
    "a word for truth": ("", {"HEADRACE_QUEUE_POOLED": "maybe"}, ["HEADRACE_QUEUE_POOLED", "true or false", "maybe"]),
    "a word for a duration": ("[worker]\npoll_interval = 'soon'", {}, ["worker.poll_interval", "90s", "'soon'"]),
    "truth for a duration": ("[worker]\npoll_interval = true", {}, ["worker.poll_interval", "True"]),
    "a negative duration": ("[worker]\nshutdown_grace = -1", {}, ["worker.shutdown_grace", "-1"]),
    "an unknown key of a queue": ("[queues.llm]\nconcurency = 2", {}, ["[queues.llm]", "did you mean 'concurrency'?"]),
    "a queue that is no table": ("[queues]\nllm = 3", {}, ["[queues.llm]", "table"]),
    "queues that are no tables": ("queues = 3", {}, ["[queues.NAME]"]),
    "a queue with a wrong name": ("[queues.'A b']\n", {}, ["[queues.A b]", "must match"]),
    "a cap of nothing": ("[queues.llm]\nconcurrency = 0", {}, ["[queues.llm]", "concurrency", "from 1", "0"]),
    "a rate without a period": ("[queues.llm]\nrate_limit = '30'", {}, ["[queues.llm]", "rate_limit", "30/m", "'30'"]),
    "shares of a wrong kind": ("[queues.llm]\nfair = 'user'", {}, ["[queues.llm]", '"key" or "batch"', "'user'"]),
    "limits on a wrong server": ("[limits]\nurl = 'postgresql://a:hush@db'", {}, ["limits.url", "redis://"]),
    "no wait between polls": ("[worker]\npoll_interval = '0s'", {}, ["worker.poll_interval", "longer than zero"]),
    "no wait between prunes": ("[recovery]\nprune_interval = 0", {}, ["recovery.prune_interval", "longer than zero"]),
    "no process": ("[worker]\ncount = 0", {}, ["worker.count", "at least 1", "0"]),
    "too few connections": ("", {"HEADRACE_QUEUE_MAX_POOL_SIZE": "3"}, ["queue.max_pool_size", "at least 4", "3"]),
    "too many retries": ("[queue]\nmax_retries = 100", {}, ["queue.max_retries", "0 to 99", "100"]),
    "an unknown store": ("[queue]\ntype = 'sqlite'", {}, ["queue.type", "postgres", "memory", "sqlite"]),
    "a store of another kind": ("", {"HEADRACE_URL": "mysql://a:hush@db/app"}, ["queue.url", "postgresql://", "mysql"]),
    "an address that is none": ("[queue]\nurl = 'host=db password=hush'", {}, ["queue.url", "postgresql://"]),
    "a way past the pooler that is none": ("[queue]\nlisten_url = 'db'", {}, ["queue.listen_url", "postgresql://"]),
    "a store of another kind than its URL": ("[queue]\ntype = 'redis'\nurl = 'postgresql://a:hush@db/a'", {},
                                             ["queue.type", "'postgres'", "queue.url"]),
    "a Redis store without its server": ("[queue]\ntype = 'redis'", {}, ["queue.url", "redis://HOST"]),
    "a prefix that would break keys": ("[queue]\nstream_prefix = 'a{b}'", {}, ["queue.stream_prefix", "a{b}"]),
    "a prefix that is also a group's": ("[queue]\nstream_prefix = 'a:b'", {}, ["queue.stream_prefix", "a:b"]),
    "a group that would break keys": ("[queue]\nconsumer_group = ''", {}, ["queue.consumer_group", "1 to 64"]),
    "two stores": ("[queue]\ntype = 'memory'\nurl = 'postgresql://db/a'", {}, ["queue.type", "queue.url"]),
    "a slow heartbeat": ("[worker]\nheartbeat_interval = '5s'", {}, ["worker.heartbeat_interval", "a third of",
                                                                   "visibility_timeout"]),
    "nothing kept by mistake": ("[queue]\nenable_persistence = false", {}, ["enable_persistence",
                                                                         "unsafe_no_persistence = true"]),
    "an unknown style": ("[llm]\nstyle = 'polite'", {}, ["llm.style", "strict_schema", "polite"]),
    "no TOML": ("[queue", {}, ["headrace.toml", "TOML"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "environ", "words"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_is_named_with_its_fix(tmp_path: Path, text: str, environ: dict[str, str], words: list[str]) -> None:
    """A wrong key, type or value stops the start, naming key, rule and value, and never a password."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, **environ)
    message = str(caught.value)
    assert [word for word in words if word not in message] == []
    assert "hush" not in message


def test_a_file_named_by_mistake_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual file may be absent; one that is named may not, nor may it be something else than text."""
    monkeypatch.chdir(tmp_path)
    assert load_settings(environ={}) == Settings()
    with pytest.raises(ConfigError, match=r"HEADRACE_CONFIG names .*mine\.toml"):
        load_settings(environ={"HEADRACE_CONFIG": "mine.toml"})
    (tmp_path / "mine.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"mine\.toml: cannot be read"):
        load_settings(environ={"HEADRACE_CONFIG": "mine.toml"})
    (tmp_path / "mine.toml").write_text("[worker]\ncount = 3\n")
    assert load_settings(environ={"HEADRACE_CONFIG": "mine.toml"}).worker.count == 3


def test_variables_of_others_are_left_alone(tmp_path: Path) -> None:
    """Only variables that begin with HEADRACE_ are ours to refuse."""
    assert load(tmp_path, HEADRACER="1", PATH="/bin", OPENAI_ORG_ID="x") == Settings()


def test_the_url_of_an_app_wins_over_the_settings() -> None:
    """`App(url)` uses that store, whatever else the settings name."""
    elsewhere = Settings(queue=QueueSettings(url="postgresql://db/a"))
    assert App("memory://", settings=elsewhere).settings.queue.type == "memory"
    in_memory = Settings(queue=QueueSettings(type="memory"))
    chosen = App("postgresql://db/b", settings=in_memory).settings.queue
    assert (chosen.type, chosen.url) == ("postgres", "postgresql://db/b")
    assert use_store(elsewhere, "") == elsewhere
    with pytest.raises(ConfigError, match=r"queue\.url must begin with postgresql://"):
        _ = App("mysql://db").settings
    assert App("redis://db", settings=elsewhere).settings.queue.type == "redis"


def test_settings_show_no_secret() -> None:
    """Addresses and keys, which may hold passwords, are left out where settings are shown."""
    secret = "postgresql://app:hush@db/a"
    settings = Settings(queue=QueueSettings(url=secret, listen_url=secret))
    assert "hush" not in repr(settings)


def test_without_a_model_the_local_one_is_meant() -> None:
    """No model, no endpoint and no key mean the local model; any of them means an endpoint."""
    assert load_settings(environ={}, file=Path("missing.toml")).llm_settings().model is None
    for name in ("HEADRACE_LLM_MODEL", "HEADRACE_LLM_BASE_URL", "OPENAI_API_KEY"):
        chosen = load_settings(environ={name: "http://x"}, file=Path("missing.toml")).llm_settings()
        assert chosen.model, name


OPENAI = {"OPENAI_API_KEY": "of-openai", "OPENAI_BASE_URL": "https://eu.api.openai.com/v1"}


@pytest.mark.parametrize("where", ["file", "environment"])
def test_the_account_at_openai_is_given_to_no_other_provider(tmp_path: Path, where: str) -> None:
    """OPENAI_API_KEY and OPENAI_BASE_URL count for the provider "openai" alone; a key of one's own counts for all."""
    text = '[llm]\nprovider = "litellm"\nmodel = "anthropic/small"' if where == "file" else ""
    environ = {} if where == "file" else {"HEADRACE_LLM_PROVIDER": "litellm", "HEADRACE_LLM_MODEL": "anthropic/small"}
    chosen = load(tmp_path, text, **environ, **OPENAI).llm_settings()
    assert (chosen.provider, chosen.api_key, chosen.base_url) == ("litellm", None, None)
    own = load(tmp_path, text, **environ, **OPENAI, HEADRACE_LLM_API_KEY="own").llm_settings()
    assert (own.api_key, own.base_url) == ("own", None)
    assert load(tmp_path, '[llm]\nprovider = "openai"', **OPENAI).llm_settings().api_key == "of-openai"


def key_of(tmp_path: Path, first: str, further: str, **environ: str) -> tuple[str | None, str | None]:
    """Return the key and the endpoint that a further model has."""
    chosen = load(tmp_path, f"[llm]\n{first}\n[llm.models.further]\n{further}", **environ).llm_settings("further")
    return chosen.api_key, chosen.base_url


@pytest.mark.parametrize(
    ("first", "further", "key"),
    [
        ('base_url = "https://a.example/v1"', 'model = "large"', "first"),
        ('base_url = "https://a.example/v1"', 'base_url = "https://A.example:443/v2/"', "first"),
        ('base_url = "https://a.example/v1"', 'base_url = "https://b.example/v1"', None),
        ('base_url = "http://127.0.0.1:8000/v1"', 'base_url = "http://127.0.0.1:8001/v1"', None),
        ('base_url = "https://a.example/v1"', 'base_url = "https://b.example/v1"\napi_key = "own"', "own"),
        ('model = "small"', 'base_url = "https://api.openai.com/v1/"', "first"),
        ('model = "small"', 'base_url = "https://b.example/v1"', None),
        ('model = "small"', 'provider = "litellm"\nmodel = "anthropic/large"', None),
        ('provider = "litellm"\nmodel = "anthropic/small"', 'model = "anthropic/large"', "first"),
        ('provider = "litellm"\nmodel = "anthropic/small"', 'model = "gemini/large"', None),
        ('provider = "litellm"\nmodel = "claude"', 'model = "gpt"', None),
        ('provider = "litellm"\nbase_url = "http://proxy:4000"', 'model = "gemini/large"', "first"),
        ('provider = "litellm"\nmodel = "openai/small"', 'provider = "openai"', None),
    ],
)
def test_a_key_goes_to_no_other_server(tmp_path: Path, first: str, further: str, key: str | None) -> None:
    """A further model takes the key of `[llm]` only where it asks the same server of the same provider."""
    assert key_of(tmp_path, first, further, HEADRACE_LLM_API_KEY="first")[0] == key


def test_a_server_keeps_its_name_in_the_memo_where_it_is_the_same(tmp_path: Path) -> None:
    """`memo_name` goes with the endpoint: a further model at another one is not taken for the first's server."""
    text = """
        [llm]
        base_url = "http://127.0.0.1:8000/v1"
        memo_name = "ours"
        [llm.models.same]
        model = "large"
        [llm.models.other]
        base_url = "http://127.0.0.1:8001/v1"
        [llm.models.litellm]
        provider = "litellm"
        model = "gemini/x"
        """
    settings = load(tmp_path, text)
    named = {name: settings.llm_settings(name).memo_endpoint for name in ("", *settings.models)}
    assert named == {"": "ours", "same": "ours", "other": "127.0.0.1:8001/v1", "litellm": ""}


def test_a_further_model_of_another_provider_takes_no_endpoint_of_the_first(tmp_path: Path) -> None:
    """LiteLLM is not sent to the first model's server; a model at "openai" takes the account of the environment."""
    first = 'base_url = "https://a.example/v1"'
    assert key_of(tmp_path, first, 'provider = "litellm"\nmodel = "gemini/x"', **OPENAI) == (None, None)
    found = key_of(tmp_path, 'provider = "litellm"\nmodel = "gemini/x"', 'provider = "openai"', **OPENAI)
    assert found == ("of-openai", "https://eu.api.openai.com/v1")
    elsewhere = 'provider = "openai"\nbase_url = "http://127.0.0.1:1/v1"'
    assert key_of(tmp_path, 'provider = "litellm"\nmodel = "gemini/x"', elsewhere, **OPENAI)[0] is None


def test_further_models_inherit_the_endpoint_and_nothing_of_quota_and_price(tmp_path: Path) -> None:
    """`[llm.models.NAME]` takes from `[llm]` what it does not give of the endpoint."""
    settings = load(
        tmp_path,
        """
        [llm]
        model = "small"
        base_url = "http://127.0.0.1:9/v1"
        requests_per_minute = 60
        input_price = 1
        output_price = 2
        escalate_to = "strong"
        [llm.models.strong]
        model = "large"
        tokens_per_minute = 1000
        """,
        HEADRACE_LLM_API_KEY="secret",
    )
    small, strong = settings.llm_settings(), settings.llm_settings("strong")
    assert (small.escalate_to, small.pool_name, small.limits.requests_per_minute) == ("strong", "openai:small", 60)
    assert (strong.model, strong.base_url, strong.api_key) == ("large", "http://127.0.0.1:9/v1", "secret")
    assert (strong.limits.requests_per_minute, strong.limits.tokens_per_minute) == (None, 1000)
    assert (strong.price, strong.escalate_to, strong.pool_name) == (None, None, "openai:large")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[llm]\ncharge = "free"', "llm.charge must be one of max_tokens, actual, split, uncached"),
        ("[llm]\ninput_price = 1", "llm.input_price and output_price must be given together"),
        ('[llm.models.Strong]\nmodel = "large"', "the name of [llm.models.Strong] must match"),
        ('[llm.models.strong]\nmodle = "large"', "unknown key [llm.models.strong] modle; did you mean 'model'?"),
        ("[llm]\nmodels = 3", "write [llm.models.NAME]"),
        ('[models.strong]\nmodel = "large"', "unknown key models"),
    ],
)
def test_mistakes_about_models_are_named(tmp_path: Path, text: str, says: str) -> None:
    """A wrong quota, price or name stops the start with the key and the rule."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert says in str(caught.value)
