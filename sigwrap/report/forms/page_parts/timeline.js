// What ran when: the commands of tool calls, below them every process from its first exec to its end,
// and at the bottom a tick for each event that needs attention. A click goes to the event.

const LANES = { call: [6, 20, 0.16], process: [24, 7, 0.004], tick: [1, 10, 0] }; // how many, how high, least width
const BARS_MOST = 2000;

function startTimeline() {
  if (rows.length < 2) return;
  const lastUs = Math.max(rows.reduce((most, row) => Math.max(most, row[AT_US]), 0), 1);
  const box = element("div", { class: "bars" });
  let top = 0;
  for (const [name, bars] of Object.entries(timelineBars(lastUs))) {
    const [lanes, height, share] = LANES[name];
    const ends = [];
    for (const bar of bars.slice(0, BARS_MOST)) {
      // The label is right of the bar's start, or left of it near the page's end.
      const isLate = name === "call" && bar.from > lastUs * (1 - share);
      const begin = isLate ? Math.min(bar.from, bar.to - lastUs * share) : bar.from;
      const end = Math.max(bar.to, begin + lastUs * share);
      let lane = name === "tick" ? 0 : ends.findIndex((each) => each <= begin);
      if (lane < 0) lane = ends.length;
      if (lane >= lanes) continue;
      ends[lane] = end;
      const made = element("button", { type: "button", tabindex: -1, title: bar.words, class: `${name} ${bar.tone} ${isLate ? "late" : ""}`, onclick: () => jump(bar.seq) }, name === "call" ? bar.words : null);
      made.style.left = `${(begin / lastUs) * 100}%`;
      made.style.width = `${((end - begin) / lastUs) * 100}%`;
      made.style.top = `${top + lane * height}px`;
      if (end > begin) made.style.backgroundSize = `${((bar.to - bar.from) / (end - begin)) * 100}% 100%`;
      box.append(made);
    }
    top += ends.length * height + (ends.length ? 4 : 0);
  }
  box.style.height = `${top}px`;
  byId("timeline").replaceChildren(box, element("div", { class: "scale" }, element("span", {}, "+0 s"), element("span", {}, offset(lastUs))));
  byId("timeline-section").hidden = false;
}

function timelineBars(lastUs) {
  const call = list(record(report.steps).found).filter((step) => step.pid).map((step) => ({
    from: step.offset_ns / 1e3, to: (step.ended_offset_ns ?? lastUs * 1e3) / 1e3, seq: step.first_seq, words: shown(step.what), tone: isBad(step) ? "bad" : "",
  }));
  const [process, tick, living] = [[], [], new Map()];
  for (const row of rows) {
    const [type, became] = [typeOf(row), outcomeOf(row)];
    if (type === "process_exited") {
      Object.assign(living.get(row[PID]) ?? {}, { to: row[AT_US], tone: / died of /.test(row[SAID]) ? "died" : "" });
      living.delete(row[PID]);
    } else if (type.startsWith("exec_") && became && became !== "denied" && !living.has(row[PID])) {
      process.push({ from: row[AT_US], to: lastUs, seq: row[SEQ], words: row[SAID], tone: "" });
      living.set(row[PID], process.at(-1));
    }
    const isOwn = type === "interrupt_received" && /from the terminal/.test(row[SAID]);
    if (needsAttention(row)) tick.push({ from: row[AT_US], to: row[AT_US], seq: row[SEQ], words: `${row[SAID]}`, tone: isOwn ? "" : became || "interrupt" });
  }
  return { call, process, tick };
}
