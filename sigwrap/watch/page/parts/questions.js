// Approval requests, the oldest first. A click or a key that was meant for one must never answer
// another: a request that has just come or moved takes no answer yet, and while the pointer or the
// focus is on the list, a closed request keeps its place.

const TOO_NEW_MS = 700;
const questions = new Map(); // by session and id
let waitsBefore = -1;

const keyOf = (asked) => `${asked.session_id} ${asked.id}`;
const openOnes = () => [...questions.values()].filter((each) => !each.isOver);
const hasFocus = (each) => each.node.contains(document.activeElement);
const isBusyHere = () => byId("waiting").matches(":hover") || openOnes().some(hasFocus);

function showQuestions(waiting, sessions) {
  const wanted = new Set(waiting.map(keyOf));
  for (const [key, each] of questions) if (!wanted.has(key)) end(each);
  const names = new Map(sessions.map((each) => [each.id, each.name || each.id]));
  let hasCome = null;
  for (const asked of waiting) {
    const known = questions.get(keyOf(asked));
    if (known) {
      known.asked.deadline = asked.deadline; // it is later once an approver watches
      continue;
    }
    const made = question(asked, names.get(asked.session_id) || asked.session_id);
    questions.set(keyOf(asked), made);
    byId("waiting").append(made.node);
    tick(made);
    hasCome = asked;
  }
  if (hasCome && waitsBefore >= 0) put(byId("told"), `New approval request: ${hasCome.what}`);
  clearOver();
  const count = openOnes().length;
  if (count !== waitsBefore) {
    waitsBefore = count;
    put(byId("waiting-title"), count ? plural(count, "approval request") : "Approval requests");
    document.title = count ? `(${count}) sigwrap` : "sigwrap";
  }
}

function question(asked, session) {
  const made = { asked, isOver: false, isAsking: false, since: 0, place: NaN, buttons: [] };
  const fact = (name, value) => (value ? [element("dt", {}, name), element("dd", {}, element("code", {}, value))] : []);
  const button = (words, key, kind, act) => {
    const found = element("button", { type: "button", class: kind, title: `${words} (${key})`, onclick: () => answer(made, act) }, words);
    made.buttons.push(found);
    return found;
  };
  const rule = asked.message ? `${asked.rule}: ${asked.message}` : asked.rule;
  made.left = element("span", { class: "left" });
  made.node = element(
    "li",
    { class: "question", tabindex: "0", onfocusin: () => setCurrent(made) },
    element("div", { class: "top" }, element("span", {}, session), element("span", {}, `${asked.process} (${asked.pid}) ${asked.wants}`), made.left),
    element("span", { class: "what" }, asked.what + (asked.is_cut ? " … (in full: sigwrap watch --full)" : "")),
    element(
      "dl",
      { class: "facts" },
      ...fact("runs", asked.runs),
      ...fact("loads", asked.loads),
      ...fact("files", asked.files.join("\n")),
      ...fact("directory", asked.folder),
      ...fact("rule", rule),
      ...fact("policy", asked.policy),
      ...fact("note", asked.note),
    ),
    element(
      "div",
      { class: "answers" },
      button("Approve once", "y", "yes", "yes"),
      asked.may_always ? button("Approve for this session", "a", "", "always") : null,
      button("Deny", "n", "", "no"),
      button("Deny, say why…", "m", "", "message"),
    ),
  );
  return made;
}

// Removes closed requests, unless the user may be about to answer one.
function clearOver() {
  const isLast = !openOnes().length;
  let next = null;
  if (isLast || !isBusyHere()) {
    for (const [key, each] of [...questions].reverse()) {
      if (!each.isOver) next = each;
      else {
        const hadFocus = hasFocus(each);
        each.node.remove();
        questions.delete(key);
        if (hadFocus) next?.node.focus();
      }
    }
  }
  byId("nothing-waits").hidden = questions.size > 0;
  questions.forEach(tick);
}

// A request also moves when another goes or a banner comes. Scrolling does not count.
function isSettled(each) {
  const place = Math.round(each.node.getBoundingClientRect().top + scrollY);
  if (place !== each.place) {
    each.place = place;
    each.since = performance.now();
  }
  return performance.now() - each.since >= TOO_NEW_MS;
}

// The next request is selected, and takes no key until there was time to read it.
function end(each) {
  if (each.isOver) return;
  const all = openOnes();
  const next = all[all.indexOf(each) + 1] || all[all.indexOf(each) - 1];
  each.isOver = true;
  each.node.classList.add("over");
  each.node.removeAttribute("aria-current");
  for (const button of each.buttons) button.disabled = true;
  put(each.left, "approved, denied or expired");
  if (current === each) {
    current = null;
    if (next) {
      next.since = performance.now();
      tick(next);
      if (hasFocus(each)) next.node.focus();
      else setCurrent(next);
    }
  }
}

function tick(each) {
  if (each.isOver) return;
  const leftMs = Date.parse(each.asked.deadline) - now();
  put(each.left, leftMs > 0 ? `expires in ${span(leftMs).replace(/ min$/, "")}` : "expired");
  each.left.classList.toggle("soon", leftMs < 30000);
  const mayAnswer = isSettled(each) && !isLost && !each.isAsking;
  for (const button of each.buttons) button.disabled = !mayAnswer;
}

async function answer(each, act) {
  tick(each);
  if (each.isOver || each.buttons[0].disabled) return;
  const { session_id, id, what } = each.asked;
  let message = "";
  if (act === "message") {
    message = await confirmed({ title: "Deny with a message", words: what, what: "Message for the caller:", yes: "Deny", isRed: false });
    if (message === null) return;
  }
  each.isAsking = true;
  tick(each);
  const isDone = act === "yes" || act === "always"
    ? await post("/approve", { session_id, id, always: act === "always" })
    : await post("/deny", { session_id, id, message });
  each.isAsking = false;
  if (isDone) end(each);
  else tick(each);
}

let current = null;
function setCurrent(each) {
  current?.node.removeAttribute("aria-current");
  current = each.isOver ? null : each;
  current?.node.setAttribute("aria-current", "true");
}

function step(by) {
  const all = openOnes();
  if (!all.length) return;
  const at = all.indexOf(current);
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
  all[next].node.focus();
}

function answerCurrent(act) {
  if (!current || current.isOver) return toast(openOnes().length ? "Select a request first (j)" : "No approval requests");
  if (act === "always" && !current.asked.may_always) toast("This request can be approved once only");
  else answer(current, act);
}

byId("waiting").addEventListener("pointerleave", clearOver);
setInterval(() => questions.forEach(tick), 250);
