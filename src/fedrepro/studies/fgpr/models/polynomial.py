"""Polynomial regression in one input, y = Σ_i β_i x^i (thesis App. C.3), every degree and output at once.

β [P + 1, S · D · B] for S outputs, D `degrees` and B `bases`: columns are independent and train as each would alone.
`monomial` is the thesis' form; `legendre` spans the same polynomials and shows where gradient descent in monomials,
of condition number e^{3.5 p}, would end with enough steps. Inputs are mapped to t = x / `width`, for Legendre's
to 2t − 1. Coefficients start at 0. Loss: ½(ŷ − y)², a mean over samples and a sum over columns.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fedrepro.core.algorithm import Problem
from fedrepro.core.federation import Batch
from fedrepro.core.model import AssessingModel, Assessment, Example
from fedrepro.core.params import Params
from fedrepro.errors import UserError, nearest
from fedrepro.studies.fgpr.gp.device_errors import columns, device_errors, output_names

BASES = ("monomial", "legendre")


class Moments(NamedTuple):
    """Full data: H = ΦᵀΦ/n of every basis [B, P + 1, P + 1], Φᵀy/n [P + 1, S · D · B], the mean of y² [S · D · B]."""

    curvature: Tensor
    linear: Tensor
    square: Tensor


class Polynomial(AssessingModel):
    """x [n, 1] → ŷ [n, S · D · B] (or [n] for one column), output by output, degree by degree, basis by basis."""

    objective = "half_squared_error"
    example = Example((1,), 1)

    def __init__(
        self,
        inputs: tuple[int, ...],
        outputs: int = 1,
        degrees: Sequence[int] = (10,),
        bases: Sequence[str] = ("monomial",),
        width: float = 1.0,
    ):
        super().__init__()
        for basis in bases:
            if basis not in BASES:
                raise UserError(f"polynomial: bases: '{basis}' is unknown{nearest(basis, BASES)}")
        self.outputs_apart, self.degrees, self.bases, self.width = outputs, tuple(degrees), tuple(bases), width
        most = max(degrees)
        kept = torch.arange(most + 1)[:, None] <= torch.tensor(degrees).repeat_interleave(len(bases))  # [P + 1, D · B]
        self.kept: Tensor
        self.register_buffer("kept", kept.repeat(1, outputs).to(torch.float64), persistent=False)
        self.beta = nn.Parameter(torch.zeros(most + 1, self.kept.shape[1]))

    def initialise(self, generator: torch.Generator) -> None:
        self.beta.zero_()

    def features(self, x: Tensor) -> Tensor:
        """Powers or Legendre polynomials of each x, for each column: [n, P + 1, S · D · B]."""
        t = x[:, 0] / self.width
        powers, legendre, u = [torch.ones_like(t)], [torch.ones_like(t), 2 * t - 1], 2 * t - 1
        for i in range(1, len(self.beta)):
            powers.append(powers[-1] * t)
            legendre.append(((2 * i + 1) * u * legendre[i] - i * legendre[i - 1]) / (i + 1))
        both = {"monomial": powers, "legendre": legendre[: len(self.beta)]}
        each = torch.stack([torch.stack(both[basis], -1) for basis in self.bases], -1)
        return each.repeat(1, 1, len(self.degrees) * self.outputs_apart)

    def forward(self, x: Tensor) -> Tensor:
        y = (self.features(x) * self.beta * self.kept.to(x)).sum(1)
        return y[:, 0] if y.shape[1] == 1 else y

    def targets(self, y: Tensor) -> Tensor:
        """y [n] or [n, S], repeated per degree and basis."""
        return columns(y).repeat_interleave(len(self.degrees) * len(self.bases), dim=1)

    def summarise(self, batch: Batch) -> Moments:
        """The moments of a full batch, for all steps on it."""
        features, y, shares = self.features(batch.x), self.targets(batch.y), batch.shares()
        bases = features[:, :, : len(self.bases)]
        weighted = features * (shares[:, None, None] if isinstance(shares, Tensor) else shares)
        curvature = torch.einsum("nib,njb->bij", weighted[:, :, : len(self.bases)], bases)
        return Moments(curvature, torch.einsum("nic,nc->ic", weighted, y), (y.square().T * shares).sum(-1))

    def batch_loss(self, w: Params, batch: Batch | Moments) -> Tensor:
        if isinstance(batch, Moments):
            beta = w["beta"] * self.kept.to(w["beta"])
            return 0.5 * ((beta * (self._curved(batch, beta) - 2 * batch.linear)).sum(0) + batch.square).sum()
        off = columns(functional_call(self, w, (batch.x,))) - self.targets(batch.y)
        return 0.5 * (off.square().sum(-1) * batch.shares()).sum()

    def batch_gradient(self, w: Params, batch: Batch | Moments) -> Params:
        kept = self.kept.to(w["beta"])
        if isinstance(batch, Moments):
            return Params(beta=(self._curved(batch, w["beta"] * kept) - batch.linear) * kept)
        features, shares = self.features(batch.x), batch.shares()
        off = (features * w["beta"] * kept).sum(1) - self.targets(batch.y)
        weighted = off * (shares[:, None] if isinstance(shares, Tensor) else shares)
        return Params(beta=(features * weighted[:, None]).sum(0) * kept)

    def _curved(self, whole: Moments, beta: Tensor) -> Tensor:
        """H β of every column, with the H of its basis: [P + 1, S · D · B]."""
        by_basis = beta.unflatten(-1, (-1, len(self.bases)))
        return torch.einsum("bij,jsb->isb", whole.curvature, by_basis).flatten(-2)

    @torch.no_grad()
    def assess(self, problem: Problem, models: dict[int, Params], split: str) -> Assessment:
        federation = problem.federation
        holdings = getattr(federation, split)
        predictions = {
            k: (columns(functional_call(self, w, (holdings.samples.x[holdings.of(k)],))), None)
            for k, w in models.items()
        }
        names = [
            f"{name}, {basis}, degree {degree}".removeprefix(", ")
            for name in output_names(federation, self.outputs_apart)
            for degree in self.degrees
            for basis in self.bases
        ]
        mse, errors = device_errors(predictions, federation, split, names, self.targets)
        return 0.5 * len(names) * mse, mse, errors
