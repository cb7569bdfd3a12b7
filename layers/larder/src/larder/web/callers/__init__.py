"""Who is calling: an API key, a session, a client of the cache, a member of a team."""
