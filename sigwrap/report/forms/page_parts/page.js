// The whole page: theme, keys, the address, and paper.

const PRINTED_EVENTS = 300;

const kept = {
  get: (name) => { try { return localStorage.getItem(name); } catch { return null; } },
  set: (name, value) => { try { localStorage.setItem(name, value); } catch { /* a viewer may forbid it */ } },
};

function startTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = kept.get("sigwrap-theme");
  const isDark = () => (chosen ? chosen === "dark" : system.matches);
  const show = () => {
    if (chosen) document.documentElement.dataset.theme = chosen;
    byId("theme").textContent = isDark() ? "Light" : "Dark";
  };
  byId("theme").addEventListener("click", () => {
    chosen = isDark() ? "light" : "dark";
    kept.set("sigwrap-theme", chosen);
    show();
  });
  system.addEventListener("change", show);
  show();
}

function startKeys() {
  const help = byId("help");
  byId("help-button").addEventListener("click", () => help.showModal());
  const keys = {
    "/": () => { byId("filter").focus(); byId("filter").select(); },
    "?": () => help.showModal(),
    j: () => step(1),
    k: () => step(-1),
    n: () => stepToAttention(1),
    p: () => stepToAttention(-1),
    t: () => byId("theme").click(),
  };
  const inList = {
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    PageDown: () => step(20),
    PageUp: () => step(-20),
    Home: () => select(0),
    End: () => select(view.places.length - 1),
    Enter: () => select(Math.max(0, view.selected), { open: true }),
  };
  document.addEventListener("keydown", (key) => {
    if (key.ctrlKey || key.metaKey || key.altKey || help.open) return;
    const box = byId("filter");
    if (key.key === "Escape") return escape(key);
    if (document.activeElement === box) {
      if (key.key === "Enter" || key.key === "ArrowDown") {
        setFilter(box.value, { typed: true });
        byId("list").focus({ preventScroll: innerWidth > 1100 });
        if (view.selected < 0) step(1);
        key.preventDefault();
      }
      return;
    }
    const isFree = document.activeElement === document.body || document.activeElement === byId("list") || document.activeElement === byId("main");
    const action = keys[key.key] ?? (isFree ? inList[key.key] : undefined);
    if (!action) return;
    action();
    key.preventDefault();
  });
}

// Escape closes one thing at a time, the last opened first.
function escape(key) {
  if (!byId("detail").hidden) closeDetail();
  else if (byId("filter").value) setFilter("");
  else if (document.activeElement === byId("filter")) byId("filter").blur();
  else return;
  key.preventDefault();
}

function startAddress() {
  const go = () => {
    const [, seq, line] = /^#(?:e(\d{1,15})|f=(.*))$/.exec(location.hash) ?? [];
    if (seq) jump(Number(seq));
    if (line) setFilter(decoded(line));
  };
  addEventListener("hashchange", go);
  go();
}

function decoded(line) {
  try { return decodeURIComponent(line); } catch { return line; }
}

function startPaper() {
  addEventListener("beforeprint", () => {
    const places = view.places.slice(0, PRINTED_EVENTS);
    const lines = places.map((place) => element("li", {}, [rows[place][SEQ], offset(rows[place][AT_US]), rows[place][PID], outcomeOf(rows[place]), rows[place][SAID]].join("  ")));
    const hidden = view.places.length - places.length;
    if (hidden) lines.push(element("li", {}, `and ${plural(hidden, "event")} more, on the page itself`));
    byId("printed").replaceChildren(...lines);
    byId("printed").hidden = false;
  });
  addEventListener("afterprint", () => { byId("printed").hidden = true; });
}

byId("needs-script").hidden = true;
startTheme();
startHead();
startAttention();
startIncidents();
startSteps();
startTimeline();
startEndings();
startTree();
startTables();
startEvents();
startContents();
listenToFilterBox();
startKeys();
startPaper();
startAddress();
