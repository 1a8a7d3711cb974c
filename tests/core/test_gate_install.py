"""``pull`` and ``try``: what gets installed, what stays, what goes, and what is refused."""

import base64
import json
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from gate_server import NOW, SECRET, Organisation, Reply, serving
from hypothesis import given
from hypothesis import strategies as st

from gstack.api import SkillRoot
from gstack.errors import StateError, UsageError
from gstack.gate.bundle import verify_installed
from gstack.gate.client import FetchError
from gstack.gate.credentials import Credentials
from gstack.gate.digest import skill_digest
from gstack.gate.folders import STAGING, manifest_path, personal_folder, read_manifest
from gstack.gate.install import pull, try_skill
from gstack.gate.login import login
from gstack.gate.package import SkillRefused, check_path, content_digest, read_files

ENV = {"USER": "ann"}


def content(*files, **more) -> bytes:
    """A skill's content: ``(path, text)`` pairs or ready-made file objects."""
    made = [one if isinstance(one, dict) else {"path": one[0], "content": one[1]} for one in files]
    return json.dumps({"files": made, **more}).encode()


def skill(text: str, *more) -> bytes:
    return content(("SKILL.md", f"---\nname: x\n---\n{text}\n"), *more)


class Place:
    """An organisation with skills behind a server, and a machine that is connected to it."""

    def __init__(self, server, folder: Path) -> None:
        self.server = server
        self.org = Organisation()
        self.version = 0
        self.entries: dict = {}
        self.skills: dict[str, bytes] = {}
        self.policies: list = []
        self.root = str(folder / "state")
        self.folder = str(folder / "claude" / "skills")
        self.publish()
        login(self.root, Credentials(server.url, "acme", SECRET), now=lambda: NOW)

    def offer(self, name: str, data: bytes, *, digest: str | None = "", **entry) -> None:
        if digest == "":
            digest = content_digest(read_files(data))
        self.skills[name] = data
        self.entries[name] = {"version": "1.0.0", "status": "approved", "digest": digest, **entry}

    def publish(self, **more) -> None:
        self.version += 1
        self.org.publish(self.server, self.version, manifest_index=self.entries, policies=self.policies, **more)
        listed = []
        for number, (name, data) in enumerate(self.skills.items()):
            self.server.site[f"/api/content/{number}.json"] = data
            listed.append({"name": name, "content_url": f"../content/{number}.json"})
        self.server.site["/api/skills/acme"] = json.dumps({"skills": listed}).encode()

    def pull(self, **options):
        self.publish()
        return pull(self.root, self.folder, ENV, now=lambda: NOW, **options)

    def try_(self, name: str, **options):
        self.publish()
        return try_skill(self.root, self.folder, ENV, name, now=lambda: NOW, **options)

    def path(self, *parts: str) -> Path:
        return Path(self.folder, *parts)


@pytest.fixture
def place(tmp_path):
    with serving(key=SECRET) as server:
        yield Place(server, tmp_path)


def said(done) -> dict[str, str]:
    return {one.name: one.action for one in done.outcomes}


def why(done, name: str) -> str:
    return next(one.why for one in done.outcomes if one.name == name)


# ---------------------------------------------------------------------------------------------- install


def test_approved_skills_come_by_their_bare_names(place):
    place.offer("acme/deploy", skill("ship it", ("scripts/run.sh", "#!/bin/sh\n"), ("logo.bin", "\u00e9")))
    place.offer("acme/plan", skill("plan it"), status="active")
    done = place.pull()
    assert said(done) == {"acme/deploy": "installed", "acme/plan": "installed"}
    assert "ship it" in place.path("deploy", "SKILL.md").read_text()
    assert place.path("deploy", "scripts", "run.sh").read_text() == "#!/bin/sh\n"
    assert place.path("deploy", "logo.bin").read_bytes() == "\u00e9".encode()
    assert skill_digest(str(place.path("deploy"))) == place.entries["acme/deploy"]["digest"]
    assert set(os.listdir(place.folder)) == {"deploy", "plan"}
    assert read_manifest(place.root)[place.folder]["deploy"]["name"] == "acme/deploy"
    assert place.path("deploy", "SKILL.md").stat().st_mode & 0o133 == 0


