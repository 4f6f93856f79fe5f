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

  function setUpLedger() {
    const table = byId("claims");
    if (!table) return;
    // A claim is a table body: its row, and a row with the reason and the other readings.
    const rows = [...table.tBodies].map((row) => ({ row, words: row.textContent.toLowerCase() }));
    const text = byId("filter-text");
    const study = byId("filter-study");
    const origin = byId("filter-origin");
    const verdict = byId("filter-verdict");

    function filter() {
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const { row, words: content } of rows) {
        const match = (!study.value || row.dataset.study === study.value)
          && (!origin.value || row.dataset.origin === origin.value)
          && (!verdict.value || row.dataset.verdict === verdict.value)
          && words.every((word) => content.includes(word));
        row.hidden = !match;
        shown += match;
      }
      byId("filter-count").textContent = shown === rows.length
        ? `${shown} claim${shown === 1 ? "" : "s"}` : `${shown} of ${rows.length} claims`;
      byId("filter-none").hidden = shown > 0;
    }

    function reset() {
      text.value = study.value = origin.value = verdict.value = "";
      filter();
    }

    for (const control of [text, study, origin, verdict]) control.addEventListener("input", filter);
    byId("filter-reset").addEventListener("click", reset);
    byId("filter-none").querySelector("button").addEventListener("click", reset);
    for (const link of document.querySelectorAll(".matrix a")) {
      link.addEventListener("click", () => {
        text.value = "";
        study.value = link.dataset.study;
        origin.value = link.dataset.origin;
        verdict.value = link.dataset.verdict;
        filter();
      });
    }

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

    // A link to a claim must arrive there even when the filter hides it.
    function reveal() {
      let name = "";
      try { name = decodeURIComponent(location.hash.slice(1)); } catch { return; }
      const target = byId(name);
      if (target && target.parentNode === table && target.hidden) {
        reset();
        target.scrollIntoView();
      }
    }
    addEventListener("hashchange", reveal);
    filter();  // a browser may bring back the text of a reloaded page
    reveal();
  }

  function setUpGallery() {
    for (const link of document.querySelectorAll("a[data-picture]")) {
      const picture = link.closest("article").querySelector(".zoom img");
      if (picture) link.href = picture.src;
    }
    const figures = [...document.querySelectorAll(".zoom")];
    const viewer = byId("viewer");
    const image = byId("viewer-image");
    let current = 0;

    function show(index) {
      current = (index + figures.length) % figures.length;
      const article = figures[current].closest("article");
      const picture = figures[current].firstElementChild;
      const sharp = article.querySelector("a[data-suffix=svg][href^='data:']");
      image.onerror = () => { image.onerror = null; image.src = picture.src; };
      image.src = sharp ? sharp.href : picture.src;
      image.alt = picture.alt;
      byId("viewer-title").textContent = article.querySelector("h4").textContent;
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

  document.addEventListener("DOMContentLoaded", () => {
    setUpTheme();
    setUpLedger();
    setUpGallery();
  });
})();
