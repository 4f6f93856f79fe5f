"""`fedrepro show`: an artefact's table or picture; with --config what an experiment or a claim comes to."""

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fedrepro.commands import command
from fedrepro.commands.command import Command, folder_argument, folder_with, read_rows, shown, study_names, wrapped
from fedrepro.commands.list import artefacts
from fedrepro.commands.why import claims_of, judged
from fedrepro.core.checksums import check
from fedrepro.core.expansion import Located
from fedrepro.core.experiment import expanded, expanded_in, load_experiment, scaled
from fedrepro.core.study import Study, study_of
from fedrepro.errors import UserError, nearest
from fedrepro.evidence.claim_files import load_claims
from fedrepro.files import read_json


def show(given: Namespace) -> Iterator[str]:
    if given.config:
        return show_config(given.name, given.scale)
    if given.scale:
        raise UserError("--scale is possible with --config only")
    study, _, own = given.name.partition("/")
    if not own:
        return show_study(study, given.folder)
    known = _artefacts_of(study_of(command.CONFIG, study).name)
    if own in known:
        return show_artefact(given.name, given.folder)
    if own in (claims := claims_of(study)):
        return judged(given.name, folder_with(f"ledgers/{study}.csv", given.folder, f"the ledger of {study}"))
    raise UserError(f"'{given.name}' is no artefact and no claim{nearest(own, [*known, *claims])}")


def show_study(name: str, folder: Path | None) -> Iterator[str]:
    """The paper, and its headlines with the verdicts of the newest run that has judged them."""
    study = study_of(command.CONFIG, name)
    yield study.title
    yield f"{', '.join(study.authors)} ({study.venue})"
    yield study.link
    yield ""
    try:
        judged_in = folder_with(f"headlines/{name}.csv", folder, f"the headlines of {name}")
        verdicts = {row["headline"]: row for row in read_rows(judged_in / "headlines" / f"{name}.csv")}
        yield f"headlines, judged in {shown(judged_in)}:"
    except UserError as error:
        verdicts = {}
        yield f"headlines, not judged ({error}):"
    for headline in study.headlines.values():
        row = verdicts.get(headline.id, {"verdict": "not judged", "reason": ""})
        main = "main message, " * (headline.id == study.main)
        yield from wrapped(f"{row['verdict']}: {headline.says} ({main}{headline.place}; {row['reason']})", "  ", "    ")
    yield ""
    yield from wrapped(f"artefacts: {', '.join(_artefacts_of(name))}", "", "  ")
    yield from wrapped(f"experiments: {', '.join(expanded_in(study))}", "", "  ")
    yield f"{_claim_counts(study)}; `fedrepro claims {name}` lists them"


def _claim_counts(study: Study) -> str:
    declared = study.file("claims.yaml")
    found = load_claims(declared, checked=False).claims if declared else {}
    origins = Counter(claim.spec["origin"] for claim in found.values())
    return f"{origins['paper']} claims, {origins['printed']} on printed numbers, {origins['added']} added"


def _artefacts_of(study: str) -> list[str]:
    return [own for name, _ in artefacts() for of, _, own in [name.partition("/")] if of == study]


def show_artefact(artefact: str, folder: Path | None) -> Iterator[str]:
    import pandas as pd

    results = folder_with(f"artefacts/{artefact}.json", folder, artefact)
    about = read_json(check((base := results / "artefacts" / artefact).with_suffix(".json")))
    yield f"{about['title']} ({about['source']})"
    yield f"scale {about['scale']} · data: {', '.join(about['data']) or 'none'} · {about['seeds']} seeds"
    yield ""
    table = pd.read_csv(check(base.with_suffix(".csv")))
    if about["kind"] == "table":
        yield table.to_string(index=False, na_rep="", float_format=lambda x: f"{x:.4g}")
    else:
        yield f"picture: {shown(base.with_suffix('.png'))}"
        yield f"numbers: {shown(base.with_suffix('.csv'))} ({len(table)} rows: {', '.join(table.columns)})"
    yield ""
    yield from wrapped(about["caption"])


def show_config(name: str, scale: str | None) -> Iterator[str]:
    """What an experiment's files, or a claim, come to: a line per value, and at its right the file and line of it."""
    study, _, own = name.partition("/")
    path = study_of(command.CONFIG, study).file("claims.yaml")
    claims = load_claims(path).claims if path else {}
    experiments = expanded(command.CONFIG, study)
    if own not in experiments and own not in claims:
        raise UserError(f"'{name}' is no experiment and no claim{nearest(own, [*experiments, *claims])}")
    if own in experiments:
        load_experiment(command.CONFIG, name, scale or "paper")  # what is not valid is an error here, too
        tree = experiments[own].tree
        yield from _placed(scaled(tree, scale) if scale else tree)
    if own in claims:
        yield from ["", f"claim {name}:"] if own in experiments else []
        yield from _placed(claims[own].tree)


def _placed(tree: Located) -> Iterator[str]:
    rows = list(_settings(tree))
    width = min(max(len(setting) for setting, _ in rows), 80)
    yield from (f"{setting:<{width}}  {place}".rstrip() for setting, place in rows)


def _settings(node: Located, indent: str = "") -> Iterator[tuple[str, str]]:
    for key, child in node.value.items():
        if child.is_block and child.value:
            yield f"{indent}{key}:", ""
            yield from _settings(child, indent + "  ")
        else:
            place = child.places[0]
            file = place.file.relative_to(command.ROOT) if place.file.is_relative_to(command.ROOT) else place.file
            yield f"{indent}{key}: {child.written() or '{}'}", f"{file}:{place.line}"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "name", help="STUDY, STUDY/ARTEFACT or STUDY/CLAIM; with --config STUDY/EXPERIMENT or STUDY/CLAIM"
    )
    parser.add_argument("--config", action="store_true", help="all values of an experiment or a claim, with places")
    parser.add_argument("--scale", help="with --config: smoke, demo, workstation or paper")
    folder_argument(parser)


COMMAND = Command(
    help="a study, an artefact's table or picture, a claim; with --config an experiment's or a claim's settings",
    arguments=arguments,
    run=show,
    words=lambda: [*study_names(), *(name for name, _ in artefacts())],
    examples=("{study}", "{artefact}", "{claim}", "{experiment} --config --scale demo"),
)
