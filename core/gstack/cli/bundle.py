"""``gstack bundle``: for whoever publishes policy: keys, signing, building, looking at bundles (gate G7)."""

import os
import time
from typing import Annotated, Any

import typer

from gstack.cli.common import Group, console, counted, emit, emit_json, root_of, table, warn
from gstack.errors import UsageError
from gstack.terminal import visible

app = typer.Typer(
    cls=Group,
    help="Publish policy: keys, a signed bundle, a static site. Example: gstack bundle build policy.yaml --preview",
    rich_markup_mode="rich",
)

_JSON = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]
_KEY = Annotated[str, typer.Option("--key", metavar="FILE", help="The private key (private.pem).")]
_ROTATION = Annotated[
    list[str] | None,
    typer.Option("--rotation", metavar="FILE", help="A statement by which an old key hands over; may be repeated."),
]
_REPLACE = Annotated[bool, typer.Option("--force", help="Replace a file at --out that is something else.")]


@app.command()
def keygen(
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Where private.pem and public.pem go.")],
    force: Annotated[bool, typer.Option("--force", help="Replace keys that lie there.")] = False,
) -> None:
    """Make a key pair: private.pem (mode 0600, keep it secret) and public.pem.

    Example: gstack bundle keygen --out keys
    """
    from gstack.gate.publish import keygen as make

    key = make(out, force=force)
    emit(f"wrote {os.path.join(out, 'private.pem')} and {os.path.join(out, 'public.pem')}")
    emit(f"key {key.id}")


@app.command()
def sign(
    payload: Annotated[str, typer.Argument(metavar="PAYLOAD.json", help="What is signed, byte for byte.")],
    key: _KEY,
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="Where the envelope goes.")],
    rotation: _ROTATION = None,
    force: _REPLACE = False,
) -> None:
    """Sign a payload as it is; nothing about it is checked (build does that).

    Example: gstack bundle sign payload.json --key keys/private.pem --out site/api/bundle/acme
    """
    from gstack.gate.publish import read_rotation, sign_file

    read = rotation or []
    used = sign_file(payload, key, out, [read_rotation(path) for path in read], inputs=read, force=force)
    emit(f"wrote {out}, signed by key {used.id}")


@app.command()
def build(
    policy: Annotated[str, typer.Argument(metavar="POLICY.yaml", help="Policies, namespaces, defaults.")],
    skills: Annotated[str, typer.Option("--skills", metavar="DIR", help="The folder of skills to offer.")] = "",
    key: _KEY = "",
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Where the static site goes.")] = "",
    preview: Annotated[bool, typer.Option("--preview", help="Only check, and say what each policy matches.")] = False,
    version: Annotated[
        int | None,
        typer.Option("--version", metavar="N", min=0, help="The bundle's version; by default one more than in --out."),
    ] = None,
    rotation: _ROTATION = None,
    force: Annotated[bool, typer.Option("--force", help="Publish what machines will refuse.")] = False,
    as_json: _JSON = False,
) -> None:
    """Check a policy, sign it with the skills it is about, and write a site that any file server can serve.

    Exit code 1 when the policy has mistakes. Example: gstack bundle build policy.yaml --skills skills --key
    keys/private.pem --out site
    """
    from gstack.gate import publish

    if not preview and not (key and out):
        raise UsageError("build needs --key FILE and --out DIR, or --preview")
    now = time.time()
    looked = publish.preview(policy, skills or None, now)
    shown: dict[str, Any] = {
        "policies": [{"policy": label, "entries": count} for label, count in looked.counts],
        "entries": len(looked.draft.payload["manifest_index"]),
        "warnings": looked.draft.warnings,
    }
    if not as_json:
        for label, count in looked.counts:
            emit(f"policy {label} matches {count} {'entry' if count == 1 else 'entries'}")
        for line in looked.draft.warnings:
            warn(f"warning: {line}")
    if not preview:
        statements = [publish.read_rotation(path) for path in rotation or ()]
        built = publish.build(looked, key, out, now=now, version=version, rotations=statements, force=force)
        shown |= dict(built.__dict__)
        if not as_json:
            said = "wrote" if built.changed else "signed anew" if built.new_key else "nothing changed in"
            offered = f"{counted(len(built.skills), 'skill')}, key {built.key_id}"
            emit(f"{said} {built.out}: {built.org} version {built.version}, {offered}")
    if as_json:
        emit_json(shown)


