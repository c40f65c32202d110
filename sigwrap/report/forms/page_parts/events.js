// The list of events shows only the rows in view, so that any number of them opens and scrolls at
// once.

const events = readJson("events");
const rows = list(events.rows);
const [SEQ, AT_US, TYPE, PID, OUTCOME, SAID, RULE, COMMAND, FLAGS] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
const [ASKED_ABOUT, ANOTHER_TRY] = [1, 2];

const typeOf = (row) => events.types[row[TYPE]];
const outcomeOf = (row) => events.outcomes[row[OUTCOME]];
const ruleOf = (row) => events.rules[row[RULE]];
const commandOf = (row) => events.commands[row[COMMAND]];
const isAskedAbout = (row) => (row[FLAGS] & ASKED_ABOUT) > 0;
const isAnotherTry = (row) => (row[FLAGS] & ANOTHER_TRY) > 0;
const needsAttention = (row) => !["", "allowed"].includes(outcomeOf(row)) || typeOf(row).startsWith("interrupt_");

const placeOfSeq = new Map(rows.map((row, place) => [row[SEQ], place]));
const view = { places: [...rows.keys()], selected: -1, height: 26 };
const AROUND = 8;

let searched = null; // made by the first filter that needs it
function searchable(place) {
  searched ??= rows.map((row) =>
    [row[PID], typeOf(row), outcomeOf(row), row[SAID], ruleOf(row), commandOf(row)].join(" ").toLowerCase());
  return searched[place];
}

function eventThing(place) {
  const row = rows[place];
  return {
    text: (value) => searchable(place).includes(value),
    rule: (value) => ruleOf(row).toLowerCase().includes(value),
    pid: (value, any) => any.includes(String(row[PID])),
    only: (value, any) => any.includes(outcomeOf(row)) || (any.includes("asked") && isAskedAbout(row)),
    type: (value, any) => any.some((each) => typeOf(row).includes(each)),
  };
}

function filterEvents() {
  const kept = view.places[view.selected];
  view.places = [...rows.keys()].filter((place) => passes(eventThing(place)));
  view.selected = kept === undefined ? -1 : view.places.indexOf(kept);
  const all = figure(rows.length);
  byId("events-count").textContent = filter.terms.length ? `${figure(view.places.length)} of ${all}` : all;
  byId("found").textContent = filter.terms.length ? foundWords() : "";
  byId("list").scrollTop = Math.max(0, view.selected * view.height - byId("list").clientHeight / 2);
  drawRows();
}

// Retries along PATH are rows here; the counts above the list leave them out.
function foundWords() {
  const tries = view.places.filter((place) => isAnotherTry(rows[place])).length;
  const unknown = unknownWords().map((each) => `; ${each}`).join("");
  return plural(view.places.length, "event") + (tries ? `, ${figure(tries)} of them again along PATH` : "") + unknown;
}

const UNKNOWN_SHOWN = 40;

function unknownWords() {
  const known = [...OUTCOMES, "asked"];
  const cut = (word) => (word.length > UNKNOWN_SHOWN ? `${word.slice(0, UNKNOWN_SHOWN)}…` : word);
  return filter.terms.flatMap((term) => {
    if (term.field === "only") {
      return term.any.filter((each) => each && !known.includes(each)).map((each) => `only: doesn't know ${cut(each)}`);
    }
    const isKnown = term.field !== "rule" || events.rules.some((rule) => rule.toLowerCase().includes(term.value));
    return isKnown ? [] : [`no event has the rule ${cut(term.value)}`];
  });
}

function drawRows() {
  const box = byId("list");
  view.height = parseFloat(getComputedStyle(box).getPropertyValue("--row")) || 26;
  const first = Math.max(0, Math.floor(box.scrollTop / view.height) - AROUND);
  const last = Math.min(view.places.length, Math.ceil((box.scrollTop + box.clientHeight) / view.height) + AROUND);
  const made = [];
  for (let at = first; at < last; at++) {
    const line = eventLine(rows[view.places[at]], at);
    line.style.top = `${at * view.height}px`;
    made.push(line);
  }
  byId("rows").style.height = `${view.places.length * view.height}px`;
  byId("rows").replaceChildren(...made);
  if (!view.places.length) byId("rows").append(element("p", { class: "none" }, "No event matches the filter."));
  const isInView = view.selected >= first && view.selected < last;
  if (isInView) box.setAttribute("aria-activedescendant", `row-${view.selected}`);
  else box.removeAttribute("aria-activedescendant");
}

