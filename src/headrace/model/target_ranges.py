"""Ranges of addresses that are no part of the public internet, each with what it is for.

The table is written out: what the standard library calls global differs from one Python to the next.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

_FOUR = {
    IPv4Network(network): kind
    for network, kind in {
        "0.0.0.0/8": "an unspecified address",
        "10.0.0.0/8": "a private address",
        "100.64.0.0/10": "an address of a carrier's inner network",
        "127.0.0.0/8": "a loopback address",
        # Where clouds keep the credentials of their machines.
        "169.254.0.0/16": "a link-local address",
        "168.63.129.16/32": "an address of a cloud's inner services",
        "172.16.0.0/12": "a private address",
        "192.0.0.0/24": "a reserved address",
        "192.0.2.0/24": "an address for documentation",
        "192.88.99.0/24": "an address of 6to4 relays",
        "192.168.0.0/16": "a private address",
        "198.18.0.0/15": "an address for benchmarks",
        "198.51.100.0/24": "an address for documentation",
        "203.0.113.0/24": "an address for documentation",
        "224.0.0.0/4": "a multicast address",
        "255.255.255.255/32": "the broadcast address",
        "240.0.0.0/4": "a reserved address",
    }.items()
}
_SIX = {
    IPv6Network(network): kind
    for network, kind in {
        "::/128": "the unspecified address",
        "::1/128": "the loopback address",
        "::ffff:0:0/96": "an IPv4 address within an IPv6 one",
        "::/96": "an IPv4 address within an IPv6 one",
        "64:ff9b::/96": "an address of NAT64",
        "64:ff9b:1::/48": "an address of NAT64",
        "2001::/32": "an address of Teredo",
        "2001::/23": "a reserved address",
        "2001:db8::/32": "an address for documentation",
        "2002::/16": "an address of 6to4",
        "3fff::/20": "an address for documentation",
        "fc00::/7": "a private address",
        "fe80::/10": "a link-local address",
        "fec0::/10": "a site-local address",
        "ff00::/8": "a multicast address",
    }.items()
}
#: All that is given out for public use; whatever is not in it is reserved.
_PUBLIC_SIX = IPv6Network("2000::/3")


def why_not_public(address: Address) -> str | None:
    """Return what an address is for when it is not a public one; None: it is public.

    >>> why_not_public(IPv4Address("127.0.0.1"))
    'a loopback address (127.0.0.0/8)'
    >>> why_not_public(IPv4Address("8.8.8.8"))
    """
    table = _FOUR if isinstance(address, IPv4Address) else _SIX
    for network, kind in table.items():
        if address in network:
            return f"{kind} ({network})"
    if isinstance(address, IPv6Address) and address not in _PUBLIC_SIX:
        return f"a reserved address (outside of {_PUBLIC_SIX})"
    return None
