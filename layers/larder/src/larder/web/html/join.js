const token = query.get("token");
let session = "";

async function look({ moves = true } = {}) {
  if (!token) return show("no-invitation", { moves });
  const { said, problem } = await ask("GET", "/api/auth/get-session");
  if (problem) {
    fail(problem, { moves });
  } else if (said === null) {
    askWho("Sign in, or create an account, with the address that the invitation was sent to.", { moves });
  } else {
    session = said.session.token;
    fill("invitation-email", said.user.email);
    show("invitation", { moves });
  }
}

onSubmit("invitation-form", async () => {
  // Joining takes a session's token, which no other page can send along.
  const headers = { authorization: `Bearer ${session}` };
  const { status, said, problem } = await ask("POST", "/v1/teams/join", { token }, headers);
  if (status === 404) return show("no-invitation");
  if (status === 401) return look();
  if (problem) return problem;
  fill("joined-team", said.name);
  fill("joined-slug", said.slug);
  fill("joined-role", said.role);
  show("joined");
});

look({ moves: false });
