"""Delays between processes."""

from __future__ import annotations

from outrider_cluster.simulator.randomness import Randomness
from outrider_cluster.simulator.scenario import Network


class Links:
    """One-way delays. A lost packet is sent again, so that its frame is late and never missing.

    Args:
        network: means and spreads.
        randomness: for jitter and losses.
    """

    def __init__(self, network: Network, randomness: Randomness) -> None:
        self._one_way_s = network.round_trip_ms / 2e3
        self._retransmit_s = network.retransmit_ms / 1e3
        self._network = network
        self._randomness = randomness

    def one_way_s(self) -> float:
        """Delay of one frame in seconds."""
        delay_s = self._one_way_s * self._randomness.spread(self._network.jitter)
        if self._network.loss and self._randomness.uniform() < self._network.loss:
            delay_s += self._retransmit_s
        return delay_s