def test_binary_and_executable_files(place):
    data = bytes(range(256))
    files = [
        {"path": "SKILL.md", "content": "x"},
        {"path": "bin", "content": base64.b64encode(data).decode(), "encoding": "base64", "executable": True},
    ]
    place.offer("acme/tool", content(*files))
    assert said(place.pull()) == {"acme/tool": "installed"}
    assert place.path("tool", "bin").read_bytes() == data
    if os.name == "posix":
        assert os.access(place.path("tool", "bin"), os.X_OK)
        assert not os.access(place.path("tool", "SKILL.md"), os.X_OK)


def test_a_second_pull_changes_and_fetches_nothing(place):
    place.offer("acme/deploy", skill("one"))
    place.pull()
    before = os.stat(place.path("deploy")).st_ino
    place.server.requests.clear()
    assert said(place.pull()) == {"acme/deploy": "unchanged"}
    assert os.stat(place.path("deploy")).st_ino == before
    assert not any("content" in path for path in place.server.paths())


def test_a_new_version_replaces_the_old_one_whole(place):
    place.offer("acme/deploy", skill("one", ("old.md", "gone soon")))
    place.pull()
    place.offer("acme/deploy", skill("two"), version="2.0.0")
    assert said(place.pull()) == {"acme/deploy": "updated"}
    assert os.listdir(place.path("deploy")) == ["SKILL.md"]
    assert read_manifest(place.root)[place.folder]["deploy"]["version"] == "2.0.0"


def test_the_query_form_is_the_fallback_of_live_servers(place):
    data = skill("live")
    place.offer("acme/deploy", data)
    place.publish()
    place.server.site["/api/skills/acme"] = json.dumps({"skills": [{"name": "acme/deploy"}]}).encode()
    place.server.contents["acme/deploy"] = data
    done = pull(place.root, place.folder, ENV, now=lambda: NOW)
    assert said(done) == {"acme/deploy": "installed"}
    assert place.server.paths()[-1] == "/api/skills/acme/content?skill=acme%2Fdeploy"


def test_a_skill_md_that_stands_apart(place):
    data = content(("notes.md", "n"), skill_md="# hi")
    place.offer("acme/deploy", data)
    place.pull()
    assert place.path("deploy", "SKILL.md").read_text() == "# hi"


def test_a_folder_of_a_static_site_serves_as_well(tmp_path):
    org, data = Organisation(), skill("static")
    digest = content_digest(read_files(data))
    site = tmp_path / "site"
    base = org.publish_folder(site, 1, manifest_index={"acme/deploy": {"version": "1", "digest": digest}})
    (site / "api" / "skills").mkdir()
    (site / "api" / "content").mkdir()
    (site / "api" / "content" / "deploy.json").write_bytes(data)
    listed = {"skills": [{"name": "acme/deploy", "content_url": "../content/deploy.json"}]}
    (site / "api" / "skills" / "acme").write_text(json.dumps(listed))
    root, folder = str(tmp_path / "state"), str(tmp_path / "skills")
    login(root, Credentials(base, "acme"), now=lambda: NOW)
    assert said(pull(root, folder, ENV)) == {"acme/deploy": "installed"}


def test_deprecated_ones_come_with_all_or_when_tried(place):
    place.offer("acme/old", skill("o"), status="deprecated")
    place.offer("acme/odd", skill("d"), status="moonlit")
    assert said(place.pull()) == {}
    done = place.try_("old")
    assert said(done) == {"acme/old": "installed"}
    assert "deprecated" in why(done, "acme/old")
    assert said(place.pull()) == {"acme/old": "unchanged"}  # it is kept up to date then
    assert said(place.pull(everything=True)) == {"acme/old": "unchanged", "acme/odd": "installed"}


def test_only_skills_are_installed(place):
    place.offer("acme/planner", skill("a"), kind="subagent")
    place.offer("acme/go", skill("c"), kind="command")
    assert said(place.pull(everything=True)) == {}
    assert said(place.try_("acme/planner")) == {"acme/planner": "refused"}


