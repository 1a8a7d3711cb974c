"""Registration in Claude Code's settings: what is written, and that everybody else's bytes stay."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from json_documents import ELEMENT_MARK, MEMBER_MARK, array, keys, obj, text_of, values

from gstack.errors import SettingsError
from gstack.jsontext import parse
from gstack_hosts.claude_code import ClaudeCode, settings
from gstack_hosts.claude_code.hook_entries import differs, edit, find, is_ours, pair

LAUNCHER = "/home/u/.gstack/bin/gstack-hook"
FEATURES = ("skill_routing", "skill_contracts", "gate")
ALL = settings.registrations(FEATURES)
EVENTS = ("UserPromptSubmit", "Stop", "PreToolUse", "PreToolUse", "UserPromptExpansion")


def install(text, wanted=ALL, launcher=LAUNCHER):
    return edit(text, wanted, launcher, "settings.json").text


def remove(text):
    return edit(text, (), "", "settings.json").text


# --------------------------------------------------------------------------------------------- what is written


def test_the_entries():
    assert json.loads(install(None)) == {
        "hooks": {
            "UserPromptSubmit": [
                {
                    "hooks": [
                        {
                            "type": "command",
                            "command": LAUNCHER,
                            "args": ["claude-code", "UserPromptSubmit"],
                            "timeout": 10,
                        }
                    ]
                }
            ],
            "Stop": [
                {
                    "hooks": [
                        {
                            "type": "command",
                            "command": LAUNCHER,
                            "args": ["claude-code", "Stop"],
                            "timeout": 30,
                        }
                    ]
                }
            ],
            "PreToolUse": [
                {
                    "matcher": "Skill|Agent|Task",
                    "hooks": [
                        {
                            "type": "command",
                            "command": LAUNCHER,
                            "args": ["claude-code", "PreToolUse"],
                            "timeout": 10,
                        }
                    ],
                },
                {
                    "matcher": "Read",
                    "hooks": [
                        {
                            "type": "command",
                            "command": LAUNCHER,
                            "args": ["claude-code", "PreToolUse"],
                            "timeout": 10,
                            "if": "Read(**/SKILL.md)",
                        }
                    ],
                },
            ],
            "UserPromptExpansion": [
                {
                    "hooks": [
                        {
                            "type": "command",
                            "command": LAUNCHER,
                            "args": ["claude-code", "UserPromptExpansion"],
                            "timeout": 10,
                        }
                    ]
                }
            ],
        }
    }


@pytest.mark.parametrize(
    ("features", "events"),
    [
        ((), []),
        (("skill_routing",), ["UserPromptSubmit"]),
        (("skill_contracts",), ["Stop"]),
        (("gate",), ["PreToolUse", "PreToolUse", "UserPromptExpansion"]),
        (FEATURES, list(EVENTS)),
        (("a feature that this host doesn't know",), []),
    ],
)
def test_the_events_of_features(features, events):
    assert [want.event for want in settings.registrations(features)] == events
    assert all(want.feature in features for want in settings.registrations(features))


def test_every_registered_event_is_one_that_the_adapter_decodes():
    assert {want.event for want in ALL} < set(ClaudeCode.events)


def test_the_file_and_its_project_form(home):
    env = {"HOME": str(home)}
    assert settings.settings_path(env) == f"{home}/.claude/settings.json"
    assert settings.settings_path({**env, "CLAUDE_CONFIG_DIR": "/c"}) == "/c/settings.json"
    assert settings.settings_path({**env, "CLAUDE_CONFIG_DIR": ""}) == f"{home}/.claude/settings.json"
    assert settings.settings_path({"CLAUDE_CONFIG_DIR": "/c"}, "/p") == "/p/.claude/settings.json"


# ------------------------------------------------------------------------------------ install, install, remove


def test_real_files_come_back_byte_for_byte_or_are_refused(shared, tmp_path):
    """Every settings file that was found in public repositories."""
    counts = {"restored": 0, "refused": 0}
    for origin in sorted((shared / "corpus" / "settings").iterdir()):
        folder = tmp_path / origin.name
        folder.mkdir()
        path, before = folder / "settings.json", origin.read_bytes()
        path.write_bytes(before)
        env = {"CLAUDE_CONFIG_DIR": str(folder)}
        try:
            settings.apply_settings(settings.plan_settings(ALL, LAUNCHER, env))
        except SettingsError:
            assert path.read_bytes() == before
            assert os.listdir(folder) == ["settings.json"]
            counts["refused"] += 1
            continue
        again = settings.plan_settings(ALL, LAUNCHER, env)
        assert again.before == again.after
        assert len(find(parse(path.read_text("utf-8")))) == len(ALL)
        settings.apply_settings(settings.plan_settings((), LAUNCHER, env))
        assert path.read_bytes() == before, origin.name
        counts["restored"] += 1
    assert counts["restored"] > 50
    assert counts["refused"] < 8


def test_no_file_before_means_no_file_after(tmp_path):
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "conf")}
    settings.apply_settings(settings.plan_settings(ALL, LAUNCHER, env))
    assert settings.plan_settings((), LAUNCHER, env).after is None
    settings.apply_settings(settings.plan_settings((), LAUNCHER, env))
    assert not (tmp_path / "conf" / "settings.json").exists()
    settings.apply_settings(settings.plan_settings((), LAUNCHER, env))
    assert not (tmp_path / "conf" / "settings.json").exists()


def test_a_new_file_to_which_something_was_added_stays(tmp_path):
    path = tmp_path / "settings.json"
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    settings.apply_settings(settings.plan_settings(ALL, LAUNCHER, env))
    path.write_text(json.dumps({"model": "opus", **json.loads(path.read_text())}, indent=2))
    settings.apply_settings(settings.plan_settings((), LAUNCHER, env))
    assert path.read_text() == '{\n  "model": "opus"\n}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "  \n\n",
        "\ufeff",
        "\ufeff\r\n",
        "{}",
        "{}\n",
        "{ }",
        "{\n}\n",
        "\ufeff{}\r\n",
        '{"hooks":{}}',
        '{"hooks": {\n  }\n}\n',
        '{\n  "hooks": {}\n}\n',
        '{\n  "hooks": {\n    "Stop": []\n  }\n}\n',
        '{\n  "hooks": {\n    "Stop": [ ],\n    "PreToolUse": [\n    ]\n  }\n}\n',
        '{\n  "hooks": {\n    "Stop": [{}, {"hooks": []}, null, "x", {"hooks": {}}, {"hooks": [[], 5]}]\n  }\n}\n',
        '{"hooks": {}, "hooks": {"Stop": []}}',
        '{"hooks": [], "hooks": {"Stop": 5, "Stop": []}}',
        '{\r\n\t"a": 1\r\n}',
        '{\n"a": 1,\n"hooks": {\n"Stop": []\n}\n}',
        "{\r}",
    ],
)
@pytest.mark.parametrize("features", [FEATURES, ("skill_contracts",), ("skill_routing",)])
def test_empty_containers_come_back_as_they_were(text, features):
    wanted = settings.registrations(features)
    once = install(text, wanted)
    assert install(once, wanted) == once
    assert len(find(parse(once))) == len(wanted)
    assert remove(once) == text
    assert remove(install(install(once), wanted)) == text


# ----------------------------------------------------------------------------------------- random documents

FOREIGN_HOOKS = st.sampled_from(
    [
        obj(('"type"', '"command"'), ('"command"', '"echo hi"')),
        obj(('"type"', '"command"'), ('"command"', '"/usr/bin/gstack-hook"'), ('"args"', array('"x"'))),
        obj(('"type"', '"banana"'), ('"timeout"', '"5"')),
        obj(),
        "null",
        '"x"',
        ELEMENT_MARK,
    ]
)
FOREIGN_ENTRIES = st.one_of(
    st.sampled_from([obj(), "null", ELEMENT_MARK, obj(('"hooks"', obj())), obj(('"matcher"', MEMBER_MARK))]),
    st.builds(
        lambda matcher, hooks: obj(*matcher, ('"hooks"', array(*hooks))),
        st.sampled_from([[], [('"matcher"', '"Bash"')], [('"matcher"', "5")]]),
        st.lists(FOREIGN_HOOKS, max_size=3),
    ),
)


def ours(event, launcher, matcher=None, timeout="10", extra=()):
    """One of gstack's hooks as some version, or a person's edit, may have left it."""
    args = array('"claude-code"', f'"{event}"')
    return obj(
        ('"type"', '"command"'), ('"command"', f'"{launcher}"'), ('"args"', args), ('"timeout"', timeout), *extra
    )


OUR_HOOKS = st.builds(
    ours,
    st.sampled_from([*EVENTS, "SubagentStop"]),
    st.sampled_from([LAUNCHER, "/old/place/bin/gstack-hook", r"C:\\g\\bin\\gstack-hook.exe"]),
    timeout=st.sampled_from(["10", "30", '"x"']),
    extra=st.sampled_from([(), (('"if"', '"Read(**/SKILL.md)"'),), (('"async"', "true"), ('"note"', "1"))]),
)


def documents(entries):
    """Settings with hooks of every kind, right and wrong ones, some keys twice."""
    events = keys("Stop", "UserPromptSubmit", "PreToolUse", "PostToolUse", "constructor", "SubagentStop")
    hooks = st.lists(
        st.tuples(events, st.lists(entries, max_size=3).map(lambda found: ("array", found))), max_size=3
    ).map(lambda found: ("object", found))
    members = st.one_of(
        st.tuples(keys("hooks"), hooks),
        st.tuples(keys("model", "env", "permissions"), st.one_of(values(), st.just(MEMBER_MARK))),
    )
    return text_of(st.lists(members, max_size=4).map(lambda found: ("object", found)))


FOREIGN = documents(FOREIGN_ENTRIES)
MIXED = documents(
    st.one_of(
        FOREIGN_ENTRIES,
        st.builds(
            lambda matcher, hooks: obj(*matcher, ('"hooks"', array(*hooks))),
            st.sampled_from([[], [('"matcher"', '"Skill"')], [('"matcher"', '"Read"')], [('"matcher"', '""')]]),
            st.lists(st.one_of(FOREIGN_HOOKS, OUR_HOOKS, OUR_HOOKS), max_size=3),
        ),
    )
)
WANTED = st.sets(st.sampled_from(FEATURES)).map(settings.registrations)


@given(FOREIGN, WANTED, WANTED)
def test_any_document_comes_back_byte_for_byte(text, first, second):
    once = install(text, first)
    assert install(once, first) == once
    assert remove(once) == text
    assert remove(install(once, second)) == text


def foreign(value):
    """The document without gstack's hooks, and without what holds nothing but those."""
    if not isinstance(value, dict) or not isinstance(value.get("hooks"), dict):
        return value
    events = {}
    for event, entries in value["hooks"].items():
        kept = [rest for rest in (_without(event, entry) for entry in entries) if rest is not None]
        if kept:
            events[event] = kept
    rest = {key: member for key, member in value.items() if key != "hooks"}
    return {**rest, "hooks": events} if events else rest


