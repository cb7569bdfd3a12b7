import cf from 'cloudfront';
import crypto from 'crypto';

// Runs at each request to the edge, as a CloudFront Function (docs/edge.md).
//
// It passes a request on to the bucket if this deployment signed its address for its method, size and time. Of the
// client's headers, only those that describe the artifact reach the bucket, as metadata of the object.
//
// CloudFront allows 10,240 bytes, no `await` outside of the handler, and little of newer JavaScript: no destructuring,
// default parameters, spread, classes or `for of`.

const store = cf.kvs();

// The only variable of the template. Empty for all networks.
const networks = '${AllowedNetworks}';

// CloudFront allows no change of the first four.
const keptHeaders = { host: 1, 'content-length': 1, 'transfer-encoding': 1, via: 1, 'user-agent': 1 };

// Header, name of the metadata, rule. larder.artifacts.storage reads the same names. Others than the tag only describe
// the artifact: one that cannot be stored is left out.
const described = [
  ['x-artifact-tag', 'tag', /^[\x20-\x7e]{1,600}$/],
  ['x-artifact-duration', 'duration-ms', /^[0-9]{1,10}(\.[0-9]{1,9})?$/],
  ['x-artifact-sha', 'sha', /^[A-Za-z0-9]{1,128}$/],
  ['x-artifact-dirty-hash', 'dirty-hash', /^[A-Za-z0-9]{1,128}$/],
  ['x-artifact-client-ci', 'ci', /^[\x20-\x7e]{1,50}$/],
  ['x-artifact-client-interactive', 'interactive', /^[01]$/],
];

async function handler(event) {
  if (networks && !isAllowed(event.viewer.ip))
    return refusal(403, 'network_not_allowed', 'Your address is in none of the networks that this service allows.');
  let entry = '';
  try {
    // `<key> <flags>`, such as `<64 digits> once`.
    entry = await store.get('key-' + parameter(event.request, 'k', /^[0-9a-z]{1,16}$/));
  } catch (error) {
    // There is no such key.
  }
  const words = entry.split(' ');
  return checked(event.request, words[0], words.slice(1));
}

function checked(request, key, flags) {
  const kind = request.method === 'HEAD' ? 'GET' : request.method;
  const expires = parameter(request, 'e', /^[0-9]{10}$/);
  const most = parameter(request, 'm', /^[0-9]{1,10}$/);
  const version = parameter(request, 'v', /^[A-Za-z0-9._-]{1,128}$/);
  const signed = ['larder-edge-1', kind, request.uri, expires, most, version].join('\n');
  if (!key || !same(mac(key, signed), parameter(request, 's', /^[A-Za-z0-9_-]{43}$/)))
    return refusal(404, 'no_such_address', 'This address is not from this deployment, or is for another request.');
  if (Number(expires) * 1000 < Date.now())
    return refusal(404, 'address_expired', 'This address has expired. Ask Larder for a new one.');
  if (kind === 'PUT') return upload(request, Number(most), flags);
  return download(request, version);
}

function upload(request, most, flags) {
  const headers = request.headers;
  const length = headers['content-length'] && headers['content-length'].value;
  if (!length || !/^[0-9]{1,10}$/.test(length) || headers['transfer-encoding'])
    return refusal(411, 'length_required', 'Content-Length must have the size of the artifact.');
  if (Number(length) > most || Number(length) === 0)
    return refusal(413, 'too_large', 'The artifact must have 1 to ' + most + ' bytes, not ' + Number(length) + '.');
  const metadata = {};
  let stored = true;
  described.forEach(function (one) {
    const sent = headers[one[0]];
    if (!sent || (sent.value === '' && !sent.multiValue)) return;
    if (sent.multiValue || !one[2].test(sent.value)) stored = stored && one[1] !== 'tag';
    else metadata['x-amz-meta-' + one[1]] = { value: one[1] === 'duration-ms' ? sent.value.split('.')[0] : sent.value };
  });
  if (!stored) return refusal(400, 'invalid_request', 'x-artifact-tag must hold at most 600 printable ASCII characters.');
  strip(headers);
  Object.keys(metadata).forEach(function (name) { headers[name] = metadata[name]; });
  headers['content-type'] = { value: 'application/octet-stream' };
  if (flags.indexOf('once') >= 0) headers['if-none-match'] = { value: '*' };
  if (flags.indexOf('unsigned') >= 0) headers['x-amz-content-sha256'] = { value: 'UNSIGNED-PAYLOAD' };
  request.querystring = {};
  request.cookies = {};
  return request;
}

function download(request, version) {
  const range = request.headers.range;
  strip(request.headers);
  if (range && !range.multiValue && /^bytes=[0-9]*-[0-9]*$/.test(range.value))
    request.headers.range = { value: range.value };
  request.querystring = version ? { versionId: { value: version } } : {};
  request.cookies = {};
  return request;
}

function strip(headers) {
  Object.keys(headers).forEach(function (name) { if (keptHeaders[name] !== 1) delete headers[name]; });
}

// The value of a parameter that is there once. Otherwise, an empty text: others may add parameters to an address.
function parameter(request, name, rule) {
  const sent = request.querystring[name];
  return sent && !sent.multiValue && rule.test(sent.value) ? sent.value : '';
}

function isAllowed(address) {
  const width = address.indexOf(':') < 0 ? 8 : 16;
  const parts = partsOf(address, width);
  return networks.split(',').some(function (network) {
    if ((network.indexOf(':') < 0 ? 8 : 16) !== width) return false;
    const slash = network.indexOf('/');
    const first = partsOf(network.slice(0, slash), width);
    let left = Number(network.slice(slash + 1));
    for (let at = 0; left > 0; at++, left -= width) {
      const shift = Math.max(width - left, 0);
      if (first[at] >> shift !== parts[at] >> shift) return false;
    }
    return true;
  });
}

// The 4 numbers of 8 bits, or 8 of 16, of an address.
function partsOf(address, width) {
  if (width === 8) return address.split('.').map(Number);
  const halves = address.split('::');
  const parts = halves[0] ? halves[0].split(':') : [];
  const last = halves[1] ? halves[1].split(':') : [];
  while (parts.length + last.length < 8) parts.push('0');
  return parts.concat(last).map(function (part) { return parseInt(part, 16); });
}

function mac(key, text) {
  return crypto.createHmac('sha256', key).update(text).digest('base64url');
}

// Takes the same time wherever they differ.
function same(one, other) {
  let difference = one.length ^ other.length;
  for (let at = 0; at < one.length; at++) difference |= one.charCodeAt(at) ^ other.charCodeAt(at);
  return difference === 0;
}

function refusal(status, code, message) {
  return {
    statusCode: status,
    headers: { 'content-type': { value: 'application/json' }, 'cache-control': { value: 'no-store' } },
    body: { encoding: 'text', data: JSON.stringify({ error: { code: code, message: message } }) },
  };
}
