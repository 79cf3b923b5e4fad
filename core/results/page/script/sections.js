// Tables with what is said below them: claims, footnotes, what is left out.

/** "one seed for it: Canon-A has …" with its verdict set apart. */
function claimEntry(line) {
  const end = line.indexOf(': ');
  if (end < 0) return element('li', {}, line);
  const verdict = line.slice(0, end);
  const kind = /^(holds|one seed for)/.test(verdict)
    ? 'for'
    : /^(fails|one seed against)/.test(verdict)
      ? 'against'
      : 'open';
  const sign = { for: '✓', against: '✗', open: '?' }[kind];
  return element(
    'li',
    {},
    element(
      'span',
      { class: `verdict ${kind}` },
      element('span', { 'aria-hidden': 'true' }, `${sign} `),
      verdict,
    ),
    ' ',
    line.slice(end + 2),
  );
}

function part(title, content) {
  return [element('h4', {}, title), content];
}

/** A few lines, or many that are opened on request. */
function reasons(lines) {
  if (lines.length <= 4) return part('Left out, and why', list(lines));
  return [
    element(
      'details',
      {},
      element('summary', {}, `Left out, and why (${lines.length})`),
      list(lines),
    ),
  ];
}

function setupList(setup) {
  const entries = setup.map(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]);
  return element(
    'details',
    {},
    element('summary', {}, 'Setup'),
    element('dl', { class: 'setup' }, entries),
  );
}

function tableSection(table, index) {
  const section = element(
    'section',
    { class: 'card', 'aria-labelledby': `table-${index}` },
    element('h3', { id: `table-${index}` }, table.title),
    sortableTable(table.title, table.columns, table.rows),
  );
  if (table.footnotes.length > 0) {
    section.append(
      element(
        'ol',
        { class: 'footnotes' },
        table.footnotes.map((note, i) => element('li', {}, `[${i + 1}] ${note}`)),
      ),
    );
  }
  if (table.claims.length > 0)
    section.append(
      ...part('Claims', element('ul', { class: 'plain claims' }, table.claims.map(claimEntry))),
    );
  if (table.left_out.length > 0) section.append(...reasons(table.left_out));
  if (table.commands.length > 0)
    section.append(...part('Missing runs are made by', codeBlock(table.commands)));
  if (table.setup.length > 0) section.append(setupList(table.setup));
  section.append(...table.notes.map((note) => element('p', { class: 'muted' }, note)));
  return section;
}

function showTables(host) {
  if (data.tables.length === 0) {
    host.append(
      element(
        'p',
        {},
        'The project has no tables: they are files of it, ',
        element('code', {}, 'tables/NAME.yaml'),
        '.',
      ),
    );
  }
  host.append(...data.tables.map(tableSection));
}
