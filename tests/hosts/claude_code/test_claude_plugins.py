"""The skills of Claude Code's plugins.

Each expectation was measured on Claude Code 2.1.332: the same files, listed by the real host.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from claude_box import Box
from hypothesis import given
from hypothesis import strategies as st

from gstack_hosts.claude_code import plugins
from gstack_hosts.claude_code.skills import skill_places


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_a_plugin_that_is_on(box: Box) -> None:
    box.market({"name": "acme", "source": "./acme"})
    folder = box.cached("acme")
    box.skill(folder / "skills" / "dirname", "other-name")
    box.skill(folder / "skills" / "unnamed")
    box.skill(folder / "skills" / "group" / "nested", "nested")
    box.install(acme=folder)
    box.settings(acme=True)
    found = box.load()
    assert [(skill.name, skill.label) for skill in found.skills] == [
        ("acme:dirname", "other-name"), ("acme:s-acme", None), ("acme:unnamed", None),
    ]  # fmt: skip
    assert {skill.scope for skill in found.skills} == {"plugin"}
    assert f"{folder}/.claude-plugin/plugin.json" in found.depends_on


@pytest.mark.parametrize("enabled", [None, {}, {"acme@gh": False}, {"acme@gh": "yes"}, {"acme@gh": ["1.0.0"]}, []])
def test_a_plugin_that_is_not_on(box: Box, enabled: Any) -> None:
    box.install(acme=box.cached("acme"))
    if enabled is not None:
        box.write(box.config / "settings.json", {"enabledPlugins": enabled})
    assert box.names() == []


def test_settings_of_all_scopes(box: Box) -> None:
    """Project beats user, local beats project; the project's file counts only in the start folder."""
    for name in "abcd":
        box.cached(name)
    box.install(**{name: box.config / "plugins/cache/gh" / name / "1.0.0" for name in "abcd"})
    (box.work / ".git").mkdir()
    (box.work / "sub").mkdir()
    box.settings(a=True, b=False)
    box.write(box.work / ".claude" / "settings.json", {"enabledPlugins": {"b@gh": True, "c@gh": True}})
    box.write(box.work / ".claude" / "settings.local.json", {"enabledPlugins": {"a@gh": False, "d@gh": True}})
    assert box.names() == ["b:s-b", "c:s-c", "d:s-d"]
    assert box.names(box.work / "sub") == ["d:s-d"]


def test_managed_settings_win(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    path = box.write(box.base / "managed.json", {"enabledPlugins": {"acme@gh": False}})
    box.install(acme=box.cached("acme"))
    box.settings(acme=True)
    assert box.names() == ["acme:s-acme"]
    monkeypatch.setattr(plugins, "_managed", lambda: str(path))
    assert box.names() == []


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"enabledPlugins": 7}', '{"a": 1,}', "\ufeff"])
def test_settings_that_say_nothing(box: Box, text: str) -> None:
    box.install(acme=box.cached("acme"))
    box.write(box.config / "settings.json", text)
    assert box.names() == []


def test_installations_of_other_projects(box: Box) -> None:
    for name in "abcde":
        box.cached(name)
    cache = box.config / "plugins/cache/gh"
    box.install(
        a=("project", cache / "a/1.0.0", box.work),
        b=("project", cache / "b/1.0.0", box.base / "elsewhere"),
        c=("local", cache / "c/1.0.0", box.work),
        d=("local", cache / "d/1.0.0", None),
        e=("project", cache / "e/1.0.0", str(box.work)[:-1]),
    )
    box.settings(a=True, b=True, c=True, d=True, e=True)
    (box.work / "sub").mkdir()
    assert box.names() == ["a:s-a", "c:s-c"]
    assert box.names(box.work / "sub") == ["a:s-a", "c:s-c"]


