// What needs attention, and what led to it.

const GROUPS_AT_ONCE = 20;
const GROUPS_MORE = 100;
const ASKERS_SHOWN = 2;
const FILE_CHANGES = { create: "made", write: "written", rename: "renamed", delete: "deleted" };

function addSection(id, title, count, ...children) {
  const section = element("section", { id, "aria-labelledby": `${id}-title` },
    element("h2", { id: `${id}-title` }, title, count === "" ? null : element("span", { class: "count" }, ` ${count}`)),
    ...children);
  byId("sections").append(section);
  return section;
}

// Sentences that the verdict has said already.
const SAYS_NOTHING = /: (it ended by itself|the command ended|interrupted by SIGINT from the terminal \(Ctrl\+C\))$/;
// The user's own Ctrl+C is not a failure.
const byUser = list(record(report.interrupts).events).some((each) => record(each.payload).origin === "terminal");
const isBad = (step) => step.is_bad && !(byUser && step.signal_name === "SIGINT");

function logWords() {
  const checked = record(report.verification);
  const state = { intact: `hash chain intact${checked.keyed ? " (with the key)" : ""}`, broken: "NOT INTACT" }[checked.outcome] ?? "not checked";
  return `${plural(report.events, "event")}, ${state}`;
}

function startHead() {
  const session = record(report.session);
  const user = shown(session.user) || `uid ${shown(session.uid)}`;
  const facts = [
    ["started", element("time", { datetime: shown(report.started_at), title: shown(report.started_at) }, localTime(report.started_at))],
    ["by", `${user} on ${shown(session.host) || "?"}`],
    ["in", session.cwd],
    ["session", [session.session_id, session.name && `(${session.name})`].filter(Boolean).map(shown).join(" ")],
    ["policy", session.policy && shown(session.policy) + (list(session.capabilities).includes("file_wall") ? ", file rules enforced by the kernel" : "")],
    ["sigwrap", [session.sigwrap, session.kernel && `Linux ${session.kernel}`].filter(Boolean).map(shown).join(", ")],
    ["log", report.head && element("span", { title: `head ${shown(report.head)}` }, logWords(), " ", copyButton(shown(report.head), "Copy head"))],
    ["without", list(session.missing).map(shown).join(", ")],
    ["outside", list(session.daemons_outside).map(shown).join(", ")],
    ["unset", list(session.environment_removed).map(shown).join(", ")],
    ["not recorded", report.unrecorded ? plural(report.unrecorded, "event") : ""],
    ["stopped", report.stopped && `since ${localTime(report.stopped.since)}, by ${shown(report.stopped.by)}`],
    ["part", typeof report.selected_events === "number" && `${figure(report.selected_events)} of ${plural(report.events, "event")} were selected`],
  ];
  for (const [name, value] of facts) {
    if (value) byId("facts").append(element("div", {}, element("dt", {}, name), element("dd", {}, typeof value === "object" ? value : shown(value))));
  }
  const handed = record(report.handed_outside);
  for (const each of list(handed.found)) byId("handed").append(entry(shown(each.text), each.first_seq, each.first_offset_ns));
  if (handed.more) byId("handed").append(element("li", {}, `and ${times(handed.more)} to other processes outside the session`));
  byId("handed").hidden = !list(handed.found).length;
  if (report.why && !SAYS_NOTHING.test(report.why) && !report.why.endsWith(`: ${report.reason}`)) byId("why").textContent = `Why: ${report.why}`;
  const outcomes = record(report.outcomes);
  for (const [kind, title] of [["exec", "commands"], ["signal", "signals"], ["connection", "connections"]]) {
    const counts = record(outcomes[kind]);
    const names = OUTCOMES.filter((name) => counts[name]);
    if (!names.length) continue;
    const sum = names.reduce((all, name) => all + counts[name], 0);
    byId("counts").append(
      element("span", { class: "group" }, `${figure(sum)} ${sum === 1 ? title.slice(0, -1) : title}: `,
        ...names.map((name) => narrowing(`only:${name} type:${kind}`, `Only ${title} that were ${name}`, badge(name, `${figure(counts[name])} ${name}`)))),
    );
  }
}

