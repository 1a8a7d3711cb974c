"""The gate's connection: ``login``, ``logout``, ``sync``, ``status``, ``pull``, ``try`` and ``audit ...`` (gate G7)."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from gstack.cli.common import (
    Group,
    console,
    counted,
    emit,
    emit_json,
    err_console,
    root_of,
    run_env,
    table,
    warn,
)  # fmt: skip
from gstack.errors import CheckFailed, GstackError, UsageError
from gstack.gate.credentials import Credentials, check_base_url, check_key, check_org, read_credentials
from gstack.gate.freshness import age_text
from gstack.terminal import tame

if TYPE_CHECKING:
    from gstack.gate.install import Progress, Pulled
    from gstack.gate.spool import Queue
    from gstack.gate.status import Status

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]
QuietFlag = Annotated[bool, typer.Option("--quiet", help="Print nothing when all went well.")]
ForceFlag = Annotated[bool, typer.Option("--force", help="Replace what was edited here or isn't from a pull.")]
HostOption = Annotated[str, typer.Option("--host", metavar="HOST", help="The host whose skills folder is meant.")]

_FORCE = Annotated[
    bool, typer.Option("--force", help="Also where the organisation that is left locks the gate; it is told.")
]

audit = typer.Typer(cls=Group, help="The queue of audit events on this machine. Example: gstack audit show")


def register(app: typer.Typer) -> None:
    """Add the commands to the root app."""
    app.command()(login)
    app.command()(logout)
    app.command()(sync)
    app.command()(status)
    app.command()(pull)
    app.command("try")(try_)
    app.add_typer(audit, name="audit")


# ------------------------------------------------------------------------------------- login and logout


def login(
    url: Annotated[
        str, typer.Option("--url", metavar="URL", help="Where the policy is: https://..., or file:///folder.")
    ] = "",
    org: Annotated[str, typer.Option("--org", metavar="NAME", help="The organisation's name there.")] = "",
    key: Annotated[
        str,
        typer.Option(
            "--key", metavar="-", help="Read the API key from standard input (else: GSTACK_KEY, or a prompt)."
        ),
    ] = "",
    no_key: Annotated[bool, typer.Option("--no-key", help="The place needs no key (static hosting).")] = False,
    public_key: Annotated[
        str,
        typer.Option(
            "--public-key", metavar="FILE", help="Trust this PEM file instead of the key that the server shows."
        ),
    ] = "",
    force: _FORCE = False,
    as_json: JsonFlag = False,
) -> None:
    """Connect this machine to an organisation's policy, pin its key, and sync.

    Example: gstack login --url https://policy.example.com --org acme
    """
    from gstack.gate.login import login as connect
    from gstack.gate.policyfile import read_key

    root = root_of()
    by_hand = read_key(public_key) if public_key else None
    done = connect(root, _wanted(root, url, org, key, no_key), by_hand=by_hand, force=force)
    if as_json:
        emit_json(vars(done))
    else:
        emit(f"connected to {done.org} at {done.base_url}")
        emit(f"trusted key: {done.key_id} ({done.how})")
        if done.how == "first use":
            emit("Compare it with what your organisation published: gstack trusts it from now on.")
    if done.version is None:
        raise GstackError(f"connected, but there is no bundle yet: {done.problem}", hint="try 'gstack sync' later")
    if not as_json:
        emit(f"policy bundle: version {done.version}")


def _wanted(root: str, url: str, org: str, key: str, no_key: bool) -> Credentials:
    """The credentials that were asked for; what isn't given is taken from the connection that there is."""
    old = None
    if not url or not org:
        old = read_credentials(root)
        if old is None:
            raise UsageError("--url and --org are needed", hint="gstack login --url https://... --org NAME")
    base = check_base_url(url) if url else old.base_url if old else ""
    name = check_org(org) if org else old.org if old else ""
    if no_key or (base.startswith("file:") and not key):
        return Credentials(base, name)
    return Credentials(base, name, _key(key, old if old and (old.base_url, old.org) == (base, name) else None))


def _key(given: str, old: Credentials | None) -> str:
    """The API key: standard input, the environment, a hidden prompt. Raises UsageError, which doesn't quote it."""
    if given == "-":
        return check_key(sys.stdin.readline())
    if given:
        warn("gstack: a key on the command line can be read by others in process lists; use --key - or GSTACK_KEY")
        return check_key(given)
    if os.environ.get("GSTACK_KEY"):
        return check_key(os.environ["GSTACK_KEY"])
    if old is not None and old.key:
        return old.key
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "no API key: give it by --key - (standard input) or GSTACK_KEY", hint="--no-key where none is needed"
        )
    return check_key(typer.prompt("API key", hide_input=True, err=True, default="", show_default=False))


