"""The command line as a whole: groups, wrong usage, one line an error, the tree of errors; setup, trust, config."""

import importlib
import json
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from gate_support import SAMPLE, install

import gstack
from gstack import errors
from gstack.cli import build_app, main

Run = Callable[..., "tuple[int, str, str]"]


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in an empty home, standing in an empty folder: (exit code, standard output, standard error)."""
    monkeypatch.setenv("GSTACK_STATE_ROOT", str(home / "state"))
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(home)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its words, groups first."""
    command = command or typer.main.get_command(build_app())
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*path, name))


COMMANDS = dict(commands())
GROUPS = [path for path, command in COMMANDS.items() if hasattr(command, "commands")]


@pytest.mark.parametrize("path", [path for path in GROUPS if path not in (("route",), ("gate",))], ids=" ".join)
def test_a_group_alone_prints_its_help_and_is_wrong_usage(run: Run, path: tuple[str, ...]) -> None:
    code, out, err = run(*path)
    assert code == 2
    assert "Usage: gstack" in out
    word = "SKILL_CONTRACT_USAGE" if path == ("contract",) else "GSTACK_USAGE"
    assert err == f"{word}: a command is missing (see {' '.join(('gstack', *path))} --help)\n"


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_help_that_fits(run: Run, path: tuple[str, ...]) -> None:
    code, out, err = run(*path, "--help")
    assert (code, err) == (0, "")
    assert "Usage:" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_help_shows_an_example(path: tuple[str, ...]) -> None:
    text = COMMANDS[path].help or ""
    wanted = "Start with: gstack" if not path else "Example: gstack"
    assert wanted in " ".join(text.split()) or path in NO_EXAMPLE, path


#: What a person needs no example for: they take no argument, or their group shows one.
NO_EXAMPLE = {("config", "has"), ("config", "list"), ("config", "defaults"), ("plugins", "list")}


@pytest.mark.parametrize(
    ("command", "usage", "state"),
    [
        ("contract report", "2 SKILL_CONTRACT_USAGE", "3 SKILL_CONTRACT_STATE_ERROR"),
        ("route report", "2 SKILL_ROUTE_USAGE", "3 GSTACK_STATE_ERROR"),
        ("gate simulate --bundle b", "3 GSTACK_USAGE", "3 GSTACK_STATE_ERROR"),
        ("replay", "2 GSTACK_USAGE", "3 GSTACK_STATE_ERROR"),
    ],
)
def test_a_page_that_cannot_be_written_is_said_in_the_words_of_its_group(
    run: Run, home: Path, command: str, usage: str, state: str
) -> None:
    for page, said in (("", usage), (str(home), state), (str(home / "no" / "x.html"), state)):
        code, out, err = run(*command.split(), "--html", page)
        assert f"{code} {err.partition(':')[0]}" == said
        assert out == ""


@pytest.mark.parametrize("path", [path for path in COMMANDS if path != ("hook",)], ids=" ".join)
def test_an_unknown_option_is_one_line_that_names_the_command(run: Run, path: tuple[str, ...]) -> None:
    code, out, err = run(*path, "--no-such-option")
    assert out == ""
    assert code == (3 if path[:1] == ("gate",) else 2)
    assert re.fullmatch(r"\w+_USAGE: No such option: --no-such-option.* \(see gstack[ \w-]* --help\)\n", err), err


def test_an_unknown_command_names_the_group(run: Run) -> None:
    assert run("bogus") == (2, "", "GSTACK_USAGE: No such command 'bogus' (see gstack --help)\n")
    assert run("config", "bogus")[2] == "GSTACK_USAGE: No such command 'bogus' (see gstack config --help)\n"


def test_a_missing_argument_names_the_command(run: Run) -> None:
    # older typer shows an argument's name in capitals
    error = run("bundle", "diff", "a")[2].replace("'NEW'", "'new'")
    assert error == "GSTACK_USAGE: Missing argument 'new' (see gstack bundle diff --help)\n"


def test_the_state_folder_is_named(run: Run, home: Path) -> None:
    assert run("config", "path") == (0, f"{home / 'state'}\n", "")


def test_hook_has_help(run: Run) -> None:
    code, out, _ = run("hook", "--help")
    assert code == 0
    assert "payload" in out


