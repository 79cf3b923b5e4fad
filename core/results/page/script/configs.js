// Configs: what differs between the rows of a table, and each config in full.

/** The rows of a table that have runs, each with the config of the run that it shows. */
function rowConfigs(table) {
  return table.origins
    .map(({ name, runs }) => ({ name, run: data.runs[runs[0]] }))
    .filter(({ run }) => run !== undefined)
    .map(({ name, run }) => ({ name, settings: settingsOf(run.settings) }));
}

/** Values that most rows have stand back. */
function differenceRow(key, configs) {
  const values = configs.map(({ settings }) => settings[key] ?? '—');
  const count = (value) => values.filter((other) => other === value).length;
  const most = Math.max(...values.map(count));
  const cell = (value) =>
    element('td', { class: count(value) === most && most > 1 ? 'usual' : 'differs' }, value);
  return element(
    'tr',
    {},
    element('th', { scope: 'row' }, element('code', {}, key)),
    values.map(cell),
  );
}

function differenceTable(title, configs) {
  const keys = differingKeys(configs);
  if (keys.length === 0) return element('p', {}, 'The configs of these rows are equal.');
  const caption = `What differs between the rows of ${title}`;
  const header = element(
    'tr',
    {},
    element('th', { scope: 'col' }, 'Key'),
    configs.map(({ name }) => element('th', { scope: 'col' }, name)),
  );
  return element(
    'div',
    { class: 'table-frame differences', role: 'region', 'aria-label': caption, tabindex: 0 },
    element(
      'table',
      {},
      element('caption', { class: 'for-screen-readers' }, caption),
      element('thead', {}, header),
      element(
        'tbody',
        {},
        keys.map((key) => differenceRow(key, configs)),
      ),
    ),
  );
}

/** Dotted keys as nested lines, in their alphabetical order. */
function settingsText(settings) {
  const lines = [];
  let open = [];
  for (const key of Object.keys(settings).sort()) {
    const parts = key.split('.');
    const name = parts.pop();
    let shared = 0;
    while (shared < parts.length && parts[shared] === open[shared]) ++shared;
    for (let i = shared; i < parts.length; ++i) lines.push(`${'  '.repeat(i)}${parts[i]}:`);
    lines.push(`${'  '.repeat(parts.length)}${name}: ${settings[key]}`);
    open = parts;
  }
  return lines.join('\n');
}

/** A config that is written out when it is opened. */
function configDetails(index, runs) {
  const seeds = [...new Set(runs.map((run) => run.seed))].sort((a, b) => a - b);
  const names = [...new Set(runs.map((run) => run.config))].join(', ');
  const details = element(
    'details',
    { class: 'config' },
    element(
      'summary',
      {},
      element('strong', {}, names),
      [
        ` · ${runs[0].profile}`,
        variations.get(index),
        `seed${seeds.length > 1 ? 's' : ''} ${seeds.join(', ')}`,
      ]
        .filter(Boolean)
        .join(' · '),
    ),
  );
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1)
      details.append(element('pre', { tabindex: 0 }, settingsText(settingsOf(index))));
  });
  return details;
}

function showConfigs(host) {
  const place = element('div');
  const show = (i) =>
    place.replaceChildren(differenceTable(data.tables[i].title, rowConfigs(data.tables[i])));
  const filled = data.tables
    .map((table, i) => [`${i}`, table.title])
    .filter(([i]) => rowConfigs(data.tables[+i]).length > 1);
  if (filled.length > 0) {
    host.append(
      element('h3', {}, 'What differs between the rows'),
      element(
        'div',
        { class: 'controls' },
        choice('Table', filled, filled[0][0], (i) => show(+i)),
      ),
      place,
    );
    show(+filled[0][0]);
  }
  const members = data.configs.changes.map((_, index) =>
    data.runs.filter((run) => run.settings === index),
  );
  host.append(
    element('h3', {}, 'In full'),
    members.length > 0
      ? element(
          'div',
          { class: 'configs' },
          members.map((runs, index) => configDetails(index, runs)),
        )
      : element('p', {}, 'No run, no config.'),
  );
}