function eventLine(row, at) {
  const outcome = outcomeOf(row);
  return element(
    "div",
    {
      class: `row ${outcome} ${isAnotherTry(row) ? "again" : ""} ${at === view.selected ? "selected" : ""}`,
      id: `row-${at}`,
      role: "option",
      "aria-selected": at === view.selected ? "true" : "false",
      "aria-posinset": at + 1,
      "aria-setsize": view.places.length,
      onclick: () => select(at, { open: true }),
    },
    element("span", { class: "seq" }, String(row[SEQ])),
    element("span", { class: "at" }, offset(row[AT_US])),
    element("span", { class: "pid" }, String(row[PID])),
    element("span", { class: "type", title: typeWords(typeOf(row)) }, outcome && outcome !== "allowed" ? badge(outcome) : typeWords(typeOf(row))),
    element("span", { class: "said" },
      isAnotherTry(row) ? element("span", { class: "dim" }, "again along PATH: ") : null, row[SAID] || typeWords(typeOf(row))),
  );
}

const typeWords = (type) => type.replaceAll("_", " ");

function select(at, { open = false, quiet = false } = {}) {
  if (!view.places.length) return;
  view.selected = Math.max(0, Math.min(at, view.places.length - 1));
  const box = byId("list");
  const top = view.selected * view.height;
  if (top < box.scrollTop) box.scrollTop = top;
  if (top + view.height > box.scrollTop + box.clientHeight) box.scrollTop = top + view.height - box.clientHeight;
  drawRows();
  const row = rows[view.places[view.selected]];
  if (open || !byId("detail").hidden) showDetail(row);
  if (!quiet) history.replaceState(null, "", `#e${row[SEQ]}`);
  revealInTree(row);
}

function step(by) {
  select(view.selected < 0 ? (by > 0 ? 0 : view.places.length - 1) : view.selected + by);
}

function stepToAttention(by) {
  for (let at = view.selected + by; at >= 0 && at < view.places.length; at += by) {
    if (needsAttention(rows[view.places[at]])) return select(at);
  }
  toast(by > 0 ? "No later event needs attention." : "No earlier event needs attention.");
}

// Jump to an event. If the filter hides it, clear the filter.
function jump(seq) {
  const place = placeOfSeq.get(seq);
  if (place === undefined) {
    toast(`Event ${seq} is not among the ${plural(rows.length, "event")} of this page.`);
    return;
  }
  if (!view.places.includes(place)) {
    setFilter("");
    toast("The filter hid this event, and was cleared.");
  }
  const at = view.places.indexOf(place);
  byId("list").scrollTop = at * view.height - byId("list").clientHeight / 2;
  select(at, { open: true });
  const { top, bottom } = byId("list").getBoundingClientRect();
  if (top < 0 || bottom > innerHeight + 1) byId("events-section").scrollIntoView({ block: "start" });
  byId("list").focus({ preventScroll: true });
}

const eventLink = (seq, words = `event ${seq}`) =>
  element("a", { href: `#e${seq}`, class: "event-link", onclick: (click) => { click.preventDefault(); jump(seq); } }, words);

function showDetail(row) {
  const fields = [
    ["event", `${row[SEQ]}, ${offset(row[AT_US])} after the start`],
    ["type", narrowing(`type:${typeOf(row)}`, "Only events of this type", typeOf(row))],
    ["process", narrowing(`pid:${row[PID]}`, "Only events of this process", [row[PID], commandOf(row)].join(" "))],
    ["outcome", outcomeOf(row) && badge(outcomeOf(row))],
    ["rule", ruleOf(row) && narrowing(`rule:${quoted(ruleOf(row))}`, "Only decisions of this rule", ruleOf(row))],
    ["says", row[SAID]],
    ["counts", isAnotherTry(row) && "counted with the attempt before it, in another directory of PATH"],
  ];
  const box = byId("detail");
  box.replaceChildren(
    element("button", { type: "button", class: "small close", "aria-label": "Close the event", onclick: closeDetail }, "×"),
    element("dl", {}, ...fields.filter(([, value]) => value).flatMap(([name, value]) => [
      element("dt", {}, name), element("dd", {}, value),
    ])),
  );
  box.hidden = false;
}

function closeDetail() {
  byId("detail").hidden = true;
  drawRows();
}

function startEvents() {
  byId("events-section").hidden = false;
  const all = report.selected_events ?? report.events;
  if (all > rows.length) {
    byId("events-note").hidden = false;
    byId("events-note").textContent =
      `Of ${plural(all, "event")}, ${figure(rows.length)} are here: those that need attention first, and a sample of the others.` +
      " sigwrap replay --instant has all.";
  }
  const box = byId("list");
  let isDue = false;
  box.addEventListener("scroll", () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => { isDue = false; drawRows(); });
  });
  new ResizeObserver(drawRows).observe(box);
  filter.listeners.push(filterEvents);
  filterEvents();
}
