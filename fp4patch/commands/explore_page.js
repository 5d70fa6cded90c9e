"use strict";
// Shows what fp4patch's Python put into the data: it looks answers up and decides nothing itself.

let DATA;
const MAIN = document.getElementById("main");
const LEVELS = { green: "fine", yellow: "attention", red: "problem", "not-judged": "not judged" };
const WORKS = { green: "yes", yellow: "yes, with a reservation", red: "no", "not-judged": "not judged" }; // does FP4 work on it
const STATES = { applied: "applies", upstreamed: "the release has it", "not-needed": "never needed there", drifted: "refused" };
const OUTCOMES = { hardware: ["✓", "in hardware"], emulated: ["≈", "emulated"], accepted: ["✓", "accepted, code not read"], rejected: ["–", "rejected"] };

// Every text goes in as text, never as markup.
const h = (name, attributes, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
};
const link = (href, text) => h("a", { href, rel: "noreferrer" }, text);
const record = (path) => link(DATA.repository + path, path);
const choice = (name, title, options, value, wide) =>
  h("label", { class: wide ? "wide" : null }, title,
    h("select", { name, onchange: change }, options.map(([of, text]) => h("option", { value: of, selected: of === value }, text))));
const search = (name, title, value) => h("label", {}, title, h("input", { type: "search", name, value, oninput: change, autocomplete: "off" }));

// A value of the address that the records do not have is named: the answer is about another one.
let unknown = [];
const within = (value, known, name) => {
  if (known.includes(value)) return value;
  if (name && value) unknown.push(`${name} "${value}"`);
  return undefined;
};
const notice = () => (unknown.length ? h("div", { class: "card yellow", id: "unknown" }, h("p", {}, `The records do not have what the address of this page names: ${unknown.join(", ")}. What you see is the answer for the choices below.`)) : null);
const NOTHING = "Nothing matches these filters.";
const none = (columns, text) => h("tr", {}, h("td", { colspan: columns, class: "wrap soft" }, text));

// --- the address: #view?key=value -----------------------------------------------------------------------------------

const VIEWS = { answer, instructions };
const parsed = () => {
  const [view, query] = location.hash.slice(1).split("?");
  return [within(view, Object.keys(VIEWS), "view") || "answer", Object.fromEntries(new URLSearchParams(query || ""))];
};
const address = (view, values) => `#${view}?${new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ""))}`;

function change(event) {
  const [view, values] = parsed(), input = event.target;
  values[input.name] = input.value;
  if (input.name === "project") for (const key of ["release", "list", "state"]) delete values[key];
  history.replaceState(null, "", address(view, values));
  show(input);
}

function show(from) {
  unknown = [];
  const [view, values] = parsed(), at = from && from.selectionStart;
  for (const item of document.querySelectorAll("nav a")) {
    if (item.dataset.view === view) item.setAttribute("aria-current", "page");
    else item.removeAttribute("aria-current");
  }
  MAIN.replaceChildren(...VIEWS[view](values).filter(Boolean));
  if (unknown.length) MAIN.firstChild.after(notice());
  document.title = `${MAIN.firstChild.textContent} · fp4patch explorer`;
  if (!from) return;
  document.getElementById("status").textContent = [...MAIN.querySelectorAll(":scope > .status, #result > .card:not(.finding) h2")].map((part) => part.textContent).join(". ");
  const again = MAIN.querySelector(`[name=${from.name}]`);
  again.focus();
  if (from.type === "search") again.setSelectionRange(at, at);
}

// --- your build -----------------------------------------------------------------------------------------------------

// The number of an answer, as doctor's JSON has it for this question.
const read = (number, cuda) => JSON.parse(DATA.answers[number].replaceAll("{cuda}", cuda));
const quoted = (text) => (/[;\s]/.test(text) ? `"${text}"` : text);

const QUESTION = "What happens on my GPU, and what do I do?";

