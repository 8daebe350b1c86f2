"""`[webhooks]`: what signs messages, where they go, how long they are tried."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.model.errors import ConfigError
from headrace.model.targets import ForbiddenTargetError
from headrace.settings import Settings, load_settings

#: The same in every process, as names of tests are made of them.
ONE, TWO = ("whsec_" + b64encode(bytes([number] * 32)).decode() for number in (1, 2))


def load(tmp_path: Path, text: str, **environ: str) -> Settings:
    """Read a headrace.toml with this `[webhooks]`."""
    file = tmp_path / "headrace.toml"
    file.write_text(f"[webhooks]\n{text}", encoding="utf-8")
    return load_settings(environ=environ, file=file)


def test_secrets_are_a_list_in_the_file_and_have_commas_in_the_environment(tmp_path: Path) -> None:
    """The environment wins; spaces around a comma do no harm, and nothing shows them."""
    text = f"secrets = {json.dumps([ONE, TWO])}"
    assert load(tmp_path, text).webhooks.secrets == (ONE, TWO)
    settings = load(tmp_path, text, HEADRACE_WEBHOOKS_SECRETS=f"{TWO} , {ONE}")
    assert settings.webhooks.secrets == (TWO, ONE)
    assert ONE.removeprefix("whsec_") not in repr(settings)


@pytest.mark.parametrize(("private", "url", "opens"), [
    (False, "http://127.0.0.1:8080/", False), (True, "http://127.0.0.1:8080/", True),
    (True, "http://10.1.2.3/", True), (True, "http://[fd00::1]/", True), (True, "http://localhost/", True),
    (True, "http://169.254.169.254/", False), (True, "http://[fe80::1]/", False), (True, "http://10.1.2.3:22/", False),
    (True, "http://0.0.0.0/", False),
])  # fmt: skip
def test_private_networks_are_opened_on_demand(tmp_path: Path, private: bool, url: str, opens: bool) -> None:
    """Never where clouds keep secrets, and never ports that are not for HTTP."""
    rules = load(tmp_path, f"allow_private = {str(private).lower()}").webhooks.targets
    if opens:
        rules.parse(url)
    else:
        with pytest.raises(ForbiddenTargetError, match=r"\[webhooks\] allow_targets"):
            rules.parse(url)


def test_single_targets_are_opened_by_name(tmp_path: Path) -> None:
    """As in `[flows]`."""
    settings = load(tmp_path, 'allow_targets = ["10.0.0.0/8:8080"]')
    assert settings.webhooks.targets.parse("http://10.1.2.3:8080/").port == 8080
    assert load(tmp_path, "", HEADRACE_WEBHOOKS_ALLOW_TARGETS="localhost").webhooks.targets.parse("http://localhost/")


@pytest.mark.parametrize(("text", "words"), [
    (f'secrets = ["{ONE}", "whsec_c2hvcnQ="]', ["webhooks.secrets[1]", "24 to 64 bytes", "5 bytes"]),
    ('secrets = ["c2VjcmV0"]', ["webhooks.secrets[0]", "whsec_"]),
    (f"secrets = {json.dumps([ONE, TWO, ONE])}", ["webhooks.secrets", "at most two"]),
    ('secrets = ["hush", 7]', ["webhooks.secrets", "a list of texts"]),
    ("secrets = 7", ["webhooks.secrets", "a list of texts"]),
    ('allow_targets = ["http://x"]', ["webhooks.allow_targets", "host:port"]),
    ('timeout = "0s"', ["webhooks.timeout", "longer than zero"]),
    ('timeout = "2m"', ["webhooks.timeout", "at most 1m"]),
    ('retry_for = "8d"', ["webhooks.retry_for", "at most 7d"]),
    ('first_retry = "2h"', ["webhooks.first_retry", "at most 1h"]),
    ('longest_retry = "7h"', ["webhooks.longest_retry", "at most 6h"]),
    ('longest_retry = "1s"', ["webhooks.longest_retry", "must not be below webhooks.first_retry, 5s", "got 1s"]),
])  # fmt: skip
def test_mistakes_are_named_without_a_secret(tmp_path: Path, text: str, words: list[str]) -> None:
    """With key, rule and value; what may be a secret is not repeated."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    for word in words:
        assert word in str(caught.value)
    for secret in (ONE, "c2hvcnQ", "c2VjcmV0", "hush"):
        assert secret not in str(caught.value)


def test_the_defaults() -> None:
    """Ten seconds for a try, a day of tries, the public web alone."""
    found = load_settings(environ={}, file=Path("missing.toml")).webhooks
    assert (found.timeout, found.retry_for, found.secrets) == (timedelta(seconds=10), timedelta(days=1), ())
    assert not found.allow_private
