// The queue as it goes on: asked for again every five seconds, with what the address says. A part that says something
// new is replaced, and no other; the focus stays on the link or button that had it, and where that is gone, in its part.
"use strict";
(() => {
  const EVERY = 5000;
  const ANEW = /name="csrfmiddlewaretoken" value="[^"]*"/g;  // another one in each answer
  const said = (part) => part.innerHTML.replace(ANEW, "");
  const same = (one) => (other) => other.tagName === one.tagName && other.name === one.name
    && other.value === one.value && other.getAttribute("href") === one.getAttribute("href");

  const replace = (here, there) => {
    const had = here.contains(document.activeElement) ? document.activeElement : null;
    here.replaceChildren(...there.childNodes);
    if (had) ([...here.querySelectorAll("a, button")].find(same(had)) ?? here).focus({ preventScroll: true });
  };

  const look = async () => {
    try {
      const answer = await fetch(window.location.href, { credentials: "same-origin", cache: "no-store" });
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const parts = [...document.querySelectorAll("[data-follows]")];
        if (parts.some((part) => !page.getElementById(part.id))) return window.location.reload();  // logged out
        for (const part of parts) {
          const there = page.getElementById(part.id);
          if (said(part) !== said(there)) replace(part, there);
        }
      }
    } catch { /* away for a moment: asked again */ }
    return setTimeout(look, EVERY);
  };
  setTimeout(look, EVERY);
})();
