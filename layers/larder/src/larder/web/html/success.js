// The client adds these when it has failed (docs/clients/turbo.md#login). Any page can link here with any value, so the
// values are not shown.
if (["error", "loginError", "ssoEmail"].some((name) => query.has(name))) show("failure", { moves: false });
