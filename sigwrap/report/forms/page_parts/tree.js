// The process tree: lines with a depth, top to bottom. A folded line hides the deeper lines below it.

const MANY_LINES = 100;
const FIRST_DEPTHS = 3;

const tree = { lines: [], current: 0, box: null };

function startTree() {
  const processes = record(report.processes);
  const found = list(processes.tree);
  if (!found.length) return;
  tree.lines = found.map((line, at) => ({
    ...line,
    at,
    parent: -1,
    isOpen: true,
    isShown: true,
    outcomes: record(line.outcomes),
    killed: record(line.killed),
    below: {},
    element: null,
  }));
  relate(tree.lines);
  if (tree.lines.length > MANY_LINES) {
    for (const line of tree.lines) line.isOpen = line.depth < FIRST_DEPTHS - 1 || Object.keys(line.below).length > 0;
  }
  tree.box = element("div", { class: "tree", role: "tree", "aria-label": "Process tree" });
  for (const line of tree.lines) tree.box.append(drawLine(line));
  tree.box.addEventListener("keydown", treeKey);
  const fold = (isOpen) => () => { for (const line of tree.lines) line.isOpen = isOpen; arrangeTree(); };
  const tools = element("span", { class: "tools" },
    element("button", { type: "button", class: "small", onclick: fold(false) }, "Fold all"),
    element("button", { type: "button", class: "small", onclick: fold(true) }, "Unfold all"));
  const hidden = processes.lines_not_shown;
  addSection("processes", "Process tree", " ", tools, tree.box,
    hidden ? element("p", { class: "notice" }, `${figure(hidden)} more processes are not shown.`) : null,
    element("p", { class: "notice", id: "tree-note", hidden: true }));
  filter.listeners.push(arrangeTree);
  arrangeTree();
}

// The number of processes, and how many of them these lines show.
function countProcesses(lines) {
  const processes = record(report.processes);
  const sum = (name) => lines.reduce((all, line) => all + (line[name] ?? 0), 0);
  const of = (some, all) => (some === all ? figure(all) : `${figure(some)} of ${figure(all)}`);
  const known = processes.known ?? 0;
  const count = `${of(sum("processes"), known)} ${known === 1 ? "process" : "processes"}`;
  const alive = processes.running ? `, ${of(sum("running"), processes.running)} ${aliveWords()}` : "";
  byId("processes").querySelector(".count").textContent = ` ${count}${alive}`;
}

// The word for processes without a recorded end.
const aliveWords = () =>
  ["ended", "did not end cleanly"].includes(report.ending) ? "with no recorded end" : "running";

function relate(lines) {
  const open = [];
  for (const line of lines) {
    while (open.length && lines[open.at(-1)].depth >= line.depth) open.pop();
    line.parent = open.length ? open.at(-1) : -1;
    line.hasChildren = false;
    if (line.parent >= 0) lines[line.parent].hasChildren = true;
    open.push(line.at);
  }
  for (const line of [...lines].reverse()) {
    if (line.parent < 0) continue;
    const sum = lines[line.parent].below;
    for (const from of [line.outcomes, line.below]) {
      for (const [name, count] of Object.entries(from)) if (name !== "allowed") sum[name] = (sum[name] ?? 0) + count;
    }
  }
}

function drawLine(line) {
  const twist = element("span", { class: "twist", "aria-hidden": "true", onclick: (click) => { click.stopPropagation(); fold(line); } });
  const facts = [
    line.count > 1 ? `× ${figure(line.count)}` : null,
    line.forked ? "only forked" : null,
    line.running ? (line.count > 1 ? `${figure(line.running)} ${aliveWords()}` : aliveWords()) : null,
    line.failed ? (line.count > 1 ? `${figure(line.failed)} failed` : "failed") : null,
    line.not_started ? "could not start" : null,
    ...Object.entries(line.killed).map(([name, count]) => `${name}${count > 1 ? ` × ${figure(count)}` : ""}`),
  ].filter((each) => each);
  line.element = element(
    "div",
    {
      class: `node ${line.refused ? "refused" : ""}`,
      role: "treeitem",
      tabindex: line.at ? -1 : 0,
      "aria-level": line.depth + 1,
      onclick: () => focusLine(line.at),
      ondblclick: () => fold(line),
    },
    twist,
    element("span", { class: "command" }, line.exec_in_place ? element("span", { class: "in-place", title: "replaced the one above" }, "↳ ") : null, shown(line.argv)),
    ...Object.entries(line.outcomes)
      .filter(([name]) => name !== "allowed")
      .map(([name, count]) => outcomeButton(line, name, count)),
    facts.length ? element("span", { class: "fact" }, facts.join(", ")) : null,
    element("a", {
      class: "event-link pid", href: `#e${line.first_seq}`, tabindex: -1, title: `event ${line.first_seq}`,
      onclick: (click) => { click.preventDefault(); click.stopPropagation(); jump(line.first_seq); },
    }, String(line.first_pid)),
    element("span", { class: "below" }),
  );
  line.element.style.setProperty("--depth", Math.min(line.depth, 24));
  return line.element;
}

