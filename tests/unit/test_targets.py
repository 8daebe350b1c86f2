"""Where requests to URLs that users write may go: the public web alone, in whatever form another place is written."""

from __future__ import annotations

import pytest

from headrace.model.errors import InvalidInputError
from headrace.model.target_list import TargetList
from headrace.model.targets import NOT_HTTP, ForbiddenTargetError, Target, TargetRules

RULES = TargetRules()

FORMS = {
    "another scheme": ("file:" + "///etc/passwd", "must begin with http:// or https://"),
    "gopher": ("gopher://example.com:70/_x", "must begin with http:// or https://"),
    "ftp": ("ftp://example.com/", "must begin with http:// or https://"),
    "data": ("data:text/plain,hi", "must begin with http:// or https://"),
    "no scheme": ("example.com/path", "must begin with http:// or https://"),
    "a scheme left out": ("//example.com/path", "must begin with http:// or https://"),
    "nothing": ("", "must begin with http:// or https://"),
    "space before it": (" http://example.com", "must begin with http:// or https://"),
    "a user": ("http://who@example.com/", "neither user nor password"),
    "a user that looks like a host": ("http://example.com:80@127.0.0.1/", "neither user nor password"),
    "an empty user": ("http://@example.com/", "neither user nor password"),
    "no host": ("http:///path", "must have a host"),
    "a port and no host": ("http://:80/", "must have a host"),
    "two colons": ("http://example.com:80:80/", "port from 1 to 65535"),
    "port 0": ("http://example.com:0/", "port from 1 to 65535"),
    "port 65536": ("http://example.com:65536/", "port from 1 to 65535"),
    "a port in words": ("http://example.com:http/", "port from 1 to 65535"),
    "a signed port": ("http://example.com:+80/", "port from 1 to 65535"),
    "a full-width port": ("http://example.com:８０/", "port from 1 to 65535"),
    "port 22": ("http://example.com:22/", "port 22"),
    "port 6379": ("https://example.com:6379/", "port 6379"),
    "a line break": ("http://example.com/\r\nHost: x", "control characters"),
    "a tab in the host": ("http://exa\tmple.com/", "control characters"),
    "a backslash": ("http://example.com\\@127.0.0.1/", "control characters"),
    "half a letter": ("http://example.com/\ud800", "control characters"),
    "too long a one": ("http://example.com/" + "a" * 20_000, "at most 16384"),
    "a host that is encoded": ("http://127%2e0%2e0%2e1/", "must have a host"),
    "a space in the host": ("http://exam ple.com/", "must have a host"),
    "an empty label": ("http://example..com/", "must have a host"),
    "two dots at the end": ("http://example.com../", "must have a host"),
    "too long a label": (f"http://{'a' * 64}.com/", "must have a host"),
    "too long a name": (f"http://{'a.' * 130}com/", "must have a host"),
    "letters beyond ASCII": ("http://bücher.example/", "xn--"),
    "letters whose lower form is ASCII": ("http://\u212aelvin.example/", "xn--"),
    "one number": ("http://2130706433/", "such as 8.8.8.8"),
    "one number of 169.254.169.254": ("http://2852039166/latest", "such as 8.8.8.8"),
    "one hexadecimal number": ("http://0xA9FEA9FE/", "such as 8.8.8.8"),
    "hexadecimal parts": ("http://0x7f.1/", "such as 8.8.8.8"),
    "octal parts": ("http://0177.0.0.1/", "such as 8.8.8.8"),
    "zeros before parts": ("http://127.000.000.001/", "such as 8.8.8.8"),
    "fewer parts": ("http://127.1/", "such as 8.8.8.8"),
    "more parts": ("http://1.127.0.0.1/", "such as 8.8.8.8"),
    "parts above 255": ("http://127.0.0.256/", "such as 8.8.8.8"),
    "a name that ends in a number": ("http://example.123/", "such as 8.8.8.8"),
    "an empty hexadecimal number": ("http://example.0x/", "such as 8.8.8.8"),
    "full-width digits": ("http://１２７.0.0.1/", "such as 8.8.8.8"),
    "ideographic dots": ("http://127。0。0。1/", "such as 8.8.8.8"),
    "circled digits": ("http://①②⑦.⓪.⓪.①/", "such as 8.8.8.8"),
    "a zone": ("http://[fe80::1%25eth0]/", "without a zone"),
    "a zone not encoded": ("http://[fe80::1%eth0]/", "without a zone"),
    "a name in brackets": ("http://[localhost]/", "IPv6 address in its brackets"),
    "IPv4 in brackets": ("http://[127.0.0.1]/", "IPv6 address in its brackets"),
    "IPv6 without brackets": ("http://::1/", "must have"),
    "something behind the brackets": ("http://[::1].example.com/", "must have a host"),
}

