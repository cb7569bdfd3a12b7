"""The local cloud: what `make serve` starts, the deployed service on one machine.

    serve.py            starts everything in order, stops it in reverse          python -m local serve
    demo/               builds a sample monorepo twice against it                python -m local demo
    cold_starts/        measures the built functions                             python -m local bench-cold

    cloudformation.py   reads template.yaml with its tags and resolves them
    template.py         what the template says: routes, functions, their variables, tables, bucket

    gateway/            the HTTP API: routes, limits, events in payload format 2.0, request log
    http_event.py       one request as an event
    workers/            the functions: processes that serve one event at a time, as Lambda does
    lambda_runtime/     with --runtime in their place: what was built, under AWS's own runtime interface client
    function_pool.py    what the others need of either
    tables/             the tables: one front, before ministack's engine and a journal, or AWS's DynamoDB Local
    object_storage/     the bucket: nanio, and an event for every object that arrives
    event_delivery.py   hands those events to the functions that match them
    lambda_invoke.py    Lambda's Invoke: takes the work that one function hands to another without waiting for it
    retry_queue.py      keeps both in files until they are done, and tries again
    schedules.py        runs the functions that have a schedule

    outbox/             the pages of `/_local/outbox`: mail that was sent

    data_folder.py      what lies in $DATA, and who may read it
    environment.py      the variables that the functions get
    stores.py           how S3 and DynamoDB are started
    services.py         both as children: started, watched, started again
    child_processes.py  children that end when their parent does
    http_server.py      uvicorn, as each of them runs it
    option_check.py     what the options must be beyond their types and bounds
    first_start.py      the operator, team and key that a fresh data folder gets
    turbo_env.py        the file with the lines for turbo
    banner.py           what the screen says at the start
    request_log.py      the lines on the screen after it
    function_log.py     the errors among what functions log

Four kinds of process: the parent (gateway and supervisor), the workers, DynamoDB and S3. DynamoDB and S3 are processes
of their own so that neither a large upload nor a large table holds up other requests.
"""
