"""How often one client address may ask: fixed windows, counted in DynamoDB."""
