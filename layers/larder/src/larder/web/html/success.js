// What a client may add when it has failed (reference: turbo-client.md, 5). Whoever links here can write anything behind
// these names, so none of it is shown.
if (["error", "loginError", "ssoEmail"].some((name) => query.has(name))) show("failure", { moves: false });