function startAttention() {
  const attention = record(report.attention);
  const groups = list(attention.groups);
  const box = element("ol", { class: "findings" });
  const rest = element("p", { class: "notice" });
  const section = addSection("attention", "Needs attention", groups.length ? figure(groups.length) : "", box, rest);
  byId("sections").prepend(section);
  let atOnce = GROUPS_AT_ONCE;
  const draw = () => {
    const fitting = groups.filter((group) => passes(groupThing(group)));
    const shownNow = fitting.slice(0, atOnce);
    const isAudited = (group) => group.outcome === "audited";
    const audited = shownNow.filter(isAudited).map(drawGroup);
    const isFolded = audited.length && !filter.terms.length;
    box.replaceChildren(...shownNow.filter((group) => !isAudited(group)).map(drawGroup), ...(filter.terms.length ? [] : [...judged(), ...discarded()]),
      ...(isFolded ? [element("li", { class: "finding" }, element("details", {}, element("summary", {}, `${figure(fitting.filter(isAudited).reduce((sum, each) => sum + each.count, 0))} audited`), element("ol", { class: "findings" }, ...audited)))] : audited));
    rest.replaceChildren();
    const others = judged().length + discarded().length;
    if (!groups.length && !others) rest.append("Nothing: every command, signal and connection was allowed.");
    else if (groups.length && !fitting.length) rest.append("Nothing here matches the filter.");
    if (fitting.length > atOnce) {
      const more = () => { atOnce += GROUPS_MORE; draw(); };
      rest.append(`${figure(fitting.length - atOnce)} more `, element("button", { type: "button", class: "small", onclick: more }, "Show"));
    }
    if (attention.more) rest.append(` ${figure(attention.more)} more are not shown.`);
  };
  filter.listeners.push(draw);
  draw();
}

const discarded = () => list(record(report.discards).found).map((each) =>
  element("li", { class: "finding redirected" }, badge("redirected", "look"), " ", shown(each.text),
    element("span", { class: "where" }, offset(each.first_offset_ns / 1e3), " ", eventLink(each.first_seq))));

const judged = () => list(record(report.steps).found).filter((step) => ["deny", "ask"].includes(record(step.hook).answer)).map((step) => {
  const label = step.hook.answer === "deny" ? "denied" : "asked";
  return element("li", { class: `finding ${label}` }, badge(label, label === "asked" ? "left to the user" : label), ` ${shown(step.tool)}: ${shown(step.what)} `, eventLink(step.first_seq),
    element("div", { class: "notice" }, shown(step.hook.reason)));
});

const groupThing = (group) => ({
  text: (value) => JSON.stringify([group.label, group.what, group.rule, group.reason, group.by, group.command_lines]).toLowerCase().includes(value),
  rule: (value) => shown(group.rule).toLowerCase().includes(value),
  pid: (value, any) => list(group.by).some((each) => any.includes(String(each.pid))),
  only: (value, any) => any.includes(group.outcome) || (any.includes("asked") && Boolean(group.answer)),
  type: (value, any) => any.some((each) => each.startsWith(group.kind)),
});

// Some are only counted.
const asker = (by) => (["", "''"].includes(shown(by.command)) ? `process ${shown(by.pid)}` : `${by.command} (${shown(by.pid)})`);

function suggestionLabel(group, suggestion) {
  const what = suggestion.for_all === false ? "some of these" : list(group.command_lines).length > 1 ? "these" : "this";
  return group.outcome === "audited" ? `to deny ${what}` : `to allow ${what}, add to your policy`;
}

