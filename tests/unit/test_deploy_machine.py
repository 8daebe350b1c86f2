"""The image and the units of systemd: what they start, as whom, how they stop, and what they leave out."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from headrace.cli.working import CLOSING_SECONDS
from headrace.settings import load_settings
from headrace.stores.postgres.database import SCRIPT_TIMEOUT
from tests.unit.deploy_files import DEPLOY, KUBERNETES, ROOT, SYSTEMD, documents, seconds, unit

UNITS = sorted(file.name for file in SYSTEMD.glob("*.service"))
LASTING = [name for name in UNITS if "migrate" not in name]
#: Where the units expect the program.
PROGRAM = "/opt/headrace/bin/headrace"
DOCKERFILE = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"))
STAGES = [stage.splitlines() for stage in re.split(r"^(?=FROM )", DOCKERFILE, flags=re.MULTILINE)[1:]]
COMPILERS = re.compile(r"\b(?:gcc|g\+\+|build-essential|cargo|rustc|apt-get|apk)\b")


def test_the_units_are_those_of_the_processes() -> None:
    """One for each thing that compose and Kubernetes start."""
    assert UNITS == [
        "headrace-migrate.service", "headrace-relay.service", "headrace-service.service", "headrace-worker@.service",
    ]  # fmt: skip


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    """Where there is systemd-analyze: no key is unknown and no value wrong, and what they may do is little."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    for name in UNITS:
        text = (SYSTEMD / name).read_text(encoding="utf-8").replace(PROGRAM, "/bin/true")
        (tmp_path / name.replace("@.", "@default.")).write_text(text, encoding="utf-8")
    files = sorted(map(str, tmp_path.glob("*.service")))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *files], capture_output=True, text=True, check=False, timeout=60
    )
    said = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "headrace" in line]
    assert (done.returncode, said) == (0, []), done.stderr
    asked = ["systemd-analyze", "security", "--offline=true", "--threshold=25", *files]
    exposed = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
    assert exposed.returncode == 0, exposed.stdout[-400:]


@pytest.mark.parametrize("name", LASTING)
def test_jobs_may_end_before_a_unit_is_killed(name: str) -> None:
    """SIGTERM to the main process alone, time enough, and a start again unless the settings are wrong."""
    said = unit(name)
    there = {"HEADRACE_EVENTS_KAFKA_SERVERS": "kafka:9092"}
    grace = load_settings(environ=there, file=DEPLOY / "headrace.toml").worker.shutdown_grace.total_seconds()
    assert seconds(said["Service.TimeoutStopSec"][0]) >= grace + CLOSING_SECONDS
    assert (said["Service.KillSignal"], said["Service.KillMode"]) == (["SIGTERM"], ["mixed"])
    assert (said["Service.Restart"], said["Service.RestartPreventExitStatus"]) == (["always"], ["2"])
    assert said["Install.WantedBy"] == ["multi-user.target"]


def test_a_migration_has_the_time_that_it_may_take() -> None:
    """An index of a large table is not given up by what started it before it is by Headrace itself."""
    [job] = documents(KUBERNETES / "base" / "migrate.yaml")
    page = (ROOT / "docs" / "howto" / "deploy.md").read_text(encoding="utf-8")
    [waited] = re.findall(r"wait --for=condition=complete --timeout=(\S+) job/headrace-migrate", page)
    allowed = {
        "kubernetes": job["spec"]["activeDeadlineSeconds"],
        "systemd": seconds(unit("headrace-migrate.service")["Service.TimeoutStartSec"][0]),
        "docs": seconds(waited),
    }
    assert allowed == dict.fromkeys(allowed, SCRIPT_TIMEOUT)


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_is_nobody_and_has_no_secret(name: str) -> None:
    """An account of its own, a file system that it cannot write, and secrets from a file that root alone reads."""
    said = unit(name)
    assert (said["Service.User"], said["Service.ProtectSystem"]) == (["headrace"], ["strict"])
    assert (said["Service.NoNewPrivileges"], said["Service.CapabilityBoundingSet"]) == (["yes"], [""])
    assert said["Service.EnvironmentFile"] == ["/etc/headrace/headrace.env"]
    assert not re.search("PASSWORD|SECRET|KEY|URL", " ".join(said["Service.Environment"]))
    assert said["Service.ExecStart"][0].startswith(f"{PROGRAM} ")


def test_nothing_is_compiled_in_the_image_and_all_is_pinned() -> None:
    """Wheels by their hashes; the last stage installs nothing."""
    build, last = ("\n".join(stage) for stage in STAGES)
    assert "--require-hashes --only-binary :all: -r requirements/container.txt" in build
    assert not COMPILERS.search(DOCKERFILE)
    assert "pip" not in last.replace("/opt", "")
    pinned = (ROOT / "requirements" / "container.txt").read_text(encoding="utf-8")
    assert {"uvicorn", "confluent-kafka", "hiredis", "obstore"} <= set(re.findall(r"^([\w-]+)==", pinned, re.MULTILINE))


def test_the_image_is_nobody_and_hears_sigterm() -> None:
    """It says how it is, too: of the service by its own probe."""
    said = dict(line.partition(" ")[::2] for line in STAGES[-1] if line and not line.startswith("#"))
    assert (said["USER"], said["STOPSIGNAL"], said["EXPOSE"]) == ("10001:10001", "SIGTERM", "8400")
    assert said["HEALTHCHECK"].endswith('CMD ["check-process", "service"]')
    assert said["CMD"] == '["headrace", "serve", "--host", "0.0.0.0", "--json"]'


def test_what_is_copied_is_there_and_nothing_else_is_sent() -> None:
    """The context has what the build copies, by a list of what is let in; no folder of development is in it."""
    listed = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    admitted = {line[1:] for line in listed if line.startswith("!")}
    assert next(line for line in listed if line and line[0] not in "#!") == "*"
    lines = [line.split()[1:-1] for stage in STAGES for line in stage if line.startswith("COPY ")]
    copied = {word for words in lines if "--from=build" not in words for word in words if not word.startswith("--")}
    assert copied == admitted
    assert [name for name in copied if not (ROOT / name).exists()] == []
