"""Who removed what, and when: entries that nothing changes and that end by time to live."""