def test_try_takes_full_and_bare_names(place):
    place.offer("acme/deploy", skill("d"))
    place.offer("acme/plan", skill("p"))
    place.offer("other/plan", skill("q"))
    for name in ("acme/deploy", "deploy", "/deploy", " DEPLOY"):
        assert list(said(place.try_(name))) == ["acme/deploy"]
    with pytest.raises(UsageError, match="acme/plan or other/plan"):
        place.try_("plan")
    with pytest.raises(UsageError, match="offers no skill"):
        place.try_("nothing")


# ------------------------------------------------------------------------------------------ ban and keep


def test_a_banned_skill_is_removed_and_not_installed(place):
    place.offer("acme/bad", skill("b"))
    place.offer("acme/good", skill("g"))
    place.pull()
    place.entries["acme/bad"]["status"] = "banned"
    done = place.pull()
    assert said(done) == {"acme/bad": "removed", "acme/good": "unchanged"}
    assert os.listdir(place.folder) == ["good"]
    assert said(place.pull()) == {"acme/good": "unchanged"}
    assert said(place.try_("bad")) == {"acme/bad": "refused"}


def test_what_a_policy_blocks_is_removed_too_unless_this_machine_has_an_exception(place):
    policy = {
        "policy_id": "p", "name": "Retired", "matcher_type": "name", "match_value": "acme/*", "action": "halt",
        "reason": "Retired.",
    }  # fmt: skip
    place.offer("acme/deploy", skill("d"))
    place.pull()
    place.policies = [policy]
    assert why(place.pull(), "acme/deploy") == "Retired."
    place.policies = [{**policy, "exceptions": [{"user": "ann", "owner": "o", "reason": "r"}]}]
    assert said(place.pull()) == {"acme/deploy": "installed"}


def test_a_banned_skill_that_was_edited_stays_until_force(place):
    place.offer("acme/bad", skill("b"))
    place.pull()
    place.path("bad", "mine.md").write_text("notes")
    place.entries["acme/bad"]["status"] = "banned"
    done = place.pull()
    assert said(done) == {"acme/bad": "kept"}
    assert "--force" in why(done, "acme/bad")
    assert place.path("bad", "mine.md").exists()
    assert said(place.pull(force=True)) == {"acme/bad": "removed"}
    assert not place.path("bad").exists()


def test_edits_are_never_overwritten_without_force(place):
    place.offer("acme/deploy", skill("one"))
    place.pull()
    place.path("deploy", "SKILL.md").write_text("my own words")
    place.offer("acme/deploy", skill("two"), version="2.0.0")
    for _ in range(2):
        assert said(place.pull()) == {"acme/deploy": "kept"}
        assert place.path("deploy", "SKILL.md").read_text() == "my own words"
    assert said(place.try_("deploy")) == {"acme/deploy": "kept"}
    assert said(place.pull(force=True)) == {"acme/deploy": "updated"}
    assert "two" in place.path("deploy", "SKILL.md").read_text()


def test_caches_that_a_skill_makes_are_no_edit(place):
    place.offer("acme/deploy", skill("one", ("tool.py", "pass")))
    place.pull()
    place.path("deploy", "__pycache__").mkdir()
    place.path("deploy", "__pycache__", "tool.pyc").write_bytes(b"x")
    place.offer("acme/deploy", skill("two"), version="2.0.0")
    assert said(place.pull()) == {"acme/deploy": "updated"}


def test_a_persons_own_skill_of_that_name_stays(place):
    place.path("deploy").mkdir(parents=True)
    place.path("deploy", "SKILL.md").write_text("mine")
    place.offer("acme/deploy", skill("theirs"))
    done = place.pull()
    assert said(done) == {"acme/deploy": "kept"}
    assert place.path("deploy", "SKILL.md").read_text() == "mine"
    place.entries["acme/deploy"]["status"] = "banned"
    assert said(place.pull()) == {}  # not ours to remove
    assert place.path("deploy").exists()


def test_the_very_same_skill_that_was_there_is_taken_over(place):
    place.offer("acme/deploy", skill("same"))
    place.path("deploy").mkdir(parents=True)
    place.path("deploy", "SKILL.md").write_text("---\nname: x\n---\nsame\n")
    assert said(place.pull()) == {"acme/deploy": "installed"}
    assert read_manifest(place.root)[place.folder]["deploy"]["name"] == "acme/deploy"