function drawGroup(group) {
  const askers = list(group.by);
  const drawAsker = (each) => [
    narrowing(`pid:${each.pid}`, "Only events of this process", asker(each)),
    each.count > 1 && askers.length > 1 ? ` ${times(each.count)}` : "",
  ];
  const by = askers.slice(0, ASKERS_SHOWN).flatMap((each, at) => [at ? ", " : "", ...drawAsker(each)]);
  const others = askers.slice(ASKERS_SHOWN);
  const byOthers = others.reduce((sum, each) => sum + each.count, group.by_more || 0);
  const suggestion = record(group.suggestion);
  const lines = list(group.command_lines);
  const isOfSeveral = lines.length > 1 || group.other_command_lines > 0;
  return element("li", { class: `finding ${group.outcome}` },
    element("div", { class: "first-line" },
      badge(group.outcome, shown(group.label) || group.outcome),
      element("code", { class: "what" }, shown(isOfSeveral ? group.command : group.what)),
      group.count > 1 ? element("span", { class: "times" }, `× ${figure(group.count)}`) : null,
      element("span", { class: "where" }, offset(group.first_offset_ns / 1e3), " ", eventLink(group.first_seq))),
    isOfSeveral
      ? element("ul", { class: "more lines" },
          ...lines.map((each) => element("li", {},
            element("span", { class: "times" }, `${figure(each.count)} ×`), element("code", { class: "what" }, shown(each.what)))),
          group.other_command_lines ? element("li", {}, element("span", { class: "times" }, `${figure(group.other_command_lines)} ×`), "others") : null)
      : null,
    element("div", { class: "more" },
      group.rule ? "rule " : null,
      group.rule ? narrowing(`rule:${quoted(shown(group.rule))}`, "Only decisions of this rule", shown(group.rule)) : null,
      group.reason ? `${group.rule ? ": " : ""}${shown(group.reason)}` : null,
      by.length && (group.rule || group.reason) ? ", " : null,
      ...(by.length ? ["by ", ...by] : []),
      byOthers ? `, others ${times(byOthers)}` : null),
    others.length
      ? element("details", { class: "more" },
          element("summary", {}, plural(others.length, "other caller")),
          ...others.map((each) => element("div", {}, "by ", ...drawAsker(each))))
      : null,
    suggestion.line
      ? element("details", { class: "more" },
          element("summary", {}, suggestionLabel(group, suggestion)),
          element("div", { class: "suggestion", title: "A rule for your policy" },
            element("span", { class: "label" }, `${shown(suggestion.section)}:`),
            element("code", {}, shown(suggestion.line)), copyButton(shown(suggestion.line))))
      : suggestion.why_not
        ? element("div", { class: "more" }, `no rule is proposed: ${shown(suggestion.why_not)}`)
        : null,
  );
}

function startSteps() {
  const steps = record(report.steps);
  const found = list(steps.found);
  if (!found.length) return;
  const lines = found.map((step) => {
    const below = list(step.below).filter((each) => each !== step.what);
    const tone = step.outcome === "ok" ? "good" : isBad(step) ? "denied" : "other";
    const denied = list(step.denied).filter((each) => each !== step.what);
    return element("li", {},
      element("div", { class: "first-line" },
        element("span", { class: `badge ${tone}` }, shown(step.outcome)),
        element("code", { class: "what" }, step.tool ? `${shown(step.tool)}: ${shown(step.what)}` : shown(step.what)),
        element("span", { class: "where" }, offset(step.offset_ns / 1e3), " ", eventLink(step.first_seq))),
      ...denied.map((each) => element("div", { class: "more" }, badge("denied"), " ", shown(each))),
      step.hook && step.hook.reason ? element("div", { class: "more" }, shown(step.hook.reason)) : null,
      below.length ? element("details", { class: "more" },
        element("summary", {}, `ran ${plural(step.commands, "command")}`),
        ...below.map((each) => element("div", {}, element("code", {}, each)))) : null);
  });
  const own = Object.entries(record(steps.own)).map(([name, count]) => `${name} (${figure(count)})`);
  const section = addSection("steps", shown(steps.title), "", element("ol", { class: "steps" }, ...lines),
    steps.more ? element("p", { class: "notice" }, `and ${figure(steps.more)} more`) : null,
    own.length ? element("p", { class: "notice" }, `The agent itself ran ${own.join(", ")}.`) : null);
  byId("attention").after(section);
}

function startIncidents() {
  const incidents = record(report.incidents);
  const found = list(incidents.found);
  if (!found.length) return;
  const lines = found.map((each) => entry(shown(each.text), each.first_seq, each.first_offset_ns));
  const kinds = Object.entries(record(incidents.more_by_kind)).map(([kind, count]) => {
    const [type, source] = kind.split(" ");
    return `${figure(count)} ${typeWords(type)}${source ? ` from ${source}` : ""}`;
  });
  byId("attention").after(addSection("incidents", "Session events", "", entries(lines, incidents.more, kinds.join(", "))));
}

