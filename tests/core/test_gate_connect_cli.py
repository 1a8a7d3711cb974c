"""The commands of the gate's connection, as people run them."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from gate_server import SECRET, Organisation, Reply, serving
from rich.console import Console

from gstack.cli import main
from gstack.gate.audit import append, spool_path
from gstack.gate.credentials import credentials_path, read_credentials
from gstack.gate.package import content_digest, read_files


@pytest.fixture
def server():
    with serving(key=SECRET) as running:
        yield running


@pytest.fixture
def org():
    return Organisation()


@pytest.fixture
def root(home, monkeypatch):
    folder = home / "state"
    monkeypatch.setenv("GSTACK_STATE_ROOT", str(folder))
    return str(folder)


class Typed(io.StringIO):
    """Standard input; ``terminal`` says whether it is one."""

    def __init__(self, text: str = "", terminal: bool = False) -> None:
        super().__init__(text)
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stdin", Typed())


@pytest.fixture
def run(capsys):
    """Run a command: exit code, standard output, standard error. The key is in neither."""

    def go(*args: str):
        code = main(list(args))
        out, err = capsys.readouterr()
        assert SECRET not in out + err
        assert "Traceback" not in out + err
        return code, out, err

    return go


@pytest.fixture
def connected(run, server, org, root, monkeypatch):
    org.publish(server)
    monkeypatch.setenv("GSTACK_KEY", SECRET)
    assert run("login", "--url", server.url, "--org", "acme")[0] == 0
    monkeypatch.delenv("GSTACK_KEY")


# ------------------------------------------------------------------------------------------------- login


def test_login_with_the_key_from_standard_input(run, server, org, root, monkeypatch):
    org.publish(server, 5)
    monkeypatch.setattr(sys, "stdin", Typed(SECRET + "\n"))
    code, out, err = run("login", "--url", server.url, "--org", "acme", "--key", "-")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"connected to acme at {server.url}"
    assert "first use" in out
    assert "policy bundle: version 5" in out
    assert read_credentials(root).key == SECRET


@pytest.mark.parametrize("way", ["logout", "login", "plugins"])
def test_a_locked_gate_is_left_by_force_only_and_its_organisation_is_told(run, server, org, root, monkeypatch, way):
    org.publish(server, gate_lock=True)
    monkeypatch.setenv("GSTACK_KEY", SECRET)
    assert run("login", "--url", server.url, "--org", "acme")[0] == 0
    assert run("config", "set", "gate", "on")[0] == 0
    assert run("login", "--url", server.url, "--org", "acme")[0] == 0  # leaves nothing
    Organisation("other", org.private).publish(server)
    command = {
        "logout": ("logout",),
        "login": ("login", "--url", server.url, "--org", "other"),
        "plugins": ("plugins", "disable", "policy_bundle"),
    }[way]
    monkeypatch.setattr("gstack.gate.lock.maybe_send", lambda *_: None)
    code, out, err = run(*command)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "acme locks the gate" in err
    assert "--force" in err
    assert read_credentials(root).org == "acme"
    assert server.events == []
    assert run(*command, "--force")[0] == 0
    if way == "plugins":
        assert run("audit", "flush")[0] == 0
    assert [one["decision"] for one in server.events] == ["gate_off"]
    assert way in server.events[0]["reason"]


def test_login_with_the_key_from_the_environment(run, connected, root):
    assert read_credentials(root).key == SECRET


def test_login_asks_on_a_terminal_and_hides_what_is_typed(run, server, org, root, monkeypatch):
    org.publish(server)
    asked = []
    monkeypatch.setattr(sys, "stdin", Typed(terminal=True))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.prompt", lambda text, **more: asked.append((text, more)) or SECRET)
    assert run("login", "--url", server.url, "--org", "acme")[0] == 0
    assert asked[0][0] == "API key"
    assert asked[0][1]["hide_input"]
    assert read_credentials(root).key == SECRET


def test_login_never_asks_without_a_terminal(run, server, org, root, monkeypatch):
    org.publish(server)
    monkeypatch.setattr("typer.prompt", lambda *_, **__: pytest.fail("asked"))
    code, out, err = run("login", "--url", server.url, "--org", "acme")
    assert (code, out) == (2, "")
    assert "--key -" in err
    assert "GSTACK_KEY" in err
    assert err.count("\n") == 1
    assert not os.path.exists(root)


def test_a_key_on_the_command_line_works_and_warns(run, server, org, root):
    org.publish(server)
    code, _, err = run("login", "--url", server.url, "--org", "acme", "--key", SECRET)
    assert code == 0
    assert "process lists" in err


def test_an_empty_key_is_an_error(run, server, org, root, monkeypatch):
    org.publish(server)
    code, _, err = run("login", "--url", server.url, "--org", "acme", "--key", "-")
    assert code == 2
    assert "key is empty" in err


def test_a_wrong_key(run, server, org, root):
    org.publish(server)
    code, _, err = run("login", "--url", server.url, "--org", "acme", "--key", "wrong-key-123")
    assert code == 1
    assert "401" in err
    assert "wrong-key-123" not in err
    assert not os.path.exists(credentials_path(root))


def test_static_hosting_and_folders_need_no_key(run, org, root, tmp_path):
    with serving() as server:
        org.publish(server)
        assert run("login", "--url", server.url, "--org", "acme", "--no-key")[0] == 0
        assert "X-Skillsvault-Key" not in server.requests[0][2]
    base = org.publish_folder(tmp_path / "site")
    assert run("login", "--url", base, "--org", "acme")[0] == 0
    assert read_credentials(root).key == ""


def test_login_by_a_public_key_that_was_brought_along(run, server, org, root, tmp_path, connected):
    other = Organisation()
    other.publish(server, 2)
    code, _, err = run("login", "--url", server.url, "--org", "acme", "--key", SECRET)
    assert code == 3
    assert "key changed" in err
    pem = tmp_path / "new.pem"
    pem.write_bytes(other.pem)
    code, out, _ = run("login", "--public-key", str(pem))  # where and who, and the key, are known
    assert code == 0
    assert "by hand" in out
    assert "Compare it" not in out
    assert run("sync")[0] == 0


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        ([], 2, "--url and --org"),
        (["--url", "https://x.example"], 2, "--org"),
        (["--url", "http://x.example", "--org", "a"], 2, "plain HTTP"),
        (["--url", "https://x.example", "--org", "key"], 2, "public key"),
        (["--url", "https://x.example", "--org", "a", "--public-key", "/nowhere.pem"], 3, "/nowhere.pem"),
        (["--url", "file:///nowhere", "--org", "a"], 1, "no such file"),
        (["--url", "http://127.0.0.1:9", "--org", "a", "--no-key"], 1, "can't be reached"),
        (["--nonsense"], 2, "nonsense"),
    ],
)
def test_bad_logins_are_one_clear_line(run, root, args, code, word):
    found, out, err = run("login", *args)
    assert (found, out) == (code, "")
    assert word in err
    assert err.count("\n") == 1


def test_a_public_key_that_is_none(run, root, tmp_path):
    path = tmp_path / "x.pem"
    path.write_text("nothing")
    code, _, err = run("login", "--url", "https://x.example", "--org", "a", "--public-key", str(path))
    assert code == 3
    assert "Ed25519" in err


def test_login_as_json(run, server, org, root):
    org.publish(server)
    code, out, _ = run("login", "--url", server.url, "--org", "acme", "--key", SECRET, "--json")
    assert code == 0
    assert json.loads(out)["version"] == 1


def test_connected_without_a_bundle_is_said(run, server, org, root):
    server.site["/api/bundle/key"] = org.pem
    code, _, err = run("login", "--url", server.url, "--org", "acme", "--key", SECRET)
    assert code == 1
    assert "no bundle yet" in err
    assert "gstack sync" in err
    assert os.path.exists(credentials_path(root))


# ------------------------------------------------------------------------------- sync, status and logout


def test_sync(run, connected, server, org):
    assert run("sync") == (0, "acme: policy bundle version 1 is up to date\n", "")
    org.publish(server, 2)
    assert run("sync") == (0, "acme: policy bundle version 2 installed\n", "")
    assert run("sync", "--quiet") == (0, "", "")
    assert json.loads(run("sync", "--json")[1])["version"] == 2


def test_a_refused_bundle_is_exit_3(run, connected, server, org):
    org.publish(server, 5)
    run("sync")
    org.publish(server, 4)
    code, out, err = run("sync", "--quiet")
    assert (code, out) == (3, "")
    assert "version 4" in err
    assert err.startswith("GSTACK_BUNDLE_ERROR: ")


def test_an_unreachable_server_is_exit_1(run, connected, server):
    server.say("/api/bundle/acme", Reply(503))
    code, _, err = run("sync")
    assert code == 1
    assert err.startswith("GSTACK_NETWORK_ERROR: ")


def test_not_connected(run, root):
    for command in (["sync"], ["pull"], ["try", "x"]):
        code, _, err = run(*command)
        assert code == 3
        assert "gstack login" in err


def test_a_sync_without_a_connection_leaves_no_trace(run, root):
    run("sync")
    assert not os.path.exists(root)


def test_status(run, connected, root, server, org):
    append(root, {"decision": "blocked"}, now=1.0)
    code, out, err = run("status")
    assert (code, err) == (0, "")
    assert f"acme at {server.url}" in out
    assert "version 1" in out
    assert "1 event waits" in out
    assert all(len(line.rstrip()) <= 80 for line in out.splitlines())
    found = json.loads(run("status", "--json")[1])
    assert found["connected"]
    assert found["audit"]["queued"] == 1


def test_status_of_nothing(run, root):
    code, out, _ = run("status")
    assert code == 0
    assert "gstack login" in out
    assert json.loads(run("status", "--json")[1])["connected"] is False


def test_status_shows_a_failing_refresh_and_a_broken_bundle(run, connected, root, server):
    server.say("/api/bundle/acme", Reply(503))
    run("sync")
    code, out, _ = run("status")
    assert code == 0
    assert "failed" in out
    assert "503" in out
    Path(root, "gate", "bundle.json").write_text("{}")
    code, out, err = run("status")
    assert code == 3
    assert err.startswith("GSTACK_BUNDLE_ERROR: ")
    assert "envelope" in err
    assert "bundle        there is one, but it can't be used (gstack sync fetches it)" in " ".join(out.splitlines())
    assert "envelope" not in out
    assert json.loads(run("status", "--json")[1])["bundle"] is None


def test_logout(run, connected, root, server):
    code, out, _ = run("logout", "--keep-bundle")
    assert code == 0
    assert "kept" in out
    assert Path(root, "gate", "bundle.json").exists()
    assert run("logout")[1] == "this machine wasn't connected\n"
    assert not Path(root, "gate", "bundle.json").exists()


def test_logout_says_what_could_not_be_sent(run, connected, root, server):
    append(root, {"decision": "blocked"}, now=1.0)
    server.say("/api/audit/ingest", Reply(503))
    code, _, err = run("logout")
    assert code == 0
    assert "1 audit event" in err


# ------------------------------------------------------------------------------------------ pull and try


@pytest.fixture
def skills(server, org, connected):
    entries, listed = {}, []
    for name, text in (("acme/deploy", "one"), ("other/deploy", "two"), ("acme/plan", "three")):
        data = json.dumps({"files": [{"path": "SKILL.md", "content": f"---\nname: x\n---\n{text}"}]}).encode()
        entries[name] = {"version": "1.0", "status": "approved", "digest": content_digest(read_files(data))}
        server.site[f"/api/content/{name}.json"] = data
        listed.append({"name": name, "content_url": f"../content/{name}.json"})
    server.site["/api/skills/acme"] = json.dumps({"skills": listed}).encode()
    org.publish(server, 2, manifest_index=entries)


def test_pull_installs_into_the_hosts_personal_folder(run, skills, home):
    code, out, err = run("pull")
    assert code == 1
    assert "1 of 3 skills were refused" in err
    assert "acme/deploy" in out
    assert "other/deploy" in out
    assert sorted(os.listdir(home / ".claude" / "skills")) == ["deploy", "plan"]
    assert all(len(line.rstrip()) <= 80 for line in out.splitlines()[:-1])


def test_pull_honours_the_hosts_own_setting(run, skills, home, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "elsewhere"))
    code, out, _ = run("pull", "--json")
    assert code == 1
    found = json.loads(out)
    assert found["folder"] == str(home / "elsewhere" / "skills")
    assert [one["action"] for one in found["skills"]] == ["installed", "refused", "installed"]
    assert found["skills"][0] == {
        "name": "acme/deploy", "invoked_as": "deploy", "action": "installed", "why": None,
    }  # fmt: skip


def test_try(run, skills, home):
    code, out, _ = run("try", "plan")
    assert code == 0
    assert "installed" in out
    assert os.listdir(home / ".claude" / "skills") == ["plan"]
    code, _, err = run("try", "nothing")
    assert code == 2
    assert "no skill called 'nothing'" in err


def test_an_unknown_host(run, skills):
    code, _, err = run("pull", "--host", "emacs")
    assert code == 2
    assert "emacs" in err


@pytest.mark.parametrize(("terminal", "seconds"), [(True, 5), (True, 0), (False, 5)])
def test_a_pull_of_over_a_second_shows_its_progress_on_a_terminal_only(run, skills, monkeypatch, terminal, seconds):
    import gstack.cli.connect as connect

    shown = io.StringIO()
    clock = iter(range(0, 1000 * seconds + 1, seconds)) if seconds else iter([0] * 1000)
    monkeypatch.setattr(connect, "err_console", lambda: Console(file=shown, force_terminal=terminal, width=80))
    monkeypatch.setattr(connect, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    run("pull")
    assert ("acme/plan" in shown.getvalue()) is (terminal and seconds > 1)


# ------------------------------------------------------------------------------------------------- audit


def test_audit_show_flush_and_verify(run, connected, root, server, tmp_path):
    assert run("audit", "show") == (0, "0 events wait\n", "")
    for name in ("acme/a", "acme/b", "acme/c"):
        append(root, {"decision": "blocked", "skill_name": name, "machine_name": "box", "reason": "No."}, now=1.78e9)
    code, out, _ = run("audit", "show")
    assert code == 0
    assert "acme/b" in out
    assert len(json.loads(run("audit", "show", "--json")[1])) == 3
    assert run("audit", "verify")[1] == "3 events, no gap\n"
    server.say("/api/audit/ingest", Reply(503), times=1)
    code, out, err = run("audit", "flush")
    assert code == 1
    assert "0 events sent, 3 wait" in out
    assert "503" in err
    assert run("audit", "flush") == (0, "3 events sent, 0 wait\n", "")
    assert run("audit", "flush", "--quiet") == (0, "", "")
    export = tmp_path / "export.json"
    export.write_text(json.dumps(server.events))
    assert run("audit", "verify", str(export))[0] == 0
    export.write_text(json.dumps([server.events[0], server.events[2]]))
    code, out, err = run("audit", "verify", str(export), "--json")
    assert code == 1
    assert len(json.loads(out)["gaps"]) == 1
    assert "gaps" in err
    code, _, err = run("audit", "verify", str(tmp_path / "none"))
    assert code == 3
    assert "none" in err


def test_audit_verify_shows_a_gap_in_the_queue(run, connected, root):
    for _ in range(3):
        append(root, {"decision": "blocked"}, now=1.0)
    path = Path(spool_path(root))
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    code, out, _ = run("audit", "verify")
    assert code == 1
    assert "line 1" in out


@pytest.mark.parametrize("command", ["login", "logout", "sync", "status", "pull", "try", "audit"])
def test_help_has_an_example(run, command):
    args = [command, "verify"] if command == "audit" else [command]
    code, out, _ = run(*args, "--help")
    assert code == 0
    assert "Example: gstack" in " ".join(out.replace("│", " ").split())


# ------------------------------------------------------------------------------------- the real processes


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "gstack", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("gstack ")


def test_a_refresh_and_a_sender_really_run(connected, root, server, org):
    """The detached children sync and send, by nothing but the state folder."""
    import time

    from gstack.gate.audit import maybe_send
    from gstack.gate.refresh import maybe_start

    org.publish(server, 7)
    append(root, {"decision": "blocked"}, now=time.time())
    assert maybe_start(root, time.time() + 4000)
    assert not maybe_start(root, time.time() + 4000)
    assert maybe_send(root, time.time())
    until = time.monotonic() + 30
    while time.monotonic() < until:
        bundle = json.loads(Path(root, "gate", "bundle.json").read_bytes())
        if json.loads(bundle["payload"])["version"] == 7 and server.counted:
            break
        time.sleep(0.05)
    assert json.loads(bundle["payload"])["version"] == 7
    assert len(server.counted) == 1


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_no_child_has_the_key_in_its_arguments(connected, root, server):
    import time

    from gstack.gate.refresh import maybe_start

    server.say("/api/bundle/acme", Reply(delay=1.5), times=1)
    assert maybe_start(root, time.time() + 4000)
    lines = []
    until = time.monotonic() + 10
    while not lines and time.monotonic() < until:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if b"sync\0--quiet" in line:
                lines.append(line)
    assert lines
    assert not any(SECRET.encode() in line for line in lines)
