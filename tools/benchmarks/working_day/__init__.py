"""A working day of a team with the real turbo: how many hits protection costs (docs/benchmarks-working-day.md)."""
