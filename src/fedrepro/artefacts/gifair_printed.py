"""What the thesis prints in Tables 2.1 to 2.6, in per cent; the same numbers as in config/published/gifair.csv."""

from __future__ import annotations

#: Table 2.1: group → (images, devices)
TABLE2_1 = {"capital": (800, 60), "lowercase": (1000, 100), "mixed": (600, 40)}

#: table → method → (mean accuracy, its sd over runs, spread over devices, its sd over runs)
PAIRS: dict[str, dict[str, tuple[float, float, float, float]]] = {
    "table2_2": {
        "fedavg": (79.2, 1.0, 22.3, 1.1),
        "q_ffl": (84.6, 1.9, 18.5, 1.2),
        "term": (84.2, 1.3, 13.8, 1.0),
        "fedmgda_plus": (85.0, 1.7, 14.9, 1.6),
        "ditto": (92.5, 3.1, 14.3, 1.0),
        "gifair_global": (87.9, 0.9, 5.7, 0.8),
        "gifair_per": (93.0, 1.1, 6.2, 0.9),
    },
    "table2_3": {
        "fedavg": (80.4, 1.3, 11.1, 1.4),
        "q_ffl": (80.9, 1.1, 10.6, 1.3),
        "term": (81.0, 1.0, 10.3, 1.2),
        "afl": (82.4, 1.0, 9.85, 0.9),
        "ditto": (83.7, 1.9, 10.1, 1.6),
        "gifair_global": (83.2, 0.7, 5.2, 0.8),
        "gifair_per": (84.1, 1.2, 4.5, 0.8),
    },
    "table2_5": {
        "fedavg": (53.21, 0.31, 9.25, 6.17),
        "q_ffl": (53.90, 0.30, 7.52, 5.10),
        "afl": (54.58, 0.14, 8.44, 5.65),
        "ditto": (60.74, 0.42, 8.32, 4.77),
        "gifair_global": (57.04, 0.23, 3.14, 1.25),
        "gifair_per": (61.58, 0.14, 4.33, 1.25),
    },
}

#: table → the groups, and method → (mean accuracy and its sd over runs of each group, discrepancy)
GROUPS: dict[str, tuple[tuple[str, ...], dict[str, tuple[tuple[tuple[float, float], ...], float]]]] = {
    "table2_4": (
        ("capital", "lowercase", "mixed"),
        {
            "fedavg": (((79.72, 2.08), (90.93, 2.35), (80.21, 2.91)), 11.21),
            "q_ffl": (((81.15, 1.97), (88.24, 2.13), (80.93, 1.86)), 7.31),
            "term": (((81.29, 1.45), (88.08, 1.09), (81.84, 1.44)), 6.79),
            "fedmgda_plus": (((81.03, 2.28), (89.12, 1.74), (81.33, 1.59)), 8.09),
            "ditto": (((82.37, 2.06), (92.05, 2.00), (83.03, 2.18)), 9.02),
            "term_group": (((82.01, 1.95), (89.13, 1.00), (81.75, 2.04)), 7.38),
            "gifair_global": (((83.41, 1.34), (88.29, 1.22), (84.37, 1.85)), 6.07),
            "gifair_per": (((83.96, 1.22), (91.05, 1.31), (84.98, 0.99)), 7.09),
        },
    ),
    "table2_6": (
        ("male", "female"),
        {
            "fedavg": (((72.95, 1.70), (40.39, 1.49)), 32.56),
            "q_ffl": (((67.14, 2.18), (43.26, 2.05)), 23.88),
            "fedmgda_plus": (((67.07, 2.11), (43.85, 2.32)), 23.22),
            "ditto": (((74.19, 3.75), (45.73, 4.01)), 28.46),
            "term_group": (((72.87, 1.01), (44.31, 0.96)), 28.56),
            "gifair_global": (((67.42, 0.98), (52.04, 1.10)), 15.38),
            "gifair_per": (((73.95, 0.59), (54.88, 1.12)), 19.07),
        },
    ),
}

#: test samples of a device, where the thesis' numbers settle them: a fifth of 500 images (§2.5.1), of the 226.83 images
#: that a FEMNIST writer has on average (LEAF, Caldas et al. 2018, Table 1), of a role's 29,908 windows
TEST_SAMPLES = {"table2_2": 100.0, "table2_3": 0.2 * 226.83, "table2_5": 0.2 * 29_908}
