// A form that is on its way is not sent a second time. The server takes each receipt once, with or without this; a
// double click just need not be told that it had been handed in already.
"use strict";
for (const form of document.querySelectorAll("form.answers")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "1";
  });
  window.addEventListener("pageshow", () => { delete form.dataset.sent; });
}