def _without(event, entry):
    if not isinstance(entry, dict) or not isinstance(entry.get("hooks"), list):
        return entry
    items = parse(json.dumps(entry)).get("hooks").children
    kept = [item.node.plain() for item in items if not is_ours(event, item.node)]
    if len(kept) == len(items):
        return entry
    return {**entry, "hooks": kept} if kept else None


@given(MIXED, WANTED)
def test_any_state_becomes_exactly_what_is_wanted(text, wanted):
    """Old launchers, doubles, hand edits and shared entries: ours are right and single, the others as they were."""
    once = install(text, wanted)
    assert install(once, wanted) == once
    before, after = json.loads(text.lstrip("\ufeff")), {}
    if once is not None and parse(once) is not None:
        after = json.loads(once.lstrip("\ufeff"))
        found = find(parse(once))
        pairs = pair(wanted, found)
        assert len(found) == len(pairs) == len(wanted)
        assert all(have.counts for have in found)
        assert not [want for place, want in enumerate(wanted) if differs(want, pairs[place], LAUNCHER)]
    else:
        assert not wanted
    assert foreign(after) == foreign(before)
    rest = remove(once)
    assert rest is None or parse(rest) is None or not find(parse(rest))


OURS = json.dumps(json.loads(install(None, settings.registrations(["skill_contracts"])))["hooks"]["Stop"][0])


