"""The local cloud: the whole service on one machine, started by `make serve`.

    serve.py            starts everything in order, stops it in reverse          python -m local serve
    demo/               builds a sample monorepo twice against it                python -m local demo

    cloudformation.py   reads template.yaml and resolves its tags
    template.py         the template's routes, functions, variables, tables and bucket

    gateway/            the HTTP API: routes, limits, events in payload format 2.0, request log
    http_event.py       one request as an event
    workers/            the functions: processes that serve one event at a time, as Lambda does
    lambda_runtime/     with --runtime instead: the build, under AWS's own runtime interface client
    function_pool.py    the interface of both
    tables/             the tables: an HTTP front for ministack's engine with a journal, or AWS's DynamoDB Local
    object_storage/     the bucket: nanio, and an event for every object that arrives
    event_delivery.py   delivers those events to the functions whose rules match
    lambda_invoke.py    Lambda's Invoke: accepts asynchronous invocations from functions
    retry_queue.py      keeps both in files until they are done, and retries
    schedules.py        runs the functions that have a schedule

    outbox/             the pages of `/_local/outbox`, which show sent mail
    provider/           an OpenID provider with four people, at `/_local/provider`
    page.py             the frame of the pages of both

    data_folder.py      the contents of $DATA and their permissions
    environment.py      the functions' environment variables
    stores.py           how S3 and DynamoDB are started
    services.py         runs both as child processes and restarts them
    child_processes.py  children that end when their parent does
    signatures.py       checks the signatures of requests to DynamoDB and Lambda
    http_server.py      the uvicorn configuration of all servers
    option_check.py     checks settings beyond their types and bounds
    first_start.py      creates the operator, team and key of a new data folder
    turbo_env.py        the file with the environment variables for turbo
    banner.py           the text on the screen at the start
    request_log.py      the request log on the screen
    function_log.py     finds errors in the functions' logs

There are five kinds of process: the parent (gateway and supervisor), DynamoDB, S3, the fork server, and the workers,
which it forks. DynamoDB and S3 run in their own processes, so that neither a large upload nor a large table delays
other requests.
"""
