"""What ran after the last edit, and whether it was a check."""

import json
import time
from pathlib import Path

import pytest
from contract_helpers import called, result, said
from hypothesis import given
from hypothesis import strategies as st

from gstack.api import CANNOT_TELL, MET, MISSING, Event, Item, Run, Verdict
from gstack_plugins.check_after_last_edit import CheckAfterLastEdit, gstack_contract_kinds, table
from gstack_plugins.check_after_last_edit.commands import runs_check

TABLE = Path(__file__).with_name("commands.tsv")


def rows() -> list[tuple[bool, str]]:
    """The table's rows: ``yes`` or ``no``, a tab, the command (``\\n`` is a newline, ``\\\\`` a backslash)."""
    found = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        expected, _, command = line.partition("\t")
        assert expected in ("yes", "no"), line
        command = command.replace("\\\\", "\0").replace("\\n", "\n").replace("\0", "\\")
        found.append((expected == "yes", command))
    return found


@pytest.mark.parametrize(("expected", "command"), rows(), ids=lambda value: value if isinstance(value, str) else "")
def test_command(expected: bool, command: str) -> None:
    assert runs_check(command) is expected


def test_the_table_has_enough_of_both() -> None:
    commands = [command for _, command in rows()]
    assert len(commands) == len(set(commands)) >= 250
    assert sum(expected for expected, _ in rows()) >= 100
    assert sum(not expected for expected, _ in rows()) >= 100


@given(
    st.sampled_from(rows()),
    st.sampled_from(["cd web && {}", "{} 2>&1 | tail -5", "A=1 B='x y' {}", "( {}\n)", "true; {}"]),
)
def test_what_stands_round_a_command_changes_nothing(row: tuple[bool, str], around: str) -> None:
    expected, command = row
    if (
        "\n" in command
        or "#" in command
        or (command.startswith(("if", "for", "case", "{", "(", "[[", "!", "until")) and "A=" in around)
    ):
        return
    assert runs_check(around.format(command)) is expected


@given(
    st.sampled_from(
        [command for expected, command in rows() if expected and "'" not in command and "\n" not in command]
    )
)
def test_a_quoted_command_is_text(command: str) -> None:
    for text in ("echo '{}'", "git commit -m '{}'", "# {}", "cat <<'EOF'\n{}\nEOF", "grep -r '{}' docs", "x='{}'"):
        assert not runs_check(text.format(command)), text
    assert runs_check(f"sh -c '{command}'") or "$" in command or "\\" in command


_SIGNS = (
    *(
        "env",
        "npx",
        "uv",
        "run",
        "-c",
        "--",
        "-",
        "-m",
        "test",
        "x.py",
        "A=1",
        "'",
        '"',
        "$(",
        ")",
        "|",
        "&&",
        ";",
        "\n",
    ),
    *("docker", "compose", "exec", "find", "-exec", "yarn", "<<E", "python3"),
)
_WORDS = st.sampled_from(sorted({*table.RUNNERS, *table.VERBS, *table.INTERPRETERS, *table.SHELLS, *_SIGNS}))


@given(st.lists(_WORDS, max_size=30))
def test_any_words_are_judged(words: list[str]) -> None:
    assert runs_check(" ".join(words)) in (True, False)


