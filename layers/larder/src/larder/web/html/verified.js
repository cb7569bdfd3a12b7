onSubmit("ask-form", async ({ email }) => {
  const { problem } = await request("POST", "/api/auth/send-verification-email", { email });
  if (problem) return problem;
  fill("sent-to", email);
  show("sent");
});

if (query.has("error")) show("dead-link", { moves: false });
else if (query.has("confirmed")) show("confirmed", { moves: false });
