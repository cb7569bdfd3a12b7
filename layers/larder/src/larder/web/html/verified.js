const token = query.get("confirm");
// Remove the token from the address bar and the history: it confirms a change of the address.
if (token !== null) history.replaceState(null, "", location.pathname);

onSubmit("confirm-form", async () => {
  const { status, problem } = await request("POST", "/api/auth/confirm-email-change", { token });
  if (status === 401) return show("dead-link");
  if (problem) return problem;
  show("confirmed");
});

onSubmit("ask-form", async ({ email }) => {
  const { problem } = await request("POST", "/api/auth/send-verification-email", { email });
  if (problem) return problem;
  fill("sent-to", email);
  show("sent");
});

if (query.has("error")) show("dead-link", { moves: false });
else if (token !== null) show("confirm", { moves: false });
