"""The audit log of accounts, keys, teams and deletions. Entries never change. Their time to live deletes them."""