function answer(values) {
  const projects = [...new Set(DATA.releases.map((release) => release.target))];
  const project = within(values.project, projects, "project") || within("vllm", projects) || projects[0];
  const releases = DATA.releases.filter((release) => release.target === project).reverse(), target = DATA.targets[project];
  const versions = releases.map((release) => release.version), version = within(values.release, versions, "release") || versions[0];
  const release = releases[versions.indexOf(version)];
  const state = within(values.state, Object.keys(release.states), "source after") || "";
  const cuda = within(values.cuda, DATA.cudas, "CUDA") || within("13.0", DATA.cudas) || DATA.cudas.at(-1);
  const lists = release.states[state][cuda], list = within(values.list, Object.keys(lists), target.setting || "arch list") || "";
  const gpu = within(values.gpu, Object.keys(DATA.gpus), "GPU") || Object.keys(DATA.gpus)[0];
  const reply = read(lists[list][gpu], cuda);
  const asWritten = (of) => of.replaceAll(";", target.separator || ";");
  const states = Object.keys(release.states).map((of) => [of, of ? `after apply --variant ${of}` : "as released"]);
  const form = h("form", { class: "ask", "aria-label": "Your build", onsubmit: (event) => event.preventDefault() },
    choice("gpu", "GPU", Object.entries(DATA.gpus).map(([of, name]) => [of, `${name} · ${of.replace(",", ", ")}`]), gpu, true),
    choice("project", "Project", projects.map((of) => [of, DATA.targets[of].title]), project),
    choice("release", "Release", versions.map((of) => [of, of]), version),
    choice("cuda", "CUDA", DATA.cudas.map((of) => [of, of]), cuda),
    target.setting ? choice("list", target.setting, Object.keys(lists).map((of) => [of, of ? asWritten(of) : "not decided"]), list) : null,
    choice("state", "Source", states, state));
  const title = `${target.title} ${version}, CUDA ${cuda}${list ? `, ${target.setting}=${quoted(asWritten(list))}` : ""}, ${states.find(([of]) => of === state)[1]}`;
  return [h("h1", {}, QUESTION), form,
    h("section", { id: "result", "aria-label": "Answer" },
      h("p", { class: "soft" }, title),
      reply.gpus.length ? reply.gpus.map((gpu) => outlook(gpu))
        : h("div", { class: "card" }, h("p", {}, `Doctor has no verdict for each GPU on ${target.title}: its recommendation applies to all of them.`)),
      reply.findings.map(finding),
      advice(reply, release, state, { project, cuda, list, gpu, target, asWritten }),
      compiled(reply, gpu, target, cuda),
      evidence(reply, release, state, project))];
}

const finding = ({ level, subject, found, remedy, link: source }) => h("div", { class: `card ${level} finding` },
  h("h2", {}, subject, h("span", { class: `verdict ${level}` }, LEVELS[level] || level)), h("p", {}, found),
  remedy ? h("p", { class: "todo" }, remedy) : null, source ? h("p", {}, link(source, source)) : null);

const outlook = ({ gpu, level, verdict, because, todo }, heading = "h2") => h("div", { class: `card ${level} outlook`, "data-gpu": gpu },
  h(heading, {}, gpu, " ", h("span", { class: `verdict ${level}` }, WORKS[level]), " ", h("span", { class: "word soft" }, verdict)),
  h("p", { class: "because" }, because), todo ? h("p", { class: "todo" }, todo) : null);

function advice(reply, release, state, { project, cuda, list, gpu, target, asWritten }) {
  const tree = `./${project}`, { variant, because, next } = reply.recommended;
  const asked = `fp4patch doctor --for ${gpu} --cuda ${cuda}${list ? ` --arch-list ${quoted(list)}` : ""} ${tree}`;
  const commands = [`fp4patch fetch ${project}==${release.version} ${tree}`,
    ...(state ? [`fp4patch apply --variant ${state} ${tree}`] : []), ...(next ? [next] : []),
    ...(next.includes(" apply ") ? [next.replace(" apply ", " verify ")] : []), asked];
  const after = variant && !state && release.states[variant] && read(release.states[variant][cuda][list][gpu], cuda);
  const without = variant === null ? "doctor has no advice" : state ? `${state} is applied` : "none is needed";
  return h("section", { id: "advice", "aria-label": "What to do" }, h("h2", {}, "What to do"),
    h("p", {}, "Variant: ", h("strong", { class: "variant" }, variant || without), variant && DATA.variants[variant] ? ` (${DATA.variants[variant]})` : ""),
    because ? h("p", { class: "because soft" }, because) : null,
    after ? h("div", { class: "after" }, h("h3", {}, list ? `After it, with the same list, ${asWritten(list)}` : "After it"), after.gpus.map((gpu) => outlook(gpu, "h4"))) : null,
    h("h3", {}, "Commands"), block([...new Set(commands)]),
    target.later ? h("p", { class: "soft" }, `${target.title} compiles when a kernel is first used: set the variable where it runs.`) : null);
}

