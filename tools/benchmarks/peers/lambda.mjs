// Lambda's runtime for one function: takes each event from the Runtime API, calls the peer's handler, and returns the
// reply. AWS's own client for node needs a compiler to install; this does the same requests on one kept connection.
// Source: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
import http from 'node:http'

const [host, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(':')
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })

// The functions end with the process that started them, which holds the other end of standard input.
process.stdin.on('end', () => process.exit(0)).resume()

function call(method, path, body) {
  return new Promise((resolve, reject) => {
    const headers = body ? { 'content-length': Buffer.byteLength(body), 'content-type': 'application/json' } : {}
    const request = http.request({ host, port, agent, method, path: `/2018-06-01/runtime/${path}`, headers })
    request.on('error', reject)
    request.on('response', (response) => {
      const parts = []
      response.on('data', (part) => parts.push(part))
      response.on('end', () => resolve({ headers: response.headers, body: Buffer.concat(parts) }))
    })
    request.end(body)
  })
}

const { handler } = await import('turborepo-remote-cache/aws-lambda')
for (;;) {
  const next = await call('GET', 'invocation/next')
  const awsRequestId = next.headers['lambda-runtime-aws-request-id']
  const deadline = Number(next.headers['lambda-runtime-deadline-ms'])
  const context = { awsRequestId, getRemainingTimeInMillis: () => deadline - Date.now() }
  const reply = await handler(JSON.parse(next.body), context)
  await call('POST', `invocation/${awsRequestId}/response`, JSON.stringify(reply))
}
