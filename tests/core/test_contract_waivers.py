"""Waivers found in a transcript, and the arguments of the command itself (contracts C6)."""

import shlex
import sys

import pytest
from contract_helpers import called, load, result, said
from hypothesis import given
from hypothesis import strategies as st

from gstack.api import Event, Run
from gstack.contracts.matching import first_match, happened, match_in_child, search
from gstack.contracts.waivers import Waive, acknowledgement, checked_waive, find_waivers, parse_waive

ITEMS = ["repro-after-fix", "debug-report"]
SKILL = "investigate"
VALID = 'gstack contract waive repro-after-fix --reason "docs only"'
FOUND = {"repro-after-fix": "docs only"}


def run_of(*events: Event, skill: str = SKILL) -> Run:
    return Run(skill, "load-1", [*events, said("Done.")], final_text="Done.")


def found_in(command: str, *, ok: bool | None = True, output: str = "", **more: bool) -> dict[str, str]:
    denied = more.pop("denied", False)
    events = [called("shell", "c1", command=command, **more), result("c1", ok=ok, denied=denied, text=output)]
    return find_waivers(run_of(*events), SKILL, ITEMS)


@pytest.mark.parametrize(
    "command",
    [
        VALID,
        'gstack-skill-contract waive repro-after-fix --reason "docs only"',
        "'/home/me/.local/bin/gstack-skill-contract' waive repro-after-fix --reason 'docs only'",
        '"/opt/my tools/gstack" contract waive repro-after-fix --reason "docs only"',
        "/opt/my\\ tools/gstack contract waive repro-after-fix --reason docs\\ only",
        "'C:\\Users\\me\\Scripts\\gstack-skill-contract.exe' waive repro-after-fix --reason \"docs only\"",
        "& 'C:\\Users\\me\\gstack-skill-contract.exe' waive repro-after-fix --reason \"docs only\"",
        f"cd x && {VALID}",
        f"cd x; {VALID}",
        f"cd x\n{VALID}\n",
        f"A=1 B='x y' {VALID}",
        f"env A=1 {VALID}",
        f"env -u B A=1 {VALID}",
        f"time {VALID}",
        f"command {VALID}",
        f"uv run {VALID}",
        f"uv run --project . {VALID}",
        f"python -m {VALID}",
        f"{VALID} && echo done",
        f"{VALID}; echo done",
        f"{VALID} 2>&1",
        f"({VALID})",
        f"# not needed here\n{VALID}",
        "gstack contract waive repro-after-fix --reason='docs only'",
        "gstack contract waive --reason 'docs only' repro-after-fix",
        "gstack contract waive --skill investigate --reason 'docs only' repro-after-fix",
        "gstack contract waive repro-after-fix --skill=/investigate --reason 'docs only'",
        "gstack contract waive repro-after-fix --skill gstack:investigate --reason 'docs only'",
        "gstack contract waive --reason 'docs only' -- repro-after-fix",
        "gstack --debug contract waive repro-after-fix --reason 'docs only'",
        "gstack contract waive repro-after-fix --reason x --reason 'docs only'",
        "gstack contract waive repro-after-fix \\\n  --reason 'docs only'",
        f"echo 'not this: {VALID}' && {VALID}",
    ],
)
def test_a_call_that_counts(command: str) -> None:
    assert found_in(command) == FOUND


@pytest.mark.parametrize(
    "command",
    [
        "gstack contract waive repro-after-fix",
        "gstack contract waive repro-after-fix --reason",
        "gstack contract waive repro-after-fix --reason ''",
        "gstack contract waive repro-after-fix --reason '  '",
        "gstack contract waive repro-after-fix --reason=",
        'gstack contract waive repro-after-fix --reason "<why>"',
        "gstack contract waive --reason 'docs only'",
        "gstack contract waive repro-after-fix debug-report --reason 'docs only'",
        "gstack contract waive repro-after-fix docs only",
        "gstack contract waive unknown-item --reason 'docs only'",
        "gstack contract waive <item> --reason 'docs only'",
        "gstack contract waive $item --reason 'docs only'",
        "gstack contract waive repro-after-fix --reason 'docs only' --skill review",
        "gstack contract waive repro-after-fix --reason 'docs only' --force",
        "gstack contract waive repro-after-fix --reason 'docs only' --help",
        "gstack contract report",
        "gstack waive repro-after-fix --reason 'docs only'",
        "other-skill-contract waive repro-after-fix --reason 'docs only'",
        f"echo {VALID}",
        f"echo '{VALID}'",
        f'echo "run: $({VALID})"',
        f"echo `{VALID}`",
        f"# {VALID}",
        f"true # {VALID}",
        f"cat <<'EOF'\n{VALID}\nEOF",
        f"bash <<'EOF'\n{VALID}\nEOF",
        f"sh -c '{VALID}'",
        f"git commit -m '{VALID}'",
        f"printf '%s' '{VALID}' > note.txt",
        f"grep -r '{VALID}' .",
        f"which {VALID}",
    ],
)
def test_a_call_that_does_not_count(command: str) -> None:
    assert found_in(command) == {}


