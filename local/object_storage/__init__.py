"""The bucket: nanio, an S3 server over plain files, on a port of its own.

server.py         the application: nanio's signatures and routes, our storage, the announcements
storage.py        nanio's storage, made safe against crashes and parallel writes of one hash
announcements.py  an event for every object that arrives, kept on disk until a function has handled it
__main__.py       `python -m local.object_storage`, started by local/serve.py
"""
