// Events of the chosen session, the newest at the bottom. The list keeps a limited number.

const MOST_ROWS = 500;
let kept = []; // the newest, whether they are shown or not
let fresh = [];
let leftOut = 0;
let isFollowing = true;
let frame = 0;

for (const outcome of ["allowed", "audited", "approved", "redirected", "absorbed", "denied", "asked", "expired"]) {
  byId("outcome").append(element("option", { value: outcome }, outcome));
}

function forgetEvents(seen) {
  kept = [];
  fresh = [];
  leftOut = 0;
  isFollowing = true;
  byId("rows").replaceChildren();
  put(byId("events-of"), seen ? `of ${seen.name || seen.id}` : "");
  draw();
}

function takeEvents(told) {
  if (told.session_id !== chosen) return;
  leftOut += told.left_out;
  fresh.push(...told.events);
  if (fresh.length > MOST_ROWS) leftOut += fresh.splice(0, fresh.length - MOST_ROWS).length;
  // A hidden tab has no frames, and events must not pile up in it.
  frame ||= requestAnimationFrame(draw);
}

function isWanted(event) {
  const outcome = byId("outcome").value;
  if (outcome && event.outcome !== outcome) return false;
  const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = `${event.text} ${event.type} ${event.pid}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

const row = (event) =>
  element(
    "li",
    { class: `row ${event.outcome || ""}`, title: event.type },
    element("span", { class: "at" }, clock(event.time)),
    element("span", { class: "pid" }, String(event.pid)),
    element("span", { class: `badge ${event.outcome || ""}` }, event.outcome || "·"),
    element("span", { class: "said" }, event.text),
  );

function draw() {
  frame = 0;
  const [list, rows] = [byId("list"), byId("rows")];
  rows.append(...fresh.filter(isWanted).map(row));
  kept = kept.concat(fresh);
  fresh = [];
  if (kept.length > MOST_ROWS) leftOut += kept.splice(0, kept.length - MOST_ROWS).length;
  const before = rows.scrollHeight;
  while (rows.childElementCount > MOST_ROWS) rows.firstElementChild.remove();
  if (isFollowing) list.scrollTop = rows.scrollHeight;
  else list.scrollTop -= before - rows.scrollHeight;
  tellCounts();
}

function drawAll() {
  kept = kept.concat(fresh);
  fresh = [];
  byId("rows").replaceChildren(...kept.filter(isWanted).map(row));
  if (isFollowing) byId("list").scrollTop = byId("rows").scrollHeight;
  tellCounts();
}

const nothingYet = () => (lines.get(chosen)?.seen.state === "ended" ? "The report of this session has its events." : "No events yet.");

function tellCounts() {
  const shown = byId("rows").childElementCount;
  const parts = [];
  if (shown < kept.length) parts.push(`${shown} of the last ${kept.length} match`);
  if (leftOut) parts.push(`${plural(leftOut, "earlier event")} not shown: see the report`);
  put(byId("events-note"), parts.join(" · ") || (kept.length ? plural(kept.length, "event") : nothingYet()));
  byId("follow").hidden = isFollowing;
}

byId("list").addEventListener("scroll", () => {
  const list = byId("list");
  isFollowing = list.scrollHeight - list.scrollTop - list.clientHeight < 24;
  byId("follow").hidden = isFollowing;
});
byId("follow").addEventListener("click", () => {
  isFollowing = true;
  byId("list").scrollTop = byId("list").scrollHeight;
});
byId("filter").addEventListener("input", drawAll);
byId("outcome").addEventListener("change", drawAll);
