(() => {
  "use strict";
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);

  // Private windows may refuse storage, and some browsers refuse it to file:// pages.
  const remembered = {
    get() { try { return localStorage.getItem("fedrepro-theme"); } catch { return null; } },
    set(value) { try { localStorage.setItem("fedrepro-theme", value); } catch { /* the choice lasts for this page */ } },
  };
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);
  const wanted = new URLSearchParams(location.search).get("theme") || remembered.get();
  if (wanted === "light" || wanted === "dark") root.dataset.theme = wanted;
  root.classList.add("script");

  function setUpTheme() {
    const button = byId("theme");
    const show = () => button.setAttribute("aria-pressed", String(isDark()));
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      remembered.set(root.dataset.theme);
      show();
    });
    systemDark.addEventListener("change", show);
    show();
  }

  const FILTERS = ["study", "origin", "verdict", "kind", "data", "evidence"];

  function setUpLedger() {
    const table = byId("claims");
    if (!table) return;
    // A claim is a table body: its row, and a row with the reason and the other readings.
    const rows = [...table.tBodies].map((row) => ({ row, words: row.textContent.toLowerCase() }));
    const text = byId("filter-text");
    const choices = Object.fromEntries(FILTERS.map((name) => [name, byId(`filter-${name}`)]));
    const chosen = () => FILTERS.filter((name) => choices[name].value);
    // A claim may rest on several kinds of data.
    const has = (row, name) => (name === "data" ? row.dataset.data.split(" ").includes(choices.data.value)
      : row.dataset[name] === choices[name].value);

    function filter() {
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      const names = chosen();
      let shown = 0;
      for (const { row, words: content } of rows) {
        const match = names.every((name) => has(row, name)) && words.every((word) => content.includes(word));
        row.hidden = !match;
        shown += match;
      }
      byId("filter-count").textContent = shown === rows.length
        ? `${shown} claim${shown === 1 ? "" : "s"}` : `${shown} of ${rows.length} claims`;
      byId("filter-none").hidden = shown > 0;
    }

    // The state is kept behind the # of the address: file:// pages allow nothing else everywhere.
    function remember() {
      const state = new URLSearchParams(chosen().map((name) => [name, choices[name].value]));
      if (text.value) state.set("words", text.value);
      history.replaceState(null, "", `#${state}`);
    }

    function change() {
      filter();
      remember();
    }

    function reset() {
      text.value = "";
      for (const name of FILTERS) choices[name].value = "";
      change();
    }

    text.form.addEventListener("submit", (event) => event.preventDefault());
    for (const control of [text, ...Object.values(choices)]) control.addEventListener("input", change);
    byId("filter-reset").addEventListener("click", reset);
    byId("filter-none").querySelector("button").addEventListener("click", reset);

    const heads = [...table.tHead.rows[0].cells];
    const compare = new Intl.Collator("en", { numeric: true }).compare;
    heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      const value = (row) => row.rows[0].cells[column].dataset.value;
      // Empty cells come last either way; numbers stand before words.
      const order = (a, b) => {
        const [x, y] = [value(a), value(b)];
        if (!x || !y) return !x - !y;
        const [m, n] = [Number(x.replaceAll(",", "")), Number(y.replaceAll(",", ""))];
        if (Number.isNaN(m) !== Number.isNaN(n)) return Number.isNaN(m) ? 1 : -1;
        return (Number.isNaN(m) ? compare(x, y) : m - n) * (descending ? -1 : 1);
      };
      table.append(...[...table.tBodies].sort(order));
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    }));

    // The address names a claim, which must be reached even when the filter hides it, or holds the filter's state.
    function arrive() {
      const hash = location.hash.slice(1);
      let target = null;
      try { target = byId(decodeURIComponent(hash)); } catch { /* no name of a claim */ }
      if (target && target.parentNode === table) {
        if (target.hidden) {
          for (const name of FILTERS) choices[name].value = "";
          text.value = "";
          filter();
        }
        target.scrollIntoView();
        target.focus({ preventScroll: true });
      } else if (hash.includes("=")) {
        const state = new URLSearchParams(hash);
        text.value = state.get("words") ?? "";
        for (const name of FILTERS) choices[name].value = state.get(name) ?? "";
        filter();
      }
    }
    addEventListener("hashchange", arrive);
    filter();  // a browser may bring back the text of a reloaded page
    arrive();
  }

  function setUpGallery() {
    const figures = [...document.querySelectorAll(".zoom")];
    const viewer = byId("viewer");
    const image = byId("viewer-image");
    if (!viewer) return;
    let current = 0;

    function show(index) {
      current = (index + figures.length) % figures.length;
      const article = figures[current].closest(".artefact");
      const picture = figures[current].querySelector("img");
      const sharp = article.querySelector("a[data-suffix=svg]");
      image.onerror = () => { image.onerror = null; image.src = picture.src; };
      image.src = sharp ? sharp.href : picture.src;
      image.alt = picture.alt;
      byId("viewer-title").textContent = article.querySelector("h2, h3").textContent;
      byId("viewer-caption").textContent = article.querySelector(".caption")?.textContent ?? "";
    }

    figures.forEach((figure, index) => figure.addEventListener("click", () => {
      show(index);
      viewer.showModal();
      byId("viewer-close").focus();
    }));
    byId("viewer-close").addEventListener("click", () => viewer.close());
    byId("viewer-previous").addEventListener("click", () => show(current - 1));
    byId("viewer-next").addEventListener("click", () => show(current + 1));
    viewer.addEventListener("click", (event) => { if (event.target === viewer) viewer.close(); });
    viewer.addEventListener("close", () => figures[current].focus());
    viewer.addEventListener("keydown", (event) => {
      if (event.key === "ArrowLeft") show(current - 1);
      if (event.key === "ArrowRight") show(current + 1);
    });
  }

  // On paper there is nothing to click: show what the words mean, and load the pictures that were out of sight.
  addEventListener("beforeprint", () => {
    for (const words of document.querySelectorAll("details.words")) words.open = true;
    for (const image of document.querySelectorAll("img[loading=lazy]")) image.loading = "eager";
  });

  document.addEventListener("DOMContentLoaded", () => {
    setUpTheme();
    setUpLedger();
    setUpGallery();
  });
})();
