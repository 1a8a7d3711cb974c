"""``gstack contract``: check a transcript, report misses, waive an item, lint declarations (contracts C8)."""

import time
from typing import Annotated, Any

import typer

from gstack.api import CANNOT_TELL
from gstack.cli.common import Group, console, counted, emit, emit_json, here, root_of, run_env, table
from gstack.contracts.check import ItemResult
from gstack.errors import ContractState, ContractUsage, NoContract, StateError
from gstack.terminal import visible
from gstack.values.tools import skill_name

app = typer.Typer(
    cls=Group,
    help="Contracts: which outputs a skill must leave behind. Example: gstack contract report",
    rich_markup_mode="rich",
)

_JSON = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]
_MET = "SKILL_CONTRACT_MET"


@app.command()
def check(
    transcript: Annotated[
        str, typer.Option(metavar="PATH", help="The session's transcript, as the host wrote it.")
    ] = "",
    skill: Annotated[str, typer.Option(metavar="NAME", help="The skill whose last run is judged.")] = "",
    skill_file: Annotated[
        str, typer.Option(metavar="SKILL.md", help="Take the contract from this file, not from the installed skill.")
    ] = "",
    as_json: _JSON = False,
) -> None:
    """Judge the last run of a skill in a transcript; writes nothing. Exit codes: docs/reference/exit-codes.md.

    Example: gstack contract check --transcript t.jsonl --skill investigate
    """
    from gstack.contracts.judge import Bench, check_transcript, declared_in_file, installed_skills

    name = skill_name(skill)
    if not transcript or not name:
        raise ContractUsage("check needs --transcript PATH and --skill NAME", hint="see gstack contract check --help")
    bench = Bench(root_of(), run_env())
    declared = (
        declared_in_file(name, skill_file, bench) if skill_file else installed_skills(bench, here()).declared(name)
    )
    done = check_transcript(transcript, declared, bench, cwd=here())
    line = done.block_text(bench) if done.outcome.missing else None
    unclear = done.outcome.unclear
    code, exit_code = (ContractState.code, 3) if unclear else ("SKILL_CONTRACT_UNMET", 1) if line else (_MET, 0)
    if as_json:
        emit_json(
            {
                "code": code,
                "exit_code": exit_code,
                "skill": done.skill,
                "contract": {
                    "version": done.contract.version,
                    "digest": done.contract.digest,
                    "source": done.source,
                },
                "load_id": done.run.load_id,
                "early_exit": done.outcome.early or None,
                "items": [
                    {"id": item.id, "kind": item.kind, "status": item.status, "why": item.why}
                    for item in done.outcome.results
                ],
                "block_text": line,
            }
        )
    else:
        if not unclear:
            emit(line or f"{_MET} {done.skill} (contract v{done.contract.version}): every item is met or waived")
        for item in done.outcome.results:
            emit(_item_line(item))
    if unclear:
        raise ContractState(f"{done.source}: {unclear[0].id} ({unclear[0].kind}) can't be judged: {unclear[0].why}")
    if exit_code:
        raise typer.Exit(exit_code)


def _item_line(item: ItemResult) -> str:
    status = "can't tell" if item.status == CANNOT_TELL else item.status
    return f"  {status:<10} {item.id}" + (f": {item.why}" if item.why else "")


@app.command()
def report(
    session: Annotated[str | None, typer.Option(metavar="ID", help="Only this session's runs.")] = None,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the report to this file, as one self-contained page.")
    ] = None,
    as_json: _JSON = False,
) -> None:
    """Misses by skill and item, then each missed run; runs that were still open are judged again.

    Example: gstack contract report --html misses.html
    """
    from gstack.contracts.judge import Bench, installed_skills
    from gstack.contracts.report import Judge, collect, render_html
    from gstack.report_page import check_page, write_page

    if html is not None:
        check_page(html)
    root = root_of()
    bench = Bench(root, run_env())
    found = collect(root, session=session, judge=Judge(bench, installed_skills(bench, _here_or(root))))
    if html is not None:
        write_page(html, render_html(found, now=time.time()))
    if as_json:
        emit_json(found.as_dict())
    else:
        _print_report(found, session)
        if html is not None:
            emit(f"wrote {html}")
    if found.errors:
        path, problem = found.errors[0]
        more = f" (and {len(found.errors) - 1} more)" if len(found.errors) > 1 else ""
        raise ContractState(f"{path}: {problem}{more}")


