const TOKEN = document.querySelector("meta[name=token]").content;

// Writes only a difference, so that the browser does not lay out an unchanged page again.
function put(target, words) {
  if (target.textContent !== words) target.textContent = words;
}

const plural = (count, word, words = `${word}s`) => `${count.toLocaleString("en-US")} ${count === 1 ? word : words}`;

let behindMs = 0; // our clock behind the server's, which deadlines are by
const now = () => Date.now() + behindMs;

function span(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const two = (value) => String(value).padStart(2, "0");
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}:${two(seconds % 60)} min`;
  const hours = Math.floor(seconds / 3600);
  if (hours < 48) return `${hours}:${two(Math.floor(seconds / 60) % 60)} h`;
  return `${Math.floor(hours / 24)} days`;
}

const clock = (iso) => new Date(iso).toLocaleTimeString("en-GB");

let toastTimer = 0;
function toast(words) {
  byId("toast").textContent = words;
  byId("toast").classList.add("up");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => byId("toast").classList.remove("up"), 5000);
}

// Sends an order and shows the result, in a sentence.
async function post(path, order) {
  let came;
  try {
    const answer = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Sigwrap-Token": TOKEN },
      body: JSON.stringify(order),
    });
    came = answer.headers.get("Content-Type") === "application/json"
      ? await answer.json()
      : { ok: false, said: await answer.text() };
  } catch {
    came = { ok: false, said: "Cannot reach sigwrap serve: nothing was done" };
  }
  toast(came.said);
  return came.ok;
}

// Asks for confirmation, with the focus on the text or on Cancel. Resolves to null, or to the text.
function confirmed({ title, words, yes, no = "Cancel", what = "", isRed = true }) {
  const dialog = byId("ask");
  if (dialog.open) return Promise.resolve(null);
  put(byId("ask-title"), title);
  put(byId("ask-words"), words);
  put(byId("ask-yes"), yes);
  put(byId("ask-no"), no);
  put(byId("ask-what"), what);
  byId("ask-yes").className = isRed ? "red" : "yes";
  byId("ask-label").hidden = !what;
  byId("ask-text").value = "";
  dialog.returnValue = "no";
  dialog.showModal();
  byId(what ? "ask-text" : "ask-no").focus();
  return new Promise((done) => {
    dialog.addEventListener(
      "close",
      () => done(dialog.returnValue === "yes" ? byId("ask-text").value : null),
      { once: true },
    );
  });
}

// Enter in the text confirms; before a red button it only moves the focus to that button.
byId("ask-text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  if (byId("ask-yes").className === "red") byId("ask-yes").focus();
  else byId("ask").close("yes");
});

// Keys that come just after a dialog has closed were meant for the dialog.
const STILL_TYPED_MS = 1000;
let closedAt = -STILL_TYPED_MS;
for (const each of document.querySelectorAll("dialog")) each.addEventListener("close", () => (closedAt = performance.now()));
const isStillTyped = () => performance.now() - closedAt < STILL_TYPED_MS;
