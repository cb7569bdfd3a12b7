// Forms of all pages: fields with their labels in `.field`, a `.problem` above them, and a button that submits.

/** Show a problem: a rule below each field that it names, the rest above the form. Returns the first such field. */
function showProblem(form, problem) {
  hideProblem(form);
  const named = [];
  const others = [];
  // Such as `[body.name] Field required; email: must be an email address`.
  for (const part of problem.split("; ")) {
    const [, name, rule] = part.match(/^(?:\[\w+\.)?(\w+)(?:\] |: )(.+)$/) ?? [];
    const field = name && form.elements.namedItem(name);
    if (field && field.offsetParent !== null) named.push([field, rule]);
    else others.push(part);
  }
  for (const [field, rule] of named) {
    const line = Object.assign(document.createElement("p"), { className: "wrong", id: `${field.id}-problem` });
    line.textContent = field.dataset.example ?? `${field.labels[0].textContent} ${rule}.`;
    field.closest(".field").append(line);
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", `${line.id} ${field.getAttribute("aria-describedby") ?? ""}`.trim());
  }
  const box = form.querySelector(".problem");
  box.textContent = others.join("; ").replace(/^[a-z]/, (letter) => letter.toUpperCase());
  box.hidden = others.length === 0;
  return named[0]?.[0];
}

function hideProblem(form) {
  const box = form.querySelector(".problem");
  box.hidden = true;
  box.textContent = "";
  for (const line of form.querySelectorAll(".wrong")) {
    const field = line.closest(".field").querySelector("[aria-invalid]");
    field.removeAttribute("aria-invalid");
    const hints = field.getAttribute("aria-describedby").replace(line.id, "").trim();
    if (hints) field.setAttribute("aria-describedby", hints);
    else field.removeAttribute("aria-describedby");
    line.remove();
  }
}

/** Call `act` with the form's fields on submit, and show what it returns as a problem, with the focus on the field that
 * the problem names. `act` can return `{ problem, field }` to name the field itself. The button keeps the focus
 * meanwhile, and says what happens. */
function whenSubmitted(form, act) {
  const button = form.querySelector("[type=submit]");
  const label = button.textContent;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (form.ariaBusy === "true") return;
    form.ariaBusy = button.ariaDisabled = "true";
    button.textContent = button.dataset.busy;
    hideProblem(form);
    const outcome = await act(Object.fromEntries(new FormData(form)), form);
    form.ariaBusy = button.ariaDisabled = "false";
    button.textContent = label;
    const { problem, field } = typeof outcome === "string" ? { problem: outcome } : (outcome ?? {});
    if (!problem) return;
    const wrong = showProblem(form, problem) ?? (field && form.elements.namedItem(field));
    wrong?.focus();
    wrong?.select?.();
  });
}