def logout(
    keep_bundle: Annotated[
        bool, typer.Option("--keep-bundle", help="Go on gating with the bundle that is here.")
    ] = False,
    force: _FORCE = False,
) -> None:
    """Forget the credentials, and unless told otherwise the bundle and the pinned key.

    Example: gstack logout --keep-bundle
    """
    from gstack.gate.login import logout as leave

    done = leave(root_of(), keep_bundle=keep_bundle, force=force)
    emit("this machine wasn't connected" if done.org is None else f"disconnected from {done.org}")
    if done.kept:
        emit("the bundle is kept: the gate goes on with it, and nothing refreshes it")
    if done.unsent:
        warn(f"gstack: {done.unsent} audit events could not be sent; they wait for the next login to the same place")


# -------------------------------------------------------------------------------------- sync and status


def sync(quiet: QuietFlag = False, as_json: JsonFlag = False) -> None:
    """Fetch, verify and install the policy bundle.

    Exit 3: it was refused, and the last good one stays. Example: gstack sync --quiet
    """
    from gstack.gate.sync import sync as fetch

    done = fetch(root_of())
    if as_json:
        emit_json(vars(done))
        return
    for problem in () if quiet else done.problems:
        warn(f"gstack: {problem}")
    if not quiet:
        emit(f"{done.org}: policy bundle version {done.version} " + ("installed" if done.changed else "is up to date"))


def status(as_json: JsonFlag = False) -> None:
    """Say where this machine is connected, how fresh its policy is, and what waits to be sent.

    Exit 3 when the bundle here can't be used. Example: gstack status --json
    """
    from gstack.gate.status import read_status

    now = time.time()
    found = read_status(root_of(), now)
    if as_json:
        emit_json(found.as_data())
    else:
        out = table("", "")
        out.show_header = False
        for name, text in _status_rows(found, now):
            out.add_row(name, text)
        console().print(out)
    if found.broken is not None:
        raise found.broken


def _status_rows(found: "Status", now: float) -> Iterator[tuple[str, str]]:
    if found.connected:
        yield "connected to", f"{found.org} at {found.base_url}"
    else:
        yield "connected to", "nothing (gstack login connects)"
    if found.bundle is not None:
        fresh = found.freshness
        age = "" if fresh is None else f", synced {_ago(fresh.age)}" + (", stale" if fresh.stale else "")
        yield "bundle", f"version {found.bundle.version}{age}"
        payload = found.bundle.payload
        policies, entries = len(payload.get("policies") or ()), len(payload.get("manifest_index") or ())
        yield "", f"policies: {policies}, catalogue entries: {entries}"
        if payload.get("gate_lock") is True:
            yield "", "the organisation locks the gate on"
    else:
        there = "none" if found.broken is None else "there is one, but it can't be used"
        yield "bundle", there + (" (gstack sync fetches it)" if found.connected else "")
    if found.trust is not None:
        yield "trusted key", f"{found.trust.key.id} ({found.trust.how})"
    last = found.refresh
    if last.get("last_attempt") is not None:
        yield "last refresh", _ago(now - last["last_attempt"]) + (": failed" if last.get("last_error") else "")
    if last.get("last_error"):
        since = last.get("failing_since")
        yield "", f"{last['last_error']}" + (f" (failing for {age_text(max(0.0, now - since))})" if since else "")
    yield "audit queue", _queue_text(found.queue)
    if found.queue.last_error:
        yield "", found.queue.last_error
    for text, _until in found.exceptions:
        yield "ends soon", text
    for problem in found.problems:
        if found.broken is None or problem != found.broken.message:  # the command ends with that line
            yield "problem", problem


def _ago(age: float) -> str:
    return f"{age_text(age)} ago" if age >= 60 else "just now"


def _waiting(number: int) -> str:
    return "1 event waits" if number == 1 else f"{number} events wait"


def _queue_text(queue: "Queue") -> str:
    text = _waiting(queue.length)
    if queue.dropped:
        text += f", {queue.dropped} were dropped (the queue was full)"
    if queue.refused:
        text += f", {queue.refused} were refused by the server"
    return text


# ---------------------------------------------------------------------------------------- pull and try


