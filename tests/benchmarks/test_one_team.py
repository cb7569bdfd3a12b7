"""The simulation of one team's load (tools/benchmarks/one_team.py)."""

from tools.benchmarks.one_team import READS, UPLOADS, lost_reads, lost_uploads


def test_a_new_team_loses_next_to_nothing_where_one_partition_loses_most() -> None:
    before, *_, new = UPLOADS
    assert lost_uploads(new, 600, seconds=4) <= 0.005 < 0.2 < lost_uploads(before, 600, seconds=4)
    one, *_, eight = READS
    assert lost_reads(eight, 6_750, seconds=2) <= 0.001 < 0.2 < lost_reads(one, 6_750, seconds=2)
