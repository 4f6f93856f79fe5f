"""Ranks r_k of the clients' losses (thesis §2.3): by the mean loss of their groups."""

import torch
from torch import Tensor


def client_ranks(losses: Tensor, known: Tensor, group: Tensor) -> Tensor:
    """r_k [K] from the clients' known losses [K]; 0 for groups without a known client."""
    means, count = group_means(losses, known, group)
    rank = torch.zeros_like(means)
    rank[count > 0] = group_ranks(means[count > 0])
    return rank[group]


def group_means(losses: Tensor, known: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
    """(mean loss of the known clients of each group [d], 0 where there is none; how many these are [d])."""
    count = torch.bincount(group[known], minlength=int(group.max()) + 1)
    total = torch.zeros(len(count), dtype=losses.dtype).index_add_(0, group[known], losses[known])
    return total / count.clamp_min(1), count


def group_ranks(losses: Tensor) -> Tensor:
    """r_i = Σ_j sign(L_i − L_j) [d]: the number of smaller losses minus the number of larger ones."""
    ordered = losses.sort().values
    below = torch.searchsorted(ordered, losses)
    return (below - (len(losses) - torch.searchsorted(ordered, losses, right=True))).to(losses)
