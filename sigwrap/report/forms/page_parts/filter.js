// A filter is a list of terms, all of which must hold. Where a part of the page has no such field
// (the tree has no rules), the term holds.

const FIELDS = ["rule", "pid", "only", "type"];

function parseFilter(line) {
  const terms = [];
  for (const [, minus, field, quoted, bare] of line.matchAll(/(-?)(?:(\w+):)?(?:"([^"]*)"?|(\S+))/g)) {
    const word = (quoted ?? bare).toLowerCase();
    if (!word) continue;
    const isField = FIELDS.includes(field);
    const value = isField || field === undefined ? word : `${field}:${word}`.toLowerCase();
    terms.push({ not: minus === "-", field: isField ? field : "text", value, any: value.split(",") });
  }
  return terms;
}

const filter = { line: "", terms: [], listeners: [] };

// `thing` has a method for each field it knows: (value, any) -> does it hold.
function passes(thing, terms = filter.terms) {
  return terms.every((term) => {
    const test = thing[term.field];
    return test === undefined || test(term.value, term.any) !== term.not;
  });
}

function setFilter(line, { typed = false } = {}) {
  filter.line = line.trim();
  filter.terms = parseFilter(filter.line);
  if (!typed) byId("filter").value = line;
  for (const listener of filter.listeners) listener();
}

function listenToFilterBox() {
  let timer = 0;
  const box = byId("filter");
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => setFilter(box.value, { typed: true }), 80);
  });
}

const quoted = (words) => (/[\s":]/.test(words) || words.startsWith("-") ? `"${words.replaceAll('"', "")}"` : words);

// A link that sets the filter.
const narrowing = (line, title, ...children) => {
  const go = (click) => { click.preventDefault(); setFilter(line); };
  return element("a", { class: "narrowing", href: `#f=${encodeURIComponent(line)}`, title, onclick: go }, ...children);
};