def test_a_second_skill_of_the_same_bare_name_is_refused_with_both_names(place):
    place.offer("acme/deploy", skill("one"))
    place.offer("other/deploy", skill("two"))
    place.offer("third/Deploy", skill("three"))
    done = place.pull()
    assert said(done) == {"acme/deploy": "installed", "other/deploy": "refused", "third/Deploy": "refused"}
    assert "acme/deploy" in why(done, "other/deploy")
    assert "other/deploy" in why(done, "other/deploy")
    done = place.try_("other/deploy")
    assert said(done) == {"other/deploy": "refused"}
    assert "acme/deploy" in why(done, "other/deploy")
    assert "one" in place.path("deploy", "SKILL.md").read_text()


def test_the_one_that_is_installed_has_the_name_whatever_the_list_says_first(place):
    place.offer("acme/deploy", skill("one"))
    place.pull()
    del place.skills["acme/deploy"]
    place.offer("other/deploy", skill("two"))
    place.offer("acme/deploy", skill("one"))
    assert said(place.pull()) == {"other/deploy": "refused", "acme/deploy": "unchanged"}


def test_what_isnt_listed_any_more_stays_and_is_said(place):
    place.offer("acme/deploy", skill("one"))
    place.pull()
    del place.skills["acme/deploy"], place.entries["acme/deploy"]
    assert said(place.pull()) == {"acme/deploy": "kept"}
    assert place.path("deploy").exists()


def test_what_somebody_deleted_comes_back(place):
    import shutil

    place.offer("acme/deploy", skill("one"))
    place.pull()
    shutil.rmtree(place.path("deploy"))
    assert said(place.pull()) == {"acme/deploy": "installed"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"x": 5}', '{"x": {"../y": {}}}'])
def test_a_broken_record_makes_installed_skills_the_persons_own(place, text):
    place.offer("acme/deploy", skill("one"))
    place.pull()
    Path(manifest_path(place.root)).write_text(text)
    assert said(place.pull()) == {"acme/deploy": "installed"}  # it has the right content
    Path(manifest_path(place.root)).write_text(text)
    place.offer("acme/deploy", skill("two"))
    assert said(place.pull()) == {"acme/deploy": "kept"}


# ------------------------------------------------------------------------------------------------ checks


def test_another_content_than_the_signed_digest_is_refused(place):
    place.offer("acme/deploy", skill("evil"), digest="sha256:" + "0" * 64)
    place.offer("acme/fine", skill("f"))
    done = place.pull()
    assert said(done) == {"acme/deploy": "refused", "acme/fine": "installed"}
    assert "digest" in why(done, "acme/deploy")
    assert done.refused[0].name == "acme/deploy"
    assert not place.path("deploy").exists()
    assert said(place.pull(force=True))["acme/deploy"] == "refused"  # force doesn't make it right


def test_without_a_digest_only_force_installs(place):
    place.offer("acme/deploy", skill("x"), digest=None)
    assert said(place.pull()) == {"acme/deploy": "refused"}
    done = place.pull(force=True)
    assert said(done) == {"acme/deploy": "installed"}
    assert "could not be checked" in why(done, "acme/deploy")
    assert said(place.pull()) == {"acme/deploy": "unchanged"}


def test_a_skill_that_the_signed_catalogue_doesnt_know_is_refused(place):
    place.offer("acme/deploy", skill("x"))
    place.publish()
    listed = json.loads(place.server.site["/api/skills/acme"])
    listed["skills"].append({"name": "acme/extra", "content_url": "../content/0.json"})
    place.server.site["/api/skills/acme"] = json.dumps(listed).encode()
    done = pull(place.root, place.folder, ENV, now=lambda: NOW)
    assert said(done) == {"acme/deploy": "installed", "acme/extra": "refused"}


BAD_PATHS = [
    "../evil", "/etc/evil", "a/../../evil", "a//b", "./a", "a/.", "", "a/", "..", "C:/evil", "a\\b", "a\0b", "a\nb",
    "con", "sub/NUL.txt", "a.", " a", "a ", "a:stream", ".git/hooks/post-checkout", "__pycache__/x.pyc", "x" * 600,
]  # fmt: skip


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_path_that_isnt_plain_is_refused(path):
    with pytest.raises(SkillRefused):
        check_path(path)


