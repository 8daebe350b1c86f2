"""`[ray]`: every key, what is refused, and what goes along to the nodes of a cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest
from ray._private import services
from ray._private.runtime_env import packaging

from headrace import App
from headrace.canvas import signature
from headrace.cli.farm_checks import farm_findings
from headrace.cli.finding import Status
from headrace.events import Agent
from headrace.model.errors import ConfigError
from headrace.model.luggage import Luggage
from headrace.ports.executor import Farm
from headrace.ray_settings import RayResources, parse_size
from headrace.settings import Settings, load_settings
from headrace.wiring import ray as wiring
from headrace.wiring.farm import farms_out, make_farm
from headrace.wiring.farms import Farms
from headrace.wiring.ray_figures import expose_ray, ray_figures
from headrace.wiring.ray_luggage import pack

STORE = {"HEADRACE_URL": "postgresql://user:secret@host/db"}
ON_RAY = '[worker]\nexecutor = "ray"\n'
WHOLE = """
[worker]
executor = "ray"
[queues.here]
executor = "local"
[ray]
address = "10.0.0.1:6379"
namespace = "shop"
working_dir = "."
py_modules = ["."]
pip = ["rich==14"]
env_vars = ["SHOP_KEY"]
[ray.resources.llm]
num_cpus = 0.5
num_gpus = 0.25
memory = "2GB"
custom = ["ssd=1", "tpu=0.5"]
"""


def settings(text: str, tmp_path: Path, **environ: str) -> Settings:
    """Read settings."""
    file = tmp_path / "headrace.toml"
    file.write_text(text)
    return load_settings(environ=environ, file=file)


#: Found by other processes.
app = App(settings=Settings())


@app.task
async def work(number: int) -> int:
    """Do nothing."""
    return number


def farm_of(app: App) -> Farm | None:
    """Return the farm of an app, with a store that nobody asks."""
    return make_farm(app, app.settings, None)  # type: ignore[arg-type]


def test_every_key_is_read(tmp_path: Path) -> None:
    """From the file, and, but for tables of queues, from the environment, which wins."""
    ray = settings(WHOLE, tmp_path, HEADRACE_RAY_ADDRESS="auto", HEADRACE_RAY_ENV_VARS="A, B").ray
    environ = {"HEADRACE_RAY_PIP": "a,b", "HEADRACE_RAY_PY_MODULES": "c", "HEADRACE_RAY_WORKING_DIR": "d"}
    other = settings(WHOLE, tmp_path, **environ).ray
    assert (other.pip, other.py_modules, other.working_dir) == (("a", "b"), ("c",), "d")
    assert (ray.address, ray.namespace, ray.working_dir, ray.py_modules) == ("auto", "shop", ".", (".",))
    assert (ray.pip, ray.env_vars) == (("rich==14",), ("A", "B"))
    amounts = {"CPU": 0.5, "GPU": 0.25, "memory": 2e9, "ssd": 1.0, "tpu": 0.5}
    assert (ray.amounts("llm"), ray.amounts("other")) == (amounts, {"CPU": 1.0})


def test_a_queue_says_where_it_runs(tmp_path: Path) -> None:
    """A queue's own word wins over that of `[worker]`; the engine's queues run here, whatever is said."""
    read = settings(WHOLE, tmp_path)
    assert [name for name in ("default", "here", "llm", "workflows", "nodes") if farms_out(read, name)] == [
        "default", "llm",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[ray]\naddress = "ray://host:10001"', "ray.address cannot be ray://…, as a worker must be a node"),
        ('[ray]\naddress = "host"', "ray.address must be \"auto\" or HOST:PORT, with a port .*, got 'host'"),
        ('[ray]\naddress = "host:0"', "ray.address must be .* from 1 to 65535, got 'host:0'"),
        ('[ray]\naddress = "host:65536"', "ray.address must be .* from 1 to 65535, got 'host:65536'"),
        ('[ray]\naddress = "::1:6379"', "ray.address must be"),
        ('[ray]\naddress = "a..b:6379"', "ray.address must be"),
        ('[ray]\nnamespace = "a b"', "ray.namespace must be 1 to 64"),
        ('[ray]\nenv_vars = ["KEY=secret"]', "ray.env_vars must be names of environment variables"),
        ("[ray]\nadress = 1", r"unknown key \[ray\] adress; did you mean 'address'"),
        ("[ray]\nresources = 1", r"ray.resources must hold a table for each name"),
        ("[ray.resources.llm]\nnum_cpus = 0", "ray.resources.llm: num_cpus must be at least 0.0001, got 0.0"),
        ("[ray.resources.llm]\nnum_cpus = 0.00001", "num_cpus must be at least 0.0001, got 1e-05"),
        ("[ray.resources.llm]\nnum_gpus = inf", "num_gpus must be .* got inf"),
        ("[ray.resources.llm]\nnum_gpus = nan", "num_gpus must be .* got nan"),
        ("[ray.resources.llm]\nnum_gpus = 0.00001", "num_gpus must be .* got 1e-05"),
        (
            "[ray.resources.llm]\nnum_gpus = 1.5",
            "ray.resources.llm: num_gpus must be 0, a share from 0.0001 to 1, or a",
        ),
        ("[ray.resources.llm]\nnum_gpus = -1", "num_gpus must be"),
        ('[ray.resources.llm]\nmemory = "2 loads"', "ray.resources.llm: memory must be a size such as"),
        ('[ray.resources.llm]\ncustom = ["GPU=1"]', "no name that has a key of its own, got 'GPU=1'"),
        ('[ray.resources.llm]\ncustom = ["ssd=1.5"]', "a share from 0.0001 to 1 or a whole number, got 'ssd=1.5'"),
        ('[ray.resources.llm]\ncustom = ["ssd=0.00001"]', "or a whole number, got 'ssd=0.00001'"),
        ('[ray.resources.llm]\ncustom = ["ssd"]', "got 'ssd'"),
        ("[ray.resources.llm]\ncpus = 1", r"unknown key \[ray.resources.llm\] cpus"),
        ('[ray.resources."a b"]\nnum_cpus = 1', r"the name of \[ray.resources.a b\]"),
    ],
)
def test_wrong_settings_name_key_and_fix(text: str, message: str, tmp_path: Path) -> None:
    """They stop the start, and what may be a secret is not repeated."""
    with pytest.raises(ConfigError, match=message) as caught:
        settings(text, tmp_path)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("text", "size"), [("7", 7), ("1 KiB", 1024), ("2GB", 2 * 10**9), ("0.5MiB", 512 * 1024)])
def test_sizes(text: str, size: int) -> None:
    """Of thousands and of 1,024s."""
    assert parse_size("memory", text) == size


def test_a_cluster_needs_a_store_and_jobs_that_it_can_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory store, tasks that take jobs together or that nobody finds, and folders that are not, are refused."""
    read = settings('[worker]\nexecutor = "ray"', tmp_path, **STORE)
    with pytest.raises(ConfigError, match="use PostgreSQL or Redis, not memory"):
        farm_of(App("memory://", settings=read))
    with pytest.raises(ConfigError, match="write `app = App\\(\\)` into a module"):
        farm_of(App(settings=read))
    monkeypatch.setattr(app, "settings", read)
    farm = farm_of(app)
    assert farm is not None
    assert (farm.serves("llm"), farm.serves("workflows")) == (True, False)
    lost = settings('[worker]\nexecutor = "ray"\n[ray]\nworking_dir = "/none"', tmp_path, **STORE)
    with pytest.raises(ConfigError, match=r"ray\.working_dir must be a folder, or the URI of a package"):
        farm_of(App(settings=lost))


