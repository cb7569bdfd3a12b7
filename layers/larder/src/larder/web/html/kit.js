const element = (id) => document.getElementById(id);

/** Insert a value as text, never as markup. All values from outside enter the page here. */
function fill(id, text) {
  element(id).textContent = text;
}

/** Show one section and hide the others. `moves` focuses its heading, for users of keyboards and screen readers. */
function show(id, { moves = true } = {}) {
  for (const section of document.querySelectorAll("main > section")) {
    if (section.hidden && section.id === id) section.querySelectorAll("form").forEach(clear);
    section.hidden = section.id !== id;
  }
  const heading = element(id).querySelector("h1");
  document.title = heading.textContent + document.title.slice(document.title.lastIndexOf(" · "));
  if (moves) {
    heading.tabIndex = -1;
    heading.focus();
    scrollTo(0, 0);
  }
}

/** Remove what an earlier use has left in a form: its problem, and passwords. */
function clear(form) {
  hideProblem(form);
  for (const box of form.querySelectorAll("[data-shows]:checked")) box.click();
  for (const input of form.querySelectorAll("[autocomplete$=password]")) input.value = "";
}

/** Call `act` on submit of the form with this id. */
function onSubmit(id, act) {
  whenSubmitted(element(id), act);
}

for (const place of document.querySelectorAll("[data-home]")) place.textContent = home;

function onClick(id, act) {
  element(id).addEventListener("click", act);
}

for (const box of document.querySelectorAll("[data-shows]"))
  box.addEventListener("change", () => {
    element(box.dataset.shows).type = box.checked ? "text" : "password";
  });

// Lines of commands scroll instead of wrapping, and can be copied. Browsers offer the clipboard only to secure pages.
for (const lines of document.querySelectorAll("pre")) {
  lines.tabIndex = 0;
  if (!navigator.clipboard) continue;
  const button = Object.assign(document.createElement("button"), { type: "button", className: "copy" });
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(lines.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  button.ariaLive = "polite";
  lines.after(button);
}

for (const input of document.querySelectorAll("[autocomplete=new-password]")) {
  input.minLength = Number(options.shortestPassword);
  input.maxLength = Number(options.longestPassword);
}
for (const hint of document.querySelectorAll("[data-password-hint]"))
  hint.textContent = `At least ${options.shortestPassword} characters.`;
