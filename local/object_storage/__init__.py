"""The bucket: nanio, an S3 server over plain files, on a port of its own.

server.py         the application: nanio's signatures, our requests and storage, the announcements
requests.py       requests for objects and their versions
storage.py        nanio's storage, made safe against crashes and parallel writes of one hash
versions.py       the names of versions
announcements.py  an event for every object that arrives, kept on disk until a function has handled it
__main__.py       `python -m local.object_storage`, started by local/serve.py
"""
