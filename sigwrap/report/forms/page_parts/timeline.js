// When how much happened, and above that what one would look at first, a lane for each kind. Its
// width is cut into slots: a click or Enter goes to the first event of the slot that needs attention,
// or to its first.

const SLOTS = 200;
const LANES = [
  ["denied", "denied"],
  ["changed", "redirected or absorbed"],
  ["asked", "approved or audited"],
  ["session", "interrupt or incident"],
  ["died", "killed by a signal"],
];
const LANE_HEIGHT = 9;
const BARS_HEIGHT = 44;

const laneOfOutcome = new Map([["denied", 0], ["redirected", 1], ["absorbed", 1], ["approved", 2], ["audited", 2]]);

function startTimeline() {
  if (rows.length < 2) return;
  const lastUs = Math.max(rows.reduce((most, row) => Math.max(most, row[AT_US]), 0), 1);
  const slots = Array.from({ length: SLOTS }, () => ({ count: 0, first: null, lanes: LANES.map(() => null) }));
  const slotAt = (us) => slots[Math.max(0, Math.min(SLOTS - 1, Math.floor((us / lastUs) * SLOTS)))];
  const mark = (us, lane, seq) => (slotAt(us).lanes[lane] ??= { seq, count: 0 }).count++;
  for (const row of rows) {
    const slot = slotAt(row[AT_US]);
    slot.count++;
    slot.first ??= row[SEQ];
    const lane = laneOfOutcome.get(outcomeOf(row)) ?? (typeOf(row).startsWith("interrupt_") ? 3 : undefined);
    if (lane !== undefined) mark(row[AT_US], lane, row[SEQ]);
  }
  for (const each of list(record(report.incidents).found)) mark(each.first_offset_ns / 1e3, 3, each.first_seq);
  for (const each of list(record(report.died_of_signal).found)) mark(each.offset_ns / 1e3, 4, each.seq);
  drawTimeline(slots, lastUs);
}