def test_skills_with_paths_that_arent_plain_are_not_installed(place):
    for number, path in enumerate(BAD_PATHS):
        place.offer(f"acme/evil{number}", content(("SKILL.md", "x"), (path, "y")), digest=None)
    place.offer("acme/fine", skill("f"))
    done = place.pull(force=True)
    assert [one.name for one in done.outcomes if one.action != "refused"] == ["acme/fine"]
    assert len(done.outcomes) == len(BAD_PATHS) + 1
    assert os.listdir(place.folder) == ["fine"]
    assert not list(Path(place.folder).parent.parent.rglob("evil*"))


@given(st.text(max_size=30))
def test_a_path_is_refused_or_stays_inside(path):
    try:
        check_path(path)
    except SkillRefused:
        return
    assert not os.path.isabs(path)
    assert os.path.normpath(path) == path.replace("/", os.sep)
    assert not path.startswith("..")


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"{}", b"PK\x03\x04zip", content(), content(("readme.md", "x")), content(("sub/SKILL.md", "x")),
        content(("SKILL.md", "x"), ("skill.md", "y")), content(("SKILL.md", "x"), ("a", "y"), ("a/b", "z")),
        content(("SKILL.md", "x"), ("\u00e9", "y"), ("e\u0301", "z")),
        content(("SKILL.md", "x"), {"path": "l", "type": "symlink", "target": "/etc/passwd", "content": ""}),
        content({"path": "SKILL.md", "link": "/etc/passwd", "content": "x"}),
        content({"path": "SKILL.md"}), content({"content": "x"}), content("SKILL.md".join([]) or {"path": 5}),
        content({"path": "SKILL.md", "content": "!!!", "encoding": "base64"}),
        content({"path": "SKILL.md", "content": "x", "encoding": "utf-16"}),
        content(*[("SKILL.md", "x"), *[(f"f{n}", "") for n in range(2001)]]),
        json.dumps({"files": "SKILL.md"}).encode(), b'{"files": [' * 3000,
    ],
)  # fmt: skip
def test_content_that_is_malformed_is_refused(data):
    with pytest.raises(SkillRefused):
        read_files(data)


JSON = st.recursive(
    st.none() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["files", "path", "content", "encoding", "x"]), inner, max_size=4)
    ),
)


@given(st.binary(max_size=200) | JSON)
def test_whatever_a_server_sends_is_files_or_refused(data):
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    try:
        files = read_files(raw)
    except SkillRefused:
        return
    assert any(one.path == "SKILL.md" for one in files)


def test_a_content_address_elsewhere_is_refused(place):
    urls = ["https://evil.example/x.json", "//evil.example/x", "../../../../etc/passwd", "file:///x", "http://[", "\\x"]
    for number in range(len(urls)):
        place.offer(f"acme/s{number}", skill("x"))
    place.publish()
    listed = [{"name": f"acme/s{number}", "content_url": url} for number, url in enumerate(urls)]
    place.server.site["/api/skills/acme"] = json.dumps({"skills": listed}).encode()
    done = pull(place.root, place.folder, ENV, now=lambda: NOW)
    assert set(said(done).values()) == {"refused"}
    assert len(done.refused) == len(urls)
    assert os.listdir(place.folder) == []


def test_a_bare_name_that_is_no_folder_name_is_refused(place):
    names = ["acme/..", "acme/.", "acme/", "acme/.hidden", "acme/a b", "acme/a\\b", "acme/" + "x" * 80, "acme/-rf"]
    for name in names:
        place.offer(name, skill("x"))
    assert said(place.pull()) == dict.fromkeys(names, "refused")
    assert os.listdir(place.folder) == []


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"skills": 5}', b'{"skills": [5]}', b'{"skills": [{}]}'])
def test_a_malformed_list_stops_the_pull(place, data):
    place.publish()
    place.server.site["/api/skills/acme"] = data
    with pytest.raises(SkillRefused, match="list of skills"):
        pull(place.root, place.folder, ENV, now=lambda: NOW)


def test_no_list_is_a_network_error(place):
    place.publish()
    del place.server.site["/api/skills/acme"]
    with pytest.raises(FetchError, match="404"):
        pull(place.root, place.folder, ENV, now=lambda: NOW)


