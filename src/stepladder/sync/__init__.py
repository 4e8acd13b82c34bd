"""HOW PLANS GO OUT AND RECORDS COME BACK: one host, one client per env, three ways to connect."""

from stepladder.sync.client import Client
from stepladder.sync.counts import EpisodeCounts, Staleness
from stepladder.sync.host import Host
from stepladder.sync.local import LocalClient, LocalHost
from stepladder.sync.pushed import PushedClient, PushedHost
from stepladder.sync.registry import BACKENDS
from stepladder.sync.shared import SharedClient, SharedHost

__all__ = [
    "BACKENDS",
    "Client",
    "EpisodeCounts",
    "Host",
    "LocalClient",
    "LocalHost",
    "PushedClient",
    "PushedHost",
    "SharedClient",
    "SharedHost",
    "Staleness",
]
