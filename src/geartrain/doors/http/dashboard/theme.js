// The theme: light, dark, or the system's. Loaded before the first paint, so that the page does not flash.
"use strict";

(() => {
  const KEY = "geartrain.theme";
  const CHOICES = ["system", "light", "dark"];

  function chosen() {
    try {
      const saved = localStorage.getItem(KEY);
      return CHOICES.includes(saved) ? saved : "system";
    } catch {
      return "system"; // storage may be disabled
    }
  }

  function choose(theme) {
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // Without storage the choice lasts until the page is closed.
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
