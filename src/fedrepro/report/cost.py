"""Cost of the runs: time, memory, machines, versions; and which runs diverged."""

from collections import Counter, defaultdict
from typing import Any

from fedrepro.report.formats import MAX_ROWS, as_float, as_text, duration, natural
from fedrepro.report.gather import as_dict, as_dicts, as_list


def cost_of(runs: list[dict[str, Any]], studies: list[str]) -> dict[str, Any]:
    """Time, memory and machines of the runs, by study and by (experiment, algorithm); diverged runs."""
    keys = ("experiment", "algorithm", "setting", "seed", "round")
    lost = [{**run, **item} for run in runs for item in as_dicts(run.get("diverged"))]
    diverged = [{key: as_text(item.get(key)) for key in keys} for item in lost]
    by_study = []
    for study in studies:
        if not (ours := [run for run in runs if run["study"] == study]):
            continue
        groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for run in ours:
            groups[as_text(run["experiment"]), as_text(run["algorithm"])].append(run)
        rows = [{"experiment": key[0], "algorithm": key[1], **_row(group)} for key, group in groups.items()]
        rows.sort(key=lambda item: (natural(item["experiment"]), natural(item["algorithm"])))
        by_study.append({"study": study, "rows": rows, **_row(ours)})
    versions: dict[str, set[str]] = defaultdict(set)
    for name, version in (pair for run in runs for pair in as_dict(run.get("versions")).items()):
        versions[as_text(name)].add(as_text(version))
    return {
        "total": _row(runs) if runs else None,
        "studies": by_study,
        "machines": sorted(Counter(map(_machine, runs)).items()),
        "versions": [(name, ", ".join(sorted(found))) for name, found in sorted(versions.items())],
        "commits": sorted({as_text(run.get("commit")) for run in runs} - {""}),
        "diverged": diverged[:MAX_ROWS],
        "diverged_total": len(diverged),
    }


def _row(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """One line of the cost tables, for several jobs together."""
    seconds = [as_float(run.get("seconds")) for run in runs]
    seeds = {as_text(seed) for run in runs for seed in as_list(run.get("seeds"))}
    strategies = {as_text(run.get("strategy")) for run in runs} - {""}
    return {
        "jobs": len(runs),
        "seeds": len(seeds),
        "seconds": duration(sum(seconds)),
        "longest": duration(max(seconds)),
        "memory": f"{max(as_float(run.get('peak_memory_mb')) for run in runs):,.0f} MB",
        "strategy": ", ".join(sorted(strategies)) or "–",
        "steps": f"{sum(as_float(run.get('gradient_steps')) for run in runs):,.0f}",
        "diverged": sum(len(as_dicts(run.get("diverged"))) for run in runs),
        "resumed": sum(run.get("resumed_from") is not None for run in runs),
    }


def _machine(run: dict[str, Any]) -> str:
    machine = as_dict(run.get("machine"))
    cores, memory = machine.get("cores"), machine.get("memory_gb")
    device, threads = run.get("device"), run.get("threads")
    known = [
        as_text(machine.get("cpu")),
        cores and f"{as_text(cores)} cores",
        memory and f"{as_float(memory):.3g} GB memory",
        as_text(machine.get("system")),
        device and f"device {as_text(device)}",
        threads and f"{as_text(threads)} thread{'' if threads == 1 else 's'} a job",
    ]
    return ", ".join(filter(None, known)) or "not recorded"
