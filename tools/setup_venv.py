"""Build or refresh `.venv`: runs with the plain Python that tools/setup.sh found, needs nothing but it.

Three kinds have one of their own: `bench` (`.venv-bench`) holds the job systems that the benchmark measures beside
Headrace, `prefect` (`.venv-prefect`) a server of Prefect, which needs an older FastAPI than ours, and `site`
(`.venv-site`) what makes a site of the documents, which is the only one without Headrace.
Everything comes from the pinned files in requirements/, checked against their hashes. `uv` installs them where it can;
where it cannot, pip does, which also reads the index settings that only pip knows. Running it again costs nothing when
the pins did not change, and repairs what an interrupted run left behind.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: The kinds that share no environment with others.
APART = ("bench", "prefect", "site")
#: The kinds that Headrace itself is no part of.
WITHOUT_HEADRACE = ("site",)
VENV = Path(f".venv-{sys.argv[1]}" if sys.argv[1:] and sys.argv[1] in APART else ".venv")
PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"
STAMP = VENV / "headrace-setup.json"
PINS = Path("requirements")
#: What each kind of environment holds; `dev` includes everything of `runtime`.
KINDS = {
    "runtime": ["runtime.txt", "local-model.txt"],
    "dev": ["dev.txt", "local-model.txt"],
    "bench": ["bench.txt"],
    "prefect": ["prefect.txt"],
    "site": ["site.txt"],
}
#: What has to be compiled, with the tools the environment holds already; without it the environment is complete.
OPTIONAL = {"bench": "bench-oban.txt"}
#: What runs in Node, with its pins; installed where npm is there.
NODE = {"bench": "bullmq"}
NPM_QUIET = ["--omit=optional", "--no-audit", "--no-fund"]
BOOTSTRAP = "bootstrap.txt"

Command = list[str | Path]


def main(kind: str) -> int:
    """Make the environment hold what `kind` needs; return the exit code."""
    with only_one_at_a_time():
        if is_fresh(kind):
            return 0
        print(f"Setting up {VENV} for {kind} …", flush=True)
        ensure_venv()
        STAMP.unlink(missing_ok=True)
        if not ((install_with_uv(kind) or install_with_pip(kind)) and install_headrace(kind)):
            print("Could not install the pinned packages: see the messages above.", file=sys.stderr)
            return 1
        install_optional(kind)
        install_in_node(kind)
        STAMP.write_text(json.dumps({"kind": kind, "pins": digest(kind)}), encoding="utf-8")
    return 0


@contextmanager
def only_one_at_a_time() -> Iterator[None]:
    """Hold a lock on the pins while `make test` and `make demo` may run side by side."""
    descriptor = os.open(PINS, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_fresh(kind: str) -> bool:
    """Return whether `.venv` already holds what `kind` needs."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    kinds = [kind] if kind in APART else [kind, "dev"]
    return has_right_python() and stamp.get("kind") in kinds and stamp.get("pins") == digest(stamp["kind"])


def digest(kind: str) -> str:
    """Return a hash over everything the environment is made from."""
    total = hashlib.sha256()
    names = [BOOTSTRAP, *KINDS[kind], *([OPTIONAL[kind]] if kind in OPTIONAL else [])]
    names += [f"{NODE[kind]}/package-lock.json"] if kind in NODE else []
    for path in [*(PINS / name for name in names), Path("pyproject.toml"), Path(__file__)]:
        total.update(path.read_bytes())
    return total.hexdigest()


def has_right_python() -> bool:
    """Return whether `.venv` has an interpreter, and the asked-for version of it where $PYTHON asks."""
    asked = "*" if not os.environ.get("PYTHON") else f"{sys.version_info.major}.{sys.version_info.minor}"
    return PYTHON.exists() and any(VENV.glob(f"lib/python{asked}"))


def has_pip() -> bool:
    """Return whether the pip of `.venv` works, once more where an interrupted run or another tool left none."""
    return run([PYTHON, "-m", "pip", "--version"], quiet=True) or run([PYTHON, "-m", "ensurepip"], quiet=True)


