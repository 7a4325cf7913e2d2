// Who is at the page, and the token that it shows: kept for this tab, and no part of its address.

const $ = (id) => document.getElementById(id);
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) sessionStorage.setItem("token", given);
history.replaceState(null, "", location.pathname); // the token is no part of what people copy or photograph

export const secret = () => sessionStorage.getItem("token") ?? "";
export const hello = () => ({ type: "hello", name: sessionStorage.getItem("name") || "operator", token: secret() });

export class Door {
  // `enter` is called when a person has said who they are, or had before.
  constructor(enter) {
    this.enter = enter;
    $("door").addEventListener("cancel", (event) => event.preventDefault());
    $("door-form").addEventListener("submit", () => this.entered());
  }

  begin() {
    if (sessionStorage.getItem("name")) this.enter();
    else this.ask();
  }

  // With a text, for the token, too.
  ask(text = "") {
    $("door-token-label").hidden = !text;
    if (text) $("door-text").textContent = text;
    $("door-name").value = sessionStorage.getItem("name") ?? localStorage.getItem("name") ?? "";
    $("door").showModal();
  }

  get open() {
    return $("door").open;
  }

  entered() {
    const name = $("door-name").value.trim() || "operator";
    sessionStorage.setItem("name", name);
    localStorage.setItem("name", name);
    if ($("door-token").value) sessionStorage.setItem("token", $("door-token").value);
    this.enter();
  }
}
