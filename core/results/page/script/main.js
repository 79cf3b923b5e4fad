// The page as a whole.

function summaryText() {
  const count = (number, word) => `${number} ${word}${number === 1 ? '' : 's'}`;
  const completed = data.runs.filter((run) => run.status === 'completed').length;
  const open = data.runs.length - completed;
  const newest = data.runs
    .map((run) => run.created)
    .sort()
    .pop();
  return [
    data.project,
    count(data.tables.length, 'table'),
    count(completed, 'completed run'),
    open > 0 ? `${open} not completed` : null,
    newest ? `newest run of ${newest.slice(0, 10)}` : null,
  ]
    .filter(Boolean)
    .join(' · ');
}

const darkPreferred = matchMedia('(prefers-color-scheme: dark)');

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : darkPreferred.matches;
}

function redrawCharts() {
  cssColours.clear();
  byId('theme').setAttribute('aria-pressed', `${isDark()}`);
  for (const id of ['curves-body', 'tradeoff-body']) byId(id).chart?.chart.plot?.redraw(false);
}

/** A page opened from a file may not be allowed to remember. */
function remembered(action) {
  try {
    return action(localStorage);
  } catch {
    return null;
  }
}

function startTheme() {
  const chosen = remembered((storage) => storage.getItem('forge-theme'));
  if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset.theme = chosen;
  byId('theme').addEventListener('click', () => {
    const theme = isDark() ? 'light' : 'dark';
    document.documentElement.dataset.theme = theme;
    remembered((storage) => storage.setItem('forge-theme', theme));
    redrawCharts();
  });
  darkPreferred.addEventListener('change', redrawCharts);
  redrawCharts();
}

byId('summary').textContent = summaryText();
document.body.classList.toggle('many-runs', data.runs.length > 200);
startTheme();
showTables(byId('tables-body'));
showCurves(byId('curves-body'));
showTradeoff(byId('tradeoff-body'));
showConfigs(byId('configs-body'));
showRuns(byId('runs-body'));
showReproduction(byId('reproduce-body'));
