"""The artifacts table: the index of stored artifacts, and items for uploads, removals and totals.

| hash | holds | module |
|---|---|---|
| `<hash>` | the published artifact | index |
| `<hash>#pending` | the direct upload last offered for the hash | index |
| `<hash>.<scope>`, `<hash>.<scope>#pending` | the same, in the own scope of a credential of a protected team | index |
| `#discarded#<upload id>` | an object that is no longer in use; the sweep deletes it, then this item | index |
| `#removal#<target>` | a request to delete all of a writer, an own scope or a time, or everything | sweep_queue |
| `#scope#<scope>` | who writes an own scope, and how much it holds | scopes |
| `#shared` | when something was last uploaded to the shared scope of a protected team | scopes |
| `#storage` | what takes the space, at the last check of the totals | checks |
| `#totals` | bytes and number of the owner's artifacts, the drift of the last check, the last days' uploads | totals |

`eviction` reads the index `by_last_use`, `sweep_queue` the index `by_sweep`, and `pages` the index `by_upload`. `pages`
also lists artifacts by hash and by scope. `checks` adds up the index and corrects totals. Cache requests import none of
them, and `scopes` only to upload in a protected team. `allotments` changes what owners may store of `MaxStoredBytes`.
"""
