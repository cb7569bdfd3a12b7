const token = query.get("token");
// Password managers store the new password for this address.
const email = new URLSearchParams(location.hash.slice(1)).get("email");
if (email) {
  element("choose-email").value = email;
  element("choose-email-field").hidden = false;
}
// Remove the token from the address bar and the history: it gives access to the account.
if (token !== null) history.replaceState(null, "", location.pathname);

onSubmit("ask-form", async ({ email }) => {
  const { problem } = await request("POST", "/api/auth/request-password-reset", { email });
  if (problem) return problem;
  fill("sent-to", email);
  show("sent");
});

onSubmit("choose-form", async ({ newPassword }, form) => {
  const { code, problem } = await request("POST", "/api/auth/reset-password", { newPassword, token });
  if (code === "INVALID_TOKEN") return deadLink();
  if (problem) return problem;
  form.reset();
  show("changed");
});

function deadLink() {
  element("dead-link").hidden = false;
  show("ask");
}

onClick("ask-again", () => show("ask"));
if (token !== null) show("choose", { moves: false });
else element("dead-link").hidden = !query.has("error");
