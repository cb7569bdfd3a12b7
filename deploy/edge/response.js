// Runs at each reply of the bucket below status 400, as a CloudFront Function (docs/edge.md).
//
// The metadata of an object goes back to the client as the headers of the artifact. Everything else of S3's own, such as
// the ids of the key and the user that uploaded it, stays here.

const described = {
  'x-amz-meta-tag': 'x-artifact-tag',
  'x-amz-meta-duration-ms': 'x-artifact-duration',
  'x-amz-meta-sha': 'x-artifact-sha',
  'x-amz-meta-dirty-hash': 'x-artifact-dirty-hash',
};

// A browser must never show an artifact as a page, whatever its uploader made of it.
const forced = {
  'content-type': 'application/octet-stream',
  'content-disposition': 'attachment',
  'content-security-policy': "sandbox; default-src 'none'",
  'x-content-type-options': 'nosniff',
  'cache-control': 'private, no-store',
};

function handler(event) {
  const headers = event.response.headers;
  const artifact = {};
  Object.keys(headers).forEach(function (name) {
    if (name.indexOf('x-amz-') !== 0) return;
    if (described[name]) artifact[described[name]] = headers[name].value;
    delete headers[name];
  });
  if (event.request.method === 'PUT') return event.response;
  // turbo takes a hit with an invalid duration for a miss.
  if (!/^[0-9]{1,11}$/.test(artifact['x-artifact-duration'])) artifact['x-artifact-duration'] = '0';
  Object.keys(artifact).forEach(function (name) { headers[name] = { value: artifact[name] }; });
  Object.keys(forced).forEach(function (name) { headers[name] = { value: forced[name] }; });
  return event.response;
}
