const readJson = (id) => JSON.parse(byId(id).textContent);
const report = readJson("report");

const OUTCOMES = ["denied", "refused", "redirected", "absorbed", "approved", "audited", "allowed"];

const list = (value) => (Array.isArray(value) ? value : []);
const record = (value) => (value && typeof value === "object" && !Array.isArray(value) ? value : {});
const shown = (value) =>
  value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
const figure = (value) => (typeof value === "number" ? value.toLocaleString("en-US") : shown(value));
const times = (count) => (count === 1 ? "once" : `${figure(count)} times`);
const plural = (count, word, words = `${word}s`) => `${figure(count)} ${count === 1 ? word : words}`;

function span(us) {
  const seconds = us / 1e6;
  if (seconds < 10) return `${seconds.toFixed(3)} s`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${rest} s`;
}

const offset = (us) => `${us < 0 ? "-" : "+"}${span(Math.abs(us))}`;

function localTime(iso) {
  const moment = new Date(iso);
  if (Number.isNaN(moment.getTime())) return shown(iso);
  const two = (value) => String(value).padStart(2, "0");
  const minutes = -moment.getTimezoneOffset();
  const zone = `${minutes < 0 ? "-" : "+"}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
  const day = `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
  return `${day} ${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())} ${zone}`;
}

const badge = (outcome, label = outcome) =>
  element("span", { class: `badge ${OUTCOMES.includes(outcome) ? outcome : "other"}` }, label);

let toastTimer = 0;
function toast(words) {
  byId("toast").textContent = words;
  byId("toast").classList.add("up");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => byId("toast").classList.remove("up"), 4000);
}

function copyButton(words, label = "Copy") {
  const button = element("button", { type: "button", class: "small", "aria-label": `Copy ${words}` }, label);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(words);
    } catch {
      const field = element("textarea", { class: "off-screen" });
      field.value = words;
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
      button.focus();
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = label), 1500);
  });
  return button;
}
