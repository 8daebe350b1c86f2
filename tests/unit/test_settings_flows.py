"""The tables of JSON flows: read, checked, and silent about secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.flow_settings import CredentialSettings, FlowSettings
from headrace.model.errors import ConfigError
from headrace.model.targets import ForbiddenTargetError
from headrace.nodes.services import Credential
from headrace.settings import Settings, load_settings

ALL = """
[flows]
allow_targets = ["localhost:8080", "*.corp.example", "10.0.0.0/8"]
files = "shared/in"
[flows.vars]
region = "eu"
limit = 3
prices = { small = 1.5, list = [true, "x"] }
[flows.credentials."My API"]
kind = "header"
name = "X-Api-Key"
secret = "hush"
[flows.credentials.shop]
kind = "basic"
user = "who"
secret_env = "SHOP_PASSWORD"
[flows.credentials."Öffentlich [2]"]
kind = "query"
name = "key"
secret_env = "KEY"
"""


def load(tmp_path: Path, text: str = "", **environ: str) -> Settings:
    """Load settings from a file with `text` and an environment."""
    file = tmp_path / "headrace.toml"
    file.write_text(text, encoding="utf-8")
    return load_settings(environ=environ, file=file)


def credential(keys: str, name: str = "api") -> str:
    """Return a file with one credential."""
    return f'[flows.credentials."{name}"]\n{keys}'


def test_every_key_of_flows_is_read(tmp_path: Path) -> None:
    """All keys at once, from the file; names of credentials are any text."""
    flows = load(tmp_path, ALL).flows
    assert flows.allow_targets == ("localhost:8080", "*.corp.example", "10.0.0.0/8")
    assert flows.files == Path("shared/in")
    assert flows.vars == {"region": "eu", "limit": 3, "prices": {"small": 1.5, "list": [True, "x"]}}
    assert list(flows.credentials) == ["My API", "shop", "Öffentlich [2]"]
    assert flows.credentials["My API"] == CredentialSettings("header", "X-Api-Key", secret="hush")


def test_the_defaults_open_nothing(tmp_path: Path) -> None:
    """Without a table nothing but the public web is reached, and there are neither values nor secrets."""
    settings = load(tmp_path)
    assert settings.flows == FlowSettings()
    assert settings.flows.files_below(settings.directory) == Path(".headrace/flow-files")
    with pytest.raises(ForbiddenTargetError, match=r'add "localhost:80" to \[flows\] allow_targets'):
        settings.flows.targets.parse("http://localhost/")


def test_what_is_allowed_is_open(tmp_path: Path) -> None:
    """The list is that of the rules of targets."""
    flows = load(tmp_path, ALL).flows
    assert flows.targets.parse("http://localhost:8080/").port == 8080
    assert flows.files_below(Path("unused")) == Path("shared/in")


@pytest.mark.parametrize(
    ("text", "entries"),
    [("localhost:8080", ("localhost:8080",)), (" a.example , 10.0.0.0/8,", ("a.example", "10.0.0.0/8"))],
)
def test_the_environment_has_commas_between(tmp_path: Path, text: str, entries: tuple[str, ...]) -> None:
    """The environment wins over the file."""
    settings = load(tmp_path, ALL, HEADRACE_FLOWS_ALLOW_TARGETS=text, HEADRACE_FLOWS_FILES="~/in")
    assert settings.flows.allow_targets == entries
    assert settings.flows.files == Path("~/in").expanduser()


def test_a_credential_is_found_by_its_name(tmp_path: Path) -> None:
    """A secret comes from the file, or from the environment at the time when it is used."""
    flows = load(tmp_path, ALL).flows
    assert flows.credential("My API", {}) == Credential("header", "X-Api-Key", "", "hush")
    assert flows.credential("shop", {"SHOP_PASSWORD": "pass"}) == Credential("basic", "", "who", "pass")


def test_the_environment_of_the_process_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless another one is given, the secret is looked up where the process has it."""
    flows = load(tmp_path, ALL).flows
    monkeypatch.setenv("SHOP_PASSWORD", "now")
    assert flows.credential("shop").secret == "now"


@pytest.mark.parametrize("environ", [{}, {"SHOP_PASSWORD": ""}])
def test_a_variable_that_is_not_set_is_named(tmp_path: Path, environ: dict[str, str]) -> None:
    """Only the flow that uses the secret fails, and says which variable is missing."""
    with pytest.raises(ConfigError, match=r'^flows.credentials."shop".secret_env names .* SHOP_PASSWORD, .* set it$'):
        load(tmp_path, ALL).flows.credential("shop", environ)