def test_the_first_installation_that_applies(box: Box) -> None:
    old, new = box.cached("acme"), box.cached("acme", version="2.0.0")
    box.skill(new / "skills" / "newer")
    box.settings(acme=True)
    box.install(acme=[box.entry(("project", new, box.base / "other")), box.entry(old)])
    assert box.names() == ["acme:s-acme"]
    box.install(acme=[box.entry(("project", new, box.work)), box.entry(old)])
    assert box.names() == ["acme:newer", "acme:s-acme"]


def test_the_first_version_of_the_file(box: Box) -> None:
    folder = box.cached("acme")
    data = {"version": 1, "plugins": {"acme@gh": {"version": "1.0.0", "installPath": str(folder), "isLocal": False}}}
    box.write(box.config / "plugins" / "installed_plugins.json", data)
    box.settings(acme=True)
    assert box.names() == ["acme:s-acme"]


SKILL_PATHS = [
    (["./nope"], ["a:s-a"]),
    (["./skills"], ["a:s-a"]),
    (["./skills/s-a"], ["a:s-a"]),
    ("./skills/", ["a:s-a"]),
    (["./other"], ["a:s-a", "a:one"]),
    ("./other", ["a:s-a", "a:one"]),
    (["./skills", "./other/one"], ["a:s-a", "a:one-l"]),
    (["./other/.."], ["a:s-a"]),
    (["./"], ["a:s-a"]),
    ([], ["a:s-a"]),
    (["../../b/1.0.0/skills"], []),
    (["skills/"], []),
    ("other", []),
    (["/etc"], []),
    (7, []),
    ([7], []),
    ({"x": 1}, []),
]


@pytest.mark.parametrize(("paths", "want"), SKILL_PATHS, ids=[json.dumps(paths) for paths, _ in SKILL_PATHS])
def test_skill_paths_of_a_manifest(box: Box, paths: Any, want: "list[str]") -> None:
    folder = box.cached("a")
    box.skill(folder / "other" / "one", "one-l")
    box.write(folder / ".claude-plugin" / "plugin.json", {"name": "a", "skills": paths})
    box.cached("b")
    box.install(a=folder)
    box.settings(a=True)
    assert box.names() == want


@pytest.mark.parametrize(
    ("manifest", "want"),
    [
        ('{"name": "zed"}', ["zed:s-a"]),
        (None, ["a:s-a"]),
        ('{"name": "a", // c\n}', []),
        ("[]", []),
        ('{"version": "1"}', []),
        ('{"name": 7}', []),
        ("", []),
    ],
)
def test_manifests(box: Box, manifest: "str | None", want: "list[str]") -> None:
    folder = box.cached("a")
    path = box.write(folder / ".claude-plugin" / "plugin.json", manifest or "")
    if manifest is None:
        path.unlink()
    box.install(a=folder)
    box.settings(a=True)
    assert box.names() == want


def test_a_plugin_that_is_one_skill(box: Box) -> None:
    folder = box.config / "plugins/cache/gh/a/1.0.0"
    box.skill(folder, "rooty")
    box.write(folder / ".claude-plugin" / "plugin.json", {"name": "a"})
    box.install(a=folder)
    box.settings(a=True)
    assert box.names() == ["a:rooty"]
    box.skill(folder)
    assert box.names() == ["a:1-0-0"]
    box.skill(folder / "skills" / "one")
    assert box.names() == ["a:one"]
    box.skill(folder / "skills", "inroot")
    assert box.names() == ["a:inroot"]


def test_the_form_in_which_one_repository_holds_several_plugins(box: Box) -> None:
    """A plugin whose source is the marketplace itself: only the skills that its entry lists, by their frontmatter."""
    box.market(
        {"name": "docs", "source": "./", "strict": False, "skills": ["./skills/xlsx", "./skills/docx"]},
        {"name": "ex", "source": "./", "strict": False, "skills": ["./skills/art"]},
    )
    for name in ("docs", "ex"):
        for skill in ("xlsx", "docx", "art", "other"):
            box.skill(box.config / "plugins/cache/gh" / name / "abc" / "skills" / skill, f"{skill}-label")
    box.install(docs=box.config / "plugins/cache/gh/docs/abc", ex=box.config / "plugins/cache/gh/ex/abc")
    box.settings(docs=True, ex=True)
    assert box.names() == ["docs:xlsx-label", "docs:docx-label", "ex:art-label"]