def pull(
    everything: Annotated[bool, typer.Option("--all", help="Deprecated skills too.")] = False,
    force: ForceFlag = False,
    host: HostOption = "claude-code",
    as_json: JsonFlag = False,
) -> None:
    """Install the organisation's approved skills, update them, and remove banned ones.

    Your own and edited skills stay unless --force. Exit 1 when a skill was refused. Example: gstack pull
    """
    from gstack.gate.install import pull as bring

    root, env = root_of(), run_env()
    with _progress() as progress:
        done = bring(root, _folder(root, env, host), env, everything=everything, force=force, progress=progress)
    _print_pulled(done, as_json)


def try_(
    name: Annotated[str, typer.Argument(help="A skill, by its full or its bare name.")],
    force: ForceFlag = False,
    host: HostOption = "claude-code",
    as_json: JsonFlag = False,
) -> None:
    """Install one of the organisation's skills.

    Example: gstack try acme/deploy
    """
    from gstack.gate.install import try_skill

    root, env = root_of(), run_env()
    _print_pulled(try_skill(root, _folder(root, env, host), env, name, force=force), as_json)


def _folder(root: str, env: dict[str, str], host: str) -> str:
    from gstack.gate.folders import personal_folder
    from gstack.setup import find_host

    return personal_folder(find_host(root, env, host), env)


@contextmanager
def _progress() -> Iterator["Progress"]:
    """A progress bar on a terminal, from the second second on."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    began = time.monotonic()
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        console=err_console(),
        transient=True,
    )
    started = False
    task = bar.add_task("")

    def show(done: int, of: int, name: str) -> None:
        nonlocal started
        if not started and time.monotonic() - began > 1.0 and bar.console.is_terminal:
            started = True
            bar.start()
        bar.update(task, completed=done, total=of, description=tame(name))

    try:
        yield show
    finally:
        if started:
            bar.stop()


def _print_pulled(done: "Pulled", as_json: bool) -> None:
    if as_json:
        emit_json(
            {
                "folder": done.folder,
                "org": done.sync.org,
                "version": done.sync.version,
                "skills": [
                    {"name": one.name, "invoked_as": one.bare, "action": one.action, "why": one.why or None}
                    for one in done.outcomes
                ],
            }
        )
    else:
        out = table("skill", "", "")
        out.show_header = False
        for one in done.outcomes:
            out.add_row(one.name, one.action, one.why or f"/{one.bare}")
        console().print(out)
        emit(f"{counted(len(done.outcomes), 'skill')}, in {done.folder}" if done.outcomes else "nothing to install")
    if done.refused:
        raise CheckFailed(f"{len(done.refused)} of {len(done.outcomes)} skills were refused")


# ------------------------------------------------------------------------------------------------ audit


@audit.command("flush")
def flush_(quiet: QuietFlag = False, as_json: JsonFlag = False) -> None:
    """Send what waits; what doesn't get through stays.

    Exit 1 when something is left. Example: gstack audit flush
    """
    from gstack.gate.spool import flush

    done = flush(root_of(), 60.0)
    if as_json:
        emit_json(vars(done))
    elif not quiet:
        emit(
            f"{counted(done.sent, 'event')} sent, {done.left} wait"
            + (f", {done.refused} refused" if done.refused else "")
        )
    if done.problem:
        raise GstackError(f"not all events could be sent: {done.problem}")


@audit.command("verify")
def verify_(
    export: Annotated[str, typer.Argument(help="Events that the server received (JSON); else the queue here.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Check that no event is missing or was changed: each carries the hash of the one before it.

    Exit 1 when there is a gap. Example: gstack audit verify export.json
    """
    from gstack.gate.spool import read_events, verify, verify_events

    done = verify_events(read_events(export)) if export else verify(root_of())
    if as_json:
        emit_json(vars(done))
    else:
        for gap in done.gaps:
            emit(gap)
        emit(f"{counted(done.events, 'event')}, " + (counted(len(done.gaps), "gap") if done.gaps else "no gap"))
        if done.dropped:
            emit(f"{done.dropped} events were dropped because the queue was full; they were never part of the chain")
    if done.gaps:
        raise CheckFailed("the chain of audit events has gaps")


@audit.command("show")
def show_(as_json: JsonFlag = False) -> None:
    """List the events that wait.

    Example: gstack audit show --json
    """
    from gstack.gate.spool import waiting

    events = waiting(root_of())
    if as_json:
        emit_json(events)
        return
    out = table("decided", "decision", "skill", "why")
    for event in events:
        texts = [str(event.get(key) or "") for key in ("decided_at", "decision", "skill_name", "reason")]
        out.add_row(*texts)
    if events:
        console().print(out)
    emit(_waiting(len(events)))