LITERALS = {
    "http://127.0.0.1/": "a loopback address",
    "http://127.0.0.1./": "a loopback address",
    "https://127.255.255.254:8443/": "a loopback address",
    "http://localhost/": "a loopback address",
    "http://LOCALHOST:8080/": "a loopback address",
    "http://localhost./": "a loopback address",
    "http://app.localhost/": "a loopback address",
    "http://0.0.0.0/": "an unspecified address",
    "http://10.1.2.3/": "a private address",
    "http://172.31.0.1/": "a private address",
    "http://192.168.0.1/": "a private address",
    "http://169.254.169.254/latest/meta-data": "a link-local address",
    "http://100.64.0.1/": "a carrier's inner network",
    "http://100.100.100.200/": "a carrier's inner network",
    "http://168.63.129.16/": "a cloud's inner services",
    "http://192.0.0.192/": "a reserved address",
    "http://192.0.2.1/": "an address for documentation",
    "http://198.51.100.7/": "an address for documentation",
    "http://203.0.113.7/": "an address for documentation",
    "http://198.18.0.1/": "an address for benchmarks",
    "http://192.88.99.1/": "6to4",
    "http://224.0.0.1/": "a multicast address",
    "http://240.0.0.1/": "a reserved address",
    "http://255.255.255.255/": "the broadcast address",
    "http://[::]/": "the unspecified address",
    "http://[::1]/": "the loopback address",
    "http://[0:0:0:0:0:0:0:1]/": "the loopback address",
    "http://[::ffff:169.254.169.254]/": "an IPv4 address within an IPv6 one",
    "http://[::ffff:a9fe:a9fe]/": "an IPv4 address within an IPv6 one",
    "http://[::ffff:8.8.8.8]/": "an IPv4 address within an IPv6 one",
    "http://[::127.0.0.1]/": "an IPv4 address within an IPv6 one",
    "http://[64:ff9b::7f00:1]/": "an address of NAT64",
    "http://[64:ff9b:1::1]/": "an address of NAT64",
    "http://[2002:7f00:1::]/": "an address of 6to4",
    "http://[2001:0:7f00:1::]/": "an address of Teredo",
    "http://[2001:20::1]/": "a reserved address",
    "http://[2001:db8::1]/": "an address for documentation",
    "http://[3fff::1]/": "an address for documentation",
    "http://[fc00::1]/": "a private address",
    "http://[fd00:ec2::254]/": "a private address",
    "http://[fe80::1]/": "a link-local address",
    "http://[fec0::1]/": "a site-local address",
    "http://[ff02::1]/": "a multicast address",
    "http://[100::1]/": "a reserved address",
    "http://[5f00::1]/": "a reserved address",
}


@pytest.mark.parametrize(("url", "words"), FORMS.values(), ids=list(FORMS))
def test_a_form_that_is_not_plain_is_refused(url: str, words: str) -> None:
    """Whatever programs could read in different ways is refused, naming field and rule."""
    with pytest.raises(ForbiddenTargetError) as caught:
        RULES.parse(url, field="parameters.url")
    assert words in str(caught.value)
    assert str(caught.value).startswith("parameters.url must ")
    assert caught.value.code == "forbidden_target"