function drawTimeline(slots, lastUs) {
  const used = LANES.map((_, lane) => lane).filter((lane) => slots.some((slot) => slot.lanes[lane]));
  const height = BARS_HEIGHT + used.length * LANE_HEIGHT;
  const most = Math.max(...slots.map((slot) => slot.count));
  const drawing = svg("svg", { viewBox: `0 0 ${SLOTS} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  used.forEach((lane, at) => {
    const y = at * LANE_HEIGHT + 1;
    drawing.append(svg("rect", { class: "lane", x: 0, y, width: SLOTS, height: LANE_HEIGHT - 2 }));
    slots.forEach((slot, x) => {
      if (slot.lanes[lane]) drawing.append(svg("rect", { class: `mark ${LANES[lane][0]}`, x: x - 0.2, y, width: 1.4, height: LANE_HEIGHT - 2 }));
    });
  });
  slots.forEach((slot, x) => {
    if (!slot.count) return;
    const tall = Math.max(2, Math.sqrt(slot.count / most) * (BARS_HEIGHT - 4));
    drawing.append(svg("rect", { class: "density", x: x + 0.1, y: height - tall, width: 0.8, height: tall }));
  });
  const cursor = svg("rect", { class: "cursor", x: 0, y: 0, width: 1, height, visibility: "hidden" });
  drawing.append(cursor);
  const strip = element(
    "div",
    { class: "strip", tabindex: 0, role: "slider", "aria-label": "Timeline", "aria-valuemin": 0, "aria-valuemax": SLOTS - 1 },
    drawing,
  );
  strip.style.height = `${height}px`;
  const readout = element("span", { class: "readout" });
  const legend = used.map((lane) => element("span", { class: `key ${LANES[lane][0]}` }, LANES[lane][1]));
  byId("timeline").replaceChildren(
    strip,
    element("div", { class: "scale" }, element("span", {}, "+0 s"), readout, element("span", {}, offset(lastUs))),
    element("div", { class: "legend" }, ...legend, element("span", { class: "key density" }, "events")),
  );
  byId("timeline").prepend(drawBars(lastUs));
  byId("timeline-section").hidden = false;
  moveAlong(strip, slots, lastUs, cursor, readout);
}

const CALL_LANES = 6;
const PROCESS_LANES = 16;
const LABEL_SHARE = 0.16;

// Commands of tool calls, and below them every process from its first exec to its end.
function drawBars(lastUs) {
  const calls = list(record(report.steps).found).filter((step) => step.pid).map((step) => ({
    from: step.offset_ns / 1e3, to: (step.ended_offset_ns ?? lastUs * 1e3) / 1e3, seq: step.first_seq,
    words: shown(step.what), class: `call ${step.is_bad ? "bad" : ""}`,
  }));
  const living = new Map();
  const processes = [];
  for (const row of rows) {
    if (typeOf(row) === "process_exited") {
      const begun = living.get(row[PID]);
      if (begun) Object.assign(begun, { to: row[AT_US], class: `process ${/ died of /.test(row[SAID]) ? "died" : ""}` });
      living.delete(row[PID]);
    } else if (typeOf(row).startsWith("exec_") && outcomeOf(row) !== "denied" && !living.has(row[PID])) {
      const begun = { from: row[AT_US], to: lastUs, seq: row[SEQ], title: row[SAID], class: "process" };
      living.set(row[PID], begun);
      processes.push(begun);
    }
  }
  const box = element("div", { class: "bars" });
  let top = 0;
  for (const [bars, lanes, height, share] of [[calls, CALL_LANES, 20, LABEL_SHARE], [processes, PROCESS_LANES, 7, 0.004]]) {
    const ends = [];
    for (const bar of bars) {
      // The label is beside the bar: to its right, or at the page's end to its left.
      const isLate = bar.from > lastUs * (1 - share) && bar.words;
      const begin = isLate ? Math.min(bar.from, bar.to - lastUs * share) : bar.from;
      const end = Math.max(bar.to, begin + lastUs * share);
      let lane = ends.findIndex((each) => each <= begin);
      if (lane < 0 && ends.length < lanes) lane = ends.length;
      if (lane < 0) continue;
      ends[lane] = end;
      const made = element("button", { type: "button", tabindex: -1, class: `${bar.class} ${isLate ? "late" : ""}`, title: bar.title ?? bar.words, onclick: () => jump(bar.seq) }, bar.words ?? null);
      made.style.left = `${(begin / lastUs) * 100}%`;
      made.style.width = `${((end - begin) / lastUs) * 100}%`;
      made.style.backgroundSize = `${((bar.to - bar.from) / (end - begin)) * 100}% 100%`;
      made.style.top = `${top + lane * height}px`;
      box.append(made);
    }
    top += ends.length * height + 3;
  }
  box.style.height = `${top}px`;
  return box;
}

function moveAlong(strip, slots, lastUs, cursor, readout) {
  let at = 0;
  const isEmpty = (slot) => !slot.count && slot.lanes.every((lane) => lane === null);
  const look = (slot) => {
    at = Math.max(0, Math.min(slots.length - 1, slot));
    const { count, lanes } = slots[at];
    const marks = LANES.flatMap(([, words], lane) => (lanes[lane] ? [`${figure(lanes[lane].count)} ${words}`] : []));
    const words = `${offset((at / slots.length) * lastUs)}: ${[plural(count, "event"), ...marks].join(", ")}`;
    readout.textContent = words;
    strip.setAttribute("aria-valuenow", at);
    strip.setAttribute("aria-valuetext", words);
    cursor.setAttribute("x", at);
    cursor.setAttribute("visibility", "visible");
  };
  const under = (pointer) => {
    const { left, width } = strip.getBoundingClientRect();
    return Math.floor(((pointer.clientX - left) / width) * slots.length);
  };
  // A pointer is no more exact than some slots are wide.
  const nearest = (slot) => {
    for (let away = 0; away < slots.length; away++) {
      for (const each of [slot - away, slot + away]) if (slots[each] && !isEmpty(slots[each])) return each;
    }
    return slot;
  };
  const go = () => {
    const { lanes, first } = slots[at];
    const seq = lanes.find((lane) => lane !== null)?.seq ?? first;
    if (seq !== null) jump(seq);
  };
  strip.addEventListener("pointermove", (pointer) => look(under(pointer)));
  strip.addEventListener("pointerleave", () => { cursor.setAttribute("visibility", "hidden"); readout.textContent = ""; });
  strip.addEventListener("click", (click) => { look(nearest(under(click))); go(); });
  strip.addEventListener("focus", () => look(at));
  strip.addEventListener("keydown", (key) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[key.key];
    if (key.key === "Enter") go();
    else if (key.key === "Home") look(0);
    else if (key.key === "End") look(slots.length - 1);
    else if (by) {
      let next = at + by;
      while (slots[next] && isEmpty(slots[next])) next += by;
      if (slots[next]) look(next);
    } else return;
    key.preventDefault();
    key.stopPropagation();
  });
}

function svg(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
