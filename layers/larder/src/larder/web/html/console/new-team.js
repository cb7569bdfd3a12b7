// Create a team.

function NewTeam({ user, reload }) {
  const [slug, setSlug] = useState("");
  const [isTyped, setTyped] = useState(false);
  const [needsProof, setNeedsProof] = useState(false);
  const suggest = ({ target }) => {
    if (!isTyped) setSlug(slugOf(target.value));
  };
  const act = async (fields) => {
    const { data, code, problem } = await call("POST", "/v1/teams", { name: fields.name, slug: fields.slug });
    setNeedsProof(code === "email_not_proven");
    if (problem) return { problem, field: "slug" };
    await reload();
    go(`/console/t/${data.slug}`);
  };
  const prove = async () => {
    const { problem } = await call("POST", "/api/auth/send-verification-email", { email: user.email, callbackURL: "/console/new-team" });
    announce(problem ?? "We have sent you a link. Open it in this browser.");
  };
  return html`<${Head} title="Create a team" />
    <${Card}>
      <${Form} action="Create the team" busy="Creating the team …" act=${act}>
        <${Field} label="Name" name="name" required maxlength="100" autocomplete="off" onInput=${suggest} />
        <${Field} label="Slug" name="slug" required maxlength="48" autocomplete="off" autocapitalize="none" spellcheck="false" value=${slug}
          onInput=${({ target }) => {
            setTyped(true);
            setSlug(target.value);
          }} hint="Builds name the team by its slug. Lower-case letters, digits and hyphens." />
      <//>
      <p class="soft">Larder explains why tasks miss. For that, it keeps names of files and variables of reported runs, no values. The settings of the team turn this off.</p>
      ${needsProof && html`<p><${Button} onClick=${prove}>Send a link to verify your address<//></p>`}
    <//>`;
}

const slugOf = (name) =>
  name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, "")
    .trim()
    .replace(/[ -]+/g, "-")
    .slice(0, 48);