@pytest.mark.parametrize(("url", "words"), LITERALS.items())
def test_an_address_that_is_not_public_is_refused(url: str, words: str) -> None:
    """An address is refused before anything is asked, saying what it is and how to open it."""
    with pytest.raises(ForbiddenTargetError) as caught:
        RULES.parse(url)
    assert words in str(caught.value)
    assert "to [flows] allow_targets" in str(caught.value)


@pytest.mark.parametrize("url", ["http://who:hush@example.com/", "http://127.0.0.1/a?key=hush", "ssh://hush@example"])
def test_secrets_of_a_url_are_not_repeated(url: str) -> None:
    """The error says neither user, path nor query."""
    with pytest.raises(ForbiddenTargetError) as caught:
        RULES.parse(url)
    assert "hush" not in str(caught.value)
    assert "hush" not in repr(caught.value.value)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://example.com", Target("http", "example.com", 80)),
        ("HTTPS://Example.COM./a/b?x=1&y=2#part", Target("https", "example.com", 443, "/a/b?x=1&y=2")),
        ("http://example.com:?q", Target("http", "example.com", 80, "/?q")),
        ("https://my_host-1.example:8443/ä b", Target("https", "my_host-1.example", 8443, "/%C3%A4%20b")),
        ("https://xn--bcher-kva.example/?q=a%20b", Target("https", "xn--bcher-kva.example", 443, "/?q=a%20b")),
        ("http://8.8.8.8/@x:y", Target("http", "8.8.8.8", 80, "/@x:y")),
        ("http://[2606:4700::1111]:8080/", Target("http", "2606:4700::1111", 8080)),
    ],
)
def test_a_public_url_is_read(url: str, target: Target) -> None:
    """Scheme, host, port and path; no part of a fragment."""
    assert RULES.parse(url) == target


def test_a_target_is_written_for_the_wire() -> None:
    """The usual port is left out, IPv6 stands in brackets, and a query is added behind the one there is."""
    target = RULES.parse("http://[2606:4700::1111]:8080/a?b=1")
    assert target.authority == "[2606:4700::1111]:8080"
    assert target.with_query("c=2").url == "http://[2606:4700::1111]:8080/a?b=1&c=2"
    assert RULES.parse("https://example.com/a").with_query("c=2").url == "https://example.com/a?c=2"
    assert target.with_query("") == target
    assert RULES.parse("https://example.com/a/b").join("../c?d") == "https://example.com/c?d"
    assert RULES.parse("https://example.com/a/b").join("http://[") == "http://["


def test_every_address_of_a_name_is_checked() -> None:
    """One wrong address among public ones refuses the name, wherever it stands."""
    target = RULES.parse("http://example.com/")
    assert RULES.check(target, ["8.8.8.8", "2606:4700::1111"]) == ["8.8.8.8", "2606:4700::1111"]
    for wrong in ["10.0.0.1", "::1", "fe80::1%eth0", "::ffff:10.0.0.1"]:
        for addresses in ([wrong], ["8.8.8.8", wrong], [wrong, "8.8.8.8"]):
            with pytest.raises(ForbiddenTargetError, match=r'add "example\.com:80" to'):
                RULES.check(target, addresses)


