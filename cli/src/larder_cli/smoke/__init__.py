"""`larder smoke`: whether a deployment does what its clients need, asked from where they are.

command.py   the options, the run and what it prints
checks.py    what is asked, in order
advice.py    what to do about an answer that should not be
http.py      a request as it goes over the wire, and its answer
log_lines.py what the deployment has logged of it
"""
