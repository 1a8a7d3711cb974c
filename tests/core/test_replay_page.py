"""The pages in a real browser: replay, contract report, routing evaluation; phone and desktop, light and dark.

Skipped where there is no chromium. The first tests need none.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, browser
from contract_helpers import REPORT
from replay_support import box, policy, run, transcript, write_json

from gstack.contracts.report import Report as ContractReport
from gstack.contracts.report import Row, render_html
from gstack.gate.simulate import Change, Simulation
from gstack.gate.simulate_page import simulate_page
from gstack.replay.followed import what_became
from gstack.replay.followed_page import followed_page
from gstack.replay.history import open_history
from gstack.replay.page import replay_page
from gstack.report_page import day, moment, number, rate, render, write_page
from gstack.report_page.charts import bars_over_time
from gstack.report_page.tables import Cell, Table, share_cell
from gstack.routing.evaluate import evaluate, read_cases, write_html
from gstack.routing.explain import routing_setup

NOW = 1_796_043_944.0
#: Every page that gstack writes.
PAGES = ("replay", "contracts", "evaluation", "hints", "simulation")
EXTERNAL = re.compile(r"""src\s*=|href\s*=\s*(?!"#)|url\(|@import|https?://""")


def replayed(folder: Path) -> str:
    """A page with something in every part: 40 sessions over 40 days, a ban, a foreign name that tries to be markup."""
    env = box(folder)
    for place in range(40):
        made = transcript(folder, f"s{place:02d}").prompt("fix this bug <b>now</b>")
        if place % 3:
            made.load("investigate").edit().say("Fixed." if place % 2 else REPORT)
        agent = {"description": "d", "prompt": "p", "subagent_type": "<script>alert(1)</script>"}
        made.tool("Agent", agent, "ok").typed("ship").prompt("thanks").say("ok")
        for record in made.records:
            record["timestamp"] = f"{day(NOW - 86400 * place)}T{record['timestamp'][11:]}"
        made.write()
    other = write_json(folder / "other.json", policy())
    report = run(env, bundle=str(other), show_prompts=True)
    return replay_page(report, now=NOW)


def contract_report() -> str:
    rows = []
    for place in range(30):
        record = {"session": f"8901bdc4-3070-4b80-9cb4-{place:012x}", "host": "claude-code"}
        found = {
            "skill": ("investigate", "review")[place % 2],
            "load_id": f"l{place}",
            "outcome": ("met", "miss", "blocked")[place % 3],
            "items": {"debug-report": "missing" if place % 3 else "met"},
            "updated_at": NOW - 86400 * (place % 7),
        }
        rows.append(Row(record, found))
    return render_html(ContractReport(rows, [("/x.json", "the record is corrupt")]), now=NOW)


def evaluation(folder: Path) -> str:
    cases = folder / "cases.jsonl"
    cases.write_text(
        '{"id": "a", "prompt": "fix this bug", "expected": "investigate"}\n'
        '{"id": "b", "prompt": "write a poem", "expected": "qa"}\n'
    )
    result = evaluate(routing_setup(box(folder), str(folder)), read_cases(str(cases)))
    page = folder / "eval.html"
    write_html(result, str(page))
    return page.read_text("utf-8")


def hints(folder: Path) -> str:
    env = box(folder)
    log = folder / "state" / "hooks" / "skill-route.log"
    log.parent.mkdir(parents=True)
    lines = []
    for place in range(40):
        made = transcript(folder, f"s{place:02d}").prompt("fix this bug")
        if place % 3:
            made.load("investigate" if place % 2 else "verify")
        made.say("ok").write()
        stamp = made.records[0]["timestamp"]
        lines.append(f"{stamp} s{place:02d} shadow scorer=vendor.x skill=qa score=0.90")
        reason = "no-route reason=observe " if place % 5 == 0 else "routed "
        lines.append(f"{stamp} s{place:02d} {reason}skill=investigate score=1.00")
        lines.append(f"{stamp} gone no-route reason=below-threshold")
    log.write_text("\n".join([*lines, ""]))
    with open_history(env, processes=1) as history:
        return followed_page(what_became(history), now=NOW)


def simulation() -> str:
    changes = [
        Change(f"acme/skill-{place}", "skill", "allow", ("warn", "block")[place % 2], "policy:p", "Why not.", place + 1)
        for place in range(12)
    ]
    found = Simulation(90, {"allow": 90}, {"allow": 12, "warn": 36, "block": 42}, changes)
    return simulate_page(found, policy(), since=NOW - 86400, now=NOW)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {
        "replay": replayed(tmp_path_factory.mktemp("replay")),
        "contracts": contract_report(),
        "evaluation": evaluation(tmp_path_factory.mktemp("evaluation")),
        "hints": hints(tmp_path_factory.mktemp("hints")),
        "simulation": simulation(),
    }
    found = {}
    for name, text in made.items():
        found[name] = folder / f"{name}.html"
        write_page(str(found[name]), text)
    return found


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as found:
        yield found