def _here_or(instead: str) -> str:
    """The working folder; ``instead`` where it is gone: reading records needs none."""
    try:
        return here()
    except StateError:
        return instead


def _print_report(found: Any, session: str | None) -> None:
    from gstack.report_page import moment

    if not found.rows:
        emit(f"no run of session {session} is recorded" if session else "no runs are recorded yet")
        return
    emit(f"{counted(len(found.rows), 'recorded run')}, {len(found.missed)} missed")
    items = [row for row in found.by_item() if row[2]]
    if items:
        out = table("skill", "item", "misses", "runs")
        for skill, item, misses, total in items:
            out.add_row(skill, item, str(misses), str(total))
        emit()
        console().print(out)
    if found.missed:
        out = table("missed run (UTC)", "skill", "result", "items", "session")
        for row in found.missed:
            result = row.result + (" (observed)" if row.observed else "") + (f"; {row.note}" if row.note else "")
            cells = (row.skill, result, ", ".join(row.missed_items), row.session)
            out.add_row(moment(row.updated_at), *cells)
        emit()
        console().print(out)


@app.command()
def waive(
    item: Annotated[str, typer.Argument(help="The item's id, as the block text names it.")] = "",
    reason: Annotated[str, typer.Option(metavar="WHY", help="Why the item doesn't apply.")] = "",
    skill: Annotated[str, typer.Option(metavar="NAME", help="The skill, where several have an item of that id.")] = "",
) -> None:
    """Say that an item doesn't apply in this session. Only this call in the transcript counts; nothing is stored.

    Example: gstack contract waive repro-after-fix --reason "only docs changed"
    """
    from gstack.contracts.waivers import acknowledgement, checked_waive

    made = checked_waive(item, reason, skill)
    if made is None:
        raise ContractUsage('waive needs an item and a reason: waive ITEM --reason "WHY"')
    _known_item(made.item, made.skill)
    emit(acknowledgement(made))


def _known_item(item: str, skill: str | None) -> None:
    """Refuse an item that the skill's contract, or any installed one, doesn't have."""
    from gstack.contracts.judge import Bench, installed_skills

    bench = Bench(root_of(), run_env())
    book = installed_skills(bench, here())
    if skill:
        known = [one.id for one in book.declared(skill).contract.items]
        where = f"the contract of {skill}"
    else:
        known = book.item_ids()
        where = "any installed contract"
    if known and item not in known:
        raise ContractUsage(f"{item} is no item of {where}", hint="it has " + ", ".join(dict.fromkeys(known)))


@app.command()
def lint(
    paths: Annotated[list[str] | None, typer.Argument(help="SKILL.md files, or the folders that hold them.")] = None,
    as_json: _JSON = False,
) -> None:
    """Check the contracts of skills and say what is wrong with them, with line numbers; exit 5 when something is.

    Example: gstack contract lint skills/*/SKILL.md
    """
    from gstack.contracts.judge import Bench
    from gstack.contracts.lint import lint as lint_one

    if not paths:
        raise ContractUsage("lint needs the path of a SKILL.md")
    bench = Bench(root_of(), run_env())
    done = [lint_one(path, bench) for path in paths]
    if as_json:
        emit_json([one.as_dict() for one in done])
    else:
        for one in done:
            for line, text in one.problems:
                emit(visible(f"{one.file}:{line}: {text}"))
            if not one.problems:
                note = f"; ignored: {one.shadowed}" if one.shadowed else ""
                emit(visible(f"{one.file}: ok ({one.items} item{'' if one.items == 1 else 's'}{note})"))
    bad = [one for one in done if one.problems]
    if bad:
        raise NoContract(f"{len(bad)} of {len(done)} files have no valid contract")
