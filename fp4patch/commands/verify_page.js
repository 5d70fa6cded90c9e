"use strict";
// Shows a compressed listing when its section is opened: hundreds of listings have millions of elements.

async function show(details) {
  const place = details.querySelector("[data-packed]");
  if (!place) return;
  const bytes = Uint8Array.from(atob(place.dataset.packed), (letter) => letter.charCodeAt(0));
  delete place.dataset.packed;
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  place.innerHTML = await new Response(inflated).text(); // the page's own markup, escaped when it was made
}

for (const details of document.querySelectorAll(".listing")) details.addEventListener("toggle", () => show(details));

// A link in the table opens the listing that it leads to.
function go() {
  const listing = document.getElementById(location.hash.slice(1))?.querySelector(".listing");
  if (listing) listing.open = true;
}
addEventListener("hashchange", go);
go();
