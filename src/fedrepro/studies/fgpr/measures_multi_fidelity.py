"""Multi-fidelity modelling (thesis §4.6): FGPR's gain by sharing and by budget, and the explained variance.

- explained: 1 − (RMSE / RMSE of the trivial predictor)² on the high fidelity's test points: 1 if the function is
  recovered, 0 if the training mean is as good.
- gain_published: 1 − RMSE of FGPR / RMSE of Separate, both by the published protocol.
- gain_budget: 1 − RMSE of Separate to convergence / RMSE of Separate by the published protocol: no sharing at all.
- gain_sharing, gain_sharing_ard: 1 − RMSE of one θ for all clients to convergence / RMSE of Separate to convergence.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from fedrepro.evidence.tables import RUN, final

#: gain → the better arm and the worse: (algorithm, setting)
GAINS = {
    "gain_published": (("fgpr", "published"), ("separate", "published")),
    "gain_budget": (("baseline", "separate"), ("separate", "published")),
    "gain_sharing": (("baseline", "shared"), ("baseline", "separate")),
    "gain_sharing_ard": (("baseline", "shared ard"), ("baseline", "separate ard")),
}


def multi_fidelity_measures(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """(metric, one value per run) of the experiments of §4.6, recognised by their names."""
    if not table["experiment"].str.contains("/(?:multi_fidelity|one_dimensional)_").any():
        return
    overall = {"split": "test", "group": "", "client": -1}
    errors, trivial = (final(table, metric, **overall) for metric in ("a_rmse", "a_rmse_trivial"))
    both = errors.merge(trivial[[*RUN, "value"]], on=RUN, suffixes=("", "_trivial"))
    yield "explained", both.assign(value=1 - (both["value"] / both["value_trivial"]) ** 2)[[*RUN, "round", "value"]]
    for name, (better, worse) in GAINS.items():
        pair = [errors[(errors["algorithm"] == a) & (errors["setting"] == s)] for a, s in (better, worse)]
        found = pair[0].merge(pair[1][["seed", "value"]], on="seed", suffixes=("", "_worse"))
        if len(found):
            yield name, found.assign(value=1 - found["value"] / found["value_worse"])[[*RUN, "round", "value"]]
