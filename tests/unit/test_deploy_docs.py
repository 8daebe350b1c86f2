"""The pages on deploying show commands of files, services, units and settings that there are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.cli.root import cli
from headrace.settings import load_settings
from tests.unit.deploy_files import DEPLOY, KUBERNETES, ROOT, SYSTEMD, compose, example_environment, manifests
from tests.unit.test_docs_commands import FENCED, wrong_command

PAGES = [
    DEPLOY / "README.md",
    *(ROOT / "docs" / "howto" / f"{name}.md" for name in ("deploy", "backup-and-restore", "upgrade")),
]
PROGRAMS = ("docker", "kubectl", "systemctl", "systemd-run", "install", "cp")
INLINE = re.compile(rf"`((?:{'|'.join(PROGRAMS)}) [^`]+)`")
FILLED = example_environment() | {"POSTGRES_PASSWORD": "s3cret", "VALKEY_PASSWORD": "s3cret"}


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of the programs that deploy, in blocks and within lines."""
    blocks = [line.strip() for block in FENCED.findall(text) for line in block.splitlines()]
    lines = [part for line in blocks for part in line.split("&&")]
    for line in [*lines, *INLINE.findall(text)]:
        words = shlex.split(line, comments=True)
        if words and words[0] in PROGRAMS:
            yield words


def mistakes(words: list[str]) -> list[str]:
    """Return what a command names that there is not."""
    return [*wrong_files(words), *wrong_names(words), *wrong_settings(words), *wrong_headrace(words)]


def wrong_files(words: list[str]) -> list[str]:
    """Return files of this repository that are not there."""
    named = [word for word in words if word.startswith("deploy/") and not word.startswith("deploy/headrace-")]
    made = {"deploy/.env"}
    return [name for name in named if name not in made and not list(ROOT.glob(name))]


def wrong_names(words: list[str]) -> list[str]:
    """Return services, deployments, jobs, labels and units that are not there."""
    match words:
        case ["docker", "compose", "-f", _, "--profile", profile, *_]:
            return (
                [] if [profile] in [one.get("profiles") for one in compose(FILLED)["services"].values()] else [profile]
            )
        case ["docker", "compose", "-f", _, "run", "--rm", service, *_] | [
            "docker",
            "compose",
            "-f",
            _,
            "build",
            service,
        ]:
            return [] if service in compose(FILLED)["services"] else [service]
        case ["kubectl", *_]:
            return wrong_objects(words)
        case ["systemctl", "start" | "enable" | "restart", *names]:
            units = [re.sub(r"@.*", "@", name) for name in names if not name.startswith("--")]
            return [name for name in units if not (SYSTEMD / f"{name}.service").exists()]
    return []


def wrong_objects(words: list[str]) -> list[str]:
    """Return objects of Kubernetes that no manifest makes, and labels that none has."""
    made = list(manifests(KUBERNETES / "base"))
    kinds = {"deploy": "Deployment", "job": "Job"}
    known = {
        f"{short}/{one['metadata']['name']}" for short, kind in kinds.items() for one in made if one["kind"] == kind
    }
    named = [word for word in words if re.match(r"(?:deploy/headrace-|job/)", word)]
    labels = [words[place + 1] for place, word in enumerate(words) if word == "-l"]
    there = {f"{name}={value}" for one in made for name, value in one["metadata"]["labels"].items()}
    return [name for name in named if name not in known] + [label for label in labels if label not in there]


def wrong_settings(words: list[str]) -> list[str]:
    """Return variables of settings that nobody reads."""
    names = [match[1] for word in words if (match := re.search(r"\b(HEADRACE_[A-Z_]+)=", word))]
    return [name for name in names if not is_setting(name)]


def is_setting(name: str) -> bool:
    """Whether a variable is one that the start does not refuse; its value is another matter."""
    try:
        load_settings(environ={name: ""}, file=Path("none"))
    except Exception as error:
        return "unknown environment variable" not in str(error)
    return True


def wrong_headrace(words: list[str]) -> list[str]:
    """Return what is wrong with the command of Headrace that is run within another one."""
    for place, word in enumerate(words):
        if word in ("headrace", "/opt/headrace/bin/headrace") and words[place - 1] not in (
            "namespace",
            "generic",
            "-n",
        ):
            return wrong_command(cli, words[place + 1 :])
    return []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_name_what_there_is(page: Path) -> None:
    """Whoever copies them finds every file, service, object, unit and setting."""
    found = list(commands(page.read_text(encoding="utf-8")))
    assert {" ".join(words): wrong for words in found if (wrong := mistakes(words))} == {}


def test_the_pages_show_how_to_start() -> None:
    """On each of the three."""
    shown = {tuple(words[:2]) for page in PAGES for words in commands(page.read_text(encoding="utf-8"))}
    assert shown >= {("docker", "compose"), ("docker", "build"), ("kubectl", "apply"), ("systemctl", "enable")}


def test_what_there_is_not_is_found() -> None:
    """The check itself can fail."""
    text = """
```sh
docker compose -f deploy/compost.yaml run --rm migration headrace tokens create x
kubectl apply -k deploy/kubernetes/bass -l headrace/step=last
kubectl create secret generic headrace --from-literal=HEADRACE_ULR=x
systemctl start headrace-migrate headrace-workers@a
install -m 644 deploy/nothing-*.service /etc
```
`kubectl rollout status deploy/headrace-serving`
"""
    assert [mistakes(words) for words in commands(text)] == [
        ["deploy/compost.yaml", "migration", "tokens"], ["deploy/kubernetes/bass", "headrace/step=last"],
        ["HEADRACE_ULR"], ["headrace-workers@"], ["deploy/nothing-*.service"], ["deploy/headrace-serving"],
    ]  # fmt: skip