def test_one_skill_that_cant_be_fetched_costs_only_itself(place):
    place.offer("acme/one", skill("1"))
    place.offer("acme/two", skill("2"))
    place.server.say("/api/content/0.json", Reply(503))
    assert said(place.pull()) == {"acme/one": "refused", "acme/two": "installed"}


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_a_link_in_the_skills_folder_is_neither_followed_nor_replaced_without_force(place, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "SKILL.md").write_text("mine")
    place.path().mkdir(parents=True)
    place.path("deploy").symlink_to(precious)
    place.offer("acme/deploy", skill("x"))
    assert said(place.pull()) == {"acme/deploy": "kept"}
    assert said(place.pull(force=True)) == {"acme/deploy": "updated"}
    assert not place.path("deploy").is_symlink()
    assert (precious / "SKILL.md").read_text() == "mine"


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_a_link_that_took_a_pulled_skills_place_is_not_followed_when_it_is_banned(place, tmp_path):
    import shutil

    place.offer("acme/bad", skill("x"))
    place.pull()
    precious = tmp_path / "precious"
    shutil.copytree(place.path("bad"), precious)
    shutil.rmtree(place.path("bad"))
    place.path("bad").symlink_to(precious)
    place.entries["acme/bad"]["status"] = "banned"
    assert said(place.pull()) == {"acme/bad": "kept"}
    assert said(place.pull(force=True)) == {"acme/bad": "removed"}
    assert (precious / "SKILL.md").exists()


# ------------------------------------------------------------------------------------------ in the folder


def test_a_failed_write_leaves_the_old_skill(place, monkeypatch):
    place.offer("acme/deploy", skill("one"))
    place.pull()
    place.offer("acme/deploy", skill("two"), version="2.0.0")
    real = os.rename

    def broken(source, target):
        if str(source).endswith("new"):
            raise OSError(28, "No space left on device", str(target))
        real(source, target)

    monkeypatch.setattr(os, "rename", broken)
    done = place.pull()
    monkeypatch.undo()
    assert said(done) == {"acme/deploy": "refused"}
    assert "No space" in why(done, "acme/deploy")
    assert "one" in place.path("deploy", "SKILL.md").read_text()
    assert os.listdir(place.folder) == ["deploy"]


def test_what_a_dying_pull_left_is_swept(place):
    place.path(STAGING + "dead", "new").mkdir(parents=True)
    place.offer("acme/deploy", skill("one"))
    place.pull()
    assert os.listdir(place.folder) == ["deploy"]


def test_a_skills_folder_that_is_a_file_is_one_clear_error(place):
    Path(place.folder).parent.mkdir(parents=True)
    Path(place.folder).write_text("x")
    with pytest.raises(StateError, match="can't be used"):
        place.pull()


def test_pulls_at_once(place):
    for number in range(6):
        place.offer(f"acme/s{number}", skill(str(number)))
    place.publish()
    failed = []

    def run():
        try:
            pull(place.root, place.folder, ENV, now=lambda: NOW)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert set(os.listdir(place.folder)) == {f"s{n}" for n in range(6)}
    assert len(read_manifest(place.root)[place.folder]) == 6


def test_progress_is_told_before_each_skill(place):
    place.offer("acme/a", skill("a"))
    place.offer("acme/b", skill("b"))
    seen = []
    place.pull(progress=lambda *args: seen.append(args))
    assert seen == [(0, 2, "acme/a"), (1, 2, "acme/b")]


def test_a_pull_syncs_first(place):
    place.offer("acme/deploy", skill("one"))
    place.pull()
    assert verify_installed(place.root).version == place.version


def test_the_personal_folder_of_a_host():
    roots = [SkillRoot("/p/.claude/skills", "project"), SkillRoot("/h/.claude/skills", "personal")]
    host = SimpleNamespace(title="Host", skill_places=lambda env, cwd: (roots, []))
    assert personal_folder(host, {}) == os.path.abspath("/h/.claude/skills")
    with pytest.raises(UsageError, match="no folder"):
        personal_folder(SimpleNamespace(title="Host", skill_places=lambda env, cwd: ([], [])), {})