def test_a_call_that_failed_or_was_denied_does_not_count() -> None:
    assert found_in(VALID, ok=False) == {}
    assert found_in(VALID, ok=None, denied=True) == {}
    assert found_in(f"npm test && {VALID}", ok=False) == {}


def test_a_call_whose_result_is_not_told_counts_when_the_session_went_on() -> None:
    assert found_in(VALID, ok=None) == FOUND
    call = called("shell", "c1", command=VALID)
    assert find_waivers(Run(SKILL, "l", [call, said("Done.")], final_text="Done."), SKILL, ITEMS) == FOUND
    assert find_waivers(Run(SKILL, "l", [call]), SKILL, ITEMS) == {}, "it may still be running"
    assert find_waivers(Run(SKILL, "l", [call, Event("interrupted")]), SKILL, ITEMS) == {}


@pytest.mark.parametrize(
    "command",
    [
        f"{VALID} || true",
        f"{VALID} | tail -5",
        f"{VALID} &",
        f"({VALID}) || true",
        f"false || {VALID}",
        f"if {VALID}; then echo ok; fi",
        f"! {VALID}",
        f"f() {{ {VALID}; }}",
        f"for i in 1 2; do {VALID}; done",
    ],
)
def test_a_hidden_failure_needs_the_commands_own_line(command: str) -> None:
    """Where the exit code can't tell, the printed acknowledgement does."""
    line = acknowledgement(Waive("repro-after-fix", "docs only"))
    assert found_in(command) == {}
    assert found_in(command, output="bash: gstack: command not found") == {}
    assert found_in(command, output=line.replace("repro-after-fix", "repro-after-fix-2")) == {}
    assert found_in(command, output=f"{line}\nok") == FOUND


@pytest.mark.parametrize(
    "output",
    ["bash: gstack: command not found", "sh: 1: gstack: not found", "SKILL_CONTRACT_USAGE: no such item"],
)
def test_a_failure_before_a_later_command_is_seen_in_the_output(output: str) -> None:
    assert found_in(f"{VALID}; echo done", output=f"{output}\ndone") == {}
    assert found_in(f"{VALID}\necho done", output=f"{output}\ndone") == {}


def test_a_background_call_needs_the_commands_own_line() -> None:
    assert found_in(VALID, background=True, output="Command running in background with ID: b1") == {}


def test_several_in_one_call_and_over_several() -> None:
    both = 'gstack contract waive repro-after-fix --reason "a"; gstack-skill-contract waive debug-report --reason "b"'
    assert found_in(both) == {"repro-after-fix": "a", "debug-report": "b"}
    events = []
    for number, reason in enumerate(["first", "second"]):
        command = f"gstack contract waive debug-report --reason {reason}"
        events += [called("shell", f"c{number}", command=command), result(f"c{number}", ok=True)]
    assert find_waivers(run_of(*events), SKILL, ITEMS) == {"debug-report": "second"}


def test_only_shell_calls_count() -> None:
    for kind in ("edit", "agent", "read", "mcp"):
        event = called(kind, "c1", command=VALID, prompt=VALID)
        assert find_waivers(run_of(event, result("c1", ok=True)), SKILL, ITEMS) == {}
    assert find_waivers(run_of(said(VALID), Event("prompt", text=VALID)), SKILL, ITEMS) == {}


def test_a_call_without_skill_belongs_to_the_skill_in_progress() -> None:
    call = [called("shell", "c1", command=VALID), result("c1", ok=True)]
    later = [load("review", uid="load-2"), *call]
    shared = {"review": ["repro-after-fix"]}
    assert find_waivers(run_of(*later), SKILL, ITEMS, others=shared) == {}
    assert find_waivers(run_of(*later), SKILL, ITEMS, others={"review": ["other"]}) == FOUND
    assert find_waivers(run_of(*later), SKILL, ITEMS, others={"qa": ["repro-after-fix"]}) == FOUND
    assert find_waivers(run_of(*call, load("review", uid="load-2")), SKILL, ITEMS, others=shared) == FOUND
    named = f"{VALID} --skill investigate"
    events = [load("review", uid="load-2"), called("shell", "c1", command=named), result("c1", ok=True)]
    assert find_waivers(run_of(*events), SKILL, ITEMS, others=shared) == FOUND


