"""Where processes listen, by what the kernel says (Linux)."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from pathlib import Path

#: State LISTEN in /proc/net/tcp.
_LISTEN = "0A"


def open_to_others(pids: Iterable[int]) -> list[str]:
    """Return the addresses beyond loopback at which these processes listen; nothing where the kernel does not tell."""
    mine = {inode for pid in pids for inode in _sockets(pid)}
    found = (pair for table in ("tcp", "tcp6") for pair in _listeners(table))
    return sorted(shown for inode, address, shown in found if inode in mine and not _is_loopback(address))


def _sockets(pid: int) -> list[str]:
    """Return the inodes of the sockets of a process."""
    targets = (_target(entry) for entry in _entries(Path(f"/proc/{pid}/fd")))
    return [target[8:-1] for target in targets if target.startswith("socket:[")]


def _entries(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):  # the process is gone, or is another user's
        return list(folder.iterdir())
    return []


def _target(entry: Path) -> str:
    with contextlib.suppress(OSError):
        return str(entry.readlink())
    return ""


def _listeners(table: str) -> list[tuple[str, str, str]]:
    """Return inode, address and `address:port` of what listens."""
    try:
        lines = Path("/proc/net", table).read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return []
    found = []
    for fields in (line.split() for line in lines):
        if fields[3] == _LISTEN:
            address, port = fields[1].split(":")
            shown = parse_address(address)
            found.append((fields[9], shown, f"{shown} port {int(port, 16)}"))
    return found


def parse_address(text: str) -> str:
    """Return an address as people write it: the kernel shows words of four bytes in the order of the machine.

    >>> import sys
    >>> parse_address("0100007F" if sys.byteorder == "little" else "7F000001")
    '127.0.0.1'
    """
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    return socket.inet_ntop(socket.AF_INET if len(words) == 1 else socket.AF_INET6, packed)


def _is_loopback(text: str) -> bool:
    address = ip_address(text)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
