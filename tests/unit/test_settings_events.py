"""`[events]`: what fits, and what is refused with key, rule and value."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace import ConfigError
from headrace.settings import load_settings

KAFKA = '[events]\nbus = "kafka"\n[events.kafka]\nservers = "127.0.0.1:9092"\n'


def test_a_broker_is_named_in_file_or_environment(tmp_path: Path) -> None:
    """Both tables together choose Kafka; the environment wins."""
    file = tmp_path / "headrace.toml"
    file.write_text(KAFKA)
    events = load_settings(environ={"HEADRACE_EVENTS_KAFKA_SERVERS": "[::1]:1,b:2"}, file=file).events
    assert (events.bus, events.kafka.servers) == ("kafka", "[::1]:1,b:2")
    assert load_settings(environ={"HEADRACE_EVENTS_BUS": "store"}, file=file).events.bus == "store"


@pytest.mark.parametrize(
    ("given", "watched"),
    [
        ({}, ("outbox.event.*",)),
        ({"HEADRACE_EVENTS_TOPIC": "shop.{aggregate_type}.v1"}, ("shop.*",)),
        ({"HEADRACE_EVENTS_CALLBACK_TOPICS": "a, b.*"}, ("a", "b.*")),
    ],
)
def test_results_are_looked_for_where_events_go(given: dict[str, str], watched: tuple[str, ...]) -> None:
    """Unless topics are named, all that the template may give."""
    assert load_settings(environ=given, file=Path("missing.toml")).events.watched_topics == watched


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[events]\nbus = "rabbit"', "events.bus must be one of store, kafka, got 'rabbit'"),
        ('[events]\nbus = "kafka"', "events.kafka.servers must be given with bus = 'kafka'"),
        ('[events]\nformat = "xml"', "events.format must be one of headrace, cloudevents"),
        ('[events]\ntopic = "a b"', "events.topic must be letters"),
        ('[events]\ntopic = "{aggregate_type}{aggregate_type}"', "events.topic must be letters"),
        ('[events]\ndead_letter_suffix = "dlt"', "events.dead_letter_suffix must begin with"),
        ("[events]\npartitions = 0", "events.partitions must be from 1 to 1000, got 0"),
        ("[events]\nrelay_batch = 0", "events.relay_batch must be from 1 to 10000, got 0"),
        ("[events]\nmax_bytes = 10", "events.max_bytes must be from 1024"),
        ('[events]\nkeep_inbox = "0s"', "events.keep_inbox must be longer than zero"),
        ('[events]\nprefect_api_url = "ftp://x"', "events.prefect_api_url must be a URL"),
        ('[events.kafka]\nservers = "kafka"', "events.kafka.servers must be host:port"),
        ('[events.kafka]\nsecurity_protocol = "tls"', "events.kafka.security_protocol must be one of"),
        ('[events.kafka]\nsasl_mechanism = "PLAIN"', "events.kafka.sasl_mechanism must be given with"),
        ('[events.kafka]\nsession_timeout = "1s"', "events.kafka.session_timeout must be from 6 s to 5 min"),
        ('[events.kafka]\nservers = "kafka:0"', "events.kafka.servers must have ports from 1 to 65535, got 'kafka:0'"),
        ('[events.kafka]\nservers = "a:1,b:65536"', "events.kafka.servers must have ports from 1 to 65535"),
        ('[events.kafka]\nca_file = "no-such.pem"', "events.kafka.ca_file must be a file that exists"),
        (
            '[events.kafka]\nsecurity_protocol = "sasl_ssl"\nsasl_mechanism = "MD5"',
            "events.kafka.sasl_mechanism must be one of PLAIN, SCRAM-SHA-256",
        ),
        ('[events]\ncallback_topics = "*"', "events.callback_topics must name topics"),
        ('[events]\ncallback_topics = "a*b"', "events.callback_topics must name topics"),
        ('[events]\ncallback_topics = "a, b c"', "got 'b c'"),
        ('[events]\ncallback_topics = ","', "events.callback_topics must name topics, or be empty"),
        ('[events.kafka]\nsession_timeout = "10m"', "from 6 s to 5 min, got 10m"),
        ("[events.kafka]\nreplication = -1", "events.kafka.replication must be from 0 to 100"),
        ("[events]\nspeed = 3", "unknown key [events] speed"),
        ("[events.kafka]\nsasl_password = 3", "sasl_password must be text in quotes"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """The error names the key, the rule and the value."""
    file = tmp_path / "headrace.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_settings(environ={}, file=file)
    assert said in str(refused.value)


@pytest.mark.parametrize("mechanism", ["PLAIN", "plain", "Scram-Sha-512", "OAUTHBEARER"])
def test_mechanisms_in_any_case(mechanism: str) -> None:
    """People write them as they know them."""
    given = {"HEADRACE_EVENTS_KAFKA_SECURITY_PROTOCOL": "sasl_ssl", "HEADRACE_EVENTS_KAFKA_SASL_MECHANISM": mechanism}
    assert load_settings(environ=given, file=Path("missing.toml")).events.kafka.sasl_mechanism == mechanism
