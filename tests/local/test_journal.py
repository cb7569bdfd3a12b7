"""The journal survives a crash at any point."""

from pathlib import Path

import pytest

from local.tables.ministack.journal import Change, DamagedJournal, Item, Journal


def put(name: str, value: str) -> Change:
    key = {"id": {"S": name}}
    return Change("t", key, {**key, "v": {"S": value}})


def gone(name: str) -> Change:
    return Change("t", {"id": {"S": name}}, None)


def recovered(folder: Path) -> dict[str, str]:
    """The state that a new process recovers."""
    state: dict[str, str] = {}
    for change in Journal(folder).recover():
        name = change.key["id"]["S"]
        if change.item is None:
            state.pop(name, None)
        else:
            state[name] = change.item["v"]["S"]
    return state


def opened(folder: Path) -> Journal:
    journal = Journal(folder)
    list(journal.recover())
    journal.begin()
    return journal


def all_items(state: dict[str, str]) -> list[tuple[str, Item, Item]]:
    changes = [put(name, value) for name, value in state.items()]
    return [(change.table, change.key, change.item or {}) for change in changes]


def test_recovers_the_last_state_of_every_item(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.append([put("a", "1"), put("b", "1")])
    journal.append([put("a", "2"), gone("b")])
    assert recovered(tmp_path) == {"a": "2"}


@pytest.mark.parametrize("kept", [1, 9, 20])
def test_ignores_a_torn_last_record_completely(tmp_path: Path, kept: int) -> None:
    journal = opened(tmp_path)
    journal.append([put("a", "1")])
    whole = journal.size_bytes
    journal.append([put("a", "2"), put("b", "2")])
    path = tmp_path / "journal-1.jsonl"
    path.write_bytes(path.read_bytes()[: whole + kept])
    assert recovered(tmp_path) == {"a": "1"}


def test_a_torn_record_stays_ignored_after_the_next_start(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.append([put("a", "1")])
    with (tmp_path / "journal-1.jsonl").open("ab") as file:
        file.write(b"0badc0de [[")
    journal = opened(tmp_path)
    journal.append([put("b", "1")])
    assert recovered(tmp_path) == {"a": "1", "b": "1"}


def test_rejects_damage_that_a_crash_cannot_cause(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.append([put("a", "1")])
    journal.append([put("b", "1")])
    path = tmp_path / "journal-1.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"1"', b'"9"', 1))
    with pytest.raises(DamagedJournal, match=r"journal-1.jsonl: line 1"):
        recovered(tmp_path)


def test_compaction_replaces_all_older_files(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.append([put("a", "1")])
    journal.begin()
    list(journal.compact(all_items({"a": "1"})))
    journal.append([put("b", "1")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal-2.jsonl", "snapshot-2.jsonl"]
    assert recovered(tmp_path) == {"a": "1", "b": "1"}


def test_a_crash_before_the_snapshot_is_complete_loses_nothing(tmp_path: Path) -> None:
    many = {f"k{number}": "1" for number in range(1000)}
    journal = opened(tmp_path)
    journal.append([put(name, value) for name, value in many.items()])
    journal.begin()
    compaction = journal.compact(all_items(many))
    next(compaction)
    # Writes during the snapshot go to the new journal.
    journal.append([put("late", "1"), gone("k0")])
    compaction.close()
    expected = {**many, "late": "1"}
    del expected["k0"]
    assert recovered(tmp_path) == expected


def test_a_crash_before_the_old_files_are_removed_loses_nothing(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.append([put("a", "1"), put("b", "1")])
    old = (tmp_path / "journal-1.jsonl").read_bytes()
    journal.begin()
    list(journal.compact(all_items({"a": "1", "b": "1"})))
    journal.append([gone("b")])
    (tmp_path / "journal-1.jsonl").write_bytes(old)
    assert recovered(tmp_path) == {"a": "1"}


def test_a_snapshot_taken_while_items_change_ends_in_the_last_state(tmp_path: Path) -> None:
    state = {f"k{number}": "old" for number in range(500)}
    journal = opened(tmp_path)
    journal.append([put(name, value) for name, value in state.items()])
    journal.begin()
    compaction = journal.compact(all_items(state))
    next(compaction)
    journal.append([put("k499", "new"), put("k1", "new")])
    list(compaction)
    assert recovered(tmp_path) == {**state, "k499": "new", "k1": "new"}


def test_files_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.append([put("a", "1")])
    list(journal.compact(all_items({"a": "1"})))
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
