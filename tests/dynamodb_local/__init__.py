"""AWS's DynamoDB Local, for tests with ENGINE=dynamodb-local. It refuses what AWS refuses, and counts capacity.

engine.py     the Java process of a test run, with all tables in memory
__main__.py   the tables of a local cloud in this process
"""