def test_a_key_that_stands_twice_counts_where_it_stands_last():
    stop = settings.registrations(["skill_contracts"])
    text = f'{{"hooks": {{"Stop": [{OURS}]}}, "hooks": {{"Stop": [], "Stop": [], "a": []}}}}'
    once = install(text, stop)
    assert json.loads(once)["hooks"]["Stop"] == [json.loads(OURS)]
    assert once.count("gstack-hook") == 1
    assert remove(once) == '{"hooks": {"Stop": []}, "hooks": {"Stop": [], "Stop": [], "a": []}}'


def test_an_entry_with_two_lists_of_hooks_keeps_the_other_one():
    items = OURS[len('{"hooks": ') : -1]
    text = f'{{"hooks": {{"Stop": [{{"hooks": {items}, "hooks": [{{"type": "prompt"}}]}}]}}}}'
    assert '{"type": "prompt"}' in remove(text)
    assert "gstack" not in remove(text)


def somebody_edits(text):
    """A person changes a value, adds a member and an element, and white space."""
    text = text.replace(ELEMENT_MARK, '\n {"mine" : 1.0},  {"hooks": []} ')
    return text.replace(MEMBER_MARK, '[ 1,\n2] , "added" : "x"')


@given(FOREIGN, WANTED)
@example('{"hooks": {"Stop": [\n"@element@"\n]}}', settings.registrations(["skill_contracts"]))
def test_what_somebody_wrote_in_between_stays_and_only_our_text_goes(text, wanted):
    assert remove(somebody_edits(install(text, wanted))) == somebody_edits(text)