@app.command()
def rotate(
    old_key: Annotated[str, typer.Option("--old-key", metavar="FILE", help="The old private key.")],
    new_key: Annotated[str, typer.Option("--new-key", metavar="FILE", help="The new public key.")],
    org: Annotated[str, typer.Option("--org", metavar="NAME", help="The organisation.")],
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="Where the statement goes.")],
    force: _REPLACE = False,
) -> None:
    """Let an old key hand over to a new one, so that machines needn't log in again.

    Example: gstack bundle rotate --old-key old/private.pem --new-key new/public.pem --org acme --out rotation.json
    """
    from gstack.gate.publish import rotate as hand_over

    old, new = hand_over(old_key, new_key, org, out, now=time.time(), force=force)
    emit(f"wrote {out}: key {old} hands over to key {new}")


@app.command()
def verify(
    file: Annotated[str, typer.Argument(help="The bundle; without one, the installed bundle and its pinned key.")] = "",
    key: Annotated[str, typer.Option("--key", metavar="FILE", help="The public key (public.pem).")] = "",
    org: Annotated[str, typer.Option("--org", metavar="NAME", help="The organisation that it must be for.")] = "",
    as_json: _JSON = False,
) -> None:
    """Check a bundle's signature and shape; exit 3 when it fails.

    Example: gstack bundle verify site/api/bundle/acme --key keys/public.pem
    """
    from gstack.gate.bundle import verify_installed
    from gstack.gate.index import load, store_missing
    from gstack.gate.policyfile import read_bytes, read_key, read_signed

    if not file:
        root = root_of()
        found = verify_installed(root)
        load(root)
        store_missing(root)  # the hook starts this where compiling takes longer than a host should wait
    elif key:
        found = read_signed(read_bytes(file), read_key(key), org or None)
    else:
        raise UsageError("verify needs --key FILE to hold a file against")
    if as_json:
        emit_json({"org": found.org, "version": found.version, "key_id": found.key.id, "sha256": found.sha256})
    else:
        emit(f"good: {found.org} version {found.version}, signed by key {found.key.id}")


@app.command()
def show(
    file: Annotated[str, typer.Argument(help="A bundle or payload; without one, the installed bundle.")] = "",
    as_json: _JSON = False,
) -> None:
    """What a bundle says: its policies, how many entries each matches, and what this gstack doesn't know.

    The signature of a file isn't checked: see verify. Example: gstack bundle show site/api/bundle/acme
    """
    from gstack.gate.rules import Rulebook

    payload = _payload(file)
    if as_json:
        emit_json(payload)
        return
    book = Rulebook(payload)
    counts = book.count()
    emit(f"organisation  {visible(payload['org'])}")
    emit(f"version       {payload['version']}")
    emit(f"issued        {visible(str(payload.get('issued_at') or '-'))}")
    emit(f"namespaces    {visible(', '.join(payload.get('namespaces') or ())) or '-'}")
    emit(f"entries       {len(payload.get('manifest_index') or {})}")
    emit(f"stale after   {book.stale_after / 3600:g} h, then {book.stale_action}")
    if book.policies:
        shown = table("policy", "action", "matches", "entries")
        for policy in book.policies:
            action = ("allow", "warn", "block")[policy.rule[0]]
            matched = visible(f"{policy.matcher} {policy.value}")
            shown.add_row(visible(policy.label), action, matched, str(counts[policy.order]))
        console().print(shown)
    for line in book.problems:
        warn(f"warning: {line}")


@app.command("diff")
def diff_command(
    old: Annotated[str, typer.Argument(help="A bundle or payload; - for the installed one.")],
    new: Annotated[str, typer.Argument(help="Another one.")],
    as_json: _JSON = False,
) -> None:
    """What changes from one bundle to another: settings, policies, skills.

    Example: gstack bundle diff - site/api/bundle/acme
    """
    from gstack.gate.policydiff import diff, diff_lines

    found = diff(_payload("" if old == "-" else old), _payload("" if new == "-" else new))
    if as_json:
        emit_json(found)
        return
    lines = diff_lines(found)
    emit(f"version {found['old_version']} -> {found['new_version']}")
    for line in lines or ["no differences"]:
        emit(line)


def _payload(path: str) -> dict[str, Any]:
    from gstack.gate.bundle import verify_installed
    from gstack.gate.policyfile import read_policy

    return read_policy(path) if path else verify_installed(root_of()).payload