function outcomeButton(line, name, count) {
  const program = shown(line.argv).split(" ")[0].split("/").at(-1);
  const wanted = line.count === 1 ? `only:${name} pid:${line.first_pid}` : `only:${name} ${quoted(program)}`;
  return element("button", {
    type: "button", class: `badge ${name}`, tabindex: -1, title: `Only these: ${wanted}`,
    onclick: (click) => { click.stopPropagation(); setFilter(wanted); },
  }, count > 1 ? `${name} ${figure(count)}` : name);
}

const lineThing = (line) => ({
  text: (value) => `${shown(line.argv)} ${line.first_pid}`.toLowerCase().includes(value),
  pid: (value, any) => any.includes(String(line.first_pid)),
  only: (value, any) => any.some((each) => line.outcomes[each]),
});

// Lines that match the filter are shown with their ancestors, even in a folded part.
function arrangeTree() {
  const isAsked = (term) => term.field === "only" && term.any.includes("asked");
  const known = filter.terms.filter((term) => ["text", "pid", "only"].includes(term.field) && !isAsked(term));
  const unknown = filter.terms.length - known.length;
  byId("tree-note").hidden = !unknown;
  byId("tree-note").textContent = "The tree is not filtered by rule:, type: and only:asked.";
  const wanted = new Set();
  if (known.length) {
    for (const line of tree.lines) {
      if (!passes(lineThing(line), known)) continue;
      for (let each = line; each && !wanted.has(each.at); each = tree.lines[each.parent]) wanted.add(each.at);
    }
  }
  countProcesses(known.length ? tree.lines.filter((line) => wanted.has(line.at)) : tree.lines);
  for (const line of tree.lines) {
    const above = tree.lines[line.parent];
    line.isShown = known.length ? wanted.has(line.at) : !above || (above.isShown && above.isOpen);
    line.element.hidden = !line.isShown;
    const isOpen = line.isOpen || known.length > 0;
    if (line.hasChildren) line.element.setAttribute("aria-expanded", String(isOpen));
    const below = isOpen ? [] : Object.entries(line.below).map(([name, count]) => `${figure(count)} ${name}`);
    line.element.querySelector(".below").textContent = below.length ? `below: ${below.join(", ")}` : "";
  }
  if (!tree.lines[tree.current].isShown) focusLine(tree.lines.find((line) => line.isShown)?.at ?? 0, { quiet: true });
}

function fold(line, isOpen = !line.isOpen) {
  if (!line.hasChildren || line.isOpen === isOpen) return;
  line.isOpen = isOpen;
  arrangeTree();
}

function focusLine(at, { quiet = false } = {}) {
  tree.lines[tree.current].element.tabIndex = -1;
  tree.current = at;
  tree.lines[at].element.tabIndex = 0;
  if (!quiet) tree.lines[at].element.focus();
}

function treeKey(key) {
  const line = tree.lines[tree.current];
  const beside = (by) => {
    for (let at = tree.current + by; tree.lines[at]; at += by) if (tree.lines[at].isShown) return focusLine(at);
  };
  if (key.key === "ArrowDown" || key.key === "j") beside(1);
  else if (key.key === "ArrowUp" || key.key === "k") beside(-1);
  else if (key.key === "ArrowRight") line.isOpen || !line.hasChildren ? beside(1) : fold(line, true);
  else if (key.key === "ArrowLeft") line.isOpen && line.hasChildren ? fold(line, false) : line.parent >= 0 && focusLine(line.parent);
  else if (key.key === "Enter" || key.key === " ") fold(line);
  else if (key.key === "Home") focusLine(0);
  else if (key.key === "e") jump(line.first_seq);
  else return;
  key.preventDefault();
  key.stopPropagation();
}

// Show the line of an event's process, and unfold its ancestors.
function revealInTree(row) {
  const line = tree.lines.find((each) => each.first_seq === row[SEQ]) ?? tree.lines.findLast((each) => each.first_pid === row[PID]);
  tree.box?.querySelector("[aria-current]")?.removeAttribute("aria-current");
  if (!line) return;
  let above = tree.lines[line.parent];
  let wasFolded = false;
  for (; above; above = tree.lines[above.parent]) {
    wasFolded ||= !above.isOpen;
    above.isOpen = true;
  }
  if (wasFolded) arrangeTree();
  line.element.setAttribute("aria-current", "true");
}
