"""Rules of teams: which CI jobs get a token of the team in exchange for the id token of their CI."""
