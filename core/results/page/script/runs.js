// All runs, whether a table shows them or not, and what made each of them.

const figure = (value, text) => ({ text: text(value), value });

/** What a sweep varied, as a number where it is one in every run that has it. */
function variedColumn(key) {
  const texts = data.runs.map((run) => settingOf(run.settings, key));
  const number = texts.every((text) => text === undefined || Number.isFinite(Number(text)));
  const cell = (run) => {
    const text = texts[run.index] ?? '—';
    return number ? { text, value: text === '—' ? null : Number(text) } : text;
  };
  return { title: key, number, cell };
}

const runColumns = [
  { title: 'Config', cell: (run) => run.config },
  { title: 'Seed', number: true, cell: (run) => figure(run.seed, String) },
  ...data.varied.map(variedColumn),
  { title: 'Profile', cell: (run) => run.profile },
  { title: 'Status', cell: (run) => run.status + (run.warning ? ', inputs changed' : '') },
  { title: 'Eval loss', number: true, cell: (run) => figure(run.eval_loss, lossText) },
  { title: 'Train loss', number: true, cell: (run) => figure(run.train_loss, lossText) },
  { title: 'Tok/s', number: true, cell: (run) => figure(run.tokens_per_second, withThousands) },
  { title: 'Memory', number: true, cell: (run) => figure(run.peak_memory_bytes, memoryText) },
  { title: 'Parameters', number: true, cell: (run) => figure(run.parameters, withThousands) },
  { title: 'Tokens', number: true, cell: (run) => figure(run.tokens, shortNumber) },
  { title: 'Wall time', number: true, cell: (run) => figure(run.wall_seconds, durationText) },
  {
    title: 'Device',
    cell: (run) => run.device + (run.threads > 0 ? `, ${run.threads} threads` : ''),
  },
  { title: 'Created', cell: (run) => run.created.slice(0, 16).replace('T', ' ') },
  { title: 'Run', cell: (run) => run.id },
];

const originColumns = [
  { title: 'Run', cell: (run) => run.id },
  { title: 'Key of the run', cell: (run) => run.key },
  { title: 'Code version', cell: (run) => run.revision.slice(0, 12) || '—' },
  {
    title: 'Device',
    cell: (run) => run.device + (run.threads > 0 ? `, ${run.threads} threads` : ''),
  },
  {
    title: 'Command',
    prose: true,
    cell: (run) => ({ text: run.command, node: element('code', {}, run.command || '—') }),
  },
];

function tableOfRuns(caption, columns) {
  return sortableTable(
    caption,
    columns,
    data.runs.map((run) => columns.map((column) => column.cell(run))),
  );
}

/** "llama-1: failed at step 40 of 300: worker killed" */
function stateText(run) {
  const place = `step ${withThousands(run.step)} of ${withThousands(run.max_steps)}`;
  return `${run.id}: ${run.status} at ${place}${run.failure ? `: ${run.failure}` : ''}`;
}

function remarkContent(run) {
  return [`${run.id}: `, run.note, run.tags.map((tag) => element('span', { class: 'tag' }, tag))];
}

/** What is to be known of runs before their numbers are: "llama-1: files … were changed". */
function warningsOf(runs) {
  return runs.filter((run) => run.warning).map((run) => `${run.id}: ${run.warning}`);
}

/** Runs without a result, and remarks on any. */
function remarks() {
  const open = data.runs.filter((run) => run.status !== 'completed');
  const noted = data.runs.filter((run) => run.note || run.tags.length > 0);
  const part = (title, items) => (items.length > 0 ? [element('h3', {}, title), list(items)] : []);
  return [
    ...part('Warnings', warningsOf(data.runs)),
    ...part('Not completed', open.map(stateText)),
    ...part('Notes and tags', noted.map(remarkContent)),
  ];
}

function showRuns(host) {
  if (data.runs.length === 0) {
    host.append(element('p', {}, 'There are none.'));
    return;
  }
  const table = tableOfRuns('All runs', runColumns);
  const filter = element('input', {
    type: 'search',
    placeholder: 'Filter runs',
    'aria-label': 'Filter the table of runs',
  });
  filter.addEventListener('input', () => {
    const wanted = filter.value.toLowerCase();
    for (const row of table.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  host.append(element('div', { class: 'controls' }, filter), table, ...remarks());
}

function showReproduction(host) {
  if (data.commands.length > 0)
    host.append(element('p', {}, 'All runs and tables of the project:'), codeBlock(data.commands));
  if (data.runs.length > 0)
    host.append(
      element('h3', {}, 'What made each run'),
      tableOfRuns('What made each run', originColumns),
    );
}