def test_a_skill_may_be_named_by_its_label() -> None:
    events = [called("shell", "c1", command=f"{VALID} --skill root-cause"), result("c1", ok=True)]
    assert find_waivers(run_of(*events), SKILL, ITEMS) == {}
    assert find_waivers(run_of(*events), SKILL, ITEMS, names=["root-cause"]) == FOUND


@pytest.mark.parametrize("skill", ["gstack:investigate", "investigate"])
@pytest.mark.parametrize("named", ["gstack:investigate", "investigate", "/investigate"])
def test_a_plugins_prefix_may_be_left_out(skill: str, named: str) -> None:
    events = [called("shell", "c1", command=f"{VALID} --skill {named}"), result("c1", ok=True)]
    assert find_waivers(run_of(*events, skill=skill), skill, ITEMS) == FOUND


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("item --reason why-not", Waive("item", "why-not")),
        ("--reason 'a  b\nc' item", Waive("item", "a b c")),
        ("item --reason x --skill /s", Waive("item", "x", "s")),
        ("item --reason=x=y --skill=", Waive("item", "x=y")),
        ("item --reason --skill", Waive("item", "--skill")),
        ("item --reason --skill s", None),
        ("item -r x", None),
        ("item", None),
        ("", None),
        ("--reason x", None),
        ("'' --reason x", None),
    ],
)
def test_parse_waive(words: str, expected: Waive | None) -> None:
    assert parse_waive(shlex.split(words)) == expected


def test_checked_waive_is_the_same_check() -> None:
    assert checked_waive("item", "x", "s") == Waive("item", "x", "s")
    assert checked_waive(None, "x") is None
    assert checked_waive("item", None) is None
    assert checked_waive("item", "<why>") is None


@given(st.text(min_size=1, max_size=30), st.sampled_from(ITEMS), st.booleans(), st.booleans())
def test_every_quoted_reason_is_read(reason: str, item: str, joined: bool, first: bool) -> None:
    """Whatever a model writes as its reason, quoted as a shell needs it, comes out as it went in."""
    if "\0" in reason or not reason.strip() or reason.strip() == "<why>" or "\r" in reason:
        return
    option = f"--reason={shlex.quote(reason)}" if joined else f"--reason {shlex.quote(reason)}"
    words = f"{option} {item}" if first else f"{item} {option}"
    assert found_in(f"gstack contract waive {words}") == {item: " ".join(reason.split())}


@given(st.text("gstack contract waive repro-after-fix --reason'\"\\$`;&|()<>#\n ", max_size=120))
def test_any_command_line_is_read(text: str) -> None:
    assert set(found_in("waive " + text)) <= set(ITEMS)


# ----------------------------------------------------------------------------------------------- matching


def test_search_and_first_match() -> None:
    assert search("b+", "abbc")
    assert not search("B", "abc")
    assert search("B", "abc", ignore_case=True)
    assert first_match("b", ["a", "b", "bb"]) == 1
    assert first_match("x", ["a"]) is None
    assert first_match("x", []) is None


def test_a_child_process_matches_the_same() -> None:
    """What Windows does, which can't interrupt an expression."""
    assert match_in_child("b", ["a", "é\ud800b", "bb"]) == 1
    assert match_in_child("B", ["a", "b"], ignore_case=True) == 1
    assert match_in_child("x", ["a"]) is None
    with pytest.raises(TimeoutError, match=r"took longer than 0\.3 s"):
        match_in_child("(a+)+$", ["a" * 40 + "b"], limit=0.3)


def test_where_there_is_no_timer_the_child_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gstack.contracts.matching.POSIX", False)
    assert search("b", "abc")
    assert not search("x", "abc")


def test_a_base_exception_inside_an_expression_gets_out() -> None:
    """The hook's timer raises one; nothing here may swallow it."""
    if sys.platform == "win32":
        pytest.skip("no setitimer")
    import signal

    class Late(BaseException):
        pass

    def raise_late(*_: object) -> None:
        raise Late

    before = signal.signal(signal.SIGALRM, raise_late)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(Late):
            search("(a+)+$", "a" * 60 + "b")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_happened() -> None:
    call = called("shell", "c1", command="x")
    other = called("shell", "c2", command="y")
    assert happened(Run("s", "l", [call]), 0, result("c1", ok=False))
    assert not happened(Run("s", "l", [call]), 0, result("c1", denied=True))
    assert happened(Run("s", "l", [call, other, result("c2", ok=True)]), 0, None)
    assert not happened(Run("s", "l", [call, other]), 0, None)
    assert not happened(Run("s", "l", [call, Event("interrupted"), said("x")]), 0, None)
    assert happened(Run("s", "l", [call], final_text="the payload's text"), 0, None)
    assert not happened(Run("s", "l", [said("before"), call], final_text="before"), 1, None)