@pytest.mark.parametrize("columns", ["abc", "0", "-3"])
def test_odd_widths_are_passed_over(run: Run, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    usual = run("config", "list")
    monkeypatch.setenv("COLUMNS", columns)
    assert run("config", "list") == usual


# ------------------------------------------------------------------------------------- setup and trust


def test_setup_says_that_only_the_settings_file_stays_as_it_is(run: Run, home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    assert run("setup", "--skill-routing=observe")[0] == 0
    code, out, _ = run("setup", "--skill-routing")
    assert code == 0
    assert "skill_routing: on (flag)" in out
    assert out.endswith(f"nothing to change in {settings}\n")
    assert run("setup", "--dry-run")[1] == f"nothing to change in {settings}\n"


def test_setup_warns_where_no_hook_would_run(run: Run, home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"disableAllHooks": true}')
    warning = f"warning: disableAllHooks in {settings}: no hook runs (take disableAllHooks out)"
    assert run("setup", "--skill-routing", "--dry-run")[2].splitlines().count(warning) == 1
    assert run("setup", "--skill-routing", "--quiet")[2].splitlines().count(warning) == 1
    assert warning not in run("setup", "--no-skill-routing")[2]


def test_a_host_that_fails_to_say_whether_hooks_run_costs_setup_nothing(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boom(*_: Any) -> Any:
        raise RuntimeError("no")

    monkeypatch.setattr("gstack_hosts.claude_code.ClaudeCode.hooks_off", boom)
    code, out, err = run("setup", "--skill-routing")
    assert code == 0
    assert err.endswith("warning: claude-code: it can't be told whether its hooks run: raised RuntimeError: no\n")
    assert "skill_routing: on (flag)" in out


def test_names_of_folders_do_not_steer_the_terminal(run: Run, home: Path) -> None:
    folder = home / ".claude" / "skills" / "a\x1b[2Jb"
    (folder / "SKILL.md").mkdir(parents=True)
    for arguments in (("contract", "lint", str(folder)), ("doctor",)):
        out = run(*arguments)[1]
        assert "\x1b" not in out
        assert "a\\x1b[2Jb" in out.replace("\n", "").replace(" ", "")


def test_uninstall_keeps_an_earlier_version_that_holds_something_else(run: Run, home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"model": "a"}')
    run("setup", "--skill-routing")
    settings.write_text(settings.read_text().replace('"a"', '"b"'))
    out = run("uninstall", "--dry-run")[1]
    assert "kept" not in out
    assert len(list(settings.parent.iterdir())) == 3
    out = run("uninstall")[1]
    [kept] = [path for path in settings.parent.iterdir() if path != settings]
    assert f"kept an earlier version of {settings}, which you or others have changed since: {kept}\n" in out
    assert kept.read_text() == '{"model": "a"}'


def test_uninstall_says_when_there_was_nothing(run: Run, home: Path) -> None:
    assert run("uninstall") == (0, f"no hook of gstack is in {home / '.claude' / 'settings.json'}\n", "")
    run("setup", "--skill-routing")
    code, out, _ = run("uninstall")
    assert code == 0
    assert out.startswith("removed UserPromptSubmit")
    assert out.endswith(f"kept the configuration, logs and records in {home / 'state'}\n")


def test_trust_names_folders_and_says_what_changed_since(run: Run, home: Path) -> None:
    project = home / "project"
    (project / ".gstack").mkdir(parents=True)
    folder = str(project.resolve())
    code, _, err = run("trust", "project")
    assert code == 2
    assert err == f"GSTACK_USAGE: {folder} has no .gstack/config.yaml or .gstack/skills.yaml to trust\n"
    config = project / ".gstack" / "config.yaml"
    config.write_text("skill_routing: observe\n", encoding="utf-8")
    assert run("trust", "project") == (0, f"trusted as it is now: {folder}\n", "")
    assert run("trust", "--list") == (0, f"{folder}\n", "")
    config.write_text("skill_routing: off\n", encoding="utf-8")
    assert run("trust", "--list")[1].startswith(f"{folder} (changed since")
    assert json.loads(run("trust", "--list", "--json")[1]) == {"folders": [{"folder": folder, "unchanged": False}]}
    assert run("trust", "project", "--remove") == (0, f"no longer trusted: {folder}\n", "")
    assert run("trust", "project", "--remove") == (0, f"{folder} wasn't trusted\n", "")


# ------------------------------------------------------------------------------------------------ gate


@pytest.fixture
def site(run: Run, home: Path) -> Path:
    """A published policy of one skill; its private key lies beside it."""
    skill = home / "skills" / "deploy"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nversion: 1.0.0\ndescription: d\n---\n", encoding="utf-8")
    (home / "policy.yaml").write_text("org: acme\nnamespaces: [acme]\ngate_lock: true\n", encoding="utf-8")
    run("bundle", "keygen", "--out", "keys")
    assert run(*BUILD, "--key", "keys/private.pem")[0] == 0
    return home / "site"


BUILD = ("bundle", "build", "policy.yaml", "--skills", "skills", "--out", "site")


def test_a_new_key_for_the_same_policy_is_no_nothing(run: Run, site: Path) -> None:
    run("bundle", "keygen", "--out", "new")
    run(
        *("bundle", "rotate", "--old-key", "keys/private.pem", "--new-key", "new/public.pem"),
        *("--org", "acme", "--out", "rotation.json"),
    )
    code, out, _ = run(*BUILD, "--key", "new/private.pem", "--rotation", "rotation.json")
    assert (code, out.splitlines()[-1].startswith("signed anew site: acme version 1, 1 skill, key ")) == (0, True)
    code, out, _ = run(*BUILD, "--key", "new/private.pem")
    assert (code, out.splitlines()[-1].startswith("nothing changed in site: acme version 1, 1 skill, key ")) == (
        0,
        True,
    )


def test_nobody_is_told_where_a_folder_holds_the_policy(run: Run, site: Path) -> None:
    assert run("login", "--url", site.as_uri(), "--org", "acme")[0] == 0
    assert run("config", "set", "gate", "on")[0] == 0
    locked = "GSTACK_CHECK_FAILED: acme locks the gate on this machine (add --force to do it all the same)\n"
    assert run("config", "set", "gate", "off") == (1, "", locked)
    assert run("config", "set", "gate", "off", "--force") == (0, "", "")


def test_a_verified_bundle_as_json(run: Run, site: Path) -> None:
    code, out, _ = run("bundle", "verify", "site/api/bundle/acme", "--key", "keys/public.pem", "--json")
    found = json.loads(out)
    assert (code, found["org"], found["version"], len(found["sha256"])) == (0, "acme", 1, 64)
    assert found["key_id"] in run("bundle", "verify", "site/api/bundle/acme", "--key", "keys/public.pem")[1]


def test_counts_agree_with_their_nouns(run: Run, site: Path) -> None:
    run("login", "--url", site.as_uri(), "--org", "acme")
    code, out, _ = run("pull")
    assert (code, out.splitlines()[-1]) == (0, f"1 skill, in {site.parent / '.claude' / 'skills'}")
    assert "synced just now" in run("status")[1]


def test_an_override_names_the_organisation_only_where_it_hears_of_it(run: Run, home: Path) -> None:
    policy = {**SAMPLE["policies"][0], "overridable": True}
    (home / "state").mkdir(mode=0o700)
    install(home / "state", {**SAMPLE, "policies": [policy]})
    code, _, err = run("gate", "allow", "acme/teamleader-crm-entry", "--reason", "x")
    assert (code, err) == (0, "Uses go ahead with a warning.\n")


def test_without_a_bundle_both_ways_out_are_named(run: Run) -> None:
    assert "run 'gstack sync', or 'gstack login'" in run("bundle", "show")[2]


def test_a_bad_public_key_is_named(run: Run, home: Path, site: Path) -> None:
    (home / "bad.pem").write_text("no key", encoding="utf-8")
    code, _, err = run("login", "--url", site.as_uri(), "--org", "acme", "--public-key", "bad.pem")
    assert (code, err) == (3, "GSTACK_BUNDLE_ERROR: bad.pem: the public key is no Ed25519 key in PEM form\n")
    assert run("login", "--url", site.as_uri(), "--org", "acme", "--public-key", "none.pem")[0] == 3


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ("{name: x, matcher_type: name, match_value: y, action: [block]}", "unknown action ['block']"),
        ("{name: x, matcher_type: name, match_value: y, action: block, policy_id: [1]}", "policy_id is missing"),
        ("{name: x, matcher_type: name, match_value: y, action: [", "is no YAML: line "),
    ],
)
def test_odd_policies_are_refused_with_a_line(run: Run, home: Path, policy: str, problem: str) -> None:
    (home / "policy.yaml").write_text(f"org: acme\nnamespaces: [acme]\npolicies:\n  - {policy}\n", encoding="utf-8")
    code, _, err = run("bundle", "build", "policy.yaml", "--preview")
    assert code in (1, 3)
    assert problem in err


def test_an_id_used_twice_is_said_once(run: Run, home: Path) -> None:
    one = "  - {name: Same, matcher_type: name, match_value: acme/x, action: warn}\n"
    (home / "policy.yaml").write_text(f"org: acme\nnamespaces: [acme]\npolicies:\n{one}{one}", encoding="utf-8")
    assert run("bundle", "build", "policy.yaml", "--preview")[2].count("used more than once") == 1


def test_a_report_of_one_session_says_which(run: Run) -> None:
    assert run("contract", "report", "--session", "s1") == (0, "no run of session s1 is recorded\n", "")


# ---------------------------------------------------------------------------------------------- errors


def test_the_tree_of_errors_has_every_error_in_its_place() -> None:
    """The drawing in the docstring, read as a tree, is the tree of classes."""
    for module in pkgutil.walk_packages(gstack.__path__, "gstack."):
        if not module.name.startswith(("gstack.testing", "gstack.scaffold", "gstack.__main__")):
            importlib.import_module(module.name)
    drawn: dict[str, tuple[str | None, int, str]] = {}
    above: list[str] = []
    row = re.compile(r"    ((?:[|` ][ -]{3})*)(\w+) +(\d) *([A-Z_]{5,})?")
    for line in errors.__doc__.splitlines():
        found = row.match(line)
        if found:
            del above[len(found[1]) // 4 :]
            parent = above[-1] if above else None
            code = found[4] or drawn[parent or ""][2]
            drawn[found[2]] = (parent, int(found[3]), code)
            above.append(found[2])
    assert drawn == dict(_classes(errors.GstackError, None))


def _classes(cls: type[errors.GstackError], parent: str | None) -> "Iterator[tuple[str, tuple[str | None, int, str]]]":
    yield cls.__name__, (parent, cls.exit_code, cls.code)
    for below in cls.__subclasses__():
        if below.__module__.startswith("gstack."):
            yield from _classes(below, cls.__name__)