# --------------------------------------------------------------------------------------- without a browser


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_one_file_that_fetches_nothing(name: str, pages: dict[str, Path]) -> None:
    text = pages[name].read_text("utf-8")
    assert not EXTERNAL.search(text)
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text
    assert "<script>alert" not in text
    assert "<b>now</b>" not in text


def test_an_empty_replay_is_a_page_too(tmp_path: Path) -> None:
    text = replay_page(run(box(tmp_path)), now=NOW)
    assert "None of 0 prompts would have been routed." in text
    assert "No session loaded a skill that has a contract now (4 of the installed skills have one)." in text
    assert "No policy bundle is in force on this machine, so no use is warned or blocked." in text


def test_bars_have_no_gaps_and_join_days_where_there_are_many() -> None:
    chart = bars_over_time({10: Counter(a=2, b=1), 12: Counter(a=1)})
    assert [(bar.label, bar.parts) for bar in chart.bars] == [
        ("1970-01-11", [2, 1]), ("1970-01-12", [0, 0]), ("1970-01-13", [1, 0]),
    ]  # fmt: skip
    assert [bar.told for bar in chart.bars] == ["1970-01-11: a 2, b 1", "1970-01-12: 0", "1970-01-13: a 1"]
    assert chart.top == 4
    long = bars_over_time({0: Counter(a=1), 1000: Counter(a=1)})
    assert len(long.bars) <= 60
    assert sum(bar.total for bar in long.bars) == 2
    assert "(21 days)" in long.bars[0].told
    many = bars_over_time({0: Counter({f"n{place}": 20 - place for place in range(12)})})
    assert many.series == [*(f"n{place}" for place in range(7)), "others"]
    assert many.bars[0].parts[-1] == sum(20 - place for place in range(7, 12))
    assert bars_over_time({}).bars == []


def test_bars_in_a_given_order_with_tones_and_what_else_there_was() -> None:
    days = {0: Counter(good=1), 1: Counter(bad=3)}
    chart = bars_over_time(days, order=[("bad", "bad"), ("good", "s0")], also={0: 5, 1: 4}, what="runs")
    assert chart.key == [("bad", "var(--bad)"), ("good", "var(--s0)")]
    assert [bar.told for bar in chart.bars] == ["1970-01-01: good 1; 5 runs", "1970-01-02: bad 3; 4 runs"]


def test_tables_say_what_cells_are_sorted_by() -> None:
    table = Table("t", ["name", "#count", "~id"], [("a", 1234, None), (Cell("x", 3.0, tone="bad"), 2.5, "y")])
    assert [(column.label, column.numeric, column.long) for column in table.columns] == [
        ("name", False, False), ("count", True, False), ("id", False, True),
    ]  # fmt: skip
    assert [(cell.text, cell.value) for row in table.rows for cell in row] == [
        ("a", None), ("1,234", 1234.0), ("", None), ("x", 3.0), ("2.5", 2.5), ("y", None),
    ]  # fmt: skip
    assert not table.filtered
    assert Table("t", ["name"], [("a",)] * 9).filtered
    assert not Table("t", ["#n"], [(1,)] * 9).filtered
    assert (share_cell(1, 4).text, share_cell(1, 4).share, share_cell(0, 0).share) == ("1 of 4", 0.25, 0.0)


def test_filters() -> None:
    assert (day(NOW), moment(NOW)) == ("2026-11-30", "2026-11-30 13:05")
    assert (number(1234567), rate(None), rate(0.666)) == ("1,234,567", "\u2013", "0.67")


def test_a_template_that_asks_for_something_unknown_fails() -> None:
    with pytest.raises(Exception, match="undefined"):
        render("gstack.replay", "replay.html.j2")


# ------------------------------------------------------------------------------------------ in the browser