def test_tasks_that_cannot_run_there_are_refused(tmp_path: Path) -> None:
    """With the fix."""
    nested = App(settings=settings('[worker]\nexecutor = "ray"', tmp_path, **STORE))

    @nested.task(queue="embed", batch_size=8)
    async def embed(texts: list[str]) -> list[int]:
        return [len(text) for text in texts]

    with pytest.raises(ConfigError, match=r'write executor = "local" into \[queues.embed\]'):
        farm_of(nested)
    nested = App(settings=nested.settings)

    @nested.task
    async def inner() -> None: ...

    with pytest.raises(ConfigError, match="no other process finds it: move it to the top level"):
        farm_of(nested)


def test_two_farms_are_one_to_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each queue has its own."""
    text = '[queues.a]\nexecutor = "ray"\n[queues.b]\nexecutor = "celery"'
    read = settings(text, tmp_path, HEADRACE_CELERY_BROKER_URL="redis://broker.example", **STORE)
    monkeypatch.setattr(app, "settings", read)
    farm = farm_of(app)
    assert isinstance(farm, Farms)
    assert [type(farm._of(name)).__name__ for name in "ab"] == ["RayExecutor", "CeleryExecutor"]
    assert (farm.serves("a"), farm.serves("b"), farm.serves("c")) == (True, True, False)
    asked: list[tuple[str, object]] = []
    for name in "ab":
        one = farm._of(name)
        monkeypatch.setattr(one, "want", lambda queue, slots: asked.append((queue, slots)))
        monkeypatch.setattr(one, "room", lambda queue, taken: asked.append((queue, dict(taken))) or 3)
    farm.want("a", 2)
    farm.want("b", 3)
    assert (farm.room("a", {"a": 1, "b": 2}), asked) == (3, [("a", 2), ("b", 3), ("a", {"a": 1})])


def test_what_ray_refuses_stops_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By its own rules, before anything is claimed; a table of no queue is told."""
    with pytest.raises(ConfigError, match=r"ray\.resources\.default: Ray refuses 1 CPU, 3 TPU: .*chip"):
        wiring._check_needs(settings(f'{ON_RAY}[ray.resources.default]\ncustom = ["TPU=3"]', tmp_path), app.registry)
    with caplog.at_level("WARNING", "headrace.ray"):
        wiring._check_needs(settings(f"{ON_RAY}[ray.resources.defualt]\nnum_cpus = 2", tmp_path), app.registry)
    assert "[ray.resources.defualt] counts for nothing" in caplog.text


