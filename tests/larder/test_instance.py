"""The in-memory caches of an instance."""

from larder.concurrency import map_concurrently
from larder.instance import Remembered, restart


def test_a_full_cache_drops_the_entry_that_was_set_the_longest_ago() -> None:
    memory: Remembered[str, int] = Remembered(2)
    memory["a"], memory["b"] = 1, 2
    memory["a"] = 3
    assert memory == {"b": 2, "a": 3}
    memory["c"] = 4
    assert memory == {"a": 3, "c": 4}


def test_threads_that_set_entries_at_the_same_time_leave_a_full_cache() -> None:
    memory: Remembered[int, int] = Remembered(10)

    def fill(start: int) -> None:
        for number in range(2_000):
            memory[(start + number) % 25] = start

    map_concurrently(fill, range(8))
    assert len(memory) == 10


def test_a_restart_empties_every_cache() -> None:
    memories: list[Remembered[str, int]] = [Remembered(2), Remembered(2)]
    for memory in memories:
        memory["a"] = 1
    restart()
    assert memories == [{}, {}]