#: The lowest contrast of any text with its background (WCAG 2).
CONTRAST = """
(function () {
  function parse(text) { return text.match(/[\\d.]+/g).map(Number); }
  function light(c) { return [0, 1, 2].map(function (i) { var v = c[i] / 255;
    return v <= .03928 ? v / 12.92 : Math.pow((v + .055) / 1.055, 2.4); })
    .reduce(function (sum, v, i) { return sum + v * [.2126, .7152, .0722][i]; }, 0); }
  var worst = [99, ""], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    var node = walker.currentNode, element = node.parentElement;
    if (!node.textContent.trim() || !element.getClientRects().length || element.closest("svg, script")) continue;
    var front = parse(getComputedStyle(element).color), back = null;
    for (var up = element; up && !back; up = up.parentElement) {
      var c = parse(getComputedStyle(up).backgroundColor);
      if (c.length < 4 || c[3] > 0) back = c;
    }
    var a = light(front), b = light(back), ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < worst[0]) worst = [ratio, element.className + ": " + node.textContent.trim().slice(0, 40)];
  }
  return worst;
})()
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read(
    name: str, width: int, dark: bool, pages: dict[str, Path], chromium: Browser, tmp_path: Path
) -> None:
    chromium.open(pages[name], width=width, dark=dark)
    assert chromium.errors == []
    assert chromium.requests == [pages[name].as_uri()]
    assert chromium.run("document.documentElement.scrollWidth") <= width
    background = chromium.run("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")
    ratio, where = chromium.run(CONTRAST)
    assert ratio >= 4.5, where
    # charts have two drawings, of which the one that fits shows, with letters that can be read
    shown = chromium.run(
        "Array.from(document.querySelectorAll('svg.chart')).filter(c => c.getClientRects().length)"
        ".map(c => [c.classList.contains('narrow'), c.querySelector('text').getBoundingClientRect().height])"
    )
    assert bool(shown) == (name != "simulation")
    assert {narrow for narrow, _ in shown} <= {width == 390}
    assert min([height for _, height in shown], default=99) > 10
    chromium.shot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 10_000


def column(chromium: Browser, table: str, place: int) -> list[str]:
    cells = f"document.querySelectorAll('#{table} tbody tr:not([hidden]) td:nth-child({place}) > div')"
    return chromium.run(f"Array.from({cells}).map(c => c.firstChild ? c.firstChild.textContent : '')")


def test_tables_sort_by_a_click_on_their_heads(pages: dict[str, Path], chromium: Browser) -> None:
    chromium.open(pages["replay"])
    before = column(chromium, "runs", 1)
    assert before == sorted(before, reverse=True)
    click = "document.querySelectorAll('#runs th button')[0].click()"
    chromium.run(click)
    assert column(chromium, "runs", 1) == sorted(before)
    assert chromium.run("document.querySelector('#runs th').getAttribute('aria-sort')") == "ascending"
    chromium.run(click)
    assert column(chromium, "runs", 1) == before
    # numbers by their size, the largest first
    chromium.run("document.querySelectorAll('#changes th button')[5].click()")
    uses = [int(text) for text in column(chromium, "changes", 6)]
    assert uses == sorted(uses, reverse=True)
    assert chromium.run("document.querySelectorAll('#changes th[aria-sort]').length") == 1


def test_tables_filter_by_words(pages: dict[str, Path], chromium: Browser) -> None:
    chromium.open(pages["replay"])
    everything = len(column(chromium, "runs", 1))
    box_ = "document.querySelector('[data-filter=runs]')"
    chromium.run(f"{box_}.value = 'REPRO held s01'; {box_}.dispatchEvent(new Event('input'))")
    assert column(chromium, "runs", 5) == []
    chromium.run(f"{box_}.value = 'repro-AFTER s01'; {box_}.dispatchEvent(new Event('input'))")
    assert column(chromium, "runs", 5) == ["s01"]
    assert chromium.run(f"{box_}.parentNode.querySelector('output').textContent") == " 1 shown"
    chromium.run(f"{box_}.value = ''; {box_}.dispatchEvent(new Event('input'))")
    assert len(column(chromium, "runs", 1)) == everything


def test_a_phone_shows_rows_as_blocks_with_their_labels(pages: dict[str, Path], chromium: Browser) -> None:
    chromium.open(pages["replay"], width=390)
    assert chromium.run("getComputedStyle(document.querySelector('#routes tbody tr')).display") == "block"
    label = "getComputedStyle(document.querySelector('#routes tbody td'), '::before').content"
    assert chromium.run(label) == '"when (UTC)"'
    assert chromium.run("document.querySelector('#routes').scrollWidth") <= 390


def test_long_lists_are_folded(pages: dict[str, Path], chromium: Browser) -> None:
    chromium.open(pages["replay"])
    opened = chromium.run(
        "Array.from(document.querySelectorAll('details')).map(d => [d.open, d.querySelectorAll('tbody tr').length])"
    )
    assert {is_open for is_open, rows in opened if rows > 30} <= {False}
    assert opened