const block = (lines) => h("div", { class: "commands" }, h("pre", { tabindex: 0 }, lines.join("\n")), h("button", { type: "button", onclick: copy }, "Copy"));

async function copy(event) {
  const text = event.target.previousSibling.textContent;
  try {
    await navigator.clipboard.writeText(text);
    event.target.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(event.target.previousSibling);
    event.target.textContent = "Selected: press Ctrl+C";
  }
}

function compiled(reply, gpu, target, cuda) {
  if (!reply.builds.length) return null;
  const tint = (text) => (text === "native" ? "green" : text === "no FP4" || text === "in part" || text === "PTX" ? "yellow" : "red");
  const made = (build, of) => {
    const { stops, modules } = build.on[of] || { stops: build.stops, modules: { "": build.kernels } };
    if (stops) return `stops: ${stops}`;
    return Object.entries(modules).map(([name, archs]) => `${name} ${archs.join(", ") || "none for SM12x"}`.trim()).join("; ");
  };
  const row = (build, of) => h("tr", {}, h("th", { scope: "row" }, build.asked || "unset"), h("td", {}, of),
    h("td", {}, h("span", { class: tint(build.reaches[of]) }, build.reaches[of] || "")),
    h("td", { class: "wrap mono" }, build.error ? `not evaluated: ${build.error}` : made(build, of)));
  const means = target.kernels === "kernels"
    ? "These kernels need no FP4 instruction. native: the GPU loads code; PTX: it loads none, and its driver compiles PTX when a kernel is first used."
    : "native: the GPU loads code whose target has the FP4 instructions; no FP4: it loads code without them.";
  return h("section", { id: "compiled", "aria-label": "What is compiled" }, h("h2", {}, "What is compiled, and what loads"),
    h("p", { class: "soft" }, `By the release's own build code, run by doctor for CUDA ${cuda}. ${means}`),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Architectures of each list" },
      h("table", { class: "sum" }, h("thead", {}, h("tr", {}, [target.setting, "GPU", "support", target.kernels + " compiled for"].map((of) => h("th", { scope: "col" }, of)))),
        h("tbody", {}, reply.builds.flatMap((build) => gpu.split(",").map((of) => row(build, of)))))));
}

function evidence(reply, release, state, project) {
  const row = DATA.matrix.find((tried) => tried.target === project && tried.version === release.version);
  const variant = state || reply.recommended.variant, items = [];
  if (row) for (const id of Object.keys(row.states)) {
    const patch = DATA.patches[id];
    if (patch && patch.variants.includes(variant)) items.push(h("li", {}, h("strong", {}, id), `, ${patch.title}: on this release, ${STATES[row.states[id]] || row.states[id]}. `, link(patch.link, "Reason")));
  }
  const verified = row && Object.entries(row.verified || {});
  if (verified && verified.length) items.push(h("li", { class: "verified" }, `fp4patch verify on this release: ${verified.map(([name, verdict]) => `${name} ${verdict}`).join(", ")}.`));
  else items.push(h("li", { class: "verified" }, "No variant's machine code was verified on this release by the daily watch; run fp4patch verify."));
  items.push(h("li", {}, "Instruction counts of each conversion, from the machine code: ", record("docs/variants.md"), "."),
    h("li", {}, "Records: ", record("records/answers.json"), row ? ` and the source ${row.source}, ` : ", ", record("records/matrix.json"), "."));
  return h("section", { id: "evidence", "aria-label": "Evidence" }, h("h2", {}, "Evidence"), h("ul", { class: "evidence" }, items));
}

// --- instructions × targets -----------------------------------------------------------------------------------------

