"""`larder sso`: company sign-in.

| Module | |
|---|---|
| `command` | the providers |
| `groups` | the roles in teams that a provider gives |
| `people` | the people of a provider: who has to sign in with it, and until when |
| `reading` | requests to a provider, from the operator's computer |
| `settings` | the options that set a provider up |
"""
