// An attempt that is being judged: its state is asked for again every two seconds, and the page is shown anew once
// there is something to read. Nothing that is being typed is lost: then the person is told instead.
"use strict";
(() => {
  const EVERY = 2000;
  let busy = false;
  document.addEventListener("input", () => { busy = true; });

  const look = async () => {
    const here = document.getElementById("progress");
    try {
      const answer = await fetch(window.location.pathname, { credentials: "same-origin", cache: "no-store" });
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const there = page.getElementById("progress");
        if (!there) return window.location.reload();  // logged out meanwhile
        const moving = ["waiting", "running"].includes(there.dataset.state);
        if (!moving && !busy) return window.location.reload();
        if (here.innerHTML !== there.innerHTML) here.replaceChildren(...there.childNodes);
        if (!moving) return undefined;
      }
    } catch { /* away for a moment: asked again */ }
    return setTimeout(look, EVERY);
  };
  setTimeout(look, EVERY);
})();
