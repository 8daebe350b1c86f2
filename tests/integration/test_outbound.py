"""Requests to URLs that users write, over real connections: where they go, and how much they may bring."""

from __future__ import annotations

import asyncio
import datetime
import gzip
import ipaddress
import socket
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.model.errors import InvalidInputError
from headrace.model.http import HttpError, HttpRequest
from headrace.model.target_list import TargetList
from headrace.model.targets import ForbiddenTargetError, TargetRules
from headrace.nodes.http_request import TYPE
from headrace.nodes.services import Credential
from headrace.outbound.body import read_body
from headrace.outbound.client import OutboundClient, resolve_host
from tests.unit.node_calls import FakeServices, run_type
from tests.waiting import wait_until

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@dataclass
class Asked:
    """A request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Site:
    """A server on this machine: `answer` writes what follows a request."""

    answer: Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request, answer it, and close."""
        self.connections += 1
        self.open += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.asked.append(Asked(head[0], headers, body))
            await self.answer(self.asked[-1], writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()


def always(*answers: bytes) -> Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]:
    """Return what answers with each of these in turn, and then with the last one."""
    left = list(answers)

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        await writer.drain()

    return answer


def with_body(body: bytes, *headers: str) -> bytes:
    """Return a whole answer."""
    lines = ["HTTP/1.1 200 OK", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def to(location: str, status: int = 302) -> bytes:
    """Return an answer that leads elsewhere."""
    return f"HTTP/1.1 {status} Elsewhere\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n".encode()


@asynccontextmanager
async def site(*answers: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    """Run a server that answers with these."""
    async with served(always(*answers or (OK,)), tls) as running:
        yield running


@asynccontextmanager
async def served(
    answer: Callable[[Asked, asyncio.StreamWriter], Awaitable[None]], tls: ssl.SSLContext | None = None
) -> AsyncIterator[Site]:
    """Run a server."""
    running = Site(answer)
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0, ssl=tls)
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
        await wait_until(lambda: running.open == 0, message="a connection is left open")
    finally:
        server.close()


@dataclass
class Names:
    """A resolver that answers from a list, one after another, and counts the questions."""

    answers: list[Sequence[str]]
    questions: list[str] = field(default_factory=list)

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Return the next answer."""
        self.questions.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def client(*allowed: str, names: Names | None = None, tls: ssl.SSLContext | None = None) -> OutboundClient:
    """Return a client that may go to these beyond the public web."""
    return OutboundClient(TargetRules(TargetList.parse(allowed)), resolve=names or Names([["127.0.0.1"]]), tls=tls)


def get(url: str, **options: object) -> HttpRequest:
    """Return a request that ends soon."""
    return HttpRequest(**{"method": "GET", "url": url, "timeout": timedelta(seconds=5), **options})  # type: ignore[arg-type]


async def test_an_answer_comes_back_whole() -> None:
    """Status, reason, headers in lower case and body; the request has query, headers and body as given."""
    reply = b"HTTP/1.1 201 Made\r\nX-One: 1\r\nx-one: 2\r\nContent-Length: 4\r\n\r\nmade"
    async with site(reply) as here:
        request = get(
            f"http://127.0.0.1:{here.port}/a?x=1", method="POST", headers=(("X-Key", "ü"),),
            query=(("y", "a b"), ("z", "&")), body=b"{}",
        )  # fmt: skip
        answer = await client("127.0.0.1").send(request)
    assert (answer.status, answer.reason, answer.body) == (201, "Made", b"made")
    assert answer.headers["x-one"] == "1, 2"
    assert answer.url == f"http://127.0.0.1:{here.port}/a?x=1&y=a+b&z=%26"
    (asked,) = here.asked
    assert asked.line == "POST /a?x=1&y=a+b&z=%26 HTTP/1.1"
    assert asked.body == b"{}"
    assert asked.headers["host"] == f"127.0.0.1:{here.port}"
    assert (asked.headers["x-key"], asked.headers["user-agent"], asked.headers["accept"]) == ("ü", "headrace", "*/*")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost.", "2130706433", "0x7f.1", "127.1", "0"])
async def test_a_loopback_server_is_never_connected_to(host: str) -> None:
    """However it is written, this machine is refused before a connection is made."""
    async with site() as here:
        with pytest.raises(ForbiddenTargetError):
            await OutboundClient().send(get(f"http://{host}:{here.port}/"))
    assert here.connections == 0


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["127.0.0.1", "8.8.8.8"], ["::1"], ["::ffff:127.0.0.1"], ["10.0.0.1"]],
)
async def test_a_name_of_a_private_address_is_refused(addresses: list[str]) -> None:
    """One wrong address of a name is enough, and nothing is connected to, not even the right one."""
    async with site() as here:
        with pytest.raises(ForbiddenTargetError, match=rf"add \"rebind\.example:{here.port}\""):
            await client(names=Names([addresses])).send(get(f"http://rebind.example:{here.port}/"))
    assert here.connections == 0


async def test_a_name_that_changes_its_address_is_asked_once() -> None:
    """The address that was checked is the one that is connected to: a second answer is never asked for."""
    names = Names([["127.0.0.1"], ["127.0.0.2"]])
    async with site() as here:
        answer = await client(f"127.0.0.1:{here.port}", names=names).send(get(f"http://rebind.example:{here.port}/"))
        assert answer.body == b"ok"
        assert names.questions == ["rebind.example"]
        assert here.asked[0].headers["host"] == f"rebind.example:{here.port}"
        # Asked anew, the name now has an address that is not allowed.
        with pytest.raises(ForbiddenTargetError):
            await client(f"127.0.0.1:{here.port}", names=names).send(get(f"http://rebind.example:{here.port}/"))
    assert (here.connections, names.questions) == (1, ["rebind.example"] * 2)


async def test_a_name_is_checked_again_for_each_redirect() -> None:
    """A name that was right when it was asked first is refused when a redirect to itself finds another address."""
    names = Names([["127.0.0.1"], ["169.254.169.254"]])
    async with site(to("/again")) as here:
        with pytest.raises(ForbiddenTargetError, match="link-local"):
            await client("127.0.0.1", names=names).send(get(f"http://rebind.example:{here.port}/"))
    assert here.connections == 1


@pytest.mark.parametrize(
    "location",
    ["http://169.254.169.254/latest/meta-data/", "http://127.0.0.2:1/", "//127.0.0.2/", "http://[::1]/",
     "file:" + "///etc/x",
     "http://2130706433/", "http://who@127.0.0.1/", "http://[", "gopher://127.0.0.1/", "http://localhost:22/"],
)  # fmt: skip
@pytest.mark.parametrize("status", [301, 307])
async def test_a_redirect_to_a_forbidden_target_is_refused(location: str, status: int) -> None:
    """What a redirect leads to is checked like what was written; the error says that a redirect it was."""
    async with site(to(location, status)) as here:
        with pytest.raises(ForbiddenTargetError, match=rf"^the redirect of http://127\.0\.0\.1:{here.port} must"):
            await client(f"127.0.0.1:{here.port}").send(get(f"http://127.0.0.1:{here.port}/"))
    assert here.connections == 1


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy could connect to anything, so that none is asked."""
    async with site() as proxy, site() as here:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        await client("127.0.0.1").send(get(f"http://127.0.0.1:{here.port}/"))
    assert (proxy.connections, here.connections) == (0, 1)


async def test_redirects_are_followed_within_an_origin_with_all_headers() -> None:
    """A relative redirect keeps method, body and secrets where the status says so."""
    async with site(to("b?c=1", 307), OK) as here:
        request = get(
            f"http://127.0.0.1:{here.port}/a/x", method="POST", body=b"data", headers=(("Authorization", "hush"),)
        )
        answer = await client("127.0.0.1").send(request)
    assert (answer.status, answer.url) == (200, f"http://127.0.0.1:{here.port}/a/b?c=1")
    assert [asked.line for asked in here.asked] == ["POST /a/x HTTP/1.1", "POST /a/b?c=1 HTTP/1.1"]
    assert (here.asked[1].body, here.asked[1].headers["authorization"]) == (b"data", "hush")


@pytest.mark.parametrize(("location", "code"), [("/café?q=é", "utf-8"), ("/café?q=é", "latin-1")])
async def test_a_redirect_to_a_path_beyond_ascii(location: str, code: str) -> None:
    """A path that is not encoded is taken as UTF-8 if it is that, else as Latin-1, and asked for as browsers do."""
    async with site(to(location).decode().encode(code), OK) as here:
        await client("127.0.0.1").send(get(f"http://127.0.0.1:{here.port}/"))
    assert here.asked[1].line == f"GET {location.replace('é', '%C3%A9')} HTTP/1.1"


async def test_a_file_name_beyond_ascii() -> None:
    """Names of files are read as UTF-8, too."""
    told = 'content-disposition: attachment; filename="Prüfung €.pdf"'
    async with site(with_body(b"x", told)) as here:
        answer = await client("127.0.0.1").send(get(f"http://127.0.0.1:{here.port}/"))
    assert answer.headers["content-disposition"] == 'attachment; filename="Prüfung €.pdf"'


@pytest.mark.parametrize("query", [(("a", "\ud800"),), (("\udc00", "a"),)])
async def test_halves_of_surrogate_pairs_are_not_sent(query: tuple[tuple[str, str], ...]) -> None:
    """Neither in the query nor in a header, and the error does not show the value."""
    async with site() as here:
        url = f"http://127.0.0.1:{here.port}/"
        with pytest.raises(InvalidInputError, match="query must have no halves of surrogate pairs"):
            await client("127.0.0.1").send(get(url, query=query))
        with pytest.raises(InvalidInputError, match=r"headers\.X-A must have no line breaks or control"):
            await client("127.0.0.1").send(get(url, headers=(("X-A", "a\ud800"),)))
    assert here.connections == 0


@pytest.mark.parametrize(
    ("status", "method", "after"),
    [(301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (303, "PUT", "GET"), (303, "HEAD", "HEAD"),
     (301, "PUT", "PUT"), (302, "DELETE", "DELETE"), (307, "POST", "POST"), (308, "PATCH", "PATCH")],
)  # fmt: skip
async def test_the_method_after_a_redirect(status: int, method: str, after: str) -> None:
    """A method that becomes GET loses its body and what describes it; the others keep both."""
    async with site(to("/b", status), OK) as here:
        headers = (("Content-Type", "text/plain"), ("X-Kept", "1"))
        await client("127.0.0.1").send(
            get(f"http://127.0.0.1:{here.port}/a", method=method, body=b"data", headers=headers)
        )
    second = here.asked[1]
    kept = after != "GET"
    assert second.line == f"{after} /b HTTP/1.1"
    assert (second.body, second.headers.get("content-type")) == ((b"data", "text/plain") if kept else (b"", None))
    assert second.headers["x-kept"] == "1"


async def test_another_origin_is_told_no_secret() -> None:
    """Any header but a few that say nothing is dropped when scheme, host or port change."""
    headers = tuple((name, "hush") for name in ("Authorization", "Cookie", "X-Api-Key", "Proxy-Authorization", "Odd"))
    plain = (("Accept", "text/csv"), ("User-Agent", "me"), ("Accept-Language", "de"))
    async with site() as there, site(to(f"http://127.0.0.1:{there.port}/")) as here:
        await client("127.0.0.1").send(get(f"http://127.0.0.1:{here.port}/", headers=headers + plain))
    assert "hush" in str(here.asked[0].headers)
    assert "hush" not in str(there.asked[0].headers)
    assert [there.asked[0].headers[name.lower()] for name, _ in plain] == [value for _, value in plain]


async def test_redirects_end() -> None:
    """A loop ends after as many as are allowed; none allowed gives the redirect itself."""
    async with site(to("/")) as here:
        with pytest.raises(HttpError, match="3 redirects and no answer") as caught:
            await client("127.0.0.1").send(get(f"http://127.0.0.1:{here.port}/", max_redirects=3))
        assert (caught.value.code, caught.value.transient, here.connections) == ("http_redirects", False, 4)
        answer = await client("127.0.0.1").send(get(f"http://127.0.0.1:{here.port}/", max_redirects=0))
    assert (answer.status, answer.headers["location"], here.connections) == (302, "/", 5)


@pytest.mark.parametrize(
    "reply",
    [with_body(b"x" * 1001), b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001, with_body(gzip.compress(b"x" * 1001),
     "content-encoding: gzip"), with_body(gzip.compress(b"") * 60, "content-encoding: gzip")],
    ids=["with a length", "to the end", "inflated", "as it came"],
)  # fmt: skip
async def test_an_answer_that_is_too_large_is_refused(reply: bytes) -> None:
    """The bound holds for what comes and for what it becomes."""
    async with site(reply) as here:
        with pytest.raises(HttpError, match="larger than 1000 bytes") as caught:
            await client("127.0.0.1").send(get(f"http://127.0.0.1:{here.port}/", max_bytes=1000))
    assert (caught.value.code, caught.value.transient) == ("http_too_large", False)


async def test_a_small_answer_cannot_become_huge() -> None:
    """Of a gigabyte in a megabyte no more is inflated than the bound and a piece."""
    packed = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packed.compress(bytes(1 << 20)) for _ in range(64)) + packed.flush()
    async with site(with_body(bomb * 16, "content-encoding: gzip")) as here:
        with pytest.raises(HttpError, match="larger than 1000000 bytes"):
            await client("127.0.0.1").send(get(f"http://127.0.0.1:{here.port}/", max_bytes=1_000_000))


async def test_a_huge_answer_is_not_inflated_at_once() -> None:
    """However much a piece that came would become, memory holds the bound and little more."""
    packed = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packed.compress(bytes(1 << 20)) for _ in range(32)) + packed.flush()

    async def whole() -> AsyncIterator[bytes]:
        yield bomb

    tracemalloc.start()
    try:
        with pytest.raises(HttpError, match="larger than 1000000 bytes"):
            await read_body(whole(), "gzip", 1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [0, 1, 256 * 1024, 256 * 1024 + 1, 1_000_000])
