// A form that is on its way is not sent a second time: a double click on "Hand in" would cost two attempts.
"use strict";
for (const form of document.querySelectorAll("form.answers")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "1";
  });
  window.addEventListener("pageshow", () => { delete form.dataset.sent; });
}