function instructions(values) {
  const { toolkits, groups } = DATA.instructions, toolkit = within(values.toolkit, toolkits, "compiler of CUDA") || toolkits.at(-1);
  const every = groups.flatMap((group) => group.features), text = values.find || "", wanted = text.toLowerCase();
  const features = every.filter((feature) => `${feature.instruction} ${feature.title} ${feature.note}`.toLowerCase().includes(wanted));
  const family = (target) => (/^sm_12/.test(target) ? 0 : /^sm_1[01]/.test(target) ? 1 : 2); // SM12x comes first
  const targets = [...new Set(every.flatMap((feature) => Object.keys(feature.cells)))]
    .filter((target) => every.some((feature) => (feature.cells[target] || {})[toolkit]))
    .sort((a, b) => family(a) - family(b) || parseInt(a.slice(3)) - parseInt(b.slice(3)) || (a < b ? -1 : 1));
  const asked = within(values.i, every.map((feature) => feature.instruction), "instruction");
  const chosen = every.find((feature) => feature.instruction === asked);
  const cell = (feature, target) => {
    const [outcome, code] = (feature.cells[target] || {})[toolkit] || ["", ""], [mark, words] = OUTCOMES[outcome] || ["", ""];
    return h("td", { class: "cell", title: code ? `${target}: ${code}` : null }, h("span", { class: `mark ${outcome}`, "aria-hidden": "true" }, mark), h("span", { class: "hidden" }, words));
  };
  return [h("h1", {}, "FP4 instructions by target and compiler"),
    h("form", { class: "ask", "aria-label": "Filters", onsubmit: (event) => event.preventDefault() },
      choice("toolkit", "ptxas of CUDA", toolkits.map((of) => [of, of]), toolkit),
      search("find", "Instruction or title contains", text)),
    h("p", { class: "soft status" }, `${features.length} instructions. `, Object.values(OUTCOMES).filter(([, words], at) => at !== 2).map(([mark, words]) => `${mark} ${words}`).join("; "), ". Choose an instruction for its machine code by every compiler."),
    chosen ? detail(chosen, targets) : null,
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Instructions and targets" },
      h("table", { class: "sum", id: "outcomes" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "instruction"), targets.map((of) => h("th", { scope: "col", class: "cell" }, of.slice(3))))),
        h("tbody", {}, features.length ? null : none(targets.length + 1, NOTHING), features.map((feature) => h("tr", { class: feature === chosen ? "chosen" : null },
          h("th", { scope: "row", class: "wrap" }, h("a", { href: address("instructions", { ...values, i: feature.instruction }), title: feature.instruction }, feature.title)),
          targets.map((target) => cell(feature, target)))))))];
}

function detail(chosen, targets) {
  const rows = targets.map((target) => {
    const runs = [];
    for (const toolkit of DATA.instructions.toolkits) {
      const cell = (chosen.cells[target] || {})[toolkit], last = runs.at(-1);
      if (!cell) continue;
      if (last && last[0].join() === cell.join()) last[2] = toolkit;
      else runs.push([cell, toolkit, toolkit]);
    }
    return h("tr", {}, h("th", { scope: "row" }, target), h("td", { class: "wrap" }, runs.map(([[outcome, text], from, to]) =>
      h("div", {}, h("span", { class: outcome }, `${OUTCOMES[outcome][0]} ${OUTCOMES[outcome][1]}`), text ? [" ", h("code", {}, text)] : "", h("span", { class: "soft" }, ` CUDA ${from === to ? from : `${from} to ${to}`}`)))));
  });
  return h("section", { class: "card", id: "detail", tabindex: -1, "aria-label": chosen.title }, h("h2", {}, chosen.title), h("p", {}, h("code", {}, chosen.instruction)), chosen.note ? h("p", { class: "soft" }, chosen.note) : null,
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Machine code by target" }, h("table", { class: "sum" }, h("tbody", {}, rows))));
}

// After a link the keyboard goes on from what it leads to.
addEventListener("hashchange", () => {
  if (!DATA) return;
  show();
  const opened = document.getElementById("detail") || MAIN;
  opened.scrollIntoView();
  opened.focus({ preventScroll: true });
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // "#main" would be an address of a view
  MAIN.focus();
});

async function start() {
  const bytes = Uint8Array.from(atob(document.getElementById("data").innerHTML), (letter) => letter.charCodeAt(0));
  DATA = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  show();
}
start();
