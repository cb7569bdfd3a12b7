"""Build artifacts: their bytes and metadata in S3, their index in DynamoDB."""
