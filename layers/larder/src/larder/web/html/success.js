// turbo adds these parameters when it failed (docs/clients/turbo.md#login). Any page can link here with any value, so
// this page does not show the values.
if (["error", "loginError", "ssoEmail"].some((name) => query.has(name))) show("failure", { moves: false });
