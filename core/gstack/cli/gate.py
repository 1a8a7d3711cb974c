"""``gstack gate``: one decision for a person or CI, the hook on standard input, and what policy authors need (gate
G3, G7)."""

import re
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from gstack.cli.common import console, emit, emit_json, here, root_of, run_env, table, warn
from gstack.errors import CheckFailed, StateError, UsageError

if TYPE_CHECKING:
    from gstack.gate.simulate import Simulation

USAGE = "usage: gstack gate --skill NAME [--quiet] [--json] [--explain] [--require-bundle] | test | allow | simulate"

app = typer.Typer(
    rich_markup_mode="rich",
    help=(
        "Whether a skill, subagent or command may be used under the organisation's policy.\n\n"
        "Exit code: 0 allowed (a warning too), 2 blocked, 3 wrong usage or an unusable bundle.\n\n"
        "Example: gstack gate --skill acme/deploy\n\n"
        "Without --skill it reads a host's hook payload from standard input and answers in the host's own form."
    ),
)

_JSON = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def _usage(text: str) -> StateError:
    """Wrong usage: exit 3, since 2 means that the gate blocked (gate G3)."""
    error = StateError(text, hint="see gstack gate --help")
    error.code = UsageError.code
    return error


@app.callback(invoke_without_command=True)
def gate(
    context: typer.Context,
    skill: Annotated[
        str | None,
        typer.Option("--skill", metavar="NAME", help="What is to be used: acme/deploy, deploy, acme:deploy."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing when it is allowed.")] = False,
    as_json: _JSON = False,
    explain: Annotated[bool, typer.Option("--explain", help="List every rule that applies.")] = False,
    require_bundle: Annotated[
        bool, typer.Option("--require-bundle", help="Exit 3 unless a bundle was asked (for CI).")
    ] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="Never style the output.")] = False,
) -> None:
    """Decide about one name, or answer a hook."""
    if context.invoked_subcommand is not None:
        if skill is not None:
            raise _usage(f"--skill and {context.invoked_subcommand} don't go together")
        return
    if skill is None:
        _answer_hook(as_json or explain or require_bundle)
    from gstack.gate import render
    from gstack.gate.human import afterwards, ask
    from gstack.gate.names import normal

    if not normal(skill or ""):
        raise _usage(f"--skill {skill!r} names nothing")
    report = ask(run_env(), here(), skill or "", explain=explain or as_json)
    if require_bundle:
        report.need_bundle()
    if as_json:
        emit_json(render.as_dict(report))
        code = render.exit_code(report)
    else:
        code = render.show(report, quiet=quiet, no_color=no_color, explain=explain)
    sys.stdout.flush()
    afterwards(report)
    if code:
        raise typer.Exit(code)


def _answer_hook(human_options: bool) -> None:
    """The hook mode: ends the process with exit code 0, unless a person stands at a terminal."""
    if human_options or (sys.stdin is not None and sys.stdin.isatty()):
        raise _usage(USAGE)
    from gstack.config import read_config, switch
    from gstack.hook import run_from_cli

    env = run_env()
    if switch("gate", env, read_config(root_of(env))).source == "default":
        # whoever calls this by name wants an answer, also where no hook was set up
        env["GSTACK_GATE"] = "on"
    run_from_cli(["claude-code"], env)


# ----------------------------------------------------------------------------------------- for authors


@app.command("test")
def hold_cases(
    cases: Annotated[str, typer.Argument(metavar="CASES.yaml", help="A list of cases: skill, expect, ...")],
    bundle: Annotated[
        str, typer.Option("--bundle", metavar="FILE", help="A bundle or payload instead of the installed one.")
    ] = "",
    as_json: _JSON = False,
) -> None:
    """Hold a policy against a table of expected decisions; exit 1 when one differs.

    A case: {skill: acme/deploy, expect: block, policy: Deploy freeze}. Example: gstack gate test cases.yaml
    """
    from gstack.gate.cases import read_cases, run_cases

    found, named = read_cases(cases)
    results = run_cases(_payload(bundle or named or ""), found)
    wrong = [one for one in results if one.problem]
    if as_json:
        emit_json(
            {
                "cases": len(results),
                "failed": len(wrong),
                "results": [
                    {
                        "skill": one.case.skill,
                        "kind": one.case.kind,
                        "expect": one.case.expect,
                        "decision": one.decision.action if one.decision else None,
                        "rule": one.decision.rule if one.decision else None,
                        "problem": one.problem or None,
                    }
                    for one in results
                ],
            }
        )
    else:
        for one in wrong:
            emit(f"✗ {one.case.skill}: {one.problem}")
        emit(f"{len(results) - len(wrong)} of {len(results)} cases are as expected")
    if wrong:
        raise typer.Exit(CheckFailed.exit_code)