def test_a_marketplace_that_is_a_folder_is_read_in_place(box: Box) -> None:
    live = box.base / "mk"
    box.market(
        {"name": "acme", "source": "./acme"}, {"name": "more", "source": "./more", "skills": ["./one", "./skills/two"]},
        source={"source": "directory", "path": str(live)},
    )  # fmt: skip
    box.skill(live / "acme" / "skills" / "live")
    box.skill(live / "more" / "one", "one")
    box.skill(live / "more" / "skills" / "two", "two")
    box.skill(live / "more" / "skills" / "three", "three")
    box.install(acme=box.cached("acme"), more=box.cached("more"))
    box.settings(acme=True, more=True)
    assert box.names() == ["acme:live", "more:three", "more:two", "more:one"]
    assert f"{live}/.claude-plugin/marketplace.json" in box.load().depends_on


def test_a_plugin_in_a_folder_for_skills(box: Box) -> None:
    for base in (box.config / "skills", box.work / ".claude" / "skills"):
        folder = base / f"foo-{base.parent.parent.name}"
        box.write(folder / ".claude-plugin" / "plugin.json", {"name": folder.name})
        box.skill(folder / "skills" / "in")
    assert box.names() == ["foo-home:in", "foo-work:in"]
    box.write(box.config / "settings.json", {"enabledPlugins": {"foo-home@skills-dir": False}})
    assert box.names() == ["foo-work:in"]


def test_overrides_of_the_person(box: Box) -> None:
    for name in ("one", "two", "three", "four"):
        box.skill(box.config / "skills" / name)
    overrides = {"one": "off", "two": "user-invocable-only", "three": "name-only", "four": 7}
    box.write(box.config / "settings.json", {"skillOverrides": overrides})
    found = box.load()
    assert [(skill.name, skill.routing_off) for skill in found.skills] == [
        ("four", False),
        ("three", False),
        ("two", True),
    ]
    assert [path for path, _ in found.skipped] == [f"{box.config}/skills/one/SKILL.md"]


def test_the_caches_are_gone(box: Box) -> None:
    box.install(acme=box.config / "plugins/cache/gh/acme/1.0.0")
    box.settings(acme=True)
    assert box.names() == []


WORDS = st.sampled_from(["", ".", "./", "./a", "../b", "user", "a@gh", "directory"])
KEYS = st.sampled_from(
    [
        "plugins",
        "a@gh",
        "gh",
        "name",
        "skills",
        "source",
        "path",
        "installPath",
        "scope",
        "projectPath",
        "installLocation",
        "enabledPlugins",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(JSON, JSON, JSON, JSON)
def test_whatever_the_files_hold(
    tmp_path_factory: pytest.TempPathFactory, settings: Any, installed: Any, known: Any, manifest: Any
) -> None:
    base = tmp_path_factory.getbasetemp() / "whatever"
    config = base / "home" / ".claude"
    (config / "plugins").mkdir(parents=True, exist_ok=True)
    (base / "p" / ".claude-plugin").mkdir(parents=True, exist_ok=True)
    enabled = {"a@gh": True}
    (config / "settings.json").write_text(json.dumps(settings or {"enabledPlugins": enabled}))
    entry = {"installPath": str(base / "p")}
    (config / "plugins/installed_plugins.json").write_text(json.dumps(installed or {"plugins": {"a@gh": [entry]}}))
    (config / "plugins/known_marketplaces.json").write_text(json.dumps(known))
    (base / "p" / ".claude-plugin" / "plugin.json").write_text(json.dumps(manifest))
    places, depends = skill_places({"HOME": str(base / "home")}, str(base))
    assert all(isinstance(place.path, str) and isinstance(place.prefix, str) for place in places)
    assert all(isinstance(path, str) for path in depends)
