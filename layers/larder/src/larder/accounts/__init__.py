"""People: the users that keys and teams belong to."""