async def test_figures_of_a_cluster_need_no_code_of_the_worker(tmp_path: Path) -> None:
    """Who reads them may be on a machine without it; what is wrong costs the other figures nothing."""
    text = '[worker]\nexecutor = "ray"\n[ray]\naddress = "127.0.0.1:1"\nworking_dir = "/no/such/folder"'
    assert await ray_figures(settings(text, tmp_path, **STORE)) == expose_ray(None)


def test_what_goes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Settings of Headrace, what is named, and where the app is; nothing of it is in what Ray logs, or in a repr."""
    monkeypatch.setenv("SHOP_KEY", "secret")
    monkeypatch.setenv("HEADRACE_URL", STORE["HEADRACE_URL"])
    read = settings(WHOLE, tmp_path)
    luggage = pack(app, read)
    assert luggage.app == f"{__name__}:app"
    assert luggage.modules == (__name__,)
    assert (luggage.environ["SHOP_KEY"], luggage.environ["HEADRACE_URL"]) == ("secret", STORE["HEADRACE_URL"])
    assert "PATH" not in luggage.environ
    assert luggage.environ["HEADRACE_DIRECTORY"] == str(Path(".headrace").resolve())
    assert "HEADRACE_BLOB_STORAGE_PATH" not in luggage.environ
    named = pack(app, settings('blob_storage.path = "large"', tmp_path, **STORE)).environ
    assert named["HEADRACE_BLOB_STORAGE_PATH"] == str(Path("large").resolve())
    assert "secret" not in repr(luggage)
    assert Luggage.parse(luggage.text) == luggage
    assert (luggage.folder, pack(app, Settings()).folder) == ("", str(Path.cwd()))
    with caplog.at_level("WARNING", "headrace.ray"):
        pack(app, settings('[ray]\nenv_vars = ["SHOP_NONE"]', tmp_path, **STORE))
    assert "names SHOP_NONE, which this worker does not have" in caplog.text
    own = {"excludes": ["/.headrace/"]}
    assert wiring._runtime_env(read) == {"working_dir": ".", **own, "py_modules": ["."], "pip": ["rich==14"]}
    assert wiring._runtime_env(Settings()) == {}


def test_what_a_machine_keeps_for_itself_is_not_copied(tmp_path: Path) -> None:
    """The token of a local cluster, and an embedded database, by the rules that Ray itself reads them with."""
    (tmp_path / "code" / ".headrace").mkdir(parents=True)
    (tmp_path / "code" / ".headrace" / "ray.token").write_text("secret")
    (tmp_path / "code" / "jobs.py").write_text("")
    text = f'directory = "{tmp_path}/code/.headrace"\n[ray]\nworking_dir = "{tmp_path}/code"'
    env = wiring._runtime_env(settings(text, tmp_path))
    packaging.create_package(str(tmp_path / "code"), tmp_path / "code.zip", True, excludes=env["excludes"])
    assert ZipFile(tmp_path / "code.zip").namelist() == ["jobs.py"]
    elsewhere = f'directory = "{tmp_path}/own"\n[ray]\nworking_dir = "{tmp_path}/code"'
    assert "excludes" not in wiring._runtime_env(settings(elsewhere, tmp_path))
    itself = settings(f'directory = "{tmp_path}/code"\n[ray]\nworking_dir = "{tmp_path}/code"', tmp_path, **STORE)
    with pytest.raises(ConfigError, match=r"ray\.working_dir must be another folder than `directory`"):
        wiring.check_site(itself)


def test_modules_of_workflows_and_agents_go_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of the cluster has to know what tasks start by name, and which agents the actor is to run."""
    own = App(settings=Settings())
    shop = ModuleType("shop_of_ray")
    shop.app = own  # type: ignore[attr-defined]
    flows, agents, other = ModuleType("shop_flows"), ModuleType("shop_agents"), ModuleType("shop_other")
    flows.digest = own.workflow("digest", signature("fetch").s())  # type: ignore[attr-defined]
    agents.namer = Agent(own, "namer")  # type: ignore[attr-defined]
    other.number = 3  # type: ignore[attr-defined]
    for module in (shop, flows, agents, other):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    luggage = pack(own, settings(WHOLE, tmp_path))
    assert (luggage.app, luggage.modules) == ("shop_of_ray:app", ("shop_agents", "shop_flows"))


def test_ray_is_imported_only_where_a_queue_runs_there() -> None:
    """Neither by the package, nor by the worker's wiring."""
    code = "import sys, json, headrace, headrace.wiring.farm_explaining; print(json.dumps('ray' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) is False


def test_amounts_of_nothing_are_not_asked() -> None:
    """A GPU of zero, or memory of none, is no resource."""
    assert RayResources().amounts() == {"CPU": 1.0}


async def test_a_cluster_that_is_away_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`headrace doctor` says so within moments; without a queue that runs there it says nothing."""
    # Which puts another address of this machine in the place of the loopback.
    monkeypatch.setattr(services, "canonicalize_bootstrap_address", lambda address: address)
    away = settings('[worker]\nexecutor = "ray"\n[ray]\naddress = "127.0.0.1:1"', tmp_path, **STORE)
    [found] = await farm_findings(None, away)  # type: ignore[arg-type]
    assert (found.status, found.check) == (Status.FAIL, "ray")
    assert "no job of a Ray queue starts: the Ray cluster does not answer (ConnectionRefusedError)" in found.message
    assert await farm_findings(None, Settings()) == []  # type: ignore[arg-type]
