"""The compose file: it fits its schema, starts things in order, hides secrets, and lets nobody in from elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from headrace.cli.working import CLOSING_SECONDS
from headrace.service.serving import GRACE_SECONDS
from headrace.settings import load_settings
from tests.unit.deploy_files import DEPLOY, MissingVariableError, compose, example_environment, seconds

#: What whoever fills .env in has there.
FILLED = {name: value or "s3cret" for name, value in example_environment().items()}
SCHEMA = Path(__file__).parents[1] / "schemas" / "compose.json"
OURS = {"migrate", "service", "worker", "relay"}


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """The services of the compose file."""
    found: dict[str, Any] = compose(FILLED)["services"]
    return found


def test_it_fits_the_schema_of_compose() -> None:
    """And a key that nobody knows does not."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    whole = compose(FILLED)
    jsonschema.validate(whole, schema)
    whole["services"]["worker"]["stop_grace"] = "1s"
    with pytest.raises(jsonschema.ValidationError, match="stop_grace"):
        jsonschema.validate(whole, schema)


def test_compose_itself_takes_it() -> None:
    """Where there is `docker compose`: it needs no engine to read a file."""
    command = ["docker", "compose"]
    try:
        there = subprocess.run([*command, "version"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        there = False
    if not there:
        pytest.skip("docker compose is not installed")
    file = ["-f", str(DEPLOY / "compose.yaml"), "--env-file", "/dev/null", "--profile", "monitoring"]
    done = subprocess.run(
        [*command, *file, "config", "--quiet"],
        env={**os.environ, **FILLED},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_nothing_starts_before_what_it_needs(services: dict[str, Any]) -> None:
    """Who works waits for the migration, that for the database; and every server says when it is well."""
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in OURS - {"migrate"}:
        needs = {what: how["condition"] for what, how in services[name]["depends_on"].items()}
        assert needs.pop("migrate") == "service_completed_successfully"
        assert needs == dict.fromkeys(("postgres", "valkey", "kafka"), "service_healthy")
    for name, service in services.items():
        assert name == "migrate" or service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL"), name
    assert services["migrate"]["restart"] == "no", "it runs once"


def test_jobs_may_end_before_a_container_is_killed(services: dict[str, Any]) -> None:
    """The time to stop is longer than the grace of the settings that the containers have."""
    there = {"HEADRACE_EVENTS_KAFKA_SERVERS": "kafka:9092"}
    settings = load_settings(environ=there, file=DEPLOY / "headrace.toml")
    needed = settings.worker.shutdown_grace.total_seconds() + CLOSING_SECONDS
    for name in OURS:
        assert seconds(services[name]["stop_grace_period"]) >= needed, name
    assert seconds(services["service"]["stop_grace_period"]) > GRACE_SECONDS


def test_only_this_machine_reaches_it(services: dict[str, Any]) -> None:
    """Every published port is one of loopback; stores publish none and have a network without a way out."""
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert ports
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []
    for name in ("postgres", "valkey", "kafka"):
        assert ("ports" in services[name], services[name]["networks"]) == (False, ["stores"])
    assert compose(FILLED)["networks"]["stores"]["internal"] is True


def test_secrets_come_from_the_environment_and_from_nowhere_else() -> None:
    """No password stands in the file; one that is not given is asked for by its name before anything starts."""
    named = {secret["environment"] for secret in compose(FILLED)["secrets"].values()}
    assert named <= set(example_environment())
    assert [name for name, value in example_environment().items() if value and name in named] == []
    for name in ("POSTGRES_PASSWORD", "VALKEY_PASSWORD"):
        with pytest.raises(MissingVariableError, match=name):
            compose({**FILLED, name: ""})
    marked = {name: f"s3cret-{name}" for name in named}
    for name, service in compose({**FILLED, **marked})["services"].items():
        seen = json.dumps({key: value for key, value in service.items() if key != "environment"})
        assert "s3cret" not in seen, f"{name}: a command line or a label is seen by everybody"


def test_no_read_only_container_has_a_secret_of_the_environment(services: dict[str, Any]) -> None:
    """Compose copies such a secret into the container, and would refuse to start one whose root is read-only."""
    secrets = compose(FILLED)["secrets"]
    refused = [
        name for name, service in services.items()
        if service.get("read_only") and any("file" not in secrets[one] for one in service.get("secrets", ()))
    ]  # fmt: skip
    assert refused == []


def test_containers_can_do_little(services: dict[str, Any]) -> None:
    """Ours have no capability, a read-only root and bounds; so has every server a bound of memory."""
    for name in OURS:
        service = services[name]
        assert (service["cap_drop"], service["read_only"]) == (["ALL"], True), name
        assert service["security_opt"] == ["no-new-privileges:true"]
    for name, service in services.items():
        assert {"cpus", "memory"} <= set(service["deploy"]["resources"]["limits"]), name
        image, _, tag = service["image"].partition(":")
        assert tag and tag != "latest", f"{name}: {image} of any version"


def test_the_settings_are_ones_that_there_are(services: dict[str, Any]) -> None:
    """Every variable that a container gets is known, and file and environment together make settings."""
    for name in OURS:
        given = {key: value for key, value in services[name]["environment"].items() if value is not None}
        file = next(one for one in services[name]["volumes"] if one.endswith(f"{given['HEADRACE_CONFIG']}:ro"))
        settings = load_settings(environ=given | {"HEADRACE_CONFIG": str(DEPLOY / file.partition(":")[0])})
        assert (settings.queue.type, settings.events.bus) == ("postgres", "kafka")
        assert settings.queue.url == "postgresql://headrace:s3cret@postgres:5432/headrace"
        assert not settings.worker.relay_enabled
