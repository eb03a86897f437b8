// Light, dark, or what the system says. Loaded before the page is painted, so that nothing flashes.
"use strict";

(() => {
  const KEY = "geartrain.theme";
  const CHOICES = ["system", "light", "dark"];

  function chosen() {
    try {
      const kept = localStorage.getItem(KEY);
      return CHOICES.includes(kept) ? kept : "system";
    } catch {
      return "system"; // storage may be forbidden; the page works without
    }
  }

  function choose(theme) {
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // Then it holds until the page is left.
    }
  }

  document.documentElement.dataset.theme = chosen();
  window.geartrainTheme = {
    get current() {
      return document.documentElement.dataset.theme;
    },
    next() {
      const after = CHOICES[(CHOICES.indexOf(this.current) + 1) % CHOICES.length];
      choose(after);
      return after;
    },
  };
})();
