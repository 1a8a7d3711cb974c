"""The contract kind ``check_after_last_edit``: a test or repro ran after the run's last edit (contracts C2).

Hot: the stop hook judges with it, so builtins only; the tables of commands are imported when a run has an edit.
"""

from gstack.api import CANNOT_TELL, MET, MISSING, Field, Verdict, hookimpl
from gstack.contracts.matching import first_match, happened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gstack.api import EndVerdict, Event, Item, Run, ToolCall

    #: A call's place among the run's events, the call, and its result.
    Call = tuple[int, ToolCall, Event | None]


class CheckAfterLastEdit:
    """What was changed was tried afterwards; a run without a change needs no trial.

    That it ran counts; with ``must_pass`` the last such command also has to have succeeded.
    """

    name = "check_after_last_edit"
    fields = (
        Field("match", "regex", help="searched in a shell call's text; replaces the built-in table of commands"),
        Field("must_pass", "flag", default=False, help="the last such command also has to succeed"),
    )

    def check(self, item: "Item", run: "Run") -> Verdict:
        """Met when the last edit was checked, or there was none."""
        edits = _edits(run)
        if not edits:
            return Verdict(MET, "nothing was edited")
        last, edit, _ = edits[-1]
        found = self._last_check(item, run, last)
        if found is None:
            return Verdict(MISSING, f"{_wanted(item)} ran after the edit{_of(edit, run)}")
        return _passed(found, run) if item.fields.get("must_pass") else Verdict(MET)

    def check_end(self, item: "Item", run: "Run") -> "EndVerdict | None":
        """The last edit is in the run's end, or a check that will do for any edit before it, or there may be none."""
        from gstack.api import EndVerdict

        if _edits(run):
            return EndVerdict(self.check(item, run))
        found = self._last_check(item, run, -1)
        if found is None:
            return EndVerdict(Verdict(MET, "nothing was edited"), unless_called=("edit",))
        if item.fields.get("must_pass") and _passed(found, run).status != MET:
            return None
        return EndVerdict(Verdict(MET))

    def _last_check(self, item: "Item", run: "Run", after: int) -> "Call | None":
        """The last check that was carried out behind the place ``after`` of the run's events."""
        ran = [
            (place, call, result)
            for place, call, result in reversed(run.calls("shell"))
            if place > after and call.command and happened(run, place, result)
        ]
        match = item.fields.get("match")
        if match:
            place = first_match(match, [call.command or "" for _, call, _ in ran])
            return None if place is None else ran[place]
        from gstack_plugins.check_after_last_edit.commands import runs_check

        return next((one for one in ran if runs_check(one[1].command or "")), None)

    def fix(self, item: "Item") -> str:
        """What to do about it (contracts C5)."""
        passing = ", until it passes" if item.fields.get("must_pass") else ""
        command = f" (a command that matches {item.fields['match']})" if item.fields.get("match") else ""
        return f"run the test or repro again after your last edit{command} and show its result{passing}"

    def summary(self, item: "Item") -> str:
        """The item as a noun phrase."""
        return f"a {'passing ' if item.fields.get('must_pass') else ''}test or repro run after the last edit"


def _edits(run: "Run") -> "list[Call]":
    """The edits that were carried out and didn't fail, in order."""
    return [
        (place, call, result)
        for place, call, result in run.calls("edit")
        if happened(run, place, result) and (result is None or result.ok is not False)
    ]


@hookimpl
def gstack_contract_kinds() -> "list[CheckAfterLastEdit]":
    """This plug-in's kind."""
    return [CheckAfterLastEdit()]


def _wanted(item: "Item") -> str:
    match = item.fields.get("match")
    return f"no command that matches {match}" if match else "no test"


def _of(edit: "ToolCall", run: "Run") -> str:
    """`` of src/auth.ts``: the last path that an edit names, from the session's folder on."""
    if not edit.paths:
        return ""
    path = edit.paths[-1]
    folder = (run.cwd or "").rstrip("/\\")
    if folder and path.startswith((folder + "/", folder + "\\")):
        path = path[len(folder) + 1 :]
    return f" of {path}"


def _passed(found: "Call", run: "Run") -> Verdict:
    """Whether the last check succeeded, as far as the host says."""
    _, call, result = found
    shown = _shown(call.command or "")
    if call.background:
        # its first result only says that it was launched; a host may report the end as a second one
        results = [event for event in run.events if event.type == "result" and event.ref and event.ref == call.id]
        if len(results) < 2:
            return Verdict(MISSING, f"the last check ran in the background and has not reported: {shown}")
    if result is None or result.ok is None:
        return Verdict(CANNOT_TELL, f"the host doesn't say whether the last check passed: {shown}")
    return Verdict(MET) if result.ok else Verdict(MISSING, f"the last check failed: {shown}")


def _shown(text: str) -> str:
    """What a command line runs, in two words: no more, since its arguments and assignments may hold secrets."""
    from gstack.shell import commands

    named = [command.texts for command in commands(text) if command.words and command.words[0].text != "cd"]
    return " ".join(named[0][:2])[:60] if named else "the command"
