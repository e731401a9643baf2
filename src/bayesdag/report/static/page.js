// The page as a whole: theme, printing, and the section that is being read.

function isDark() {
  const said = document.documentElement.dataset.theme;
  return said ? said === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  cy.style().fromJson(graphStyle()).update();
}

function wireTheme() {
  byId("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(document.documentElement.dataset.theme));
}

function wirePrinting() {
  // Paper is white and a canvas is redrawn too late: the graph is printed as an image.
  let before = "";
  addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme || "";
    setTheme("light");
    const image = element("img", { id: "printed", alt: "The graph", src: cy.png({ full: true, scale: 2, maxWidth: 3000, bg: colour("paper") }) });
    byId("cy").append(image);
  });
  addEventListener("afterprint", () => {
    byId("printed")?.remove();
    setTheme(before);
  });
}

function wireNavigation() {
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const watch = new IntersectionObserver((seen) => {
    for (const one of seen) {
      if (!one.isIntersecting) continue;
      links.forEach((link) => link.removeAttribute("aria-current"));
      const link = links.get(one.target.id);
      link.setAttribute("aria-current", "true");
      link.parentElement.scrollLeft = link.offsetLeft - link.parentElement.offsetLeft - 40;
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  document.querySelectorAll("main section").forEach((section) => watch.observe(section));
}

wireGraph();
wireHeat();
wireTables();
wireEffects();
drawChains();
wireTheme();
wirePrinting();
wireNavigation();