def ensure_venv() -> None:
    """Create `.venv`, or keep the one whose interpreter and pip still work."""
    if not (has_right_python() and has_pip()):
        shutil.rmtree(VENV, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    # Read by uv: it then writes commands that find their interpreter beside themselves, so the checkout may move.
    settings = VENV / "pyvenv.cfg"
    text = settings.read_text(encoding="utf-8")
    if "relocatable" not in text:
        settings.write_text(text.rstrip("\n") + "\nrelocatable = true\n", encoding="utf-8")


def install_with_uv(kind: str) -> bool:
    """Make `.venv` hold exactly the pins of `kind`; return whether it worked."""
    if not run(pip("install", "--no-deps", "--require-hashes", "-r", PINS / BOOTSTRAP)):
        return False
    pins = [PINS / name for name in [BOOTSTRAP, *KINDS[kind]]]
    return run(uv("sync", "--no-build", "--require-hashes", *pins), env=uv_environment())


def uv_environment() -> dict[str, str]:
    """Return the environment for uv, with the package index that pip is configured for."""
    environment = dict(os.environ)
    if not any(name in environment for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_CONFIG_FILE")):
        answer = subprocess.run(
            [PYTHON, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
        )
        index = environment.get("PIP_INDEX_URL") or answer.stdout.strip()
        if index:
            environment["UV_DEFAULT_INDEX"] = index
    return environment


def uv_cache() -> list[str]:
    """Return the option that keeps uv from needing a home directory it cannot write to."""
    chosen = os.environ.get("UV_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    place = Path(chosen) if chosen else Path(os.environ.get("HOME", "/nonexistent")) / ".cache"
    while not place.exists():
        place = place.parent
    return [] if os.access(place, os.W_OK) else ["--no-cache"]


def install_with_pip(kind: str) -> bool:
    """Install the pins of `kind` with pip; return whether it worked."""
    print("uv could not install the packages; trying pip, which may know another package index.", flush=True)
    files = [argument for name in KINDS[kind] for argument in ("-r", PINS / name)]
    return run(pip("install", "--no-deps", "--require-hashes", "--only-binary", ":all:", *files))


def install_headrace(kind: str) -> bool:
    """Install the checkout itself, editable, with the pinned build backend; return whether it worked."""
    if kind in WITHOUT_HEADRACE:
        return True
    build: Command = ["--no-deps", "--no-build-isolation", "--editable", "."]
    if not run(uv("install", *build) if UV.exists() else pip("install", *build)):
        return False
    make_relocatable()
    return True


def install_optional(kind: str) -> None:
    """Install what may be missing, and say so when it is."""
    if kind not in OPTIONAL:
        return
    pins: Command = ["--no-deps", "--require-hashes", "--no-build-isolation", "-r", PINS / OPTIONAL[kind]]
    if not run(uv("install", *pins) if UV.exists() else pip("install", *pins), quiet=True):
        print(f"{OPTIONAL[kind]}: cannot be installed on this machine; going on without it.", flush=True)


def install_in_node(kind: str) -> None:
    """Install the pinned packages of Node, and say so when that cannot be."""
    if kind not in NODE:
        return
    name, npm = NODE[kind], shutil.which("npm")
    folder = VENV / name
    shutil.copytree(PINS / name, folder, dirs_exist_ok=True)
    command: Command = [npm or "npm", "install", "--prefix", folder, "--ignore-scripts", "--no-save", *NPM_QUIET]
    if npm is None or not run(command, quiet=True):
        print(f"{name}: cannot be installed on this machine, which needs npm; going on without it.", flush=True)


def uv(command: str, *arguments: str | Path) -> Command:
    """Return the command line of a quiet `uv pip`."""
    return [UV, "pip", command, "--quiet", "--python", PYTHON, *uv_cache(), *arguments]


def pip(command: str, *arguments: str | Path) -> Command:
    """Return the command line of a quiet pip."""
    return [PYTHON, "-m", "pip", command, "-qq", "--disable-pip-version-check", "--no-input", *arguments]


def run(command: Command, *, quiet: bool = False, env: dict[str, str] | None = None) -> bool:
    """Run a command; return whether it succeeded."""
    output = subprocess.DEVNULL if quiet else None
    environment = dict(os.environ if env is None else env)
    for name in ("PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV", "VIRTUAL_ENV", "CONDA_PREFIX"):
        environment.pop(name, None)  # they would send the packages elsewhere
    return subprocess.run(command, stdout=output, stderr=output, env=environment, check=False).returncode == 0


def make_relocatable() -> None:
    """Point the editable install to `src` relative to itself, so that it survives a move of the checkout."""
    for link in VENV.glob("lib/python*/site-packages/*headrace*.pth"):
        source = os.path.relpath("src", link.parent)
        with tempfile.NamedTemporaryFile("w", dir=link.parent, delete=False, encoding="utf-8") as file:
            file.write(source + "\n")
        Path(file.name).chmod(0o644)
        Path(file.name).replace(link)


if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parent.parent)
    sys.exit(not is_fresh(sys.argv[1]) if "--is-fresh" in sys.argv else main(sys.argv[1]))
