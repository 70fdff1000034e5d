// The reader's choice of light or dark colours, applied before the first paint. Without a choice the system decides.
"use strict";
{
  const KEY = "heald-theme";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");

  function storedTheme() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // a browser without storage follows the system
    }
  }

  function isDark() {
    return root.dataset.theme === "dark" || (root.dataset.theme !== "light" && system.matches);
  }

  function showState() {
    document.getElementById("theme")?.setAttribute("aria-pressed", String(isDark()));
  }

  function switchTheme() {
    const theme = isDark() ? "light" : "dark";
    root.dataset.theme = theme;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // the choice lasts as long as the page
    }
    showState();
  }

  const theme = storedTheme();
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  system.addEventListener("change", showState);
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", switchTheme);
    showState();
  });
}
