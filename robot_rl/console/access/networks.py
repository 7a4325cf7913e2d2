"""The names or numbers by which a browser finds the console: those of this machine's networks."""

from __future__ import annotations

import ipaddress

import ifaddr

from robot_rl.console.access.address import Address

WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that mean every network of this machine, and what reaches them without any network."""


def reachable_hosts(address: Address) -> list[str]:
    """Return the hosts under which a browser can open an address.

    For `0.0.0.0` and `::` these are the numbers of this machine on its networks; without a network, itself.
    """
    if address.host not in WILDCARDS:
        return [address.host]
    version = 4 if address.host == "0.0.0.0" else 6
    found = [ip.ip for adapter in ifaddr.get_adapters() for ip in adapter.ips]
    numbers = [ipaddress.ip_address(ip if isinstance(ip, str) else ip[0]) for ip in found]
    own = [n for n in numbers if n.version == version and not n.is_loopback and not n.is_link_local]
    return [str(number) for number in own] or [WILDCARDS[address.host]]


def page_url(host: str, port: int, scheme: str) -> str:
    """Return the URL of the console's page; an IPv6 number is put in brackets."""
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/"
