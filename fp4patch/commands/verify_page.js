"use strict";
// Shows the compressed listings, gives each instruction an address, and copies a listing.

const inflated = async (packed) => {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
};

async function show(place) {
  if (!place.dataset.packed) return;
  const packed = place.dataset.packed;
  delete place.dataset.packed;
  place.innerHTML = await inflated(packed); // the page's own markup, escaped when it was made
  const section = place.closest("section").id;
  for (const table of place.querySelectorAll(".sass")) {
    for (const row of table.tBodies[0].rows) {
      for (const [at, side] of [[0, "b"], [3, "a"]]) {
        const cell = row.cells[at], address = cell.textContent;
        if (!address) continue;
        const link = Object.assign(document.createElement("a"), { className: "at", id: `${section}-${side}-${address}`, href: `#${section}-${side}-${address}`, textContent: address });
        cell.replaceChildren(link);
      }
    }
  }
}

async function go() {
  const wanted = decodeURIComponent(location.hash.slice(1)), section = document.getElementById(wanted.split("-").slice(0, 2).join("-"));
  const missing = document.getElementById("missing");
  missing.hidden = true;
  if (!section || !section.matches("section.probe")) {
    missing.hidden = !/^t\d+-\d+/.test(wanted);
    return;
  }
  if (!section.checkVisibility()) document.getElementById("only-all").checked = true; // the filter hides it
  const place = section.querySelector(".listing .view > div:last-child");
  if (place) await show(place);
  const found = document.getElementById(wanted);
  missing.hidden = Boolean(found);
  if (!found || found === section) return section.scrollIntoView();
  for (let outer = found.parentElement; outer; outer = outer.parentElement) if (outer.matches("details")) outer.open = true;
  for (const row of document.querySelectorAll(".here")) row.classList.remove("here");
  const row = found.closest("tr");
  if (row) row.classList.add("here");
  found.scrollIntoView({ block: "center" });
}

const listing = (section, at) => [...section.querySelectorAll(".sass tbody tr")].map((row) => {
  if (row.matches(".l")) return row.cells[at + 1].textContent;
  return row.cells[at].textContent ? `/*${row.cells[at].textContent}*/  ${row.cells[at + 1].textContent}` : "";
}).filter(Boolean).join("\n");

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const section = button.closest("section");
  await show(section.querySelector(".listing .view > div:last-child"));
  const text = listing(section, Number(button.dataset.copy));
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    const area = Object.assign(document.createElement("textarea"), { value: text, readOnly: true, rows: 8 });
    button.after(area);
    area.select();
  }
});
addEventListener("hashchange", go);

// First the listing that the address names, then all, so that the browser's own search and print find them. Hundreds of
// listings have millions of elements: each of these waits until it comes near, or until the button asks for all.
(async () => {
  await go();
  const places = [...document.querySelectorAll("[data-packed]")], button = document.getElementById("every");
  const every = async () => {
    for (const place of places) await show(place);
    if (button) button.hidden = true;
  };
  if (places.length <= 100) await every();
  else {
    const near = new IntersectionObserver((entries) => {
      for (const { target } of entries.filter((one) => one.isIntersecting)) {
        near.unobserve(target);
        show(target.querySelector(".listing .view > div:last-child"));
      }
    }, { rootMargin: "1500px" });
    for (const place of places) near.observe(place.closest("section"));
    button.hidden = false;
    button.addEventListener("click", every);
  }
  document.documentElement.dataset.ready = "yes";
})();