@pytest.mark.parametrize(("name", "hint"), [("My APl", "; did you mean 'My API'"), ("zzz", ": write")])
def test_a_credential_that_is_not_there_is_named(tmp_path: Path, name: str, hint: str) -> None:
    """The error says where to write it, and which one may be meant."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, ALL).flows.credential(name, {})
    message = str(caught.value)
    assert f"there is no credential {name!r}{hint}" in message
    assert f'write [flows.credentials."{name}"] with kind and secret_env into headrace.toml' in message


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    """Neither the settings nor a credential shows a secret, nor the values of `$vars`, which may be some."""
    settings = load(tmp_path, ALL + '[flows.credentials.b]\nkind = "bearer"\nsecret = "hush"')
    shown = (
        repr(settings) + str(settings.flows) + repr(settings.flows.credentials) + repr(settings.flows.credential("b"))
    )
    assert "hush" not in shown
    assert "eu" not in repr(settings.flows)


MISTAKES = {
    "an unknown key": ("[flows]\nallow_target = []", ["unknown key [flows] allow_target", "'allow_targets'"]),
    "flows that are no table": ("flows = 3", ["flows must be a table", "[flows]"]),
    "targets that are none": ("[flows]\nallow_targets = 3", ["flows.allow_targets", "list of texts", "3"]),
    "targets that are no texts": ("[flows]\nallow_targets = [1]", ["flows.allow_targets", "list of texts"]),
    "a wrong target": ("[flows]\nallow_targets = ['http://a']", ["flows.allow_targets", '"*.suffix"', "'http://a'"]),
    "files that are no folder": ("[flows]\nfiles = 3", ["flows.files", "text in quotes"]),
    "vars that are no table": ("[flows]\nvars = 3", ["flows.vars must be a table", "[flows.vars]"]),
    "a date": ("[flows.vars]\nday = 2026-01-01", ["flows.vars.day", "quotes"]),
    "a date within": ("[flows.vars]\na = [{ b = 07:32:00 }]", ["flows.vars.a.0.b", "quotes"]),
    "an endless number": ("[flows.vars]\na = inf", ["flows.vars.a", "finite"]),
    "credentials that are no tables": ("[flows]\ncredentials = 3", ["[flows.credentials.NAME]"]),
    "a credential that is no table": ("[flows.credentials]\napi = 'hush'", ["flows.credentials.api must be a table"]),
    "a credential without a name": (credential("kind = 'bearer'\nsecret = 'hush'", " "), ["1 to 200 printable"]),
    "an unknown key of it": (credential("kynd = 'header'"), ["[flows.credentials.api] kynd", "'kind'"]),
    "no kind": (credential("secret = 'hush'"), ['flows.credentials."api".kind', '"bearer"', "''"]),
    "a kind that is none": (credential("kind = 'oauth'\nsecret = 'hush'"), ["kind", '"query"', "'oauth'"]),
    "a header without a name": (credential("kind = 'header'\nsecret = 'hush'"), [".name", "header"]),
    "a query without a name": (credential("kind = 'query'\nsecret = 'hush'"), [".name", "parameter"]),
    "a name that is no header": (credential("kind = 'header'\nname = 'A b'\nsecret = 'hush'"), [".name", "'A b'"]),
    "a name of a bearer": (credential("kind = 'bearer'\nname = 'A'\nsecret = 'hush'"), [".name", '"bearer"']),
    "basic without a user": (credential("kind = 'basic'\nsecret = 'hush'"), [".user", '"basic"']),
    "a user of a bearer": (credential("kind = 'bearer'\nuser = 'a'\nsecret = 'hush'"), [".user", '"basic"']),
    "no secret": (credential("kind = 'bearer'"), [".secret_env", "exactly one"]),
    "two secrets": (credential("kind = 'bearer'\nsecret = 'hush'\nsecret_env = 'A'"), [".secret_env", "exactly one"]),
    "a secret that is no text": (credential("kind = 'bearer'\nsecret = ['hush']"), [".secret must be text in quotes"]),
    "a secret for a variable": (credential("kind = 'bearer'\nsecret_env = 'hush-1'"), [".secret_env", "variable"]),
    "a variable of ours": (credential("kind = 'bearer'\nsecret_env = 'HEADRACE_A'"), ["HEADRACE_", "otherwise"]),
}


@pytest.mark.parametrize(("text", "words"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_is_named_with_its_fix(tmp_path: Path, text: str, words: list[str]) -> None:
    """A wrong key or value stops the start, naming key, rule and value, and never a secret."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    message = str(caught.value)
    assert [word for word in words if word not in message] == []
    assert "hush" not in message


@pytest.mark.parametrize("variable", ["HEADRACE_FLOWS_CREDENTIALS", "HEADRACE_FLOWS_VARS", "HEADRACE_FLOWS_SECRET"])
def test_tables_do_not_stand_in_the_environment(tmp_path: Path, variable: str) -> None:
    """A variable for a table is unknown, as any other."""
    with pytest.raises(ConfigError, match=f"unknown environment variable {variable}"):
        load(tmp_path, **{variable: "x"})


def test_a_wrong_target_in_the_environment_stops_the_start(tmp_path: Path) -> None:
    """The rule is that of the file."""
    with pytest.raises(ConfigError, match=r"flows\.allow_targets must be"):
        load(tmp_path, HEADRACE_FLOWS_ALLOW_TARGETS="a.example,*")
