// Sessions: a line for each, as long as it is on the board.

const lines = new Map();
let chosen = "";

function showSessions(board) {
  const list = byId("sessions");
  const wanted = new Set(board.sessions.map((each) => each.id));
  for (const [id, line] of lines) {
    if (wanted.has(id)) continue;
    line.node.remove();
    lines.delete(id);
  }
  board.sessions.forEach((each, at) => {
    const line = lines.get(each.id) || sessionLine(each);
    lines.set(each.id, line);
    showSession(line, each);
    if (list.children[at] !== line.node) list.insertBefore(line.node, list.children[at] || null);
  });
  const running = board.sessions.filter((each) => each.state !== "ended").length;
  put(byId("sessions-count"), running ? `${running} running` : "none running");
  byId("no-sessions").hidden = board.sessions.length > 0;
  byId("more-sessions").hidden = !board.more;
  put(byId("more-sessions"), `${plural(board.more, "older session")} not shown: see sigwrap sessions`);
  if (!wanted.has(chosen) && board.sessions.length) choose(board.sessions[0].id);
}

function sessionLine(first) {
  const id = first.id;
  const line = { name: element("span", { class: "name" }), state: element("span"), command: element("span", { class: "command" }), fact: element("span", { class: "fact" }) };
  line.choose = element("button", { type: "button", class: "choose", onclick: () => choose(id) }, line.name, line.command);
  line.stop = element("button", { type: "button", class: "small", onclick: () => stop(line.seen) }, "Stop…");
  const report = element("a", { href: `/report/${encodeURIComponent(id)}`, target: "_blank", rel: "noopener noreferrer" }, "Report");
  line.node = element("li", { class: "session" }, line.choose, line.state, line.stop, report, line.fact);
  return line;
}

function showSession(line, seen) {
  line.seen = seen;
  put(line.name, seen.name || seen.id);
  put(line.command, seen.command);
  line.command.title = seen.command;
  put(line.state, seen.state);
  line.state.className = `badge ${seen.state}`;
  line.stop.hidden = seen.state === "ended";
  line.stop.setAttribute("aria-label", `Stop ${seen.name || seen.id}`);
  line.choose.setAttribute("aria-pressed", String(seen.id === chosen));
  line.node.classList.toggle("chosen", seen.id === chosen);
  tellAge(line);
}

function tellAge({ seen, fact }) {
  const until = seen.state === "ended" ? Date.parse(seen.last_event) : now();
  const facts = [
    seen.started && span(until - Date.parse(seen.started)),
    seen.state !== "ended" && seen.processes !== null && plural(seen.processes, "process", "processes"),
    seen.denied !== null && `${seen.denied} denied`,
    seen.asked !== null && plural(seen.asked, "approval request"),
    seen.ended || (seen.last && `last: ${seen.last}`),
  ];
  put(fact, facts.filter(Boolean).join(" · "));
}

function choose(id) {
  chosen = id;
  for (const line of lines.values()) showSession(line, line.seen);
  forgetEvents(lines.get(id)?.seen);
  connect();
}

async function stop(seen) {
  const name = seen.name || seen.id;
  const answered = await confirmed({ title: `Stop ${name}?`, words: `This interrupts it, as Ctrl+C does, and ends its processes. ${seen.command}`, yes: "Stop it" });
  if (answered !== null) post("/interrupt", { session_id: seen.id });
}

setInterval(() => lines.forEach(tellAge), 1000);
