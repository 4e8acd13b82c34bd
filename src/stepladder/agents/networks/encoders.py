"""What turns observations into features: joined as they are, through convolutions, or your own.

Made by the networks of the agents, with the settings of `network_config`. What has weights is
trained with the network that contains it.
"""

import torch
from torch import nn

from stepladder.agents.network_config import NetworkConfig
from stepladder.agents.networks.own_encoder import OwnEncoder
from stepladder.agents.observations import Encoder, Layout, Seen
from stepladder.agents.vision.convolutions import GridNetwork


class VisualEncoder(Encoder):
    """Reads pictures and tiles with convolutions, and joins the rest as it is.

    Args:
        layout: Of the observations.
        is_normalised: Whether numbers are brought to mean 0 and spread 1.
        generator: Source of the initial weights.
    """

    learns = True

    def __init__(self, layout: Layout, is_normalised: bool, generator: torch.Generator):
        super().__init__(layout, is_normalised)
        self.num_features = layout.num_features
        self.networks = nn.ModuleList()
        self._columns: list[slice] = []
        for part in layout.grids:
            assert part.grid is not None
            self.networks.append(GridNetwork(part.grid, layout.frame_stack, generator))
            start, stop = (
                edge - layout.num_flat for edge in (part.columns.start, part.columns.stop)
            )
            self._columns.append(slice(start, stop))

    def join(self, prepared: Seen) -> torch.Tensor:
        """Return features of what `prepare` returned."""
        numbers, codes = self._plain(prepared)
        rows = codes.flatten(0, -2)
        if len(self.networks) == 1:
            found = [self.networks[0](rows)]
        else:
            frames = rows.unflatten(-1, (self._frame_stack, -1))
            found = [
                network(frames[..., columns].flatten(1))
                for network, columns in zip(self.networks, self._columns, strict=True)
            ]
        return torch.cat([numbers, *(one.unflatten(0, numbers.shape[:-1]) for one in found)], -1)


def make_encoder(layout: Layout, config: NetworkConfig, generator: torch.Generator) -> Encoder:
    """Make what turns observations into features.

    Raises:
        ConfigError: The encoder that the config names cannot be used.
    """
    if config.encoder is not None:
        return OwnEncoder(layout, config, generator)
    if layout.grids:
        return VisualEncoder(layout, config.normalise_observations, generator)
    return Encoder(layout, config.normalise_observations)
