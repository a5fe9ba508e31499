// Runs before the page is drawn, so that it never flashes in the other theme.
{
  let theme = null;
  try {
    theme = localStorage.getItem("akunu.theme");
  } catch {
    // A browser may forbid it; then the page looks as the system does.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}
