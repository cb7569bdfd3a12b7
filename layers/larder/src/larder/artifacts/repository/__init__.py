"""The artifacts table: the index of stored artifacts, and what is noted beside it.

| hash | holds | module |
|---|---|---|
| `<hash>` | the artifact that readers see | index |
| `<hash>#pending` | the direct upload last offered for the hash | index |
| `#discarded#<upload id>` | an object that nobody will see again; the sweep deletes it and then this item | index |
| `#removal#<writer>` | all that this key, session or user wrote is to go | due |
| `#totals` | bytes and number of the owner's artifacts, the drift of the last check, the last days' uploads | totals |

Index `by_last_use` is read by `eviction`, index `by_sweep` by `due`: requests of builds start without these two.
"""