@given(FOREIGN, WANTED, st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_a_host_that_rewrites_the_file_does_not_hide_our_entries(text, wanted, indent, sort):
    once = install(text, wanted)
    loaded = json.loads(once.lstrip("\ufeff"))
    again = json.dumps(loaded, indent=indent, sort_keys=sort)
    assert edit(again, wanted, LAUNCHER, "x").text == again
    rest = remove(again)
    parsed = {} if rest is None or parse(rest) is None else json.loads(rest)
    assert foreign(parsed) == foreign(json.loads(text.lstrip("\ufeff")))


@given(FOREIGN, WANTED, st.data())
def test_somebody_takes_other_entries_out_in_between(text, wanted, data):
    loaded = json.loads(install(text, wanted).lstrip("\ufeff"))
    hooks = loaded.get("hooks")
    for event in list(hooks) if isinstance(hooks, dict) else ():
        if data.draw(st.booleans()):
            hooks[event] = [entry for entry in hooks[event] if _without(event, entry) is None]
    rest = remove(json.dumps(loaded, indent=2))
    parsed = {} if rest is None or parse(rest) is None else json.loads(rest)
    assert foreign(parsed) == foreign(loaded)


# -------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "the file isn't a JSON object"),
        ('"x"', "the file isn't a JSON object"),
        ('{"hooks": []}', '"hooks" isn\'t an object of events'),
        ('{"hooks": null}', '"hooks" isn\'t an object of events'),
        ('{"hooks": {}, "hooks": 5}', '"hooks" isn\'t an object of events'),
        ('{"hooks": {"Stop": {}}}', '"hooks.Stop" isn\'t a list'),
        ('{"hooks": {"Stop": [], "Stop": null}}', '"hooks.Stop" isn\'t a list'),
        ('{"a": 1,}', "isn't strict JSON: line 1, column 8"),
        ('{"a": 1} // mine', "isn't strict JSON: line 1, column 10: a comment"),
    ],
)
def test_wrong_shapes_are_refused_untouched(tmp_path, text, message):
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        settings.plan_settings(ALL, LAUNCHER, {"CLAUDE_CONFIG_DIR": str(tmp_path)})
    assert message in caught.value.message
    assert str(path) in caught.value.message
    assert path.read_text() == text
    assert os.listdir(tmp_path) == ["settings.json"]


