// oidc-provider with a person for each name, and one client: `node oidc_provider.mjs <JSON>`.
// The JSON has `port`, `client_id`, `client_secret`, `redirect_uri`, `domain`, and `people` with their groups by name.
import { Provider } from "oidc-provider";

const wanted = JSON.parse(process.argv[2]);
const scopes = ["openid", "email", "profile", "groups"];

const provider = new Provider(`http://127.0.0.1:${wanted.port}`, {
  clients: [{
    client_id: wanted.client_id,
    client_secret: wanted.client_secret,
    redirect_uris: [wanted.redirect_uri],
    grant_types: ["authorization_code"],
    response_types: ["code"],
    require_auth_time: true,
  }],
  scopes,
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"], groups: ["groups"] },
  pkce: { required: () => true },
  // A page that asks for a name and takes any password.
  features: { devInteractions: { enabled: true } },
  // The company has allowed Larder, so no one is asked.
  async loadExistingGrant({ oidc }) {
    const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
    grant.addOIDCScope(scopes.join(" "));
    await grant.save();
    return grant;
  },
  async findAccount(_context, name) {
    if (!Object.hasOwn(wanted.people, name)) return undefined;
    const email = `${name.toLowerCase()}@${wanted.domain}`;
    return { accountId: name, claims: () => ({ sub: `id-of-${name}`, name, email, email_verified: true, groups: wanted.people[name] }) };
  },
  cookies: { keys: ["of the tests"] },
});

provider.listen(wanted.port, "127.0.0.1");
