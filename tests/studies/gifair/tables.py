"""Tables made by hand, with the setting columns that collected tables have."""

from __future__ import annotations

import pandas as pd

from fedrepro.evidence.tables import TABLE_COLUMNS, with_settings


def tidy(lines: list[dict[str, object]]) -> pd.DataFrame:
    """A tidy table of the job `global`; its settings are `<variant>` or `<variant>,<key>=<number>`."""
    common = {"experiment": "gifair/x", "algorithm": "global", "step": 0, "data": "real", "diverged": False}
    frame = pd.DataFrame([{"client": -1, "split": "", "group": "", "round": 0, **common, **line} for line in lines])
    settings = {}
    for setting in frame["setting"].unique():
        variant, _, point = setting.partition(",")
        grid = {key: float(value) for key, _, value in [point.partition("=")] if key}
        settings[setting] = {"variant": variant, "method": variant, "grid": grid}
    return with_settings(frame[TABLE_COLUMNS], [{"algorithm": "global", "settings": settings}])
