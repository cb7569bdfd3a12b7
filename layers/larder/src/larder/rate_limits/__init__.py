"""Rate limits by client address or user: fixed windows, counted in DynamoDB."""
