"""The audit log of removals. Entries never change. Their time to live deletes them."""
