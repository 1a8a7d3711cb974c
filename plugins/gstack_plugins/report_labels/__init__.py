"""The contract kind ``report_labels``: a report was printed, with a real value for every label (contracts C2).

Hot: the stop hook judges with it, so builtins only; the parser is imported when a message has the heading.
"""

from gstack.api import MET, MISSING, Field, Verdict, hookimpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gstack.api import EndVerdict, Item, Run


class ReportLabels:
    """The last message of the assistant with the heading has a ``Label: value`` line for every label."""

    name = "report_labels"
    fields = (
        Field("heading", "text", required=True, help="the report's heading, in this case"),
        Field("labels", "texts", required=True, help="the labels that need a value, in any case"),
    )

    def check(self, item: "Item", run: "Run") -> Verdict:
        """Met when no label is absent, empty or has a placeholder as its value."""
        heading = item.fields["heading"]
        text = _report(run, heading)
        if text is None:
            return Verdict(MISSING, f"no message has the heading {heading}")
        from gstack_plugins.report_labels.report import problems

        found = problems(text, heading, item.fields["labels"])
        return Verdict(MISSING, f"{heading}: {'; '.join(found)}") if found else Verdict(MET)

    def check_end(self, item: "Item", run: "Run") -> "EndVerdict":
        """The last report is in the run's end, or an earlier message may have it."""
        from gstack.api import EndVerdict

        heading = item.fields["heading"]
        earlier = () if _report(run, heading) is not None else (heading,)
        return EndVerdict(self.check(item, run), unless_said=earlier)

    def fix(self, item: "Item") -> str:
        """What to do about it (contracts C5)."""
        return f"print the {item.fields['heading']} with real values for {', '.join(item.fields['labels'])}"

    def summary(self, item: "Item") -> str:
        """The item as a noun phrase."""
        return f"a {item.fields['heading']} with {', '.join(item.fields['labels'])}"


@hookimpl
def gstack_contract_kinds() -> "list[ReportLabels]":
    """This plug-in's kind."""
    return [ReportLabels()]


def _report(run: "Run", heading: str) -> "str | None":
    """The last message with the heading."""
    return next((text for text in reversed(run.texts()) if heading in text and has_heading(text, heading)), None)


def has_heading(text: str, heading: str) -> bool:
    """Whether ``heading`` stands in ``text`` on token boundaries, in this case."""
    return next(heading_places(text, heading), None) is not None


def heading_places(text: str, heading: str) -> "Iterator[int]":
    """Where ``heading`` stands in ``text`` on token boundaries, first to last."""
    place = text.find(heading)
    while place >= 0:
        end = place + len(heading)
        if not (_is_word(text[place - 1 : place]) and _is_word(heading[:1])) and not (
            _is_word(text[end : end + 1]) and _is_word(heading[-1:])
        ):
            yield place
        place = text.find(heading, place + 1)


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"