async def test_gzip_is_inflated(size: int) -> None:
    """Whatever its length is beside that of a piece; several parts are one body, and padding is none of it."""
    body = b"ab" * (size // 2) + b"c" * (size % 2)
    packed = gzip.compress(body[: size // 3]) + gzip.compress(body[size // 3 :]) + bytes(8)
    async with site(with_body(packed, "content-encoding: gzip")) as here:
        answer = await client("127.0.0.1").send(get(f"http://127.0.0.1:{here.port}/", max_bytes=1_000_000))
    assert answer.body == body


BROKEN = {
    "no gzip": (with_body(b"plain", "content-encoding: gzip"), "is no gzip", False),
    "half a gzip": (with_body(gzip.compress(b"x" * 99)[:-9], "content-encoding: gzip"), "ended early", True),
    "another encoding": (with_body(b"x", "content-encoding: br"), "'br', which was not asked for", False),
    "half an answer": (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", "no whole answer", True),
    "no HTTP": (b"220 mail.example ESMTP\r\n", "no whole answer", True),
    "nothing": (b"", "no whole answer", True),
    "endless headers": (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000, "no whole answer", True),
}


@pytest.mark.parametrize(("reply", "words", "transient"), BROKEN.values(), ids=list(BROKEN))
async def test_an_answer_that_is_broken_is_an_error(reply: bytes, words: str, transient: bool) -> None:
    """It says what was wrong with it, and whether trying again can help."""
    async with site(reply) as here:
        with pytest.raises(HttpError, match=words) as caught:
            await client("127.0.0.1").send(get(f"http://127.0.0.1:{here.port}/secret"))
    assert (caught.value.code, caught.value.transient) == ("http_broken", transient)
    assert "secret" not in str(caught.value)


async def test_an_answer_without_a_body_is_not_inflated() -> None:
    """The answer to HEAD says how its body would be packed, and has none."""
    async with site(b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\ncontent-encoding: gzip\r\n\r\n") as here:
        answer = await client("127.0.0.1").send(get(f"http://127.0.0.1:{here.port}/", method="HEAD"))
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n"], ids=["head", "body"])
async def test_a_slow_answer_ends_with_the_time_of_the_whole(start: bytes) -> None:
    """A byte now and then does not make the deadline longer, and the connection is closed."""

    async def drip(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with served(drip) as here:
        began = asyncio.get_running_loop().time()
        with pytest.raises(HttpError, match=r"no whole answer within 200ms") as caught:
            await client("127.0.0.1").send(get(f"http://127.0.0.1:{here.port}/", timeout=timedelta(milliseconds=200)))
        assert 0.15 < asyncio.get_running_loop().time() - began < 3
    assert (caught.value.code, caught.value.transient) == ("http_timeout", True)


async def test_a_redirect_does_not_begin_the_time_anew() -> None:
    """The deadline is that of all redirects together."""

    async def slowly(_: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        writer.write(to("/"))

    async with served(slowly) as here:
        with pytest.raises(HttpError, match="within 200ms"):
            await client("127.0.0.1").send(
                get(f"http://127.0.0.1:{here.port}/", timeout=timedelta(milliseconds=200), max_redirects=1000)
            )
        assert here.connections <= 5


async def test_what_cannot_be_reached_is_transient() -> None:
    """Nobody listens, or the name is not known: an error that names the site."""
    async with site() as here:
        pass
    with pytest.raises(HttpError, match=rf"http://127\.0\.0\.1:{here.port} cannot be reached") as caught:
        await client("127.0.0.1").send(get(f"http://127.0.0.1:{here.port}/"))
    assert (caught.value.code, caught.value.transient) == ("http_unreachable", True)
    with pytest.raises(HttpError, match=r"nowhere\.example has no address"):
        await client(names=Names([[]])).send(get("http://nowhere.example/"))


@pytest.mark.parametrize(("why", "transient"), [(socket.EAI_NONAME, False), (socket.EAI_AGAIN, True)])
async def test_a_name_that_is_not_known(why: int, transient: bool) -> None:
    """Whether the name is wrong or nobody could say decides whether trying again can help."""

    async def unknown(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(why, "not known")

    with pytest.raises(HttpError, match=r"the host nowhere\.example is not known") as caught:
        await OutboundClient(resolve=unknown).send(get("http://nowhere.example/"))
    assert (caught.value.code, caught.value.transient) == ("http_unreachable", transient)


async def test_the_next_address_is_tried() -> None:
    """Where nobody listens at the first checked address, the second one is connected to."""
    async with site() as here:
        names = Names([["127.0.0.3", "127.0.0.1"]])
        answer = await client("127.0.0.0/8", names=names).send(get(f"http://two.example:{here.port}/"))
    assert (answer.body, names.questions) == (b"ok", ["two.example"])


async def test_the_machine_knows_its_own_name() -> None:
    """The resolver that is used unless another one is given."""
    assert set(await resolve_host("localhost", 80)) <= {"127.0.0.1", "::1"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "CONNECT"}, "method must be one of"),
        ({"headers": (("X-A", "hush\r\nX-B: 1"),)}, "headers.X-A must have no line breaks"),
        ({"headers": (("X A", "hush"),)}, "headers must have names"),
        ({"headers": (("X:A", "hush"),)}, "headers must have names"),
        ({"headers": (("Host", "other.example"),)}, "headers.Host must be left out"),
    ],
)
async def test_a_request_that_cannot_be_sent_is_refused(options: dict[str, object], words: str) -> None:
    """Wrong methods and headers are named, never with a value that may be a secret."""
    async with site() as here:
        with pytest.raises(InvalidInputError, match=words) as caught:
            await client("127.0.0.1").send(get(f"http://127.0.0.1:{here.port}/", **options))
    assert here.connections == 0
    assert "hush" not in str(caught.value)


async def test_headers_of_the_connection_are_ours() -> None:
    """What was copied from elsewhere cannot disturb the wire: length, encoding and connection are as they are sent."""
    async with site() as here:
        written = (
            ("Content-Length", "999"), ("Transfer-Encoding", "chunked"), ("Connection", "keep-alive"),
            ("Accept-Encoding", "br"), ("Host", f"127.0.0.1:{here.port}"),
        )  # fmt: skip
        await client("127.0.0.1").send(
            get(f"http://127.0.0.1:{here.port}/", method="POST", body=b"data", headers=written)
        )
    headers = here.asked[0].headers
    assert (headers["content-length"], headers["accept-encoding"], headers["connection"]) == ("4", "gzip", "close")
    assert "transfer-encoding" not in headers


@dataclass
class Authority:
    """Certificates of one authority, made for this test."""

    folder: Path

    def certify(self, name: str) -> ssl.SSLContext:
        """Return what a server of a name shows; its certificate is its own authority."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        now = datetime.datetime.now(datetime.UTC)
        try:
            alternative: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            alternative = x509.DNSName(name)
        certificate = (
            x509.CertificateBuilder(subject, subject, key.public_key(), 1, now - timedelta(days=1), now + timedelta(1))
            .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        (self.folder / "both.pem").write_bytes(certificate.public_bytes(pem) + private)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "both.pem")
        return context

    def trusted(self) -> ssl.SSLContext:
        """Return what trusts the certificate that was made last."""
        return ssl.create_default_context(cafile=str(self.folder / "both.pem"))


async def test_tls_is_that_of_the_name(tmp_path: Path) -> None:
    """The connection goes to the checked address; the server is told the name and must have a certificate of it."""
    authority = Authority(tmp_path)
    server = authority.certify("api.example")
    told: list[str | None] = []
    server.sni_callback = lambda _, name, __: told.append(name)
    async with site(tls=server) as here:
        trusting = client("127.0.0.1", tls=authority.trusted())
        answer = await trusting.send(get(f"https://api.example.:{here.port}/"))
        assert (answer.body, told) == (b"ok", ["api.example"])
        assert here.asked[0].headers["host"] == f"api.example:{here.port}"
        with pytest.raises(HttpError, match=r"other\.example:\d+ cannot be trusted") as caught:
            await trusting.send(get(f"https://other.example:{here.port}/"))
        assert (caught.value.code, caught.value.transient) == ("http_tls", False)
        with pytest.raises(HttpError, match="cannot be trusted"):
            await client("127.0.0.1").send(get(f"https://api.example:{here.port}/"))
    assert len(here.asked) == 1


async def test_tls_of_an_address(tmp_path: Path) -> None:
    """A certificate of an address serves a URL that has it."""
    authority = Authority(tmp_path)
    async with site(tls=authority.certify("127.0.0.1")) as here:
        answer = await client("127.0.0.1", tls=authority.trusted()).send(get(f"https://127.0.0.1:{here.port}/"))
    assert answer.status == 200


async def test_a_server_without_tls_is_an_error_and_closed() -> None:
    """Where no TLS comes about the connection is closed, by the deadline at the latest."""
    async with site(b"HTTP/1.1 400 Bad\r\n\r\n") as here:
        with pytest.raises(HttpError) as caught:
            await client("127.0.0.1").send(get(f"https://127.0.0.1:{here.port}/", timeout=timedelta(milliseconds=300)))
    assert caught.value.code in ("http_tls", "http_timeout", "http_unreachable")


async def test_a_node_asks_with_its_credential_and_tells_it_to_nobody_else() -> None:
    """httpRequest over the wire: the secret goes to the address that was written, and not along a redirect."""
    services = FakeServices(credentials={"My API": Credential("header", "X-Api-Key", "", "a long secret")})
    listed = with_body(b'[{"a": 1}, {"a": 2}]', "content-type: application/json")
    async with site(listed) as there, site(to(f"http://127.0.0.1:{there.port}/b")) as here:
        services.http = client("127.0.0.1")
        parameters = {
            "url": f"=http://127.0.0.1:{here.port}/{{{{ $json.id }}}}",
            "authentication": "genericCredentialType",
            "genericAuthType": "httpHeaderAuth",
            "$credentials": {"httpHeaderAuth": {"id": "1", "name": "My API"}},
        }
        (out,) = await run_type(TYPE, parameters, [{"id": 7}], services=services)
    assert [item["json"] for item in out] == [{"a": 1}, {"a": 2}]
    assert (here.asked[0].line, here.asked[0].headers["x-api-key"]) == ("GET /7 HTTP/1.1", "a long secret")
    assert "secret" not in str(there.asked[0].headers)
