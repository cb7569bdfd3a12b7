"""The in-memory caches of an instance."""

from larder.instance import Remembered, restart


def test_a_full_cache_drops_its_oldest_entry() -> None:
    memory: Remembered[str, int] = Remembered(2)
    memory["a"], memory["b"] = 1, 2
    memory["a"] = 3
    assert memory == {"a": 3, "b": 2}
    memory["c"] = 4
    assert memory == {"b": 2, "c": 4}


def test_a_restart_empties_every_cache() -> None:
    memories: list[Remembered[str, int]] = [Remembered(2), Remembered(2)]
    for memory in memories:
        memory["a"] = 1
    restart()
    assert memories == [{}, {}]