function startEndings() {
  const interrupts = record(report.interrupts);
  const deaths = record(report.died_of_signal);
  const startedNs = Date.parse(shown(report.started_at)) * 1e6;
  const said = list(interrupts.events).map((each) => {
    const payload = record(each.payload);
    const sender = payload.sender_cmd ? `from ${shown(payload.sender_cmd)} (${shown(payload.sender_pid)})` : "";
    const words = [shown(each.type).replace("_", " "), payload.signal_name, sender, payload.reason].filter(Boolean).map(shown);
    const made = entry(words.join(" "), each.seq, Date.parse(shown(each.time)) * 1e6 - startedNs);
    if (payload.origin === "terminal") made.classList.add("own");
    return made;
  });
  if (said.length) addSection("interrupts", "Interrupts", figure(said.length + (interrupts.more || 0)), entries(said, interrupts.more));
  const died = list(deaths.found).map((each) =>
    entry(`${shown(each.comm)} (${shown(each.pid)}): ${shown(each.why || each.signal_name)}`, each.seq, each.offset_ns));
  list(deaths.found).forEach((each, at) => { if (/from the terminal/.test(shown(each.why))) died[at].classList.add("own"); });
  if (died.length) addSection("deaths", "Killed by a signal", figure(died.length + (deaths.more || 0)), entries(died, deaths.more));
}

const entry = (words, seq, offsetNs) =>
  element("li", {}, words, element("span", { class: "where" }, offset(offsetNs / 1e3), " ", eventLink(seq)));

const entries = (lines, more, kinds = "") =>
  element("ul", { class: "entries" }, ...lines,
    more ? element("li", {}, `and ${figure(more)} more${kinds ? `: ${kinds}` : ""}`) : null);

function table(titles, lines) {
  return element("div", { class: "scrolled" }, element("table", {},
    element("thead", {}, element("tr", {}, ...titles.map((title) => element("th", { scope: "col" }, title)))),
    element("tbody", {}, ...lines.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell)))))));
}

const restOf = (top) =>
  top.rest ? element("p", { class: "notice" }, `and ${figure(top.rest)} of others${top.exact ? "" : "; these counts are estimates"}`) : null;

function startTables() {
  const talks = record(report.connections);
  if (list(talks.top).length) {
    const lines = talks.top.map((talk) => [
      narrowing(`type:connection ${quoted(shown(talk.destination))}`, "Only these", shown(talk.destination)),
      talk.direction === "bind" ? "server" : shown(talk.protocol),
      badge(talk.outcome),
      figure(talk.count),
    ]);
    addSection("connections", "Network", "", table(["destination", "how", "outcome", "times"], lines), restOf(talks));
  }
  const folders = list(record(report.files).folders);
  if (folders.length) {
    const kinds = Object.entries(FILE_CHANGES);
    const lines = folders.map((each) => [
      narrowing(quoted(shown(each.folder)), "Only these", each.beneath ? `${shown(each.folder).replace(/\/$/, "")}/**` : shown(each.folder)),
      ...kinds.map(([kind]) => (record(each.counts)[kind] ? figure(each.counts[kind]) : "")),
    ]);
    addSection("written", "Files changed", "", table(["folder", ...kinds.map(([, said]) => said)], lines));
  }
  const signals = record(report.signals);
  if (list(signals.top).length) {
    const lines = signals.top.map((edge) => [
      narrowing(`type:signal ${quoted(shown(edge.signal_name))}`, "Only these signals", shown(edge.signal_name)),
      element("span", { class: "edge" }, `${shown(edge.source) || "?"} → ${shown(edge.target) || "?"}`, edge.target_type ? element("span", { class: "dim" }, ` ${shown(edge.target_type)}`) : null),
      badge(edge.outcome),
      figure(edge.count),
    ]);
    addSection("signals", "Signals", "", table(["signal", "from → to", "outcome", "times"], lines), restOf(signals));
  }
}

function startContents() {
  for (const section of document.querySelectorAll("#sections > section, #events-section")) {
    if (section.hidden) continue;
    const words = section.querySelector("h2").textContent;
    const go = (click) => { click.preventDefault(); section.scrollIntoView({ block: "start" }); };
    byId("contents").append(element("a", { href: `#${section.id}`, onclick: go }, words));
  }
}
