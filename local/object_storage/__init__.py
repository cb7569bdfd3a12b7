"""The bucket: nanio, an S3 server over plain files, on a port of its own.

server.py         puts the parts together: nanio's signatures and routes, our storage, the announcements
storage.py        nanio's storage, safe against a kill and against parallel work on one hash
announcements.py  an event for every object that arrives, kept on disk until a function has had it
__main__.py       `python -m local.object_storage`, started by local/serve.py
"""