ALLOWED = {
    "a name": ("intranet.example", "http://intranet.example:8080/", "10.0.0.1", True),
    "a name with a dot": ("Intranet.Example.", "http://intranet.example/", "10.0.0.1", True),
    "another name": ("intranet.example", "http://other.example/", "10.0.0.1", False),
    "a name below it": ("intranet.example", "http://a.intranet.example/", "10.0.0.1", False),
    "a name and its port": ("intranet.example:8080", "http://intranet.example:8080/", "10.0.0.1", True),
    "a name and another port": ("intranet.example:8080", "http://intranet.example:8081/", "10.0.0.1", False),
    "a suffix": ("*.corp.example", "http://a.b.corp.example/", "10.0.0.1", True),
    "a suffix without a name": ("*.corp.example", "http://corp.example/", "10.0.0.1", False),
    "a name that ends alike": ("*.corp.example", "http://evilcorp.example/", "10.0.0.1", False),
    "a suffix and a port": ("*.corp.example:81", "http://a.corp.example:81/", "10.0.0.1", True),
    "a network": ("10.0.0.0/8", "http://intranet.example/", "10.2.3.4", True),
    "outside of a network": ("10.0.0.0/8", "http://intranet.example/", "192.168.0.1", False),
    "a network and its port": ("10.0.0.0/8:8080", "http://intranet.example:8080/", "10.2.3.4", True),
    "a network and another port": ("10.0.0.0/8:8080", "http://intranet.example/", "10.2.3.4", False),
    "an address": ("192.168.0.1", "http://intranet.example/", "192.168.0.1", True),
    "an IPv6 network": ("fd00::/8", "http://intranet.example/", "fd00::1", True),
    "an IPv6 network and its port": ("[fd00::/8]:8080", "http://intranet.example:8080/", "fd00::1", True),
    "an IPv6 network and another port": ("[fd00::/8]:8080", "http://intranet.example:8081/", "fd00::1", False),
    "an IPv6 address in brackets": ("[fd00::1]", "http://intranet.example/", "fd00::1", True),
    "an IPv4 network opens no mapped ones": ("10.0.0.0/8", "http://intranet.example/", "::ffff:10.0.0.1", False),
}


@pytest.mark.parametrize(("entry", "url", "address", "opened"), ALLOWED.values(), ids=list(ALLOWED))
def test_an_entry_opens_what_it_says(entry: str, url: str, address: str, opened: bool) -> None:
    """Names, suffixes and networks, each with a port or with all of them; nothing beyond."""
    rules = TargetRules(TargetList.parse([entry]))
    target = rules.parse(url)
    if opened:
        assert rules.check(target, [address]) == [address]
    else:
        with pytest.raises(ForbiddenTargetError):
            rules.check(target, [address])


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("localhost:8080", "http://localhost.:8080/"),
        ("127.0.0.0/8", "http://localhost:8080/"),
        ("127.0.0.1:8080", "http://127.0.0.1:8080/"),
        ("[::1]:8080", "http://[0::1]:8080/"),
        ("*.localhost", "http://app.localhost/"),
        ("example.com:22", "http://example.com:22/"),
        ("8.8.8.8:25", "http://8.8.8.8:25/"),
    ],
)
def test_an_entry_opens_literals_and_ports(entry: str, url: str) -> None:
    """What is refused by its form alone is open too, a port of another service only when it is named."""
    with pytest.raises(ForbiddenTargetError):
        RULES.parse(url)
    assert TargetRules(TargetList.parse(["other.example", entry])).parse(url).port > 0


def test_ports_of_other_services_need_their_port_in_the_entry() -> None:
    """A host that is allowed at all ports is not allowed at those of databases."""
    rules = TargetRules(TargetList.parse(["db.example", "10.0.0.0/8"]))
    for port in sorted(NOT_HTTP):
        with pytest.raises(ForbiddenTargetError, match=f"must not lead to port {port},"):
            rules.parse(f"http://db.example:{port}/")
    assert {22, 25, 21, 23, 110, 143, 465, 587, 993, 995, 3306, 5432, 6379, 11211, 27017} <= NOT_HTTP
    assert NOT_HTTP.isdisjoint({80, 443, 3000, 5000, 8000, 8080, 8443, 9200})


@pytest.mark.parametrize(
    "entry",
    ["", "*", "*.", "http://example.com", "example.com:", "example.com:0", "example.com:99999", "example.com/8",
     "10.0.0.1/8", "10.0.0.0/33", "127.1", "0x7f.1", "[::1", "[::1]:", "[::1]x", "bücher.example", "a b", "*.*.example",
     "a.*.example", "example.com:80:81", "user@example.com"],
)  # fmt: skip
def test_an_entry_that_says_nothing_is_refused(entry: str) -> None:
    """A wrong entry is named with the forms that there are."""
    with pytest.raises(InvalidInputError, match=r"allow_targets must be .*\*\.suffix"):
        TargetList.parse(["example.com", entry])
