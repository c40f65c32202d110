// The connection, the red button, and the keys.

const SILENT_MS = 25000; // the server says something every ten seconds
const AGAIN_MS = 1500;
let source = null;
let isLost = true;
let heard = 0;
let againTimer = 0;

function connect() {
  source?.close();
  clearTimeout(againTimer);
  heard = Date.now();
  source = new EventSource(`/stream?session=${encodeURIComponent(chosen)}`);
  source.addEventListener("board", (event) => hear(() => showBoard(JSON.parse(event.data))));
  source.addEventListener("events", (event) => hear(() => takeEvents(JSON.parse(event.data))));
  source.addEventListener("beat", () => hear(() => {}));
  source.addEventListener("error", lose);
}

function hear(show) {
  heard = Date.now();
  if (isLost) {
    isLost = false;
    document.body.classList.remove("gone");
    byId("lost").hidden = true;
    forgetEvents(lines.get(chosen)?.seen); // they come again
  }
  show();
}

// Reconnects itself: a browser gives up after one refusal.
function lose() {
  source?.close();
  if (!isLost) put(byId("state"), "");
  isLost = true;
  document.body.classList.add("gone");
  byId("lost").hidden = false;
  put(byId("lost"), "Connection lost: this page is out of date and cannot answer requests. Reconnecting… If sigwrap serve has ended, start it again and open the address that it prints.");
  questions.forEach(tick);
  clearTimeout(againTimer);
  againTimer = setTimeout(connect, AGAIN_MS);
  fetch("/page.css", { cache: "no-store" }).then((answered) => {
    if (answered.status === 403 && isLost) put(byId("lost"), "sigwrap serve was restarted and does not know this page: open the address that it printed.");
  }, () => {});
}

setInterval(() => {
  if (Date.now() - heard > SILENT_MS) lose();
}, 2000);

function showBoard(board) {
  behindMs = Date.parse(board.now) - Date.now();
  showQuestions(board.waiting, board.sessions);
  showSessions(board);
  const running = board.sessions.filter((each) => each.state !== "ended").length;
  const waits = board.waiting.length;
  put(byId("state"), `${plural(running, "session")} running, ${waits ? plural(waits, "approval request") : "no approval requests"}`);
  showBanner(board.killswitch);
  byId("problems").hidden = !board.problems.length;
  byId("problems").replaceChildren(...board.problems.map((each) => element("li", {}, each)));
}

function showBanner(state) {
  byId("banner").hidden = !state;
  byId("red").disabled = Boolean(state);
  if (!state) return;
  const since = state.since ? ` since ${new Date(state.since).toLocaleString("en-GB")}` : "";
  put(byId("banner-words"), `The kill switch is on${since}${state.by ? `, by ${state.by}` : ""}${state.reason ? `: ${state.reason}` : ""}. No session can start.`);
}

byId("red").addEventListener("click", async () => {
  const reason = await confirmed({
    title: "Stop everything?",
    words: "This ends all your sessions on this machine now. No session can start until you turn the kill switch off.",
    what: "Reason (optional, shown in messages and logs):",
    yes: "Stop everything",
  });
  if (reason !== null) post("/killswitch/on", { reason });
});

byId("lift").addEventListener("click", async () => {
  const answered = await confirmed({ title: "Turn off the kill switch?", words: "Sessions can start again.", yes: "Turn off" });
  if (answered !== null) post("/killswitch/off", {});
});

byId("help-button").addEventListener("click", () => byId("help").showModal());

const KEYS = {
  j: () => step(1),
  ArrowDown: () => step(1),
  k: () => step(-1),
  ArrowUp: () => step(-1),
  y: () => answerCurrent("yes"),
  a: () => answerCurrent("always"),
  n: () => answerCurrent("no"),
  m: () => answerCurrent("message"),
  "/": () => byId("filter").focus(),
  "?": () => byId("help").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || isStillTyped() || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape" && event.target === byId("filter")) {
    byId("filter").value = "";
    drawAll();
    return byId("list").focus();
  }
  if (event.target.closest("input, select")) return;
  if (event.key.startsWith("Arrow") && (event.target.closest("#list") || !openOnes().length)) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

connect();