def test_a_wrong_shape_elsewhere_is_left_as_it_is():
    text = '{"hooks": {"Notification": {"x": 1}, "Stop": []}, "permissions": 5}'
    assert remove(install(text, settings.registrations(["skill_contracts"]))) == text


@pytest.mark.parametrize(
    "launcher", ["gstack-hook", "bin/gstack-hook", "/opt/gstack-hook", "/usr/bin/python3", "/a/bin/gstack", ""]
)
def test_a_launcher_that_would_not_be_known_again_is_refused(tmp_path, launcher):
    with pytest.raises(SettingsError, match="bin/gstack-hook"):
        settings.plan_settings(ALL, launcher, {"CLAUDE_CONFIG_DIR": str(tmp_path)})


# ------------------------------------------------------------------------------------------------ the change


def test_a_change_says_what_it_does(tmp_path):
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    path = tmp_path / "settings.json"
    first = settings.apply_settings(settings.plan_settings(ALL[:2], "/old/bin/gstack-hook", env))
    assert list(first.added) == ALL[:2]
    assert (first.changed, first.removed) == ((), ())
    assert first.path == str(path)
    second = settings.plan_settings(ALL[1:3], LAUNCHER, env)
    assert list(second.added) == ALL[2:3]
    assert second.changed == ("Stop: /old/bin/gstack-hook claude-code Stop",)
    assert second.removed == ("UserPromptSubmit: /old/bin/gstack-hook claude-code UserPromptSubmit",)


def test_the_lines_of_a_change_are_printable():
    text = install("{}").replace("/home/u/", "/home/\\n\\u001b[31m/")
    [line] = edit(text, ALL[1:], LAUNCHER, "x").removed
    assert line.isprintable()


@pytest.mark.parametrize("features", [("skill_routing",), ("gate",)])
def test_a_feature_that_is_switched_off_leaves_the_others(features):
    wanted = settings.registrations(features)
    assert install(install("{}\n"), wanted) == install("{}\n", wanted)


def test_the_adapter_offers_all_of_it(tmp_path):
    host, env = ClaudeCode(), {"CLAUDE_CONFIG_DIR": str(tmp_path), "PATH": str(tmp_path)}
    wanted = host.registrations(("gate",))
    change = host.plan_settings(wanted, LAUNCHER, env, None)
    host.apply_settings(change)
    assert Path(host.settings_path(env, None)).read_bytes() == change.after
    assert host.diagnose(wanted, LAUNCHER, env, None)


# --------------------------------------------------------------------------------------------- several at once


def test_two_setups_in_threads_both_survive(tmp_path):
    """They register different features: whoever comes second must not undo the first one's file."""
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    path = tmp_path / "settings.json"
    path.write_text('{\n  "model": "opus"\n}\n')
    plans = [settings.plan_settings(ALL, f"/{name}/bin/gstack-hook", env) for name in "ab"]
    threads = [threading.Thread(target=settings.apply_settings, args=(change,)) for change in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = path.read_text()
    assert len(find(parse(text))) == len(ALL)
    assert len({have.command for have in find(parse(text))}) == 1
    assert remove(text) == '{\n  "model": "opus"\n}\n'


def test_two_setups_in_processes_both_survive(tmp_path):
    code = (
        "import os, sys\n"
        "from gstack_hosts.claude_code import settings as s\n"
        "s.apply_settings(s.plan_settings(s.registrations(['gate', 'skill_routing']), sys.argv[1], os.environ))\n"
    )
    env = {**os.environ, "CLAUDE_CONFIG_DIR": str(tmp_path)}
    setups = [subprocess.Popen([sys.executable, "-c", code, LAUNCHER], env=env) for _ in range(3)]
    assert [setup.wait() for setup in setups] == [0] * 3
    found = find(parse((tmp_path / "settings.json").read_text()))
    assert [have.event for have in found] == ["UserPromptSubmit", "PreToolUse", "PreToolUse", "UserPromptExpansion"]