@pytest.mark.parametrize(
    "unit", ["yarn ", "env ", "sh -c '", "npx ", "docker ", "a=", "find -exec ", "$(", "-", "uv run "]
)
def test_a_long_command_takes_no_time(unit: str) -> None:
    started = time.process_time()
    runs_check(unit * (100_000 // len(unit)))
    assert time.process_time() - started < 5


def test_commands_of_real_transcripts(shared: Path) -> None:
    """Each is judged; one that runs none of the tables' names, at its surface or inside, is none."""
    found = set()
    for folder in (shared / "corpus" / "transcripts", shared / "reference" / "claude-code-live"):
        for path in folder.rglob("*.jsonl"):
            for line in path.read_bytes().splitlines():
                if b'"command"' in line and b'"Bash"' in line:
                    found |= commands_of(line)
    assert len(found) > 300
    checks = {command for command in found if runs_check(command)}
    assert 30 < len(checks) < 100
    names = ("test", "check", "lint", "vet", "run", "python", "node", "curl", "knip", "credo", "dialyzer")
    assert [command for command in checks if not any(name in command for name in names)] == []
    for command in found - checks:
        assert not command.startswith(
            ("npm test", "go test", "mix test", "pytest", "python3 ", "npx biome check", "npm run lint")
        )


def commands_of(line: bytes) -> set[str]:
    """The commands of the Bash calls in one record."""
    try:
        content = json.loads(line)["message"]["content"]
    except (ValueError, KeyError, TypeError):
        return set()
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    calls = [block.get("input") for block in blocks if block.get("name") == "Bash"]
    return {call["command"] for call in calls if isinstance(call, dict) and isinstance(call.get("command"), str)}


# --------------------------------------------------------------------------------------------------- runs


def edit(ident: str, path: str = "/home/u/work/src/auth.ts") -> Event:
    return called("edit", ident, paths=(path,))


def shell(ident: str, command: str, **more: bool) -> Event:
    return called("shell", ident, command=command, **more)


def check(*events: Event, cwd: str | None = "/home/u/work", final: str = "", **fields: object) -> Verdict:
    return CheckAfterLastEdit().check(
        Item("x", "check_after_last_edit", fields), Run("s", "l", events, cwd=cwd, final_text=final)
    )


EDITED = [edit("e1"), result("e1", ok=True)]
TESTED = [shell("c1", "npm test"), result("c1", ok=True)]
NO_TEST = Verdict(MISSING, "no test ran after the edit of src/auth.ts")


def test_no_edit_needs_no_check() -> None:
    assert check() == Verdict(MET, "nothing was edited")
    assert check(said("Hello."), *TESTED).status == MET


def test_the_check_comes_after_the_last_edit() -> None:
    assert check(*EDITED) == NO_TEST
    assert check(*EDITED, *TESTED) == Verdict(MET)
    assert check(*TESTED, *EDITED) == NO_TEST
    again = [edit("e2", "/home/u/work/src/b.ts"), result("e2", ok=True)]
    assert check(*EDITED, *TESTED, *again) == Verdict(MISSING, "no test ran after the edit of src/b.ts")
    assert check(*EDITED, *TESTED, *again, shell("c2", "ls"), result("c2", ok=True)).status == MISSING


def test_that_it_ran_counts_not_that_it_passed() -> None:
    assert check(*EDITED, shell("c1", "npm test"), result("c1", ok=False)).status == MET
    assert check(*EDITED, shell("c1", "npm test"), result("c1", ok=None)).status == MET


def test_a_check_that_never_ran_does_not_count() -> None:
    assert check(*EDITED, shell("c1", "npm test"), result("c1", ok=False, denied=True)) == NO_TEST
    assert check(*EDITED, shell("c1", "npm test"), Event("interrupted")) == NO_TEST
    assert check(*EDITED, shell("c1", "npm test")) == NO_TEST, "the last thing there: not known to have run"


def test_an_edit_that_failed_was_none() -> None:
    failed = [edit("e2"), result("e2", ok=False)]
    denied = [edit("e2"), result("e2", denied=True)]
    assert check(*failed).status == MET
    assert check(*denied).status == MET
    assert check(*EDITED, *TESTED, *failed, *denied).status == MET
    assert check(*EDITED, *TESTED, edit("e2"), Event("interrupted")).status == MET
    assert check(*EDITED, *TESTED, edit("e2")).status == MET, "it may still be asked about"
    assert check(edit("e2"), said("Done.")).status == MISSING, "its result was lost, but the session went on"


def test_a_background_command_counts_from_its_launch() -> None:
    launched = [shell("c1", "npm test", background=True), result("c1", ok=True)]
    assert check(*EDITED, *launched).status == MET
    assert check(*launched, *EDITED) == NO_TEST


def test_paths_are_shown_from_the_sessions_folder_on() -> None:
    for path, shown in (
        ("/elsewhere/a.py", "/elsewhere/a.py"),
        ("/home/u/workshop/a.py", "/home/u/workshop/a.py"),
        ("a.py", "a.py"),
    ):
        assert check(edit("e1", path), result("e1", ok=True)).why == f"no test ran after the edit of {shown}"
    windows = check(edit("e1", "C:\\work\\src\\a.py"), result("e1", ok=True), cwd="C:\\work\\")
    assert windows.why == "no test ran after the edit of src\\a.py"
    assert check(called("edit", "e1"), result("e1", ok=True), cwd=None).why == "no test ran after the edit"


def test_match_replaces_the_table() -> None:
    deploy = [shell("c1", "./deploy.sh --smoke"), result("c1", ok=True)]
    assert check(*EDITED, *deploy, match="deploy\\.sh.*--smoke").status == MET
    assert check(*EDITED, *deploy, match="DEPLOY").status == MISSING, "in this case"
    assert check(*EDITED, *TESTED, match="deploy") == Verdict(
        MISSING, "no command that matches deploy ran after the edit of src/auth.ts"
    )
    assert check(*deploy, *EDITED, match="deploy").status == MISSING
    assert check(*EDITED, shell("c1", "x deploy"), result("c1", denied=True), match="deploy").status == MISSING


def test_must_pass_wants_the_last_check_to_succeed() -> None:
    failed = [shell("c1", "npm test"), result("c1", ok=False)]
    passed = [shell("c2", "npm test"), result("c2", ok=True)]
    assert check(*EDITED, *passed, must_pass=True).status == MET
    assert check(*EDITED, *failed, *passed, must_pass=True).status == MET
    assert check(*EDITED, *passed, *failed, must_pass=True) == Verdict(MISSING, "the last check failed: npm test")
    assert check(*EDITED, *failed, shell("c3", "ls"), result("c3", ok=True), must_pass=True).status == MISSING
    assert check(*EDITED, *failed, must_pass=False).status == MET
    assert check(must_pass=True).status == MET


def test_a_failed_check_is_named_without_its_secrets() -> None:
    command = "cd web && TOKEN=hunter2 npm test -- --key=hunter2"
    verdict = check(*EDITED, shell("c1", command), result("c1", ok=False), must_pass=True)
    assert verdict == Verdict(MISSING, "the last check failed: npm test")


def test_must_pass_where_nobody_says_how_it_ended() -> None:
    assert check(*EDITED, shell("c1", "npm test"), result("c1"), must_pass=True) == Verdict(
        CANNOT_TELL, "the host doesn't say whether the last check passed: npm test"
    )
    launched = [shell("c1", "npm test", background=True), result("c1", ok=True)]
    assert check(*EDITED, *launched, must_pass=True) == Verdict(
        MISSING, "the last check ran in the background and has not reported: npm test"
    )
    assert check(*EDITED, *launched, result("c1", ok=True), must_pass=True).status == MET
    assert check(*EDITED, *launched, result("c1", ok=False), must_pass=True).status == MISSING


def test_texts() -> None:
    (kind,) = gstack_contract_kinds()
    assert kind.fix(Item("x", kind.name)) == "run the test or repro again after your last edit and show its result"
    assert kind.fix(Item("x", kind.name, {"match": "smoke", "must_pass": True})) == (
        "run the test or repro again after your last edit (a command that matches smoke) and show its result, "
        "until it passes"
    )
    assert kind.summary(Item("x", kind.name)) == "a test or repro run after the last edit"
    assert kind.summary(Item("x", kind.name, {"must_pass": True})) == "a passing test or repro run after the last edit"
    assert [(field.name, field.type, field.required) for field in kind.fields] == [
        ("match", "regex", False), ("must_pass", "flag", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("NOT_FIRST", table.NOT_FIRST),
        ("NOT_AFTER_TEST", table.NOT_AFTER_TEST),
        ("LOOKALIKES", table.LOOKALIKES),
    ],
)
def test_no_word_says_both(path: str, names: frozenset[str]) -> None:
    assert not names & (table.CHECK_WORDS | table.RUNNERS), path