def _payload(path: str) -> dict[str, object]:
    """The policy in a file, or the installed one."""
    if path:
        from gstack.gate.policyfile import read_policy

        return read_policy(path)
    from gstack.gate.bundle import verify_installed

    return verify_installed(root_of()).payload


@app.command()
def simulate(
    bundle: Annotated[str, typer.Option("--bundle", metavar="FILE", help="The other bundle or payload.")],
    since: Annotated[str, typer.Option("--since", metavar="TIME", help="How far back: 12h, 30d, 4w.")] = "30d",
    as_json: _JSON = False,
    html: Annotated[str | None, typer.Option("--html", metavar="FILE", help="Also write a page with tables.")] = None,
) -> None:
    """Replay the uses logged on this machine against another bundle and show what would change.

    Example: gstack gate simulate --since 30d --bundle site/api/bundle/acme
    """
    from gstack.gate.decision import gate_context
    from gstack.gate.simulate import simulate as replay
    from gstack.report_page import check_page, write_page

    if html == "":
        raise _usage("--html needs the name of a file")
    if html is not None:
        check_page(html)
    root, now, back = root_of(), time.time(), _seconds(since)
    facts = gate_context(root, run_env(), now)
    payload = _payload(bundle)
    found = replay(root, payload, now - back, machine=facts.machine, user=facts.user)
    if html is not None:
        from gstack.gate.simulate_page import simulate_page

        write_page(html, simulate_page(found, payload, since=now - back, now=now))
    if as_json:
        emit_json(found.as_dict())
        return
    _show_simulation(found, since)
    if html is not None:
        emit(f"\nwritten: {html}")


def _show_simulation(found: "Simulation", since: str) -> None:
    if not found.uses:
        emit(f"no uses were logged since {since} ago: the gate's hook writes them as it decides")
        return
    emit(f"{found.uses} uses, {sum(one.uses for one in found.changes)} of them would be decided otherwise")
    if found.changes:
        shown = table("name", "uses", "now", "then", "rule")
        for one in found.changes:
            shown.add_row(one.name, str(one.uses), one.before, one.after, one.rule)
        console().print(shown)


# ------------------------------------------------------------------------------------- for the person


@app.command()
def allow(
    name: Annotated[str, typer.Argument(help="What is blocked: acme/deploy.")],
    reason: Annotated[str, typer.Option("--reason", metavar="WHY", help="Why; your organisation sees it.")] = "",
    span: Annotated[str, typer.Option("--for", metavar="TIME", help="How long: 30m, 1h, 2d (at most 7d).")] = "1h",
) -> None:
    """Let something through on this machine for a while, where its policy may be overridden. Audited.

    Example: gstack gate allow acme/deploy --for 1h --reason "hotfix 4711"
    """
    from gstack.gate.audit import takes_events
    from gstack.gate.human import allow as let_through
    from gstack.gate.names import normal
    from gstack.gate.overrides import LONGEST

    if not normal(name):
        raise _usage(f"{name!r} names nothing")
    if not reason.strip():
        raise _usage("allow needs --reason WHY")
    seconds = _seconds(span)
    if seconds > LONGEST:
        raise _usage(f"--for {span}: an override lasts at most {int(LONGEST // 86400)} days")
    why = " ".join(reason.split())
    full, until, untold = let_through(run_env(), here(), name, seconds=seconds, reason=why)
    emit(f"{full} is allowed on this machine until {time.strftime('%Y-%m-%d %H:%M', time.localtime(until))}")
    told = " Your organisation is told." if takes_events(root_of()) else ""
    warn("Uses go ahead with a warning." + (f" It could not be recorded: {untold}." if untold else told))


def _seconds(text: str) -> float:
    """A span such as ``30m`` or ``2d`` in seconds."""
    found = re.fullmatch(r"(\d{1,6})([smhdw])", text.strip().lower())
    if found is None or int(found[1]) == 0:
        raise _usage(f"{text!r} is no span of time such as 30m, 1h or 30d")
    return float(found[1]) * _UNITS[found[2]]
